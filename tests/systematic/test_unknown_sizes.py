"""vmap of each sample over an unknown number of examples: exported, and called for a number.

StableHLO has forms for sizes that are not known of all operations but one: batched filters of
convolutions are groups, whose number is an attribute.
"""

import re

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront import export
from hlofront.errors import InconclusiveDimensionOperation
from tests.systematic import batching, trials
from tests.systematic.trials import AT_ONCE

SAMPLES = trials.load()
CHECKS = [export.DisabledSafetyCheck.custom_call("ALL")]
# Functions of the process that exports cannot be called in others; loops that call them for one
# example after another have as many copies of the call as there are examples.
REFUSED = {
    "convolving": r"conv_general_dilated has no StableHLO form .* of (feature|batch)_group_count=",
    "callbacks": "serialization of host_callbacks|'b' cannot be interpreted as an integer",
}


def exported_for_any_number(stacks, x64):
    """Export vmap of a sample for an unknown number of examples."""
    (number,) = export.symbolic_shape("b")
    specs = [
        hlofront.ShapeDtypeStruct((number, *stack.shape[1:]), stack.dtype)
        for stack in stacks.stacks
    ]
    with trials.quiet(), hlofront.enable_x64(x64):
        mapped = hlofront.jit(hlofront.vmap(stacks.call))
        return export.export(mapped, platforms=["cpu"], disabled_checks=CHECKS)(*specs)


def programs(file):
    """Yield each sample of a file with its stacks and its export, if it has one."""
    for place in batching.chosen(SAMPLES[file]):
        sample = SAMPLES[file][place]
        if "vmap" in sample.refused:
            continue
        stacks = batching.Stacks(sample, hlofront, False)
        try:
            yield sample, stacks, exported_for_any_number(stacks, sample.needs_x64())
        except (InconclusiveDimensionOperation, NotImplementedError) as error:
            assert file in REFUSED, sample
            assert re.search(REFUSED[file], str(error)), sample


@pytest.mark.slow
@pytest.mark.parametrize("file", SAMPLES)
def test_samples_over_an_unknown_number_of_examples(file):
    first = {}
    for sample, stacks, exported in programs(file):
        assert all(str(aval.shape[0]) == "b" for aval in exported.out_avals), sample
        # Compiling takes long: one of each function and kind of numbers.
        first.setdefault((sample.function, sample.needs_x64()), (sample, stacks, exported))
    for x64 in (False, True):
        chosen = [each for (_, wide), each in first.items() if wide is x64]
        for start in range(0, len(chosen), AT_ONCE):
            check_values(chosen[start : start + AT_ONCE], x64)


def check_values(chosen, x64):
    """Compare calls of exports with vmap of the samples."""
    arguments = [stacks.stacks for _, stacks, _ in chosen]
    calls = [exported.call for *_, exported in chosen]
    mapped = [hlofront.vmap(stacks.call) for _, stacks, _ in chosen]
    results, expected = (
        trials.Together(functions, x64, hlofront)(arguments) for functions in (calls, mapped)
    )
    for (sample, *_), one, other in zip(chosen, results, expected, strict=True):
        assert not isinstance(one, Exception), (sample, one)
        for (_, dtype, _, x), (_, other_dtype, _, y) in zip(
            trials.describe(one, hlofront), trials.describe(other, hlofront), strict=True
        ):
            assert dtype == other_dtype, sample
            assert_close(x, y, sample)


def assert_close(x, y, sample):
    assert x.shape == y.shape, sample
    if not hlofront.dtypes.issubdtype(x.dtype, np.inexact):
        np.testing.assert_array_equal(x, y, err_msg=str(sample))
        return
    precision = 256 * float(ml_dtypes.finfo(x.dtype).eps)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.abs(y[np.isfinite(y)])
    largest = max(1.0, finite.max(initial=0))
    np.testing.assert_allclose(
        x, y, rtol=precision, atol=precision * largest, equal_nan=True, err_msg=str(sample)
    )
