"""Primitives along named axes: reductions, gathers and exchanges of arrays."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, is_tuple_or_list
from hlofront.core import axes as named
from hlofront.core.aval import Avals, ShapedArray, is_value, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, jvp, transpose, varying
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.symbolic_zeros import (
    Cotangent,
    Cotangents,
    Duals,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import Tracer, process
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.collectives.pcast import (
    pcast,
    state_along,
    unreduced_pmax,
    unreduced_pmin,
    unreduced_psum,
)
from hlofront.primitives.collectives.varying import manual_among, psum_invariant, pvary
from hlofront.primitives.elementwise.compare import eq
from hlofront.primitives.elementwise.converting import convert, convert_element_type
from hlofront.primitives.elementwise.elementwise import add, div, mul
from hlofront.primitives.rules.derivatives import aval_of_operand

psum_p = Primitive("psum", multiple_results=True)
pmax_p = Primitive("pmax", multiple_results=True)
pmin_p = Primitive("pmin", multiple_results=True)
axis_index_p = Primitive("axis_index")

Groups = tuple[tuple[int, ...], ...] | None
GroupsLike = Sequence[Sequence[int]] | None


# ---- names and groups ----------------------------------------------------------------------------


def as_names(axis_name: object) -> tuple[Hashable, ...]:
    """Return the names of axes as a tuple; the argument may be a single name."""
    return tuple(axis_name) if is_tuple_or_list(axis_name) else (axis_name,)


def size_along(names: Sequence[Hashable]) -> int:
    """Return the product of the sizes of named axes; raise NameError if one is not in scope."""
    return math.prod(named.axis_size(name) for name in names)


def checked_groups(groups: GroupsLike, names: Sequence[Hashable]) -> Groups:
    if groups is None:
        return None
    checked = tuple([tuple([int(i) for i in group]) for group in groups])
    size = size_along(names)
    if sorted(i for group in checked for i in group) != list(range(size)):
        raise ValueError(
            f"axis_index_groups must name each of the {size} places of axis {names} once, got "
            f"{groups}"
        )
    return checked


def group_size(groups: Groups, names: Sequence[Hashable]) -> int:
    if groups is None:
        return size_along(names)
    if len({len(group) for group in groups}) != 1:
        raise ValueError(f"axis_index_groups must all be the same size, got {groups}")
    return len(groups[0])


# ---- reductions ----------------------------------------------------------------------------------


def _reduced(primitive: Primitive, x: object, axis_name: object, groups: GroupsLike) -> PyTree:
    names = as_names(axis_name)
    chosen = checked_groups(groups, [name for name in names if not isinstance(name, int)])
    for name in names:
        if not isinstance(name, int):
            named.axis_size(name)
    if chosen is not None and any(isinstance(name, int) for name in names):
        raise ValueError("axis_index_groups only supported for sums over just named axes")
    leaves, structure = tree.tree_flatten(x)
    for leaf in leaves:
        if not is_value(leaf):
            raise TypeError(f"{primitive} requires arrays, got {leaf!r} of type {type(leaf)}")
    results = list(leaves)
    arrays = list(range(len(leaves)))
    if primitive is psum_p and all(not isinstance(name, int) for name in names):
        # A constant is multiplied by the number of terms, without communication.
        numbers = (int, float, complex, np.generic)
        known = not any(isinstance(leaf, Tracer) for leaf in leaves)
        constant = [i for i in arrays if known or isinstance(leaves[i], numbers)]
        count = group_size(chosen, names)
        for i in constant:
            results[i] = leaves[i] * count
        arrays = [i for i in arrays if i not in constant]
    if arrays:
        operands = [leaves[i] for i in arrays]
        reduced = bind_reduction(primitive, operands, names, chosen)
        for i, result in zip(arrays, reduced, strict=True):
            results[i] = result
    return structure.unflatten(results)


def bind_reduction(
    primitive: Primitive, operands: ArrayLikes, axes: Sequence[Hashable], groups: Groups
) -> list[ArrayLike]:
    """Reduce operands along axes.

    If types track the manual axes, the results' types say that they are equal on all devices.

    Args:
      primitive: the primitive of the reduction.
      operands: the arrays.
      axes: names of axes, and positions of axes of the arrays.
      groups: the groups of indices that are reduced; None for one group.

    Raises:
      NotImplementedError: for groups along manual axes that types track.
      ValueError: for a sum along several such axes, if an operand varies along only some of them.
    """
    manual = manual_among(axes)
    if manual and groups is not None:
        raise NotImplementedError(  # JAX raises this class.
            f"{primitive} with axis_index_groups has different results along the axes {manual}, "
            "which types cannot say: use shard_map with check_vma=False"
        )
    params = {"axes": tuple(axes), "axis_index_groups": groups}
    if not manual:
        return [process(primitive, (x,), params)[0] for x in operands]
    if primitive is not psum_p:
        return [_extreme(primitive, x, manual, tuple(axes)) for x in operands]
    other_axes = tuple([axis for axis in axes if axis not in manual])
    return [_summed(x, manual, other_axes) for x in operands]


def _extreme(
    primitive: Primitive, x: ArrayLike, manual: Sequence[Hashable], axes: tuple[Hashable, ...]
) -> ArrayLike:
    """Return the maximum or minimum over axes.

    Args:
      primitive: pmax_p or pmin_p.
      x: the array.
      manual: the manual axes among them whose variation types track.
      axes: the names of all axes.
    """
    params: dict[str, Any] = {"axes": axes, "axis_index_groups": None}
    if state_along(typeof(x), manual) != "unreduced":
        return process(primitive, (pvary(x, manual),), params)[0]
    other_axes = tuple([axis for axis in axes if axis not in manual])
    if other_axes:
        (x,) = process(primitive, (x,), {**params, "axes": other_axes})
    return unreduced_pmax(x, manual) if primitive is pmax_p else unreduced_pmin(x, manual)


def _summed(
    x: ArrayLike, manual: Sequence[Hashable], other_axes: tuple[Hashable, ...]
) -> ArrayLike:
    """Return the sum over manual axes, which types track, and over other axes."""
    state = state_along(typeof(x), manual)
    if state == "mixed":
        raise ValueError(
            f"jax.lax.psum along {tuple(manual)} was given an operand of type "
            f"{typeof(x).str_short()}, which varies along some of these axes and is the same along "
            "others: sum over the former, or make it vary along all by jax.lax.pcast(x, ..., "
            "to='varying')"
        )
    if other_axes:
        (x,) = process(psum_p, (x,), {"axes": other_axes, "axis_index_groups": None})
    if state == "unreduced":
        return unreduced_psum(x, manual)
    return psum_invariant(
        pcast(x, tuple(manual), to="varying") if state != "varying" else x, manual
    )


@boundary
def psum(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> PyTree:
    """Return the sum over named axes, at each index of these axes.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names; integers among them are axes of the arrays.
      axis_index_groups: lists of axis indices that together contain each index once: arrays are
        summed over each group separately.

    Returns:
      A pytree like `x`. Constants are multiplied by the size of the axis or of the groups.

    Raises:
      NameError: if no axis of that name is in scope.

    Example:
      >>> jax.vmap(lambda x: x / lax.psum(x, "rows"), axis_name="rows")(jnp.array([1.0, 3.0]))
      Array([0.25, 0.75], dtype=float32)
    """

    def as_number(leaf: ArrayLike) -> ArrayLike:
        is_bool = is_value(leaf) and typeof(leaf).dtype == np.bool_
        return convert_element_type(leaf, np.dtype(np.int32)) if is_bool else leaf

    return _reduced(psum_p, tree.tree_map(as_number, x), axis_name, axis_index_groups)


@boundary
def pmean(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> PyTree:
    """Return the mean of arrays over named axes, at each index of these axes.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names; integers among them are axes of the arrays.
      axis_index_groups: lists of axis indices that together contain each index once: the mean is
        taken over each group separately.

    Raises:
      NameError: if no axis of that name is in scope.

    Example:
      >>> jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
      Array([-1.,  1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    names = as_names(axis_name)
    if any(isinstance(name, int) for name in names):
        count = psum(1, axis_name, axis_index_groups=axis_index_groups)
    else:
        count = group_size(checked_groups(axis_index_groups, names), names)

    def mean(leaf: ArrayLike) -> ArrayLike:
        if not isinstance(leaf, Array):
            return leaf / count
        if not issubdtype(typeof(leaf).dtype, np.inexact):
            leaf = convert(leaf, np.dtype(np.float32), typeof(leaf).weak_type)
        aval = typeof(leaf)
        return div(leaf, scalar_of(count, aval.dtype, aval.weak_type))

    return tree.tree_map(mean, total)


@boundary
def pmax(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> PyTree:
    """Return the maximum of arrays over named axes, at each index of these axes.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names; integers among them are axes of the arrays.
      axis_index_groups: lists of axis indices that together contain each index once: the maximum is
        taken over each group separately.

    Raises:
      NameError: if no axis of that name is in scope.

    Example:
      >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3]))
      Array([3, 3], dtype=int32)
    """
    return _reduced(pmax_p, x, axis_name, axis_index_groups)


@boundary
def pmin(x: object, axis_name: object, *, axis_index_groups: GroupsLike = None) -> PyTree:
    """Return the minimum of arrays over named axes, at each index of these axes.

    Args:
      x: a pytree of arrays.
      axis_name: a name, or a tuple of names; integers among them are axes of the arrays.
      axis_index_groups: lists of axis indices that together contain each index once: the minimum is
        taken over each group separately.

    Raises:
      NameError: if no axis of that name is in scope.

    Example:
      >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3]))
      Array([1, 1], dtype=int32)
    """
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


@varying(pmax_p, pmin_p)
def _(
    avals: Avals, *, axes: tuple[Hashable, ...], axis_index_groups: Groups
) -> list[ManualAxisType]:
    types = [aval.manual_axis_type for aval in avals]
    return [kind.with_varying(kind.varying.difference(axes)) for kind in types]


@jvp(psum_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
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
) -> Cotangents:
    # A sum over named axes is its own transpose: each index sends its cotangent to all.
    names = tuple([a for a in axes if a not in positional(axes)])
    present = [c for c in cotangents if type(c) is not Zero]
    if names:
        present = process(
            psum_p, tuple(present), {"axes": names, "axis_index_groups": axis_index_groups}
        )
    rest = iter(present)
    repeated: list[Cotangent | None] = []
    for c, operand in zip(cotangents, operands, strict=True):
        if type(c) is Zero:
            repeated.append(None)
            continue
        shape = aval_of_operand(operand).shape
        gone = {canonical_axis(a, len(shape)) for a in positional(axes)}
        remaining = [i for i in range(len(shape)) if i not in gone]
        repeated.append(broadcast_in_dim(next(rest), shape, remaining) if gone else next(rest))
    return repeated


def _extremum_jvp(primitive: Primitive) -> Callable[..., tuple[list[ArrayLike], list[Tangent]]]:
    def rule(
        primals: ArrayLikes, tangents: Tangents, **params: Any
    ) -> tuple[list[ArrayLike], list[Tangent]]:
        """Return the extrema, and the mean tangent of the elements that equal each extremum."""
        results = process(primitive, tuple(primals), params)
        moved: list[Tangent] = []
        for x, t, result in zip(primals, tangents, results, strict=True):
            if type(t) is Zero:
                moved.append(Zero.of(result))
                continue
            there = eq(x, _repeated(result, x, params["axes"]))
            share = convert_element_type(there, typeof(t).dtype)
            # The count does not depend on tangents: its own psum can run before they are known.
            axes, groups = params["axes"], params["axis_index_groups"]
            (count,) = bind_reduction(psum_p, [share], axes, groups)
            (total,) = bind_reduction(psum_p, [mul(t, share)], axes, groups)
            moved.append(div(total, count))
        return results, moved

    return rule


def _repeated(result: ArrayLike, x: ArrayLike, axes: Sequence[Hashable]) -> ArrayLike:
    shape = typeof(x).shape
    gone = {canonical_axis(a, len(shape)) for a in positional(axes)}
    if not gone:
        return result
    return broadcast_in_dim(result, shape, [i for i in range(len(shape)) if i not in gone])


for _primitive in (pmax_p, pmin_p):
    jvp(_primitive)(_extremum_jvp(_primitive))


# ---- axis indices --------------------------------------------------------------------------------


@boundary
def axis_index(axis_name: object) -> Array | np.int32:
    """Return the index along a named axis, from 0.

    Args:
      axis_name: the name of an axis in scope, of `vmap`, `shard_map` or `pmap`; or a tuple or list
        of names, which count as one axis in which the last name varies fastest.

    Returns:
      An int32 scalar.

    Raises:
      NameError: if no axis of that name is in scope.

    Example:
      >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.zeros(3, int))
      Array([0, 1, 2], dtype=int32)
    """
    if not is_tuple_or_list(axis_name):
        named.axis_size(axis_name)
        own_index = named.index_function(axis_name)
        if own_index is not None:
            return own_index()
        return process(axis_index_p, (), {"axis_name": axis_name})
    index: Array | np.int32 | None = None
    for name in axis_name:
        this_index = axis_index(name)
        size = np.int32(named.axis_size(name))
        index = this_index if index is None else add(mul(index, size), this_index)
    return np.int32(0) if index is None else index


@infer(axis_index_p)
def _(*, axis_name: object) -> ShapedArray:
    return ShapedArray((), np.dtype(np.int32))


@varying(axis_index_p)
def _(avals: Avals, *, axis_name: Hashable) -> list[ManualAxisType]:
    return [ManualAxisType(varying=manual_among([axis_name]))]


def axis_size(axis_name: object) -> int:
    """Return the size of a named axis; of several names, the product of their sizes.

    Args:
      axis_name: the name of an axis in scope, or a tuple or list of names.

    Raises:
      NameError: if no axis of that name is in scope.
      AxisError: for an integer, which is the position of an axis and not a name.

    Example:
      >>> jax.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.array([3.0, 6.0, 9.0]))
      Array([1., 2., 3.], dtype=float32)
    """
    names = as_names(axis_name)
    for axis in positional(names):
        canonical_axis(axis, 0)
    return size_along(names)


communicating(psum_p, pmax_p, pmin_p)
