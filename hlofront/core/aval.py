"""Abstract values (avals): the types of arrays before they exist."""

import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeGuard, cast

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import (
    ExtendedDType,
    array_dtype,
    float0,
    full_name,
    issubdtype,
    python_scalar_dtype,
    short_name,
)
from hlofront.base.elements import exact_dtype_types
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, DType, DTypeLike, NumPyArray, Shape
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.low_types import SingleValue
from hlofront.core.memories import Memories, MemorySpace
from hlofront.core.sharding.manual_axes import SAME, ManualAxisType, names_text
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of


class AbstractValue(SingleValue):
    """An abstract value: the type of a variable in a jaxpr."""

    __slots__ = ()

    # Only values of arrays may differ along manual axes of a mesh.
    manual_axis_type = SAME

    @property
    def mat(self) -> ManualAxisType:
        """The ManualAxisType: the manual mesh axes along which the value varies, and how."""
        return self.manual_axis_type

    def normalize(self) -> "AbstractValue":
        """Return the type without its weak type, if it has one."""
        return self

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        return str(self)

    def to_tangent_aval(self) -> "AbstractValue":
        """Return the aval of the tangents of values of this type."""
        return self

    def to_cotangent_aval(self) -> "AbstractValue":
        return self.to_tangent_aval()

    def at_least_vspace(self) -> "AbstractValue":
        """Return the result of `to_tangent_aval`, under a former name of JAX."""
        return self.to_tangent_aval()


class SupportsAval(Protocol):
    """A protocol of values with an aval: tracers, which stand for arrays."""

    @property
    def aval(self) -> AbstractValue: ...


