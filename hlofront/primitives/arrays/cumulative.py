"""Primitives of cumulative reductions along an axis, such as cumsum; associative_scan."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.code_constants import with_constants
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, JvpResult, infer
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.symbolic_zeros import Cotangents, Dual, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.reducing import least_value, reduce_prod_p
from hlofront.primitives.arrays.shaping import reshape, rev, squeeze
from hlofront.primitives.arrays.slicing import concatenate, pad, slice_in_dim, with_entry
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import strong
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_or,
    exp,
    max_p,
    min_p,
    mul,
    mul_p,
    sub,
)
from hlofront.primitives.elementwise.families import COMPLEX, FLOAT, NUMBER, Kinds, check_dtype
from hlofront.primitives.rules.derivatives import add_tangents, instantiate, linear, zeros_of


def _cumulative(
    name: str, kinds: Kinds, what: str, numbers: str, result: str
) -> tuple[Primitive, Callable[..., Array]]:
    """Return a new primitive of a cumulative reduction, and its public function.

    Args:
      name: the name of both.
      kinds: the kinds of dtypes that it accepts.
      what: the start of the function's docstring, such as "The sum".
      numbers: the elements of an array in the example.
      result: the elements and the dtype of the result in the example, which folds from the end.
    """
    primitive = Primitive(name)

    def rule(operand: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_dtype(name, operand.dtype, kinds)
        if axis < 0:
            raise ValueError(
                f"XLA operations do not allow negative axes: {name} got axis {axis}; expected one "
                f"from 0 to {operand.ndim - 1}. hlofront.numpy counts from the end."
            )
        if axis >= operand.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {operand.shape}")
        return operand

    rule.__name__ = f"{name}_infer"
    infer(primitive)(rule)

    function = with_constants(_accumulated, primitive=primitive)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what} of the elements along an axis so far, each included.

    Args:
      operand: an array of numbers.
      axis: the axis, not negative.
      reverse: whether to start from the end.

    Raises:
      TypeError: if the dtype is not accepted.
      ValueError: if the axis is out of range.

    Example:
      >>> lax.{name}(jnp.array([{numbers}]), reverse=True)
      Array([{result})
    """
    return primitive, function


