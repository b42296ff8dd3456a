"""Primitives along named axes: reductions, gathers and exchanges of arrays."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike, is_tuple_or_list
from hlofront.core import axes as named
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Results, Tangents, infer, jvp, transpose
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, UndefinedPrimal, Zero
from hlofront.core.trace import process
from hlofront.primitives.comparing import eq
from hlofront.primitives.converting import convert, convert_element_type
from hlofront.primitives.creating import scalar_of
from hlofront.primitives.derivatives import Cotangents, aval_of_operand, linear
from hlofront.primitives.elementwise import add, div, mul
from hlofront.primitives.shaping import broadcast_in_dim

psum_p = Primitive("psum", multiple_results=True)
pmax_p = Primitive("pmax", multiple_results=True)
pmin_p = Primitive("pmin", multiple_results=True)
all_gather_p = Primitive("all_gather")
reduce_scatter_p = Primitive("reduce_scatter")
all_to_all_p = Primitive("all_to_all")
ppermute_p = Primitive("ppermute")
axis_index_p = Primitive("axis_index")

Groups = tuple[tuple[int, ...], ...] | None
GroupsLike = Sequence[Sequence[int]] | None


# ---- names and groups ----------------------------------------------------------------------------


def _names(axis_name: object) -> tuple[Any, ...]:
    return tuple(axis_name) if is_tuple_or_list(axis_name) else (axis_name,)


def _size(names: Sequence[Any]) -> int:
    """Return the product of the sizes of named axes; raise NameError if one is not in scope."""
    return math.prod(named.axis_size(name) for name in names)


def _groups(groups: Any, names: Sequence[Any]) -> Groups:
    if groups is None:
        return None
    checked = tuple([tuple([int(i) for i in group]) for group in groups])
    size = _size(names)
    if sorted(i for group in checked for i in group) != list(range(size)):
        raise ValueError(
            f"axis_index_groups must name each of the {size} places of axis {names} once, got "
            f"{groups}"
        )
    return checked


def _group_size(groups: Groups, names: Sequence[Any]) -> int:
    if groups is None:
        return _size(names)
    if len({len(group) for group in groups}) != 1:
        raise ValueError(f"axis_index_groups must all be the same size, got {groups}")
    return len(groups[0])


# ---- reductions ----------------------------------------------------------------------------------


def _reduced(primitive: Primitive, x: object, axis_name: object, groups: GroupsLike) -> Any:
    names = _names(axis_name)
    chosen = _groups(groups, [name for name in names if not isinstance(name, int)])
    for name in names:
        if not isinstance(name, int):
            named.axis_size(name)
    if chosen is not None and any(isinstance(name, int) for name in names):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    leaves, structure = tree.tree_flatten(x)
    for leaf in leaves:
        if not is_value(leaf):
            raise TypeError(f"{primitive} wants arrays, got {leaf!r} of type {type(leaf)}")
    results = list(leaves)
    varying = list(range(len(leaves)))
    if primitive is psum_p and chosen is None:
        # A constant is multiplied by the size of the named axes, without communication.
        constant = [i for i in varying if isinstance(leaves[i], int | float | complex | np.generic)]
        if all(not isinstance(name, int) for name in names):
            for i in constant:
                results[i] = leaves[i] * _size(names)
            varying = [i for i in varying if i not in constant]
    if varying:
        params = {"axes": names, "axis_index_groups": chosen}
        reduced = process(primitive, tuple([leaves[i] for i in varying]), params)
        for i, result in zip(varying, reduced, strict=True):
            results[i] = result
    return structure.unflatten(results)


@boundary
def psum(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> Any:
    """Return the sum over named axes, at each index of these axes.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names; integers among them are axes of the arrays.
      axis_index_groups: lists of axis indices that together name each index once: arrays are
        summed over each group separately.

    Returns:
      A pytree like `x`. Python scalars are multiplied by the size of the axis.

    Raises:
      NameError: if no axis of that name is in scope.
    """

    def as_number(leaf: ArrayLike) -> ArrayLike:
        is_bool = is_value(leaf) and typeof(leaf).dtype == np.bool_
        return convert_element_type(leaf, np.dtype(np.int32)) if is_bool else leaf

    return _reduced(psum_p, tree.tree_map(as_number, x), axis_name, axis_index_groups)


@boundary
def pmean(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> Any:
    """Return the mean of arrays over named axes, at each index of these axes; see `psum`."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = psum(1, axis_name, axis_index_groups=axis_index_groups)

    def mean(leaf: ArrayLike) -> Array:
        if not issubdtype(typeof(leaf).dtype, np.inexact):
            leaf = convert(leaf, np.dtype(np.float32), typeof(leaf).weak_type)
        aval = typeof(leaf)
        if isinstance(count, int):
            return div(leaf, scalar_of(count, aval.dtype, aval.weak_type))
        return div(leaf, convert_element_type(count, aval.dtype))

    return tree.tree_map(mean, total)


