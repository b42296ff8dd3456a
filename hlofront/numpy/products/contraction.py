"""Products of matrices and vectors over one axis: dot, matmul, vecdot, inner; and the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, is_complex, lattice_result
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sharding.requested_shardings import named_sharding, permuted, requested
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.statistics.reductions import SUM, accumulated
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import (
    check_rank_promotion,
    choose,
    host_scalar,
    operand,
    operands,
    promote_dtypes,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import (
    ascending,
    expand_dims,
    inverse_permutation,
    reshape,
    squeeze,
    transpose,
)
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.runtime.dispatch.operation import deferred, is_operand, operation

if TYPE_CHECKING:
    from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers
    from hlofront.primitives.linalg.dot_general import PrecisionLike

PRECISION = ("precision", "preferred_element_type")


# ---- helpers of all products -------------------------------------------------------------------


def product_dtype(name: str, preferred: DTypeLike | None, *avals: ShapedArray) -> np.dtype:
    """Return the dtype in which products are summed: `preferred`, or the operands' common dtype."""
    if preferred is not None:
        return check_user_dtype_supported(preferred, name)
    first = avals[0].dtype
    for aval in avals:
        if aval.dtype is not first:
            return lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))[0]
    return first


def contract(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    axes: tuple[tuple[int, ...], tuple[int, ...]],
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    out_sharding: OutSharding = None,
) -> Array:
    """Compute the sums of products of two arrays over axes, with no batch axes.

    The result is weakly typed as `with_weak_type` says.
    """
    avals = typeof(a), typeof(b)
    result = dot_general(
        a,
        b,
        (axes, ((), ())),
        precision,
        product_dtype(name, preferred, *avals),
        out_sharding=out_sharding,
    )
    return with_weak_type(result, preferred, avals)


def with_weak_type(
    product: Array, preferred: DTypeLike | None, avals: Sequence[ShapedArray]
) -> Array:
    """Return a product, weakly typed if promotion of its operands' avals is weak.

    A dtype that the caller prefers is never weak.
    """
    if not any(aval.weak_type for aval in avals):
        return product
    weak = False
    if preferred is None:
        weak = lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))[1]
    return convert(product, typeof(product).dtype, weak)


def _conjugate(x: ArrayLike) -> ArrayLike:
    return elementwise.conj(x) if is_complex(typeof(x).dtype) else x


def flat(x: ArrayLike) -> Array:
    return reshape(x, (typeof(x).size,))


class BatchedDot(NamedTuple):
    """The plan of a product over one axis with broadcasting batch axes, as one dot_general."""

    # The batch axes of size 1 that are squeezed.
    lhs_dropped: tuple[int, ...]
    rhs_dropped: tuple[int, ...]
    dimension_numbers: DotDimensionNumbers
    # The permutation of the result's axes, or None; then the axes of size 1 to insert.
    permutation: tuple[int, ...] | None
    missing: tuple[int, ...]


