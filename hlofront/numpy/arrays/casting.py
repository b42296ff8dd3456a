"""Conversion of arrays to other dtypes, by value or by bits."""

from __future__ import annotations

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import bit_width, check_user_dtype_supported, issubdtype
from hlofront.base.elements import bool_, uint8
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.creation import copy
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.elementwise.ufuncs import any_operand, scalar_like
from hlofront.numpy.support.annotations import DeviceLike
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.arrays import shaping, slicing
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("dtype",))
def _astype(x: ArrayLike, dtype: np.dtype) -> Array:
    x = any_operand("astype", x)
    if issubdtype(typeof(x).dtype, np.complexfloating):
        if dtype == bool_:
            return convert(compare.ne(x, scalar_like(typeof(x), 0)), bool_, False)
        if not issubdtype(dtype, np.complexfloating):
            x = elementwise.real(x)
    return convert(x, dtype, False)


@boundary
@like(np.astype)
def astype(
    x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: DeviceLike = None
) -> Array:
    """Convert the elements to a dtype; None is the default float dtype.

    Floats become integers without their fraction, clamped to what the dtype holds, and NaN becomes
    0; complex numbers lose their imaginary part in dtypes other than booleans, with a
    DeprecationWarning.

    Example:
      >>> jnp.astype(jnp.array([1.9, -1.9]), int)
      Array([ 1, -1], dtype=int32)
    """
    check_arraylike("astype", x)
    if dtype is None:
        dtype = float
    dtype = check_user_dtype_supported(dtype, "astype")
    aval = typeof(x)
    copy = bool(copy)  # Raises what the truth value of an array raises, whatever the dtype.
    if aval.dtype == dtype and not aval.weak_type:
        result = _copied(x) if copy else as_array(x)
    else:
        _warn_of_lost_part(aval.dtype, dtype)
        result = _astype(x, dtype)
    return result if device is None else device_put(result, device)


def _warn_of_lost_part(dtype: np.dtype, target: np.dtype) -> None:
    """Warn if complex numbers are converted to a real dtype other than bool."""
    if target == bool_ or issubdtype(target, np.complexfloating):
        return
    if issubdtype(dtype, np.complexfloating):
        source.warn(
            f"astype from {dtype} to {target} drops the imaginary part, which is deprecated and "
            "will be an error: take jnp.real or jnp.imag first.",
            DeprecationWarning,
        )


_copied = copy


@boundary
def _method_astype(
    self: Array, dtype: DTypeLike, copy: bool = False, device: DeviceLike = None
) -> Array:
    """Convert the elements of the array to a dtype."""
    return astype(self, dtype, copy=copy, device=device)


@operation(static_argnames=("dtype",))
def _view(x: ArrayLike, dtype: np.dtype) -> Array:
    old = typeof(x).dtype
    if old == dtype:
        return as_array(x)
    shape = typeof(x).shape
    if not shape and bit_width(old) != bit_width(dtype):
        raise ValueError(
            "view() of a 0d array is only supported if the itemsize is unchanged: got "
            f"{old} to {dtype}. Give it an axis with reshape(1)."
        )
    if old == bool_:
        return _view.when_traced(convert(x, uint8, False), dtype)
    if dtype == bool_:
        return compare.ne(_view.when_traced(x, uint8), uint8.type(0))
    if issubdtype(old, np.complexfloating):
        parts = slicing.stack([elementwise.real(x), elementwise.imag(x)], len(shape))
        return _view.when_traced(shaping.reshape(parts, (*shape[:-1], shape[-1] * 2)), dtype)
    if issubdtype(dtype, np.complexfloating):
        half = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        pairs = _grouped(_view.when_traced(x, half), 2, old, dtype)
        last = len(shape)
        return elementwise.complex(
            slicing.index_in_dim(pairs, 0, last, keepdims=False),
            slicing.index_in_dim(pairs, 1, last, keepdims=False),
        )
    ratio = bit_width(dtype) // bit_width(old)
    if ratio > 1:
        return bitcast_convert_type(_grouped(x, ratio, old, dtype), dtype)
    cast = bitcast_convert_type(x, dtype)
    if typeof(cast).ndim == len(shape):
        return cast
    return shaping.reshape(cast, (*shape[:-1], shape[-1] * typeof(cast).shape[-1]))


def _grouped(x: ArrayLike, count: int, old: np.dtype, new: np.dtype) -> Array:
    *rest, last = typeof(x).shape
    if last % count:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            f"bytes of the last axis of the array: got {old}{list(typeof(x).shape)} to {new}."
        )
    return shaping.reshape(x, (*rest, last // count, count))


@boundary
def _method_view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """Reinterpret the bits of the array's elements as another dtype.

    The size of the last axis changes with the item size.
    """
    if type is not None:
        raise NotImplementedError(  # JAX raises this class.
            "`type` argument of array.view() is not supported: arrays have one type."
        )
    if dtype is None:
        return self
    return _view(self, check_user_dtype_supported(dtype, "view"))


_method_astype.__name__, _method_view.__name__ = "astype", "view"

ARRAY_METHODS = {"astype": _method_astype, "view": _method_view, "copy": _copied}
