"""The search that debug_nans and find_nan share: the elements that are NaN or infinite."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import NumPyArray
from hlofront.runtime.checks.program_walk import Context, Operand, Outcome, ProgramWalk


def nonfinite(x: object) -> NumPyArray | None:
    """Return an array as a NumPy array if any of its elements is NaN or infinite, else None."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return np.asarray(x) if isinstance(x, float | complex) and not np.isfinite(x) else None
    if isinstance(dtype, ExtendedDType) or not issubdtype(dtype, np.inexact):
        return None
    array = np.asarray(x)
    # The sum is finite only if all elements are, and needs no memory.
    with np.errstate(all="ignore"):
        total = array.sum()
    if np.isfinite(total) or bool(np.isfinite(array).all()):
        return None
    return array


class NanSearch(ProgramWalk[Operand, Outcome, Context]):
    """A search for NaNs or infinities, which descends into the programs inside equations.

    Args:
      kinds: the bad values: "nan", "inf", or both.
    """

    __slots__ = ("kinds",)

    def __init__(self, kinds: Sequence[str]):
        self.kinds = tuple(kinds)

    def bad_elements(self, array: NumPyArray) -> NumPyArray | np.bool_:
        """Return the boolean mask of an array's bad elements."""
        if len(self.kinds) == 2:
            return ~np.isfinite(array)
        return np.isnan(array) if self.kinds == ("nan",) else np.isinf(array)

    def kind_of(self, array: NumPyArray) -> str:
        """Return "nan" or "inf", the kind of the bad elements that an array has."""
        return "nan" if "nan" in self.kinds and np.isnan(array).any() else "inf"