def _accumulated(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    primitive: Any = "$primitive"
    params = {"axis": operator.index(axis), "reverse": bool(reverse)}
    return process(primitive, (operand,), params)


cumsum_p, cumsum = _cumulative("cumsum", NUMBER, "The sum", "1, 3, 2", "6, 5, 2], dtype=int32")
cumprod_p, cumprod = _cumulative(
    "cumprod", NUMBER, "The product", "1, 3, 2", "6, 6, 2], dtype=int32"
)
cummax_p, cummax = _cumulative("cummax", NUMBER, "The greatest", "1, 3, 2", "3, 3, 2], dtype=int32")
cummin_p, cummin = _cumulative("cummin", NUMBER, "The least", "1, 3, 2", "1, 2, 2], dtype=int32")
cumlogsumexp_p, cumlogsumexp = _cumulative(
    "cumlogsumexp",
    FLOAT + COMPLEX,
    "The logarithm of the sum of the exponentials",
    "0.0, 0.0, 1000.0",
    "1000., 1000., 1000.], dtype=float32",
)


@boundary
def associative_scan(
    fn: Callable[..., PyTree], elems: PyTree, reverse: bool = False, axis: int = 0
) -> PyTree:
    """Return all prefix sums along an axis by an associative function, in logarithmic depth.

    The algorithm is that of Blelloch, "Prefix Sums and Their Applications" (1990): neighbors are
    combined, the sequence of half the length is scanned, and its elements are combined with the
    others.

    Args:
      fn: a function of two trees like `elems`, whose axis may have any size. It combines elements
        pairwise, returns such a tree, and is associative: `fn(fn(a, b), c)` is `fn(a, fn(b, c))`.
      elems: an array, or a tree of arrays of equal size along the axis.
      reverse: whether to start from the end.
      axis: the axis; negative ones count from the end of each array's axes.

    Returns:
      A tree like `elems`: at index i the combination of all elements up to i.

    Raises:
      TypeError: if `fn` is not callable.
      ValueError: if sizes along the axis differ, or an array has no such axis.

    Example:
      >>> lax.associative_scan(jnp.maximum, jnp.array([3, 1, 4, 1, 5]))
      Array([3, 3, 4, 4, 5], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, structure = tree.tree_flatten(elems)
    if not leaves:
        raise ValueError("lax.associative_scan requires at least one array, and elems has none.")
    # JAX checks shapes first, also those of NumPy arrays whose dtypes are refused later.
    shapes: list[Shape] = [getattr(x, "shape", ()) or typeof(x).shape for x in leaves]
    axes = [canonical_axis(axis, len(shape)) for shape in shapes]
    if len(set(axes)) > 1:
        # A negative axis would refer to different axes in arrays of different ranks.
        raise ValueError(
            f"Array inputs to associative_scan must have the axis {axis} in one place, got axes "
            f"{axes}"
        )
    axis = axes[0]
    if any(shape[axis] != shapes[0][axis] for shape in shapes):
        raise ValueError(
            f"Array inputs to associative_scan must have the same first dimension. (saw: {shapes})"
        )
    if reverse:
        leaves = [rev(leaf, (axis,)) for leaf in leaves]

    def combine(a: ArrayLikes, b: ArrayLikes) -> list[ArrayLike]:
        result = fn(tree.tree_unflatten(structure, a), tree.tree_unflatten(structure, b))
        results, result_structure = tree.tree_flatten(result)
        if result_structure != structure:
            raise ValueError(
                "lax.associative_scan: fn must return a tree like its arguments, "
                f"{structure}; it returned {result_structure}"
            )
        return results

    scanned = _scan(combine, leaves, axis)
    if reverse:
        scanned = [rev(leaf, (axis,)) for leaf in scanned]
    return tree.tree_unflatten(structure, scanned)


def _scan(combine: Callable[..., list[ArrayLike]], elems: ArrayLikes, axis: int) -> list[ArrayLike]:
    size = typeof(elems[0]).shape[axis]
    if size < 2:
        return list(elems)
    pairs = combine(
        [slice_in_dim(x, 0, size - 1, stride=2, axis=axis) for x in elems],
        [slice_in_dim(x, 1, size, stride=2, axis=axis) for x in elems],
    )
    odd = _scan(combine, pairs, axis)
    # Elements at even indices, except the first, follow those at odd ones.
    last = typeof(odd[0]).shape[axis] - (size % 2 == 0)
    even = combine(
        [slice_in_dim(x, 0, last, axis=axis) for x in odd] if size % 2 == 0 else odd,
        [slice_in_dim(x, 2, size, stride=2, axis=axis) for x in elems],
    )
    even = [
        concatenate([slice_in_dim(x, 0, 1, axis=axis), y], axis)
        for x, y in zip(elems, even, strict=True)
    ]
    return [_interleave(x, y, axis) for x, y in zip(even, odd, strict=True)]


def _interleave(even: ArrayLike, odd: ArrayLike, axis: int) -> Array:
    """Return even[0], odd[0], even[1], ... along an axis: both are padded and then added."""
    aval = typeof(even)
    longer = aval.shape[axis] - typeof(odd).shape[axis]
    nothing = [(0, 0, 0)] * aval.ndim
    zero = scalar_of(0, aval.dtype)
    rows = ((0, 1 - longer, 1), (1, longer, 1))
    even, odd = (
        pad(x, zero, [*nothing[:axis], row, *nothing[axis + 1 :]])
        for x, row in zip((even, odd), rows, strict=True)
    )
    return (bitwise_or if aval.dtype == np.bool_ else add)(even, odd)


# ---- derivatives and batches ---------------------------------------------------------------------


@rules.transpose(cumsum_p)
def _(cotangent: ArrayLike, operand: Operand, *, axis: int, reverse: bool) -> Cotangents:
    return [process(cumsum_p, (cotangent,), {"axis": axis, "reverse": not reverse})]


linear(cumsum_p)


def _fold_derivative(primitive: Primitive, operation: Primitive, **params: object) -> None:
    """Register the jvp rule of a cumulative primitive: a scan of the jvp rule of its operation."""

    def combine(x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, ...]:
        (a, a_tangent), (b, b_tangent) = x, y
        return tuple(rules.jvp[operation]((a, b), (a_tangent, b_tangent), **params))

    def rule(primals: ArrayLikes, tangents: Tangents, *, axis: int, reverse: bool) -> JvpResult:
        return associative_scan(combine, (primals[0], tangents[0]), reverse, axis)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)


_fold_derivative(cumprod_p, mul_p, out_dtype=None)
_fold_derivative(cummax_p, max_p)
_fold_derivative(cummin_p, min_p)


@rules.jvp(cumlogsumexp_p)
def _(primals: ArrayLikes, tangents: Tangents, *, axis: int, reverse: bool) -> Dual:
    (x,), (tangent,) = primals, tangents
    aval = typeof(x)
    if aval.shape[axis] < 2:
        return x, tangent
    result = process(cumlogsumexp_p, (x,), {"axis": axis, "reverse": reverse})
    # Each step is the logarithm of a sum of two terms, the previous steps and the element. Its
    # tangent is the mean of their tangents, weighted by their shares of the sum.
    row = (-1, 1, 0) if reverse else (1, -1, 0)
    nothing = ((0, 0, 0),) * aval.ndim
    before = pad(result, least_value(aval.dtype)[()], with_entry(nothing, axis, row))
    zeros = zeros_of(aval)

    def share(part: ArrayLike) -> Array:
        # The difference of equal infinities would be NaN.
        return exp(select_n(eq(part, result), sub(part, result), zeros))

    def combine(x: Sequence[Array], y: Sequence[Array]) -> tuple[Array, Tangent]:
        (weight, total), (other_weight, other) = x, y
        return mul(weight, other_weight), add_tangents(mul(total, other_weight), other)

    steps = share(before), mul(instantiate(tangent), share(x))
    return strong(result), associative_scan(combine, steps, reverse, axis)[1]


def fold_by_halves(
    combine: Callable[..., ArrayLikes], operands: ArrayLikes, starts: ArrayLikes, axis: int
) -> list[ArrayLike]:
    """Reduce an axis of arrays by repeatedly combining its halves, which can be differentiated.

    Args:
      combine: an elementwise function of two sequences of arrays that returns such a sequence.
      operands: arrays of equal shape.
      starts: per operand the identity element of `combine`, a scalar.
      axis: the axis, which has at least one element; the results do not have it.
    """
    operands = list(operands)
    nothing = ((0, 0, 0),) * typeof(operands[0]).ndim
    while (size := typeof(operands[0]).shape[axis]) > 1:
        half = (size + 1) // 2
        # An odd size pads the second half with the identity.
        row = with_entry(nothing, axis, (-half, size % 2, 0))
        operands = combine(
            [slice_in_dim(x, 0, half, axis=axis) for x in operands],
            [
                pad(x, start, row) if size % 2 else slice_in_dim(x, half, size, axis=axis)
                for x, start in zip(operands, starts, strict=True)
            ],
        )
    return [squeeze(x, (axis,)) for x in operands]


def merge_axes(x: ArrayLike, axes: Sequence[int]) -> tuple[ArrayLike, int]:
    """Merge one or more axes of an array into one; return the result and the merged axis."""
    shape, axes = typeof(x).shape, sorted(axes)
    first, count = axes[0], len(axes)
    size = math.prod([shape[axis] for axis in axes])
    if axes == list(range(first, first + count)):
        return reshape(x, (*shape[:first], size, *shape[first + count :])), first
    other_axes = [axis for axis in range(len(shape)) if axis not in axes]
    return reshape(x, (*[shape[axis] for axis in other_axes], size), (*other_axes, *axes)), len(
        other_axes
    )


@rules.jvp(reduce_prod_p)
def _(primals: ArrayLikes, tangents: Tangents, *, axes: tuple[int, ...]) -> Dual:
    (x,), (tangent,) = primals, tangents
    if not axes:
        return x, tangent
    merged, axis = merge_axes(x, axes)
    if not typeof(merged).shape[axis]:
        result = process(reduce_prod_p, (x,), {"axes": axes})
        return result, Zero.of(result)
    tangent, _ = merge_axes(instantiate(tangent), axes)

    def combine(a: Sequence[Any], b: Sequence[Any]) -> Sequence[Any]:
        return rules.jvp[mul_p]((a[0], b[0]), (a[1], b[1]), out_dtype=None)

    starts = [scalar_of(start, typeof(x).dtype) for start in (1, 0)]
    product, moved = fold_by_halves(combine, (merged, tangent), starts, axis)
    return product, moved


def _batch_cumulative(primitive: Primitive) -> None:
    def rule(
        values: ArrayLikes, axes: Sequence[int], /, *, axis: int, reverse: bool
    ) -> BatchResult:
        (batch_axis,) = axes
        params = {"axis": axis + (axis >= batch_axis), "reverse": reverse}
        return process(primitive, tuple(values), params), batch_axis

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


for _primitive in (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p):
    _batch_cumulative(_primitive)