class ShapedArray(AbstractValue):
    """The type of an array: its shape, its dtype (which may be weak) and its sharding.

    Equal avals are almost always the same object, so that `a is b` decides most comparisons and
    lookups in dictionaries keyed by avals are quick; `==` is right even when they are not.
    """

    __slots__ = (
        "__weakref__",
        "_hash",
        "_tangent",
        "dtype",
        "manual_axis_type",
        "memory_space",
        "mesh",
        "ndim",
        "shape",
        "size",
        "spec",
        "weak_type",
    )

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    memory_space: Memories
    # The mesh and, with an entry per axis, the mesh axes of type Explicit that the array is split
    # along. Both are None for an array that no such axis splits, whichever mesh it is on.
    mesh: AbstractMesh | None
    spec: PartitionSpec | None
    # How the value relates to its copies along the manual axes of the mesh.
    manual_axis_type: ManualAxisType
    ndim: int
    size: int
    _hash: int
    # The tangent aval, computed on first use; None before.
    _tangent: "ShapedArray | None"

    # A NamedSharding over the aval's mesh, or the current one: pjrt/shardings.py sets the property.
    sharding: Any

    def __new__(
        cls,
        shape: Sequence[int],
        dtype: DTypeLike,
        weak_type: bool = False,
        *,
        sharding: "Split | NamedSharding | None" = None,
        memory_space: Memories = MemorySpace.Device,
        manual_axis_type: ManualAxisType = SAME,
    ) -> "ShapedArray":
        if sharding is None and memory_space is _DEVICE and manual_axis_type is SAME:
            try:
                return _interned[shape, dtype, weak_type]
            except (KeyError, TypeError):
                pass
        return _intern(cls, shape, dtype, weak_type, sharding, memory_space, manual_axis_type)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(other) is type(self)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.memory_space is other.memory_space
            and self.mesh is other.mesh
            and self.spec is other.spec
            and self.manual_axis_type is other.manual_axis_type
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        fields = self.shape, self.dtype, self.weak_type, self.memory_space
        return _remade, (*fields, self.mesh, self.spec, self.manual_axis_type)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def update(
        self,
        shape: Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        weak_type: bool | None = None,
        sharding: "Split | NamedSharding | None" = None,
        memory_space: Memories | None = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> "ShapedArray":
        """Return an aval with some fields replaced; None leaves a field unchanged.

        With a new shape and no new sharding, the result is not split along any axis.
        """
        keeps_split = sharding is None and (shape is None or tuple(shape) == self.shape)
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            sharding=self.split if keeps_split else sharding,
            memory_space=self.memory_space if memory_space is None else memory_space,
            manual_axis_type=self.manual_axis_type
            if manual_axis_type is None
            else manual_axis_type,
        )

    @property
    def split(self) -> "Split | None":
        """The mesh and the spec by which Explicit axes split the array, or None."""
        if self.mesh is None or self.spec is None:
            return None
        return Split(self.mesh, self.spec)

    def normalize(self) -> "ShapedArray":
        return self.strip_weak_type()

    def strip_weak_type(self) -> "ShapedArray":
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> "ShapedArray":
        """Return this aval if it is floating or complex, else one of dtype float0."""
        tangent = self._tangent
        if tangent is None:
            dtype = self.dtype
            if issubdtype(dtype, np.inexact):
                tangent = self
            else:
                tangent_dtype = dtype.tangent if isinstance(dtype, ExtendedDType) else float0
                tangent = self.update(dtype=tangent_dtype, weak_type=False)
            self._tangent = tangent
        return tangent

    def to_cotangent_aval(self) -> "ShapedArray":
        """Return the aval of cotangents: unreduced where the value is reduced, and conversely."""
        return cotangent_of(self.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        name = short_name(self.dtype) if short_dtypes else full_name(self.dtype)
        if self.memory_space is not MemorySpace.Device:
            name += f"<{self.memory_space.name.lower()}>"
        if self.spec is None and self.manual_axis_type is SAME:
            return f"{name}[{','.join(map(str, self.shape))}]"
        return f"{name}[{_split_shape_text(self)}]{_manual_text(self)}"

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class Split(NamedTuple):
    """The part of a sharding that belongs to a type: an abstract mesh and a PartitionSpec."""

    mesh: AbstractMesh
    spec: PartitionSpec


_DEVICE = MemorySpace.Device


Avals = Sequence[ShapedArray]


def cotangent_of(aval: ShapedArray) -> ShapedArray:
    """Return an aval with reduced and unreduced axes exchanged, as cotangents have them."""
    spec, manual = aval.spec, aval.manual_axis_type
    if spec is not None and (spec.unreduced or spec.reduced):
        aval = aval.update(sharding=Split(cast(AbstractMesh, aval.mesh), spec.of_cotangent()))
    if manual.unreduced or manual.reduced:
        aval = aval.update(manual_axis_type=manual.to_ct_mat())
    return aval


def spec_of(aval: ShapedArray) -> PartitionSpec:
    """Return the PartitionSpec in the type of an array: P() if nothing splits the array."""
    return PartitionSpec() if aval.spec is None else aval.spec


def _split_shape_text(aval: ShapedArray) -> str:
    """Return the sizes of an array's axes, each with the mesh axes that split it: "8@x,4"."""
    entries = (None,) * aval.ndim if aval.spec is None else aval.spec.partitions
    return ",".join(
        f"{size}@{names_text(axes_of(entry))}" if axes_of(entry) else str(size)
        for size, entry in zip(aval.shape, entries, strict=True)
    )


def _manual_text(aval: ShapedArray) -> str:
    """Return the text after an array's shape: "{V:x}", "{U:y}"."""
    spec, manual = aval.spec, aval.manual_axis_type
    if spec is None or not (spec.unreduced or spec.reduced):
        return manual.short_text()
    return ManualAxisType(
        varying=manual.varying,
        unreduced=manual.unreduced | spec.unreduced,
        reduced=manual.reduced | spec.reduced,
        unreduced_kind=manual.unreduced_kind or spec.unreduced_kind,
    ).short_text()


class AbstractHolder(AbstractValue):
    """The type of a value that holds an array, or will hold it: a reference or a future.

    Attributes:
      inner_aval: the aval of the array.
    """

    __slots__ = ("inner_aval",)

    inner_aval: ShapedArray

    def __init__(self, inner_aval: ShapedArray):
        self.inner_aval = inner_aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> DType:
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        return self.inner_aval.ndim

    def __str__(self) -> str:
        return self.str_short()

    __repr__ = __str__


class AbstractToken(AbstractValue):
    """The type of a token, which orders side effects and carries no data."""

    __slots__ = ()

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        return "Tok"

    def __str__(self) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractToken

    def __hash__(self) -> int:
        return hash(AbstractToken)


token_aval = AbstractToken()

_interned: dict[Hashable, ShapedArray] = {}
# The size at which the table is cleared, to bound memory in programs that keep making new shapes.
_MAX_INTERNED = 1 << 16


def _remade(
    shape: Shape,
    dtype: DType,
    weak_type: bool,
    memory_space: Memories,
    mesh: AbstractMesh | None,
    spec: PartitionSpec | None,
    manual_axis_type: ManualAxisType,
) -> ShapedArray:
    return ShapedArray(
        shape,
        dtype,
        weak_type,
        sharding=None if mesh is None or spec is None else Split(mesh, spec),
        memory_space=memory_space,
        manual_axis_type=manual_axis_type,
    )


def _split_by(sharding: "Split | NamedSharding", shape: tuple[int, ...]) -> Split | None:
    """Return the mesh and the spec that a sharding gives to an aval, or None if nothing splits it.

    Raises:
      ValueError: for a sharding that an aval cannot have.
    """
    mesh, spec = sharding.mesh, sharding.spec
    if type(mesh) is not AbstractMesh:
        raise ValueError(
            "the sharding of an aval is over an AbstractMesh, such as mesh.abstract_mesh: got "
            f"{mesh!r} of type {type(mesh).__name__}"
        )
    if len(spec) > len(shape):
        raise ValueError(
            "the PartitionSpec of an aval has at most an entry for each of its axes: got "
            f"{spec} for the shape {shape}"
        )
    spec = mesh.spec_in_types(spec)
    explicit = mesh.explicit_axes
    entries = [tuple(n for n in axes_of(entry) if n in explicit) for entry in spec.partitions]
    if not any(entries) and not spec.unreduced and not spec.reduced:
        return None
    if spec.unreduced and mesh.auto_axes:
        raise ValueError(
            f"an array of summands is over a mesh without axes of type Auto: got {spec}, and "
            f"{mesh}. Add the summands up first, by jax.sharding.reshard(x, jax.P(...))"
        )
    for axis, (size, names) in enumerate(zip(shape, entries)):
        parts = math.prod(mesh.shape[name] for name in names)
        if not isinstance(size, SymbolicSize) and size % parts:
            raise ValueError(
                f"Sharding spec {names} implies that array axis {axis} is partitioned {parts} "
                f"times, but does not evenly divide the dimension size {size}"
            )
    entries += [()] * (len(shape) - len(entries))
    return Split(mesh, spec.update(partitions=tuple(entries)))


def _intern(
    cls: Any,
    shape: Sequence[int],
    dtype: DTypeLike,
    weak_type: bool,
    sharding: Split | NamedSharding | None,
    memory_space: Memories,
    manual_axis_type: ManualAxisType,
) -> ShapedArray:
    shape = tuple(map(_dimension, shape))
    dtype = _as_dtype(dtype)
    weak_type = bool(weak_type)
    if not isinstance(memory_space, Memories):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"memory_space is one of {', '.join(map(repr, MemorySpace))}: got {memory_space!r}"
        )
    split = None if sharding is None else _split_by(sharding, shape)
    key: tuple[Hashable, ...] = (shape, dtype, weak_type)
    if split or memory_space is not MemorySpace.Device or manual_axis_type is not SAME:
        key = (*key, memory_space, split, manual_axis_type)
    interned = _interned.get(key)
    if interned is not None:
        return interned
    self = object.__new__(cls)
    self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
    self.memory_space = memory_space
    self.mesh, self.spec = split or (None, None)
    self.manual_axis_type = manual_axis_type
    self.ndim = len(shape)
    self.size = math.prod(shape)
    self._hash = hash(key)
    self._tangent = None
    if len(_interned) >= _MAX_INTERNED:
        _interned.clear()
    return _interned.setdefault(key, self)