@lru_cache(maxsize=4096)
def batched_dot(
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    lhs_batch: int,
    rhs_batch: int,
    lhs_axis: int,
    rhs_axis: int,
) -> BatchedDot | None:
    """Plan the product of operands of shapes `lhs` and `rhs` over one axis of each.

    Return None if their batch axes do not broadcast.

    Args:
      lhs: the shape of one operand: batch axes, then at most two more.
      rhs: the shape of the other operand.
      lhs_batch: the number of batch axes of lhs.
      rhs_batch: the number of batch axes of rhs.
      lhs_axis: the axis of lhs that is summed over.
      rhs_axis: the axis of rhs that is summed over.
    """
    count = max(lhs_batch, rhs_batch)
    # Batch axes are matched from the last one on: missing axes have negative numbers.
    lhs_dropped, rhs_dropped, missing, batch = [], [], [], []
    lhs_position: dict[int, int] = {}
    rhs_position: dict[int, int] = {}
    for position in range(count):
        i, j = position - (count - lhs_batch), position - (count - rhs_batch)
        if i < 0:
            rhs_position[j] = position
        elif j < 0:
            lhs_position[i] = position
        elif lhs[i] == rhs[j] == 1:
            lhs_dropped.append(i)
            rhs_dropped.append(j)
            missing.append(position)
        elif lhs[i] == 1:
            lhs_dropped.append(i)
            rhs_position[j] = position
        elif rhs[j] == 1:
            rhs_dropped.append(j)
            lhs_position[i] = position
        elif lhs[i] == rhs[j]:
            batch.append((i, j, position))
        else:
            return None
    lhs_kept = [i for i in range(len(lhs)) if i not in lhs_dropped]
    rhs_kept = [j for j in range(len(rhs)) if j not in rhs_dropped]
    numbers = (
        ((lhs_kept.index(lhs_axis),), (rhs_kept.index(rhs_axis),)),
        (
            tuple([lhs_kept.index(i) for i, _, _ in batch]),
            tuple([rhs_kept.index(j) for _, j, _ in batch]),
        ),
    )
    # Axes that are neither batch axes nor summed over come last, the axes of lhs first.
    lhs_used = {lhs_axis, *(i for i, _, _ in batch)}
    rhs_used = {rhs_axis, *(j for _, j, _ in batch)}
    positions = [
        *(position for _, _, position in batch),
        *(lhs_position.get(i, count) for i in lhs_kept if i not in lhs_used),
        *(rhs_position.get(j, count + 1) for j in rhs_kept if j not in rhs_used),
    ]
    order = tuple(sorted(range(len(positions)), key=positions.__getitem__))
    return BatchedDot(
        tuple(lhs_dropped),
        tuple(rhs_dropped),
        numbers,
        None if order == ascending(len(order)) else order,
        tuple(missing),
    )


def _batched(
    name: str,
    a: ArrayLike,
    b: ArrayLike,
    lhs: ShapedArray,
    rhs: ShapedArray,
    others: tuple[int, int],
    axes: tuple[int, int],
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    out_sharding: OutSharding = None,
) -> Array:
    """Compute the product of two arrays over one axis of each, with batch axes that broadcast.

    All but the last `others` axes are batch axes.

    Raises:
      ValueError: if batch axes do not broadcast.
      TypeError: if the sizes of the axes differ.
    """
    plan = batched_dot(
        lhs.shape,
        rhs.shape,
        lhs.ndim - others[0],
        rhs.ndim - others[1],
        lhs.ndim + axes[0],
        rhs.ndim + axes[1],
    )
    if plan is None:
        raise ValueError(
            f"Incompatible types for {name} arguments: {lhs.str_short()} and {rhs.str_short()}. "
            "The axes before those multiplied must broadcast."
        )
    if plan.lhs_dropped:
        a = squeeze(a, plan.lhs_dropped)
    if plan.rhs_dropped:
        b = squeeze(b, plan.rhs_dropped)
    dot_sharding = requested(name, out_sharding)
    if dot_sharding is not None:
        dot_sharding = _of_dot(dot_sharding, plan)
    result = dot_general(
        a,
        b,
        plan.dimension_numbers,
        precision,
        product_dtype(name, preferred, lhs, rhs),
        out_sharding=dot_sharding,
    )
    if plan.permutation is not None:
        result = transpose(result, plan.permutation)
    if plan.missing:
        result = expand_dims(result, plan.missing)
    return with_weak_type(result, preferred, (lhs, rhs))


def _of_dot(sharding: object, plan: BatchedDot) -> Any:
    """Return the sharding of a dot whose result has this one after a plan's other steps."""
    mesh, spec = sharding.mesh, sharding.spec
    entries = [entry for i, entry in enumerate(spec.partitions) if i not in plan.missing]
    sharding_of_dot = named_sharding(mesh, spec.update(partitions=entries))
    if plan.permutation is None:
        return sharding_of_dot
    return permuted(sharding_of_dot, inverse_permutation(plan.permutation))


def _check_ndim(name: str, position: int, aval: ShapedArray, least: int) -> None:
    if aval.ndim < least:
        raise ValueError(
            f"{name} input operand {position} must have ndim at least {least}, but it has ndim "
            f"{aval.ndim}" + (". Multiply by a scalar with *." if name == "matmul" else "")
        )


# ---- products of matrices ----------------------------------------------------------------------


