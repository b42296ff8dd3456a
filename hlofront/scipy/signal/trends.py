"""The subtraction of trends, constant or linear, from sequences."""

from __future__ import annotations

import itertools

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.choices import check_choice
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.support.promotion import promote_args_inexact
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.primitives.linalg.matrices import real_dtype
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("axis", "breaks"))
def _detrend(data: ArrayLike, axis: int, breaks: tuple[int, ...] | None) -> Array:
    (data,) = promote_args_inexact("detrend", data)
    if breaks is None:
        return data - jnp.mean(data, axis=axis, keepdims=True)
    data = weak_tangents(jnp.moveaxis(data, axis, -1))
    dtype, weak = typeof(data).dtype, typeof(data).weak_type
    real = real_dtype(dtype)
    pieces = []
    for start, stop in itertools.pairwise(breaks):
        piece = data[..., start:stop]
        # Positions are centered, so that the constant and the line are orthogonal in least squares.
        positions = np.arange(stop - start) - (stop - start - 1) / 2
        squares = float(np.sum(positions**2))
        positions = positions.astype(real).astype(dtype)
        positions = positions.reshape((1,) * (typeof(piece).ndim - 1) + (-1,))
        piece = piece - jnp.mean(piece, axis=-1, keepdims=True)
        if squares:
            slope = jnp.sum(piece * positions, axis=-1, keepdims=True) / squares
            piece = piece - slope * positions
        pieces.append(piece)
    result = jnp.concatenate(pieces, axis=-1) if len(pieces) > 1 else pieces[0]
    return jnp.moveaxis(convert(result, dtype, weak), -1, axis)


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: ArrayLike = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the trend of a sequence: its mean, or the lines that fit it best.

    Args:
      data: an array.
      axis: the axis of the sequence.
      type: "linear" for lines, by least squares, or "constant" for the mean.
      bp: the index where a new line begins, or several indices.
      overwrite_data: must be None.

    Returns:
      An array of the shape of `data`, of floats for integers.

    Raises:
      ValueError: if there is no such type, or an index is out of range.
      NotImplementedError: if `overwrite_data` is passed.
      ZeroDivisionError: if there are no elements along the axis.
    """
    if overwrite_data is not None:
        raise NotImplementedError(  # JAX raises this class.
            "overwrite_data argument not implemented: arrays do not change."
        )
    check_choice("detrend", "type", type, ("linear", "constant"))
    (data,) = promote_args_inexact("detrend", data)
    shape = typeof(data).shape
    axis = canonical_axis(axis, len(shape))
    if type == "constant":
        return _detrend(data, axis, None)
    size = shape[axis]
    if not size:
        raise ZeroDivisionError(f"detrend of no elements: the shape is {shape}, the axis {axis}")
    breakpoints = np.atleast_1d(np.asarray(bp))
    if np.any(breakpoints > size) or np.any(breakpoints < 0):
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis: got "
            f"{bp} for {size} elements."
        )
    breaks = np.unique(np.concatenate([[0, size], breakpoints]))
    return _detrend(data, axis, tuple(breaks.astype(int).tolist()))
