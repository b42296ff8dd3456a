"""Convolution and correlation of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import promote_args, promote_args_inexact
from hlofront.primitives.arrays.shaping import expand_dims, rev, squeeze
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.linalg.conv import conv_general_dilated

if TYPE_CHECKING:
    from hlofront.primitives.linalg.dot_general import PrecisionLike


def _padding(mode: str, size: int) -> tuple[int, int]:
    """Return the padding (before, after) of a sequence for a window of `size` elements."""
    if mode == "full":
        return size - 1, size - 1
    if mode == "same":
        return size // 2, size - size // 2 - 1
    if mode == "valid":
        return 0, 0
    raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")


def _operands(
    name: str, a: ArrayLike, v: ArrayLike, preferred: DTypeLike | None
) -> tuple[Array, Array]:
    a, v = (promote_args_inexact if preferred is None else promote_args)(name, a, v)
    shapes = typeof(a).shape, typeof(v).shape
    if any(len(shape) != 1 for shape in shapes):
        raise ValueError(
            f"{name}() only support 1-dimensional inputs: got shapes {shapes[0]} and {shapes[1]}."
        )
    if not all(shape[0] for shape in shapes):
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shapes[0]} and {shapes[1]}.")
    return a, v


def _slide(
    longer: Array,
    window: Array,
    mode: str,
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    backwards: bool,
) -> Array:
    """Compute the sums of products of a window with each part of a longer sequence.

    Reverse the result if `backwards`.
    """
    padding = _padding(mode, typeof(window).shape[0])
    result = conv_general_dilated(
        expand_dims(longer, (0, 1)),
        expand_dims(window, (0, 1)),
        (1,),
        [padding],
        precision=precision,
        preferred_element_type=preferred,
    )
    if backwards:
        result = rev(result, (2,))
    return squeeze(result, (0, 1))


def _size(x: Array) -> int:
    return typeof(x).shape[0]


@operation_like(np.convolve, static_argnames=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the discrete convolution of two sequences.

    Integers become floats unless a dtype is preferred.

    Args:
      a: an array of shape (m,).
      v: an array of shape (n,).
      mode: the part of the convolution: "full" for all m + n - 1 elements, "same" for as many as
        the longer sequence has, or "valid" for those where the sequences overlap wholly.
      precision: see `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.

    Raises:
      ValueError: for other shapes, empty sequences, or another mode.

    Example:
      >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
      Array([1., 3., 2.], dtype=float32)
    """
    a, v = _operands("convolve", a, v, preferred_element_type)
    if _size(a) < _size(v):
        a, v = v, a
    return _slide(a, rev(v, (0,)), mode, precision, preferred_element_type, False)


@operation_like(np.correlate, static_argnames=("mode", "precision", "preferred_element_type"))
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute the cross-correlation of two sequences, with the second one conjugated.

    Integers become floats unless a dtype is preferred.

    Args:
      a: an array of shape (m,).
      v: an array of shape (n,).
      mode: the part of the correlation: "full" for all m + n - 1 elements, "same" for as many as
        the longer sequence has, or "valid" for those where the sequences overlap wholly.
      precision: the precision of the products, a `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.

    Raises:
      ValueError: for other shapes, empty sequences, or another mode.

    Example:
      >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([0, 1]), mode="full")
      Array([1., 2., 3., 0.], dtype=float32)
    """
    a, v = _operands("correlate", a, v, preferred_element_type)
    if is_complex(typeof(v).dtype):
        v = elementwise.conj(v)
    if _size(a) < _size(v):
        return _slide(v, a, mode, precision, preferred_element_type, True)
    return _slide(a, v, mode, precision, preferred_element_type, False)
