"""Replacements for CPUs, whose arrays are usually larger, in programs on arrays of any size."""

import contextlib
from collections.abc import Iterator

from hlofront.base.config import options
from hlofront.lowering.min_sizes import MIN_SIZES


@contextlib.contextmanager
def for_arrays_of_any_size() -> Iterator[None]:
    """Use the replacements in programs that are traced meanwhile."""
    before = {name: dict(kinds) for name, kinds in MIN_SIZES.items()}
    try:
        for kinds in MIN_SIZES.values():
            # Short lines are not cut into blocks of blocks.
            kinds.update({kind: 0 for kind in kinds if kind != "line of blocks"})
        with options["hlofront_cpu_formulas"](True):
            yield
    finally:
        for name, kinds in before.items():
            MIN_SIZES[name].update(kinds)
