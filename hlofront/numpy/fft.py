"""hlofront.numpy.fft: discrete Fourier transforms along any axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import is_complex, issubdtype, to_complex_dtype, to_inexact_dtype
from hlofront.base.elements import host_number
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import as_size, canonical_axis
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.frequencies import fftfreq as fftfreq
from hlofront.numpy.frequencies import fftshift as fftshift
from hlofront.numpy.frequencies import ifftshift as ifftshift
from hlofront.numpy.frequencies import rfftfreq as rfftfreq
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import operand
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import transpose
from hlofront.primitives.arrays.slicing import pad, slice_in_dim
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.fourier import FftType
from hlofront.primitives.linalg.fourier import fft as transform
from hlofront.runtime.dispatch.operation import operation

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
__dir__ = dir_of(__name__)

_NORMS = ("backward", "ortho", "forward")


# ---- all transforms ------------------------------------------------------------------------------


def _lengths(s: Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(map(as_size, s))
    if any(size < 1 for size in lengths):
        raise ValueError(f"Shape should be positive: got {lengths}")
    return lengths


def _resized(x: Array, axis: int, size: int) -> Array:
    """Return x cut off, or padded with zeros at the end, to `size` elements along an axis."""
    aval = typeof(x)
    old_size = aval.shape[axis]
    if old_size > size:
        return slice_in_dim(x, 0, size, axis=axis)
    if old_size == size:
        return x
    rows = [(0, 0, 0)] * aval.ndim
    rows[axis] = (0, size - old_size, 0)
    return pad(x, host_number(0, aval.dtype), rows)


def _checked_norm(norm: str | None) -> str:
    """Return the name of a normalization, "backward" for None; raise ValueError if unknown."""
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return norm


def _scale(lengths: tuple[int, ...], norm: str | None, backward: bool) -> float:
    """Return the normalization factor of a transform; backward ones divide by the element count."""
    norm = _checked_norm(norm)
    count = math.prod(lengths)
    if not count or norm == "backward":
        return 1.0
    if norm == "ortho":
        return math.sqrt(count) if backward else 1 / math.sqrt(count)
    return count if backward else 1 / count


def _check_axes(name: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    canonical = []
    for axis in axes:
        index = operator.index(axis)
        if not -ndim <= index < ndim:
            raise ValueError(f"axis {index} is out of bounds for array of dimension {ndim}")
        canonical.append(canonical_axis(index, ndim))
    if len(set(canonical)) != len(canonical):
        raise ValueError(f"{name} does not support repeated axes. Got axes {tuple(axes)}.")
    return tuple(canonical)


def _transformed(
    name: str,
    kind: FftType,
    a: ArrayLike,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    """Compute the Fourier transform along several axes, by default all of them."""
    a, aval = operand(name, a)
    a = asarray(a)
    if axes is None:
        axes = range(aval.ndim) if s is None else range(aval.ndim - len(s), aval.ndim)
    axes = tuple(axes)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {tuple(s)} and {axes}.")
    canonical = _check_axes(name, axes, aval.ndim)
    is_real = kind is FftType.RFFT
    if is_real and issubdtype(aval.dtype, np.complexfloating):
        raise ValueError(f"only real valued inputs supported for rfft: {name} got {aval.dtype}")
    requested = None if s is None else _lengths(s)
    lengths = requested or tuple([aval.shape[axis] for axis in canonical])
    if kind is FftType.IRFFT and canonical:
        if requested is None:
            lengths = (*lengths[:-1], max(2 * (lengths[-1] - 1), 0))
    backward = kind in (FftType.IFFT, FftType.IRFFT)
    scale = _scale(lengths, norm, backward)
    if not canonical:
        return a if is_complex(aval.dtype) else convert(a, to_complex_dtype(aval.dtype), False)
    for axis, size in zip(canonical, lengths, strict=True):
        halved = kind is FftType.IRFFT and axis == canonical[-1]
        a = _resized(a, axis, size // 2 + 1 if halved and size else size)
    other_axes = [axis for axis in range(aval.ndim) if axis not in canonical]
    order = (*other_axes, *canonical)
    moved = order != tuple(range(aval.ndim))
    if moved:
        a = transpose(a, order)
    a = _in_steps(kind, a, lengths)
    if moved:
        a = transpose(a, tuple(np.argsort(order).tolist()))
    return a if scale == 1.0 else elementwise.mul(a, creation.full_like(a, scale))


def _in_steps(kind: FftType, a: Array, lengths: tuple[int, ...]) -> Array:
    """Compute the transform over the last axes in steps of at most three axes, XLA's limit."""
    if kind is FftType.RFFT:
        a = convert(a, to_inexact_dtype(typeof(a).dtype), False)
    if len(lengths) <= 3:
        return transform(a, kind, lengths)
    ndim, count = typeof(a).ndim, len(lengths)
    first, last = lengths[: count - 3], lengths[count - 3 :]
    whole = FftType.IFFT if kind in (FftType.IFFT, FftType.IRFFT) else FftType.FFT
    order = (*range(ndim - count), *range(ndim - 3, ndim), *range(ndim - count, ndim - 3))

    def outer(a: Array) -> Array:
        a = _in_steps(whole, transpose(a, order), first)
        return transpose(a, tuple(np.argsort(order).tolist()))

    # Numbers are real before the last axis is transformed forward or after it is transformed back.
    if kind is FftType.IRFFT:
        return transform(outer(a), kind, last)
    return outer(transform(a, kind, last))


