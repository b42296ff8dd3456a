"""The library's functions under checkify: their own indices out of bounds are not errors."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import checkify
from tests.numpy import catalogue, catalogue_part
from tests.numpy.catalogue_runner import AT_ONCE
from tests.scipy.library_calls import CASES
from tests.systematic import trials

# Calls whose index is out of bounds, and no mode says that it may be.
OUT_OF_BOUNDS = "<0,5,-7>"


def alarms(named, x64):
    """Run named functions of values, many as one program; return what their checks report."""
    functions = [checkify.checkify(f, errors=checkify.index_checks) for _, f, _ in named]

    def error_of(function):
        return lambda *values: function(*values)[0]

    program = trials.Together([error_of(f) for f in functions], x64, jax)
    results = program([values for _, _, values in named])
    return [
        f"{name}: {error.get().splitlines()[0]}"
        for (name, _, _), error in zip(named, results, strict=True)
        if isinstance(error, checkify.Error) and error.get()
    ]


@pytest.mark.each_part
@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_calls_of_the_catalogue_report_no_index(chapter):
    report = []
    for x64 in (False, True):
        calls = [
            (one.name, one.on(jnp), one.values())
            for one in catalogue_part.of_part(chapter)
            if not one.concrete and one.needs_x64() is x64 and OUT_OF_BOUNDS not in one.name
        ]
        for start in range(0, len(calls), AT_ONCE):
            report += alarms(calls[start : start + AT_ONCE], x64)
    assert not report, "\n".join(report)


@pytest.mark.long
def test_functions_beyond_numpy_report_no_index():
    cases = [(name, function, values) for name, (function, *values) in CASES.items()]
    report = []
    for start in range(0, len(cases), AT_ONCE):
        report += alarms(cases[start : start + AT_ONCE], False)
    assert not report, "\n".join(report)


# ---- modes that the user chose -------------------------------------------------------------------

X, MASK, FAR = jnp.arange(3.0), jnp.array([True, False, True]), jnp.array([0, 7])

CHOSEN = {
    "nonzero": lambda: jnp.nonzero(MASK, size=3),
    "flatnonzero": lambda: jnp.flatnonzero(MASK, size=3),
    "where": lambda: jnp.where(MASK, size=3),
    "extract": lambda: jnp.extract(MASK, X, size=3),
    "unique": lambda: jnp.unique(X, True, True, True, size=5),
    "setxor1d": lambda: jnp.setxor1d(X, X, size=5),
    "bincount": lambda: jnp.bincount(FAR, length=3),
    "set": lambda: X.at[FAR].set(1.0, mode="drop"),
    "add": lambda: X.at[FAR].add(1.0, mode=jax.lax.GatherScatterMode.CLIP),
    "get": lambda: X.at[FAR].get(mode="fill"),
    "take": lambda: jnp.take(X, FAR, mode="clip"),
    "take_along_axis": lambda: jnp.take_along_axis(X, FAR, 0, mode="fill"),
    "segment_sum": lambda: jax.ops.segment_sum(X[:2], FAR, 3, mode="drop"),
}
BY_DEFAULT = {
    "set": lambda: X.at[FAR].set(1.0),
    "set in bounds": lambda: X.at[FAR].set(1.0, mode="promise_in_bounds"),
    "get": lambda: X[FAR],
    "take": lambda: jnp.take(X, FAR),
    "take_along_axis": lambda: jnp.take_along_axis(X, FAR, 0),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["traced", "jit"])
def test_an_index_out_of_bounds_is_no_error_where_a_mode_was_chosen(wrap):
    for cases, wanted in ((CHOSEN, False), (BY_DEFAULT, True), (CHOSEN, False)):
        for name, function in cases.items():
            error, _ = checkify.checkify(wrap(function), errors=checkify.all_checks)()
            assert bool(error.get()) is wanted, name


def test_modes_that_were_chosen_equal_the_others():
    mode = jax.lax.GatherScatterMode.from_any("drop")
    assert mode == jax.lax.GatherScatterMode.FILL_OR_DROP
    assert repr(mode) == repr(jax.lax.GatherScatterMode.FILL_OR_DROP)
    assert {mode: 1}[jax.lax.GatherScatterMode.FILL_OR_DROP] == 1
    np.testing.assert_array_equal(X.at[FAR].set(1.0, mode=mode), [1, 1, 2])
