"""Element types of arrays: those of NumPy and ml_dtypes, and extended dtypes."""

import math
from typing import Any, Protocol, overload, runtime_checkable

import ml_dtypes
import numpy as np

from hlofront.base.array_class import Array
from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.bridge import state

_x64 = state.enable_x64

# A dtype of NumPy or ml_dtypes.
NumPyDType = np.dtype[Any]
NumPyDTypes = tuple[NumPyDType, ...]


class extended(np.generic):
    """The base scalar class of all extended dtypes, for `issubdtype`."""


class prng_key(extended):
    """The scalar class of random keys: `issubdtype(key.dtype, prng_key)`."""


extended.__module__ = prng_key.__module__ = "hlofront.dtypes"


class ExtendedDType:
    """The base class of dtypes whose elements NumPy lacks, such as random keys.

    Instances are hashable and compare by meaning. On device, an element is a small array of a NumPy
    dtype.
    """

    __slots__ = ()

    # The name, also in jaxprs; and the scalar class, a subclass of `extended`.
    name: str
    type: type[extended]
    # NumPy's kind for void dtypes, which no numeric dtype has.
    kind = "V"
    # Whether elements can be converted from and to the dtype that represents them.
    converts = False
    # The rules of a dtype that another package defines: a class with functions under JAX's names.
    _rules: Any = None

    @property
    def tangent(self) -> "NumPyDType | ExtendedDType":
        """The dtype of tangents of values of this dtype."""
        return float0 if self._rules is None else self._rules.tangent_dtype(self)

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], NumPyDType]:
        """Return the device shape and NumPy dtype of an array of extended elements."""
        if self._rules is None:
            raise TypeError(f"{type(self).__name__} must define physical(shape)")
        element = self._rules.physical_element_aval(self)
        return (*shape, *element.shape), element.dtype

    def converts_from(self, dtype: object) -> bool:
        """Return whether elements of another dtype may be converted to this one."""
        return self._may_convert("convert_to", dtype, self)

    def converts_to(self, dtype: object) -> bool:
        """Return whether elements of this dtype may be converted to another one."""
        return self._may_convert("convert_from", self, dtype)

    def _may_convert(self, name: str, *dtypes: object) -> bool:
        if self._rules is None:
            return self.converts
        rule = getattr(self._rules, name, None)
        return bool(self._rules.allow_conversion if rule is None else rule(*dtypes))

    def add(self, x: object, y: object) -> Array:
        """Return the sum of two tangents of this dtype, by the rules of its package."""
        return self._rules.add(self, x, y)

    def zero(self) -> Array:
        """Return the zero tangent of this dtype, by the rules of its package."""
        return self._rules.zero(self)

    @property
    def canonical(self) -> str | None:
        """A text of everything that lowering reads from the dtype, or None if there is none."""
        return None

    def wrap(self, data: Array) -> Array:
        """Return the array of extended elements stored in a device array of the physical dtype."""
        raise TypeError(f"{type(self).__name__} must define wrap(data)")

    @property
    def itemsize(self) -> int:
        """The number of bytes per element."""
        shape, dtype = self.physical(())
        return math.prod(shape) * dtype.itemsize

    def __repr__(self) -> str:
        return self.name


class primal_tangent_dtype_scalar(extended):
    """The scalar class of dtypes whose tangents have a dtype of their own."""


class PrimalTangentDType(ExtendedDType):
    """A dtype whose elements are stored as one dtype and whose tangents have another."""

    __slots__ = ("name", "primal_dtype", "tangent_dtype")

    type = primal_tangent_dtype_scalar
    converts = True

    def __init__(self, primal_dtype: NumPyDType, tangent_dtype: NumPyDType, name: str):
        self.primal_dtype = primal_dtype
        self.tangent_dtype = tangent_dtype
        self.name = name

    @property
    def tangent(self) -> NumPyDType:
        return self.tangent_dtype

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], NumPyDType]:
        return shape, self.primal_dtype

    @property
    def canonical(self) -> str:
        return f"{self.name} {self.primal_dtype.name} {self.tangent_dtype.name}"

    def __eq__(self, other: object) -> bool:
        return type(other) is PrimalTangentDType and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[NumPyDType, NumPyDType, str]:
        return self.primal_dtype, self.tangent_dtype, self.name

    def __reduce__(self) -> tuple[object, ...]:
        return PrimalTangentDType, self._fields()


