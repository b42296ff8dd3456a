"""hlofront.scipy.ndimage: values of arrays between their elements."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import typeof
from hlofront.primitives import elementwise
from hlofront.primitives.converting import convert
from hlofront.runtime.dispatch.operation import operation

_int32 = np.dtype(np.int32)


def _mirrored(index: Any, size: int) -> Any:
    """Back and forth between the middles of the first and the last element."""
    last = size - 1
    if not last:
        return jnp.zeros_like(index)
    return jnp.abs(jnp.mod(index + last, 2 * last) - last)


def _reflected(index: Any, size: int) -> Any:
    """Back and forth between the outer edges of the first and the last element."""
    # The half steps of mirroring twice as many elements, every second one of which is there.
    return jnp.floor_divide(_mirrored(2 * index + 1, 2 * size + 1), 2)


_INDICES: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: jnp.mod(index, size),
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _rounded(x: Any) -> Any:
    """The nearest integer, halves away from zero."""
    return elementwise.round(x) if issubdtype(typeof(x).dtype, np.inexact) else x


def _around(coordinate: Any, order: int) -> list[tuple[Any, Any]]:
    """The places that a coordinate is made of, each with its weight."""
    if order == 0:
        return [(convert(_rounded(coordinate), _int32, False), 1)]
    below = jnp.floor(coordinate)
    share = jnp.subtract(coordinate, below)
    place = convert(below, _int32, False)
    return [(place, 1 - share), (place + 1, share)]


@operation(static_argnames=("order", "mode"))
def _map_coordinates(x, coordinates, cval, order, mode):
    aval = typeof(x)
    cval = convert(jnp.asarray(cval), aval.dtype, False)
    choices = []
    for coordinate, size in zip(coordinates, aval.shape, strict=True):
        found = []
        for place, weight in _around(coordinate, order):
            inside = jnp.logical_and(place >= 0, place < size) if mode == "constant" else None
            found.append((_INDICES[mode](place, size), inside, weight))
        choices.append(found)
    total: Any = None
    for corner in itertools.product(*choices):
        places = tuple([place for place, _, _ in corner])
        value = x[places]
        if mode == "constant":
            inside = functools.reduce(jnp.logical_and, [flag for _, flag, _ in corner])
            value = jnp.where(inside, value, cval)
        for _, _, weight in corner:
            value = value if isinstance(weight, int) else value * weight
        total = value if total is None else total + value
    if issubdtype(aval.dtype, np.integer):
        total = _rounded(total)
    return convert(total, aval.dtype, False)


def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Any:
    """The values of an array at places that need not be whole numbers.

    Args:
      input: an array.
      coordinates: an array of places for each of its axes; they broadcast together.
      order: 0 for the nearest element, 1 for lines between elements.
      mode: what there is outside: "constant", the value `cval`; "nearest", the nearest element;
        "wrap", the array again; "mirror", the array backwards, its last element not repeated;
        "reflect", the same with the last element repeated.
      cval: the value outside with the mode "constant".

    Returns:
      An array of the coordinates' shape and the dtype of `input`.

    Raises:
      ValueError: if there are not as many coordinates as axes.
      NotImplementedError: for other orders and modes.
    """
    x = jnp.asarray(input)
    coordinates = [jnp.asarray(c) for c in coordinates]
    if len(coordinates) != typeof(x).ndim:
        raise ValueError(
            "coordinates must be a sequence of length input.ndim, but "
            f"{len(coordinates)} != {typeof(x).ndim}"
        )
    if mode not in _INDICES:
        raise NotImplementedError(  # the class that JAX raises
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
            f"supported modes are {', '.join(_INDICES)}."
        )
    order = operator.index(order)
    if order not in (0, 1):
        raise NotImplementedError(  # the class that JAX raises
            f"jax.scipy.ndimage.map_coordinates currently requires order<=1, got {order}"
        )
    return _map_coordinates(x, coordinates, cval, order, mode)
