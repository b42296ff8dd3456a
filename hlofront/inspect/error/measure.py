"""The measure of the error of an array against a reference, which is one number."""

import numpy as np

from hlofront.base.dtypes import ExtendedDType, finfo, issubdtype
from hlofront.base.typing import ArrayLike, DType, NumPyArray
from hlofront.inspect.stepwise.operands import typed

# The distribution of errors is computed from at most this many elements.
_MAX_SAMPLED = 1 << 16


def is_inexact(x: ArrayLike) -> bool:
    """Return whether an array has a real or complex floating-point dtype."""
    dtype, _ = typed(x)
    return not isinstance(dtype, ExtendedDType) and issubdtype(dtype, np.inexact)


def epsilon(dtype: DType) -> float:
    """Return the distance from 1 to the next larger number of a floating-point dtype."""
    return float(finfo(dtype).eps)


def wide_host(x: ArrayLike) -> NumPyArray:
    """Return an inexact array as a NumPy array of dtype float64 or complex128."""
    host = np.asarray(x)
    return host.astype(np.complex128 if np.iscomplexobj(host) else np.float64, copy=False)


def relative_error(ours: ArrayLike, exact: ArrayLike) -> float:
    """Return the relative error of an inexact array against a reference of the same shape.

    It is the larger of two numbers: the norm of the differences divided by the norm of the
    reference; and the relative error that one element in ten exceeds, where elements among the
    smallest quarter of those that are not zero count as if they were as large as its largest.
    So single elements that happen to be near zero do not count, a few huge elements, such as masks,
    do not hide the error of the rest, and a few wrong rows are not lost among the others.

    Elements that are NaN in both, or the same infinity, are left out. The error is infinite if an
    element is finite on one side only, or if the reference is all zeros and the array is not.
    """
    return relative_size(_differences(wide_host(ours), wide_host(exact)), wide_host(exact))


def relative_size(amounts: NumPyArray, exact: NumPyArray) -> float:
    """Return the size of nonnegative amounts relative to the elements of a reference.

    It is one number, as `relative_error` measures differences. NaN amounts are left out.
    """
    if not amounts.size:
        return 0.0
    sizes = np.abs(exact)
    counted = ~np.isnan(amounts) & np.isfinite(sizes)
    if np.isinf(amounts).any():
        return float("inf")
    if not counted.all():
        amounts, sizes = amounts[counted], sizes[counted]
    amounts, sizes = amounts.reshape(-1), sizes.reshape(-1)
    most = float(amounts.max(initial=0.0))
    if not most:
        return 0.0
    largest = float(sizes.max())
    if not largest:
        return float("inf")
    # Without the scaling, squares of large and of small elements would leave the range.
    whole = (most / largest) * _norm(amounts / most) / _norm(sizes / largest)
    if amounts.size > _MAX_SAMPLED:
        step = -(-amounts.size // _MAX_SAMPLED)
        amounts, sizes = amounts[::step], sizes[::step]
    nonzero = sizes[sizes > 0]
    if not nonzero.size:
        return whole
    least = _quantile(nonzero, 0.25)
    return max(whole, _quantile(amounts / np.maximum(sizes, least), 0.9))


def _quantile(x: NumPyArray, part: float) -> float:
    """Return the smallest element that a fraction of a vector's elements do not exceed."""
    position = int(part * (len(x) - 1))
    return float(np.partition(x, position)[position])


def _norm(x: NumPyArray) -> float:
    return float(np.sqrt(np.square(x).sum()))


def _differences(ours: NumPyArray, exact: NumPyArray) -> NumPyArray:
    """Return absolute differences: NaN for two NaNs or the same infinity twice, inf for one."""
    with np.errstate(all="ignore"):
        differences = np.abs(ours - exact)
    wrong = ~(np.isfinite(ours) & np.isfinite(exact))
    if wrong.any():
        same = (ours == exact) | (np.isnan(ours) & np.isnan(exact))
        differences = np.where(wrong, np.where(same, np.nan, np.inf), differences)
    return differences


def element_errors(ours: ArrayLike, exact: ArrayLike) -> NumPyArray:
    """Return the relative error of each element; 0 where both are NaN or the same infinity."""
    reference = wide_host(exact)
    differences = _differences(wide_host(ours), reference)
    with np.errstate(all="ignore"):
        errors = differences / np.abs(reference)
    return np.where(np.isnan(errors), 0.0, errors)


def worst_element(ours: ArrayLike, exact: ArrayLike) -> tuple[int, ...]:
    """Return the index of the element that contributes most to the error of an array.

    It is the one with the largest relative error among those with the largest differences: at
    least a tenth of the largest one.
    """
    reference = wide_host(exact)
    differences = _differences(wide_host(ours), reference)
    differences = np.where(np.isnan(differences), 0.0, differences)
    errors = element_errors(ours, exact)
    candidates = np.where(differences >= 0.1 * differences.max(), errors, -1.0)
    return tuple(int(i) for i in np.unravel_index(int(candidates.argmax()), reference.shape))
