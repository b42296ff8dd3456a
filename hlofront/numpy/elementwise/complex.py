"""Functions of complex numbers: their parts, angles and conjugates."""

from __future__ import annotations

import math

import numpy as np

from hlofront.base.dtypes import is_complex, python_scalar_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.elementwise.ufuncs import any_operand, full_of, is_integer, scalar_like
from hlofront.numpy.support.like import operation_like
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace, convert


@operation_like(np.real)
def real(val: ArrayLike, /) -> Array:
    """Return the real parts; real numbers are returned unchanged."""
    val = any_operand("real", val)
    return elementwise.real(val) if is_complex(typeof(val).dtype) else as_array_of_trace(val)


@operation_like(np.imag)
def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary parts, which are zeros for real numbers.

    Example:
      >>> jnp.imag(jnp.array([1 + 2j, 3])), jnp.imag(jnp.array([1.0]))
      (Array([2., 0.], dtype=float32), Array([0.], dtype=float32))
    """
    val = any_operand("imag", val)
    return elementwise.imag(val) if is_complex(typeof(val).dtype) else full_of(val, 0)


@operation_like(np.conjugate)
def conjugate(x: ArrayLike, /) -> Array:
    """Return the elementwise complex conjugate; real numbers are returned unchanged.

    Example:
      >>> jnp.conjugate(jnp.array([1 + 2j, 3]))
      Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = any_operand("conjugate", x)
    return elementwise.conj(x) if is_complex(typeof(x).dtype) else as_array_of_trace(x)


conj = conjugate


@operation_like(np.angle, static_argnames=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the angle of each complex number, from -pi to pi; in degrees if `deg`.

    Example:
      >>> jnp.angle(jnp.array([1j, -1]), deg=True)
      Array([ 90., 180.], dtype=float32)
    """
    z = any_operand("angle", z)
    aval = typeof(z)
    if is_complex(aval.dtype):
        x, y = elementwise.real(z), elementwise.imag(z)
    else:
        # Integers and scalars become the default floats.
        default = is_integer(aval) or not aval.ndim
        dtype = python_scalar_dtype(float) if default else aval.dtype
        x = convert(z, dtype, aval.weak_type and not default)
        y = full_of(x, 0)
    result = elementwise.atan2(y, x)
    return elementwise.mul(result, scalar_like(typeof(result), 180 / math.pi)) if deg else result
