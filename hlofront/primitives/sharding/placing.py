"""Primitives of placement on devices: device_put, sharding_constraint, argument_sharding."""

# pyright: strict

import enum
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue, ShapedArray, Split
from hlofront.core.aval import MemorySpace as MemorySpace
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects, OwnEffect
from hlofront.core.memories import Memories
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import no_subprograms
from hlofront.core.rules import (
    BatchResult,
    batch,
    batch_with_axis,
    effects,
    infer,
    infers_whole_types,
    jvp,
    subprograms,
    transpose,
)
from hlofront.core.sharding.mesh_context import EMPTY, NO_MESH, get_abstract_mesh, vma_enabled
from hlofront.core.sharding.partition import PartitionSpec, axes_of
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Batched,
    Cotangent,
    Cotangents,
    Duals,
    Operand,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.rules.derivatives import linear
from hlofront.primitives.sharding.families import split_as_first_operand


class CopySemantics(enum.IntEnum):
    """How device_put may use the memory of its operand."""

    REUSE_INPUT = 0
    DONATE_INPUT = 1
    ALWAYS_COPY = 2

    def __repr__(self) -> str:
        return f"ArrayCopySemantics.{self.name}"

    __str__ = __repr__


# Parameters, per operand: the target device or sharding (None: the current or default one), the
# source, and the copy semantics. In a compiled program all values are on its device, so the
# operation does nothing there.
device_put_p = Primitive("device_put", multiple_results=True)
device_put_p.moves_memory = True
infers_whole_types.add(device_put_p)


def device_put(
    operands: Sequence[ArrayLike | Zero],
    devices: Sequence[object],
    srcs: Sequence[object],
    copy_semantics: Sequence[CopySemantics],
) -> list[Array]:
    """Bind device_put, which moves each operand to its device; runtime/array has the public one.

    Args:
      operands: the arrays to move.
      devices: the target device or sharding of each operand, or None.
      srcs: the source device or sharding of each operand, or None; cotangents move back to it.
      copy_semantics: the permitted use of each operand's memory.
    """
    manual = get_abstract_mesh().manual_axes
    if manual:
        if vma_enabled():
            for target in devices:
                _refuse_manual_axes("device_put", target)
        devices = [_without_axes(target, manual) for target in devices]
    return process(
        device_put_p,
        tuple(operands),
        {
            "devices": tuple(devices),
            "srcs": tuple(srcs),
            "copy_semantics": tuple(copy_semantics),
        },
    )


def _refuse_manual_axes(function: str, sharding: Any) -> None:
    """Raise ValueError for a sharding along axes over which shard_map runs the current function."""
    spec = getattr(sharding, "spec", None)
    manual = get_abstract_mesh().manual_axes
    if spec is None or not manual:
        return
    for name in (*spec.names(), *spec.unreduced):
        if name in manual:
            raise ValueError(
                f"the sharding of {function} contains a manual axis, {name!r} of {spec}: inside of "
                "shard_map over it each device has its own part, which this axis does not split"
            )


def _without_axes(sharding: Any, names: Sequence[Hashable]) -> Any:
    """Return a sharding without these mesh axes in its spec."""
    spec = getattr(sharding, "spec", None)
    if spec is None or frozenset(names).isdisjoint(spec.names()):
        return sharding
    entries = [tuple([n for n in axes_of(entry) if n not in names]) for entry in spec.partitions]
    return sharding.update(spec=spec.update(partitions=entries))


def memory_space_of(kind: str | None) -> MemorySpace:
    """Return the memory space of a memory kind, such as "pinned_host"; None is the default kind."""
    return MemorySpace.Host if kind == MemorySpace.Host.value else MemorySpace.Device


def _space_after(aval: ShapedArray, target: object) -> Memories:
    """Return the memory space of a value after device_put to a target."""
    if target is None or target is MemorySpace.Any:
        return aval.memory_space
    if isinstance(target, MemorySpace):
        return target
    # A Format has a sharding; a device stands for its default memory.
    target = getattr(target, "sharding", target)
    return memory_space_of(getattr(target, "memory_kind", None))


@infer(device_put_p)
def _(*avals: ShapedArray, devices: Sequence[object], **_: object) -> list[ShapedArray]:
    return [
        _on(target, aval.update(memory_space=_space_after(aval, target)))
        for aval, target in zip(avals, devices, strict=True)
    ]


def _on(target: Any, aval: ShapedArray) -> ShapedArray:
    """Return the type of an array after device_put to a device or a sharding."""
    mesh = getattr(target, "mesh", None)
    if mesh is not None:
        return aval.update(sharding=Split(mesh.abstract_mesh, target.spec))
    if aval.split is not None and (hasattr(target, "device_set") or hasattr(target, "id")):
        return aval.update(sharding=Split(EMPTY, PartitionSpec()))
    return aval


