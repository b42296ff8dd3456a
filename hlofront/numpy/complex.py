"""Complex numbers: their parts, angles and conjugates."""

import math

import numpy as np

from hlofront.core.aval import typeof
from hlofront.numpy.like import like
from hlofront.numpy.promotion import promote_dtypes_inexact
from hlofront.numpy.ufuncs import any_operand, full_of, is_complex, scalar_like
from hlofront.primitives import elementwise
from hlofront.runtime.operation import operation


@operation
@like(np.real)
def real(val, /):
    """The real parts; of real numbers, they themselves."""
    val = any_operand("real", val)
    return elementwise.real(val) if is_complex(typeof(val)) else val


@operation
@like(np.imag)
def imag(val, /):
    """The imaginary parts; of real numbers, zeros."""
    val = any_operand("imag", val)
    return elementwise.imag(val) if is_complex(typeof(val)) else full_of(val, 0)


@operation
@like(np.conjugate)
def conjugate(x, /):
    """Elementwise complex conjugate; of real numbers, they themselves."""
    x = any_operand("conjugate", x)
    return elementwise.conj(x) if is_complex(typeof(x)) else x


conj = conjugate


@operation(static_argnames=("deg",))
@like(np.angle)
def angle(z, deg=False):
    """Elementwise angle of complex numbers, from -pi to pi; in degrees if `deg`."""
    z = any_operand("angle", z)
    if is_complex(typeof(z)):
        x, y = elementwise.real(z), elementwise.imag(z)
    else:
        (x,) = promote_dtypes_inexact(z)
        y = full_of(x, 0)
    result = elementwise.atan2(y, x)
    return elementwise.mul(result, scalar_like(typeof(result), 180 / math.pi)) if deg else result
