"""Loops and branches for the library's own functions, which work in shard_map.

Inside `shard_map`, `lax.scan` refuses a carry that is the same value on all devices at first and
varies along a mesh axis later; `lax.cond` refuses branches whose results vary along different axes.
The error advises users to call `lax.pcast`. A library function cannot know along which axes its
arguments vary, so the functions here convert the first carry and the results of branches.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.sharding.mesh_context import vma_enabled
from hlofront.higher_order.control_flow import cond as branching
from hlofront.higher_order.control_flow import scan as scanning
from hlofront.higher_order.control_flow import while_loop as looping
from hlofront.primitives.collectives.varying import pvary

_Carry = TypeVar("_Carry")
_Result = TypeVar("_Result")
Axes = Collection[Hashable]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Call `lax.scan` with a carry that varies along the axes that the results of `f` do."""
    if not vma_enabled():
        return scanning.scan(f, init, xs, length, reverse, unroll)

    def step(carry: PyTree, x: PyTree) -> tuple[PyTree, PyTree]:
        following, y = f(carry, x)
        return _varying_as(carry, following), y

    def next_carry(carry: PyTree, x: PyTree) -> PyTree:
        return step(carry, x)[0]

    leaves, structure = tree.tree_flatten(xs)
    elements = structure.unflatten([scanning.element_aval(typeof(x)) for x in leaves])
    init = _first_carry(next_carry, init, elements)
    return scanning.scan(step, init, xs, length, reverse, unroll)


def while_loop(
    cond_fun: Callable[[_Carry], ArrayLike], body_fun: Callable[[_Carry], _Carry], init_val: _Carry
) -> _Carry:
    """Call `lax.while_loop` with a carry that varies along the axes that it must.

    The whole carry varies along the axes along which the condition varies, because devices leave
    the loop after different numbers of iterations.
    """
    if not vma_enabled():
        return looping.while_loop(cond_fun, body_fun, init_val)

    def with_condition(carry: _Carry) -> PyTree:
        axes = _axes_of([typeof(cond_fun(carry))])
        return _all_varying(_varying_as(carry, body_fun(carry)), axes)

    def body(carry: _Carry) -> _Carry:
        return _varying_as(carry, body_fun(carry))

    return looping.while_loop(cond_fun, body, _first_carry(with_condition, init_val))


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, _Carry], _Carry],
    init_val: _Carry,
    *,
    unroll: int | bool | None = None,
) -> _Carry:
    """Call `lax.fori_loop` with a carry that varies as needed, and like the bounds."""
    if not vma_enabled():
        return looping.fori_loop(lower, upper, body_fun, init_val, unroll=unroll)
    axes = _axes_of([typeof(lower), typeof(upper)])
    init = _all_varying(init_val, axes)

    def body(i: Array, carry: _Carry) -> _Carry:
        return _varying_as(carry, body_fun(i, carry))

    def next_carry(carry: _Carry, i: Any) -> _Carry:
        return body(i, carry)

    init = _first_carry(next_carry, init, typeof(lower))
    return looping.fori_loop(pvary(lower, axes), upper, body, init, unroll=unroll)


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., _Result],
    false_fun: Callable[..., _Result],
    *operands: PyTree,
) -> _Result:
    """Call `lax.cond` with results that vary like those of both functions, and like `pred`."""
    if not vma_enabled():
        return branching.cond(pred, true_fun, false_fun, *operands)
    avals = tree.tree_map(typeof, operands)
    kinds = [_axes_by_leaf(_traced(f, avals)) for f in (true_fun, false_fun)]
    if len(kinds[0]) == len(kinds[1]):
        shared = _axes_of([typeof(pred)])
        axes = [shared.union(*pair) for pair in zip(*kinds, strict=True)]
        true_fun, false_fun = [partial(_varying_along, f, axes) for f in (true_fun, false_fun)]
    return branching.cond(pred, true_fun, false_fun, *operands)


# ---- axes ----------------------------------------------------------------------------------------


def _axes_of(avals: Sequence[AbstractValue]) -> frozenset[Hashable]:
    """Return the manual axes along which any of the values vary."""
    return frozenset[Hashable]().union(*_axes_by_leaf(avals))


def _axes_by_leaf(avals: PyTree) -> list[frozenset[Hashable]]:
    return [
        aval.manual_axis_type.varying if isinstance(aval, ShapedArray) else frozenset()
        for aval in tree.tree_leaves(avals)
    ]


def _traced(function: Callable[..., PyTree], avals: tuple[PyTree, ...]) -> PyTree:
    """Return the avals of a function's results."""
    leaves, args_tree = tree.tree_flatten(avals)
    traced = branching.trace_function(function, "cond", args_tree, leaves)
    return traced.out_tree.unflatten(traced.program.out_avals)


def _first_carry(next_carry: Callable[..., PyTree], first: PyTree, *carries: PyTree) -> Any:
    """Return a first carry that varies along all axes along which later ones vary.

    Args:
      next_carry: returns the next carry, from a carry and values of the types `carries`.
      first: the first carry.
      carries: pytrees of avals.
    """
    leaves, structure = tree.tree_flatten(first)
    while True:
        avals = structure.unflatten([typeof(x) for x in leaves])
        kinds = _axes_by_leaf(_traced(next_carry, (avals, *carries)))
        if len(kinds) != len(leaves):  # The loop raises the error for this.
            return first
        grown = [pvary(x, axes) for x, axes in zip(leaves, kinds, strict=True)]
        if all(a is b for a, b in zip(grown, leaves, strict=True)):
            return structure.unflatten(leaves)
        leaves = grown


def _varying_as(carry: _Carry, following: _Carry) -> _Carry:
    """Return the next carry, which also varies along the axes along which the last one does."""
    leaves, structure = tree.tree_flatten(following)
    kinds = _axes_by_leaf([typeof(x) for x in tree.tree_leaves(carry)])
    if len(kinds) != len(leaves):
        return following
    return structure.unflatten([pvary(x, axes) for x, axes in zip(leaves, kinds, strict=True)])


def _all_varying(values: _Carry, axes: Axes) -> _Carry:
    """Return the values of a pytree, which then also vary along these axes."""
    leaves, structure = tree.tree_flatten(values)
    return structure.unflatten([pvary(x, axes) for x in leaves])


def _varying_along(
    function: Callable[..., _Result], axes: Sequence[Axes], *operands: PyTree
) -> _Result:
    """Wrap a function so that all its results vary along these axes."""
    leaves, structure = tree.tree_flatten(function(*operands))
    return structure.unflatten([pvary(x, own) for x, own in zip(leaves, axes, strict=True)])