@jvp(device_put_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    devices: Sequence[object],
    srcs: Sequence[object],
    copy_semantics: Sequence[CopySemantics],
) -> Duals:
    outputs = device_put(primals, devices, srcs, copy_semantics)
    known = [i for i, tangent in enumerate(tangents) if not isinstance(tangent, Zero)]
    results = list(tangents)
    if known:
        moved = device_put(
            [tangents[i] for i in known],
            [devices[i] for i in known],
            [srcs[i] for i in known],
            [copy_semantics[i] for i in known],
        )
        for i, tangent in zip(known, moved, strict=True):
            results[i] = tangent
    return outputs, results


@transpose(device_put_p)
def _(
    cotangents: Sequence[Cotangent],
    *_: Operand,
    devices: Sequence[object],
    srcs: Sequence[object],
    copy_semantics: Sequence[CopySemantics],
) -> Cotangents:
    if CopySemantics.DONATE_INPUT in copy_semantics:
        raise ValueError(
            "device_put with donate=True cannot be transposed: the way back would need the buffer "
            "that was given away. Leave donate out where derivatives are taken."
        )
    known = [i for i, cotangent in enumerate(cotangents) if not isinstance(cotangent, Zero)]
    results = list(cotangents)
    if known:
        moved = device_put(
            [cotangents[i] for i in known],
            [srcs[i] for i in known],
            [devices[i] for i in known],
            [CopySemantics.ALWAYS_COPY] * len(known),
        )
        for i, cotangent in zip(known, moved, strict=True):
            results[i] = cotangent
    return results


@batch(device_put_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    devices: Sequence[object],
    srcs: Sequence[object],
    copy_semantics: Sequence[CopySemantics],
) -> tuple[ArrayLikes, BatchAxes]:
    return device_put(values, devices, srcs, copy_semantics), axes


# ---- constraints ---------------------------------------------------------------------------------

# The identity, whose result has the sharding in the parameters.
sharding_constraint_p = Primitive("sharding_constraint")
linear(sharding_constraint_p)
# It concerns axes of type Auto, which types do not mention.
infers_whole_types.add(sharding_constraint_p)


def sharding_constraint(
    x: ArrayLike, sharding: object, unconstrained_dims: frozenset[int] = frozenset()
) -> Array:
    """Constrain the sharding of an array; `with_sharding_constraint` is the user's interface.

    Args:
      x: the array to constrain.
      sharding: the sharding of the result.
      unconstrained_dims: the axes whose sharding XLA chooses.
    """
    _refuse_manual_axes("a constraint", sharding)
    mesh = get_abstract_mesh()
    params = {
        "sharding": sharding,
        "layout": None,
        "context_mesh": NO_MESH if mesh.empty else mesh,
        "unconstrained_dims": unconstrained_dims,
    }
    return process(sharding_constraint_p, (x,), params)


@infer(sharding_constraint_p)
def _(x: ShapedArray, **_: object) -> ShapedArray:
    return x


@transpose(sharding_constraint_p)
def _(
    cotangent: ArrayLike,
    x: Operand,
    *,
    sharding: object,
    layout: object,
    context_mesh: object,
    unconstrained_dims: frozenset[int],
) -> Cotangents:
    return [sharding_constraint(cotangent, sharding, unconstrained_dims)]


@batch_with_axis(sharding_constraint_p)
def _(
    axis_data: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    sharding: object,
    layout: object,
    context_mesh: object,
    unconstrained_dims: frozenset[int],
) -> Batched:
    """Constrain a batched value; vmap's spmd_axis_name, or else XLA, shards its batch axis."""
    (x,), (axis,) = values, axes
    if axis is None:
        return sharding_constraint(x, sharding, unconstrained_dims), None
    sharding, unconstrained_dims = _batched(axis_data, axis, sharding, unconstrained_dims)
    return sharding_constraint(x, sharding, unconstrained_dims), axis


def _batched(
    axis_data: AxisData, axis: int, sharding: Any, unconstrained_dims: frozenset[int]
) -> tuple[object, frozenset[int]]:
    """Return the sharding of a batched value, and the axes whose sharding XLA chooses."""
    names = axis_data.spmd_name
    if names and not hasattr(sharding, "spec"):
        raise ValueError(
            f"vmap with spmd_axis_name={names} splits its axis along axes of a mesh, and the "
            f"constraint inside, {sharding}, has no mesh: give it a NamedSharding, or leave "
            "spmd_axis_name out"
        )
    moved = frozenset(dim + (dim >= axis) for dim in unconstrained_dims)
    if not names and hasattr(sharding, "spec"):
        moved |= {axis}
    # A sharding without `with_axis` is of a single device, and also fits the batched value.
    if hasattr(sharding, "with_axis"):
        sharding = sharding.with_axis(axis, names)
    return sharding, moved


