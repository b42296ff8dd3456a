"""Results of dtype float0, which no device has: compiled functions create them on the host."""

from collections.abc import Callable, Iterable

import numpy as np

from hlofront.base import tree
from hlofront.base.dtypes import float0
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.transforms.flatten import ShapeDtypeStruct


class _Float0:
    """A pytree without leaves that replaces a float0 array among a program's results."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


tree.register_pytree_node(
    _Float0, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, float0)
)


def _hidden(leaf: object) -> object:
    """Replace a float0 array by a _Float0; return any other leaf unchanged."""
    return _Float0(np.shape(leaf)) if getattr(leaf, "dtype", None) == float0 else leaf


def without_float0(fun: Callable[..., object]) -> Callable[..., object]:
    """Wrap `fun`, so that its float0 results are not leaves; unflattening restores them."""

    def function(*args: object, **kwargs: object) -> object:
        results = fun(*args, **kwargs)
        leaves, structure = tree.tree_flatten(results)
        if not any(getattr(leaf, "dtype", None) == float0 for leaf in leaves):
            return results
        return structure.unflatten(map(_hidden, leaves))

    return function


def described_results(structure: PyTreeDef, descriptions: Iterable[object]) -> PyTree:
    """Return descriptions of a program's results as a tree, including its float0 results.

    Args:
      structure: the structure of the results of a function that `without_float0` made.
      descriptions: the description of each result that the program computes.
    """
    return tree.tree_map(_description, structure.unflatten(descriptions))


def _description(leaf: object) -> object:
    """Replace a float0 array, which unflattening restored, by its ShapeDtypeStruct."""
    if getattr(leaf, "dtype", None) == float0:
        return ShapeDtypeStruct(np.shape(leaf), float0)
    return leaf
