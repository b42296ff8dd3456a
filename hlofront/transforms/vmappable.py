"""The registry of types, other than arrays, that vmap maps by rules of their own."""

import functools
from collections.abc import Callable
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Value
from hlofront.core.trace import interpreting_with
from hlofront.primitives.arrays.creation import iota
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.transforms.batch import BatchTrace

# The size of an axis of values of a registered type; its type is registered too.
AxisSize = Any
# The axis of an array, or the spec of a value of a registered type.
AxisSpec = Any


class _Rules(NamedTuple):
    size_type: type
    to_element: Callable[..., Value]
    from_element: Callable[..., Value]


# Where these are called, the class of a value of unknown type is not known.
_rules: dict[type, _Rules] = {}
_spec_types: set[type] = set()
_indices: dict[type, Callable[[AxisSize], Array]] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Value],
    from_elt: Callable[..., Value],
    make_iota: Callable[[AxisSize], Array] | None,
) -> None:
    """Register a type whose values vmap maps by custom rules.

    Args:
      data_type: the type of the values.
      spec_type: the type of their specs in in_axes and out_axes.
      axis_size_type: the type of the axis size, as passed to `vmap(axis_size=)`.
      to_elt: `to_elt(inner, index, value, spec)` returns the element that the mapped function
        receives. `inner(array, axis)` does so for an array, `index()` returns the index of the
        example.
      from_elt: `from_elt(inner, axis_size, element, spec)` returns the batched value of an
        element that the function returned; `inner(axis_size, x, axis)` does so for an array.
      make_iota: a function from the axis size to the indices of examples; None for integers
        from 0.
    """
    _rules[data_type] = _Rules(axis_size_type, to_elt, from_elt)
    _spec_types.add(spec_type)
    if make_iota is not None:
        _indices[axis_size_type] = make_iota


def unregister_vmappable(data_type: type) -> None:
    """Do nothing: a registered type stays registered, as in JAX."""


def is_vmappable(x: object) -> bool:
    """Return whether a value is of a type registered with vmap."""
    return type(x) in _rules


def is_spec(x: object) -> bool:
    """Return whether an in_axes or out_axes entry is a spec of a type registered with vmap."""
    return type(x) in _spec_types


def are_vmappable() -> Callable[[object], bool] | None:
    """Return `is_vmappable` as an `is_leaf` for flattening, or None if no type is registered."""
    return is_vmappable if _rules else None


def to_element(
    trace: BatchTrace,
    size: AxisSize,
    x: Value,
    spec: AxisSpec,
    index_of: Callable[[], Value] | None = None,
) -> Value:
    """Return the element that a mapped function receives of a batched value or array.

    Args:
      trace: the trace of the vmap.
      size: the axis size.
      x: the batched value.
      spec: its axis or spec.
      index_of: a function that returns the example's index; by default it follows from the size.
    """
    rules = _rules.get(type(x))  # pyright: ignore[reportUnknownArgumentType]
    if rules is None:
        return trace.wrap(x, None if spec is None else spec % typeof(x).ndim)

    def index() -> Value:
        make = _indices.get(type(size))  # pyright: ignore[reportUnknownArgumentType]
        with interpreting_with(trace.parent):
            indices = iota("int32", size) if make is None else make(size)
        return trace.wrap(indices, 0)

    inner = functools.partial(to_element, trace, size, index_of=index_of)
    return rules.to_element(inner, index_of or index, x, spec)


def from_element(trace: BatchTrace, size: AxisSize, x: Value, spec: AxisSpec) -> Value:
    """Return the batched value of an element that a mapped function returned."""
    rules = _rules.get(type(x))  # pyright: ignore[reportUnknownArgumentType]
    if rules is not None:
        return rules.from_element(functools.partial(from_element, trace), size, x, spec)
    value, axis = trace.split(x)
    with interpreting_with(trace.parent):
        if axis is None:
            return with_new_axis(value, size, spec % (typeof(value).ndim + 1))
        return move_axis(value, axis, spec % typeof(value).ndim)
