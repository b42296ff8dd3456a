"""Functions that change only the weak type of tangents or cotangents."""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.elementwise.converting import convert, convert_element_type_p, strong
from hlofront.primitives.elementwise.elementwise import mul


def times_one(x: ArrayLike) -> Array:
    """Return an array with a strong type: weakly typed floats and complex numbers are times one.

    Then the cotangents of `x` are strongly typed as well, as JAX's are if a formula has a constant
    of its argument's dtype; after a conversion to a strong type they would be weakly typed.
    """
    aval = typeof(x)
    if not aval.weak_type or not issubdtype(aval.dtype, np.inexact):
        return strong(x)
    return mul(x, scalar_of(1, aval.dtype))


def strong_cotangents(x: ArrayLike) -> Array:
    """Return an array like `x` whose cotangents are strongly typed; `x` itself if it is strong.

    JAX gathers elements where hlofront selects or slices them, and a gather's cotangents are
    strongly typed because they are added to strongly typed zeros.
    """
    aval = typeof(x)
    return convert(times_one(x), aval.dtype, aval.weak_type)


def weak_tangents(x: Array) -> Array:
    """Return an array of the type of `x` whose tangents are weakly typed if `x` is.

    JAX types them this way if a function is jitted on its own, as the functions of jax.numpy are.
    """
    aval = typeof(x)
    if not aval.weak_type:
        return x
    params = {"new_dtype": aval.dtype, "weak_type": True, "sharding": None}
    return process(convert_element_type_p, (x,), params)
