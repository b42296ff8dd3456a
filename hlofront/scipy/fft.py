"""hlofront.scipy.fft: discrete cosine transforms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.choices import check_choice
from hlofront.base.dtypes import is_complex
from hlofront.base.elements import host_number
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike, Axes, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.linalg.matrices import inexact
from hlofront.primitives.arrays.shaping import broadcast_in_dim, rev, transpose
from hlofront.primitives.arrays.slicing import concatenate, pad, slice_in_dim
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.linalg.fourier import FftType
from hlofront.primitives.linalg.fourier import fft as transform
from hlofront.runtime.dispatch.operation import operation

__all__ = ["dct", "dctn", "idct", "idctn"]
__dir__ = dir_of(__name__)

# A real linear transform of an array along an axis, orthonormal or not: (x, axis, ortho).
_Transform = Callable[[Array, int, bool], Array]

_STATIC = ("type", "n", "axis", "norm")


def _check(name: str, type: int, norm: str | None) -> None:
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")  # JAX raises this class.
    check_choice(name, "norm", norm, (None, "backward", "ortho"))


def _operand(name: str, x: ArrayLike) -> Array:
    (x,) = inexact(name, x)
    dtype = typeof(x).dtype
    # XLA transforms floats of 32 bits and more.
    return convert(x, np.dtype(np.float32), False) if dtype.itemsize < 4 else x


def _resized(x: Array, axis: int, n: int | None) -> Array:
    """Return x cut off, or padded with zeros at the end, to n elements along an axis."""
    aval = typeof(x)
    old_size = aval.shape[axis]
    size = old_size if n is None else operator.index(n)
    if size < 0:
        raise ValueError(f"n must not be negative, got {size}")
    if size < 1 <= old_size:
        raise TypeError(f"n must be positive, got {size}")
    if size <= old_size:
        return slice_in_dim(x, 0, size, axis=axis)
    rows = [(0, 0, 0)] * aval.ndim
    rows[axis] = (0, size - old_size, 0)
    return pad(x, host_number(0, aval.dtype), rows)


def _in_parts(function: _Transform, x: Array, axis: int, ortho: bool) -> Array:
    """Apply a transform of real numbers to x, or to both parts of a complex x."""
    if not is_complex(typeof(x).dtype):
        return function(x, axis, ortho)
    real, imaginary = elementwise.real(x), elementwise.imag(x)
    return elementwise.complex(function(real, axis, ortho), function(imaginary, axis, ortho))


def _along(values: NumPyArray, x: Array, axis: int) -> Array:
    """Return a vector broadcast to the shape of x, with its elements along `axis`."""
    aval = typeof(x)
    return broadcast_in_dim(values.astype(aval.dtype), aval.shape, (axis,))


def _weights(size: int, ortho: bool) -> NumPyArray:
    """Return the scale factors (size,) of the unnormalized cosine sums of the transform."""
    scale = np.full(size, math.sqrt(2 / size) if ortho else 2.0)
    if ortho:
        scale[0] = math.sqrt(1 / size)
    return scale


def _cosines(x: Array, axis: int, ortho: bool) -> Array:
    # Makhoul, "A fast cosine transform in one and two dimensions" (1980): one Fourier transform of
    # the elements of even index, followed by those of odd index in reverse.
    size = typeof(x).shape[axis]
    even = slice_in_dim(x, 0, size, 2, axis)
    odd = rev(slice_in_dim(x, 1, size, 2, axis), (axis,)) if size > 1 else None
    ordered = even if odd is None else concatenate([even, odd], axis)
    spectrum = _last(ordered, axis, FftType.FFT)
    turn = np.exp(-0.5j * np.pi * np.arange(size) / size)
    turned = elementwise.real(elementwise.mul(spectrum, _along(turn, spectrum, axis)))
    return elementwise.mul(turned, _along(_weights(size, ortho), turned, axis))


def _from_cosines(x: Array, axis: int, ortho: bool) -> Array:
    size = typeof(x).shape[axis]
    plain = elementwise.mul(strong(x), _along(1 / _weights(size, ortho), x, axis))
    # Element k of the spectrum combines elements k and size - k; element 0 stands alone.
    mirrored = rev(plain, (axis,))
    aval = typeof(mirrored)
    rows = [(0, 0, 0)] * aval.ndim
    rows[axis] = (1, -1, 0)
    mirrored = pad(mirrored, host_number(0, aval.dtype), rows)
    spectrum = elementwise.complex(plain, elementwise.neg(mirrored))
    turn = np.exp(0.5j * np.pi * np.arange(size) / size)
    spectrum = elementwise.mul(spectrum, _along(turn, spectrum, axis))
    ordered = elementwise.real(_last(spectrum, axis, FftType.IFFT))
    half = (size + 1) // 2
    even = slice_in_dim(ordered, 0, half, axis=axis)
    odd = rev(slice_in_dim(ordered, half, size, axis=axis), (axis,))
    # Both halves are padded with zeros between their elements, and then added.
    zero = host_number(0, aval.dtype)
    rows[axis] = (0, size - (2 * half - 1), 1)
    total = pad(even, zero, rows)
    if size == 1:
        return total
    rows[axis] = (1, size - 2 * (size - half), 1)
    return elementwise.add(total, pad(odd, zero, rows))


def _last(x: Array, axis: int, kind: FftType) -> Array:
    """Return the one-dimensional Fourier transform of x along an axis."""
    from_end = typeof(x).ndim - 1
    order = [i for i in range(from_end + 1) if i != axis] + [axis]
    if axis == from_end:
        return transform(x, kind, typeof(x).shape[-1:])
    moved = transpose(x, order)
    moved = transform(moved, kind, typeof(moved).shape[-1:])
    return transpose(moved, np.argsort(order).tolist())


def _one(
    name: str,
    function: _Transform,
    x: ArrayLike,
    type: int,
    n: int | None,
    axis: int,
    norm: str | None,
) -> Array:
    _check(name, type, norm)
    x = _operand(f"jax.scipy.fft.{name}", x)
    axis = canonical_axis(axis, typeof(x).ndim)
    x = _resized(x, axis, n)
    return _in_parts(function, x, axis, norm == "ortho") if typeof(x).size else x


@operation(static_argnames=_STATIC)
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the discrete cosine transform of type 2 along an axis.

    Element k is twice the sum of `x[j] cos(pi k (2 j + 1) / (2 n))`.

    Args:
      x: an array.
      type: must be 2.
      n: the number of elements that are transformed: further ones are left out, and missing ones
        are zeros.
      axis: the axis of the transform.
      norm: None or "backward" for these sums; "ortho" for an orthogonal transform.

    Raises:
      NotImplementedError: for other types.
      ValueError: for other norms, or if there is no such axis.
    """
    return _one("dct", _cosines, x, type, n, axis, norm)


