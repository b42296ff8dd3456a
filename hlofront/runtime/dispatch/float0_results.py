"""Results of dtype float0, which no device has: compiled functions make them on the host."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.dtypes import float0


class _Float0:
    """In the place of an array of float0: a tree without leaves, and so no result of a program."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


tree.register_pytree_node(
    _Float0, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def _hidden(leaf: Any) -> Any:
    return _Float0(leaf.shape) if getattr(leaf, "dtype", None) == float0 else leaf


def without_float0(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` with results that, flattened, have no float0 among them, and unflattened have."""

    def function(*args: Any, **kwargs: Any) -> Any:
        results = fun(*args, **kwargs)
        leaves, structure = tree.tree_flatten(results)
        if not any(getattr(leaf, "dtype", None) == float0 for leaf in leaves):
            return results
        return structure.unflatten(map(_hidden, leaves))

    return function
