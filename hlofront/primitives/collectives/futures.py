"""Asynchronous collectives: one operation starts a collective, and another one awaits it.

In between, XLA may run operations that do not need the result.
"""

from collections.abc import Callable

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.futures import AbstractFuture
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, infers_whole_types, transpose
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.sharded_types import infer_types
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.symbolic_zeros import UndefinedPrimal
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import squeeze
from hlofront.primitives.collectives.collectives import GroupsLike
from hlofront.primitives.collectives.exchanges import (
    as_reduce_scatter,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from hlofront.primitives.collectives.varying import may_mix
from hlofront.primitives.rules.derivatives import Cotangents, linear

reduce_scatter_start_p = Primitive("reduce_scatter_start")
unreduced_reduce_scatter_start_p = Primitive("unreduced_reduce_scatter_start")
# The primitive that awaits a collective that one of these has started.
reduce_scatter_done_p = Primitive("reduce_scatter_done")
reduce_scatter_done_p.takes_futures = True

# The collectives that can be started -> the operations that start them.
starts = {
    reduce_scatter_p: reduce_scatter_start_p,
    unreduced_reduce_scatter_p: unreduced_reduce_scatter_start_p,
}
may_mix(unreduced_reduce_scatter_start_p)
infers_whole_types.update((*starts.values(), reduce_scatter_done_p))


class Future:
    """A future for the result of a started collective, which `done()` returns.

    Attributes:
      x: the started collectives, a pytree of values of type AbstractFuture.
    """

    __slots__ = ("_done", "x")

    def __init__(self, x: PyTree, done_fun: Callable[[PyTree], PyTree]):
        self.x = x
        self._done = done_fun

    def done(self) -> PyTree:
        """Return the result of the collective."""
        return self._done(self.x)

    def __repr__(self) -> str:
        return f"Future(type={tree.tree_map(typeof, self.x)})"


@boundary
def psum_scatter_start(
    x: PyTree,
    axis_name: object,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Future:
    """Start `psum_scatter`, and return a Future whose method `done` returns the result.

    Operations between the two calls that do not need the result may run at the same time.

    Args:
      x, axis_name, scatter_dimension, axis_index_groups, tiled: the arguments of `psum_scatter`.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if the axis cannot be divided into equal shares.

    Example:
      >>> def share(gradients):
      ...     started = lax.psum_scatter_start(gradients, "data", tiled=True)
      ...     return started.done()
      >>> jax.vmap(share, axis_name="data")(jnp.ones((2, 4)))
      Array([[2., 2.],
             [2., 2.]], dtype=float32)
    """

    def started(leaf: ArrayLike) -> ArrayLike:
        primitive, operand, params = as_reduce_scatter(
            leaf, axis_name, scatter_dimension, axis_index_groups, tiled
        )
        # Start only the collective: the scattered axis, of size 1, is dropped by `done`.
        return process(starts[primitive], (operand,), {**params, "tiled": True})

    def awaited(future: ArrayLike) -> ArrayLike:
        result = process(reduce_scatter_done_p, (future,), {})
        if tiled:
            return result
        return squeeze(result, (canonical_axis(scatter_dimension, typeof(result).ndim),))

    return Future(tree.tree_map(started, x), lambda futures: tree.tree_map(awaited, futures))


def _inferred_start(primitive: Primitive) -> Callable[..., AbstractFuture]:
    def inferred(x: ShapedArray, **params: object) -> AbstractFuture:
        return AbstractFuture(infer_types(primitive, [x], params))

    return inferred


for _primitive, _start in starts.items():
    infer(_start)(_inferred_start(_primitive))


@infer(reduce_scatter_done_p)
def _(future: AbstractValue) -> ShapedArray:
    if not isinstance(future, AbstractFuture):
        raise TypeError(
            "reduce_scatter_done awaits what psum_scatter_start has started, a value of type "
            f"AbstractFuture: got {future}"
        )
    return future.inner_aval


# ---- derivatives ---------------------------------------------------------------------------------


def _transposed_start(primitive: Primitive) -> Callable[..., Cotangents]:
    """Return the transpose rule of a primitive that starts a collective: the collective's rule."""

    def transposed(cotangent: ArrayLike, x: UndefinedPrimal, /, **params: object) -> Cotangents:
        return transpose[primitive](cotangent, x, **params)

    return transposed


for _primitive, _start in starts.items():
    linear(_start, _transposed_start(_primitive))

# The cotangent of a future is that of the array.
linear(reduce_scatter_done_p, lambda cotangent, future: [cotangent])

communicating(*starts.values())
