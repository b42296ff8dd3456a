"""map: a function of each element along the first axis, one after the other or in batches."""

from collections.abc import Callable
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.scan import loop
from hlofront.primitives.shaping import reshape
from hlofront.primitives.slicing import concatenate, slice
from hlofront.transforms.vmap import vmap


@boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each element along the first axis of arrays.

    Unlike `vmap` it takes one element after the other, or `batch_size` of them at a time, and so
    it needs the memory for as many.

    Args:
      f: a function of one element of `xs`.
      xs: a tree of arrays that have one size along their first axis.
      batch_size: how many elements `f` is vmapped over at a time; None for one by one, 0 for all
        at once. The elements that are left over are a batch of their own.

    Returns:
      A tree of the results, stacked along a new first axis.

    Raises:
      TypeError: if `f` cannot be called.
      ValueError: if there are no arrays, they have no axis, or sizes along the first axes differ.
    """
    if not callable(f):
        raise TypeError(f"lax.map wants a function, got {source.shortened(repr(f))}.")
    if batch_size is None:
        return loop(f, _each, (), xs)[1]
    leaves, structure = tree.tree_flatten(xs)
    sizes = {typeof(x).shape[0] for x in leaves if typeof(x).shape}
    if batch_size < 0 or len(sizes) != 1:
        if batch_size < 0:
            raise ValueError(f"lax.map wants a batch_size from 0 on, got {batch_size}.")
        return loop(f, _each, (), xs)[1]  # It says what is wrong with xs.
    size = sizes.pop()
    batches, left = divmod(size, batch_size) if batch_size else (0, size)
    if not batches:
        return vmap(f)(xs)
    whole = size - left
    main: list[Array] = []
    rest: list[Array] = []
    for x in leaves:
        part = _rows(x, 0, whole) if left else x
        main.append(reshape(part, (batches, batch_size, *typeof(x).shape[1:])))
        if left:
            rest.append(_rows(x, whole, size))
    results = loop(f, _batch, (), structure.unflatten(main))[1]

    def merged(y: ArrayLike) -> Array:
        return _merged(y, whole)

    if not left:
        return tree.tree_map(merged, results)
    others = vmap(f)(structure.unflatten(rest))

    def joined(y: ArrayLike, other: ArrayLike) -> Array:
        return concatenate([merged(y), other], 0)

    return tree.tree_map(joined, results, others)


# The function of one step of a scan without a carry.
Step = Callable[[tuple[()], Any], tuple[tuple[()], Any]]


def _each(f: Callable[[Any], Any]) -> Step:
    def step(carry: tuple[()], x: Any) -> tuple[tuple[()], Any]:
        return carry, f(x)

    return step


def _batch(f: Callable[[Any], Any]) -> Step:
    return _each(vmap(f))


def _rows(x: ArrayLike, start: int, stop: int) -> Array:
    """Return the part of an array between two indices along its first axis."""
    shape = typeof(x).shape
    zeros = [0] * (len(shape) - 1)
    return slice(x, (start, *zeros), (stop, *shape[1:]))


def _merged(y: ArrayLike, size: int) -> Array:
    """Return an array whose first two axes are one, of this size."""
    return reshape(y, (size, *typeof(y).shape[2:]))
