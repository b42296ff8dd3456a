"""The shardings that users request for results, in the form that equations' parameters hold.

A parameter `sharding` or `out_sharding` of an equation is None, or a NamedSharding over an
AbstractMesh whose PartitionSpec names only axes of type Explicit.
"""

from collections.abc import Callable, Sequence

from hlofront.base.caches import memoize
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.aval import ShapedArray, Split, cotangent_of, typeof
from hlofront.core.sharding.mesh import AbstractMesh, AxisType, Mesh
from hlofront.core.sharding.mesh_context import context_mesh, get_abstract_mesh
from hlofront.core.sharding.partition import PartitionEntry, PartitionSpec

# The maker of NamedShardings, which a higher layer sets.
_make: Callable[[Mesh | AbstractMesh, PartitionSpec], NamedSharding] | None = None


def plug_in_shardings(make: Callable[[Mesh | AbstractMesh, PartitionSpec], NamedSharding]) -> None:
    """Set the function that makes a NamedSharding; pjrt/shardings.py calls this once."""
    global _make
    _make = make


def named_sharding(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> NamedSharding:
    """Return the NamedSharding over a mesh with or without devices.

    Raises:
      ValueError: if the spec names an axis that the mesh does not have.
    """
    if _make is None:
        raise RuntimeError(
            f"NamedSharding({mesh}, {spec}) cannot be made while hlofront is being imported: use "
            "shardings after `import hlofront` has returned"
        )
    return _make(mesh, spec)


def is_unspecified(sharding: object) -> bool:
    """Return whether a sharding is None or over an empty mesh, as an aval's sharding may be."""
    mesh = getattr(sharding, "mesh", None)
    return sharding is None or (mesh is not None and mesh.empty)


def requested(name: str, sharding: object, argument: str = "out_sharding") -> NamedSharding | None:
    """Return the parameter of an equation for the sharding that a user requests for its result.

    Args:
      name: the name of the operation, for messages.
      sharding: a PartitionSpec over the mesh in context, a NamedSharding, or None.
      argument: the name of the argument, for messages.

    Returns:
      A NamedSharding over an AbstractMesh; None if nothing is requested.

    Raises:
      TypeError: if `sharding` has another type.
      ValueError: for a PartitionSpec without a mesh in context, for a NamedSharding over a mesh
        other than that in context, and for axes that are not of type Explicit.
    """
    if is_unspecified(sharding):
        return None
    mesh: AbstractMesh = get_abstract_mesh()
    if isinstance(sharding, PartitionSpec):
        spec = sharding
        if mesh.empty:
            raise ValueError(
                f"{name} was given the PartitionSpec {spec} for `{argument}`, and no mesh is in "
                "context whose axes it could name: give it a NamedSharding, or put a mesh in "
                "context by jax.set_mesh"
            )
    else:
        own_mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
        if own_mesh is None or not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"`{argument}` of {name} is a PartitionSpec, a NamedSharding or None: got "
                f"{sharding!r} of type {type(sharding).__name__}"
            )
        if not mesh.empty and own_mesh.abstract_mesh is not mesh:
            raise ValueError(
                f"`{argument}` of {name} is over the mesh {own_mesh.abstract_mesh}, and the "
                f"mesh in context is {mesh}: name the axes of the mesh in context by a "
                "PartitionSpec"
            )
        mesh = own_mesh.abstract_mesh
    result = named_sharding(mesh, mesh.spec_in_types(spec))
    for axis in spec.names():
        kind = mesh.axis_types[mesh.axis_names.index(axis)]
        if kind is not AxisType.Explicit:
            raise ValueError(
                f"`{argument}` of {name} names axes of type Explicit, and {axis} of {spec} is of "
                f"type {kind}: arrays are split along axes of type Auto by XLA; use "
                "with_sharding_constraint"
            )
    return result


def over_devices(
    sharding: PartitionSpec | NamedSharding,
) -> NamedSharding | None:
    """Return a sharding over the mesh in context for a PartitionSpec, or one without devices.

    Args:
      sharding: a PartitionSpec, or a NamedSharding over a Mesh or an AbstractMesh.

    Returns:
      A NamedSharding over a Mesh; None if there is none in context. A NamedSharding over a Mesh is
      returned unchanged.

    Raises:
      ValueError: if the spec names an axis that the mesh does not have.
    """
    mesh = None if isinstance(sharding, PartitionSpec) else sharding.mesh
    if isinstance(mesh, Mesh) and not isinstance(sharding, PartitionSpec):
        return sharding
    devices = context_mesh()
    if devices is None or (mesh is not None and devices.abstract_mesh is not mesh):
        return None
    spec = sharding if isinstance(sharding, PartitionSpec) else sharding.spec
    return named_sharding(devices, spec)


