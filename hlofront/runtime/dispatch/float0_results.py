"""Results of dtype float0, which no device has: compiled functions make them on the host."""

from collections.abc import Callable

import numpy as np

from hlofront.base import tree
from hlofront.base.dtypes import float0


class _Float0:
    """A tree without leaves in place of an array of float0, which so is no result of a program."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


tree.register_pytree_node(
    _Float0, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def _hidden(leaf: object) -> object:
    """Return a _Float0 for an array of float0, and any other leaf as it is."""
    return _Float0(np.shape(leaf)) if getattr(leaf, "dtype", None) == float0 else leaf


def without_float0(fun: Callable[..., object]) -> Callable[..., object]:
    """Return `fun` with results without leaves of float0, which unflattening makes again."""

    def function(*args: object, **kwargs: object) -> object:
        results = fun(*args, **kwargs)
        leaves, structure = tree.tree_flatten(results)
        if not any(getattr(leaf, "dtype", None) == float0 for leaf in leaves):
            return results
        return structure.unflatten(map(_hidden, leaves))

    return function
