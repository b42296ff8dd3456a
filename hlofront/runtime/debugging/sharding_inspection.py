"""debug.inspect_array_sharding: the shardings of values, including those that XLA chooses."""

# pyright: basic

from collections.abc import Callable
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.bridge.client import Sharding
from hlofront.core.rules import run
from hlofront.core.trace import process
from hlofront.primitives.sharding.inspection import inspect_sharding_p


@boundary
def inspect_array_sharding(value: PyTree, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of an array, now or when its program is compiled.

    Within `jit`, XLA chooses the shardings of most values. The function is called with that choice
    each time that XLA compiles the program, not when the program runs.

    Example::

        @jax.jit
        def f(x):
            y = x @ x.T
            jax.debug.inspect_array_sharding(y, callback=print)
            return y

    Args:
      value: an array, or a pytree of arrays; the function is called for each of them.
      callback: the function. It takes a NamedSharding over the mesh of the program's arguments and
        constraints, or a GSPMDSharding where there is no mesh or it has no such spec.

    Raises:
      AttributeError: if a value has no sharding, as NumPy arrays and numbers do.
      JaxRuntimeError: if the function raises an exception during a compilation; it is the cause.
    """
    for leaf in tree.tree_leaves(value):
        process(inspect_sharding_p, (leaf,), {"callback": callback})


@run(inspect_sharding_p)
def _(x: Any, *, callback: Callable[[Sharding], None]) -> list[object]:
    if not hasattr(x, "sharding"):
        raise AttributeError(
            f"a {type(x).__name__} has no sharding: put it on devices with device_put"
        )
    callback(x.sharding)
    return []
