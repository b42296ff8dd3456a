"""Replacements of cumulative operations on CPUs: blocks of shifted slices, then doubling.

XLA combines all elements of a window before each element, one at a time, in blocks of 16 and again
for the totals of the blocks. Here lines are cut into blocks of 8. Each element is combined with
those before it in its block, by a loop of vector instructions over shifted slices; then with the
total of the preceding blocks, by the same operation on the totals of blocks. When few totals
remain, a loop combines each with the one at a distance of 1, 2, 4, ... before it, which is fast to
compile. Rounding errors are about as large as those of XLA's windows.
"""

import math
from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.elements import int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, NumPyArray
from hlofront.higher_order.control_flow.while_loop import while_loop
from hlofront.lowering.core.formulas import Formula, exp, log1p, where
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.reduce import one, zero
from hlofront.lowering.replacements import Candidate, Emit, computed_in, replaces, traced
from hlofront.primitives.arrays import cumulative as p
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice
from hlofront.primitives.arrays.reducing import greatest_value, least_value
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import index_in_dim, pad, slice_in_dim
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert

# Smaller arrays of lines of at most 16 elements keep XLA's operation, which is a single loop.
_LONGEST_OF_XLA = 16
# Arrays larger than _FEW are cut into blocks of at most _MAX_IN_BLOCK elements; smaller ones are
# combined by doubling.
_FEW = 16_384
_MAX_IN_BLOCK = 8


class _Monoid(NamedTuple):
    """A cumulative operation.

    Attributes:
      combine: the function that combines two arrays.
      identity: returns its identity for a dtype.
      is_cheap: whether `combine` is one instruction.
      is_of_complex: whether it combines complex numbers like XLA.
    """

    combine: Callable[[Array, Array], Array]
    identity: Callable[[NumPyDType], NumPyArray]
    is_cheap: bool = True
    is_of_complex: bool = False


def _log_add_exp(x: Array, y: Array) -> Array:
    """Return log(exp(x) + exp(y)) of real arrays without overflow."""
    difference = Formula(e.sub(x, y))
    result = Formula(e.max(x, y)) + log1p(exp(-abs(difference)))
    # The difference of equal infinities is NaN, like that of NaNs.
    is_nan = Formula(c.ne(difference.value, difference.value))
    return where(is_nan, Formula(e.add(x, y)), result).value


_MONOIDS = {
    p.cumsum_p: _Monoid(e.add, zero, is_of_complex=True),
    p.cumprod_p: _Monoid(e.mul, one, is_of_complex=True),
    p.cummax_p: _Monoid(e.max, least_value),
    p.cummin_p: _Monoid(e.min, greatest_value),
    p.cumlogsumexp_p: _Monoid(_log_add_exp, least_value, is_cheap=False),
}


@replaces(*_MONOIDS, sizes="cumsum", needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """By blocks whose totals are combined, or by doubling."""
    (aval,), params, monoid = equation.avals_in, equation.params, _MONOIDS[equation.primitive]
    axis: int = params["axis"]
    sign = -1 if params["reverse"] else 1
    length = aval.shape[axis]
    if is_complex(aval.dtype) and not monoid.is_of_complex:
        return None
    if length < 2 or (length <= _LONGEST_OF_XLA and aval.size < MIN_SIZES["cumsum"]["all"]):
        return None
    outer, inner = math.prod(aval.shape[:axis]), math.prod(aval.shape[axis + 1 :])

    def of_array(x: Array) -> Array:
        x = convert(x, computed_in(aval.dtype), False)
        lines = reshape(x, (outer, length, inner))
        return convert(reshape(_scanned(monoid, lines, sign), aval.shape), aval.dtype, False)

    return traced(of_array)


def _scanned(monoid: _Monoid, x: Array, sign: int) -> Array:
    """Combine each element along the second of three axes with those before it.

    Args:
      sign: 1 to start at the first element, -1 at the last one.
    """
    outer, length, inner = x.shape
    if x.size <= _FEW or (length <= _MAX_IN_BLOCK and not monoid.is_cheap):
        return _doubled(monoid, x, sign)
    if length <= _MAX_IN_BLOCK:
        return _in_blocks(monoid, x, 1, sign)
    identity = monoid.identity(x.dtype)
    size = math.ceil(length / math.ceil(length / _MAX_IN_BLOCK))
    blocks = math.ceil(length / size)
    if missing := blocks * size - length:
        (x,) = optimization_barrier((pad(x, identity, ((0, 0, 0), (0, missing, 0), (0, 0, 0))),))
    x = reshape(x, (outer, blocks, size, inner))
    if monoid.is_cheap:
        inside = _in_blocks(monoid, x, 2, sign)
    else:
        # Three combinations per element, where adjacent elements are in one vector.
        turned = reshape(transpose(x, (0, 2, 1, 3)), (outer, size, blocks * inner))
        turned = reshape(_doubled(monoid, turned, sign), (outer, size, blocks, inner))
        inside = transpose(turned, (0, 2, 1, 3))
    last = size - 1 if sign > 0 else 0
    (totals,) = optimization_barrier((index_in_dim(inside, last, 2, keepdims=False),))
    before = _moved(_scanned(monoid, totals, sign), identity, 1, sign)
    (before,) = optimization_barrier((before,))
    result = monoid.combine(broadcast_in_dim(before, inside.shape, (0, 1, 3)), inside)
    return slice_in_dim(reshape(result, (outer, blocks * size, inner)), 0, length, axis=1)


def _in_blocks(monoid: _Monoid, x: Array, axis: int, sign: int) -> Array:
    """Combine each element along an axis with those before it, by shifted slices."""
    identity, length = monoid.identity(x.dtype), x.shape[axis]
    result = x
    for distance in range(1, length):
        result = monoid.combine(_moved(x, identity, axis, sign * distance), result)
    return optimization_barrier((result,))[0]


def _doubled(monoid: _Monoid, x: Array, sign: int) -> Array:
    """Combine each element along the second axis with those before it, by doubling."""
    length, identity = x.shape[1], monoid.identity(x.dtype)
    ends = (length, 0) if sign > 0 else (0, length)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        distance, result = state
        padded = pad(result, identity, ((0, 0, 0), (*ends, 0), (0, 0, 0)))
        start = e.sub(np.int32(length), distance) if sign > 0 else distance
        moved = dynamic_slice(padded, (np.int32(0), start, np.int32(0)), x.shape)
        return e.mul(distance, np.int32(2)), monoid.combine(moved, result)

    first = full((), 1, int32)
    return while_loop(lambda state: c.lt(state[0], np.int32(length)), step, (first, x))[1]


def _moved(x: Array, identity: NumPyArray, axis: int, distance: int) -> Array:
    """Return an array shifted along an axis, filled up with the identity."""
    row = (distance, -distance, 0)
    return pad(x, identity, [row if i == axis else (0, 0, 0) for i in range(x.ndim)])
