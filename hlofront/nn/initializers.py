"""hlofront.nn.initializers: initial values of weights from random keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

import hlofront.numpy as jnp
import hlofront.random as random
from hlofront.base.dtypes import check_user_dtype_supported, issubdtype
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape, ShapeLike
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.numpy.support.annotations import OutSharding

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
__dir__ = dir_of(__name__)


@runtime_checkable
class Initializer(Protocol):
    """A function that returns the initial value of a weight."""

    @staticmethod
    def __call__(
        key: Array, shape: Shape, dtype: DTypeLike | None = None, out_sharding: OutSharding = None
    ) -> Array:
        """Return an array with this shape and dtype.

        Args:
          key: a random key.
          shape: the shape of the result.
          dtype: the dtype of the result; None is the initializer's own.
          out_sharding: how the result is split over a mesh.
        """
        ...


def _dtype(dtype: DTypeLike | None, own: DTypeLike | None = None) -> np.dtype:
    chosen = dtype if dtype is not None else own
    return check_user_dtype_supported(float if chosen is None else chosen, "initializer")


def _scaled(x: Array, factor: float, dtype: np.dtype) -> Array:
    return x * jnp.asarray(factor, dtype)


# ---- constants -----------------------------------------------------------------------------------


def zeros(
    key: Array, shape: ShapeLike, dtype: DTypeLike | None = None, out_sharding: OutSharding = None
) -> Array:
    """Return an array of zeros; the key is ignored.

    Args:
      key: ignored.
      shape: the shape of the result.
      dtype: the dtype of the result; None is the default floating-point dtype.
      out_sharding: how the result is split over a mesh.
    """
    return _full(0, shape, _dtype(dtype), out_sharding)


def ones(
    key: Array, shape: ShapeLike, dtype: DTypeLike | None = None, out_sharding: OutSharding = None
) -> Array:
    """Return an array of ones; the key is ignored.

    Args:
      key: ignored.
      shape: the shape of the result.
      dtype: the dtype of the result; None is the default floating-point dtype.
      out_sharding: how the result is split over a mesh.
    """
    return _full(1, shape, _dtype(dtype), out_sharding)


def _full(value: ArrayLike, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
    return jnp.full(shape, value, dtype, out_sharding=out_sharding)


def _initializer(
    own: DTypeLike | None, make: Callable[[Array, Shape, DType, OutSharding], Array]
) -> Initializer:
    """Return an initializer that calls `make` with a dtype, by default the dtype `own`."""

    def init(
        key: Array, shape: Shape, dtype: DTypeLike | None = None, out_sharding: OutSharding = None
    ) -> Array:
        return make(key, shape, _dtype(dtype, own), out_sharding)

    return init


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of arrays filled with a value.

    Args:
      value: a number, or an array that broadcasts to the shape.
      dtype: the default dtype of the initial values.

    Example:
      >>> jax.nn.initializers.constant(7)(jax.random.key(0), (2,), jnp.int32)
      Array([7, 7], dtype=int32)
    """
    return _initializer(dtype, lambda key, shape, dtype, split: _full(value, shape, dtype, split))


# ---- a fixed distribution ------------------------------------------------------------------------


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of uniform numbers from 0 to `scale`.

    Args:
      scale: the upper bound.
      dtype: the default dtype of the initial values, floating-point.

    Example:
      >>> init = jax.nn.initializers.uniform(scale=8.0)
      >>> init(jax.random.key(0), (50, 200)).max().round()
      Array(8., dtype=float32)
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        return _scaled(random.uniform(key, shape, dtype, out_sharding=out_sharding), scale, dtype)

    return _initializer(dtype, make)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of normal numbers with mean 0.

    Args:
      stddev: the standard deviation.
      dtype: the default dtype of the initial values.
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        return _scaled(random.normal(key, shape, dtype, out_sharding=out_sharding), stddev, dtype)

    return _initializer(dtype, make)


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Return an initializer of normal numbers with mean 0, truncated to bounds.

    Args:
      stddev: the standard deviation before truncation.
      dtype: the default dtype of the initial values, floating-point.
      lower: the lower bound, in standard deviations.
      upper: the upper bound, in standard deviations.
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        numbers = random.truncated_normal(
            key, lower, upper, shape, dtype, out_sharding=out_sharding
        )
        return _scaled(numbers, stddev, dtype)

    return _initializer(dtype, make)


# ---- a variance by the number of inputs and outputs ----------------------------------------------

_Axes = int | Sequence[int]

