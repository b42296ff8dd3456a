"""The specs of shard_map: expanded from pytree prefixes, checked against arrays and the mesh."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.core.aval import AbstractValue, ShapedArray, SymbolicSize
from hlofront.core.futures import AbstractFuture
from hlofront.core.high_types import HiPspec
from hlofront.core.references import AbstractRef
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.partition import PartitionSpec, UnreducedKind, axes_of


def check_are_specs(specs: object, name: str) -> None:
    """Raise TypeError if a leaf of `specs` is not a PartitionSpec, a HiPspec or None."""
    for path, leaf in _low_specs(specs):
        if leaf is not None and type(leaf) is not PartitionSpec:
            raise TypeError(
                f"shard_map {name} argument must be a pytree of `jax.sharding.PartitionSpec` "
                f"instances, but {name}{tree.keystr(path)} is {leaf!r} of type "
                f"{type(leaf).__name__}: write PartitionSpec('i') to split along the mesh axis 'i',"
                " and PartitionSpec() for what no axis splits"
            )


def _low_specs(specs: object) -> Iterator[tuple[tree.KeyPath, Any]]:
    """Yield the key path and spec of each leaf, and of each low value of the spec of a HiType."""
    for path, leaf in tree.tree_leaves_with_path(specs, is_leaf=is_none):
        for spec in leaf.to_lo() if isinstance(leaf, HiPspec) else (leaf,):
            yield path, spec


def check_names(specs: object, name: str, manual_axes: frozenset[object]) -> None:
    """Raise ValueError if a spec among the leaves of `specs` names an axis that is not manual."""
    for path, spec in _low_specs(specs):
        if spec is None:
            continue
        for axis in (*spec.names(), *spec.unreduced, *spec.reduced):
            if axis not in manual_axes:
                listed = ", ".join(sorted(map(repr, manual_axes)))
                raise ValueError(
                    f"shard_map {name} argument must refer to an axis marked as manual, one of "
                    f"{listed}, but {name}{tree.keystr(path)} refers to {axis!r}"
                )


def check_sums(specs: object, name: str, mesh: Mesh | AbstractMesh) -> None:
    """Raise ValueError for `unreduced` or `reduced` over a mesh with axes that are not Explicit."""
    if len(mesh.explicit_axes) == len(mesh.axis_names):
        return
    for path, spec in _low_specs(specs):
        if spec is None:
            continue
        kind = "unreduced" if spec.unreduced else "reduced"
        if getattr(spec, kind):
            raise ValueError(
                f"{kind} in {name} {spec} can only be used when all axes of the mesh are of type "
                f"`Explicit`: got {name}{tree.keystr(path)} and the mesh {mesh}"
            )


def expanded(specs: object, full: object, name: str, full_name: str) -> list[PartitionSpec | None]:
    """Return the spec of each leaf of a pytree, from a prefix of it.

    Raises:
      ValueError: if `specs` is not a prefix of `full`.
    """
    try:
        leaves, structure = tree.tree_flatten(specs, is_none)
        if not any(isinstance(leaf, HiPspec) for leaf in leaves):
            return broadcast_prefix(specs, full, is_none)
        parts = structure.flatten_up_to(full)
        return [
            spec
            for leaf, part in zip(leaves, parts, strict=True)
            for spec in _expanded_at_leaf(leaf, part)
        ]
    except ValueError as error:
        raise ValueError(
            f"shard_map {name} is not a pytree prefix of {full_name}: {error}"
        ) from None


def _expanded_at_leaf(spec: object, part: object) -> list[PartitionSpec | None]:
    """Return the spec of each leaf of a pytree to which a single spec applies."""
    if not isinstance(spec, HiPspec):
        return broadcast_prefix(spec, part, is_none)
    low: list[PartitionSpec | None] = [*spec.to_lo()]
    count = len(tree.tree_leaves(part))
    if not low or count % len(low):
        raise ValueError(f"{spec} splits values of {len(low)} arrays, and stands for {count}")
    return low * (count // len(low))


def specs_of_results(specs: object, result: object, labels: Sequence[str]) -> list[PartitionSpec]:
    """Return the spec of each leaf of a result.

    Raises:
      ValueError: if `specs` is not a prefix of the result, or None for one of its arrays.
    """
    result_specs: list[PartitionSpec] = []
    for spec, label in zip(expanded(specs, result, "out_specs", "the result"), labels, strict=True):
        if spec is None:
            raise ValueError(
                f"shard_map out_specs has None for {label}, which is an array: use PartitionSpec() "
                "for a result that no axis splits"
            )
        result_specs.append(spec)
    return result_specs


def check_lengths(
    function: str,
    name: str,
    specs: Sequence[PartitionSpec],
    avals: Sequence[AbstractValue],
    labels: Sequence[str],
) -> None:
    """Raise ValueError for a spec with more entries than its array's axes, TypeError for a future.

    Args:
      function: the name of the mapped function.
      name: the name of the argument of shard_map that has the specs.
      specs: the spec of each array.
      avals: the type of each array.
      labels: the name of each array.
    """
    for spec, aval, label in zip(specs, avals, labels, strict=True):
        if isinstance(aval, AbstractFuture):
            raise TypeError(
                f"shard_map applied to the function {function!r} takes and returns arrays: {label} "
                f"is a future of type {aval}. Await it by its method done."
            )
        ndim = aval.ndim if isinstance(aval, ShapedArray | AbstractRef) else 0
        if len(spec.partitions) > ndim:
            scalar = "; a scalar needs PartitionSpec()" if not ndim else ""
            raise ValueError(
                f"shard_map applied to the function {function!r} was given an {name} entry which "
                f"is too long: {spec} has {len(spec.partitions)} entries, and {label} is of type "
                f"{aval.str_short()}, which has rank {ndim}{scalar}"
            )


def check_divisible(
    function: str,
    mesh: Mesh | AbstractMesh,
    specs: Sequence[PartitionSpec],
    avals: Sequence[AbstractValue],
    labels: Sequence[str],
) -> None:
    """Raise ValueError if an array cannot be split into equal parts over a mesh.

    Args:
      function: the name of the mapped function.
      mesh: the mesh.
      specs: the spec of each array.
      avals: the type of each array.
      labels: the name of each array.
    """
    for spec, aval, label in zip(specs, avals, labels, strict=True):
        if not isinstance(aval, ShapedArray | AbstractRef):
            continue
        for axis, (entry, size) in enumerate(zip(spec.partitions, aval.shape)):
            count = 1
            for name in axes_of(entry):
                count *= mesh.shape[name]
            if not isinstance(size, SymbolicSize) and size % count:
                raise ValueError(
                    f"shard_map applied to the function {function!r} was given an argument whose "
                    f"axis cannot be divided evenly: {label} is of type {aval.str_short()}, and "
                    f"its in_specs entry {spec} maps axis {axis}, of size {size}, to the mesh axes "
                    f"{axes_of(entry)}, of total size {count}. Pad it, or change the spec or the "
                    "mesh"
                )


def check_same(
    function: str,
    label: str,
    spec: PartitionSpec,
    aval: ShapedArray,
    manual_axes: Sequence[Hashable],
) -> None:
    """Raise ValueError if a result varies along axes that its spec does not name."""
    kind = aval.manual_axis_type
    # Varying values may be summands, but not maxima, which only the types of results distinguish.
    is_sum = spec.unreduced_kind is UnreducedKind.sum
    as_summands = kind.varying if is_sum else frozenset[Hashable]()
    if not spec.reduced <= kind.reduced or not spec.unreduced <= as_summands | kind.unreduced:
        raise ValueError(
            f"shard_map applied to the function {function!r} was given out_specs of another type "
            f"than its result: {label} has the spec {spec}, and is of type {aval.str_short()}, "
            "which is not reduced along the same axes, or does not vary along the unreduced ones; "
            "see jax.lax.pcast"
        )
    if spec.unreduced and kind.unreduced and spec.unreduced_kind is not kind.unreduced_kind:
        raise ValueError(
            f"shard_map applied to the function {function!r} was given out_specs of another "
            f"unreduced_kind than its result has: {label} has the spec {spec}, and is of type "
            f"{aval.str_short()}"
        )
    differs = (kind.varying | kind.unreduced) - spec.unreduced | (kind.reduced - spec.reduced)
    missing = [n for n in manual_axes if n in differs and n not in spec.names()]
    if missing:
        listed = ", ".join(map(repr, missing))
        raise ValueError(
            f"shard_map applied to the function {function!r} was given out_specs which require "
            f"replication which can't be statically inferred: {label} has the spec {spec}, which "
            f"says that it is the same on all devices along the mesh axis {listed}, and is of type "
            f"{aval.str_short()}, which may vary along it. Name the axis in the spec; or sum over "
            "it, for example with jax.lax.psum; or, if the values are the same, pass "
            "check_vma=False."
        )
