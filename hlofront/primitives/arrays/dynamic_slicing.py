"""Primitives that read and update slices at computed start indices: dynamic_slice."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import default_dtype, iinfo, issubdtype
from hlofront.base.elements import NumPyDType, exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, SymbolicSize, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import as_size, canonical_axis, canonical_shape
from hlofront.core.symbolic_zeros import Cotangents, Dual, Operand, Tangents, UndefinedPrimal, Zero
from hlofront.core.trace import is_eager, process
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze_p
from hlofront.primitives.arrays.slicing import slices_of_first_axis, unstack, with_entry
from hlofront.primitives.elementwise.compare import lt_p, select_n_p
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import add_p
from hlofront.primitives.elementwise.families import check_same_dtypes
from hlofront.primitives.rules.derivatives import (
    aval_of_operand,
    instantiate,
    is_linear,
    linear_in_first,
    zeros_of,
)

dynamic_slice_p = Primitive("dynamic_slice")


@boundary
def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | ArrayLikes,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return the slice of an array of shape `slice_sizes` at start indices that may be traced.

    Start indices are clamped so that the slice lies within the array.

    Args:
      operand: the array.
      start_indices: one integer per axis: a sequence of scalars, or an array of one axis. All have
        the same dtype; Python integers have the default one.
      slice_sizes: the shape of the result.
      allow_negative_indices: whether negative starts count from the end of the axis, for all axes
        or per axis. False avoids that computation where indices cannot be negative.

    Raises:
      TypeError: if an index is not an integer scalar, or a size is out of range.
      ValueError: if there is not one index per axis.

    Example:
      >>> jax.jit(lambda x, i: lax.dynamic_slice(x, (i,), (3,)))(jnp.arange(8), 2)
      Array([2, 3, 4], dtype=int32)
    """
    indices = _dynamic_indices(operand, start_indices, allow_negative_indices)
    return process(
        dynamic_slice_p, (operand, *indices), {"slice_sizes": canonical_shape(slice_sizes)}
    )


def _dynamic_indices(
    operand: ArrayLike, start_indices: Any, allow_negative: bool | Sequence[bool]
) -> list[ArrayLike]:
    """Return one scalar start index per axis of the operand, with negative ones wrapped if allowed.

    Raises:
      TypeError: if the indices are not a sequence.
      ValueError: if they have more than one axis, or there is not one index per axis.
    """
    shape = typeof(operand).shape
    ndim = getattr(start_indices, "ndim", None)
    if ndim is None and issubclass(type(start_indices), Sequence):
        count = len(start_indices)
    elif ndim == 1:
        count = start_indices.shape[0]
    elif ndim:
        raise ValueError(f"Slice indices must be a 1D sequence, got {start_indices.shape}")
    else:
        raise TypeError(f"Slice indices must be a 1D sequence, got {start_indices!r}")
    if count != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({count} vs {shape})"
        )
    if ndim is not None and hasattr(start_indices, "aval"):
        start_indices = (
            unstack(start_indices) if is_eager() else slices_of_first_axis(start_indices)
        )
    indices: Sequence[Any] = start_indices
    if allow_negative is True or allow_negative is False:
        return [_from_start(i, n, allow_negative) for i, n in zip(indices, shape, strict=True)]
    return [
        _from_start(i, n, allowed)
        for i, n, allowed in zip(indices, shape, allow_negative, strict=True)
    ]


def _from_start(index: ArrayLike, size: int, allow_negative: bool) -> ArrayLike:
    """Return an index along an axis, with a negative one counted from the end if allowed."""
    type_ = type(index)
    if type_ is int:
        return _static(cast(int, index), default_dtype("i"), size, allow_negative)
    aval = typeof(index)
    dtype = aval.dtype
    if not hasattr(index, "aval") and not aval.shape and issubdtype(dtype, np.integer):
        return _static(int(cast(int, index)), dtype, size, allow_negative)
    if not allow_negative or not issubdtype(dtype, np.signedinteger):
        return index
    # If the size exceeds the range of the dtype, both the size and the sum wrap around.
    scalar_type = dtype.type
    negative = process(lt_p, (index, scalar_type(0)), {})
    if aval.weak_type:
        moved = convert_element_type(index, dtype)
    else:
        moved = index
    if isinstance(size, SymbolicSize):
        number = host_number(size, dtype)
    else:
        # Convert the size so that it wraps around in a narrow dtype.
        number = exact_dtype(np.asarray(size).astype(dtype)[()])
    moved = process(add_p, (moved, number), {})
    return process(select_n_p, (negative, index, moved), {})