# The standard deviations of a real and of a complex normal number truncated at two standard
# deviations. Dividing by them gives weights the requested variance.
_DEVIATION_WITHIN_2 = 0.87962566103423978
_DEVIATION_WITHIN_2_COMPLEX = 0.95311164380491208


def _sizes(shape: tuple[int, ...], axes: _Axes) -> int:
    axes = (axes,) if isinstance(axes, int) else axes
    return math.prod([shape[i] for i in axes])


def _fans(
    shape: tuple[int, ...], in_axis: _Axes, out_axis: _Axes, batch_axis: _Axes
) -> tuple[float, float]:
    """Return the fan-in and fan-out: products per output, and products that use each input."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor "
            "with default in_axis. Must be at least 2D or specify in_axis explicitly."
        )
    inputs, outputs = _sizes(shape, in_axis), _sizes(shape, out_axis)
    field = math.prod(shape) / inputs / outputs / _sizes(shape, batch_axis)
    return inputs * field, outputs * field


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return an initializer with a variance of `scale` over the fan-in, fan-out, or their mean.

    Args:
      scale: the numerator of the variance.
      mode: the denominator of the variance: "fan_in", the number of products that are summed into
        each output; "fan_out", the number of products that use each input; "fan_avg", their mean;
        "fan_geo_avg", their geometric mean.
      distribution: "truncated_normal", normal numbers within two standard deviations; "normal"; or
        "uniform".
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Returns:
      An initializer. It raises ValueError for an unknown mode or distribution and for shapes of
      vectors, and ZeroDivisionError for arrays without elements.

    Example:
      >>> init = jax.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
      >>> (100 * init(jax.random.key(0), (50, 200)).std()).round()
      Array(20., dtype=float32)
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        shape = canonical_shape(shape)
        inputs, outputs = _fans(shape, in_axis, out_axis, batch_axis)
        count = {
            "fan_in": lambda: inputs,
            "fan_out": lambda: outputs,
            "fan_avg": lambda: (inputs + outputs) / 2,
            "fan_geo_avg": lambda: math.sqrt(inputs * outputs),
        }.get(mode)
        if count is None:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode}. Give 'fan_in', "
                "'fan_out', 'fan_avg' or 'fan_geo_avg'."
            )
        draw = _DISTRIBUTIONS.get(distribution)
        if draw is None:
            raise ValueError(
                f"invalid distribution for variance scaling initializer: {distribution}. Give "
                f"one of {', '.join(_DISTRIBUTIONS)}."
            )
        variance = np.asarray(scale / count(), dtype)
        if issubdtype(dtype, np.complexfloating):
            return draw[1](key, shape, dtype, jnp.asarray(variance), out_sharding)
        return draw[0](key, shape, dtype, variance, out_sharding)

    return _initializer(dtype, make)


def _of_normal(
    key: Array, shape: Shape, dtype: np.dtype, variance: ArrayLike, out_sharding: OutSharding
) -> Array:
    numbers = random.normal(key, shape, dtype, out_sharding=out_sharding)
    return numbers * _root(variance)


def _root(variance: ArrayLike) -> Array:
    return np.sqrt(variance)[()] if isinstance(variance, np.ndarray) else jnp.sqrt(variance)


def _of_uniform(
    key: Array, shape: Shape, dtype: np.dtype, variance: ArrayLike, out_sharding: OutSharding
) -> Array:
    numbers = random.uniform(key, shape, dtype, -1, out_sharding=out_sharding)
    return numbers * np.sqrt(np.asarray(3, dtype) * variance)[()]


def _of_truncated(
    key: Array, shape: Shape, dtype: np.dtype, variance: ArrayLike, out_sharding: OutSharding
) -> Array:
    deviation = np.sqrt(variance) / np.asarray(_DEVIATION_WITHIN_2, dtype)
    numbers = random.truncated_normal(key, -2, 2, shape, dtype, out_sharding=out_sharding)
    return numbers * deviation[()]


def _of_disc(
    key: Array, shape: Shape, dtype: np.dtype, variance: ArrayLike, out_sharding: OutSharding
) -> Array:
    """Draw complex numbers uniformly from a disk around 0."""
    size, turn = random.split(key)
    real = np.zeros((), dtype).real.dtype
    radius = jnp.sqrt(2 * random.uniform(size, shape, real, out_sharding=out_sharding))
    return radius.astype(dtype) * _turned(turn, shape, dtype, real) * jnp.sqrt(variance)


def _turned(key: Array, shape: Shape, dtype: DType, real: DType) -> Array:
    angle = 2 * np.pi * random.uniform(key, shape, real).astype(dtype)
    return jnp.exp(1j * angle)


def _of_truncated_complex(
    key: Array, shape: Shape, dtype: np.dtype, variance: ArrayLike, out_sharding: OutSharding
) -> Array:
    """Draw complex normal numbers within two standard deviations, by inverting their CDF."""
    deviation = jnp.sqrt(variance) / jnp.asarray(_DEVIATION_WITHIN_2_COMPLEX, dtype)
    size, turn = random.split(key)
    real = np.zeros((), dtype).real.dtype
    share = random.uniform(size, shape, real, out_sharding=out_sharding).astype(dtype)
    share = (1 - jnp.exp(jnp.asarray(-4, dtype))) * share
    return jnp.sqrt(-jnp.log(1 - share)) * _turned(turn, shape, dtype, real) * deviation


# Name of a distribution -> its sampler for real dtypes, and for complex ones.
_DISTRIBUTIONS: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "normal": (_of_normal, _of_normal),
    "uniform": (_of_uniform, _of_disc),
    "truncated_normal": (_of_truncated, _of_truncated_complex),
}


def glorot_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a uniform initializer with variance 2 / (inputs + outputs).

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: Glorot and Bengio (2010).

    Example:
      >>> jax.nn.initializers.glorot_uniform()(jax.random.key(0), (2, 2))
      Array([[ 1.0965558 ,  1.1722765 ],
             [-0.4108003 , -0.07674628]], dtype=float32)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a truncated normal initializer with variance 2 / (inputs + outputs).

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: Glorot and Bengio (2010).
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a uniform initializer with variance 1 / inputs.

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: LeCun et al., Efficient BackProp (1998).
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a truncated normal initializer with variance 1 / inputs.

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: LeCun et al., Efficient BackProp (1998).
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a uniform initializer with variance 2 / inputs, for rectifiers.

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: He et al. (2015).
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return a truncated normal initializer with variance 2 / inputs, for rectifiers.

    Args:
      in_axis: the axes of inputs.
      out_axis: the axes of outputs.
      batch_axis: the axes along which weights are separate.
      dtype: the default dtype of the initial values.

    Source: He et al. (2015).

    Example:
      >>> weights = jax.nn.initializers.he_normal()(jax.random.key(0), (256, 128))
      >>> weights.shape, bool(abs(weights.std() - (2 / 256) ** 0.5) < 1e-3)
      ((256, 128), True)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


# ---- orthogonal ----------------------------------------------------------------------------------


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of matrices with orthonormal rows or columns: Saxe et al. (2013).

    Args:
      scale: the factor of the orthonormal matrix.
      column_axis: the axis of columns; the other axes together form the rows.
      dtype: the default dtype of the initial values.

    Returns:
      An initializer. It raises ValueError for shapes with fewer than two axes.

    Example:
      >>> q = jax.nn.initializers.orthogonal()(jax.random.key(0), (3, 3))
      >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
      True
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        shape = canonical_shape(shape)
        if len(shape) < 2:
            raise ValueError(f"orthogonal initializer requires at least a 2D shape, got {shape}")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns if columns else 0
        matrix = random.orthogonal(key, rows, (), dtype, columns, out_sharding=out_sharding)
        row_shape = tuple(np.delete(shape, column_axis).tolist())
        matrix = jnp.moveaxis(jnp.reshape(matrix, (*row_shape, columns)), -1, column_axis)
        return _scaled(matrix, scale, dtype)

    return _initializer(dtype, make)


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of convolution kernels that preserve norms: Xiao et al. (2018).

    A kernel is an orthogonal matrix at its center and 0 elsewhere.

    Args:
      scale: the factor of the orthogonal matrix.
      column_axis: the axis of columns of the orthogonal matrix.
      dtype: the default dtype of the initial values.

    Returns:
      An initializer of arrays whose last two axes are inputs and outputs. It raises ValueError for
      shapes with fewer than three or more than five axes, or with more inputs than outputs.
    """

    def make(key: Array, shape: Shape, dtype: DType, out_sharding: OutSharding) -> Array:
        shape = canonical_shape(shape)
        if not 3 <= len(shape) <= 5:
            raise ValueError(
                f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got {shape}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"`fan_in` must be less or equal than `fan_out`: got {shape[-2]} and {shape[-1]}."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:], dtype, out_sharding)
        middle = tuple([(size - 1) // 2 for size in shape[:-2]])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return _initializer(dtype, make)
