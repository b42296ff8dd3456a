"""Abstract values (avals): the types of arrays before they exist."""

import enum
import math
import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import (
    ExtendedDType,
    array_dtype,
    float0,
    issubdtype,
    python_scalar_dtype,
    short_name,
)
from hlofront.base.elements import exact_dtype_types
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.mesh import AbstractMesh


class MemorySpace(enum.Enum):
    """The kinds of memory that a device uses: its own, and that of its host."""

    Device = "device"
    Host = "pinned_host"
    Any = "any"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


class AbstractValue:
    """An abstract value: the type of a variable in a jaxpr."""

    __slots__ = ()

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        return str(self)

    def to_tangent_aval(self) -> "AbstractValue":
        """Return the aval of the tangents of values of this type."""
        return self

    def to_cotangent_aval(self) -> "AbstractValue":
        return self.to_tangent_aval()


class SupportsAval(Protocol):
    """A protocol of values with an aval: tracers, which stand for arrays."""

    @property
    def aval(self) -> AbstractValue: ...


class ShapedArray(AbstractValue):
    """The shape and dtype of an array, and whether its dtype is weak.

    Equal avals are almost always the same object, so that `a is b` decides most comparisons and
    dictionaries keyed by avals are quick; `==` stays right when they are not.
    """

    __slots__ = (
        "__weakref__",
        "_hash",
        "_tangent",
        "dtype",
        "memory_space",
        "ndim",
        "shape",
        "size",
        "weak_type",
    )

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    memory_space: MemorySpace
    ndim: int
    size: int
    _hash: int
    # The tangent aval, computed on first use; None before.
    _tangent: "ShapedArray | None"

    # A sharding that is replicated: types have no sharding, as mesh axes are of type Auto.
    # pjrt/shardings.py sets the property.
    sharding: Any

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: Any = False,
        *,
        sharding: Any = None,
        memory_space: MemorySpace = MemorySpace.Device,
    ) -> "ShapedArray":
        if sharding is not None:
            _check_sharding(sharding, shape)
        if memory_space is not MemorySpace.Device:
            return _intern(cls, shape, dtype, weak_type, memory_space)
        try:
            return _interned[shape, dtype, weak_type]
        except (KeyError, TypeError):
            return _intern(cls, shape, dtype, weak_type, memory_space)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(other) is type(self)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.memory_space is other.memory_space
        )

    def __hash__(self):
        return self._hash

    def __reduce__(self):
        return _remade, (self.shape, self.dtype, self.weak_type, self.memory_space)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def update(
        self,
        shape: Any = None,
        dtype: Any = None,
        weak_type: bool | None = None,
        sharding: Any = None,
        memory_space: MemorySpace | None = None,
    ) -> "ShapedArray":
        """Return an aval with some fields replaced; None leaves a field unchanged."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            sharding=sharding,
            memory_space=self.memory_space if memory_space is None else memory_space,
        )

    def strip_weak_type(self) -> "ShapedArray":
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> "ShapedArray":
        """Return this aval if it is floating or complex, else one of dtype float0."""
        tangent = self._tangent
        if tangent is None:
            inexact = issubdtype(self.dtype, np.inexact)
            tangent = self if inexact else self.update(dtype=float0, weak_type=False)
            self._tangent = tangent
        return tangent

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        name = short_name(self.dtype) if short_dtypes else _dtype_name(self.dtype)
        if self.memory_space is not MemorySpace.Device:
            name += f"<{self.memory_space.name.lower()}>"
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self):
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class AbstractToken(AbstractValue):
    """The type of a token, which orders side effects and carries no data."""

    __slots__ = ()

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        return "Tok"

    def __str__(self):
        return "Tok"

    def __repr__(self):
        return "AbstractToken()"

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractToken

    def __hash__(self):
        return hash(AbstractToken)


token_aval = AbstractToken()

_interned: dict[Any, ShapedArray] = {}
# The size at which the table is cleared: a memory bound for programs of ever new shapes.
_MOST_INTERNED = 1 << 16


def _remade(shape: Any, dtype: Any, weak_type: bool, memory_space: MemorySpace) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, memory_space=memory_space)


def _check_sharding(sharding: Any, shape: Any) -> None:
    """Raise ValueError for a sharding that an aval cannot have."""
    if type(sharding.mesh) is not AbstractMesh:
        raise ValueError(
            "the sharding of an aval is over an AbstractMesh, such as mesh.abstract_mesh: got "
            f"{sharding.mesh!r} of type {type(sharding.mesh).__name__}"
        )
    if sharding.mesh.explicit_axes:
        raise ValueError(
            f"types of arrays do not say how they are split, and {sharding.mesh!r} has axes of "
            "type Explicit: make it of axes of type Auto"
        )
    if len(sharding.spec) != len(shape):
        raise ValueError(
            "the PartitionSpec of an aval has an entry for each of its axes: got "
            f"{sharding.spec} for the shape {tuple(shape)}"
        )


def _intern(cls: Any, shape: Any, dtype: Any, weak_type: Any, memory_space: Any) -> ShapedArray:
    shape = tuple(map(_dimension, shape))
    dtype = _as_dtype(dtype)
    weak_type = bool(weak_type)
    if not isinstance(memory_space, MemorySpace):
        raise TypeError(
            f"memory_space is one of {', '.join(map(repr, MemorySpace))}: got {memory_space!r}"
        )
    key: tuple[Any, ...] = (shape, dtype, weak_type)
    if memory_space is not MemorySpace.Device:
        key = (*key, memory_space)
    interned = _interned.get(key)
    if interned is not None:
        return interned
    self = object.__new__(cls)
    self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
    self.memory_space = memory_space
    self.ndim = len(shape)
    self.size = math.prod(shape)
    self._hash = hash(key)
    self._tangent = None
    if len(_interned) >= _MOST_INTERNED:
        _interned.clear()
    return _interned.setdefault(key, self)


def _as_dtype(dtype: Any) -> DType:
    return dtype if isinstance(dtype, ExtendedDType) else np.dtype(dtype)


def _dimension(size: Any) -> Any:
    try:
        return operator.index(size)
    except TypeError:
        if isinstance(size, SymbolicSize):
            return size
        raise


class SymbolicSize:
    """The base class of symbolic sizes, whose values are unknown; see `export/symbolic.py`."""

    __slots__ = ()


def _dtype_name(dtype: Any) -> str:
    return "float0" if dtype == float0 else dtype.name


# ---- the aval of any value -------------------------------------------------------------------

# The functions return ShapedArrays, but for tokens, which only operations on tokens ask about.
_aval_of_type: dict[type, Callable[[Any], Any]] = {}


def register_value_type(type_: type, aval_of: Callable[[Any], AbstractValue]) -> None:
    """Register the aval of values of a type and its subclasses, which makes them valid operands."""
    _aval_of_type[type_] = aval_of


def is_value(x: object) -> TypeGuard[ArrayLike]:
    """Return whether `x` may be an operand: an array, a tracer, a NumPy array or a scalar."""
    return _aval_rule(type(x)) is not None


def typeof(x: ArrayLike | SupportsAval) -> ShapedArray:
    """Return the aval of an array, tracer, NumPy array or Python scalar.

    Operations on tokens ask for the aval of a token, which is an AbstractToken.

    Raises:
      TypeError: for anything else, and for NumPy arrays of dtypes that no device has.
    """
    # The class of a value of unknown type is unknown.
    rule = _aval_of_type.get(type(x)) or _aval_rule(type(x))  # pyright: ignore[reportUnknownArgumentType]
    if rule is None:
        raise TypeError(
            f"a value of type {type(x).__module__}.{type(x).__qualname__} is not a valid array "
            f"operand: got {source.shortened(repr(x))}. Wanted an array, a NumPy array or a Python "
            "scalar."
        )
    return rule(x)


def _aval_rule(type_: type[Any]) -> Callable[[Any], Any] | None:
    rule = _aval_of_type.get(type_)
    if rule is None:
        for base in type_.__mro__[1:-1]:
            if base in _aval_of_type:
                rule = _aval_of_type[base]
                # Compare the name of the module: importing numpy.ma costs more than this floor.
                if base is np.ndarray and type_.__module__.startswith("numpy.ma"):
                    rule = _no_masked_arrays
                _aval_of_type[type_] = rule
                break
    return rule


def _of_python_scalar(x: complex) -> ShapedArray:
    return ShapedArray((), python_scalar_dtype(type(x)), True)


def _no_masked_arrays(x: Any) -> ShapedArray:
    raise ValueError(
        "NumPy masked arrays are no operands: their masks would be ignored. Fill the masked "
        "elements with arr.filled(value), or work on arr.data and arr.mask."
    )


def _of_bool(x: Any) -> ShapedArray:
    return _bool_scalar


def _of_numpy(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, array_dtype(x.dtype))


def _of_exact_dtype(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


_bool_scalar = ShapedArray((), np.dtype(np.bool_), False)
register_value_type(bool, _of_bool)
for _type in (int, float, complex):
    register_value_type(_type, _of_python_scalar)
register_value_type(np.ndarray, _of_numpy)
register_value_type(np.generic, _of_numpy)
for _type in exact_dtype_types:
    register_value_type(_type, _of_exact_dtype)