@operation_like(np.matmul, static_argnames=(*PRECISION, "out_sharding"))
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Multiply matrices, which are the last two axes; the leading axes broadcast.

    Args:
      a: an array of shape (..., m, n), or (n,) for a row.
      b: an array of shape (..., n, k), or (n,) for a column.
      precision: see `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result; by default the operands'
        common one.
      out_sharding: the sharding of the result.

    Raises:
      ValueError: if an operand is a scalar, or the leading axes do not broadcast.
      TypeError: if the sizes of n differ.

    Example:
      >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
      (5, 2, 4)
      >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones(3)).shape
      (5, 2)
    """
    (a, b), (lhs, rhs) = operands("matmul", (a, b))
    _check_ndim("matmul", 0, lhs, 1)
    _check_ndim("matmul", 1, rhs, 1)
    matrices = (2 if lhs.ndim > 1 else 1, 2 if rhs.ndim > 1 else 1)
    axes = (-1, -matrices[1])
    return _batched(
        "matmul", a, b, lhs, rhs, matrices, axes, precision, preferred_element_type, out_sharding
    )


@operation_like(np.dot, static_argnames=(*PRECISION, "out_sharding"))
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sum products over the last axis of `a` and the second to last axis of `b`, or its only axis.

    A scalar multiplies the other operand. The result has the remaining axes of `a`, then those of
    `b`. For stacks of matrices, use `matmul`.

    Args:
      a: an array of shape (..., n).
      b: an array of shape (..., n, k) or (n,).
      precision: see `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: the sharding of the result.

    Raises:
      TypeError: if the sizes of n differ.

    Example:
      >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
      Array(11., dtype=float32)
    """
    (a, b), (lhs, rhs) = operands("dot", (a, b))
    if not lhs.ndim or not rhs.ndim:
        axes = ((), ())
    else:
        axes = ((lhs.ndim - 1,), (rhs.ndim - 2 if rhs.ndim > 1 else 0,))
    return contract("dot", a, b, axes, precision, preferred_element_type, out_sharding)


@operation_like(getattr(np, "matvec", np.matmul))
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices by columns: shapes (..., m, n) and (..., n) give (..., m).

    Raises:
      ValueError: if x1 has fewer than two axes, the leading axes do not broadcast, or the sizes of
        n differ.

    Example:
      >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    (x1, x2), (lhs, rhs) = operands("matvec", (x1, x2))
    _check_ndim("matvec", 0, lhs, 2)
    _check_ndim("matvec", 1, rhs, 1)
    if lhs.shape[-1] != rhs.shape[-1]:
        raise ValueError(
            f"matvec requires rows as long as columns: got shapes {lhs.shape} and {rhs.shape}"
        )
    return _batched("matvec", x1, x2, lhs, rhs, (2, 1), (-1, -1), None, None)


@operation_like(getattr(np, "vecmat", np.matmul))
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply conjugated rows by matrices: shapes (..., n) and (..., n, m) give (..., m).

    Raises:
      ValueError: if x2 has fewer than two axes, the leading axes do not broadcast, or the sizes of
        n differ.

    Example:
      >>> jnp.vecmat(jnp.array([[1, 0], [0, 1]]), jnp.array([[1, 2], [3, 4]]))
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    (x1, x2), (lhs, rhs) = operands("vecmat", (x1, x2))
    _check_ndim("vecmat", 0, lhs, 1)
    _check_ndim("vecmat", 1, rhs, 2)
    if lhs.shape[-1] != rhs.shape[-2]:
        raise ValueError(
            f"vecmat requires rows as long as columns: got shapes {lhs.shape} and {rhs.shape}"
        )
    return _batched("vecmat", _conjugate(x1), x2, lhs, rhs, (1, 2), (-1, -2), None, None)


# ---- products of vectors -----------------------------------------------------------------------


@operation_like(np.vdot, static_argnames=PRECISION)
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum the products of all elements, with the elements of `a` conjugated.

    Raises:
      TypeError: if the numbers of elements differ.

    Example:
      >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3]))
      Array(7.+0.j, dtype=complex64)
    """
    (a, b), _ = operands("vdot", (a, b))
    a, b = flat(_conjugate(a)), flat(b)
    return contract("vdot", a, b, ((0,), (0,)), precision, preferred_element_type)


