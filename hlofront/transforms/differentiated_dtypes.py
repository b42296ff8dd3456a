"""Checks of the dtypes of arguments and results of functions that are differentiated."""

import numpy as np

from hlofront.base import source
from hlofront.base.advice import as_pytree
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import DType
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import Value


def dtype_of_argument(x: Value) -> DType:
    """Return the dtype of an argument of a differentiated function.

    Raises:
      TypeError: if `x` is neither an array nor a scalar.
    """
    if not is_value(x):
        raise TypeError(
            f"Argument {source.shortened(repr(x))} of type {type(x)} is not a valid JAX type. "
            f"{as_pytree(x)}"
        )
    return typeof(x).dtype


def check_real_or_complex(name: str, x: Value, allow_int: bool = False) -> None:
    """Raise TypeError if `x` is not a real or complex array; integers pass with `allow_int`."""
    dtype = dtype_of_argument(x)
    if issubdtype(dtype, np.inexact) or (allow_int and issubdtype(dtype, np.generic)):
        return
    if type(x) is int:
        advice = f"Write {x}.0 instead of {x}"
    else:
        advice = "Convert it, as by x.astype(jnp.float32)"
    raise TypeError(
        f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
        f"np.inexact), but got {dtype_name(dtype)}. {advice}. If you want to use Boolean- or "
        "integer-valued inputs, use vjp or set allow_int to True."
    )


def dtype_name(dtype: DType) -> str:
    """Return the name of a NumPy or extended dtype, such as "float32"."""
    return getattr(dtype, "name", str(dtype))


def check_holomorphic(name: str, x: Value, allow_int: bool = False) -> None:
    """Raise TypeError if `x` is not a complex array."""
    check_real_or_complex(name, x, True)
    check_complex(name, typeof(x).dtype)


def check_complex(name: str, dtype: DType) -> None:
    """Raise TypeError if the dtype of an argument of a holomorphic function is not complex."""
    if not issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{name} with holomorphic=True requires inputs with complex dtype, but got "
            f"{dtype_name(dtype)}."
        )


def check_output(name: str, aval: ShapedArray, holomorphic: bool) -> None:
    """Raise TypeError if an output's dtype is not real (not complex, if `holomorphic`)."""
    dtype = aval.dtype
    if holomorphic:
        if not issubdtype(dtype, np.complexfloating):
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype_name(dtype)}."
            )
        return
    if issubdtype(dtype, np.floating):
        return
    complex_advice = (
        " For holomorphic differentiation, pass holomorphic=True. For differentiation of "
        "non-holomorphic functions involving complex outputs, use jax.vjp directly."
    )
    integer_advice = " For differentiation of functions with integer outputs, use jax.vjp directly."
    advice = complex_advice if issubdtype(dtype, np.complexfloating) else integer_advice
    raise TypeError(
        f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
        f"but got {dtype_name(dtype)}.{advice}"
    )
