"""Python scalars with a dtype that they keep when x64 is switched on or off: TypedInt and others.

They replace Python scalars in differentiated functions: as operands of rules, as residuals, and as
results that are passed through.
"""

from typing import Any, Self

from hlofront.base.dtypes import NumPyDType, check_integer, python_scalar_dtype
from hlofront.bridge.fast_parts import register_typed_scalars
from hlofront.core.aval import ShapedArray, register_value_type


class _TypedScalar:
    """A Python scalar with the dtype of the weakly typed array that it represents."""

    __slots__ = ()
    dtype: NumPyDType
    _plain: Any
    """The Python class that a subclass extends: int, float or complex."""

    def __new__(cls, value: complex, dtype: NumPyDType) -> Self:
        scalar: Self = cls._plain.__new__(cls, value)
        scalar.dtype = dtype
        return scalar

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plain(self)}, dtype={self.dtype.name})"

    def __reduce__(self) -> tuple[type, tuple[complex, NumPyDType]]:
        return type(self), (self._plain(self), self.dtype)


class TypedInt(_TypedScalar, int):
    """An int with a dtype."""

    _plain = int


class TypedFloat(_TypedScalar, float):
    """A float with a dtype."""

    __slots__ = ("dtype",)
    _plain = float

    def __str__(self) -> str:
        return str(float(self))


class TypedComplex(_TypedScalar, complex):
    """A complex number with a dtype."""

    __slots__ = ("dtype",)
    _plain = complex


def _type_of(scalar: Any) -> ShapedArray:
    return ShapedArray((), scalar.dtype, True)


_registered = register_typed_scalars(TypedInt, TypedFloat, TypedComplex)
_typed_class: dict[type, Any] = (
    {int: TypedInt, float: TypedFloat, complex: TypedComplex} if _registered else {}
)
# Python's scalar classes -> the classes with a dtype.
typed_classes: dict[type, type] = {typed: plain for plain, typed in _typed_class.items()}

for _class in _typed_class.values():
    register_value_type(_class, _type_of)


def typed(x: object) -> Any:
    """Return a Python scalar with its dtype; other values are returned unchanged.

    Raises:
      OverflowError: for an integer that the default integer dtype cannot hold.
    """
    plain = type(x)
    class_ = _typed_class.get(plain)
    if class_ is None:
        return x
    if isinstance(x, int):
        check_integer(x)
    return class_(x, python_scalar_dtype(plain))
