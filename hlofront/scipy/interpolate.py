"""hlofront.scipy.interpolate: interpolation between the points of regular grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import issubdtype
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer
from hlofront.numpy.scalars import can_cast
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

__all__ = ["RegularGridInterpolator"]
__dir__ = dir_of(__name__)

# The pytree children of an interpolator (grid, values, fill value), and its static settings.
_Children: TypeAlias = "tuple[tuple[Array, ...], Array, Array | None]"
_Settings: TypeAlias = "tuple[str, bool]"


def _points(xi: ArrayLike | tuple[ArrayLike, ...], ndim: int) -> Array:
    """Return points as an array (..., ndim) whose last axis holds the coordinates."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    if isinstance(xi, tuple):
        return jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, xi)), axis=-1)
    xi = jnp.asarray(xi)
    if typeof(xi).ndim == 1:
        return xi[:, None] if ndim == 1 else xi
    return xi


@operation(static_argnames=("method", "fills"))
def _evaluate(
    grid: tuple[Array, ...],
    values: Array,
    xi: Array,
    fill_value: Array | None,
    method: str,
    fills: bool,
) -> Array:
    shape = typeof(xi).shape
    xi = jnp.reshape(xi, (-1, shape[-1]))
    lower, shares, outside = [], [], None
    for i, points in enumerate(grid):
        x = xi[:, i]
        count = typeof(points).shape[0]
        index = jnp.clip(jnp.searchsorted(points, x) - 1, 0, max(count - 2, 0))
        if count > 1:
            below = points[index]
            share = (x - below) / (points[index + 1] - below)
        else:
            share = jnp.zeros_like(x)
        lower.append(index)
        shares.append(share)
        beyond = jnp.logical_or(x < points[0], x > points[-1])
        outside = beyond if outside is None else jnp.logical_or(outside, beyond)
    trailing_ndim = typeof(values).ndim - len(grid)
    if method == "nearest":
        nearest = [
            jnp.where(share <= 0.5, index, index + 1)
            for index, share in zip(lower, shares, strict=True)
        ]
        result = values[tuple(nearest)]
    else:
        result = _between(values, lower, shares, trailing_ndim)
    if fills:
        mask = jnp.reshape(outside, (-1, *(1,) * trailing_ndim))
        result = jnp.where(mask, fill_value, result)
    return jnp.reshape(result, (*shape[:-1], *typeof(values).shape[len(grid) :]))


def _between(values: Array, lower: list[Array], shares: list[Array], trailing_ndim: int) -> Array:
    """Return the linear interpolation within a grid cell: the weighted sum of its corners."""
    total: Array | float = 0.0
    for corner in itertools.product((0, 1), repeat=len(lower)):
        weight: Array | None = None
        for up, share in zip(corner, shares, strict=True):
            factor = share if up else 1 - share
            weight = factor if weight is None else weight * factor
        indices = tuple([index + up for index, up in zip(lower, corner, strict=True)])
        total = total + values[indices] * jnp.reshape(weight, (-1, *(1,) * trailing_ndim))
    return total


class RegularGridInterpolator:
    """An interpolator of a function of N variables, sampled on a rectangular grid.

        interpolator = RegularGridInterpolator((x, y), values)
        interpolator(jnp.array([[0.5, 1.5]]))

    Args:
      points: an array of ascending coordinates for each axis of the grid.
      values: an array whose first axes are the grid's.
      method: "linear" or "nearest".
      bounds_error: must be False, as values are not known while tracing.
      fill_value: the value outside of the grid; None to extrapolate from the outermost cells.

    Raises:
      ValueError: if shapes do not fit, coordinates do not ascend, the method is unknown, or the
        fill value does not fit the values' dtype.
      TypeError: if `points` are not arrays.
      NotImplementedError: if `bounds_error` is True.
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        self._check_method(method)
        if bounds_error:
            raise NotImplementedError(  # JAX raises this class.
                "`bounds_error` takes no effect under JIT: leave it False, and look for the "
                "fill value."
            )
        check_arraylike("RegularGridInterpolator", *points)
        check_arraylike("RegularGridInterpolator", values)
        values = jnp.asarray(values)
        if not issubdtype(typeof(values).dtype, np.inexact):
            values = values.astype(float)
        aval = typeof(values)
        if len(points) > aval.ndim:
            raise ValueError(
                f"there are {len(points)} point arrays, but values has {aval.ndim} dimensions"
            )
        for i, one in enumerate(points):
            shape = typeof(one).shape
            if len(shape) != 1 or aval.shape[i] != shape[0]:
                raise ValueError(
                    f"point array {i} has shape {shape}, and values has {aval.shape[i]} elements "
                    f"along dimension {i}"
                )
            if not isinstance(one, Tracer) and not bool(
                (np.diff(np.asarray(one, np.float64)) > 0).all()
            ):
                raise ValueError(f"the points in dimension {i} must be strictly ascending")
        if fill_value is not None:
            check_arraylike("RegularGridInterpolator", fill_value)
            if not can_cast(typeof(fill_value).dtype, aval.dtype, "same_kind"):
                raise ValueError(
                    "fill_value must be either 'None' or of a type compatible with values: got "
                    f"{typeof(fill_value).dtype} for {aval.dtype}"
                )
            # Python numbers stay weakly typed.
            weak = typeof(fill_value).weak_type
            fill_value = convert(jnp.asarray(fill_value, aval.dtype), aval.dtype, weak)
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value
        self.grid = tuple([jnp.asarray(one) for one in points])
        self.values = values

    @staticmethod
    def _check_method(method: str) -> None:
        check_choice("RegularGridInterpolator", "method", method, ("linear", "nearest"))

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """Compute the interpolated values at points.

        Args:
          xi: an array whose last axis holds the coordinates, or a tuple of an array for each
            coordinate.
          method: "linear" or "nearest", by default the interpolator's.

        Returns:
          An array of the shape of the points without their last axis, and of the values without
          those of the grid.

        Raises:
          ValueError: if the points have another number of coordinates, or the method is unknown.
        """
        method = self.method if method is None else method
        self._check_method(method)
        ndim = len(self.grid)
        xi = _points(xi, ndim)
        if typeof(xi).shape[-1] != ndim:
            raise ValueError(
                f"the requested sample points xi have dimension {typeof(xi).shape[-1]}, but this "
                f"RegularGridInterpolator has dimension {ndim}"
            )
        fills = self.fill_value is not None
        return _evaluate(self.grid, self.values, xi, self.fill_value, method, fills)


def _flatten(interpolator: RegularGridInterpolator) -> tuple[_Children, _Settings]:
    parts = (interpolator.grid, interpolator.values, interpolator.fill_value)
    return parts, (interpolator.method, interpolator.bounds_error)


def _unflatten(settings: _Settings, parts: _Children) -> RegularGridInterpolator:
    interpolator = object.__new__(RegularGridInterpolator)
    interpolator.grid, interpolator.values, interpolator.fill_value = parts
    interpolator.method, interpolator.bounds_error = settings
    return interpolator


tree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