def spec_of_rank(spec: PartitionSpec, ndim: int) -> PartitionSpec:
    """Return a spec with an entry for each of `ndim` axes.

    Raises:
      ValueError: if it has entries other than None for further axes.
    """
    entries = spec.partitions
    if any(entry is not None for entry in entries[ndim:]):
        raise ValueError(
            f"{spec} has entries for more axes than an array of rank {ndim} has: leave them out"
        )
    return spec.update(partitions=(*entries[:ndim], *[None] * (ndim - len(entries))))


def of_full_rank(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """Return a sharding whose spec has an entry for each of `ndim` axes, like those of results."""
    if len(sharding.spec) >= ndim:
        return sharding
    return named_sharding(sharding.mesh, spec_of_rank(sharding.spec, ndim))


def split_by(sharding: object) -> Split | None:
    """Return the part of a sharding that belongs to an array's type, or None if there is none."""
    mesh, spec = getattr(sharding, "mesh", None), getattr(sharding, "spec", None)
    if mesh is None or not isinstance(spec, PartitionSpec) or not mesh.explicit_axes:
        return None
    return Split(mesh.abstract_mesh, spec)


def sharding_of(aval: ShapedArray, *neighbors: ArrayLike) -> NamedSharding | None:
    """Return the sharding of an array's type as a parameter of equations.

    Args:
      aval: the type of the array.
      neighbors: values that are on its mesh, if it is split along no axis.

    Returns:
      A NamedSharding with an entry per axis; None if nothing splits any of the arrays and there is
      no mesh in context.
    """
    if aval.split is not None:
        return named_sharding(*aval.split)
    mesh = None
    # Derivatives of code that ran where XLA splits some axes are computed outside of it.
    for value in neighbors:
        mesh = typeof(value).mesh
        if mesh is not None:
            break
    else:
        mesh = get_abstract_mesh()
    return None if mesh.empty else _along_no_axis(mesh, aval.ndim)


@memoize
def _along_no_axis(mesh: AbstractMesh, ndim: int) -> NamedSharding:
    """Return the sharding over a mesh that does not split any axis of an array."""
    return named_sharding(mesh, PartitionSpec(*[None] * ndim))


def cotangent_sharding(aval: ShapedArray, *neighbors: ArrayLike) -> NamedSharding | None:
    """Return the sharding of the cotangents of an array's type as a parameter of equations.

    Args:
      aval: the type of the array.
      neighbors: values that are on its mesh, if it is split along no axis.

    Returns:
      A NamedSharding with an entry per axis; None if nothing splits any of the arrays and there is
      no mesh in context.
    """
    return sharding_of(cotangent_of(aval), *neighbors)


def permuted(sharding: NamedSharding | None, axes: Sequence[int]) -> NamedSharding | None:
    """Return the parameter for a transposed array, whose axis i was axis `axes[i]`."""
    if sharding is None:
        return None
    spec: PartitionSpec = sharding.spec
    if len(axes) == len(spec.partitions) and not any(spec.partitions):
        return sharding
    entries: dict[int, PartitionEntry] = dict(enumerate(spec.partitions))
    return named_sharding(
        sharding.mesh, spec.update(partitions=[entries.get(axis) for axis in axes])
    )


def with_batch_axis(
    sharding: NamedSharding | None, position: int, operand: ArrayLike, axis: int
) -> NamedSharding | None:
    """Return the sharding of a batched result, whose batch axis is split like that of an operand.

    Args:
      sharding: the parameter for the result without the batch axis, or None.
      position: the position of the batch axis in the result.
      operand: a batched operand.
      axis: the position of its batch axis.
    """
    return with_batch_axis_of(sharding, position, (operand,), (axis,))


def with_batch_axis_of(
    sharding: NamedSharding | None, position: int, operands: ArrayLikes, axes: Sequence[int | None]
) -> NamedSharding | None:
    """Return the sharding of a batched result of several operands; see `with_batch_axis`.

    Args:
      sharding: the parameter for the result without the batch axis, or None.
      position: the position of the batch axis in the result.
      operands: the operands.
      axes: the position of the batch axis of each operand; None if it is not batched.
    """
    if sharding is None:
        return None
    spec = sharding.spec
    entries: list[PartitionEntry] = [*spec.partitions, *[None] * (position - len(spec.partitions))]
    batched = [
        entry_of(typeof(operand), axis)
        for operand, axis in zip(operands, axes, strict=True)
        if axis is not None
    ]
    entries.insert(position, next((entry for entry in batched if entry is not None), None))
    return named_sharding(sharding.mesh, spec.update(partitions=entries))


def entry_of(aval: ShapedArray, axis: int) -> PartitionEntry:
    """Return the entry of an array's PartitionSpec for one of its axes."""
    return None if aval.spec is None else aval.spec.partitions[axis]