def _as_dtype(dtype: DTypeLike) -> DType:
    return dtype if isinstance(dtype, ExtendedDType) else np.dtype(dtype)


def _dimension(size: Any) -> Any:
    try:
        return operator.index(size)
    except TypeError:
        if isinstance(size, SymbolicSize):
            return size
        raise


class SymbolicSize:
    """The base class of symbolic sizes, whose values are unknown; see `core/sizes/symbolic.py`."""

    __slots__ = ()


# ---- the aval of any value -------------------------------------------------------------------

# Type -> the function that returns the aval of its values, which makes them valid operands. An
# entry also applies to subclasses. Packages add to the table. The functions return ShapedArrays,
# except for tokens, which only operations on tokens accept.
pytype_aval_mappings: dict[type, Callable[[Any], Any]] = {}
_aval_of_type = pytype_aval_mappings.get


class HostValues(dict[type, Callable[[Any], Any]]):
    """A table from types of host values to functions that convert such a value to an operand.

    An operand is an array, or a NumPy array or scalar. The function of a type also converts values
    of its subclasses; NumPy converts values of types without one. Packages add to the table.
    """

    __slots__ = ()

    def __missing__(self, type_: type) -> Callable[[Any], Any]:
        return self.of(type_) or _canonical

    def of(self, type_: type) -> Callable[[Any], Any] | None:
        """Return the function for a type or its nearest base class, or None if there is none."""
        return next((self.get(base) for base in type_.__mro__ if base in self), None)

    def read(self, x: object) -> Any:
        """Return a value converted by the function for its type, or unchanged if there is none."""
        rule = self.of(x.__class__) if self else None
        return x if rule is None else rule(x)


