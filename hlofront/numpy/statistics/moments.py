"""Means, weighted means, variances and standard deviations over axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    is_complex,
    to_floating_dtype,
    to_inexact_dtype,
)
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, Axes, DTypeLike
from hlofront.core.aval import ShapedArray, SymbolicSize, typeof
from hlofront.core.axes import axis_size
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.statistics.reductions import (
    SUM,
    across_names,
    as_numbers,
    check_mask,
    fold_axes,
    is_inexact,
    reduced_axes,
    split_names,
    working_dtype,
)
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    choose,
    host_scalar,
    operand,
    operands,
    promote_args,
    promote_args_inexact,
    promote_dtypes_inexact,
    with_shape,
)
from hlofront.primitives.arrays.shaping import broadcast_shapes, reshape, transpose
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

# ---- means -------------------------------------------------------------------------------------


def moment_dtypes(
    name: str, operand_dtype: np.dtype, dtype: DTypeLike | None
) -> tuple[np.dtype, np.dtype]:
    """Return the dtype in which a mean is computed, and the dtype of the result."""
    if dtype is not None:
        requested = check_user_dtype_supported(dtype, name)
        return requested, requested
    result = to_inexact_dtype(operand_dtype)
    return working_dtype(result), result


def count_over(
    aval: ShapedArray,
    axes: tuple[int, ...],
    dtype: np.dtype,
    keepdims: bool,
    where: ArrayLike | None,
    names: tuple[str, ...] = (),
) -> ArrayLike:
    """Return the number of elements reduced over axes: an array if a mask `where` is passed."""
    if where is None:
        count = 1
        for i in axes:
            count *= aval.shape[i]
        for name in names:
            count *= axis_size(name)
        return count
    shape = typeof(where).shape
    where = with_shape(where, shape, broadcast_shapes(shape, aval.shape))
    return _sum(as_numbers(where, dtype), axes, keepdims, None, names)


def _sum(
    a: ArrayLike,
    axes: tuple[int, ...],
    keepdims: bool,
    where: ArrayLike | None,
    names: tuple[str, ...],
) -> Array:
    return across_names(SUM, fold_axes(SUM, a, axes, keepdims, None, where), names)


def mean_over(
    a: ArrayLike,
    axes: tuple[int, ...],
    working: np.dtype,
    result: np.dtype,
    keepdims: bool,
    where: ArrayLike | None,
    names: tuple[str, ...] = (),
) -> Array:
    """Compute the mean over axes, by number and by name, in dtype `working`, as `result`."""
    if where is not None:
        check_mask("mean", where)
    count = count_over(typeof(a), axes, working, keepdims, where, names)
    total = _sum(as_numbers(a, working), axes, keepdims, where, names)
    if where is None:
        count = host_number(count, working)
    return convert(elementwise.div(total, count), result, False)


@operation_like(np.mean, static_argnames=("axis", "dtype", "keepdims"))
def mean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the mean over axes, which is NaN over no elements; the mean of integers is a float.

    float16 and bfloat16 are averaged in float32 and rounded once, unless a `dtype` is passed.

    Example:
      >>> jnp.mean(jnp.array([[1.0, 2.0], [3.0, 5.0]]), axis=1)
      Array([1.5, 4. ], dtype=float32)
    """
    refuse_out("mean", out)
    a, aval = operand("mean", a)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    return mean_over(a, axes, *moment_dtypes("mean", aval.dtype, dtype), keepdims, where, names)


