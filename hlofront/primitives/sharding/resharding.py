"""The primitive reshard, which changes the explicit mesh axes that split an array."""

from collections.abc import Sequence
from typing import cast

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, Split, cotangent_of, spec_of, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sharding.forbidden_collectives import check_moves, check_splits
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.mesh_context import context_mesh, get_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec, UnreducedKind
from hlofront.core.sharding.requested_shardings import (
    named_sharding,
    requested,
    spec_of_rank,
    with_batch_axis,
)
from hlofront.core.sharding.sharded_types import entries_of
from hlofront.core.symbolic_zeros import Batched, Cotangents, UndefinedPrimal
from hlofront.core.trace import process
from hlofront.primitives.rules.derivatives import linear

# The identity, whose result has the sharding `dst_sharding`. `concrete_mesh` is the mesh with
# devices, if there is none in context, and `source_mesh` the mesh of the operand, to which its
# cotangent returns.
reshard_p = Primitive("reshard")
rules.infers_whole_types.add(reshard_p)


@boundary
def reshard(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """Change the sharding of arrays over mesh axes of type Explicit.

    Tangents and cotangents are resharded too; under vmap the split of the batch axis does not
    change. Outside jit, the arrays move between devices.

    Args:
      xs: an array, or a pytree of arrays.
      out_shardings: a PartitionSpec over the mesh in context or a NamedSharding for all, or a tree
        of them that is a prefix of `xs`.

    Returns:
      A pytree like `xs`.

    Raises:
      TypeError: for leaves that are neither PartitionSpecs nor NamedShardings.
      ValueError: for None, for PartitionSpecs without a mesh in context, for axes that are not in
        the mesh or not of type Explicit, for more entries than an array has axes, if a size is not
        a multiple of the number of its parts, and if the shardings are not a prefix.

    Example:
      >>> by_rows = jnp.ones((8, 8))
      >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
      ...     by_columns = jax.reshard(by_rows, jax.P(None, "x"))
      >>> jax.typeof(by_columns)
      ShapedArray(float32[8,8@x])
    """
    return reshard_tree(xs, out_shardings)


def reshard_tree(
    xs: PyTree, out_shardings: PyTree, source_mesh: AbstractMesh | None = None
) -> PyTree:
    """Change the sharding of a pytree of arrays over mesh axes of type Explicit.

    Args:
      xs: an array, or a pytree of arrays.
      out_shardings: a PartitionSpec over the mesh in context or a NamedSharding for all, or a tree
        of them that is a prefix of `xs`.
      source_mesh: the mesh of the arrays; None for the one in their types or in context.

    Raises:
      TypeError: for leaves that are neither PartitionSpecs nor NamedShardings.
      ValueError: if a sharding does not fit its array, or the shardings are not a prefix.
    """
    leaves, structure = tree_flatten(xs)
    try:
        shardings = broadcast_prefix(out_shardings, xs, is_none)
    except ValueError as error:
        raise ValueError(
            "out_shardings of reshard is one sharding for all arrays, or a tree that is a prefix "
            f"of xs: {error}"
        ) from None
    return structure.unflatten(
        [
            _resharded(x, sharding, source_mesh)
            for x, sharding in zip(leaves, shardings, strict=True)
        ]
    )


def _resharded(x: ArrayLike, sharding: object, source_mesh: AbstractMesh | None) -> Array:
    requested_sharding = requested("reshard", sharding)
    if requested_sharding is None:
        raise ValueError(
            "reshard requires a PartitionSpec, or a NamedSharding over a mesh that has axes: got "
            f"{sharding!r}"
        )
    mesh = getattr(sharding, "mesh", None)
    return bind_reshard(
        x, requested_sharding, mesh if isinstance(mesh, Mesh) else None, source_mesh
    )


def bind_reshard(
    x: ArrayLike,
    sharding: NamedSharding,
    concrete_mesh: Mesh | None = None,
    source_mesh: AbstractMesh | None = None,
) -> Array:
    """Bind reshard for a NamedSharding over an AbstractMesh.

    Args:
      x: the array.
      sharding: the sharding of the result.
      concrete_mesh: the mesh with devices, if the caller passed one.
      source_mesh: the mesh of the array; None for the one in its type or in context.
    """
    aval = typeof(x)
    check_kinds(spec_of(aval), sharding.spec)
    mesh = sharding.mesh
    if source_mesh is None:
        source_mesh = aval.mesh or get_abstract_mesh()
    params = {
        "dst_sharding": named_sharding(mesh, spec_of_rank(sharding.spec, aval.ndim)),
        "concrete_mesh": None if context_mesh() is concrete_mesh else concrete_mesh,
        "source_mesh": mesh if source_mesh.empty else source_mesh,
    }
    return process(reshard_p, (x,), params)


def check_kinds(actual: PartitionSpec, spec: PartitionSpec) -> None:
    """Check that a reshard from one spec to another is possible along unreduced axes.

    Raises:
      ValueError: if the kinds differ, or maxima or minima would become unreduced along more axes.
    """
    kind, is_sum = spec.unreduced_kind, spec.unreduced_kind is UnreducedKind.sum
    if kind is None or (is_sum and actual.unreduced_kind is None):
        return
    if kind is actual.unreduced_kind and (is_sum or spec.unreduced <= actual.unreduced):
        return
    raise ValueError(
        f"reshard cannot turn an array that is split as {actual} into one that is split as {spec}: "
        "both have the same unreduced_kind, and only sums can become unreduced along more axes. "
        "Combine the values along unreduced axes first, by reshard(x, jax.P(...))"
    )


def split_as(x: ArrayLike, sharding: NamedSharding | None) -> ArrayLike:
    """Return an array resharded, or unchanged if the sharding is None or the array's own."""
    if sharding is None:
        return x
    aval = typeof(x)
    split = Split(sharding.mesh, spec_of_rank(sharding.spec, aval.ndim))
    return x if aval.update(sharding=split) == aval else bind_reshard(x, sharding)


@infer(reshard_p)
def _(x: ShapedArray, *, dst_sharding: NamedSharding, **_: object) -> ShapedArray:
    result = x.update(sharding=Split(dst_sharding.mesh, dst_sharding.spec))
    check_splits(reshard_p, [x], [result])
    check_moves(reshard_p, entries_of(x), dst_sharding.spec)
    return result


@rules.transpose(reshard_p)
def _(
    cotangent: ArrayLike,
    x: UndefinedPrimal,
    *,
    dst_sharding: NamedSharding,
    concrete_mesh: Mesh | None,
    source_mesh: AbstractMesh,
) -> Cotangents:
    spec = spec_of(cotangent_of(x.aval))
    back = named_sharding(source_mesh, spec)
    return [bind_reshard(cotangent, back, concrete_mesh, dst_sharding.mesh)]


linear(reshard_p)


@rules.batch(reshard_p)
def _(
    values: ArrayLikes,
    axes: Sequence[int],
    *,
    dst_sharding: NamedSharding,
    concrete_mesh: Mesh | None,
    source_mesh: AbstractMesh,
) -> Batched:
    (x,), (axis,) = values, axes
    batched = with_batch_axis(dst_sharding, axis, x, axis)
    return bind_reshard(x, cast(NamedSharding, batched), concrete_mesh, source_mesh), axis
