"""Samples on arrays that are padded to a bucket: the padding reaches no element of a result.

Each sample is traced with one length symbolic: that of all axes of one size, or of a new axis that
it is mapped over. Its bounded program runs on operands whose padding is poison, and gives what the
sample gives without padding, or is refused.
"""

import numpy as np
import pytest

import hlofront
from hlofront import export
from hlofront.errors import InconclusiveDimensionOperation, PaddingError
from hlofront.runtime.buckets import bounding
from hlofront.runtime.buckets import program as _rules  # noqa: F401
from tests.systematic import batching, trials
from tests.systematic.test_unknown_sizes import assert_close
from tests.systematic.trials import AT_ONCE

SAMPLES = trials.load()
# By how much the padded arrays are longer.
MORE = 3
# What tracing with a symbolic size may raise: sizes among the parameters of a sample are known.
UNTRACED = (InconclusiveDimensionOperation, TypeError, ValueError, IndexError, AttributeError)


class Padded:
    """A sample with the axes of one size padded, or one that is mapped over a padded axis."""

    def __init__(self, sample, call, values, size, axes, mapped):
        self.sample, self.call, self.values, self.size = sample, call, values, size
        self.axes, self.mapped = axes, mapped
        (length,) = export.symbolic_shape("n", constraints=[f"n >= {size}", f"n <= {size + MORE}"])
        specs = [
            hlofront.ShapeDtypeStruct(
                [length if i in padded else n for i, n in enumerate(value.shape)], value.dtype
            )
            for value, padded in zip(values, axes, strict=True)
        ]
        self.program = hlofront.make_jaxpr(call)(*specs)

    def bounded(self, length, *values):
        return bounding.Bounded({"n": self.size + MORE}, {"n": length}).run(self.program, values)

    def poisoned(self):
        return [np.int32(self.size), *map(self._poisoned, self.values, self.axes)]

    def _poisoned(self, value, axes):
        value = np.asarray(value)
        if not axes:
            return value
        rows = [(0, MORE if i in axes else 0) for i in range(value.ndim)]
        kind = hlofront.numpy.result_type(value)
        poison = np.nan if hlofront.numpy.issubdtype(kind, np.inexact) else 99
        try:
            return np.pad(value, rows, constant_values=np.asarray(poison).astype(value.dtype))
        except (TypeError, ValueError):  # NumPy pads no keys, and some dtypes have no NaN.
            return np.pad(value, rows, mode="edge")


def ways(sample):
    """Yield a call, its values, a size, the axes of each that have it, and whether it is mapped."""
    values = sample.operand_values()
    call, values = trials.split(sample, values)
    values = list(map(np.asarray, values))
    for size in {n for value in values for n in value.shape if n > 1}:
        axes = [[i for i, n in enumerate(value.shape) if n == size] for value in values]
        yield call, values, size, axes, False
    if "vmap" not in sample.refused and values:
        stacks = batching.Stacks(sample, hlofront, False)
        mapped = list(map(np.asarray, stacks.stacks))
        yield hlofront.vmap(stacks.call), mapped, batching.SIZE, [[0]] * len(mapped), True


def cases(file):
    found, refused = [], {}
    for place in batching.chosen(SAMPLES[file]):
        sample = SAMPLES[file][place]
        with trials.quiet(), hlofront.enable_x64(sample.needs_x64()):
            for way in ways(sample):
                try:
                    padded = Padded(sample, *way)
                except (*UNTRACED, NotImplementedError):
                    continue
                try:
                    hlofront.make_jaxpr(padded.bounded)(*padded.poisoned())
                except PaddingError as error:
                    assert "is not possible in buckets" in str(error), sample
                    refused[sample.name] = str(error)
                    continue
                found.append(padded)
    return found, refused


def check(file, every):
    found, refused = cases(file)
    # Compiling takes long: one of each function and way.
    kinds = {(p.sample.function, p.sample.needs_x64(), p.mapped): p for p in reversed(found)}
    for x64 in (False, True):
        chosen = [p for p in (found if every else kinds.values()) if p.sample.needs_x64() is x64]
        for start in range(0, len(chosen), AT_ONCE):
            compare(chosen[start : start + AT_ONCE], x64)
    return found, refused


def compare(chosen, x64):
    got = trials.Together([p.bounded for p in chosen], x64, hlofront)(
        [p.poisoned() for p in chosen]
    )
    want = trials.Together([p.call for p in chosen], x64, hlofront)([p.values for p in chosen])
    for padded, one, other in zip(chosen, got, want, strict=True):
        assert not isinstance(one, Exception), (padded.sample, one)
        for x, y in zip(one, hlofront.tree.leaves(other), strict=True):
            if hlofront.dtypes.issubdtype(y.dtype, hlofront.dtypes.prng_key):
                x, y = map(hlofront.random.key_data, (x, y))
            x, y = np.asarray(x), np.asarray(y)
            assert_close(x[tuple(map(slice, y.shape))], y, padded.sample)


@pytest.mark.long
@pytest.mark.parametrize("file", SAMPLES)
def test_padding_reaches_no_result_of_a_sample(file):
    found, refused = check(file, every=False)
    assert found or refused
