"""Constants of consecutive integers, which become an iota instead of an argument."""

from typing import Any

import numpy as np

from hlofront.base.elements import NumPyArray
from hlofront.bridge import state
from hlofront.core.programs.digest import LARGE_CONSTANT_BYTES

# Larger arrays are not read from the device to inspect their elements.
_LARGEST_BYTES = 1 << 20


def first_of_counting(value: object) -> int | None:
    """Return the first element of a large constant whose elements are consecutive integers.

    XLA fuses an iota with the operations that read it, such as the mask of an attention, but does
    not know the elements of an argument.

    Returns:
      The first element; None if the constant is small, does not count, or cannot be read because it
      was donated or is split over devices.
    """
    array: Any = value
    if isinstance(value, state.ArrayImpl):
        if array.is_deleted() or not array.is_fully_replicated:
            return None
    elif not isinstance(value, np.ndarray):
        return None
    if (
        len(array.shape) != 1
        or not np.issubdtype(array.dtype, np.integer)
        or not LARGE_CONSTANT_BYTES < array.nbytes <= _LARGEST_BYTES
    ):
        return None
    elements: NumPyArray = np.asarray(array)
    first, last = int(elements[0]), int(elements[-1])
    counts = last - first == len(elements) - 1 and bool((np.diff(elements) == 1).all())
    return first if counts else None
