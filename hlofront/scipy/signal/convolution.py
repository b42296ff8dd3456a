"""Convolution and correlation of arrays, computed directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import hlofront.numpy as jnp
import hlofront.numpy.fft as fourier
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike, Axes
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axes
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives.arrays.shaping import rev
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.linalg.conv import conv_general_dilated
from hlofront.primitives.linalg.dot_general import PrecisionLike
from hlofront.runtime.dispatch.operation import operation

_MODES = ("full", "same", "valid")

# ---- by Fourier transforms -----------------------------------------------------------------------


@operation(static_argnames=("mode", "axes"))
def _fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str, axes: tuple[int, ...]) -> Array:
    in1, in2 = promote_args_inexact("fftconvolve", in1, in2)
    one, other = typeof(in1).shape, typeof(in2).shape
    if mode == "valid" and not _fits(other, one, axes):
        in1, in2, one, other = in2, in1, other, one
    sizes = [one[i] + other[i] - 1 for i in axes]
    if not axes or 0 in sizes or not all(one) or not all(other):
        # Without axes or elements there is no transform: the result is a product, or zeros.
        shape = list(np.broadcast_shapes(*_left_out(one, other, axes)))
        for axis, size in zip(axes, sizes, strict=True):
            shape[axis] = max(size, 0)
        full = jnp.multiply(in1, in2) if not axes else jnp.zeros(shape, typeof(in1).dtype)
        return _cut(full, one, other, axes, mode)
    # Transforms are fast for sizes whose prime factors are small.
    padded = [_smooth(size) for size in sizes]
    if is_complex(typeof(in1).dtype):
        product = fourier.fftn(in1, padded, axes) * fourier.fftn(in2, padded, axes)
        full = fourier.ifftn(product, padded, axes)
    else:
        product = fourier.rfftn(in1, padded, axes) * fourier.rfftn(in2, padded, axes)
        full = fourier.irfftn(product, padded, axes)
    full = full.astype(typeof(in1).dtype)
    slices = [slice(None)] * len(one)
    for axis, size in zip(axes, sizes, strict=True):
        slices[axis] = slice(0, size)
    return _cut(full[tuple(slices)], one, other, axes, mode)


def _smooth(size: int) -> int:
    """Return the least 5-smooth integer >= size: an FFT length whose prime factors are 2, 3, 5."""
    while True:
        remaining = size
        for factor in (2, 3, 5):
            while remaining % factor == 0:
                remaining //= factor
        if remaining == 1:
            return size
        size += 1


def _left_out(
    one: tuple[int, ...], other: tuple[int, ...], axes: Sequence[int]
) -> list[tuple[int, ...]]:
    return [tuple([1 if i in axes else size for i, size in enumerate(x)]) for x in (one, other)]


def _fits(small: Sequence[int], large: Sequence[int], axes: Sequence[int]) -> bool:
    return all(small[i] <= large[i] for i in axes)


def _cut(
    full: Array, one: tuple[int, ...], other: tuple[int, ...], axes: Sequence[int], mode: str
) -> Array:
    """Return the part of a full convolution that `mode` selects."""
    if mode == "full":
        return full
    slices = [slice(None)] * typeof(full).ndim
    for i in axes:
        size = one[i] if mode == "same" else one[i] - other[i] + 1
        start = (typeof(full).shape[i] - size) // 2
        slices[i] = slice(start, start + size)
    return full[tuple(slices)]


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Axes = None) -> Array:
    """Convolve two arrays by Fourier transforms.

    Args:
      in1: an array.
      in2: an array of as many axes.
      mode: "full" for the whole convolution, "same" for its middle in the shape of `in1`, or
        "valid" for the part where both arrays overlap.
      axes: the axes to convolve, all of them by default; the others must have equal sizes.

    Returns:
      An array of floats or complex numbers.

    Raises:
      ValueError: if the ranks differ, sizes along other axes differ, or there is no such mode; with
        "valid", if neither array is as large as the other along every axis.
    """
    check_arraylike("fftconvolve", in1, in2)
    one, other = typeof(in1).shape, typeof(in2).shape
    if len(one) != len(other):
        raise ValueError(
            f"in1 and in2 should have the same dimensionality, got shapes {one} and {other}"
        )
    check_choice("fftconvolve", "mode", mode, _MODES)
    chosen = canonical_axes(range(len(one)) if axes is None else axes, len(one))
    if any(one[i] != other[i] for i in range(len(one)) if i not in chosen):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={one} in2.shape={other} {axes=}"
        )
    _check_valid(mode, one, other, chosen)
    return _fftconvolve(in1, in2, mode, tuple(chosen))


def _check_valid(mode: str, one: Sequence[int], other: Sequence[int], axes: Sequence[int]) -> None:
    if mode == "valid" and not _fits(one, other, axes) and not _fits(other, one, axes):
        raise ValueError(
            "One input must be smaller than the other in every dimension: got shapes "
            f"{tuple(one)} and {tuple(other)} with mode='valid'."
        )


# ---- directly ------------------------------------------------------------------------------------


@operation(static_argnames=("mode", "precision", "late"))
def _direct(
    in1: ArrayLike, in2: ArrayLike, mode: str, precision: PrecisionLike | None, late: bool = False
) -> Array:
    in1, in2 = promote_args_inexact("convolve", in1, in2)
    one, other = typeof(in1).shape, typeof(in2).shape
    if not math.prod(one) or not math.prod(other):
        raise ValueError(
            f"zero-size arrays not supported in convolutions, got shapes {one} and {other}."
        )
    axes = tuple(range(len(one)))
    if not axes:
        return elementwise.mul(in1, in2)
    same = one
    if mode != "same" and not _fits(other, one, axes) and _fits(one, other, axes):
        # The smaller array is the kernel, as a convolution is symmetric.
        in1, in2, one, other = in2, in1, other, one
    if mode == "valid":
        padding = [(0, 0)] * len(axes)
    else:
        # The first `left` elements of the full result are dropped.
        sizes = same if mode == "same" else [o + k - 1 for o, k in zip(one, other, strict=True)]
        left = [(k - 1 + late) // 2 if mode == "same" else 0 for k in other]
        padding = [
            (k - 1 - cut, k - 1 - (o + k - 1 - size - cut))
            for o, k, cut, size in zip(one, other, left, sizes, strict=True)
        ]
    result = conv_general_dilated(
        in1[None, None],
        rev(in2, axes)[None, None],
        (1,) * len(axes),
        padding,
        precision=precision,
    )
    return result[0, 0]


def _check(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> None:
    check_arraylike(name, in1, in2)
    one, other = typeof(in1).shape, typeof(in2).shape
    if len(one) != len(other):
        raise ValueError(
            f"in1 and in2 must have the same number of dimensions, got shapes {one} and {other}"
        )
    check_choice(name, "mode", mode, _MODES)
    _check_valid(mode, one, other, range(len(one)))


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike | None = None,
) -> Array:
    """Convolve two arrays over all of their axes.

    Args:
      in1: an array.
      in2: an array of as many axes.
      mode: "full" for the whole convolution, "same" for its middle in the shape of `in1`, or
        "valid" for the part where both arrays overlap.
      method: "direct" for sums of products, as is "auto", or "fft" for Fourier transforms.
      precision: the precision of the products, a `lax.Precision`.

    Returns:
      An array of floats or complex numbers.

    Raises:
      ValueError: if the ranks differ, an array is empty, or there is no such mode or method; with
        "valid", if neither array is as large as the other along every axis.

    Example:
      >>> jax.scipy.signal.convolve(jnp.array([1, 2, 3]), jnp.array([1, 1]), mode="same").round()
      Array([1., 3., 5.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    check_choice("convolve", "method", method, ("auto", "direct", "fft"))
    _check("convolve", in1, in2, mode)
    return _direct(in1, in2, mode, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike | None = None,
) -> Array:
    """Correlate two arrays over all of their axes, with the second conjugated.

    Args:
      in1: an array.
      in2: an array of as many axes.
      mode: "full" for the whole correlation, "same" for its middle in the shape of `in1`, or
        "valid" for the part where both arrays overlap.
      method: "direct" for sums of products, as is "auto", or "fft" for Fourier transforms.
      precision: the precision of the products, a `lax.Precision`.

    Returns:
      An array of floats or complex numbers.

    Raises:
      ValueError: as `convolve` does.
    """
    check_arraylike("correlate", in1, in2)
    in2 = _backwards(in2)
    return convolve(in1, in2, mode, method, precision)


@operation
def _backwards(x: ArrayLike) -> Array:
    x = jnp.flip(x) if typeof(x).ndim else x
    return elementwise.conj(x) if is_complex(typeof(x).dtype) else x


def _check_plane(
    name: str, in1: ArrayLike, in2: ArrayLike, boundary: str, fillvalue: float
) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(  # JAX raises this class.
            f"{name}() only supports boundary='fill', fillvalue=0, got {boundary!r} and {fillvalue}"
        )
    check_arraylike(name, in1, in2)
    shapes = [typeof(x).shape for x in (in1, in2)]
    if any(len(shape) != 2 for shape in shapes):
        raise ValueError(f"{name}() only supports 2-dimensional inputs., got shapes {shapes}")


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike | None = None,
) -> Array:
    """Convolve two matrices.

    Args:
      in1: an array of two axes.
      in2: an array of two axes.
      mode: "full" for the whole convolution, "same" for its middle in the shape of `in1`, or
        "valid" for the part where both arrays overlap.
      boundary: must be "fill".
      fillvalue: must be 0.
      precision: the precision of the products, a `lax.Precision`.

    Returns:
      An array of floats or complex numbers.

    Raises:
      ValueError: as `convolve` does, or if there are not two axes.
      NotImplementedError: for other boundaries.

    Example:
      >>> jax.scipy.signal.convolve2d(jnp.ones((3, 3)), jnp.ones((2, 2)), mode="valid").round()
      Array([[4., 4.],
             [4., 4.]], dtype=float32)
    """
    _check_plane("convolve2d", in1, in2, boundary, fillvalue)
    return convolve(in1, in2, mode, "direct", precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike | None = None,
) -> Array:
    """Correlate two matrices, with the second conjugated.

    Args:
      in1: an array of two axes.
      in2: an array of two axes.
      mode: "full" for the whole correlation, "same" for its middle in the shape of `in1`, or
        "valid" for the part where both arrays overlap.
      boundary: must be "fill".
      fillvalue: must be 0.
      precision: the precision of the products, a `lax.Precision`.

    Returns:
      An array of floats or complex numbers.

    Raises:
      ValueError: as `convolve` does, or if there are not two axes.
      NotImplementedError: for other boundaries.
    """
    _check_plane("correlate2d", in1, in2, boundary, fillvalue)
    _check("correlate2d", in1, in2, mode)
    # For kernels of even size the center is one element later than that of a convolution.
    return _direct(in1, _backwards(in2), mode, precision, late=True)
