"""What the samplers are given: keys, shapes and dtypes, checked."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    default_dtype,
    issubdtype,
    lattice_result,
)
from hlofront.base.errors import TypePromotionError
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_shape
from hlofront.numpy.shape import broadcast_to
from hlofront.primitives.converting import convert_element_type
from hlofront.primitives.keys import random_split
from hlofront.primitives.shaping import broadcast_shapes, refuse_sharding, squeeze
from hlofront.primitives.slicing import slice_in_dim
from hlofront.random.keys import single_key


def checked_key(name: str, key: Any, out_sharding: Any = None) -> Any:
    """The key of a sampler of this name, as an array of keys.

    Raises:
      TypeError: if it is none.
      ValueError: if there are several keys.
    """
    if out_sharding is not None:
        refuse_sharding(name, "out_sharding", out_sharding)
    return single_key(name, key)[0]


def checked_shape(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of the result; if it is None, that of the parameters together.

    Raises:
      ValueError: if the parameters do not broadcast to it.
      TypeError: if it is no shape, or a size is negative.
    """
    if shape is None:
        if len(parameters) == 1:
            return typeof(parameters[0]).shape
        return broadcast_shapes(*[typeof(x).shape for x in parameters])
    shape = canonical_shape(shape)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise TypeError(f"{name}: sizes must not be negative, got shape {shape}")
    shapes = [typeof(x).shape for x in parameters]
    # Scalars fit any shape.
    if any(shapes) and broadcast_shapes(shape, *shapes) != shape:
        raise ValueError(
            f"{name} got parameters of shapes {', '.join(map(str, shapes))}, which do not "
            f"broadcast to the shape of the result, {shape}"
        )
    return shape


def own_shape(name: str, shape: Any) -> tuple[int, ...]:
    """The shape of the result, of samplers without parameters that give it.

    Raises:
      TypeError: if it is no shape, or a size is negative.
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


def whole_shape(name: str, shape: Any) -> tuple[int, ...] | None:
    """The shape of the result, or None, of samplers that find out themselves what fits."""
    return None if shape is None else canonical_shape(shape)


def given(_: str, value: Any) -> Any:
    """What is taken as it is given."""
    return value


def whole_size(_: str, size: Any) -> Any:
    """A size of the result. TypeError if it is none."""
    return canonical_shape((size,))[0]


def floating(name: str, dtype: Any) -> Any:
    """The floating-point dtype that was asked for, the default one for None. ValueError else."""
    return default_dtype("f") if dtype is None else _of_kind(name, dtype, np.floating, "a float")


def inexact(name: str, dtype: Any) -> Any:
    """The dtype of floats or complex numbers that was asked for, by default of floats."""
    if dtype is None:
        return default_dtype("f")
    return _of_kind(name, dtype, np.inexact, "a float or complex")


def integral(name: str, dtype: Any) -> Any:
    """The dtype of integers that was asked for, the default one for None. ValueError else."""
    return default_dtype("i") if dtype is None else _of_kind(name, dtype, np.integer, "an int")


def unsigned(name: str, dtype: Any) -> Any:
    """The dtype of unsigned integers that was asked for, the default one for None."""
    if dtype is None:
        return default_dtype("u")
    return _of_kind(name, dtype, np.unsignedinteger, "an unsigned int")


def any_dtype(name: str, dtype: Any) -> Any:
    """The dtype that was asked for, the default one of integers for None."""
    return default_dtype("i") if dtype is None else check_user_dtype_supported(dtype, name)


def _of_kind(name: str, dtype: Any, kind: Any, said: str) -> Any:
    dtype = check_user_dtype_supported(dtype, name)
    if not issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {said} dtype, got {dtype}")
    return dtype


def safely(name: str, dtype: Any, *parameters: Any) -> list[Any]:
    """The parameters in this dtype, and not weak.

    Raises:
      TypePromotionError: if it does not hold the values of theirs, as float16 those of float32.
    """
    for x in parameters:
        aval = typeof(x)
        if lattice_result(((aval.dtype, aval.weak_type), (dtype, False)))[0] != dtype:
            raise TypePromotionError(
                f"{name} cannot safely cast a parameter of dtype {aval.dtype} to {dtype}, the "
                "dtype of the result: convert it before, or ask for another dtype"
            )
    return [convert_element_type(x, dtype) for x in parameters]


def in_dtype(x: Any, dtype: Any) -> Any:
    """x in this dtype, and not weak."""
    return convert_element_type(x, dtype)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """x broadcast to this shape."""
    return x if typeof(x).shape == shape else broadcast_to(x, shape)


def parts(key: Any, count: int = 2) -> list[Any]:
    """This many new keys from one."""
    keys = random_split(key, (count,))
    return [squeeze(slice_in_dim(keys, i, i + 1), (0,)) for i in range(count)]
