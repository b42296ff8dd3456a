"""Each option is read by the code that its text describes, or is listed as without effect."""

import ast

import pytest

from hlofront.base import config
from hlofront.base import option as option_module
from hlofront.base.option import Option, options
from hlofront.base.options_without_effect import OPTIONS_WITHOUT_EFFECT
from tests.conventions.source import modules, walk

# Where options are declared. What reads an option is elsewhere.
DECLARING = {"hlofront.base.config", "hlofront.base.options_without_effect"}
# The names that base/config.py gives to options: `enable_x64` for jax_enable_x64.
ALIASES = {name: value.name for name, value in vars(config).items() if isinstance(value, Option)}
# Two are read as cells of C++: `state.disable_jit`.
ALIASES |= {cell: f"jax_{cell}" for cell in option_module._OWN_CELLS}


def options_read(tree):
    """The options that a module's code reads, by flag.

    Code reads an option as `options["flag"]` or `config.flag`, or by the name that base/config.py
    has for it. What is given a name and not used under it is not read; nor is what is imported
    alone, as by the doors.
    """
    nodes = walk(tree)
    used = {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    unused = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        and all(isinstance(name, ast.Name) and name.id not in used for name in node.targets)
    }
    found = set()
    for node in nodes:
        if id(node) in unused:
            continue
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            found.add(node.slice.value)
        elif isinstance(node, ast.Attribute):
            found |= {node.attr, ALIASES.get(node.attr)}
        elif isinstance(node, ast.ImportFrom) and node.module == "hlofront.base.config":
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            found |= {ALIASES.get(name) for local, name in names.items() if local in used}
    return found & options.keys()


@pytest.fixture(scope="module")
def read_somewhere():
    return {
        flag
        for module in modules()
        if module.name not in DECLARING
        for flag in options_read(module.tree)
    }


def test_each_option_is_read_or_is_said_to_have_no_effect(read_somewhere):
    unread = options.keys() - OPTIONS_WITHOUT_EFFECT.keys() - read_somewhere
    assert not unread, (
        "no code reads these options: build them, or move them to base/options_without_effect.py"
    )


def test_no_option_that_is_said_to_have_no_effect_is_read(read_somewhere):
    assert not OPTIONS_WITHOUT_EFFECT.keys() & read_somewhere


def test_options_without_effect_say_so_and_others_do_not():
    for flag, option in options.items():
        says_so = option.doc.startswith("has no effect in hlofront; in JAX it ")
        assert says_so == (flag in OPTIONS_WITHOUT_EFFECT), flag
        assert "no effect" not in option.doc or says_so, flag


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ('_x = options["jax_debug_nans"]\ndef f():\n    return _x.value', True),
        ('_x = options["jax_debug_nans"]', False),
        ("def f():\n    return config.jax_debug_nans", True),
        ("from hlofront.base.config import debug_nans\nprint(debug_nans.value)", True),
        ("from hlofront.base.config import debug_nans as debug_nans", False),
        ("# jax_debug_nans", False),
    ],
)
def test_what_reading_an_option_is(code, reads):
    assert ("jax_debug_nans" in options_read(ast.parse(code))) is reads
