"""Each function of the catalogue gives what NumPy gives; Hypothesis draws the values.

A program holds many calls and is compiled once: shapes, dtypes and keywords are the catalogue's,
and only values change from example to example.
"""

import functools

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from tests.numpy import catalogue, catalogue_runner, comparing

catalogue.load()
BATCHES = {
    chapter: catalogue_runner.batches(chapter, hlofront, jnp) for chapter in catalogue.CHAPTERS
}
BATCH_OF = {
    one.name: (batch, place)
    for batches in BATCHES.values()
    for batch in batches
    for place, one in enumerate(batch.calls)
}


@functools.cache
def ran(batch):
    """What the calls of a batch give of the catalogue's own values."""
    return batch.run([one.values() for one in batch.calls])


def outcome(one):
    batch, place = BATCH_OF[one.name]
    return ran(batch)[place]


def outcomes(chapter):
    return {one.name: outcome(one) for one in catalogue.of_chapter(chapter)}


def test_every_public_function_is_tried():
    """Or another name of one that is, or left out for a reason."""
    # Tried by tests of their own: test_differences.py, test_polynomial.py, test_windows.py, ...
    elsewhere = {
        "hlofront.numpy.statistics.differences",
        "hlofront.numpy.products.polynomial",
        "hlofront.numpy.windows",
        "hlofront.numpy.vectorize",
        "hlofront.numpy.support.printing",
        "hlofront.numpy.arrays.saving",
        "hlofront.numpy.indexing.tricks",
    }
    public = {
        name
        for name in dir(jnp)
        if not name.startswith("_")
        and not isinstance(getattr(jnp, name), type(np))
        and callable(getattr(jnp, name))
        and getattr(getattr(jnp, name), "__module__", None) not in elsewhere
        and not isinstance(getattr(jnp, name), type)
    }
    tried = {*catalogue.CALLS, *catalogue.ALIASES, *catalogue.EXCLUDED}
    assert not (missing := public - tried), f"not in tests/numpy/catalogue/: {sorted(missing)}"
    stale = {name for name in tried if not hasattr(jnp, name)}
    assert not stale, f"no longer there: {sorted(stale)}"


def test_calls_have_names_of_their_own():
    names = [one.name for several in catalogue.CALLS.values() for one in several]
    assert not (twice := {name for name in names if names.count(name) > 1}), twice


@pytest.mark.parametrize(("name", "function"), catalogue.ALIASES.items())
def test_other_names_are_the_same_function(name, function):
    assert getattr(jnp, name) is getattr(jnp, function)


def disagreements(calls, all_values, results):
    """A line for each call that does not give what NumPy gives."""
    lines = []
    for one, values, result in zip(calls, all_values, results, strict=True):
        try:
            comparing.check_numpy(one, values, result)
        except AssertionError as error:
            lines.append(f"{one.name} of {values}:\n{str(error).strip()}")
    return lines


@pytest.mark.parametrize("function", catalogue.CALLS)
def test_gives_what_numpy_gives(function):
    calls = catalogue.CALLS[function]
    found = disagreements(calls, [one.values() for one in calls], list(map(outcome, calls)))
    assert not found, "\n\n".join(found)


KINDS = ("any", "whole", "alike", "special")
PLACES = [
    (chapter, place)
    for chapter, batches in BATCHES.items()
    for place, batch in enumerate(batches)
    if not batch.concrete
]


@pytest.mark.parametrize(("chapter", "place"), PLACES)
def test_gives_what_numpy_gives_of_other_values(chapter, place):
    batch = BATCHES[chapter][place]

    @settings(
        max_examples=12,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
    )
    @given(st.integers(1, 2**31), st.sampled_from(KINDS))
    def check(variant, kind):
        all_values = [random_values(one, variant, kind) for one in batch.calls]
        found = disagreements(batch.calls, all_values, batch.run(all_values))
        assert not found, "\n\n".join(found)

    check()


def random_values(one, variant, kind):
    """Values for a call: any; whole numbers and halves, so that many are ties; alike; odd ones."""
    values = one.values(variant)
    complexes = any(spec.dtype.kind == "c" for spec in one.specs())
    if kind == "any" or one.fragile or (complexes and kind == "special"):
        return values
    generator = np.random.default_rng(variant)
    changed = []
    for spec, value in zip(one.specs(), values, strict=True):
        if value.dtype.kind in "fcV":
            if kind == "whole":
                least = (np.ceil(spec.low * 2) if spec.dtype.kind != "c" else -9) / 2
                rounded = np.maximum(np.round(value.astype(complex) * 2).real / 2, least)
                value = np.minimum(rounded, spec.high).astype(value.dtype)
            elif kind == "special" and one.special:
                odd = generator.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], value.shape)
                where = generator.uniform(size=value.shape) < 0.4
                value = np.where(where, odd, value.astype(complex).real).astype(value.dtype)
        if kind == "alike" and value.size:
            value = np.full_like(value, value.flat[0])
        changed.append(value)
    return changed


@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_outside_jit_as_inside(chapter):
    """The first call of some functions, as it is: structure, types and values."""
    firsts = {one.function: one for one in reversed(catalogue.of_chapter(chapter))}
    # Each is compiled by itself. What they have in common shows in a few.
    for one in list(firsts.values())[::4]:
        if not one.concrete:
            found = catalogue_runner.described(
                catalogue_runner.attempt(one.on(jnp), one.values()), hlofront
            )
            comparing.check_jax(one, found, outcome(one))
