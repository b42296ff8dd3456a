"""The conversion of a pytree of arrays to one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import lattice_result
from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.numpy.support.promotion import operands
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import concatenate, split
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import real

if TYPE_CHECKING:
    from hlofront.bridge.fast_parts import PyTreeDef
    from hlofront.core.aval import ShapedArray


@boundary
def ravel_pytree(pytree: object) -> tuple[Array, Callable[[Array], Any]]:
    """Concatenate the leaves of a pytree of arrays to a vector; return it with the inverse.

    Args:
      pytree: a pytree of arrays and scalars.

    Returns:
      (vector, unravel): the elements in the order of the leaves, in their common dtype; and the
      function that makes a tree of such a vector, with leaves of the former shapes and dtypes.
    """
    leaves, structure = tree.tree_flatten(pytree)
    if not leaves:
        empty = creation.full((0,), 0, np.dtype(np.float32))
        return empty, _Unravel(structure, (), empty.dtype, True)
    values, avals = operands("ravel_pytree", tuple(leaves))
    dtype, weak = lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))
    weak = weak and not any(aval.dtype == np.bool_ for aval in avals)
    parts = [
        reshape(convert(x, dtype, weak), (aval.size,))
        for x, aval in zip(values, avals, strict=True)
    ]
    same = all((aval.dtype, aval.weak_type) == (dtype, weak) for aval in avals)
    unravel = _Unravel(structure, tuple(avals), dtype, same)
    return (parts[0] if len(parts) == 1 else concatenate(parts, 0)), unravel


class _Unravel:
    """The function from a vector to a pytree; equal instances make equal pytrees.

    It is hashable, so a jitted function that takes it as a static argument is traced once for all
    trees with the same structure.
    """

    __slots__ = ("_key", "sizes")

    def __init__(
        self, structure: PyTreeDef, avals: tuple[ShapedArray, ...], dtype: np.dtype, same: bool
    ):
        self._key = (structure, avals, dtype, same)
        self.sizes = tuple([aval.size for aval in avals])

    def __eq__(self, other: object) -> bool:
        return type(other) is _Unravel and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __call__(self, flat: Array) -> Any:
        """Return the pytree whose leaves have the elements of the vector `flat`.

        Raises ValueError if the vector has another size.
        """
        structure, avals, dtype, same = self._key
        if not avals:
            return tree.tree_unflatten(structure, [])
        aval, sizes = typeof(flat), self.sizes
        if aval.shape != (sum(sizes),):
            raise ValueError(
                f"unravel expects a vector of {sum(sizes)} elements, got shape {aval.shape}"
            )
        if not same and aval.dtype != dtype:
            raise TypeError(
                f"unravel function given array of dtype {aval.dtype}, but expected dtype {dtype}: "
                "leaves of several dtypes are made of their common one"
            )
        leaves = []
        for part, aval in zip(split(flat, sizes), avals, strict=True):
            part = reshape(part, aval.shape)
            leaves.append(part if same else _as(part, aval))
        return tree.tree_unflatten(structure, leaves)


def _as(part: Array, aval: ShapedArray) -> Array:
    is_complex = typeof(part).dtype.kind == "c"
    return convert(real(part) if is_complex and aval.dtype.kind != "c" else part, aval.dtype, False)