def _static(index: int, dtype: NumPyDType, size: int, allow_negative: bool) -> ArrayLike:
    if index < 0:
        if not allow_negative:
            raise ValueError(
                f"Index {index} is out of bounds for dimension {size} if "
                "allow_negative_indices=False"
            )
        index += size
    try:
        return host_number(index, dtype)
    except OverflowError:
        # Indices beyond any array are clamped, which leaves the result unchanged.
        limits = iinfo(dtype)
        return host_number(min(max(index, limits.min), limits.max), dtype)


def _check_indices(name: str, what: str, indices: tuple[ShapedArray, ...]) -> None:
    dtypes = [index.dtype for index in indices]
    if dtypes and not (
        issubdtype(dtypes[0], np.integer) and all(dtype == dtypes[0] for dtype in dtypes)
    ):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: "
            f"{', '.join(map(str, dtypes))}"
        )
    if any(index.shape for index in indices):
        raise TypeError(f"{what} arguments to {name} must be scalars, got indices {tuple(indices)}")


@infer(dynamic_slice_p)
def _(operand: ShapedArray, *start_indices: ShapedArray, slice_sizes: Shape) -> ShapedArray:
    shape = operand.shape
    if len(slice_sizes) != len(shape):
        raise ValueError(
            "dynamic_slice slice_sizes must have length equal to the number of dimensions of the "
            f"operand, got slice_sizes {slice_sizes} for operand shape {shape}."
        )
    if any(size > whole for size, whole in zip(slice_sizes, shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {shape}."
        )
    if any(size < 0 for size in slice_sizes):
        raise TypeError(
            "slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
            f"{slice_sizes}."
        )
    _check_indices("dynamic_slice", "start_indices", start_indices)
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


linear_in_first(dynamic_slice_p)


@rules.transpose(dynamic_slice_p)
def _(
    cotangent: ArrayLike, operand: UndefinedPrimal, *start_indices: Operand, slice_sizes: Shape
) -> Cotangents:
    zeros = zeros_of(operand.aval)
    result = process(dynamic_update_slice_p, (zeros, cotangent, *start_indices), {})
    return [result, *[None] * len(start_indices)]


@boundary
def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return a slice along one axis, whose start index may be traced; other axes are whole.

    Args:
      operand: an array.
      start_index: the index of the first element, an integer scalar that may be traced. It is
        clamped so that the slice stays within the array.
      slice_size: the number of elements along the axis.
      axis: the axis; a negative one counts from the end.
      allow_negative_indices: whether a negative index counts from the end; if not, it is clamped
        to 0.

    Raises:
      IndexError: if there is no such axis.
      TypeError: if the index is not an integer scalar, or the size is out of range.

    Example:
      >>> lax.dynamic_slice_in_dim(jnp.arange(5), 4, 3)
      Array([2, 3, 4], dtype=int32)
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    return dynamic_slice(
        operand,
        _with_zeros(start_index, axis, len(shape)),
        with_entry(shape, axis, as_size(slice_size)),
        allow_negative_indices=allow_negative_indices,
    )


def _with_zeros(index: ArrayLike, axis: int, ndim: int) -> list[ArrayLike]:
    """Return one start index per axis: `index` along `axis`, and 0 of its dtype for the others."""
    zero = 0 if type(index) is int else host_number(0, typeof(index).dtype)
    indices = [zero] * ndim
    indices[axis] = index
    return indices


@boundary
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return the elements at one index of an axis; the index may be traced.

    Args:
      operand: an array.
      index: a scalar integer, which is clamped to the axis.
      axis: the axis.
      keepdims: whether the result has the axis, with size 1.
      allow_negative_indices: whether negative indices count from the end of the axis.

    Raises:
      TypeError: if the index is not an integer scalar.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> lax.dynamic_index_in_dim(x, 1), lax.dynamic_index_in_dim(x, 1, keepdims=False)
      (Array([[3, 4]], dtype=int32), Array([3, 4], dtype=int32))
    """
    result = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    if keepdims:
        return result
    axis = canonical_axis(axis, typeof(operand).ndim)
    return process(squeeze_p, (result,), {"dimensions": (axis,)})


dynamic_update_slice_p = Primitive("dynamic_update_slice")


@boundary
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | ArrayLikes,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return an array with `update` written at start indices that may be traced.

    Start indices are clamped so that the update lies within the array.

    Args:
      operand: the array.
      update: an array of the operand's dtype and rank, no larger than it along any axis.
      start_indices, allow_negative_indices: see `dynamic_slice`.

    Raises:
      TypeError: if the update does not fit, or an index is not an integer scalar.
      ValueError: if there is not one index per axis.

    Example:
      >>> lax.dynamic_update_slice(jnp.zeros(5), jnp.array([1.0, 2.0]), (3,))
      Array([0., 0., 0., 1., 2.], dtype=float32)
    """
    indices = _dynamic_indices(operand, start_indices, allow_negative_indices)
    return process(dynamic_update_slice_p, (operand, update, *indices), {})


@infer(dynamic_update_slice_p)
def _(operand: ShapedArray, update: ShapedArray, *start_indices: ShapedArray) -> ShapedArray:
    check_same_dtypes("dynamic_update_slice", (operand, update))
    if operand.ndim != update.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {operand.shape}."
        )
    if any(size > whole for size, whole in zip(update.shape, operand.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got update "
            f"shape {update.shape} for operand shape {operand.shape}."
        )
    _check_indices("dynamic_update_slice", "start_indices", start_indices)
    weak = operand.weak_type and update.weak_type and all(i.weak_type for i in start_indices)
    return ShapedArray(operand.shape, operand.dtype, weak)


@rules.jvp(dynamic_update_slice_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    indices = primals[2:]
    result = process(dynamic_update_slice_p, tuple(primals), {})
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return result, Zero.of(result)
    operands = [instantiate(tangent) for tangent in tangents[:2]]
    return result, process(dynamic_update_slice_p, (*operands, *indices), {})


@rules.transpose(dynamic_update_slice_p)
def _(
    cotangent: ArrayLike, operand: Operand, update: Operand, *start_indices: Operand
) -> Cotangents:
    operand_cotangent = replaced = None
    if is_linear(operand):
        zeros = zeros_of(aval_of_operand(update))
        operand_cotangent = process(dynamic_update_slice_p, (cotangent, zeros, *start_indices), {})
    if is_linear(update):
        params = {"slice_sizes": update.aval.shape}
        replaced = process(dynamic_slice_p, (cotangent, *start_indices), params)
    return [operand_cotangent, replaced, *[None] * len(start_indices)]


@boundary
def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return an array with `update` written from index `start_index` of one axis on.

    The start is 0 along the other axes.

    Args:
      operand: an array.
      update: an array of the dtype and rank of `operand`, and no larger.
      start_index: a scalar integer, which is clamped so that the update lies within the array.
      axis: the axis.
      allow_negative_indices: whether negative starts count from the end of the axis.

    Raises:
      TypeError: if the index is not an integer, or dtypes, ranks or sizes do not fit.

    Example:
      >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4, int), jnp.array([7, 8]), 3, axis=0)
      Array([0, 0, 7, 8], dtype=int32)
    """
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim)
    return dynamic_update_slice(
        operand,
        update,
        _with_zeros(start_index, axis, ndim),
        allow_negative_indices=allow_negative_indices,
    )


@boundary
def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Return an array with `update` written at one index of one axis.

    Args:
      operand: an array.
      update: an array of the operand's dtype, of its shape with size 1 along the axis, or without
        that axis.
      index: the index to write at, an integer scalar that may be traced; it is clamped to the axis.
      axis: the axis; a negative one counts from the end.
      allow_negative_indices: whether a negative index counts from the end; if not, it is clamped
        to 0.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      IndexError: if there is no such axis.
      TypeError: if the update does not fit, or the index is not an integer scalar.

    Example:
      >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 3), int), jnp.array([7, 8]), 1, axis=1)
      Array([[0, 7, 0],
             [0, 8, 0]], dtype=int32)
    """
    ndim, update_ndim = typeof(operand).ndim, typeof(update).ndim
    axis = canonical_axis(axis, ndim)
    if update_ndim == ndim - 1:
        shape = typeof(update).shape
        update = broadcast_in_dim(
            update,
            (*shape[:axis], 1, *shape[axis:]),
            tuple([i for i in range(ndim) if i != axis]),
        )
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
