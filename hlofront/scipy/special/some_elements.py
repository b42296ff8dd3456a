"""Functions of the elements that a mask selects, without computing the other elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sharding.manual_axes import SAME
from hlofront.higher_order.control_flow.library_loops import cond, while_loop
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice
from hlofront.primitives.arrays.sorting import sort

# A function of a mask and of arrays, which returns as many arrays as there are `others`.
OfMasked = Callable[..., Sequence[Array]]

# The number of elements that are computed together: their arrays stay in a core's cache.
_BLOCK = 1024
# Indices are in bounds.
_SAFE = "promise_in_bounds"


def apply_where(
    mask: Array,
    function: OfMasked,
    operands: Sequence[tuple[Array, float]],
    elsewhere: Sequence[Array],
) -> list[Array]:
    """Return `function(mask, *arrays)` where the mask is set, else `elsewhere`.

    The function is called for blocks of selected elements, so that a slow loop runs only for the
    blocks that need it, and never if no element is selected. Under `vmap` over the mask it is
    called for the largest number of blocks that any example needs.

    Args:
      mask: an array of booleans.
      function: a function of elements: of a mask and arrays of its shape.
      operands: arrays of the mask's shape, each with a number that replaces its elements where the
        mask is not set.
      elsewhere: arrays of the shape of the mask and the dtypes of the function's results.
    """

    def masked(used: Array, arrays: Sequence[Array], elsewhere: Sequence[Array]) -> list[Array]:
        safe = [
            jnp.where(used, array, harmless)
            for array, (_, harmless) in zip(arrays, operands, strict=True)
        ]
        computed = function(used, *safe)
        return [jnp.where(used, x, other) for x, other in zip(computed, elsewhere, strict=True)]

    arrays = [array for array, _ in operands]
    if not _is_divisible(typeof(mask)):
        return cond(jnp.any(mask), lambda: masked(mask, arrays, elsewhere), lambda: list(elsewhere))
    shape, size = typeof(mask).shape, typeof(mask).size
    count = jnp.sum(mask, dtype=np.int32)
    flat = [x.reshape(-1) for x in arrays]
    flat_others = [x.reshape(-1) for x in elsewhere]

    def in_blocks() -> list[Array]:
        # Selected elements come first, with their indices; those of the others are beyond the end.
        index = jnp.arange(size, dtype=np.int32)
        order = sort(jnp.where(mask.reshape(-1), index, index + size))

        def block(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            start, *results = carry
            at = dynamic_slice(order, (start,), (_BLOCK,))
            used = at < size
            at = jnp.where(used, at, at - size)
            several = [[x.at[at].get(mode=_SAFE) for x in xs] for xs in (flat, results)]
            computed = masked(used, *several)
            results = [
                x.at[at].set(y, mode=_SAFE, unique_indices=True)
                for x, y in zip(results, computed, strict=True)
            ]
            return start + _BLOCK, *results

        zero = jnp.zeros((), np.int32)
        return list(while_loop(lambda carry: carry[0] < count, block, (zero, *flat_others))[1:])

    results = cond(count > 0, in_blocks, lambda: flat_others)
    return [x.reshape(shape) for x in results]


def _is_divisible(aval: ShapedArray) -> bool:
    """Return whether an array has several blocks, and none of its axes is split over devices."""
    if aval.spec is not None or aval.manual_axis_type is not SAME:
        return False
    return all(isinstance(n, int) for n in aval.shape) and _BLOCK < aval.size < 2**30
