"""Reductions of segments: of elements with equal segment numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base import errors
from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import as_size
from hlofront.core.trace import Tracer
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.promotion import operands
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.gathering import GatherScatterMode
from hlofront.primitives.arrays.reducing import greatest_value, least_value


def _count(name: str, segment_ids: ArrayLike, num_segments: int | None) -> int:
    if num_segments is None:
        if isinstance(segment_ids, Tracer):
            raise errors.ConcretizationTypeError(
                segment_ids,
                f"It arose in the {name}() argument `num_segments`: give it, as the shape of the "
                "result depends on it.",
            )
        ids = np.asarray(segment_ids)
        if not ids.size:
            raise ValueError(f"{name}: num_segments is required if segment_ids is empty")
        num_segments = int(ids.max()) + 1
    elif isinstance(num_segments, Tracer):
        raise errors.ConcretizationTypeError(
            num_segments,
            f"It arose in the {name}() argument `num_segments`: the shape depends on it.",
        )
    count = as_size(num_segments)
    if count < 0:
        raise ValueError(f"num_segments must be non-negative, got {count}")
    return count


_ABOUT = """Args:
      data: an array, whose first axes are those of `segment_ids`.
      segment_ids: integers: the segment that each element belongs to. Elements of segments that do
        not exist, such as negative ones, are dropped.
      num_segments: the number of segments; by default one more than the largest segment id, which
        must then not be traced.
      indices_are_sorted: a promise that `segment_ids` ascend. It is not checked.
      unique_indices: a promise that no segment id occurs twice. It is not checked.
      bucket_size: has no effect; JAX has it too.
      mode: the treatment of segment ids out of bounds, a `lax.GatherScatterMode` or its name.
      out_sharding: how the result is split over a mesh.

    Returns:
      An array of shape (num_segments, ...), of the dtype of data.

    Raises:
      ValueError: if num_segments is negative, or shapes do not fit.
      TypeError: if segment_ids are not integers."""


def _reduction(
    name: str, update: str, start: Callable[[DType], ArrayLike], what: str
) -> Callable[..., Array]:
    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        (data, ids), _ = operands(name, (data, segment_ids))
        data = asarray(data)
        count = _count(name, ids, num_segments)
        aval = typeof(data)
        shape = (count, *aval.shape[typeof(ids).ndim :])
        totals = asarray(creation.full(shape, start(aval.dtype), aval.dtype))
        return getattr(totals.at[ids], update)(
            data,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            out_sharding=out_sharding,
            wrap_negative_indices=False,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}.\n\n    {_ABOUT}\n    "
    return boundary(function)


def _least(dtype: DType) -> ArrayLike:
    return -np.inf if dtype.kind == "c" else least_value(dtype)[()]


def _greatest(dtype: DType) -> ArrayLike:
    return np.inf if dtype.kind == "c" else greatest_value(dtype)[()]


segment_sum = _reduction(
    "segment_sum", "add", lambda dtype: 0, "Compute the sum of each segment, 0 if it is empty"
)
segment_prod = _reduction(
    "segment_prod",
    "multiply",
    lambda dtype: 1,
    "Compute the product of each segment, 1 if it is empty",
)
segment_max = _reduction(
    "segment_max",
    "max",
    _least,
    "Return the greatest element of each segment, or the dtype's least number if it is empty",
)
segment_min = _reduction(
    "segment_min",
    "min",
    _greatest,
    "Return the least element of each segment, or the dtype's greatest number if it is empty",
)
