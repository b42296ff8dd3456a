"""Image resizing: each new element is a weighted sum of old elements, one axis at a time."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike, Shape, ShapeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axes, canonical_shape
from hlofront.numpy.support.promotion import check_arraylike, promote_dtypes_inexact
from hlofront.primitives.arrays import creation
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.dot_general import Precision, dot_general
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.primitives.linalg.dot_general import PrecisionLike


class ResizeMethod(enum.Enum):
    """The interpolation methods of `resize`.

    NEAREST returns the nearest element. LINEAR interpolates between two elements. LANCZOS3 and
    LANCZOS5 use windowed sinc kernels of radius 3 and 5 (Duchon, 1979). CUBIC and CUBIC_PYTORCH use
    the cubic convolution of Keys (1981) with the parameters -0.5 and -0.75, the latter only without
    antialiasing. AREA returns the mean over the area that a new element covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the resize method with this name.

        Raises:
          ValueError: if the name is unknown.
        """
        method = _NAMES.get(s)
        if method is None:
            raise ValueError(f'Unknown resize method "{s}". There are: {", ".join(_NAMES)}.')
        return method


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# ---- kernels: the weight of an element by distance -----------------------------------------------


def _triangle(x: Array) -> Array:
    return jnp.maximum(0, 1 - x)


def _cubic(parameter: float) -> Callable[[Array], Array]:
    a = parameter

    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        # At 0 the divisor is replaced by 1: dividing by zero would make the derivative NaN.
        square = jnp.where(x != 0, math.pi**2 * x**2, 1)
        wave = radius * jnp.sin(math.pi * x) * jnp.sin(math.pi * x / radius)
        return jnp.where(x > radius, 0, jnp.where(x > 1e-3, wave / square, 1))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}


# ---- weights -------------------------------------------------------------------------------------


def _weights(
    old: int,
    new: int,
    scale: ArrayLike,
    translation: ArrayLike,
    method: ResizeMethod,
    antialias: bool,
) -> Array:
    """Return the weight of each old element in each new element, of shape (old, new)."""
    inverse = 1.0 / scale
    dtype = np.dtype(np.float32) if isinstance(inverse, float) else typeof(inverse).dtype
    # The centers of the new elements, relative to the center of the first old element.
    centers = (creation.iota(dtype, new) + 0.5) * inverse - translation * inverse - 0.5
    distances = centers[None, :] - creation.iota(dtype, old)[:, None]
    if method is ResizeMethod.AREA:
        # The length of the old element that the new element covers.
        half = jnp.maximum(inverse, 0) * 0.5
        ends = jnp.minimum(distances + half, 0.5) - jnp.maximum(distances - half, -0.5)
        weights = jnp.maximum(ends, 0)
    else:
        distances = jnp.abs(distances)
        pytorch = method is ResizeMethod.CUBIC_PYTORCH
        if antialias:
            # Widen the kernel in proportion for smaller images, against aliasing.
            distances = distances / jnp.maximum(inverse, 1.0)
            method = ResizeMethod.CUBIC if pytorch else method
        weights = _KERNELS[method](distances)
        if pytorch and not antialias:
            weights = _with_borders(weights, centers, old)
            return _within(weights, centers, old)
    total = jnp.sum(weights, axis=0, keepdims=True)
    least = 1000.0 * float(finfo(np.float32).eps)
    divided = weights / jnp.where(total != 0, total, 1)
    return _within(jnp.where(jnp.abs(total) > least, divided, 0), centers, old)


def _within(weights: Array, centers: Array, old: int) -> Array:
    """Set weights to zero for new elements outside the old image."""
    inside = jnp.logical_and(centers >= -0.5, centers <= old - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _with_borders(weights: Array, centers: Array, old: int) -> Array:
    """Return cubic kernel weights for an axis with its end elements repeated outward."""
    kernel = _KERNELS[ResizeMethod.CUBIC_PYTORCH]
    before = sum(kernel(jnp.abs(centers + i)) for i in (1, 2))
    after = sum(kernel(jnp.abs(centers - (old - 1 + i))) for i in (1, 2))
    return weights.at[0].add(before).at[old - 1].add(after)


def _applied(
    x: Array,
    shape: tuple[int, ...],
    axes: Sequence[int],
    scale: Sequence[ArrayLike],
    translation: Sequence[ArrayLike],
    method: ResizeMethod,
    antialias: bool,
    precision: Precision,
) -> Array:
    dtype = typeof(x).dtype
    for i, axis in enumerate(axes):
        size = typeof(x).shape[axis]
        weights = _weights(size, shape[axis], scale[i], translation[i], method, antialias)
        weights = convert(weights, dtype, False)
        product = dot_general(
            weights,
            x,
            (((0,), (axis,)), ((), ())),
            precision=precision,
            preferred_element_type=dtype,
        )
        x = product if axis == 0 else jnp.moveaxis(product, 0, axis)
    return x


def _checked(
    name: str, image: ArrayLike, shape: ShapeLike, method: str | ResizeMethod
) -> tuple[Shape, ResizeMethod]:
    check_arraylike(name, image)
    shape = canonical_shape(shape)
    old_shape = typeof(image).shape
    if len(shape) != len(old_shape):
        raise ValueError(
            "shape must have length equal to the number of dimensions of x;  "
            f"{name} got {shape} vs {old_shape}"
        )
    return shape, ResizeMethod.from_string(method) if isinstance(method, str) else method


# ---- the functions -------------------------------------------------------------------------------


@operation(static_argnames=("shape", "axes", "method", "antialias", "precision"))
def _scale_and_translate(
    image: ArrayLike,
    scale: ArrayLike,
    translation: ArrayLike,
    shape: Shape,
    axes: tuple[int, ...],
    method: ResizeMethod,
    antialias: bool,
    precision: Precision,
) -> Array:
    (image,) = promote_dtypes_inexact(image)
    scale, translation = promote_dtypes_inexact(scale, translation)
    factors = [scale[i] for i in range(len(axes))]
    moves = [translation[i] for i in range(len(axes))]
    return _applied(image, shape, axes, factors, moves, method, antialias, precision)


def scale_and_translate(
    image: ArrayLike,
    shape: ShapeLike,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resample an image to another shape, scaled and then translated along some axes.

    The center of the first element is at 0.5: position x of the old image maps to
    x * scale + translation. The function is differentiable in image, scale and translation.

    Args:
      image: an array.
      shape: the shape of the result, with as many sizes as `image` has axes.
      spatial_dims: the axes to scale.
      scale: an array with one factor per spatial axis.
      translation: an array with one distance per spatial axis, in elements of the result.
      method: a ResizeMethod, or its name.
      antialias: whether to blur images that become smaller first.
      precision: the precision of the matrix products.

    Returns:
      An array with that shape; floating-point for integers. It is 0 outside the old image.

    Raises:
      ValueError: if the shape has another number of sizes, or the method is NEAREST or unknown.
      AssertionError: if there is not one factor and distance for each axis.
    """
    shape, method = _checked("scale_and_translate", image, shape, method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(
            "Nearest neighbor resampling is not currently supported for scale_and_translate."
        )
    check_arraylike("scale_and_translate", scale, translation)
    axes = canonical_axes(tuple(spatial_dims), len(shape))
    for name, x in (("scale", scale), ("translation", translation)):
        if typeof(x).shape != (len(axes),):
            raise AssertionError(
                f"{name} of scale_and_translate must have shape {(len(axes),)}, one number for "
                f"each of spatial_dims, got {typeof(x).shape}"
            )
    return _scale_and_translate(
        image, scale, translation, shape, axes, method, antialias, precision
    )


@operation(static_argnames=("shape", "method", "antialias", "precision"))
def _resize(
    image: ArrayLike, shape: Shape, method: ResizeMethod, antialias: bool, precision: Precision
) -> Array:
    old_shape = typeof(image).shape
    axes = tuple([i for i, size in enumerate(old_shape) if size != shape[i]])
    if method is ResizeMethod.NEAREST:
        for axis in axes:
            image = _nearest(image, axis, shape[axis])
        return image
    (image,) = promote_dtypes_inexact(image)
    scale = [1.0 if not shape[i] else shape[i] / old_shape[i] for i in axes]
    return _applied(image, shape, axes, scale, [0.0] * len(axes), method, antialias, precision)


def _nearest(image: Array, axis: int, new: int) -> Array:
    old = typeof(image).shape[axis]
    sources = np.floor((np.arange(new, dtype=np.float32) + 0.5) * old / new).astype(np.int32)
    if not old and new:
        raise ZeroDivisionError(f"resize of an image without elements along axis {axis} to {new}")
    return jnp.take(image, np.minimum(sources, max(old - 1, 0)), axis=axis, mode="clip")


def resize(
    image: ArrayLike,
    shape: ShapeLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resize an image to another shape.

    Args:
      image: an array.
      shape: the shape of the result, with as many sizes as `image` has axes.
      method: a ResizeMethod, or its name: "nearest", "linear", "cubic", "lanczos3", "lanczos5",
        "cubic-pytorch", "area", "bilinear", "trilinear", "triangle", "bicubic", "tricubic".
      antialias: whether to blur images that become smaller first.
      precision: the precision of the matrix products.

    Returns:
      An array with that shape; floating-point for integers, except with "nearest".

    Raises:
      ValueError: if the shape has another number of sizes, or the method is unknown.
      ZeroDivisionError: if the image has no elements to interpolate.
    """
    shape, method = _checked("resize", image, shape, method)
    return _resize(image, shape, method, antialias, precision)
