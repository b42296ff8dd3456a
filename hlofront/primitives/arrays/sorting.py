"""Primitives of order: sort, top_k, approx_top_k."""

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.bridge.fast_parts import approx_top_k_size
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, SymbolicSize, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import as_size, canonical_axis
from hlofront.core.sizes.symbolic import min_dim
from hlofront.core.symbolic_zeros import BatchAxes, Duals, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import index_like
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.rules.batching import with_same_axis
from hlofront.primitives.rules.derivatives import instantiate

sort_p = Primitive("sort", multiple_results=True)


@boundary
def sort(
    operand: ArrayLike | ArrayLikes, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort elements in ascending order along an axis; reorder several arrays together.

    NaN comes last, 0.0 and -0.0 are equal, and complex numbers are ordered by their real parts,
    then by their imaginary ones.

    Args:
      operand: an array of at least one axis, or a sequence of arrays of equal shape.
      dimension: the axis to sort along.
      is_stable: whether equal elements keep their order.
      num_keys: the number of leading arrays that are sort keys, in lexicographic order.

    Returns:
      The sorted array, or a tuple of arrays for a sequence.

    Raises:
      ValueError: if the axis is out of range, or `num_keys` is not from 1 to the number of arrays.
      TypeError: if the arrays differ in shape, or the sequence is empty.

    Example:
      >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([30, 10, 20])), num_keys=1)
      (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    single = not isinstance(operand, Sequence) or isinstance(operand, str)
    operands = cast("tuple[ArrayLike, ...]", (operand,) if single else tuple(cast("Any", operand)))
    if not operands:
        raise TypeError("Sort requires at least one operand, got an empty sequence.")
    num_keys = operator.index(num_keys)
    if single and num_keys != 1:
        raise ValueError(f"num_keys={num_keys} must equal 1 for a single operand.")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    params = {
        "dimension": canonical_axis(dimension, typeof(operands[0]).ndim),
        "is_stable": bool(is_stable),
        "num_keys": num_keys,
    }
    results = process(sort_p, operands, params)
    return results[0] if single else tuple(results)


@boundary
def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` along an axis, ascending, and reorder `values` by the keys' order.

    Args:
      keys: an array of at least one axis.
      values: an array of the shape of `keys`.
      dimension: the axis to sort along.
      is_stable: whether values of equal keys keep their order.

    Returns:
      (keys, values), of the operands' shape.

    Raises:
      ValueError: if the axis is out of range.
      TypeError: if the shapes differ.

    Example:
      >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
      (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    sorted_keys, reordered = sort((keys, values), dimension, is_stable, num_keys=1)
    return sorted_keys, reordered


@infer(sort_p)
def _(*operands: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if any(operand.shape != operands[0].shape for operand in operands):
        shapes = " ".join(str(operand.shape) for operand in operands)
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    for operand in operands:
        if isinstance(operand.dtype, ExtendedDType):
            raise TypeError(
                f"sort does not accept dtype {operand.dtype}: random keys have no order. Sort the "
                "numbers hlofront.random.key_data(keys), or index the keys by an argsort of other "
                "numbers"
            )
    return list(operands)


# ---- the greatest elements -----------------------------------------------------------------------

top_k_p = Primitive("top_k", multiple_results=True)


@boundary
def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """Return the k greatest elements along an axis, in descending order, and their indices.

    Equal elements keep their order. NaN counts as the greatest.

    Args:
      operand: a real array of at least one axis.
      k: the number of elements, from 0 to the size of the axis.
      axis: the axis to select along.
      is_stable: False permits other orders of equal elements, which no platform that hlofront
        supports makes use of.

    Returns:
      [values, indices], of the operand's shape but size k along the axis; indices are int32.

    Raises:
      TypeError: if `k` is not an integer.
      ValueError: if `k` or the axis is out of range, or the operand is complex.

    Example:
      >>> lax.top_k(jnp.array([3, 9, 4, 7]), 2)
      [Array([9, 7], dtype=int32), Array([1, 3], dtype=int32)]
    """
    try:
        k = as_size(k)
    except TypeError:
        raise TypeError(
            f"k of top_k must be an integer that is known while tracing, got {k!r} of type "
            f"{type(k).__name__}."
        ) from None
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    params = {"k": k, "axis": canonical_axis(axis, typeof(operand).ndim)}
    return process(top_k_p, (operand,), params)


@infer(top_k_p)
def _(operand: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if issubdtype(operand.dtype, np.complexfloating):
        raise ValueError(
            f"top_k is not compatible with complex inputs, got {operand.dtype}: complex numbers "
            "have no order. Take their real parts or absolute values first."
        )
    if operand.shape[axis] < k:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with shape={operand.shape} and axis={axis}"
        )
    size = operand.shape[axis]
    if not isinstance(size, SymbolicSize) and size > 1 << 31:
        raise ValueError(
            f"top_k returns indices of int32, which cannot count the {size} elements of axis "
            f"{axis} of shape {operand.shape}: take the greatest of parts of it first."
        )
    shape = _resized(operand.shape, axis, k)
    return [operand.update(shape=shape), ShapedArray(shape, np.dtype(np.int32), operand.weak_type)]


def _resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


# ---- approximate top_k ---------------------------------------------------------------------------

approx_top_k_p = Primitive("approx_top_k", multiple_results=True)


@boundary
def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return approximately the k greatest elements along an axis and their indices, fast on TPUs.

    On other devices the result is exact. The algorithm is that of Chern et al., "TPU-KNN: K Nearest
    Neighbor Search at Peak FLOP/s" (2022).

    Args:
      operand: an array of floats.
      k: the number of elements, from 1 to the size of the axis.
      reduction_dimension: the axis to select along.
      recall_target: the expected fraction of the k greatest elements in the result, in (0, 1].
      reduction_input_size_override: the size to compute the recall with, where the axis is a part
        of a longer one; -1 for the size of the axis.
      aggregate_to_topk: whether to reduce the candidates to k sorted ones; if not, return all.

    Returns:
      [values, indices]: indices are int32.

    Raises:
      ValueError: if `k`, the axis or the recall is out of range, or the operand is not of floats.
    """
    return _approx_top_k(
        operand,
        k=k,
        dimension=reduction_dimension,
        recall=recall_target,
        is_max=True,
        size_override=reduction_input_size_override,
        aggregate=aggregate_to_topk,
    )


@boundary
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return approximately the k least elements along an axis and their indices, fast on TPUs.

    On other devices the result is exact.

    Args:
      operand: an array of floats.
      k: the number of elements, from 1 to the size of the axis.
      reduction_dimension: the axis to select along.
      recall_target: the expected fraction of the k least elements in the result, in (0, 1].
      reduction_input_size_override: the size to compute the recall with, where the axis is a part
        of a longer one; -1 for the size of the axis.
      aggregate_to_topk: whether to reduce the candidates to k sorted ones; if not, return all.

    Returns:
      [values, indices]: indices are int32.

    Raises:
      ValueError: if `k`, the axis or the recall is out of range, or the operand is not of floats.
    """
    return _approx_top_k(
        operand,
        k=k,
        dimension=reduction_dimension,
        recall=recall_target,
        is_max=False,
        size_override=reduction_input_size_override,
        aggregate=aggregate_to_topk,
    )


def _approx_top_k(
    operand: ArrayLike,
    k: int,
    dimension: int,
    recall: float,
    is_max: bool,
    size_override: int,
    aggregate: bool,
) -> list[Array]:
    params = {
        "k": operator.index(k),
        "reduction_dimension": operator.index(dimension),
        "recall_target": float(recall),
        "is_max_k": is_max,
        "reduction_input_size_override": operator.index(size_override),
        "aggregate_to_topk": bool(aggregate),
    }
    return process(approx_top_k_p, (operand,), params)


@infer(approx_top_k_p)
def _(
    operand: ShapedArray,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[ShapedArray]:
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if not issubdtype(operand.dtype, np.floating):
        raise ValueError(
            f"operand must be a floating type, got {operand.dtype}: use top_k for others"
        )
    axis = canonical_axis(reduction_dimension, operand.ndim)
    size = operand.shape[axis]
    if size < k:
        raise ValueError(f"k must be smaller than the size of reduction_dim {size}, got {k}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be above 0 and at most 1, got {recall_target}")
    if -1 != reduction_input_size_override < size:
        raise ValueError(
            "reduction_input_size_override must be -1 or at least the size of the axis, "
            f"{size}; got {reduction_input_size_override}"
        )
    if not aggregate_to_topk:
        k, _ = approx_top_k_size(
            size, operand.ndim, k, recall_target, False, reduction_input_size_override
        )
    shape = _resized(operand.shape, axis, k)
    return [operand.update(shape=shape), ShapedArray(shape, np.dtype(np.int32))]


# ---- derivatives ---------------------------------------------------------------------------------


def take_along(x: ArrayLike, indices: Array, axis: int, unique: bool = True) -> Array:
    """Return elements of x at in-bounds indices along an axis, like take_along_axis.

    Args:
      x: the array.
      indices: integer indices, with the result's shape and a last axis of size one.
      axis: the axis of x that the indices count along.
      unique: whether to promise that no index repeats.
    """
    shape = typeof(x).shape
    other_axes = tuple([i for i in range(len(shape)) if i != axis])
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=other_axes,
        start_indices_batching_dims=other_axes,
    )
    return gather(
        x,
        indices,
        numbers,
        tuple([min_dim(size, 1) for size in shape]),
        unique_indices=unique,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


@rules.jvp(sort_p)
def _(operands: ArrayLikes, tangents: Tangents, **params: Any) -> Duals:
    # Sort the elements' positions with them: the permutation applies to the tangents.
    axis = params["dimension"]
    positions = index_like(operands[0], axis, np.dtype(np.uint32))
    *results, indices = process(sort_p, (*operands, positions), params)
    indices = expand_dims(indices, (typeof(indices).ndim,))
    return results, [
        Zero.of(result) if type(tangent) is Zero else take_along(tangent, indices, axis)
        for result, tangent in zip(results, tangents, strict=True)
    ]


@rules.jvp(top_k_p)
def _(primals: ArrayLikes, tangents: Tangents, *, k: int, axis: int) -> Duals:
    results = process(top_k_p, tuple(primals), {"k": k, "axis": axis})
    indices = expand_dims(results[1], (typeof(results[1]).ndim,))
    return results, [take_along(instantiate(tangents[0]), indices, axis), Zero.of(results[1])]


@rules.jvp(approx_top_k_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Duals:
    results = process(approx_top_k_p, tuple(primals), params)
    ndim = typeof(results[1]).ndim
    axis = canonical_axis(params["reduction_dimension"], ndim)
    indices = expand_dims(results[1], (ndim,))
    # Without aggregation, empty candidates may repeat an index.
    tangent = take_along(
        instantiate(tangents[0]), indices, axis, unique=params["aggregate_to_topk"]
    )
    return results, [tangent, Zero.of(results[1])]


# ---- batches -------------------------------------------------------------------------------------


@rules.batch(sort_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, dimension: int, is_stable: bool, num_keys: int
) -> tuple[ArrayLikes, BatchAxes]:
    operands, axis = with_same_axis(values, axes)
    params = {
        "dimension": dimension + (dimension >= axis),
        "is_stable": is_stable,
        "num_keys": num_keys,
    }
    return process(sort_p, operands, params), [axis] * len(operands)


@rules.batch(top_k_p)
def _(
    values: ArrayLikes, axes: Sequence[int], *, k: int, axis: int
) -> tuple[ArrayLikes, Sequence[int]]:
    (batch_axis,) = axes
    params = {"k": k, "axis": axis + (axis >= batch_axis)}
    return process(top_k_p, tuple(values), params), [batch_axis, batch_axis]


@rules.batch(approx_top_k_p)
def _(
    values: ArrayLikes, axes: Sequence[int], *, reduction_dimension: int, **params: object
) -> tuple[ArrayLikes, Sequence[int]]:
    (batch_axis,) = axes
    axis = canonical_axis(reduction_dimension, typeof(values[0]).ndim - 1)
    params["reduction_dimension"] = axis + (axis >= batch_axis)
    return process(approx_top_k_p, tuple(values), params), [batch_axis, batch_axis]