# The identity on an argument of a jitted function that has this sharding in its in_shardings. In a
# program it is a constraint. Outside programs, as under grad or vmap, it does what calls of the
# jitted function do: it moves an argument that has this sharding on other devices, and refuses one
# that is split differently. With `from_anywhere`, as for jit(device=), it moves any argument.
argument_sharding_p = Primitive("argument_sharding")
linear(argument_sharding_p)
infers_whole_types.add(argument_sharding_p)


def argument_sharding(
    x: ArrayLike,
    name: str,
    sharding: object,
    from_anywhere: bool,
    unconstrained_dims: frozenset[int] = frozenset(),
) -> Array:
    """Return an argument of a jitted function with the sharding in the function's in_shardings.

    Args:
      x: the argument.
      name: its name in messages.
      sharding: the sharding.
      from_anywhere: whether to also move an argument that is split differently.
      unconstrained_dims: the axes whose sharding XLA chooses inside a program.
    """
    _refuse_manual_axes(name, sharding)
    params = {
        "name": name,
        "sharding": sharding,
        "from_anywhere": from_anywhere,
        "unconstrained_dims": unconstrained_dims,
    }
    return process(argument_sharding_p, (x,), params)


@infer(argument_sharding_p)
def _(x: ShapedArray, **_: object) -> ShapedArray:
    return x


@transpose(argument_sharding_p)
def _(
    cotangent: ArrayLike,
    x: Operand,
    *,
    name: str,
    sharding: object,
    from_anywhere: bool,
    unconstrained_dims: frozenset[int],
) -> Cotangents:
    return [sharding_constraint(cotangent, sharding, unconstrained_dims)]


@batch_with_axis(argument_sharding_p)
def _(
    axis_data: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    name: str,
    sharding: object,
    from_anywhere: bool,
    unconstrained_dims: frozenset[int],
) -> Batched:
    (x,), (axis,) = values, axes
    if axis is not None:
        sharding, unconstrained_dims = _batched(axis_data, axis, sharding, unconstrained_dims)
    return argument_sharding(x, name, sharding, from_anywhere, unconstrained_dims), axis


# ---- layouts -------------------------------------------------------------------------------------


if TYPE_CHECKING:
    from typing import Self


class MemoryOrder(Protocol):
    """The protocol of layouts, whose class is in pjrt/layouts.py."""

    @property
    def major_to_minor(self) -> tuple[int, ...]: ...
    def mode(self, aval: ShapedArray, what: str) -> str:
        """Return the layout in XLA's notation; raise ValueError if it does not fit the aval."""
        ...

    def with_axis(self, axis: int) -> "Self":
        """Return the layout of arrays with a new axis, whose stride is the largest."""
        ...


layout_constraint_p = Primitive("layout_constraint")
split_as_first_operand(layout_constraint_p)


def layout_constraint(x: ArrayLike, layout: MemoryOrder) -> Array:
    """Return an array whose elements XLA lays out in memory by a layout at this point.

    Raises:
      ValueError: if the layout does not fit the array's axes.
    """
    return process(layout_constraint_p, (x,), {"layout": layout})


@infer(layout_constraint_p)
def _(x: ShapedArray, *, layout: MemoryOrder) -> ShapedArray:
    layout.mode(x, "the value of with_layout_constraint")
    return x


# Cotangents have the layout of the values.
def _transpose(cotangent: ArrayLike, x: Operand, *, layout: MemoryOrder) -> list[Cotangent]:
    return [layout_constraint(cotangent, layout)]


linear(layout_constraint_p, _transpose)


@batch(layout_constraint_p)
def _(values: ArrayLikes, axes: BatchAxes, *, layout: MemoryOrder) -> BatchResult:
    (x,), (axis,) = values, axes
    return layout_constraint(x, layout if axis is None else layout.with_axis(axis)), axis


# ---- inspection ----------------------------------------------------------------------------------


class InspectionEffect(OwnEffect):
    """The effect of inspecting a sharding, which happens when a program is compiled."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is InspectionEffect

    def __hash__(self) -> int:
        return hash(InspectionEffect)

    def __str__(self) -> str:
        return "ShardingInspection"


_inspection_effect = InspectionEffect()

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, carries_programs=True)
subprograms(inspect_sharding_p)(no_subprograms)


@infer(inspect_sharding_p)
def _(x: ShapedArray, **_: object) -> list[ShapedArray]:
    return []


@effects(inspect_sharding_p)
def _(x: AbstractValue, **_: object) -> Effects:
    return frozenset({_inspection_effect})


@jvp(inspect_sharding_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    return process(inspect_sharding_p, tuple(primals), params), []


@transpose(inspect_sharding_p)
def _(cotangents: Sequence[Cotangent], x: Operand, **_: object) -> Cotangents:
    return [None]


# The callback sees the sharding of the batch.
@batch(inspect_sharding_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    return process(inspect_sharding_p, tuple(values), params), []
