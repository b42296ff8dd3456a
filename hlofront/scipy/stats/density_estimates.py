"""The kernel density estimates with Gaussian kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import NoReturn, TypeAlias

import hlofront.numpy as jnp
import hlofront.random as random
from hlofront.base import tree
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import is_value, typeof
from hlofront.nn import logsumexp
from hlofront.numpy.linalg.matrices import inexact
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.linalg.factoring import cholesky
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.error_functions import ndtr

# The bandwidth of kernels: the name of a rule, a factor, or a function of the estimate.
_Bandwidth: TypeAlias = "str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None"


class gaussian_kde:
    """A kernel density estimate: the mean of Gaussian densities, one at each point of a data set.

    Args:
      dataset: the points, as columns: of shape (d, n), or (n,) for numbers.
      bw_method: the width of the kernels, as a fraction of the standard deviation of the data:
        "scott" (the default), "silverman", a number, or a function of this object that returns one.
      weights: the weights of the points, an array of shape (n,); equal by default.

    Raises:
      TypeError: if the data set or the weights are not arrays.
      ValueError: if the data set has one element, the weights do not fit, or the method is unknown.
      NotImplementedError: for complex data.
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(
        self, dataset: ArrayLike, bw_method: _Bandwidth = None, weights: ArrayLike | None = None
    ) -> None:
        check_arraylike("gaussian_kde", dataset)
        dataset = jnp.atleast_2d(jnp.asarray(dataset))
        if is_complex(typeof(dataset).dtype):
            raise NotImplementedError(  # JAX raises this class.
                "gaussian_kde does not support complex data: give real and imaginary parts as two "
                "rows of the data set."
            )
        if not typeof(dataset).size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        count = typeof(dataset).shape[1]
        if weights is None:
            (dataset,) = inexact("gaussian_kde", dataset)
            weights = jnp.full(count, 1.0 / count, dtype=typeof(dataset).dtype)
        else:
            dataset, weights = inexact("gaussian_kde", dataset, weights)
            if typeof(weights).ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if typeof(weights).shape[0] != count:
                raise ValueError(
                    f"`weights` input should be of length n: {count}, not "
                    f"{typeof(weights).shape[0]}."
                )
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / jnp.sum(jnp.square(weights))
        factor = self._bandwidth(bw_method)
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self.covariance = covariance * jnp.square(factor)
        self.inv_cov = jnp.linalg.inv(covariance) / jnp.square(factor)

    def _bandwidth(self, method: _Bandwidth) -> ArrayLike:
        if method is None or (isinstance(method, str) and method == "scott"):
            return jnp.power(self.neff, -1.0 / (self.d + 4))
        if isinstance(method, str) and method == "silverman":
            return jnp.power(self.neff * (self.d + 2) / 4.0, -1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if not isinstance(method, str) and is_value(method) and not typeof(method).ndim:
            return method
        raise ValueError(
            f"`bw_method` should be 'scott', 'silverman', a scalar, or a callable: got {method!r}."
        )

    @property
    def d(self) -> int:
        """The number of dimensions of the data points."""
        return typeof(self.dataset).shape[0]

    @property
    def n(self) -> int:
        """The number of data points."""
        return typeof(self.dataset).shape[1]

    def _points(self, points: ArrayLike) -> Array:
        check_arraylike("gaussian_kde", points)
        points = jnp.atleast_2d(jnp.asarray(points))
        if is_complex(typeof(points).dtype):
            raise NotImplementedError(  # JAX raises this class.
                "gaussian_kde does not support complex coordinates"
            )
        rows, columns = typeof(points).shape
        if rows != self.d:
            # The array is one point of several dimensions.
            if rows == 1 and columns == self.d:
                return points.reshape((self.d, 1))
            raise ValueError(f"points have dimension {rows}, dataset has dimension {self.d}")
        return points

    def evaluate(self, points: ArrayLike) -> Array:
        """Compute the estimated density at points of shape (d, m).

        Args:
          points: an array of shape (d, m), as columns; or (m,) for numbers.

        Returns:
          An array of shape (m,).

        Raises:
          ValueError: if the points have another dimension.
        """
        return _density(self.dataset, self.weights, self.covariance, self._points(points))

    def __call__(self, points: ArrayLike) -> Array:
        """Compute the estimated density at points of shape (d, m), or (m,) for numbers.

        Returns:
          An array of shape (m,).

        Raises:
          ValueError: if the points have another dimension.
        """
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Compute the estimated density at points of shape (d, m), or (m,) for numbers.

        Returns:
          An array of shape (m,).

        Raises:
          ValueError: if the points have another dimension.
        """
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Compute the logarithm of the estimated density at points.

        Args:
          x: an array of shape (d, m), as columns; or (m,) for numbers.

        Returns:
          An array of shape (m,).

        Raises:
          ValueError: if the points have another dimension.
        """
        return _log_density(self.dataset, self.weights, self.covariance, self._points(x))

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Compute the integral of the estimated density times a Gaussian density.

        Args:
          mean: the mean of the Gaussian, of shape (d,).
          cov: the covariance of the Gaussian, of shape (d, d).

        Raises:
          ValueError: if the mean or the covariance has another dimension.
        """
        mean = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        cov = jnp.atleast_2d(jnp.asarray(cov))
        if typeof(mean).shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if typeof(cov).shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        covariance = self.covariance + cov
        return _density(self.dataset, self.weights, covariance, mean[:, None])[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Compute the integral of a one-dimensional density from low to high.

        Raises:
          ValueError: if the points have several dimensions, or the limits are not scalars.
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        deviation = jnp.sqrt(self.covariance[0, 0])
        low, high = ((limit - self.dataset[0]) / deviation for limit in (low, high))
        return jnp.sum(self.weights * (ndtr(high) - ndtr(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Compute the integral of the product of this density and another estimate's.

        Raises:
          ValueError: if the estimates differ in dimension.
        """
        if other.d != self.d:
            raise ValueError(
                f"KDEs are not the same dimensionality: of {self.d} and {other.d} dimensions"
            )
        covariance = self.covariance + other.covariance
        shares = _density(self.dataset, self.weights, covariance, other.dataset)
        return jnp.sum(shares * other.weights)

    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
        """Draw random points from the estimated density.

        Args:
          key: a random key.
          shape: the shape of the array of points.

        Returns:
          An array of shape (d, *shape).
        """
        index_key, noise_key = random.split(key)
        index = random.choice(index_key, self.n, shape=shape, p=self.weights)
        noise = random.normal(noise_key, (*shape, self.d), typeof(self.dataset).dtype)
        lower = cholesky(self.covariance)
        return self.dataset[:, index] + jnp.tensordot(lower, noise, ((1,), (len(shape),)))

    def integrate_box(
        self, low_bounds: object, high_bounds: object, maxpts: object = None
    ) -> NoReturn:
        """Raise NotImplementedError: integration over multidimensional boxes is not supported."""
        raise NotImplementedError(  # JAX raises this class.
            "only 1D box integrations are supported; use `integrate_box_1d`"
        )

    def set_bandwidth(self, bw_method: object = None) -> None:
        """Raise NotImplementedError: estimates are immutable; make another one."""
        raise NotImplementedError(  # JAX raises this class.
            "dynamically changing the bandwidth method is not supported: make another gaussian_kde"
        )


def _exponents(
    dataset: Array, weights: Array, covariance: Array, points: Array
) -> tuple[Array, Array]:
    """Return the logarithms (m, n) of n Gaussian densities at points (d, m), and the weights (n,).

    The Gaussians are about the columns of a data set (d, n).
    """
    dataset, weights, covariance, points = inexact(
        "gaussian_kde", dataset, weights, covariance, points
    )
    lower = cholesky(covariance)
    dimension, count = typeof(dataset).shape
    both = jnp.concatenate([dataset, points], axis=1)
    whitened = triangular_solve(lower, both, left_side=True, lower=True)
    differences = whitened[:, count:, None] - whitened[:, None, :count]
    energy = jnp.sum(jnp.square(differences), axis=0) / 2
    norm = dimension / 2 * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(lower)))
    return -energy - norm, weights


@operation
def _density(dataset: Array, weights: Array, covariance: Array, points: Array) -> Array:
    """Return densities (m,) at points (d, m) of Gaussians about the columns of a data set."""
    exponents, weights = _exponents(dataset, weights, covariance, points)
    return jnp.matmul(jnp.exp(exponents), weights, precision="highest")


@operation
def _log_density(dataset: Array, weights: Array, covariance: Array, points: Array) -> Array:
    """Return log densities (m,) at points (d, m) of Gaussians about the columns of a data set."""
    exponents, weights = _exponents(dataset, weights, covariance, points)
    return logsumexp(exponents, axis=1, b=weights[None, :])


def _flatten(kde: gaussian_kde) -> tuple[tuple[Array, ...], None]:
    return (kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov), None


def _unflatten(_: Hashable, children: Iterable[Array]) -> gaussian_kde:
    kde = object.__new__(gaussian_kde)
    kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
    return kde


tree.register_pytree_node(gaussian_kde, _flatten, _unflatten)