@operation_like(getattr(np, "vecdot", np.vdot), static_argnames=("axis", *PRECISION))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum products along an axis, with the elements of x1 conjugated; the other axes broadcast.

    Raises:
      ValueError: if the other axes do not broadcast, or the sizes along the axis differ.

    Example:
      >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    (x1, x2), (lhs, rhs) = operands("vecdot", (x1, x2))
    _check_ndim("vecdot", 0, lhs, 1)
    _check_ndim("vecdot", 1, rhs, 1)
    i, j = canonical_axis(axis, lhs.ndim), canonical_axis(axis, rhs.ndim)
    if lhs.shape[i] != rhs.shape[j]:
        raise ValueError(
            f"vecdot requires equal sizes along axis {axis}: got shapes {lhs.shape} and {rhs.shape}"
        )
    check_rank_promotion("vecdot", [lhs.shape, rhs.shape])
    x1, x2 = _axis_last(_conjugate(x1), i), _axis_last(x2, j)
    lhs, rhs = typeof(x1), typeof(x2)
    return _batched("vecdot", x1, x2, lhs, rhs, (1, 1), (-1, -1), precision, preferred_element_type)


def _axis_last(x: ArrayLike, axis: int) -> Array:
    ndim = typeof(x).ndim
    return transpose(x, (*(i for i in range(ndim) if i != axis), axis))


@operation_like(np.inner, static_argnames=PRECISION)
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum products over the last axes of both arrays; a scalar multiplies the other operand.

    Raises:
      TypeError: if the sizes of the last axes differ.

    Example:
      >>> jnp.inner(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
      Array([11, 17], dtype=int32)
      >>> jnp.inner(jnp.ones((2, 3)), jnp.ones((4, 3))).shape
      (2, 4)
    """
    (a, b), (lhs, rhs) = operands("inner", (a, b))
    axes = ((lhs.ndim - 1,), (rhs.ndim - 1,)) if lhs.ndim and rhs.ndim else ((), ())
    return contract("inner", a, b, axes, precision, preferred_element_type)


# ---- trace -------------------------------------------------------------------------------------


@operation_like(np.trace, static_argnames=("axis1", "axis2", "dtype"))
def trace(
    a: ArrayLike,
    offset: ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum the elements on a diagonal of the matrices that two axes form.

    Args:
      a: an array of at least two axes.
      offset: the number of the diagonal, whose elements have `i + offset == j`. It may be traced.
      axis1: the axis of rows i.
      axis2: the axis of columns j.
      dtype: the dtype of the result; by default the one of `sum`.
      out: must be None.

    Raises:
      ValueError: if there are no such axes, or both are the same.

    Example:
      >>> jnp.trace(jnp.array([[1, 2, 3], [4, 5, 6]]), offset=1)
      Array(8, dtype=int32)
    """
    refuse_out("trace", out)
    a, aval = operand("trace", a)
    i, j = canonical_axis(axis1, aval.ndim), canonical_axis(axis2, aval.ndim)
    if i == j:
        raise ValueError(f"trace requires two different axes, got axis1={axis1} and axis2={axis2}")
    a = transpose(a, (*(k for k in range(aval.ndim) if k not in (i, j)), i, j))
    aval = typeof(a)
    shape = aval.shape[-2:]
    index = np.dtype(np.int32)
    rows = creation.broadcasted_iota(index, shape, 0)
    columns = creation.broadcasted_iota(index, shape, 1)
    offset = host_scalar(offset, index) if isinstance(offset, int) else offset
    on = compare.eq(*promote_dtypes(elementwise.add(*promote_dtypes(rows, offset)), columns))
    a = choose("trace", on, a, host_scalar(0, aval.dtype))
    return accumulated(SUM, a, (-2, -1), dtype)


# ---- methods -----------------------------------------------------------------------------------

_at = operation(matmul.__wrapped__, defers=True)


@operation(defers=True)
def _reflected_at(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the product of matrices y @ x."""
    return _matmul(y, x)


def _tracer_at(self: Array, other: object) -> Array:
    """Return the product of matrices self @ other."""
    return _matmul(self, other) if is_operand(other) else deferred("matmul", self, other)


def _tracer_reflected_at(self: Array, other: object) -> Array:
    """Return the product of matrices other @ self."""
    return _matmul(other, self) if is_operand(other) else deferred("matmul", other, self)


_matmul = matmul.when_traced
_at.when_traced = _tracer_at
_reflected_at.when_traced = _tracer_reflected_at

ARRAY_METHODS: dict[str, Callable[..., Array]] = {
    "__matmul__": _at,
    "__rmatmul__": _reflected_at,
    "dot": dot,
    "trace": trace,
}
