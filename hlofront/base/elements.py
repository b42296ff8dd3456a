"""The element types that arrays may have: those of NumPy, of ml_dtypes, and extended ones."""

import math
from typing import Any

import ml_dtypes
import numpy as np

from hlofront.bridge import state

_x64 = state.enable_x64

# A dtype of NumPy or ml_dtypes.
NumPyDType = np.dtype[Any]
NumPyDTypes = tuple[NumPyDType, ...]


class extended(np.generic):
    """The scalar class above those of all extended dtypes, for issubdtype."""


class prng_key(extended):
    """The scalar class of random keys: `issubdtype(key.dtype, prng_key)`."""


extended.__module__ = prng_key.__module__ = "hlofront.dtypes"


class ExtendedDType:
    """The dtype of elements that NumPy does not know: the base class of such dtypes.

    Instances are hashable and equal when they mean the same. On a device an element is a small
    array of an ordinary dtype.
    """

    __slots__ = ()

    # How it prints, in jaxprs too; and its scalar class, a subclass of `extended`.
    name: str
    type: type[extended]
    # As of NumPy's dtypes: that of none of its numbers.
    kind = "V"

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], NumPyDType]:
        """Return the shape and dtype on a device of an array of such elements of this shape."""
        raise TypeError(f"{type(self).__name__} must define physical(shape)")

    @property
    def canonical(self) -> str | None:
        """Return a text that tells all that lowering reads of the dtype; None if there is none."""
        return None

    def wrap(self, data: object) -> object:
        """Return the array of elements that is stored as this array on a device."""
        raise TypeError(f"{type(self).__name__} must define wrap(data)")

    @property
    def itemsize(self) -> int:
        """Return the bytes per element."""
        shape, dtype = self.physical(())
        return math.prod(shape) * dtype.itemsize

    def __repr__(self):
        return self.name


bfloat16: Any = ml_dtypes.bfloat16
# The dtype of tangents of integers: a tangent that holds nothing.
float0: NumPyDType = np.dtype([("float0", np.void, 0)])
bool_: NumPyDType = np.dtype(np.bool_)


def _from_ml_dtypes(*names: str) -> NumPyDTypes:
    # Older releases of ml_dtypes lack some.
    return tuple(np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name))


narrow_signed = _from_ml_dtypes("int1", "int2", "int4")
narrow_unsigned = _from_ml_dtypes("uint1", "uint2", "uint4")
narrow_integers = (*narrow_signed, *narrow_unsigned)
narrow_floats = _from_ml_dtypes(
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
signed_integers: NumPyDTypes = tuple(map(np.dtype, ("int8", "int16", "int32", "int64")))
unsigned_integers: NumPyDTypes = tuple(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))
floats: NumPyDTypes = (
    np.dtype(bfloat16),
    *map(np.dtype, ("float16", "float32", "float64")),
)
complexes: NumPyDTypes = (np.dtype("complex64"), np.dtype("complex128"))
all_dtypes: frozenset[NumPyDType] = frozenset(
    {bool_, *narrow_integers, *signed_integers, *unsigned_integers}.union(
        narrow_floats, floats, complexes
    )
)

# What ml_dtypes' scalar classes are kinds of; as Python classes they are only np.generic.
kind_of_class: dict[type, type] = {
    **{dtype.type: np.signedinteger for dtype in narrow_signed},
    **{dtype.type: np.unsignedinteger for dtype in narrow_unsigned},
    **{dtype.type: np.floating for dtype in (*narrow_floats, floats[0])},
}


# ---- numbers that keep their dtype -------------------------------------------------------------
# With 64-bit dtypes off, a user's np.float64 is one of 32 bits. Where an array has 64 bits all the
# same, for jax_explicit_x64_dtypes="allow", what our own code makes to meet it must keep them.


class _Float64(np.float64):
    __slots__ = ()


class _Complex128(np.complex128):
    __slots__ = ()


class _Int64(np.int64):
    __slots__ = ()


class _UInt64(np.uint64):
    __slots__ = ()


class ExactDTypeArray(np.ndarray[Any, NumPyDType]):
    """A NumPy array that stays of 64 bits where those of users are narrowed."""


_exact_class: dict[NumPyDType, type[Any]] = {
    np.dtype(class_.__mro__[1]): class_ for class_ in (_Float64, _Complex128, _Int64, _UInt64)
}
exact_dtype_types: frozenset[type] = frozenset({ExactDTypeArray, *_exact_class.values()})


# An array or scalar of NumPy.
NumPyValue = np.ndarray[Any, NumPyDType] | np.bool_ | np.number[Any]


def host_number(value: object, dtype: NumPyDType) -> Any:
    """Return a NumPy scalar of this dtype, which it keeps when 64-bit dtypes are off."""
    if _x64.value:
        return dtype.type(value)
    return _exact_class.get(dtype, dtype.type)(value)


def exact_dtype(x: NumPyValue) -> NumPyValue:
    """Return a NumPy array or scalar that keeps its dtype when 64-bit dtypes are off."""
    return x if _x64.value else always_exact_dtype(x)


def always_exact_dtype(x: NumPyValue) -> NumPyValue:
    """Return a NumPy array or scalar that keeps its dtype, whatever is switched later."""
    class_ = _exact_class.get(x.dtype)
    if class_ is None:
        return x
    return class_(x) if isinstance(x, np.generic) else x.view(ExactDTypeArray)