@operation_like(np.average, static_argnames=("axis", "returned", "keepdims"))
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Compute the weighted mean over axes; without weights, the mean.

    Args:
      a: an array.
      axis: an axis or several; all of them by default.
      weights: an array of the shape of `a`, or of its shape along `axis`.
      returned: whether to return the sums of the weights as well.
      keepdims: whether the reduced axes remain, with size 1.

    Raises:
      ValueError: if the weights have another shape.

    Example:
      >>> x = jnp.array([[1.0, 3.0], [5.0, 7.0]])
      >>> jnp.average(x, axis=1, weights=jnp.array([3, 1]))
      Array([1.5, 5.5], dtype=float32)
    """
    if weights is None:
        (a,) = promote_args_inexact("average", a)
        aval = typeof(a)
        axes = reduced_axes(axis, aval.ndim)
        dtype = aval.dtype
        result = mean_over(a, axes, working_dtype(dtype), dtype, keepdims, None)
        total = host_number(count_over(aval, axes, dtype, keepdims, None), dtype)
    else:
        a, weights = _with_weights(a, axis, weights)
        dtype = typeof(a).dtype
        axes = reduced_axes(axis, typeof(a).ndim)
        total = mean_sum(weights, axes, keepdims)
        result = elementwise.div(mean_sum(elementwise.mul(a, weights), axes, keepdims), total)
    if not returned:
        return result
    return result, with_shape(total, typeof(total).shape, typeof(result).shape)


def mean_sum(a: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Compute the sum over axes, in the dtype of `a`."""
    dtype = typeof(a).dtype
    total = fold_axes(SUM, convert(a, working_dtype(dtype), False), axes, keepdims, None, None)
    return convert(total, dtype, False)


def _with_weights(a: ArrayLike, axis: Axes, weights: ArrayLike) -> tuple[Array, Array]:
    """Return the array and its weights in one dtype and rank."""
    (a, weights), (aval, weight) = operands("average", (a, weights))
    if aval.shape != weight.shape:
        if axis is None:
            raise ValueError(
                "Axis must be specified when shapes of a and weights differ: got shapes "
                f"{aval.shape} and {weight.shape}."
            )
        axes = reduced_axes(axis, aval.ndim)
        if weight.shape != tuple([aval.shape[i] for i in axes]):
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis: got "
                f"weights of shape {weight.shape} for axis {axis} of shape {aval.shape}."
            )
        order = tuple(np.argsort(axes).tolist())
        shape = tuple([size if i in axes else 1 for i, size in enumerate(aval.shape)])
        a, weights = promote_dtypes_inexact(a, weights)
        return a, reshape(transpose(weights, order), shape)
    a, weights = promote_dtypes_inexact(a, weights)
    return a, weights


# ---- variances ---------------------------------------------------------------------------------


def centered_squares(a: ArrayLike, mean: ArrayLike) -> Array:
    """Compute the squared absolute differences, which are real, of elements and a mean."""
    difference = elementwise.sub(*promote_args("var", a, mean))
    if is_complex(typeof(difference).dtype):
        return elementwise.real(elementwise.mul(difference, elementwise.conj(difference)))
    return elementwise.square(difference)


def variance_dtypes(operand_dtype: np.dtype, dtype: DTypeLike | None) -> tuple[np.dtype, np.dtype]:
    """Return the dtype in which a variance is computed, and the dtype of the result.

    Raises:
      ValueError: if a real dtype is requested for the variance of complex numbers.
    """
    if dtype is None:
        inexact = to_inexact_dtype(operand_dtype)
        return working_dtype(inexact), to_floating_dtype(inexact)
    result = check_user_dtype_supported(dtype, "var")
    if is_complex(operand_dtype) and not is_complex(result):
        raise ValueError(
            f"jax.numpy.var does not yet support real dtype parameters when computing the "
            f"variance of an array of complex values: got dtype {result} for {operand_dtype}. "
            "Leave dtype out, and convert the variance, which is real."
        )
    return working_dtype(result), result


def variance(
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    keepdims: bool,
    where: ArrayLike | None,
    mean: ArrayLike | None,
    correction: ArrayLike,
) -> Array:
    """Compute the variance over axes; complex numbers have a real one.

    Args:
      a: an array.
      axis: an axis or several; None for all of them.
      dtype: the dtype of the result; None for that of the elements, and for integers a float's.
      keepdims: whether the reduced axes remain, with size 1.
      where: a mask of the elements that count; None for all of them.
      mean: the mean, with the reduced axes retained, if it is known.
      correction: the number subtracted from the count of elements.
    """
    a, aval = operand("var", a)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    working, result = variance_dtypes(aval.dtype, dtype)
    if where is not None:
        check_mask("var", where)
    a = as_numbers(a, working)
    if mean is None:
        mean = mean_over(a, axes, working, working, True, where, names)
    squares = centered_squares(a, mean)
    real = typeof(squares).dtype
    count = count_over(typeof(squares), axes, real, keepdims, where, names)
    total = _sum(squares, axes, keepdims, where, names)
    if not is_inexact(result):
        result = to_inexact_dtype(result)
    return convert(_divided(total, count, correction, real), result, False)


