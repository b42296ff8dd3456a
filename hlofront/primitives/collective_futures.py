"""Collectives that are started before their results are needed."""

from collections.abc import Callable

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.core.aval import typeof
from hlofront.primitives.collective_exchanges import psum_scatter
from hlofront.primitives.collectives import GroupsLike


class Future:
    """The result of a collective that was started: `done()` returns it."""

    __slots__ = ("_done", "x")

    def __init__(self, x: PyTree, done_fun: Callable[[PyTree], PyTree]):
        # What the collective was started with, or its result.
        self.x = x
        self._done = done_fun

    def done(self) -> PyTree:
        """Return the result of the collective."""
        return self._done(self.x)

    def __repr__(self) -> str:
        return f"Future(type={tree.tree_map(typeof, self.x)})"


def psum_scatter_start(
    x: PyTree,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Future:
    """Start `psum_scatter`, and return a Future whose method `done` returns the result.

    XLA itself starts collectives as early as their operands are there and waits for them where
    their results are used, so that the program is that of `psum_scatter`.

    Args:
      x, axis_name, scatter_dimension, axis_index_groups, tiled: as of `psum_scatter`.

    Example:
      >>> def share(gradients):
      ...     started = lax.psum_scatter_start(gradients, "data", tiled=True)
      ...     return started.done()
      >>> jax.vmap(share, axis_name="data")(jnp.ones((2, 4)))
      Array([[2., 2.],
             [2., 2.]], dtype=float32)
    """
    result = psum_scatter(
        x,
        axis_name,
        scatter_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        tiled=tiled,
    )
    return Future(result, lambda whole: whole)