host_values = HostValues()


def _canonical(x: Any) -> Any:
    """Return a host value as a NumPy array of its aval's dtype; arrays and tracers unchanged."""
    return x if hasattr(x, "aval") else np.asarray(x, typeof(x).dtype)


def register_value_type(type_: type, aval_of: Callable[[Any], AbstractValue]) -> None:
    """Register the aval of values of a type and its subclasses, which makes them valid operands."""
    pytype_aval_mappings[type_] = aval_of


# The functions `aval_of` of types with mutable state: `typeof` accepts their values, but operations
# on arrays do not.
types_of_mutable_values: set[Callable[[Any], Any]] = set()


def is_value(x: object) -> TypeGuard[ArrayLike]:
    """Return whether `x` may be an operand: an array, a tracer, a NumPy array or a scalar."""
    rule = _aval_of_type(type(x)) or _inherited(type(x))
    return rule is not None and rule not in types_of_mutable_values


def typeof(x: ArrayLike | SupportsAval) -> ShapedArray:
    """Return the aval of a value: its shape, dtype and weak type.

    Args:
      x: an array, tracer, NumPy array, Python scalar, or token, whose aval is an AbstractToken.

    Raises:
      TypeError: if x is none of these, or a NumPy array of a dtype that no device supports.
      ValueError: if x has the method `__jax_array__`, which only functions of jax.numpy call.

    Example:
      >>> jax.typeof(jnp.ones((2, 3)))
      ShapedArray(float32[2,3])
    """
    # The class of a value of unknown type is unknown.
    rule = _aval_of_type(type(x)) or _inherited(type(x))  # pyright: ignore[reportUnknownArgumentType]
    if rule is None:
        if getattr(x, "__jax_array__", None) is not None:
            raise ValueError(
                "Triggering __jax_array__() during abstractification is no longer supported. A "
                f"value of {type(x)} is an operand of functions of jax.numpy; elsewhere convert it "
                "by jax.numpy.asarray, or register its class as a pytree."
            )
        raise TypeError(
            f"a value of type {type(x).__module__}.{type(x).__qualname__} is not a valid array "
            f"operand: got {source.shortened(repr(x))}. Wanted an array, a NumPy array or a Python "
            "scalar."
        )
    return rule(x)


def _inherited(type_: type[Any]) -> Callable[[Any], Any] | None:
    """Return the function for values of a type's nearest base class, or None if there is none."""
    for base in type_.__mro__[1:-1]:
        if base in pytype_aval_mappings:
            # Compare the name of the module: importing numpy.ma would be slow.
            if base is np.ndarray and type_.__module__.startswith("numpy.ma"):
                return _no_masked_arrays
            return pytype_aval_mappings[base]
    return None


def _of_python_scalar(x: complex) -> ShapedArray:
    return ShapedArray((), python_scalar_dtype(type(x)), True)


def _no_masked_arrays(x: object) -> ShapedArray:
    raise ValueError(
        "NumPy masked arrays are not valid operands: their masks would be ignored. Fill the masked "
        "elements with arr.filled(value), or work on arr.data and arr.mask."
    )


def _of_bool(x: object) -> ShapedArray:
    return _bool_scalar


def _of_numpy(x: NumPyArray) -> ShapedArray:
    return ShapedArray(x.shape, array_dtype(x.dtype))


def _of_exact_dtype(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


_bool_scalar = ShapedArray((), np.dtype(np.bool_), False)
register_value_type(bool, _of_bool)
for _type in (int, float, complex):
    register_value_type(_type, _of_python_scalar)
register_value_type(np.ndarray, _of_numpy)
register_value_type(np.generic, _of_numpy)
# NumPy's own types are looked up often, so they are listed here: no search of base classes.
for _type in np.ScalarType:
    if issubclass(_type, np.bool_ | np.number):
        register_value_type(_type, _of_numpy)
for _type in exact_dtype_types:
    register_value_type(_type, _of_exact_dtype)