def _one(
    name: str, kind: FftType, a: ArrayLike, n: int | None, axis: int, norm: str | None
) -> Array:
    if isinstance(axis, list | tuple):
        raise ValueError(
            f"{name} does not support multiple axes. Please use {name}n. Got axis = {axis}."
        )
    return _transformed(name, kind, a, None if n is None else (n,), (axis,), norm)


def _two(
    name: str,
    kind: FftType,
    a: ArrayLike,
    s: Sequence[int] | None,
    axes: Sequence[int],
    norm: str | None,
) -> Array:
    if len(axes) != 2:
        raise ValueError(f"{name} only supports 2 axes. Got axes = {axes}.")
    return _transformed(name, kind, a, s, axes, norm)


# ---- along one axis ------------------------------------------------------------------------------

_ONE = ("n", "axis", "norm")
_SEVERAL = ("s", "axes", "norm")


@operation_like(np.fft.fft, static_argnames=_ONE)
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the discrete Fourier transform along an axis.

    Args:
      a: an array; real numbers are made complex.
      n: the transform size: the axis is cut off, or padded with zeros.
      axis: the axis.
      norm: which direction divides by n: "backward" (the default) or "forward"; "ortho" divides
        both by the root of n.

    Raises:
      ValueError: if n is not positive, or there is no such axis or norm.

    Example:
      >>> jnp.fft.fft(jnp.array([1, 2, 3, 4])).real.round(3)
      Array([10., -2., -2., -2.], dtype=float32)
    """
    return _one("jnp.fft.fft", FftType.FFT, a, n, axis, norm)


@operation_like(np.fft.ifft, static_argnames=_ONE)
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of the Fourier transform `fft` along an axis.

    Example:
      >>> jnp.fft.ifft(jnp.array([4, 0, 0, 0])).real.round(3)
      Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("jnp.fft.ifft", FftType.IFFT, a, n, axis, norm)


@operation_like(np.fft.rfft, static_argnames=_ONE)
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the first half of the Fourier transform of real numbers along an axis.

    Args:
      a: an array of real numbers.
      n: the transform size: the axis is cut off, or padded with zeros.
      axis: the axis, which has n // 2 + 1 elements in the result.
      norm: which direction divides by n: "backward" (the default) or "forward"; "ortho" divides
        both by the root of n.

    Returns:
      An array of complex numbers.

    Raises:
      ValueError: if n is not positive, or there is no such axis or norm.

    Example:
      >>> jnp.fft.rfft(jnp.array([1, 2, 3, 4])).real.round(3)
      Array([10., -2., -2.], dtype=float32)
    """
    return _one("jnp.fft.rfft", FftType.RFFT, a, n, axis, norm)


@operation_like(np.fft.irfft, static_argnames=_ONE)
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of `rfft`, the Fourier transform of real numbers, along an axis.

    Args:
      a: the first half of a transform, along the axis: real numbers are made complex.
      n: the size of the axis in the result, by default 2 (m - 1) for m elements of `a`.
      axis: the axis.
      norm: which direction divides by n: "backward" (the default) or "forward"; "ortho" divides
        both by the root of n.

    Returns:
      An array of real numbers.

    Raises:
      ValueError: if n is not positive, or there is no such axis or norm.

    Example:
      >>> jnp.fft.irfft(jnp.ones(3)).shape, jnp.fft.irfft(jnp.ones(3), n=5).shape
      ((4,), (5,))
    """
    return _one("jnp.fft.irfft", FftType.IRFFT, a, n, axis, norm)


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _opposite(norm: str | None) -> str:
    return _OPPOSITE[_checked_norm(norm)]


def _checked(a: ArrayLike, axis: int, name: str) -> Array:
    """Return the operand as an array. Raise IndexError if it has no axis `axis`."""
    a, aval = operand(name, a)
    if not isinstance(axis, list | tuple) and not -aval.ndim <= axis < aval.ndim:
        raise IndexError(f"{name}: axis {axis} is out of bounds for array of shape {aval.shape}")
    return asarray(a)


@operation_like(np.fft.hfft, static_argnames=_ONE)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the real transform of a Hermitian-symmetric sequence from its first half.

    Example:
      >>> jnp.fft.hfft(jnp.array([1, 1j, 0])).round()
      Array([ 1.,  3.,  1., -1.], dtype=float32)
    """
    a = _checked(a, axis, "jnp.fft.hfft")
    a = elementwise.conj(a) if is_complex(typeof(a).dtype) else a
    return _one("jnp.fft.hfft", FftType.IRFFT, a, n, axis, _opposite(norm))


