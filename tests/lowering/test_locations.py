"""Options that decide which of the user's source lines the operations of a module name."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options

x = np.ones(3, np.float32)


def inner(depth, x):
    return inner(depth - 1, x) if depth else jnp.sin(x)


def lowered(depth=3):
    return jax.jit(lambda x: inner(depth, x)).lower(x).as_text(debug_info=True)


def frames_of_sin(text):
    """How many frames the location of the sine in a module's text has."""
    defined = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
    (name,) = re.findall(r"stablehlo\.sine.* loc\((#loc\d+)\)", text)
    count, pending = 0, [name]
    while pending:
        location = defined[pending.pop()]
        count += bool(re.match(r'".*\.py":\d', location))
        pending += re.findall(r"#loc\d*", location)
    return count


def test_all_frames_are_there_by_default():
    assert frames_of_sin(lowered(depth=20)) > 22


@pytest.mark.parametrize(("limit", "frames"), [(1, 1), (2, 2), (7, 7)])
def test_the_limit_counts_the_innermost_frames(limit, frames):
    with options["jax_traceback_in_locations_limit"](limit):
        assert frames_of_sin(lowered(depth=20)) == frames


def test_a_limit_of_zero_leaves_the_names_of_operations():
    with options["jax_traceback_in_locations_limit"](0):
        text = lowered()
    assert ".py" not in text
    assert 'loc("jit(<lambda>)/sin")' in text


def test_a_negative_limit_is_none():
    with options["jax_traceback_in_locations_limit"](-1):
        assert frames_of_sin(lowered(depth=150)) > 152


def test_without_full_tracebacks_the_innermost_line_alone_is_there():
    with options["jax_include_full_tracebacks_in_locations"](False):
        text = lowered()
    assert "callsite" not in text
    assert frames_of_sin(text) == 1
    line = inner.__code__.co_firstlineno + 1
    assert f'test_locations.py":{line}:' in text


@pytest.mark.parametrize("full", [True, False])
def test_the_pattern_is_removed_from_files(full):
    with (
        options["jax_hlo_source_file_canonicalization_regex"](".*/"),
        options["jax_include_full_tracebacks_in_locations"](full),
    ):
        module = jax.jit(lambda x: inner(3, x)).lower(x)
    text = module.as_text(debug_info=True)
    assert '"test_locations.py":' in text
    assert "/test_locations.py" not in text


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"takes a regular expression.*got '\('"):
        options["jax_hlo_source_file_canonicalization_regex"]("(")


def test_a_jitted_function_is_lowered_anew_with_another_option():
    with options["hlofront_cache"](False):
        f = jax.jit(lambda x: inner(3, x))
        shown = f.lower(x).compile().as_text()
        with options["jax_traceback_in_locations_limit"](0):
            f(x)
            assert f.lower(x).compile().as_text().count(".py") == 0 < shown.count(".py")
        assert f.lower(x).compile().as_text() == shown


def test_a_stage_compiles_the_module_that_it_has():
    with options["hlofront_cache"](False):
        traced = jax.jit(lambda x: inner(3, x)).trace(x)
        before = traced.lower()
        with options["jax_traceback_in_locations_limit"](0):
            without = traced.lower()
            assert ".py" in before.compile().as_text()
        assert ".py" not in without.as_text(debug_info=True)
        assert ".py" not in without.compile().as_text()


def test_source_lines_are_in_the_key_on_disk_where_that_is_wanted(tmp_path):
    def build(shift):
        space = {"jnp": jnp}
        exec(
            compile("\n" * shift + "def f(x):\n    return jnp.exp(x) + x", __file__, "exec"), space
        )
        return jax.jit(space["f"])

    def was_loaded(shift):
        jax.clear_caches()
        f = build(shift)
        f(x)
        return f.timings().load > 0

    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path)):
        assert not was_loaded(0)
        assert was_loaded(1)
        with options["jax_compilation_cache_include_metadata_in_key"](True):
            assert not was_loaded(0)
            assert [was_loaded(1) for _ in range(2)] == [False, True]
    jax.clear_caches()
