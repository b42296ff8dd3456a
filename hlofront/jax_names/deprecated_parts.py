"""Functions, classes and tables behind deprecated names of JAX."""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.errors import ConcretizationTypeError, TracerBoolConversionError
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, Shape
from hlofront.bridge.client import HloSharding
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.sharding.mesh import Mesh, entered_mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.trace import Tracer
from hlofront.higher_order.calls.call_primitive import call_p
from hlofront.lowering.extension.modules import MeshAxisName
from hlofront.runtime.array.assembling import make_array_from_single_device_arrays

# ---- jax.core ------------------------------------------------------------------------------------

OutputType = tuple[AbstractValue, ...]
no_axis_name = object()
call = call_p.bind


class JaxprPpSettings(NamedTuple):
    """The options of JAX's printing of jaxprs."""

    print_shapes: bool = True
    source_info: bool = False
    name_stack: bool = False
    custom_pp_eqn_rules: bool = True
    print_effects: bool = False


class JaxprPpContext:
    """The names that JAX's printing of jaxprs has used.

    Attributes:
      var_names: the name of each variable.
      shared_jaxprs: the name of each jaxpr that is used several times and printed once.
      shared_jaxpr_names: the names of these jaxprs.
    """

    def __init__(self):
        self.var_names: dict[Any, str] = {}
        self.shared_jaxprs: MutableMapping[Any, str] = {}
        self.shared_jaxpr_names: set[str] = set()


def is_concrete(x: object) -> bool:
    """Return whether the elements of a value are known."""
    return not isinstance(x, Tracer) or x.to_concrete_value() is not None


def is_constant_dim(d: object) -> bool:
    """Return whether a size is a known integer."""
    if not is_concrete(d):
        return False
    size: Any = d
    try:
        return isinstance(size.__index__(), int)
    except (AttributeError, TypeError, ValueError):
        return False


def is_constant_shape(s: Shape) -> bool:
    """Return whether all sizes of a shape are known integers."""
    return all(map(is_constant_dim, s))


def concretization_function_error(
    fun: Callable[..., object], suggest_astype: bool = False
) -> Callable[..., None]:
    """Return a function that raises the error for a tracer where `fun` needs a known value.

    Args:
      fun: a function such as `float`.
      suggest_astype: whether the message suggests `x.astype(fun)`.
    """
    name = getattr(fun, "__name__", fun)
    advice = f" To convert its dtype, use x.astype({name})." if suggest_astype else ""
    kind = TracerBoolConversionError if fun is bool else ConcretizationTypeError

    def error(self: object, arg: object) -> None:
        raise kind(f"The problem arose with the `{name}` function, of {arg}.{advice}")

    return error


# ---- jax.interpreters.pxla -----------------------------------------------------------------------

Index = int | slice | tuple[int | slice, ...]
ArrayMapping = OrderedDict[MeshAxisName, int]


class _Environment(NamedTuple):
    physical_mesh: Mesh


class _ThreadResources:
    """The mesh of the innermost `with mesh:` block, as `thread_resources.env.physical_mesh`."""

    @property
    def env(self) -> _Environment:
        return _Environment(entered_mesh() or Mesh(np.empty((), object), ()))


thread_resources = _ThreadResources()


def is_hlo_sharding_replicated(hc: HloSharding) -> bool:
    """Return whether each device has the whole array."""
    sharding: Any = hc
    return sharding.num_devices() == 1 or sharding.is_replicated()


def are_hlo_shardings_equal(hc1: HloSharding, hc2: HloSharding) -> bool:
    """Return whether two shardings split arrays in the same way."""
    return (is_hlo_sharding_replicated(hc1) and is_hlo_sharding_replicated(hc2)) or hc1 == hc2


def op_sharding_to_indices(
    op_sharding: HloSharding, shape: Shape, num_devices: int
) -> tuple[tuple[slice, ...], ...]:
    """Return the part of an array that each device holds.

    Args:
      op_sharding: the sharding.
      shape: the shape of the array.
      num_devices: the number of devices.

    Returns:
      A tuple of slices per device.
    """
    sharding: Any = op_sharding
    whole = (slice(None),) * len(shape)
    if is_hlo_sharding_replicated(op_sharding):
        return (whole,) * num_devices
    counts: Sequence[int] = sharding.tile_assignment_dimensions()
    parts = np.prod(counts[: len(shape)], dtype=int)
    devices = np.reshape(sharding.tile_assignment_devices(), (parts, -1))
    indices: list[tuple[slice, ...]] = [whole] * num_devices
    for position, own in zip(np.ndindex(*counts[: len(shape)]), devices, strict=True):
        index = tuple(
            slice(None) if count == 1 else slice(i * size // count, (i + 1) * size // count)
            for i, count, size in zip(position, counts, shape, strict=False)
        )
        for device in own:
            indices[device] = index
    return tuple(indices)


def array_mapping_to_axis_resources(array_mapping: object) -> PartitionSpec:
    """Return the spec for a mapping from the axes of a mesh to axes of an array."""
    if not array_mapping:
        return PartitionSpec()
    entries: list[list[Any]] = [[] for _ in range(1 + max(array_mapping.values()))]
    for name, axis in array_mapping.items():
        entries[axis].append(name)
    return PartitionSpec(*[own[0] if len(own) == 1 else tuple(own) or None for own in entries])


# A function of the type, sharding and whether the array is committed, which returns a function of
# the arrays on the devices: by the class of the type.
ResultHandler = Callable[[Any, Any, bool], Callable[[Sequence[Array]], Any]]


def _assembled(
    aval: ShapedArray, sharding: object, committed: bool
) -> Callable[[Sequence[Array]], Array]:
    return lambda parts: make_array_from_single_device_arrays(aval.shape, sharding, parts)


global_result_handlers: dict[type[AbstractValue], ResultHandler] = {ShapedArray: _assembled}


def global_aval_to_result_handler(
    aval: AbstractValue, out_sharding: object, committed: bool
) -> Callable[[Sequence[Array]], Any]:
    """Return the function that makes a result from its shards.

    Raises:
      TypeError: if there is no handler for the class of the type.
    """
    handler = global_result_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"No pxla_result_handler for type: {type(aval)}")
    return handler(aval, out_sharding, committed)


@dataclasses.dataclass(eq=False)
class _ResultsHandler:
    """Handlers for several results as one function, which takes each result's list of shards."""

    handlers: Sequence[Callable[[Sequence[Array]], Any]]
    out_shardings: Sequence[Any]
    out_avals: Sequence[AbstractValue]

    def __call__(self, out_bufs: Sequence[Sequence[Array]]) -> list[Any]:
        return [handler(parts) for handler, parts in zip(self.handlers, out_bufs, strict=True)]


def global_avals_to_results_handler(
    global_out_avals: Sequence[AbstractValue], shardings: Sequence[object], committed: bool
) -> _ResultsHandler:
    """Return the function that makes several results from their shards."""
    handlers = [
        global_aval_to_result_handler(aval, sharding, committed)
        for aval, sharding in zip(global_out_avals, shardings, strict=True)
    ]
    return _ResultsHandler(handlers, shardings, global_out_avals)
