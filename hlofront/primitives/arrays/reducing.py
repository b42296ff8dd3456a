"""Reductions over axes: reduce_sum, reduce_max, reduce_and, argmax and others."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.code_constants import with_constants
from hlofront.base.dtypes import check_user_dtype_supported, finfo, iinfo, issubdtype
from hlofront.base.elements import NumPyDType, exact_dtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, NumPyArray, Shape
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, spec_of, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, infer
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import (
    cotangent_sharding,
    named_sharding,
    permuted,
    requested,
    with_batch_axis,
)
from hlofront.core.symbolic_zeros import Cotangents, UndefinedPrimal
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    expand_dims,
    reshape,
    squeeze_p,
    transpose,
)
from hlofront.primitives.arrays.tiling import tile_p
from hlofront.primitives.elementwise.compare import eq
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import div, mul
from hlofront.primitives.elementwise.families import ANY, NUMBER, Kinds, check_dtype
from hlofront.primitives.rules.batching import shifted
from hlofront.primitives.rules.derivatives import (
    check_sum_allowed,
    derivative_from_result,
    linear,
    no_derivative,
)
from hlofront.primitives.sharding.resharding import bind_reshard


def check_axes(axes: Sequence[int], aval: ShapedArray, error: type[Exception] = ValueError) -> None:
    """Raise ValueError for repeated axes, and `error` for axes outside [0, aval.ndim)."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < aval.ndim for axis in axes):
        raise error(
            f"reduction axes {axes} contains out-of-bounds indices for {aval}: expected axes from "
            f"0 to {aval.ndim - 1}. Only the functions of hlofront.numpy accept negative axes."
        )


