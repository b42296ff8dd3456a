"""What the arguments of special functions become: floats of one dtype and one shape."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import typeof
from hlofront.core.trace import as_array
from hlofront.numpy.creation import asarray
from hlofront.numpy.promotion import broadcast_together, promote_args_inexact
from hlofront.primitives.converting import convert

_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)


def inexact_arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common inexact dtype and shape.

    Raises:
      TypeError: if one is neither array nor scalar.
      ValueError: if their shapes do not broadcast.
    """
    values = broadcast_together(name, *promote_args_inexact(name, *args))
    return [as_array(x) for x in values]


def floats(name: str, *args: Any) -> list[Any]:
    """The same for functions of real numbers.

    Raises:
      ValueError: if one is complex.
    """
    values = inexact_arrays(name, *args)
    if issubdtype(typeof(values[0]).dtype, np.complexfloating):
        raise ValueError(
            f"{name} does not support complex-valued inputs. Give it the real part, x.real, if the "
            "imaginary one is zero."
        )
    return values


def strong_floats(name: str, *args: Any) -> list[Any]:
    """The same, not weakly typed."""
    return [strong(x) for x in floats(name, *args)]


def strong(x: Any) -> Any:
    """An array whose dtype does not give way to others."""
    return convert(x, typeof(x).dtype, False)


def float32_or_64(name: str, x: Any) -> Any:
    """The argument of a function that takes these two dtypes alone.

    Raises:
      TypeError: if it has another.
    """
    x = asarray(x)
    dtype = typeof(x).dtype
    if dtype not in (_float32, _float64):
        raise TypeError(
            f"{name}: x.dtype={dtype} is not supported. Convert it to float32, or with x64 float64."
        )
    return strong(x)


def in_float32(function: Callable[..., Any], *args: Any) -> Any:
    """A function of floats, whose own steps would lose too much in 16 bits."""
    dtype = typeof(args[0]).dtype
    if dtype.itemsize >= 4:
        return function(*args)
    result = function(*[convert(x, _float32, typeof(x).weak_type) for x in args])
    if isinstance(result, tuple):
        return tuple([convert(x, dtype, typeof(x).weak_type) for x in result])
    return convert(result, dtype, typeof(result).weak_type)
