"""The function `lax.map`, which applies a function to elements along axis 0 in a scan."""

from collections.abc import Callable

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.scan import loop
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import concatenate, slice
from hlofront.transforms.vmap import vmap


@boundary
def map(f: Callable[[PyTree], PyTree], xs: PyTree, *, batch_size: int | None = None) -> PyTree:
    """Apply a function to each element along axis 0 of a pytree of arrays, in a loop.

    Unlike `vmap` it processes only one element, or `batch_size` elements, at a time, and needs
    memory only for these.

    Args:
      f: a function of one element of `xs`.
      xs: a pytree of arrays with equal sizes along axis 0.
      batch_size: the number of elements that `f` is vmapped over at a time; None for no vmap, 0
        for all elements. The remaining elements are a batch of their own.

    Returns:
      A pytree of the results, stacked along a new axis 0.

    Raises:
      ValueError: if there are no arrays, an array is a scalar, or sizes along axis 0 differ.

    Example:
      >>> lax.map(lambda x: x @ x, jnp.arange(4.0).reshape(2, 2))
      Array([ 1., 13.], dtype=float32)
    """
    if not callable(f):
        raise TypeError(f"lax.map requires a function, got {source.shortened(repr(f))}.")
    if batch_size is None:
        return loop(f, _each, (), xs)[1]
    leaves, structure = tree.tree_flatten(xs)
    sizes = {typeof(x).shape[0] for x in leaves if typeof(x).shape}
    if batch_size < 0 or len(sizes) != 1:
        if batch_size < 0:
            raise ValueError(f"lax.map requires a batch_size of at least 0, got {batch_size}.")
        return loop(f, _each, (), xs)[
            1
        ]  # `scan` checks xs, and raises the error for an invalid one.
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
    rest_results = vmap(f)(structure.unflatten(rest))

    def joined(y: ArrayLike, other: ArrayLike) -> Array:
        return concatenate([merged(y), other], 0)

    return tree.tree_map(joined, results, rest_results)


# The body of a scan whose carry is empty.
Step = Callable[[tuple[()], PyTree], tuple[tuple[()], PyTree]]


def _each(f: Callable[[PyTree], PyTree]) -> Step:
    def step(carry: tuple[()], x: PyTree) -> tuple[tuple[()], PyTree]:
        return carry, f(x)

    return step


def _batch(f: Callable[[PyTree], PyTree]) -> Step:
    return _each(vmap(f))


def _rows(x: ArrayLike, start: int, stop: int) -> Array:
    """Return the slice `x[start:stop]` of an array along axis 0."""
    shape = typeof(x).shape
    zeros = [0] * (len(shape) - 1)
    return slice(x, (start, *zeros), (stop, *shape[1:]))


def _merged(y: ArrayLike, size: int) -> Array:
    """Merge the first two axes of an array into one of size `size`."""
    return reshape(y, (size, *typeof(y).shape[2:]))
