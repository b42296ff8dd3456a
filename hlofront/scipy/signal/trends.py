"""Trends of sequences: constants or lines, taken off."""

import itertools
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.numpy.promotion import promote_args_inexact
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("axis", "breaks"))
def _detrend(data, axis, breaks):
    (data,) = promote_args_inexact("detrend", data)
    if breaks is None:
        return data - jnp.mean(data, axis=axis, keepdims=True)
    data = jnp.moveaxis(data, axis, -1)
    dtype = typeof(data).dtype
    real = np.zeros((), dtype).real.dtype
    pieces = []
    for start, stop in itertools.pairwise(breaks):
        piece = data[..., start:stop]
        # Least squares with places around their middle, where both terms are orthogonal.
        places = np.arange(stop - start) - (stop - start - 1) / 2
        squares = float(np.sum(places**2))
        places = places.astype(real).astype(dtype)
        places = places.reshape((1,) * (typeof(piece).ndim - 1) + (-1,))
        piece = piece - jnp.mean(piece, axis=-1, keepdims=True)
        if squares:
            slope = jnp.sum(piece * places, axis=-1, keepdims=True) / squares
            piece = piece - slope * places
        pieces.append(piece)
    result = jnp.concatenate(pieces, axis=-1) if len(pieces) > 1 else pieces[0]
    return jnp.moveaxis(result, -1, axis)


def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: Any = None
) -> Any:
    """A sequence without its trend: the mean, or the lines that fit it best.

    Args:
      data: an array.
      axis: the axis of the sequence.
      type: "linear" for lines, by least squares, or "constant" for the mean.
      bp: the places where a new line begins: a number or several.
      overwrite_data: None.

    Returns:
      An array of the shape of `data`; of integers, floats.

    Raises:
      ValueError: if the type is another, or a place is none of the sequence.
      NotImplementedError: if `overwrite_data` is given.
      ZeroDivisionError: if there are no elements along the axis.
    """
    if overwrite_data is not None:
        raise NotImplementedError(  # the class that JAX raises
            "overwrite_data argument not implemented: arrays do not change."
        )
    if type not in ("linear", "constant"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {type!r}.")
    (data,) = promote_args_inexact("detrend", data)
    shape = typeof(data).shape
    axis = canonical_axis(axis, len(shape))
    if type == "constant":
        return _detrend(data, axis, None)
    size = shape[axis]
    if not size:
        raise ZeroDivisionError(f"detrend of no elements: the shape is {shape}, the axis {axis}")
    places = np.atleast_1d(np.asarray(bp))
    if np.any(places > size) or np.any(places < 0):
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis: got "
            f"{bp} for {size} elements."
        )
    breaks = np.unique(np.concatenate([[0, size], places]))
    return _detrend(data, axis, tuple(breaks.astype(int).tolist()))
