"""Creation of arrays filled with one value: zeros, ones, full, zeros_like and similar."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported, issubdtype, python_scalar_dtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import ArrayLike, DType, DTypeLike, Shape, ShapeLike
from hlofront.bridge.client import ArrayImpl
from hlofront.bridge.fast_parts import Array
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.sharding.requested_shardings import named_sharding
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.core.trace import Tracer, is_eager
from hlofront.numpy.arrays.creation import MAX_ON_HOST, asarray, check_placement, from_host
from hlofront.numpy.support.annotations import DeviceLike, OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import as_operand, check_arraylike, with_shape
from hlofront.primitives.arrays import creation as lax
from hlofront.primitives.arrays import shaping
from hlofront.primitives.arrays.shaping import ascending
from hlofront.primitives.collectives.varying import varying_as
from hlofront.primitives.elementwise import converting
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.operation import operation
from hlofront.runtime.sharding.placement import default_placement, host_put
from hlofront.transforms.flatten import ShapeDtypeStruct

# ---- one value ---------------------------------------------------------------------------------


@operation(static_argnames=("shape", "value", "dtype"))
def _full_of_constant(shape: Shape, value: ArrayLike, dtype: DType) -> Array:
    return lax.full(shape, value, dtype)


@operation(static_argnames=("shape", "dtype", "weak"))
def _full_of_value(shape: Shape, value: ArrayLike, dtype: DType, weak: bool) -> Array:
    return _filled(shape, value, dtype, weak)


def _filled(
    shape: Shape, value: ArrayLike, dtype: np.dtype, weak: bool, requested_sharding: Any = None
) -> Array:
    value = converting.convert(value, dtype, weak)
    old_shape = typeof(value).shape
    if not old_shape:
        return shaping.broadcast_in_dim(value, shape, (), out_sharding=requested_sharding)
    try:
        np.broadcast_to(np.empty(old_shape, np.bool_), shape)
    except ValueError:
        raise ValueError(
            f"cannot fill an array of shape {shape} with one of shape {old_shape}"
        ) from None
    if requested_sharding is None:
        return with_shape(value, old_shape, shape)
    axes = ascending(len(shape))[len(shape) - len(old_shape) :]
    return shaping.broadcast_in_dim(value, shape, axes, out_sharding=requested_sharding)


def _put(x: Any, device: DeviceLike, ndim: int) -> Array:
    """Put a value with `ndim` axes on a device or a sharding; None leaves it where it is."""
    if device is None:
        return x
    fits = lax.of_rank(device, ndim) is device
    return device_put(x, device) if fits else lax.placed(x, device)


def _constant(
    name: str,
    shape: Shape,
    value: ArrayLike,
    dtype: np.dtype,
    device: DeviceLike,
    out_sharding: OutSharding,
) -> Array:
    """Make an array filled with a host scalar, of a canonical dtype."""
    if device is not None or out_sharding is not None:
        device, requested_sharding = check_placement(name, device, out_sharding, len(shape))
        if requested_sharding is not None:
            return lax.full_split(shape, value, dtype, False, requested_sharding)
    if isinstance(dtype, ExtendedDType):
        result = lax.full(shape, value, dtype)
        return _put(result, device, len(shape))
    if is_eager():
        aval = ShapedArray(shape, dtype)
        if aval.size <= MAX_ON_HOST and min(shape, default=0) >= 0:
            values = np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
            if device is None:
                return host_put(values, aval, default_placement(), False)
            return _put(values, device, len(shape))
        result = _full_of_constant(shape, value, dtype)
        return _put(result, device, len(shape))
    result = lax.full(shape, value, dtype)
    return result if hasattr(result, "aval") else from_host(result)


# Argument `dtype` -> dtype, for the dtypes that neither warn nor depend on x64.
_PLAIN = {
    dtype: np.dtype(dtype)
    for name in ("float32", "int32", "int8", "int16", "uint8", "uint16", "uint32", "bool")
    for dtype in (name, np.dtype(name), np.dtype(name).type)
}


def _dtype(name: str, dtype: DTypeLike | None) -> np.dtype:
    if dtype is None:
        return python_scalar_dtype(float)
    try:
        return _PLAIN[dtype]
    except (KeyError, TypeError):
        return check_user_dtype_supported(dtype, name)


@like(np.zeros)
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array of zeros.

    Args:
      shape: the shape of the result; an integer for one axis.
      dtype: the dtype of the result; by default the default floating-point one.
      device: a Device or Sharding that the result is put on; outside of traced functions
        the result is then strongly typed.

    Raises:
      TypeError: if `shape` is not a shape, or the dtype is not numeric.

    Example:
      >>> jnp.zeros((2, 3), jnp.int32)
      Array([[0, 0, 0],
             [0, 0, 0]], dtype=int32)
    """
    return _constant(
        "zeros", canonical_shape(shape), 0, _dtype("zeros", dtype), device, out_sharding
    )


