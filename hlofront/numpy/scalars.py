"""Scalar types: callable dtypes, as in `jnp.float32(1)`, and predicates of dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from hlofront.base import dtypes
from hlofront.base.elements import all_dtypes
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import is_value, typeof
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.like import like


class ScalarType(type):
    """The metaclass of jnp.float32 and other scalar types: callable, and equal to NumPy's."""

    dtype: np.dtype

    def __call__(cls, x: ArrayLike) -> Array:
        """Return x as an array of this dtype; a scalar gives an array without axes."""
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.dtype.type == other or cls.dtype == other

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(dtype: np.dtype) -> ScalarType:
    namespace = {
        "dtype": dtype,
        "__module__": "hlofront.numpy",
        "__doc__": f"The dtype {dtype.name}; called with a number or a list, an array of it.",
    }
    return ScalarType("bool" if dtype.name == "bool" else dtype.name, (), namespace)


# name -> scalar type: int1 ... complex128, for all dtypes of NumPy and ml_dtypes.
SCALAR_TYPES = {dtype.name: _scalar_type(dtype) for dtype in all_dtypes}

bool_ = SCALAR_TYPES["bool"]
int8, int16, int32, int64 = (SCALAR_TYPES[f"int{bits}"] for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (SCALAR_TYPES[f"uint{bits}"] for bits in (8, 16, 32, 64))
float16, float32, float64 = (SCALAR_TYPES[f"float{bits}"] for bits in (16, 32, 64))
complex64, complex128 = SCALAR_TYPES["complex64"], SCALAR_TYPES["complex128"]
bfloat16 = SCALAR_TYPES["bfloat16"]
float4_e2m1fn, float6_e2m3fn, float6_e3m2fn = map(
    SCALAR_TYPES.get, ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
)
float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn = map(
    SCALAR_TYPES.get, ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn")
)
float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = map(
    SCALAR_TYPES.get, ("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
)
int1, int2, int4 = map(SCALAR_TYPES.get, ("int1", "int2", "int4"))
uint1, uint2, uint4 = map(SCALAR_TYPES.get, ("uint1", "uint2", "uint4"))
int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128

# Categories of dtypes, for issubdtype.
generic, number = np.generic, np.number
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_

dtype = np.dtype
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo
can_cast = np.can_cast
ComplexWarning = np.exceptions.ComplexWarning
promote_types = dtypes.promote_types


@like(np.issubdtype)
def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Return whether a dtype is a subtype of a category, such as np.floating, or of a dtype.

    Raises:
      TypeError: for values that are not dtypes.

    Example:
      >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), np.issubdtype(jnp.bfloat16, np.floating)
      (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


@like(np.result_type)
def result_type(*args: ArrayLike | DTypeLike | None) -> np.dtype[Any]:
    """Return the common dtype of values and dtypes, by JAX's rules of promotion.

    Example:
      >>> jnp.result_type(jnp.int32, jnp.bfloat16), jnp.result_type(jnp.int8, 3)
      (dtype(bfloat16), dtype('int8'))
    """
    return dtypes.result_type(*args)


_KINDS = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.integer, np.floating, np.complexfloating),
}


@like(np.isdtype)
def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return whether a dtype equals a dtype or is in a category, or in any of a tuple of them.

    Raises:
      ValueError: for a string that names neither a kind nor a dtype.
      TypeError: for a kind that is neither a dtype, a string nor a tuple of them.

    Example:
      >>> jnp.isdtype(jnp.bfloat16, "real floating"), jnp.isdtype(jnp.uint8, ("integral", "bool"))
      (True, True)
    """
    requested = dtypes.dtype_of(typeof(dtype).dtype if is_value(dtype) else dtype)
    return any(
        _is_of_kind(requested, one) for one in (kind if isinstance(kind, tuple) else (kind,))
    )


def _is_of_kind(dtype: np.dtype, kind: DTypeLike) -> bool:
    if isinstance(kind, str) and kind in _KINDS:
        return any(dtypes.issubdtype(dtype, scalar_class) for scalar_class in _KINDS[kind])
    if not isinstance(kind, list | tuple):
        try:
            # NumPy reads None as float64, and bytes as the names of dtypes.
            return dtype == dtypes.dtype_of(kind)
        except (TypeError, ValueError):
            if isinstance(kind, str):
                raise ValueError(
                    f"isdtype: {kind!r} is neither a dtype nor one of the kinds {list(_KINDS)}"
                ) from None
    raise TypeError(f"isdtype: kind must be a dtype, a string, or a tuple of them, got {kind!r}")
