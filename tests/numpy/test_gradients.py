"""Derivatives of the catalogue's functions, held against differences; vmap of each is a loop."""

import functools

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.test_util import check_grads
from tests.numpy import catalogue, catalogue_part, catalogue_runner
from tests.support.cases import Spec, replaced
from tests.support.closeness import assert_within
from tests.systematic import trials
from tests.systematic.differentiating import moves

catalogue.load()
# How many calls are differentiated as one program.
AT_ONCE = 25
# How many calls of each function are: those that only move elements are all alike.
MOST = {"arranging": 1, "making": 1}


def shape_of(one):
    """Equal for calls that differ in dtypes and values alone."""
    return (one.function, repr(replaced((one.operands, one.keywords), _kind)))


def _kind(spec):
    return "number" if moves(spec.dtype) else spec.dtype.name


def wide(spec):
    """The same spec with floats of 64 bits, so that differences tell much."""
    if not moves(spec.dtype):
        return spec
    dtype = np.complex128 if spec.dtype.kind == "c" else np.float64
    return Spec(dtype, spec.shape, spec.low, spec.high)


def widened(one):
    operands, keywords = replaced((one.operands, one.keywords), wide)
    return catalogue_runner.changed(one, operands=operands, keywords=keywords)


def distinct(calls, key):
    return list({key(one): one for one in reversed(calls)}.values())[::-1]


@functools.cache
def differentiable(chapter):
    """Calls with floats that give floats, of each function, in 64 bits."""
    found = []
    chosen = {}
    for one in catalogue_part.of_part(chapter):
        if one.concrete or one.not_smooth or not any(moves(spec.dtype) for spec in one.specs()):
            continue
        if any(spec.dtype.itemsize == 2 for spec in one.specs()) or one.other_kind:
            continue
        if not all(np.prod(spec.shape) for spec in one.specs()):
            continue
        of_function = chosen.setdefault(one.function, {})
        key = shape_of(one)
        if key in of_function or len(of_function) == MOST.get(chapter, 2):
            continue
        wider = widened(one)
        with trials.quiet(), hlofront.enable_x64(True):
            results = hlofront.eval_shape(wider.on(jnp), *wider.values())
        if any(moves(leaf.dtype) for leaf in hlofront.tree_util.tree_leaves(results)):
            of_function[key] = wider
            found.append(wider)
    return found


def groups(chapter):
    calls = differentiable(chapter)
    return [calls[start : start + AT_ONCE] for start in range(0, len(calls), AT_ONCE)]


def inexact_results(one):
    """The call as a function of its specs, results without derivatives left out."""

    def function(*values):
        leaves = hlofront.tree_util.tree_leaves(one.on(jnp)(*values))
        return [leaf for leaf in leaves if moves(leaf.dtype)]

    return function


def check(calls):
    functions = [inexact_results(one) for one in calls]

    @functools.partial(hlofront.jit, compiler_options=trials.COMPILES_FAST)
    def together(all_values):
        return [function(*values) for function, values in zip(functions, all_values, strict=True)]

    with trials.quiet(), hlofront.enable_x64(True):
        check_grads(together, ([one.values() for one in calls],), order=1, atol=1e-4, rtol=1e-4)


CHAPTERS = [chapter for chapter in catalogue.CHAPTERS if chapter != "logic"]


@pytest.mark.each_part
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_derivatives_are_those_of_differences(chapter):
    wrong = []
    for calls in groups(chapter):
        try:
            check(calls)
        except AssertionError:
            # Of many at once, which ones?
            for one in calls:
                try:
                    check([one])
                except AssertionError as error:
                    wrong.append(f"{one.name}: {error}")
    assert not wrong, "\n\n".join(wrong)


# ---- vmap ----------------------------------------------------------------------------------------

SIZE = 3


@functools.cache
def mappable(chapter):
    """Two calls of each function, which differ in more than dtypes."""
    found = []
    chosen = {}
    for one in catalogue_part.of_part(chapter):
        of_function = chosen.setdefault(one.function, {})
        if one.concrete or one.not_batched or not one.specs() or one.needs_x64():
            continue
        if shape_of(one) not in of_function and len(of_function) < 2:
            of_function[shape_of(one)] = one
            found.append(one)
    return found


def all_mapped(one):
    return hlofront.vmap(one.on(jnp))


@pytest.mark.each_part
@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_vmap_is_a_loop(chapter):
    calls = mappable(chapter)
    wrong = []
    for start in range(0, len(calls), AT_ONCE):
        some = calls[start : start + AT_ONCE]
        turns = [[one.values(turn) for one in some] for turn in range(SIZE)]
        stacks = [
            [np.stack(values) for values in zip(*[turn[i] for turn in turns], strict=True)]
            for i in range(len(some))
        ]
        mapped = trials.Together([all_mapped(one) for one in some], False, hlofront)(stacks)
        looped = trials.Together([one.on(jnp) for one in some], False, hlofront)
        looped = [looped(turn) for turn in turns]
        for i, one in enumerate(some):
            try:
                compare(one, mapped[i], [turn[i] for turn in looped])
            except (AssertionError, ValueError) as error:
                wrong.append(f"{one.name}: {error}")
    assert not wrong, "\n\n".join(wrong)


def compare(one, mapped, looped):
    assert not isinstance(mapped, Exception), repr(mapped)[:500]
    found = trials.describe(mapped, hlofront)
    turns = [trials.describe(turn, hlofront) for turn in looped]
    for i, (_, dtype, weak, value) in enumerate(found):
        assert (dtype, weak) == turns[0][i][1:3], f"{dtype}, weak: {weak}; alone: {turns[0][i]}"
        assert_within(value, np.stack([turn[i][3] for turn in turns]), one.ulps or 60)


def test_sums_extremes_and_means_over_named_axes():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for name in ("sum", "max", "min", "mean"):
        function, wanted = getattr(jnp, name), getattr(np, name)
        both = hlofront.vmap(lambda row, f=function: f(row, axis=("i", 0)), axis_name="i")(x)
        np.testing.assert_allclose(both, [wanted(x)] * 2, rtol=1e-6)
        one = hlofront.vmap(lambda row, f=function: f(row, axis="i"), axis_name="i")(x)
        np.testing.assert_allclose(one, [wanted(x, axis=0)] * 2, rtol=1e-6)
    with pytest.raises(NameError):
        jnp.sum(x, axis="i")