@like(np.ones)
def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array of ones.

    Args:
      shape: the shape of the result; an integer for one axis.
      dtype: the dtype of the result; by default the default floating-point one.
      device: a Device or Sharding that the result is put on.
      out_sharding: how the result is split over a mesh.

    Raises:
      TypeError: if `shape` is not a shape, or the dtype is not numeric.

    Example:
      >>> jnp.ones(3)
      Array([1., 1., 1.], dtype=float32)
    """
    return _constant("ones", canonical_shape(shape), 1, _dtype("ones", dtype), device, out_sharding)


@like(np.empty)
def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array of zeros: uninitialized memory is not available.

    Args:
      shape: the shape of the result; an integer for one axis.
      dtype: the dtype of the result; by default the default floating-point one.
      device: a Device or Sharding that the result is put on.
      out_sharding: how the result is split over a mesh.

    Raises:
      TypeError: if `shape` is not a shape, or the dtype is not numeric.

    Example:
      >>> jnp.empty((2, 2))
      Array([[0., 0.],
             [0., 0.]], dtype=float32)
    """
    return _constant(
        "empty", canonical_shape(shape), 0, _dtype("empty", dtype), device, out_sharding
    )


@like(np.full)
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array filled with a number, or with an array that broadcasts to its shape.

    Args:
      shape: the shape of the result; an integer for one axis.
      fill_value: a scalar or an array.
      dtype: the dtype of the result; by default that of the value, and weak if that is weak.
      device: a Device or Sharding that the result is put on; outside of traced functions
        the result is then strongly typed.

    Raises:
      TypeError: if `shape` is not a shape, or the value neither an array nor a scalar.
      ValueError: if the value does not broadcast to the shape.

    Example:
      >>> jnp.full((2, 2), 7)
      Array([[7, 7],
             [7, 7]], dtype=int32, weak_type=True)
    """
    check_arraylike("full", fill_value)
    shape = canonical_shape(shape)
    weak = False
    if dtype is None:
        aval = typeof(fill_value)
        dtype, weak = aval.dtype, aval.weak_type
    else:
        dtype = check_user_dtype_supported(dtype, "full")
    return _full("full", shape, fill_value, dtype, weak, device, out_sharding)


@boundary
def _full(
    name: str,
    shape: Shape,
    value: ArrayLike,
    dtype: np.dtype,
    weak: bool,
    device: DeviceLike,
    out_sharding: OutSharding = None,
) -> Array:
    weak = weak and (device is None or not is_eager())
    device, requested_sharding = check_placement(name, device, out_sharding, len(shape))
    real = dtype != np.bool_ and not issubdtype(dtype, np.complexfloating)
    if isinstance(value, complex) and real:
        raise TypeError(
            f"jnp.{name} cannot fill an array of dtype {dtype} with the complex number {value}: "
            "give its .real part, or a complex dtype."
        )
    if isinstance(value, bool | int | float | complex | np.generic):
        if is_eager():
            value = lax.saturated(value, dtype)
        if not weak and requested_sharding is None:
            return _constant(name, shape, lax.scalar_of(value, dtype), dtype, device, None)
        value = lax.scalar_of(value, dtype, weak)
    elif isinstance(value, np.ndarray) and value.ndim:
        value = asarray(value, dtype)
    if isinstance(value, Tracer) or not is_eager():
        result = _filled(shape, value, dtype, weak, requested_sharding)
        return result if hasattr(result, "aval") else from_host(result)
    result = _full_of_value(shape, value, dtype, weak)
    return _put(result, device, len(shape))


# ---- like another array ------------------------------------------------------------------------


def _like(
    name: str,
    a: object,
    fill_value: ArrayLike,
    dtype: DTypeLike | None,
    shape: ShapeLike | None,
    device: DeviceLike,
    out_sharding: OutSharding = None,
) -> Array:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = as_operand(a)
        check_arraylike(name, a)
    # An object that is not an array may have the attributes of one.
    described = isinstance(a, ShapeDtypeStruct) or not is_value(a)
    if not described:
        aval = typeof(a)
        own_shape, own_dtype, weak = aval.shape, aval.dtype, aval.weak_type
    else:
        own_shape, own_dtype = tuple(a.shape), check_user_dtype_supported(a.dtype, name)
        weak = bool(getattr(a, "weak_type", False))
    if dtype is not None:
        own_dtype, weak = check_user_dtype_supported(dtype, name), False
    goes_anywhere = device is None and out_sharding is None
    if goes_anywhere and type(a) is ArrayImpl and a.committed and not weak and is_eager():
        # The result is on the array's devices; in another shape only if it is on a single device.
        if shape is None or len(a.devices()) == 1:
            device = a.sharding
    elif goes_anywhere and described and shape is None and not weak:
        if getattr(a, "committed", True):
            device = getattr(a, "sharding", None)
    if goes_anywhere and shape is None and not is_eager():
        split = None if described else typeof(a).split
        out_sharding = None if split is None else named_sharding(*split)
    shape = own_shape if shape is None else canonical_shape(shape)
    if type(fill_value) is int and not weak and not isinstance(own_dtype, str):
        value = lax.scalar_of(fill_value, own_dtype)
        return varying_as(_constant(name, shape, value, own_dtype, device, out_sharding), a)
    weak = weak and not np.ndim(fill_value)
    return varying_as(_full(name, shape, fill_value, own_dtype, weak, device, out_sharding), a)


@like(np.zeros_like)
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make zeros in the shape and dtype of an array, a scalar, or an object that has both.

    `dtype` and `shape` override those of `a`.

    Raises:
      TypeError: if `a` is none of these, or the shape is invalid.

    Example:
      >>> jnp.zeros_like(jnp.array([1, 2]))
      Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


@like(np.ones_like)
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make ones in the shape and dtype of an array, a scalar, or an object that has both.

    `dtype` and `shape` override those of `a`.

    Raises:
      TypeError: if `a` is none of these, or the shape is invalid.

    Example:
      >>> jnp.ones_like(jnp.array([1.0, 2.0]))
      Array([1., 1.], dtype=float32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


@like(np.empty_like)
def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Make zeros of an array's shape and dtype: uninitialized memory is not available.

    Example:
      >>> jnp.empty_like(jnp.array([1, 2]))
      Array([0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


@like(np.full_like)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array filled with one value, in the shape and dtype of another array.

    Args:
      a: an array, a scalar, or an object with a shape and a dtype.
      fill_value: a scalar, or an array that broadcasts to the shape.
      dtype: the dtype of the result; by default that of `a`.
      shape: the shape of the result; by default that of `a`.
      device: a Device or Sharding that the result is put on.
      out_sharding: how the result is split over a mesh.

    Raises:
      TypeError: if the value is neither array nor scalar.
      ValueError: if the value does not broadcast to the shape.

    Example:
      >>> jnp.full_like(jnp.array([1, 2]), 2.7)
      Array([2, 2], dtype=int32)
    """
    check_arraylike("full_like", 0 if hasattr(a, "dtype") else a, fill_value)
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)
