"""Types of values that are no arrays, and that vmap maps all the same: by rules of their own."""

from collections.abc import Callable
from typing import Any, NamedTuple

from hlofront.core.aval import typeof
from hlofront.core.trace import interpreting_with
from hlofront.primitives.batching import move_axis, with_new_axis
from hlofront.primitives.creating import iota
from hlofront.transforms.batch import BatchTrace


class _Rules(NamedTuple):
    size_type: type
    to_element: Callable[..., Any]
    from_element: Callable[..., Any]


_rules: dict[type, _Rules] = {}
_spec_types: set[type] = set()
_indices: dict[type, Callable[[Any], Any]] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[[Any], Any] | None,
) -> None:
    """Let vmap map over values of a type.

    Args:
      data_type: the type of the values.
      spec_type: the type that stands in in_axes and out_axes for such values.
      axis_size_type: the type of the size of the axis; `vmap(axis_size=)` gives the size.
      to_elt: `to_elt(inner, index, value, spec)` gives what the function sees of a value:
        `inner(array, axis)` is what it sees of an array, and `index()` the number of the example.
      from_elt: `from_elt(inner, axis_size, element, spec)` gives the value for what the function
        returned: `inner(axis_size, x, axis)` is an array with the axis.
      make_iota: from the size of the axis to its indices; by default an array from 0 on.
    """
    _rules[data_type] = _Rules(axis_size_type, to_elt, from_elt)
    _spec_types.add(spec_type)
    if make_iota is not None:
        _indices[axis_size_type] = make_iota


def unregister_vmappable(data_type: type) -> None:
    """Do nothing, as in JAX: a registered type stays registered."""


def is_vmappable(x: Any) -> bool:
    """Return whether a value is of a registered type."""
    return type(x) in _rules


def is_spec(x: Any) -> bool:
    """Return whether a spec stands in in_axes and out_axes for values of a registered type."""
    return type(x) in _spec_types


def are_vmappable() -> Callable[[Any], bool] | None:
    """`is_vmappable` where a type is registered, else None: what says which leaves trees have."""
    return is_vmappable if _rules else None


def to_element(trace: BatchTrace, size: Any, x: Any, spec: Any) -> Any:
    """Return what a mapped function sees of a value, or of an array with its axis at `spec`."""
    rules = _rules.get(type(x))
    if rules is None:
        return trace.wrap(x, None if spec is None else spec % typeof(x).ndim)

    def index() -> Any:
        make = _indices.get(type(size))
        with interpreting_with(trace.parent):
            indices = iota("int32", size) if make is None else make(size)
        return trace.wrap(indices, 0)

    return rules.to_element(lambda y, s: to_element(trace, size, y, s), index, x, spec)


def from_element(trace: BatchTrace, size: Any, x: Any, spec: Any) -> Any:
    """The value for what a function that is mapped returned; of an array, one with the axis."""
    rules = _rules.get(type(x))
    if rules is not None:
        return rules.from_element(lambda n, y, s: from_element(trace, n, y, s), size, x, spec)
    value, axis = trace.split(x)
    with interpreting_with(trace.parent):
        if axis is None:
            return with_new_axis(value, size, spec % (typeof(value).ndim + 1))
        return move_axis(value, axis, spec % typeof(value).ndim)
