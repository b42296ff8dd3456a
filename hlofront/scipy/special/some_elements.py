"""Functions of those elements of an array that a mask selects, at the cost of these alone.

Nanoseconds for an element, before and after, and of jax: of arguments most of which are in reach of
a power series, but some of which need hundreds of steps along a differential equation, on an Intel
Xeon of 2 cores by AVX-512. AVX2 takes up to a tenth more.

    hyp1f1 of 1,000 of float32    334 and 238, jax 245         of 100,000  8,600 and 71, 550
    hyp1f1 of 1,000 of float64    717 and 206, jax 1,260       of 100,000 19,900 and 190, 2,500
    hyp2f1 of 1,000 of float32 38,000 and 3,500, jax 28,000   of 10,000  79,000 and 2,200, 33,000
    hyp2f1 of 1,000 of float64 68,000 and 5,500, jax 68,000   of 10,000 190,000 and 1,500, 69,000

The conditions and blocks take a tenth more to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.manual_axes import SAME
from hlofront.higher_order.library_loops import cond, while_loop
from hlofront.primitives.dynamic_slicing import dynamic_slice
from hlofront.primitives.sorting import sort

# A function of a mask and of arrays, which returns as many arrays as there are `others`.
OfMasked = Callable[..., Sequence[Array]]

# The number of elements that are computed together: their arrays stay in a core's cache.
_BLOCK = 1024
# Indices are in bounds.
_SAFE = "promise_in_bounds"


def of_some(
    mask: Array,
    function: OfMasked,
    operands: Sequence[tuple[Array, float]],
    others: Sequence[Array],
) -> list[Array]:
    """Return `function(mask, *arrays)` where the mask is set, and `others` elsewhere.

    The function is called for blocks of the elements of the mask alone, so that a loop which one of
    them needs is not run for all, and not at all if there are none. Under `vmap` over the mask it
    is called for as many blocks as the most of them need.

    Args:
      mask: an array of booleans.
      function: a function of elements: of a mask and arrays of its shape.
      operands: arrays of the mask's shape, each with a number that takes the place of its elements
        where the mask is not set.
      others: arrays of the shape of the mask and the dtypes of the function's results.
    """

    def masked(used: Array, arrays: Sequence[Array], others: Sequence[Array]) -> list[Array]:
        safe = [
            jnp.where(used, array, harmless)
            for array, (_, harmless) in zip(arrays, operands, strict=True)
        ]
        computed = function(used, *safe)
        return [jnp.where(used, x, other) for x, other in zip(computed, others, strict=True)]

    arrays = [array for array, _ in operands]
    if not _is_divisible(typeof(mask)):
        return cond(jnp.any(mask), lambda: masked(mask, arrays, others), lambda: list(others))
    shape, size = typeof(mask).shape, typeof(mask).size
    count = jnp.sum(mask, dtype=np.int32)
    flat = [x.reshape(-1) for x in arrays]
    flat_others = [x.reshape(-1) for x in others]

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
    """Return whether an array has several blocks, and no axis that is split over devices."""
    if aval.spec is not None or aval.manual_axis_type is not SAME:
        return False
    return all(isinstance(n, int) for n in aval.shape) and _BLOCK < aval.size < 2**30
