"""The checks of the samplers' arguments: keys, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    default_dtype,
    issubdtype,
    lattice_result,
)
from hlofront.base.errors import TypePromotionError
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape, ShapeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.numpy.arrays.shape import broadcast_to
from hlofront.primitives.arrays.shaping import broadcast_shapes, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.random.keys import random_split
from hlofront.random.keys import single_key

T = TypeVar("T")
A = TypeVar("A", bound=ArrayLike)


def checked_key(name: str, key: ArrayLike) -> Array:
    """Return a sampler's key as a scalar array of keys.

    Raises:
      TypeError: if the argument is not a key.
      ValueError: if the argument is an array of several keys.
    """
    return single_key(name, key)[0]


def checked_shape(name: str, shape: ShapeLike | None, *parameters: ArrayLike) -> Shape:
    """Return the shape of a sampler's result; for None, the broadcast shape of the parameters.

    Raises:
      ValueError: if the parameters do not broadcast to the shape.
      TypeError: if the argument is not a shape, or a size is negative.
    """
    if shape is None:
        if len(parameters) == 1:
            return typeof(parameters[0]).shape
        return broadcast_shapes(*[typeof(x).shape for x in parameters])
    shape = canonical_shape(shape)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise TypeError(f"{name}: sizes must not be negative, got shape {shape}")
    shapes = [typeof(x).shape for x in parameters]
    # Scalars broadcast to any shape.
    if any(shapes) and broadcast_shapes(shape, *shapes) != shape:
        raise ValueError(
            f"{name} got parameters of shapes {', '.join(map(str, shapes))}, which do not "
            f"broadcast to the shape of the result, {shape}"
        )
    return shape


def own_shape(name: str, shape: ShapeLike | None) -> Shape:
    """Return the shape of the result of a sampler whose parameters do not affect it.

    Raises:
      TypeError: if the argument is not a shape, or a size is negative.
    """
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int or size < 0:
                break
        else:
            return shape
    if shape is None:
        raise TypeError(f"{name}: the shape is None: give a tuple of sizes, () for a scalar")
    return checked_shape(name, shape)


def whole_shape(name: str, shape: ShapeLike | None) -> Shape | None:
    """Return a shape as a tuple, or None, for samplers that check their parameters' shapes."""
    return None if shape is None else canonical_shape(shape)


def as_passed(_: str, value: T) -> T:
    """Return an argument without a check."""
    return value


def whole_size(_: str, size: int) -> int:
    """Return one size of the result's shape; raise TypeError if the argument is not a size."""
    return canonical_shape((size,))[0]


def floating(name: str, dtype: DTypeLike | None) -> DType:
    """Return a floating-point dtype, by default float32 or float64; raise ValueError for others."""
    return default_dtype("f") if dtype is None else _of_kind(name, dtype, np.floating, "a float")


def inexact(name: str, dtype: DTypeLike | None) -> DType:
    """Return a floating-point or complex dtype: by default float32, with x64 float64."""
    if dtype is None:
        return default_dtype("f")
    return _of_kind(name, dtype, np.inexact, "a float or complex")


def integral(name: str, dtype: DTypeLike | None) -> DType:
    """Return an integer dtype, by default int32 or int64; raise ValueError for others."""
    return default_dtype("i") if dtype is None else _of_kind(name, dtype, np.integer, "an int")


def unsigned(name: str, dtype: DTypeLike | None) -> DType:
    """Return an unsigned integer dtype, by default uint32 or uint64."""
    if dtype is None:
        return default_dtype("u")
    return _of_kind(name, dtype, np.unsignedinteger, "an unsigned int")


def any_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """Return a dtype of any kind, by default int32 or int64."""
    return default_dtype("i") if dtype is None else check_user_dtype_supported(dtype, name)


def _of_kind(name: str, dtype: DTypeLike, kind: type[np.generic], said: str) -> DType:
    dtype = check_user_dtype_supported(dtype, name)
    if not issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {said} dtype, got {dtype}")
    return dtype


def safely(name: str, dtype: DType, *parameters: ArrayLike) -> list[Array]:
    """Return the parameters converted to a dtype, and not weakly typed.

    Raises:
      TypePromotionError: if the cast may lose values, such as from float32 to float16.
    """
    for x in parameters:
        aval = typeof(x)
        if lattice_result(((aval.dtype, aval.weak_type), (dtype, False)))[0] != dtype:
            raise TypePromotionError(
                f"{name} cannot safely cast a parameter of dtype {aval.dtype} to {dtype}, the "
                "dtype of the result: convert it first, or request another dtype"
            )
    return [convert_element_type(x, dtype) for x in parameters]


def in_dtype(x: ArrayLike, dtype: DType) -> Array:
    """Return an array or scalar converted to a dtype, and not weakly typed."""
    return convert_element_type(x, dtype)


def broadcast_to_shape(x: A, shape: Sequence[int]) -> A | Array:
    """Return an array or scalar broadcast to a shape."""
    return x if typeof(x).shape == shape else broadcast_to(x, shape)


def parts(key: Array, count: int = 2) -> list[Array]:
    """Split a key into a list of `count` scalar keys."""
    keys = random_split(key, (count,))
    return [squeeze(slice_in_dim(keys, i, i + 1), (0,)) for i in range(count)]
