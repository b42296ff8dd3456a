"""What the samplers are given: keys, shapes and dtypes, checked."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, issubdtype
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
        raise refuse_sharding(name, "out_sharding", out_sharding)
    return single_key(name, key)[0]


def checked_shape(name: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of the result; if it is None, that of the parameters together.

    Raises:
      ValueError: if the parameters do not broadcast to it, or a size is negative.
      TypeError: if it is no shape.
    """
    if shape is None:
        return broadcast_shapes(*[typeof(x).shape for x in parameters])
    shape = canonical_shape(shape)
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ValueError(f"{name}: sizes must not be negative, got shape {shape}")
    shapes = [typeof(x).shape for x in parameters]
    # Scalars fit any shape.
    if any(shapes) and broadcast_shapes(shape, *shapes) != shape:
        raise ValueError(
            f"{name} got parameters of shapes {', '.join(map(str, shapes))}, which do not "
            f"broadcast to the shape of the result, {shape}"
        )
    return shape


def floating(name: str, dtype: Any) -> Any:
    """The floating-point dtype that was asked for, the default one for None.

    Raises:
      ValueError: if it is another.
    """
    dtype = check_user_dtype_supported(float if dtype is None else dtype, name)
    if not issubdtype(dtype, np.floating):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {dtype}")
    return dtype


def integral(name: str, dtype: Any) -> Any:
    """The dtype of integers that was asked for, the default one for None.

    Raises:
      ValueError: if it is another.
    """
    dtype = check_user_dtype_supported(int if dtype is None else dtype, name)
    if not issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype}")
    return dtype


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
