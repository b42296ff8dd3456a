"""Images in other sizes: each new element is a weighted sum of old ones, axis by axis."""

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
from hlofront.core.dimensions import canonical_axes, canonical_shape
from hlofront.numpy.promotion import check_arraylike, promote_dtypes_inexact
from hlofront.primitives import creating
from hlofront.primitives.contracting import Precision, dot_general
from hlofront.primitives.converting import convert
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.primitives.contracting import PrecisionLike


class ResizeMethod(enum.Enum):
    """The interpolation methods of `resize`.

    NEAREST takes the nearest one. LINEAR is straight between two. LANCZOS3 and LANCZOS5 are sines
    in windows of three and five elements to each side (Duchon, 1979). CUBIC and CUBIC_PYTORCH are
    the cubic convolution of Keys (1981), with the parameters -0.5 and -0.75; the latter only where
    there is no antialiasing. AREA is the mean over the area that a new element covers.
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
        """Return the method of this name.

        Raises:
          ValueError: if there is none.
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


# ---- kernels: the weight of an element at a distance ---------------------------------------------


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
        # Elsewhere the divisor is replaced by 1: dividing by zero would make the derivative NaN.
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
    """Compute the weight of each of `old` elements in each of `new` ones, of shape (old, new)."""
    inverse = 1.0 / scale
    dtype = np.dtype(np.float32) if isinstance(inverse, float) else typeof(inverse).dtype
    # The centers of the new elements, where the center of the first old one is 0.
    centers = (creating.iota(dtype, new) + 0.5) * inverse - translation * inverse - 0.5
    distances = centers[None, :] - creating.iota(dtype, old)[:, None]
    if method is ResizeMethod.AREA:
        # The length of the old element that the new one covers.
        half = jnp.maximum(inverse, 0) * 0.5
        ends = jnp.minimum(distances + half, 0.5) - jnp.maximum(distances - half, -0.5)
        weights = jnp.maximum(ends, 0)
    else:
        distances = jnp.abs(distances)
        pytorch = method is ResizeMethod.CUBIC_PYTORCH
        if antialias:
            # Smaller images are blurred in proportion, against aliasing.
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
    """Set weights to zero for new elements that lie outside of the old ones."""
    inside = jnp.logical_and(centers >= -0.5, centers <= old - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _with_borders(weights: Array, centers: Array, old: int) -> Array:
    """Compute weights of the cubic kernel, with the outermost elements repeated beyond the ends."""
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
    own = typeof(image).shape
    if len(shape) != len(own):
        raise ValueError(
            "shape must have length equal to the number of dimensions of x;  "
            f"{name} got {shape} vs {own}"
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
    """Resample an image to another shape, scaled and then moved along some axes.

    The middle of the first element lies at 0.5: place x of the old image comes to x * scale +
    translation. Derivatives are there with respect to the image, the scale and the translation.

    Args:
      image: an array.
      shape: of the result, as many sizes as `image` has axes.
      spatial_dims: the axes that are scaled.
      scale: an array of one factor for each of them.
      translation: an array of one distance for each of them, in elements of the result.
      method: a ResizeMethod, or its name.
      antialias: whether images that become smaller are blurred first.
      precision: of the products of matrices.

    Returns:
      An array of the shape; of integers, floats. It is 0 where the old image does not reach.

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
    own = typeof(image).shape
    axes = tuple([i for i, size in enumerate(own) if size != shape[i]])
    if method is ResizeMethod.NEAREST:
        for axis in axes:
            image = _nearest(image, axis, shape[axis])
        return image
    (image,) = promote_dtypes_inexact(image)
    scale = [1.0 if not shape[i] else shape[i] / own[i] for i in axes]
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
    """Resize an image.

    Args:
      image: an array.
      shape: of the result, as many sizes as `image` has axes.
      method: a ResizeMethod, or its name: "nearest", "linear", "cubic", "lanczos3", "lanczos5",
        "cubic-pytorch", "area", "bilinear", "trilinear", "triangle", "bicubic", "tricubic".
      antialias: whether images that become smaller are blurred first.
      precision: of the products of matrices.

    Returns:
      An array of the shape; of integers, floats, but for the nearest elements.

    Raises:
      ValueError: if the shape has another number of sizes, or the method is unknown.
      ZeroDivisionError: if there are no elements to make new ones of.
    """
    shape, method = _checked("resize", image, shape, method)
    return _resize(image, shape, method, antialias, precision)
