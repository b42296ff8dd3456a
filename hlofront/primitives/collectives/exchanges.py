"""Primitives that exchange arrays along named axes: gathers, scatters and permutations."""

from collections.abc import Hashable, Sequence

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, Params
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, varying
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.symbolic_zeros import Cotangents, UndefinedPrimal
from hlofront.core.trace import process
from hlofront.primitives.arrays.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from hlofront.primitives.collectives.collectives import (
    Groups,
    GroupsLike,
    as_names,
    axis_index,
    checked_groups,
    group_size,
    psum,
    size_along,
)
from hlofront.primitives.collectives.pcast import state_along
from hlofront.primitives.collectives.varying import manual_among, may_mix, varying_along
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.elementwise import mul
from hlofront.primitives.rules.derivatives import CotangentsOfOne, aval_of_operand, linear, zeros_of

all_gather_p = Primitive("all_gather")
# An all_gather whose result's type says that it is the same at all indices.
all_gather_invariant_p = Primitive("all_gather_invariant")
# An all_gather whose result is the same at all indices, with an unreduced cotangent.
all_gather_reduced_p = Primitive("all_gather_reduced")
reduce_scatter_p = Primitive("reduce_scatter")
# A reduce_scatter of a value whose type says that it is unreduced.
unreduced_reduce_scatter_p = Primitive("unreduced_reduce_scatter")
all_to_all_p = Primitive("all_to_all")
ppermute_p = Primitive("ppermute")
pbroadcast_p = Primitive("pbroadcast")
may_mix(all_gather_reduced_p, unreduced_reduce_scatter_p)


# ---- exchanges -----------------------------------------------------------------------------------


