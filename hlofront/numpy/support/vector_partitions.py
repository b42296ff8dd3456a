"""Partitions of long float vectors on CPUs into smaller, equal and larger elements.

The kth smallest element is found by bisection. Cumulative sums count the elements of each part,
which keep their order, and a scatter moves them to their positions.
"""

import numpy as np

from hlofront.base.config import options
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert, stop_gradient

_IN_BOUNDS = GatherScatterMode.PROMISE_IN_BOUNDS
_formulas, _fences = options["hlofront_cpu_formulas"], options["hlofront_fences"]

# Shorter vectors are sorted, and so are longer ones, whose kth element cannot be found by
# bisection. Arrays of higher rank are sorted as well: they are not faster to partition, take longer
# to compile, and flat indices would gather lines across devices.
_MIN_SIZE = 131_072
_MOST = 1 << 26


def is_in_parts(aval: ShapedArray, axis: int) -> bool:
    """Return whether CPUs partition an array into parts, instead of sorting it along an axis."""
    if not _formulas.value or not _fences.value or aval.spec is not None:
        return False
    if has_symbolic_size(aval.shape) or not issubdtype(aval.dtype, np.floating):
        return False
    return aval.dtype.itemsize > 1 and _MIN_SIZE <= aval.size == aval.shape[axis] < _MOST


def in_parts(keys: Array, values: Array, kth: int) -> Array:
    """Return the values in the order of keys less than the kth, equal to it, and greater."""
    keys = stop_gradient(keys)
    (size,) = shape = typeof(keys).shape
    at = creation.full((1,), kth, int32)
    numbers = GatherDimensionNumbers((), (0,), (0,))
    pivot = gather(sort(keys, 0), at, numbers, (1,), mode=_IN_BOUNDS)
    is_less, is_equal = _compared(keys, broadcast_in_dim(pivot, shape, ()))
    lesser, equal = (cumsum(convert(mask, int32, False), 0) for mask in (is_less, is_equal))

    def all_of(counts: Array) -> Array:
        return broadcast_in_dim(index_in_dim(counts, size - 1, 0, keepdims=False), shape, ())

    # For each element, the number of elements up to and including it in the result.
    one = host_number(1, int32)
    up_to_equal = e.add(all_of(lesser), equal)
    index = e.add(creation.index_like(keys, 0), one)
    greater = e.sub(index, e.add(lesser, equal))
    up_to_greater = e.add(e.add(all_of(lesser), all_of(equal)), greater)
    count = c.select(is_less, lesser, c.select(is_equal, up_to_equal, up_to_greater))
    return scatter(
        creation.full_like(values, 0),
        reshape(e.sub(count, one), (size, 1)),
        values,
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
        mode=_IN_BOUNDS,
    )


def _compared(x: Array, pivot: Array) -> tuple[Array, Array]:
    """Return where x is less and where it is equal; NaNs are equal and greater than all numbers."""
    is_nan, of_nan = c.ne(x, x), c.ne(pivot, pivot)
    less = e.bitwise_or(c.lt(x, pivot), e.bitwise_and(of_nan, e.bitwise_not(is_nan)))
    return less, e.bitwise_or(c.eq(x, pivot), e.bitwise_and(of_nan, is_nan))