bfloat16: Any = ml_dtypes.bfloat16
# The dtype of tangents of integers, which has no data.
float0: NumPyDType = np.dtype([("float0", np.void, 0)])
bool_: NumPyDType = np.dtype(np.bool_)


def _from_ml_dtypes(*names: str) -> NumPyDTypes:
    # Older releases of ml_dtypes lack some names.
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
# The most frequently used dtypes, defined once for all modules.
int32, int64 = signed_integers[2:]
uint8, _, uint32, uint64 = unsigned_integers
float32, float64 = floats[2:]
complexes: NumPyDTypes = (np.dtype("complex64"), np.dtype("complex128"))
all_dtypes: frozenset[NumPyDType] = frozenset(
    {bool_, *narrow_integers, *signed_integers, *unsigned_integers}.union(
        narrow_floats, floats, complexes
    )
)

# The abstract NumPy classes of ml_dtypes' scalar classes, which only subclass np.generic.
kind_of_class: dict[type, type] = {
    **{dtype.type: np.signedinteger for dtype in narrow_signed},
    **{dtype.type: np.unsignedinteger for dtype in narrow_unsigned},
    **{dtype.type: np.floating for dtype in (*narrow_floats, floats[0])},
}


# ---- numbers with exact dtypes -----------------------------------------------------------------
# Without x64, a user's np.float64 narrows to 32 bits. If an array nevertheless has 64 bits, under
# jax_explicit_x64_dtypes="allow", hlofront's own operands for it must stay at 64 bits.


class _Float64(np.float64):
    __slots__ = ()


class _Complex128(np.complex128):
    __slots__ = ()


class _Int64(np.int64):
    __slots__ = ()


class _UInt64(np.uint64):
    __slots__ = ()


class ExactDTypeArray(np.ndarray[Any, NumPyDType]):
    """A NumPy array that stays at 64 bits when users' NumPy arrays narrow."""


_exact_class: dict[NumPyDType, type[Any]] = {
    np.dtype(class_.__mro__[1]): class_ for class_ in (_Float64, _Complex128, _Int64, _UInt64)
}
exact_dtype_types: frozenset[type] = frozenset({ExactDTypeArray, *_exact_class.values()})


# A NumPy array or scalar.
NumPyArray = np.ndarray[Any, Any]
NumPyValue = NumPyArray | np.bool_ | np.number[Any]


def host_number(value: object, dtype: NumPyDType) -> Any:
    """Return a number as a NumPy scalar of a dtype, which does not narrow without x64.

    For a symbolic size it is a scalar that the traced program computes.
    """
    try:
        if _x64.value:
            return dtype.type(value)
        return _exact_class.get(dtype, dtype.type)(value)
    except (TypeError, InconclusiveDimensionOperation):
        if isinstance(value, SymbolicNumber):
            return value.as_number(dtype)
        raise


@runtime_checkable
class SymbolicNumber(Protocol):
    """A protocol of symbolic sizes, which have no value on the host."""

    def as_number(self, dtype: NumPyDType) -> Any: ...


@overload
def exact_dtype(x: NumPyArray) -> NumPyArray: ...
@overload
def exact_dtype(x: NumPyValue) -> NumPyValue: ...
def exact_dtype(x: NumPyValue) -> NumPyValue:
    """Return a NumPy array or scalar in a form that does not narrow under the current x64 mode."""
    return x if _x64.value else always_exact_dtype(x)


def always_exact_dtype(x: NumPyValue) -> NumPyValue:
    """Return a NumPy array or scalar in a form that never narrows, even if x64 is switched off."""
    class_ = _exact_class.get(x.dtype)
    if class_ is None:
        return x
    return class_(x) if isinstance(x, np.generic) else x.view(ExactDTypeArray)