@boundary
def all_gather(
    x: object,
    axis_name: object,
    *,
    axis_index_groups: GroupsLike = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> PyTree:
    """Gather the arrays of all indices of a named axis, at each of its indices.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of axis indices: only arrays of the same group are gathered.
      axis: the new axis of the result; with `tiled`, the axis to concatenate arrays along.
      tiled: whether to concatenate arrays along an existing axis instead of stacking them.
      to: "varying"; "invarying" for a result whose type says that it is the same at all indices, as
        out_specs of a `shard_map` with check_vma may require; or "reduced" for such a result with
        an unreduced cotangent. See `pcast`.

    Raises:
      NameError: if no axis of that name is in scope.
      NotImplementedError: if `to` is "reduced" and there are groups.
      ValueError: if `to` is another value; or is "invarying" and there are groups; or is "reduced"
        and the arrays do not vary along the axis.

    Example:
      >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(
            f"Got unexpected `to` value for `jax.lax.all_gather`: {to!r}. Wanted 'varying', "
            "'invarying' or 'reduced'."
        )
    names = as_names(axis_name)
    if to != "varying" and axis_index_groups is not None:
        error = ValueError if to == "invarying" else NotImplementedError  # As in JAX.
        raise error(
            "axis_index_groups gather different arrays at different indices: all_gather takes "
            f"none with to={to!r}"
        )
    groups = checked_groups(axis_index_groups, names)
    size = group_size(groups, names)

    def gathered(leaf: ArrayLike) -> ArrayLike:
        params = {
            "all_gather_dimension": canonical_axis(axis, typeof(leaf).ndim + (not tiled)),
            "axis_index_groups": groups,
            "axis_name": names,
            "axis_size": size,
            "tiled": tiled,
        }
        if to == "reduced" and manual_among(names):
            del params["axis_index_groups"]
            return process(all_gather_reduced_p, (leaf,), params)
        leaf = varying_along(leaf, names)
        if to != "invarying":
            return process(all_gather_p, (leaf,), params)
        del params["axis_index_groups"]
        return process(all_gather_invariant_p, (leaf,), params)

    return tree.tree_map(gathered, x)


@infer(all_gather_p)
def _(
    x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: object
) -> ShapedArray:
    return x.update(shape=_gathered_shape(x, all_gather_dimension, axis_size, tiled))


def _gathered_shape(x: ShapedArray, dimension: int, count: int, tiled: bool) -> tuple[int, ...]:
    shape = list(x.shape)
    if tiled:
        shape[dimension] *= count
    else:
        shape.insert(dimension, count)
    return tuple(shape)


@infer(all_gather_invariant_p, all_gather_reduced_p)
def _(
    x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: object
) -> ShapedArray:
    return x.update(shape=_gathered_shape(x, all_gather_dimension, axis_size, tiled))


@varying(all_gather_invariant_p)
def _(avals: Avals, *, axis_name: Sequence[Hashable], **_: object) -> list[ManualAxisType]:
    kind = avals[0].manual_axis_type
    return [kind.with_varying(kind.varying.difference(axis_name))]


@varying(all_gather_reduced_p)
def _(avals: Avals, *, axis_name: Sequence[Hashable], **_: object) -> list[ManualAxisType]:
    return [_moved(avals[0], axis_name, "varying", "reduced")]


@varying(unreduced_reduce_scatter_p)
def _(avals: Avals, *, axis_name: Sequence[Hashable], **_: object) -> list[ManualAxisType]:
    return [_moved(avals[0], axis_name, "unreduced", "varying")]


def _moved(aval: ShapedArray, axes: Sequence[Hashable], before: str, after: str) -> ManualAxisType:
    """Return an array's manual axis type with axes moved from one set to another.

    Raises:
      ValueError: if an axis is not in the set `before`.
    """
    kind, names = aval.manual_axis_type, frozenset(manual_among(axes))
    if not names.issubset(getattr(kind, before)):
        raise ValueError(
            f"this collective goes from {before} to {after} values along {tuple(axes)}: got an "
            f"operand of type {aval.str_short()}"
        )
    return kind.update(
        **{before: getattr(kind, before) - names, after: getattr(kind, after) | names}
    )


@boundary
def psum_scatter(
    x: object,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> PyTree:
    """Sum arrays over a named axis and scatter the sum: each index of the axis receives a share.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      scatter_dimension: the axis of the arrays to scatter. Its size is that of the named axis, and
        the result lacks it; with `tiled`, its size is a multiple of that.
      axis_index_groups: lists of axis indices: arrays are summed over each group separately.
      tiled: whether the result has the scattered axis.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the axis cannot be divided into equal shares.
    """

    def scattered(leaf: ArrayLike) -> Array:
        primitive, operand, params = as_reduce_scatter(
            leaf, axis_name, scatter_dimension, axis_index_groups, tiled
        )
        return process(primitive, (operand,), params)

    return tree.tree_map(scattered, x)


def as_reduce_scatter(
    x: ArrayLike,
    axis_name: object,
    scatter_dimension: int,
    axis_index_groups: GroupsLike,
    tiled: bool,
) -> tuple[Primitive, ArrayLike, Params]:
    """Return `psum_scatter` of an array as a primitive, its operand and its parameters.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the axis cannot be divided into equal shares.
    """
    names = as_names(axis_name)
    groups = checked_groups(axis_index_groups, names)
    size = group_size(groups, names)
    aval = typeof(x)
    dimension = canonical_axis(scatter_dimension, aval.ndim)
    _check_shares(aval.shape[dimension], size, tiled)
    params: Params = {
        "axis_index_groups": groups,
        "axis_name": names,
        "axis_size": size,
        "scatter_dimension": dimension,
        "tiled": tiled,
    }
    manual = manual_among(names)
    if manual and groups is None and state_along(aval, manual) == "unreduced":
        del params["axis_index_groups"]
        return unreduced_reduce_scatter_p, x, params
    return reduce_scatter_p, varying_along(x, names), params


def _check_shares(size: int, count: int, tiled: bool) -> None:
    """Raise ValueError unless an axis has size `count` or, with `tiled`, a multiple of it."""
    if tiled and size % count:
        raise ValueError(
            f"tiled reduce_scatter operand scatter dimension size {size} must be divisible by "
            f"shard_count {count}"
        )
    if not tiled and size != count:
        raise ValueError(
            f"reduce_scatter operand scatter dimension size {size} must match shard count {count}"
        )


@infer(reduce_scatter_p, unreduced_reduce_scatter_p)
def _(
    x: ShapedArray, *, axis_size: int, scatter_dimension: int, tiled: bool, **_: object
) -> ShapedArray:
    shape = list(x.shape)
    _check_shares(shape[scatter_dimension], axis_size, tiled)
    if tiled:
        shape[scatter_dimension] //= axis_size
    else:
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


def _by_exchange(inverse: Primitive, own_axis: str, axis_of_inverse: str) -> CotangentsOfOne:
    """Return the transpose rule of a collective whose transpose is the collective `inverse`.

    Args:
      inverse: the collective that is the transpose.
      own_axis: the name of the parameter that holds the exchanged axis of the arrays.
      axis_of_inverse: the name of that parameter of `inverse`.
    """

    def transposed(cotangent: ArrayLike, x: UndefinedPrimal, /, **params: object) -> Cotangents:
        params[axis_of_inverse] = params.pop(own_axis)
        return [process(inverse, (cotangent,), params)]

    return transposed


def _transposed_all_gather_invariant(
    cotangent: ArrayLike,
    x: UndefinedPrimal,
    *,
    all_gather_dimension: int,
    axis_name: Sequence[Hashable],
    axis_size: int,
    tiled: bool,
) -> Cotangents:
    # The cotangent is the same at all indices, and each takes its share.
    index = axis_index(axis_name)
    shares = varying_along(cotangent, axis_name)
    if not tiled:
        return [dynamic_index_in_dim(shares, index, all_gather_dimension, keepdims=False)]
    size = aval_of_operand(x).shape[all_gather_dimension]
    start = mul(index, np.int32(size))
    return [dynamic_slice_in_dim(shares, start, size, all_gather_dimension)]


_GATHERED, _SCATTERED = "all_gather_dimension", "scatter_dimension"
linear(all_gather_p, _by_exchange(reduce_scatter_p, _GATHERED, _SCATTERED))
linear(all_gather_reduced_p, _by_exchange(unreduced_reduce_scatter_p, _GATHERED, _SCATTERED))
linear(unreduced_reduce_scatter_p, _by_exchange(all_gather_reduced_p, _SCATTERED, _GATHERED))
linear(all_gather_invariant_p, _transposed_all_gather_invariant)
linear(reduce_scatter_p, _by_exchange(all_gather_p, _SCATTERED, _GATHERED))


@boundary
def all_to_all(
    x: object,
    axis_name: object,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> PyTree:
    """Exchange an axis of the arrays with a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      split_axis: the axis of the arrays that becomes the named axis. Its size is that of the
        named axis, and the result lacks it; with `tiled`, its size is a multiple and it is kept.
      concat_axis: the axis of the result that the named axis becomes; with `tiled`, the axis to
        concatenate received arrays along.
      axis_index_groups: lists of axis indices: arrays are exchanged within each group.
      tiled: whether to split and concatenate existing axes.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the size of the axis does not fit.
    """
    names = as_names(axis_name)
    groups = checked_groups(axis_index_groups, names)
    size = group_size(groups, names)

    def exchanged(leaf: ArrayLike) -> Array:
        aval = typeof(leaf)
        split, concat = (
            canonical_axis(split_axis, aval.ndim),
            canonical_axis(concat_axis, aval.ndim),
        )
        if not tiled and aval.shape[split] != size:
            raise ValueError(
                "all_to_all requires the size of the mapped axis axis_name to equal "
                f"x.shape[split_axis], but they are {size} and {aval.shape[split]} respectively."
            )
        if tiled and aval.shape[split] % size:
            raise ValueError(
                f"all_to_all requires x.shape[split_axis], {aval.shape[split]}, to be a multiple "
                f"of the size of the named axis, {size}, where tiled=True"
            )
        params = {
            "axis_index_groups": groups,
            "axis_name": axis_name,
            "concat_axis": concat,
            "split_axis": split,
            "tiled": tiled,
        }
        return process(all_to_all_p, (varying_along(leaf, names),), params)

    return tree.tree_map(exchanged, x)


@boundary
def pswapaxes(
    x: object,
    axis_name: object,
    axis: int,
    *,
    axis_index_groups: GroupsLike = None,
) -> PyTree:
    """Exchange an axis of the arrays with a named axis of equal size.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      axis: the axis of the arrays, which the named axis becomes.
      axis_index_groups: lists of axis indices: arrays are exchanged within each group.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the size of the axis does not fit.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@infer(all_to_all_p)
def _(
    x: ShapedArray,
    *,
    axis_index_groups: Groups,
    axis_name: object,
    concat_axis: int,
    split_axis: int,
    tiled: bool,
) -> ShapedArray:
    shape = list(x.shape)
    size = group_size(axis_index_groups, as_names(axis_name))
    if tiled:
        shape[split_axis] //= size
        shape[concat_axis] *= size
    else:
        del shape[split_axis]
        shape.insert(concat_axis, size)
    return x.update(shape=tuple(shape))


def _transposed_all_to_all(
    cotangent: ArrayLike, x: UndefinedPrimal, *, split_axis: int, concat_axis: int, **params: object
) -> Cotangents:
    swapped = {"split_axis": concat_axis, "concat_axis": split_axis, **params}
    return [process(all_to_all_p, (cotangent,), swapped)]


linear(all_to_all_p, _transposed_all_to_all)


Pairs = tuple[tuple[int, int], ...]


def checked_pairs(
    operation: str, names: Sequence[Hashable], perm: Sequence[tuple[int, int]]
) -> Pairs:
    """Return pairs (source, target) of indices along named axes.

    Raises:
      NameError: if no axis of one of the names is in scope.
      ValueError: if an index is twice a source or twice a target, or is out of range.
    """
    size = size_along(names)
    pairs = tuple([(int(source), int(target)) for source, target in perm])
    for what, indices in (("sources", [s for s, _ in pairs]), ("targets", [t for _, t in pairs])):
        if len(set(indices)) != len(indices) or any(not 0 <= p < size for p in indices):
            raise ValueError(
                f"{operation} {what} must be distinct indices of axis {names} of size {size}, got "
                f"perm={perm}"
            )
    return pairs


@boundary
def ppermute(x: object, axis_name: object, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Send arrays between indices of a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      perm: pairs (source, target) of axis indices. An index that is not a target receives zeros.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if an index is twice a source or twice a target, or is out of range.

    Example:
      >>> ring = [(0, 1), (1, 2), (2, 0)]
      >>> jax.vmap(lambda x: lax.ppermute(x, "i", ring), axis_name="i")(jnp.array([1, 2, 3]))
      Array([3, 1, 2], dtype=int32)
    """
    names = as_names(axis_name)
    params = {"axis_name": names, "perm": checked_pairs("ppermute", names, perm)}

    def permuted(leaf: ArrayLike) -> Array:
        return process(ppermute_p, (varying_along(leaf, names),), params)

    return tree.tree_map(permuted, x)


@boundary
def pshuffle(x: object, axis_name: object, perm: Sequence[int]) -> PyTree:
    """Permute arrays along a named axis: index i receives the array of index `perm[i]`.

    Args:
      x: an array or a pytree of arrays, one per index of the axis.
      axis_name: the name of the axis, or a tuple of names.
      perm: for each index of the axis the index that it receives from.

    Returns:
      Arrays of the shapes and dtypes of x.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if `perm` is not a permutation of the axis indices.
    """
    size = size_along(as_names(axis_name))
    if sorted(perm) != list(range(size)):
        raise ValueError(f"`perm` must be a permutation of range({size}), got {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


@infer(ppermute_p)
def _(x: ShapedArray, *, axis_name: object, perm: tuple[tuple[int, int], ...]) -> ShapedArray:
    return x


def _transposed_ppermute(
    cotangent: ArrayLike,
    x: UndefinedPrimal,
    *,
    axis_name: object,
    perm: tuple[tuple[int, int], ...],
) -> Cotangents:
    params = {"axis_name": axis_name, "perm": tuple([(t, s) for s, t in perm])}
    return [process(ppermute_p, (cotangent,), params)]


linear(ppermute_p, _transposed_ppermute)


@boundary
def pbroadcast(x: object, axis_name: object, source: int) -> PyTree:
    """Send arrays from one index of a named axis to all of its indices.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      source: the index whose arrays all indices receive.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if there is no such index.
    """
    names = as_names(axis_name)
    size = size_along(names)
    if not 0 <= source < size:
        raise ValueError(
            f"pbroadcast requires a source from 0 to {size - 1}, the indices of {axis_name!r}: got "
            f"{source}"
        )

    def sent(leaf: ArrayLike) -> Array:
        params = {"axis_name": axis_name, "source": int(source)}
        return process(pbroadcast_p, (varying_along(leaf, names),), params)

    return tree.tree_map(sent, x)


@infer(pbroadcast_p)
def _(x: ShapedArray, *, axis_name: object, source: int) -> ShapedArray:
    return x


def _transposed_pbroadcast(
    cotangent: ArrayLike, x: UndefinedPrimal, *, axis_name: object, source: int
) -> Cotangents:
    # The source receives the sum of the cotangents of all indices, and the others receive zero.
    names = as_names(axis_name)
    total = varying_along(psum(cotangent, names), names)
    is_source = eq(axis_index(names), np.int32(source))
    return [select_n(is_source, zeros_of(typeof(total)), total)]


linear(pbroadcast_p, _transposed_pbroadcast)


communicating(
    all_gather_p,
    all_gather_invariant_p,
    all_gather_reduced_p,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
    all_to_all_p,
    ppermute_p,
    pbroadcast_p,
)