def _divided(total: ArrayLike, count: ArrayLike, correction: ArrayLike, dtype: np.dtype) -> Array:
    """Divide sums of squares by degrees of freedom, with NaN where there are none."""
    if isinstance(count, int) and isinstance(correction, int | float | np.number):
        freedom = count - correction
        if freedom <= 0:
            freedom = 0 if dtype.kind in "iu" else np.nan
        return elementwise.div(total, host_number(freedom, dtype))
    correction = convert(correction, dtype, False)
    if isinstance(count, int | SymbolicSize):
        count = host_number(count, dtype)
    freedom = elementwise.sub(count, correction)
    total, freedom = broadcast_together("var", total, freedom)
    ratio = elementwise.div(total, freedom)
    some = compare.gt(freedom, host_scalar(0, dtype))
    return choose("var", some, ratio, host_scalar(np.nan, to_inexact_dtype(dtype)))


def _correction(
    ddof: int | float, correction: int | float | None
) -> tuple[int | float | None, ArrayLike | None]:
    """Return what to subtract from the element count: as a number, or else as an array."""
    if correction is None:
        return _number_or_array(ddof)
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError(
            f"ddof and correction can't be provided simultaneously: got ddof={ddof} and "
            f"correction={correction}. They mean the same."
        )
    return _number_or_array(correction)


def _number_or_array(x: int | float) -> tuple[int | float | None, ArrayLike | None]:
    # A number, unlike an array, shows whether it leaves degrees of freedom.
    return (x, None) if isinstance(x, int | float | np.number) else (None, x)


@operation(static_argnames=("axis", "dtype", "ddof", "keepdims", "root"), nested=True)
def _var(
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    ddof: int | float | None,
    correction: ArrayLike | None,
    keepdims: bool,
    where: ArrayLike | None,
    mean: ArrayLike | None,
    root: bool,
) -> Array:
    subtracted = correction if ddof is None else ddof
    assert subtracted is not None
    result = variance(a, axis, dtype, keepdims, where, mean, subtracted)
    return elementwise.sqrt(result) if root else result


@like(np.var)
def var(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Compute the variance over axes, in two passes.

    It is NaN where `ddof` leaves no degrees of freedom.

    float16 and bfloat16 are computed in float32 and rounded once. The variance of complex numbers
    is real. `correction` is another name of `ddof`; `mean` is the mean, if it is known, with the
    reduced axes retained.

    Raises:
      ValueError: if both `ddof` and `correction` are passed, or a real `dtype` for complex numbers.

    Example:
      >>> jnp.var(jnp.array([1.0, 2.0, 3.0]))
      Array(0.6666667, dtype=float32)
    """
    refuse_out("var", out)
    return _var(a, axis, dtype, *_correction(ddof, correction), keepdims, where, mean, False)


@like(np.std)
def std(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """Compute the standard deviation over axes: the square root of the variance `var`.

    Args:
      a: an array.
      axis: an axis or several; all of them by default.
      dtype: the dtype of the result; by default that of the elements, and for integers a float's.
      out: must be None.
      ddof: the number subtracted from the count of elements.
      keepdims: whether the reduced axes remain, with size 1.
      where: a mask of the elements that count.
      mean: the mean, with the reduced axes retained, if it is known.
      correction: another name of `ddof`.

    Raises:
      ValueError: if both `ddof` and `correction` are passed, for a `dtype` of integers, and for a
        real `dtype` of complex numbers.

    Example:
      >>> jnp.std(jnp.array([1.0, 3.0]))
      Array(1., dtype=float32)
    """
    refuse_out("std", out)
    if dtype is not None and not is_inexact(check_user_dtype_supported(dtype, "std")):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return _var(a, axis, dtype, *_correction(ddof, correction), keepdims, where, mean, True)


ARRAY_METHODS: dict[str, Callable[..., Array]] = {"mean": mean, "std": std, "var": var}