@boundary
def pmax(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> Any:
    """Return the maximum of arrays over named axes, at each index of these axes; see `psum`."""
    return _reduced(pmax_p, x, axis_name, axis_index_groups)


@boundary
def pmin(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> Any:
    """Return the minimum of arrays over named axes, at each index of these axes; see `psum`."""
    return _reduced(pmin_p, x, axis_name, axis_index_groups)


def positional(axes: Sequence[Any]) -> tuple[int, ...]:
    """Return the integers among `axes`: the positional axes, without the named ones."""
    return tuple([a for a in axes if issubclass(type(a), (int, np.integer))])


@infer(psum_p, pmax_p, pmin_p)
def _(*avals: ShapedArray, axes: tuple[int, ...], axis_index_groups: Groups) -> list[ShapedArray]:
    results: list[ShapedArray] = []
    for aval in avals:
        gone = {canonical_axis(a, aval.ndim) for a in positional(axes)}
        shape = [size for i, size in enumerate(aval.shape) if i not in gone]
        results.append(aval.update(shape=tuple(shape), weak_type=False))
    return results


@jvp(psum_p)
def _(
    primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
) -> tuple[Sequence[ArrayLike], Sequence[Tangent]]:
    results = process(psum_p, tuple(primals), params)
    moving = [t for t in tangents if type(t) is not Zero]
    moved = iter(process(psum_p, tuple(moving), params))
    return results, [
        Zero.of(x) if type(t) is Zero else next(moved)
        for x, t in zip(results, tangents, strict=True)
    ]


@transpose(psum_p)
def _(
    cotangents: Sequence[Cotangent],
    *operands: Operand,
    axes: tuple[int, ...],
    axis_index_groups: Groups,
) -> Sequence[Cotangent | None]:
    # A sum over named axes is its own transpose: each index sends its cotangent to all.
    names = tuple([a for a in axes if a not in positional(axes)])
    present = [c for c in cotangents if type(c) is not Zero]
    if names:
        present = process(
            psum_p, tuple(present), {"axes": names, "axis_index_groups": axis_index_groups}
        )
    rest = iter(present)
    repeated: list[Any] = []
    for c, operand in zip(cotangents, operands, strict=True):
        if type(c) is Zero:
            repeated.append(None)
            continue
        shape = aval_of_operand(operand).shape
        gone = {canonical_axis(a, len(shape)) for a in positional(axes)}
        remaining = [i for i in range(len(shape)) if i not in gone]
        repeated.append(broadcast_in_dim(next(rest), shape, remaining) if gone else next(rest))
    return repeated


def _extremum_jvp(primitive: Primitive) -> Callable[..., Any]:
    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: Any
    ) -> tuple[Results, Tangents]:
        """Return the extrema, and the mean tangent of the elements that equal each extremum."""
        results = process(primitive, tuple(primals), params)
        moved: list[Any] = []
        for x, t, result in zip(primals, tangents, results, strict=True):
            if type(t) is Zero:
                moved.append(Zero.of(result))
                continue
            there = eq(x, _repeated(result, x, params["axes"]))
            share = convert_element_type(there, typeof(t).dtype)
            # The count is a separate psum because it is known where the tangents are not.
            (count,) = process(psum_p, (share,), params)
            (total,) = process(psum_p, (mul(t, share),), params)
            moved.append(div(total, count))
        return results, moved

    return rule


def _repeated(result: ArrayLike, x: ArrayLike, axes: Sequence[Any]) -> ArrayLike:
    shape = typeof(x).shape
    gone = {canonical_axis(a, len(shape)) for a in positional(axes)}
    if not gone:
        return result
    return broadcast_in_dim(result, shape, [i for i in range(len(shape)) if i not in gone])


for _primitive in (pmax_p, pmin_p):
    jvp(_primitive)(_extremum_jvp(_primitive))


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
) -> Any:
    """Gather the arrays of all indices of a named axis, at each of its indices.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of axis indices: only arrays of the same group are gathered.
      axis: the new axis of the result; with `tiled`, the axis to concatenate arrays along.
      tiled: whether to concatenate arrays along an existing axis instead of stacking them.
      to: must be "varying".

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if `to` is not "varying".
    """
    if to != "varying":
        raise ValueError(f"all_gather takes to='varying' only, got {to!r}")
    names = _names(axis_name)
    groups = _groups(axis_index_groups, names)
    size = _group_size(groups, names)

    def gathered(leaf: ArrayLike) -> ArrayLike:
        params = {
            "all_gather_dimension": canonical_axis(axis, typeof(leaf).ndim + (not tiled)),
            "axis_index_groups": groups,
            "axis_name": names,
            "axis_size": size,
            "tiled": tiled,
        }
        return process(all_gather_p, (leaf,), params)

    return tree.tree_map(gathered, x)


