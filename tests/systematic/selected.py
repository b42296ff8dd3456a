"""The samples of this run of the tests: all, or those of a part. See tests/support/parts.py."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from tests.support import parts
from tests.systematic import trials

SAMPLES = trials.load()
# The file of a sample, and its place there.
Pair = tuple[str, int]


def family(dtype: Any) -> str:
    """Return what a dtype has in common with others: floats, int, ... without their sizes."""
    return "narrow" if dtype.itemsize == 1 or dtype.kind == "V" else dtype.kind


def _strata(pair: Pair) -> list[Hashable]:
    sample = SAMPLES[pair[0]][pair[1]]
    dtypes = [getattr(operand, "dtype", None) for operand in sample.operands]
    families = {family(dtype) for dtype in dtypes if isinstance(dtype, np.dtype)}
    # A function of several kinds, such as lax.fft, has samples named for each.
    kinds = {sample.function, _name(pair).partition("(")[0]}
    return [
        *((kind, "c" in families) for kind in kinds),
        *((pair[0], name) for name in families),
    ]


def _name(pair: Pair) -> str:
    return SAMPLES[pair[0]][pair[1]].name


# The cases of tests that found a planted fault: "slicing-pad(float32[3])" stands for a sample.
_CASES = {test.partition("[")[2][:-1] for test in parts.FOUND_A_FAULT}
_pairs = [(file, place) for file, samples in SAMPLES.items() for place in range(len(samples))]
# `./check` has the first sample of each function and each kind of it, the first ones with complex
# numbers, and the first one of each family of dtypes in a file.
PAIRS = parts.select(
    _pairs,
    parts.SAMPLES,
    _name,
    _strata,
    is_first_always=lambda pair: f"{pair[0]}-{_name(pair)}" in _CASES,
)
# The places of the samples of each file.
SELECTED = {file: [place for name, place in PAIRS if name == file] for file in SAMPLES}