def without_axes(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without the sizes of some axes."""
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def canonical_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return axes as a tuple of Python integers, so that equal axes are equal parameters."""
    if isinstance(axes, tuple):
        for axis in axes:
            if type(axis) is not int:
                break
        else:
            return axes
    return tuple(map(operator.index, axes))


def _reduced(operand: ArrayLike, axes: Sequence[int]) -> Array:
    primitive: Any = "$primitive"
    return process(primitive, (operand,), {"axes": canonical_axes(axes)})


def _reduction(name: str, kinds: Kinds) -> tuple[Primitive, Callable[..., Array]]:
    """Define a reduction over axes; return its primitive and the function that binds it."""
    primitive = Primitive(name)

    def rule(operand: ShapedArray, *, axes: tuple[int, ...], **_: object) -> ShapedArray:
        check_dtype(name, operand.dtype, kinds)
        check_axes(axes, operand)
        return operand.update(shape=without_axes(operand.shape, axes))

    rule.__name__ = f"{name}_infer"
    infer(primitive)(rule)

    function = with_constants(_reduced, primitive=primitive)
    function.__name__ = function.__qualname__ = name
    return primitive, function


def _logical_reduction(name: str) -> tuple[Primitive, Callable[..., Array]]:
    primitive = Primitive(name)

    def rule(operand: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        if operand.dtype != np.bool_ and not issubdtype(operand.dtype, np.integer):
            raise TypeError(
                f"logical reduction requires operand dtype bool or int, got {operand.dtype}. "
                f"For {name}, compare first: x != 0."
            )
        # AxisError is both a ValueError and an IndexError; JAX raises one or the other.
        check_axes(axes, operand, np.exceptions.AxisError)
        return ShapedArray(without_axes(operand.shape, axes), operand.dtype)

    rule.__name__ = f"{name}_infer"
    infer(primitive)(rule)

    function = with_constants(_reduced, primitive=primitive)
    function.__name__ = function.__qualname__ = name
    return primitive, function


reduce_sum_p = _reduction("reduce_sum", NUMBER)[0]


def _bind_sum(operand: ArrayLike, axes: tuple[int, ...], sharding: object = None) -> Array:
    check_sum_allowed(operand, axes)
    return process(reduce_sum_p, (operand,), {"axes": axes, "out_sharding": sharding})


@boundary
def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Sum an array over some axes, in the operand's dtype.

    Args:
      operand: an array of numbers.
      axes: the axes to sum over, as nonnegative integers; without axes the result is the operand.
      out_sharding: the sharding of the result, which also says along which mesh axes it stays
        unreduced; None for the split of the operand.

    Raises:
      TypeError: for booleans.
      ValueError: if an axis is out of range or repeated; for float16 and bfloat16 if the option
        jax_allow_f16_reductions is off, unless all axes have size 1.

    Example:
      >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (1,))
      Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        out_sharding = requested("reduce_sum", out_sharding)
    return _bind_sum(operand, canonical_axes(axes), out_sharding)


def _extremum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    primitive: Any = "$primitive"
    name: Any = "$name"
    params: dict[str, object] = {"axes": canonical_axes(axes)}
    sharding = None if out_sharding is None else requested(name, out_sharding)
    # Without a request there is no such parameter, as in JAX, which has it since 0.12.
    if sharding is not None:
        params["out_sharding"] = sharding
    return process(primitive, (operand,), params)


def _extreme_reduction(name: str) -> tuple[Primitive, Callable[..., Array]]:
    """Define the maximum or minimum over axes; return its primitive and its function."""
    primitive = _reduction(name, ANY)[0]

    function = with_constants(_extremum, primitive=primitive, name=name)
    function.__name__ = function.__qualname__ = name
    return primitive, function


reduce_prod_p, reduce_prod = _reduction("reduce_prod", NUMBER)
reduce_max_p, reduce_max = _extreme_reduction("reduce_max")
reduce_min_p, reduce_min = _extreme_reduction("reduce_min")
reduce_and_p, reduce_and = _logical_reduction("reduce_and")
reduce_or_p, reduce_or = _logical_reduction("reduce_or")
reduce_xor_p, reduce_xor = _logical_reduction("reduce_xor")

reduce_prod.__doc__ = """The product over some axes, in the operand's dtype; 1 over no elements.

Args:
  operand: an array of numbers.
  axes: which axes to fold away, as non-negative integers.

Raises:
  TypeError: for booleans.
  ValueError: if an axis is out of range or given twice.
"""
for _function, _which, _kind, _empty in (
    (reduce_max, "greatest", "max", "-inf, the least integer or False"),
    (reduce_min, "least", "min", "inf, the greatest integer or True"),
):
    _function.__doc__ = f"""The {_which} element over some axes; {_empty} over no elements.

    A NaN makes its result NaN. Complex numbers are ordered by their real parts, then by their
    imaginary ones.

    Args:
      operand: an array.
      axes: which axes to fold away, as non-negative integers.
      out_sharding: how the result is split over a mesh; with `unreduced` and the kind
        `jax.sharding.UnreducedKind.{_kind}`, along which axes of the mesh each device keeps the
        {_which} of its part. None if it is split as the operand.

    Raises:
      ShardingTypeError: if `out_sharding` is of another kind, or unreduced along axes that split
        none of those that are folded away.
      ValueError: if an axis is out of range or given twice, and for derivatives of a result that is
        unreduced.
    """
for _function, _which, _empty in (
    (reduce_and, "conjunction", "True or all bits set"),
    (reduce_or, "disjunction", "False or 0"),
    (reduce_xor, "parity", "False or 0"),
):
    _function.__doc__ = f"""The {_which} over some axes, bit by bit for integers.

    Over no elements it is {_empty}.

    Args:
      operand: an array of booleans or integers.
      axes: which axes to fold away, as non-negative integers.

    Raises:
      TypeError: for other dtypes.
      ValueError: if an axis is out of range or given twice.
    """


# ---- the identities of reductions ----------------------------------------------------------------


def least_value(dtype: NumPyDType) -> NumPyArray:
    """Return the identity of max, a 0-d array: -inf, or the dtype's least if it has none."""
    return _extreme(dtype, -1)


def greatest_value(dtype: NumPyDType) -> NumPyArray:
    """Return the identity of min, a 0-d array: inf, or the dtype's greatest if it has none."""
    return _extreme(dtype, 1)


def _extreme(dtype: NumPyDType, sign: int) -> NumPyArray:
    if dtype == np.bool_:
        return np.array(sign > 0)
    if issubdtype(dtype, np.integer):
        limits = iinfo(dtype)
        return exact_dtype(np.array(limits.max if sign > 0 else limits.min, dtype))
    infinity: NumPyArray = np.array(sign * np.inf, dtype)
    part = np.real(infinity) if issubdtype(dtype, np.complexfloating) else infinity
    if np.isinf(part.astype(np.float64)):
        return exact_dtype(infinity)
    limits = finfo(dtype)  # float8_e4m3fn and some other dtypes have no infinity
    return exact_dtype(np.array(limits.max if sign > 0 else limits.min, dtype))


# ---- the indices of extreme elements -------------------------------------------------------------

argmin_p = Primitive("argmin")
argmax_p = Primitive("argmax")


@boundary
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the least element along an axis: the first NaN, or the first minimum.

    Args:
      operand: an array of real numbers or booleans.
      axis: the axis that is reduced, not negative.
      index_dtype: the integer dtype of the result.

    Raises:
      TypeError: if `index_dtype` is not an integer dtype, or the operand is complex.
      ValueError: if the axis is out of range or has no elements.
    """
    return _bind_index(argmin_p, operand, axis, index_dtype)


@boundary
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the index of the greatest element along an axis: the first NaN, or the first maximum.

    Args:
      operand: an array of real numbers or booleans.
      axis: the axis that is reduced, not negative.
      index_dtype: the integer dtype of the result.

    Raises:
      TypeError: if `index_dtype` is not an integer dtype, or the operand is complex.
      ValueError: if the axis is out of range or has no elements.

    Example:
      >>> lax.argmax(jnp.array([[1, 5, 5], [9, 2, 3]]), axis=1, index_dtype=jnp.int32)
      Array([1, 0], dtype=int32)
    """
    return _bind_index(argmax_p, operand, axis, index_dtype)


def _bind_index(
    primitive: Primitive, operand: ArrayLike, axis: int, index_dtype: DTypeLike
) -> Array:
    dtype = check_user_dtype_supported(index_dtype, primitive.name)
    params = {"axes": (operator.index(axis),), "index_dtype": dtype}
    return process(primitive, (operand,), params)


@infer(argmin_p)
def _(operand: ShapedArray, *, axes: tuple[int, ...], index_dtype: DType) -> ShapedArray:
    return _infer_index("argmin", operand, axes, index_dtype)


@infer(argmax_p)
def _(operand: ShapedArray, *, axes: tuple[int, ...], index_dtype: DType) -> ShapedArray:
    return _infer_index("argmax", operand, axes, index_dtype)


def _infer_index(
    name: str, operand: ShapedArray, axes: tuple[int, ...], index_dtype: DType
) -> ShapedArray:
    (axis,) = axes
    if not issubdtype(index_dtype, np.integer):
        raise TypeError(f"index_dtype must be an integer type, but got {index_dtype}")
    if not 0 <= axis < operand.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {operand.shape} of {name}")
    if operand.shape[axis] == 0:
        raise ValueError(
            f"argmin and argmax require non-empty reduced dimension. "
            f"operand.shape={operand.shape} axis={axis}"
        )
    if issubdtype(operand.dtype, np.complexfloating):
        raise TypeError(
            f"{name} does not accept dtype {operand.dtype}: complex numbers have no order. "
            "Search their real or imaginary parts, or their absolute values."
        )
    return ShapedArray(without_axes(operand.shape, axes), index_dtype)


# ---- derivatives ---------------------------------------------------------------------------------

linear(reduce_sum_p)
no_derivative(reduce_and_p, reduce_or_p, reduce_xor_p, argmin_p, argmax_p)


@rules.transpose(reduce_sum_p)
def _(
    cotangent: ArrayLike, operand: UndefinedPrimal, *, axes: tuple[int, ...], out_sharding: object
) -> Cotangents:
    if not axes:
        return [cotangent]
    shape = operand.aval.shape
    remaining = tuple([axis for axis in range(len(shape)) if axis not in axes])
    operand_sharding = cotangent_sharding(operand.aval, cotangent)
    return [broadcast_in_dim(cotangent, shape, remaining, out_sharding=operand_sharding)]


@rules.transpose(broadcast_in_dim_p)
def _(
    cotangent: ArrayLike,
    operand: UndefinedPrimal,
    *,
    shape: Shape,
    broadcast_dimensions: tuple[int, ...],
    sharding: object,
) -> Cotangents:
    operand_shape = operand.aval.shape
    remaining: list[int] = []
    repeated: list[int] = []
    for position, (size, axis) in enumerate(zip(operand_shape, broadcast_dimensions, strict=True)):
        if size == shape[axis]:
            remaining.append(axis)
        else:
            repeated.append(position)
    summed = tuple([axis for axis in range(len(shape)) if axis not in remaining])
    if all(shape[axis] == 1 for axis in summed):
        # The broadcast only inserted axes of size one.
        total = process(squeeze_p, (cotangent,), {"dimensions": summed}) if summed else cotangent
    else:
        unrepeated = [
            position for position in range(len(operand_shape)) if position not in repeated
        ]
        order = sorted(range(len(unrepeated)), key=remaining.__getitem__)
        operand_sharding = cotangent_sharding(operand.aval, cotangent)
        total = _bind_sum(
            cotangent, summed, permuted(operand_sharding, [unrepeated[i] for i in order])
        )
    in_order = sorted(remaining)
    if remaining != in_order:
        total = transpose(total, [in_order.index(axis) for axis in remaining])
    return [expand_dims(total, repeated) if repeated else total]


@rules.transpose(tile_p)
def _(cotangent: ArrayLike, operand: UndefinedPrimal, *, reps: tuple[int, ...]) -> Cotangents:
    shape = operand.aval.shape
    # Split each tiled axis in two: the copies, and the elements of each copy.
    split: list[int] = []
    copies: list[int] = []
    axes: list[int] = []
    for axis, (size, times) in enumerate(zip(shape, reps, strict=True)):
        if times != 1:
            copies.append(len(split))
            split.append(times)
            axes.append(operand.aval.ndim)
        split.append(size)
        axes.append(axis)
    if not copies:
        return [cotangent]
    sharding = permuted(cotangent_sharding(operand.aval, cotangent), axes)
    return [_bind_sum(reshape(cotangent, split, out_sharding=sharding), tuple(copies))]


def _check_derivative(spec: PartitionSpec) -> None:
    """Raise ValueError if an extreme is unreduced: devices' extremes of parts have no tangents."""
    if spec.unreduced:
        raise ValueError(
            "the maximum or minimum along unreduced axes has no derivative, as a device does not "
            f"know whether that of its part is that of all: got out_sharding={spec}. Reduce along "
            "these axes, too, before what is differentiated"
        )


def _extreme_tangent(
    tangent: ArrayLike,
    result: ArrayLike,
    operand: ArrayLike,
    *,
    axes: tuple[int, ...],
    out_sharding: NamedSharding | None = None,
) -> Array:
    """Return the tangent of a maximum or minimum: the mean over all elements that equal it."""
    shape = typeof(operand).shape
    if out_sharding is not None:
        _check_derivative(out_sharding.spec)
        spec = spec_of(typeof(operand))
        entries = [entry for axis, entry in enumerate(spec.partitions) if axis not in axes]
        natural = named_sharding(out_sharding.mesh, PartitionSpec(*entries))
        mean = _extreme_tangent(tangent, bind_reshard(result, natural), operand, axes=axes)
        return bind_reshard(mean, out_sharding)
    if typeof(result).shape:
        keepdims_shape = [1 if axis in axes else size for axis, size in enumerate(shape)]
        result = reshape(result, keepdims_shape)
    selected = convert(eq(operand, result), typeof(tangent).dtype, False)
    return div(_bind_sum(mul(tangent, selected), axes), _bind_sum(selected, axes))


derivative_from_result(reduce_max_p, _extreme_tangent)
derivative_from_result(reduce_min_p, _extreme_tangent)


# ---- batches -------------------------------------------------------------------------------------


def batch_reduction(primitive: Primitive) -> None:
    """Register the batch rule of a primitive that reduces its operand over its parameter `axes`."""

    def rule(
        values: ArrayLikes, batch_axes: Sequence[int], /, *, axes: tuple[int, ...], **params: Any
    ) -> BatchResult:
        (axis,) = batch_axes
        axes = shifted(axes, axis)
        position = axis - sum(i < axis for i in axes)
        if params.get("out_sharding") is not None:
            batched_sharding = with_batch_axis(params["out_sharding"], position, values[0], axis)
            params = {**params, "out_sharding": batched_sharding}
        return process(primitive, tuple(values), {"axes": axes, **params}), position

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


for _primitive in (
    reduce_sum_p,
    reduce_prod_p,
    reduce_max_p,
    reduce_min_p,
    reduce_and_p,
    reduce_or_p,
    reduce_xor_p,
    argmin_p,
    argmax_p,
):
    batch_reduction(_primitive)