@infer(all_gather_p)
def _(
    x: ShapedArray,
    *,
    all_gather_dimension: int,
    axis_index_groups: Groups,
    axis_name: object,
    axis_size: int,
    tiled: bool,
) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return x.update(shape=tuple(shape))


@boundary
def psum_scatter(
    x: object,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Any:
    """Sum arrays over a named axis and scatter the sum: each index of the axis gets its share.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      scatter_dimension: the axis of the arrays to scatter. Its size is that of the named axis, and
        the result lacks it; with `tiled`, its size is a multiple.
      axis_index_groups: lists of axis indices: arrays are summed over each group separately.
      tiled: whether the result has the scattered axis.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the axis cannot be divided into equal shares.
    """
    names = _names(axis_name)
    groups = _groups(axis_index_groups, names)
    size = _group_size(groups, names)

    def scattered(leaf: ArrayLike) -> Array:
        params = {
            "axis_index_groups": groups,
            "axis_name": names,
            "axis_size": size,
            "scatter_dimension": canonical_axis(scatter_dimension, typeof(leaf).ndim),
            "tiled": tiled,
        }
        return process(reduce_scatter_p, (leaf,), params)

    return tree.tree_map(scattered, x)


@infer(reduce_scatter_p)
def _(
    x: ShapedArray,
    *,
    axis_index_groups: Groups,
    axis_name: object,
    axis_size: int,
    scatter_dimension: int,
    tiled: bool,
) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        if shape[scatter_dimension] % axis_size:
            raise ValueError(
                "tiled reduce_scatter operand scatter dimension size "
                f"{shape[scatter_dimension]} must be divisible by shard_count {axis_size}"
            )
        shape[scatter_dimension] //= axis_size
    elif shape[scatter_dimension] != axis_size:
        raise ValueError(
            f"reduce_scatter operand scatter dimension size {shape[scatter_dimension]} must match "
            f"shard count {axis_size}"
        )
    else:
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


def _transposed_all_gather(
    cotangent: ArrayLike, x: UndefinedPrimal, *, all_gather_dimension: int, **params: object
) -> Cotangents:
    params["scatter_dimension"] = all_gather_dimension
    return [process(reduce_scatter_p, (cotangent,), params)]


def _transposed_reduce_scatter(
    cotangent: ArrayLike, x: UndefinedPrimal, *, scatter_dimension: int, **params: object
) -> Cotangents:
    params["all_gather_dimension"] = scatter_dimension
    return [process(all_gather_p, (cotangent,), params)]


linear(all_gather_p, _transposed_all_gather)
linear(reduce_scatter_p, _transposed_reduce_scatter)


@boundary
def all_to_all(
    x: object,
    axis_name: object,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Any:
    """Exchange an axis of the arrays with a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      split_axis: the axis of the arrays that becomes the named axis. Its size is that of the
        named axis, and the result lacks it; with `tiled`, its size is a multiple, and it stays.
      concat_axis: the axis of the result that the named axis becomes; with `tiled`, the axis to
        concatenate received arrays along.
      axis_index_groups: lists of axis indices: arrays are exchanged within each group.
      tiled: whether to split and concatenate existing axes.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the size of the axis does not fit.
    """
    names = _names(axis_name)
    groups = _groups(axis_index_groups, names)
    size = _group_size(groups, names)

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
        return process(all_to_all_p, (leaf,), params)

    return tree.tree_map(exchanged, x)


@boundary
def pswapaxes(
    x: object,
    axis_name: object,
    axis: int,
    *,
    axis_index_groups: GroupsLike = None,
) -> Any:
    """Exchange axis `axis` of the arrays with a named axis of equal size. See `all_to_all`."""
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
    size = _group_size(axis_index_groups, _names(axis_name))
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


@boundary
def ppermute(x: object, axis_name: object, perm: Sequence[tuple[int, int]]) -> Any:
    """Send arrays between indices of a named axis.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names.
      perm: pairs (source, target) of axis indices. An index that is no target gets zeros.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if an index is twice a source or twice a target, or is out of range.
    """
    names = _names(axis_name)
    size = _size(names)
    pairs = tuple([(int(source), int(target)) for source, target in perm])
    for what, indices in (("sources", [s for s, _ in pairs]), ("targets", [t for _, t in pairs])):
        if len(set(indices)) != len(indices) or any(not 0 <= p < size for p in indices):
            raise ValueError(
                f"ppermute {what} must be distinct places of axis {axis_name} of size {size}, got "
                f"perm={perm}"
            )

    def permuted(leaf: ArrayLike) -> Array:
        return process(ppermute_p, (leaf,), {"axis_name": names, "perm": pairs})

    return tree.tree_map(permuted, x)


@boundary
def pshuffle(x: object, axis_name: object, perm: Sequence[int]) -> Any:
    """Permute arrays along a named axis: index i receives the array of index `perm[i]`.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if `perm` is no permutation of the axis indices.
    """
    size = _size(_names(axis_name))
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


# ---- axis indices --------------------------------------------------------------------------------


@boundary
def axis_index(axis_name: object) -> Any:
    """Return the index along a named axis, from 0, as int32.

    A tuple or list of names counts as one axis, with the last name fastest.

    Raises:
      NameError: if no axis of that name is in scope.
    """
    if not is_tuple_or_list(axis_name):
        named.axis_size(axis_name)
        return process(axis_index_p, (), {"axis_name": axis_name})
    index: Any = 0
    for name in axis_name:
        own = axis_index(name)
        size = np.int32(named.axis_size(name))
        index = own if isinstance(index, int) else add(mul(index, size), own)
    return np.int32(0) if isinstance(index, int) else index


@infer(axis_index_p)
def _(*, axis_name: object) -> ShapedArray:
    return ShapedArray((), np.dtype(np.int32))


def axis_size(axis_name: object) -> int:
    """Return the size of a named axis; of several names, the product of their sizes.

    Raises:
      NameError: if no axis of that name is in scope.
    """
    return _size(_names(axis_name))
