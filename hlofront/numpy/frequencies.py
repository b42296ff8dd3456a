"""The frequencies of the elements of Fourier transforms, and their order along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, issubdtype
from hlofront.base.elements import exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, Axes, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.rearranging import roll
from hlofront.numpy.support.annotations import DeviceLike
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import operand
from hlofront.primitives.arrays import creation
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, strong


def _frequencies(
    name: str,
    indices: Callable[[int], np.ndarray],
    n: int,
    d: ArrayLike,
    dtype: DTypeLike | None,
    device: DeviceLike,
) -> Array:
    if isinstance(n, list | tuple):
        raise ValueError(f"The n argument of {name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, list | tuple):
        raise ValueError(f"The d argument of {name} only takes a single value. Got d = {list(d)}.")
    d, aval = operand(name, d)
    if dtype is None:
        dtype = check_user_dtype_supported(float, name)
        if issubdtype(aval.dtype, np.inexact) and not aval.weak_type:
            dtype = aval.dtype
    else:
        dtype = check_user_dtype_supported(dtype, name)
    if isinstance(d, int | float):
        with np.errstate(all="ignore"):
            values = np.asarray(indices(n), dtype) / np.asarray(d * n, dtype)
        return asarray(exact_dtype(values.astype(dtype)), device=device)
    spacing = convert(elementwise.mul(strong(d), host_number(n, aval.dtype)), dtype, False)
    whole = asarray(exact_dtype(np.asarray(indices(n), dtype)), device=device)
    if aval.ndim:
        return elementwise.div(whole, spacing)
    return elementwise.div(whole, creation.full(typeof(whole).shape, spacing, dtype))


@like(np.fft.fftfreq)
def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of a transform, in cycles per unit of the spacing.

    Args:
      n: the transform size.
      d: the spacing of samples.
      dtype: the dtype of the result.
      device: a Device or Sharding that the result is put on.

    Raises:
      ValueError: if n or d is a list.

    Example:
      >>> jnp.fft.fftfreq(4, d=0.5)
      Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """

    def indices(n: int) -> np.ndarray:
        half = (n - 1) // 2 + 1
        return np.concatenate([np.arange(0, half), np.arange(-(n // 2), 0)])

    return _frequencies("jnp.fft.fftfreq", indices, n, d, dtype, device)


@like(np.fft.rfftfreq)
def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> Array:
    """Return the frequencies of the elements of `rfft`, in cycles per unit of the spacing.

    Args:
      n: the transform size.
      d: the spacing of samples.
      dtype: the dtype of the result.
      device: a Device or Sharding that the result is put on.

    Returns:
      An array of shape (n // 2 + 1,).

    Raises:
      ValueError: if n or d is a list.

    Example:
      >>> jnp.fft.rfftfreq(4, d=0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _frequencies("jnp.fft.rfftfreq", lambda n: np.arange(0, n // 2 + 1), n, d, dtype, device)


def _rolled(name: str, x: ArrayLike, axes: Axes, sign: int) -> Array:
    x, aval = operand(name, x)
    if axes is None:
        axes = tuple(range(aval.ndim))
    elif isinstance(axes, int | np.integer):
        axes = (int(axes),)
    shifts = [aval.shape[axis] // 2 if sign > 0 else -(aval.shape[axis] // 2) for axis in axes]
    return roll(x, tuple(shifts), tuple(axes))


@like(np.fft.fftshift)
def fftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Roll x along axes so that the element of frequency zero moves to the middle.

    Example:
      >>> jnp.fft.fftshift(jnp.fft.fftfreq(4, d=0.25))
      Array([-2., -1.,  0.,  1.], dtype=float32)
    """
    return _rolled("jnp.fft.fftshift", x, axes, 1)


@like(np.fft.ifftshift)
def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Compute the inverse of `fftshift`.

    Example:
      >>> jnp.fft.ifftshift(jnp.fft.fftshift(jnp.arange(5)))
      Array([0, 1, 2, 3, 4], dtype=int32)
    """
    return _rolled("jnp.fft.ifftshift", x, axes, -1)