@operation_like(np.fft.ihfft, static_argnames=_ONE)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Compute the inverse of the Hermitian transform `hfft` along an axis.

    Example:
      >>> jnp.fft.ihfft(jnp.array([1.0, 2.0, 3.0, 2.0])).shape
      (3,)
    """
    a = _checked(a, axis, "jnp.fft.ihfft")
    return elementwise.conj(_one("jnp.fft.ihfft", FftType.RFFT, a, n, axis, _opposite(norm)))


# ---- along several axes --------------------------------------------------------------------------


def _static(sizes: Sequence[int] | None) -> Sequence[int] | None:
    """Return a list or NumPy array as a tuple, which is hashable; return other values unchanged."""
    return tuple(sizes) if isinstance(sizes, list | np.ndarray) else sizes


@operation(static_argnames=("kind", "two", *_SEVERAL))
def _along_axes(
    a: ArrayLike,
    *,
    kind: FftType,
    two: bool,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    name = "jnp.fft." + kind.name.lower() + ("2" if two else "n")
    return (_two if two else _transformed)(name, kind, a, s, axes, norm)


def _several(
    a: ArrayLike,
    kind: FftType,
    two: bool,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    return _along_axes(a, kind=kind, two=two, s=_static(s), axes=_static(axes), norm=norm)


@like(np.fft.fft2)
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Compute the Fourier transform of an array along two axes.

    Args:
      a: an array; real numbers are made complex.
      s: the transform sizes along the axes.
      axes: the axes.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.fft2(jnp.array([[1, 2], [3, 5]])).real.round()
      Array([[11., -3.],
             [-5.,  1.]], dtype=float32)
    """
    return _several(a, FftType.FFT, True, s, axes, norm)


@like(np.fft.ifft2)
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Compute the inverse Fourier transform of an array along two axes.

    Args:
      a: an array; real numbers are made complex.
      s: the transform sizes along the axes.
      axes: the axes.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.ifft2(jnp.array([[4, 0], [0, 0]])).real.round(3)
      Array([[1., 1.],
             [1., 1.]], dtype=float32)
    """
    return _several(a, FftType.IFFT, True, s, axes, norm)


@like(np.fft.rfft2)
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Compute half of the Fourier transform of a real array along two axes.

    Args:
      a: an array of real numbers.
      s: the transform sizes along the axes.
      axes: the axes; the last has n // 2 + 1 elements in the complex result.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.rfft2(jnp.ones((4, 6))).shape
      (4, 4)
    """
    return _several(a, FftType.RFFT, True, s, axes, norm)


@like(np.fft.irfft2)
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Compute the inverse of the real Fourier transform `rfft2` along two axes.

    Args:
      a: an array; real numbers are made complex.
      s: the sizes of the axes in the real result; by default 2 (m - 1) for m elements of the last.
      axes: the axes; the last one was halved.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.irfft2(jnp.ones((4, 4))).shape, jnp.fft.irfft2(jnp.ones((4, 4)), s=(4, 7)).shape
      ((4, 6), (4, 7))
    """
    return _several(a, FftType.IRFFT, True, s, axes, norm)


@like(np.fft.fftn)
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the discrete Fourier transform along several axes.

    Args:
      a: an array; real numbers are made complex.
      s: the transform sizes along the axes.
      axes: the axes: by default all, or the last ones if `s` is passed.
      norm: see `fft`.

    Raises:
      ValueError: if an axis is repeated or out of range, sizes are not positive, or there are
        not as many of them as axes.

    Example:
      >>> jnp.fft.fftn(jnp.ones((2, 2, 2)), axes=(0, 1))[0, 0].real.round()
      Array([4., 4.], dtype=float32)
    """
    return _several(a, FftType.FFT, False, s, axes, norm)


@like(np.fft.ifftn)
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the inverse Fourier transform of an array along several axes.

    Args:
      a: an array; real numbers are made complex.
      s: the transform sizes along the axes.
      axes: the axes: by default all, or the last ones if `s` is passed.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.ifftn(jnp.ones((2, 3, 4)), s=(8, 2), axes=(0, 1)).shape
      (8, 2, 4)
    """
    return _several(a, FftType.IFFT, False, s, axes, norm)


@like(np.fft.rfftn)
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute half of the Fourier transform of a real array along axes.

    Args:
      a: an array of real numbers.
      s: the transform sizes along the axes.
      axes: the axes: by default all, or the last ones if `s` is passed. The last of them has
        n // 2 + 1 elements in the complex result.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.rfftn(jnp.ones((2, 3, 6))).shape
      (2, 3, 4)
    """
    return _several(a, FftType.RFFT, False, s, axes, norm)


@like(np.fft.irfftn)
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Compute the inverse of the real Fourier transform `rfftn` along several axes.

    Args:
      a: an array; real numbers are made complex.
      s: the sizes of the axes in the real result; by default 2 (m - 1) for m elements of the last.
      axes: the axes: by default all, or the last ones if `s` is passed. The last one was halved.
      norm: which direction divides by the sizes: "backward", "forward", or "ortho" for both.

    Raises:
      ValueError: if an axis is repeated or out of range, or sizes do not fit the axes.

    Example:
      >>> jnp.fft.irfftn(jnp.ones((2, 3, 4))).shape
      (2, 3, 6)
    """
    return _several(a, FftType.IRFFT, False, s, axes, norm)