@operation(static_argnames=_STATIC)
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Compute the inverse of the discrete cosine transform of type 2 along an axis.

    Args:
      x: an array; complex numbers are transformed part by part.
      type: must be 2.
      n: the transform size: the axis is cut off, or padded with zeros.
      axis: the axis.
      norm: None or "backward" for the inverse of the sums without factors, "ortho" for that of the
        orthogonal transform.

    Raises:
      NotImplementedError: for other types.
      ValueError: for other norms, or if there is no such axis.
    """
    return _one("idct", _from_cosines, x, type, n, axis, norm)


@operation(static_argnames=("name", "type", "s", "axes", "norm"))
def _along_axes(
    x: ArrayLike,
    *,
    name: str,
    type: int,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    _check(name, type, norm)
    x = _operand(f"jax.scipy.fft.{name}", x)
    ndim = typeof(x).ndim
    if s is not None and len(s) > ndim:
        raise ValueError(f"s must have at most x.ndim ({ndim}) elements, got {len(s)}")
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    canonical = [canonical_axis(axis, ndim) for axis in axes]
    if len(set(canonical)) < len(canonical):
        raise ValueError(f"{name}: repeated axis in {tuple(axes)}")
    # Axes after the last size are not resized, and sizes after the last axis are not used.
    for axis, size in zip(canonical, s or (), strict=False):
        x = _resized(x, axis, size)
    function = _cosines if name == "dctn" else _from_cosines
    for axis in canonical:
        if typeof(x).size:
            x = _in_parts(function, x, axis, norm == "ortho")
    return x


def _hashable(sizes: Axes) -> tuple[int, ...] | None:
    if sizes is None:
        return None
    if isinstance(sizes, int | np.integer):
        return (int(sizes),)
    return tuple(map(operator.index, sizes))


def dctn(
    x: ArrayLike, type: int = 2, s: Axes = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Compute the discrete cosine transform of type 2 along several axes.

    Along an axis, element k is twice the sum of `x[j] cos(pi k (2 j + 1) / (2 n))`.

    Args:
      x: an array.
      type: must be 2.
      s: the number of elements that are transformed along each axis.
      axes: the axes: by default all, or the last ones if `s` is passed.
      norm: None or "backward" for these sums; "ortho" for an orthogonal transform.

    Raises:
      NotImplementedError: for other types.
      ValueError: for other norms, if there are more sizes than axes of the array, or an axis is
        named twice or is out of range.
    """
    return _along_axes(x, name="dctn", type=type, s=_hashable(s), axes=_hashable(axes), norm=norm)


def idctn(
    x: ArrayLike, type: int = 2, s: Axes = None, axes: Axes = None, norm: str | None = None
) -> Array:
    """Compute the inverse of the discrete cosine transform of type 2 along several axes.

    Args:
      x: an array; complex numbers are transformed part by part.
      type: must be 2.
      s: the transform sizes along the axes.
      axes: the axes: by default all, or the last ones if `s` is passed.
      norm: None or "backward" for the inverse of the sums without factors, "ortho" for that of the
        orthogonal transform.

    Raises:
      NotImplementedError: for other types.
      ValueError: for other norms, or if there is no such axis.
    """
    return _along_axes(x, name="idctn", type=type, s=_hashable(s), axes=_hashable(axes), norm=norm)
