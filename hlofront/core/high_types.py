"""Types of values that consist of several arrays, as other packages define them: hijax.

A value of such a type is a pytree of its low values: programs hold the low values, and functions
that are traced see values of the user's class again.
"""

# pyright: strict

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree_nodes import register_pytree_node
from hlofront.core.aval import AbstractValue, pytype_aval_mappings, types_of_mutable_values
from hlofront.core.sharding.partition import PartitionSpec


def _must_override(what: object, method: str) -> AssertionError:
    return AssertionError(f"{type(what).__name__} must override {method}")


class HiType(AbstractValue):
    """The base class of types of values that consist of several arrays.

    Subclasses define `lo_ty`, `lower_val` and `raise_val`, and `__eq__` and `__hash__`, as frozen
    dataclasses have them.
    """

    is_high = True
    has_qdd = False

    def lo_ty(self) -> list[AbstractValue]:
        """Return the types of the low values."""
        raise _must_override(self, "lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the low values of a value."""
        raise _must_override(self, "lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value that consists of these low values."""
        raise _must_override(self, "raise_val")

    def to_tangent_aval(self) -> Any:
        """Return the type of the tangents of values of this type."""
        raise _must_override(self, "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """Return the type of the cotangents of values of this type."""
        return self.to_tangent_aval()

    def inc_rank(self, size: int | None, spec: Any) -> "HiType":
        """Return the type of a batch of values.

        Args:
          size: the number of values.
          spec: the batch axis of the low values.
        """
        raise _must_override(self, "inc_rank")

    def dec_rank(self, size: int | None, spec: Any) -> "HiType":
        """Return the type of one value of a batch of this type.

        Args:
          size: the number of values.
          spec: the batch axis of the low values.
        """
        raise _must_override(self, "dec_rank")


class MappingSpec:
    """The base class of specs of how the values of a HiType form a batch.

    Rules pass them to the methods `inc_rank` and `dec_rank` of the type. They cannot be `in_axes`
    of `vmap`, which maps the low values of high ones over integer axes.
    """


class HiPspec:
    """The base class of the specs by which `shard_map` splits values of a HiType.

    Subclasses define `to_lo`, `to_tangent_spec` and `to_ct_spec`.
    """

    def to_lo(self) -> tuple[PartitionSpec, ...]:
        """Return the spec of each low value that a value of the high type consists of."""
        raise _must_override(self, "to_lo")

    def to_tangent_spec(self) -> "HiPspec":
        """Return the spec for the tangents of a value that has this spec."""
        raise _must_override(self, "to_tangent_spec")

    def to_ct_spec(self) -> "HiPspec":
        """Return the spec for the cotangents of a value that has this spec."""
        raise _must_override(self, "to_ct_spec")


def low_types(types: Iterable[AbstractValue]) -> list[AbstractValue]:
    """Return the types of the low values that values of these types consist of."""
    return [low for t in types for low in (t.lo_ty() if isinstance(t, HiType) else [t])]


def lowered(types: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return the low values that values of these types consist of: for an array, the array."""
    pairs = zip(types, values, strict=True)
    return [low for t, x in pairs for low in (t.lower_val(x) if isinstance(t, HiType) else [x])]


def raised(types: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """Return the values of these types that consist of these low values."""
    low = iter(values)
    return [
        t.raise_val(*(next(low) for _ in t.lo_ty())) if isinstance(t, HiType) else next(low)
        for t in types
    ]


class MutableHiType(AbstractValue):
    """The base class of types of values with a state that operations change.

    The state is a user's object that holds the types and the structure of the low values.
    Values have a method `cur_qdd` that returns it. Subclasses define the methods below, `__eq__`
    and `__hash__`; types whose values never change state set `has_qdd = False`.
    """

    is_high = True
    has_qdd = True
    # Whether values are only written to; hlofront treats both kinds alike.
    is_writer = False

    def lo_ty_qdd(self, state: Any, /) -> list[AbstractValue]:
        """Return the types of the low values of a value in this state."""
        raise _must_override(self, "lo_ty_qdd")

    def lo_ty(self) -> list[AbstractValue]:
        """Raise AssertionError: the types of the low values depend on the state."""
        raise AssertionError(f"{type(self).__name__} has the method lo_ty_qdd instead of lo_ty")

    def new_from_loval(self, state: Any, /, *vals: Any) -> Any:
        """Return a new value in this state that holds these low values."""
        raise _must_override(self, "new_from_loval")

    def read_loval(self, state: Any, val: Any, /) -> list[Any]:
        """Return the low values of a value in this state."""
        raise _must_override(self, "read_loval")

    def update_from_loval(self, state: Any, val: Any, /, *lo_vals: Any) -> None:
        """Set the state and the low values of a value."""
        raise _must_override(self, "update_from_loval")

    def to_tangent_aval(self) -> Any:
        """Return the type of the tangents of values of this type."""
        raise _must_override(self, "to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """Return the type of the cotangents of values of this type."""
        return self.to_tangent_aval()


class AvalQDD(NamedTuple):
    """A type, together with the current state of a value of that type."""

    aval: AbstractValue
    qdd: object


class AvalMutableQDD(NamedTuple):
    """A type, together with the state of a value, which operations on the value change."""

    aval: AbstractValue
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A method of values, in the class of their type."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """A property of values, in the class of their type."""

    fget: Callable[[Any], Any]


# The registered classes of values that have a state.
_mutable_classes: set[type] = set()


def mutable_types_exist() -> bool:
    """Return whether a class of values that have a state is registered."""
    return bool(_mutable_classes)


def is_mutable(x: object) -> bool:
    """Return whether the type of a value is a MutableHiType."""
    return bool(_mutable_classes) and not _mutable_classes.isdisjoint(type(x).__mro__)


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Register a class of values that consist of several arrays.

    Its values may be operands of `HiPrimitive`s, and arguments and results of functions that are
    transformed, where they are pytrees of their low values. Values of a class with the method
    `cur_qdd` have a state, and are not pytrees: their type is a MutableHiType.

    Args:
      val_cls: the class.
      typeof_fn: returns the type of a value, a HiType or a MutableHiType.
    """
    pytype_aval_mappings[val_cls] = typeof_fn
    if hasattr(val_cls, "cur_qdd"):
        _mutable_classes.add(val_cls)
        types_of_mutable_values.add(typeof_fn)
        return

    def flatten(value: Any) -> tuple[Sequence[Any], AbstractValue]:
        type_ = typeof_fn(value)
        if not isinstance(type_, HiType):
            raise TypeError(
                f"a value of type {type_} has a state, and its class {val_cls.__name__} no method "
                "cur_qdd that returns it: define one"
            )
        return type_.lower_val(value), type_

    register_pytree_node(val_cls, flatten, lambda type_, low: type_.raise_val(*low))
