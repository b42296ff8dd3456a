"""The examples in docstrings give what the docstrings say."""

import ast
import doctest
import functools
import importlib
import inspect
import pathlib
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu

ROOT = pathlib.Path(__file__).parents[2]
NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "pl": pl, "pltpu": pltpu}

# The names that users look up first, by module.
EXPECTED = {
    jax: """
        jit grad value_and_grad vmap jacfwd jacrev hessian jvp vjp linearize linear_transpose
        checkpoint custom_jvp custom_vjp make_jaxpr eval_shape pure_callback device_put
        block_until_ready shard_map
    """,
    lax: """
        scan cond switch while_loop fori_loop map associative_scan dynamic_slice pad sort top_k
        dynamic_update_slice dynamic_slice_in_dim dot_general conv_general_dilated reduce_window
        select clamp psum stop_gradient slice gather scatter scatter_add broadcast_in_dim reshape
        concatenate select_n reduce cumsum cummax rem div convert_element_type all_gather ppermute
    """,
    jax.nn.initializers: "glorot_uniform he_normal orthogonal",
}
# The functions without an example, in modules where all others have one.
WITHOUT_EXAMPLE = {
    # Their first line says all, or they read and write files and settings.
    jnp: """
        arccos acos arcsinh asinh arctan atan arctanh atanh cos cosh deg2rad radians rad2deg degrees
        exp exp2 log10 log2 sin sinh tan tanh negative positive square subtract real isfinite isinf
        isneginf isposinf less less_equal greater greater_equal logical_and logical_not logical_or
        logical_xor load save savez fromfile fromiter array_repr get_printoptions set_printoptions
    """,
    jnp.linalg: "",
    jnp.fft: "",
    # Distributions without parameters, or whose numbers take a second to compile.
    jax.random: """
        Key ball cauchy double_sided_maxwell exponential generalized_normal gumbel laplace logistic
        maxwell triangular truncated_normal weibull_min
    """,
    jax.nn: "identity mish selu tanh scaled_dot_general scaled_matmul",
}
SECTIONS = ("Args", "Returns", "Yields", "Raises", "Example")


def examples(docstring):
    """Return the statements of a docstring's examples, and what they print."""
    return [(x.source, x.want) for x in doctest.DocTestParser().get_examples(docstring)]


def public_functions(module):
    """Return the functions of a module that hlofront defines, by their names."""
    members = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {
        name: member
        for name, member in members.items()
        if callable(member)
        and not isinstance(member, type)
        and member.__module__.startswith("hlofront")
    }


@functools.cache
def documented_objects():
    """Return the docstrings with examples, by the names of the modules, functions and classes."""
    docstrings = {}
    for path in sorted((ROOT / "hlofront").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ">>> " not in text:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                docstring = ast.get_docstring(node)
                if docstring and ">>> " in docstring:
                    docstrings[module, getattr(node, "name", "")] = docstring
    # Functions that a call makes, such as `floor = unary_operation(...)`, have no `def`.
    known = [examples(docstring) for docstring in docstrings.values()]
    for module in (jnp, lax):
        for name, function in public_functions(module).items():
            docstring = inspect.getdoc(function) or ""
            if ">>> " in docstring and examples(docstring) not in known:
                docstrings[module.__name__, name] = docstring
                known.append(examples(docstring))
    return docstrings


def failures(docstring, module, name):
    """Run the examples of a docstring with the module's names; return what went wrong, as text."""
    names = {**vars(importlib.import_module(module)), **NAMES}
    example = doctest.DocTestParser().get_doctest(docstring, names, name, module, 0)
    report = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    return "".join(report)


@pytest.mark.parametrize(("module", "name"), documented_objects())
def test_example(module, name):
    report = failures(documented_objects()[module, name], module, name)
    assert not report, report


@pytest.mark.parametrize("module", EXPECTED, ids=lambda module: module.__name__)
def test_the_most_used_names_have_examples(module):
    names = EXPECTED[module].split()
    assert not [
        name for name in names if ">>> " not in (inspect.getdoc(getattr(module, name)) or "")
    ]


@pytest.mark.parametrize("module", WITHOUT_EXAMPLE, ids=lambda module: module.__name__)
def test_all_functions_but_those_listed_have_examples(module):
    without = {
        name
        for name, function in public_functions(module).items()
        if ">>> " not in (inspect.getdoc(function) or "")
    }
    assert without == set(WITHOUT_EXAMPLE[module].split())


@pytest.mark.parametrize(
    "module", [*EXPECTED, *WITHOUT_EXAMPLE], ids=lambda module: module.__name__
)
def test_sections_are_in_order(module):
    wrong = {}
    for name in dir(module):
        docstring = inspect.getdoc(getattr(module, name)) or ""
        sections = re.findall(f"^({'|'.join(SECTIONS)}):$", docstring, re.MULTILINE)
        if sections != [section for section in SECTIONS if section in sections]:
            wrong[name] = sections
    assert not wrong


def test_a_wrong_result_and_a_missing_name_are_seen():
    report = failures(">>> 1 + 1\n3\n>>> absent\n", "hlofront.core.sharding.mesh", "")
    assert "Got:\n    2" in report and "name 'absent' is not defined" in report
