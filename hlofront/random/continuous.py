"""Numbers from the simpler continuous distributions: functions of uniform and normal ones."""

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.config import options
from hlofront.base.dtypes import check_user_dtype_supported, default_dtype, finfo, issubdtype
from hlofront.numpy import reductions, selecting, ufuncs
from hlofront.numpy.rounding import clip
from hlofront.primitives.comparing import ge, le, lt, select
from hlofront.primitives.converting import stop_gradient
from hlofront.primitives.elementwise import (
    abs,
    add,
    div,
    exp,
    log,
    log1p,
    mul,
    neg,
    nextafter,
    sign,
    sqrt,
    sub,
    tan,
)
from hlofront.primitives.keys import random_bits
from hlofront.primitives.random_floats import uniforms
from hlofront.primitives.special import erf, erf_inv
from hlofront.random.arguments import (
    checked_key,
    checked_shape,
    floating,
    in_dtype,
    parts,
    spread,
)
from hlofront.runtime.operation import operation

_high_dynamic_range = options["jax_high_dynamic_range_gumbel"]
_sampler = operation(static_argnames=("shape", "dtype"), nested=True)

# ---- bits ----------------------------------------------------------------------------------------


@boundary
def bits(key, shape=(), dtype=None, *, out_sharding=None):
    """Uniformly random bits, as unsigned integers.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of unsigned integers; by default uint32, with x64 uint64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("bits", key, out_sharding)
    if dtype is None:
        dtype = default_dtype("u")
    else:
        dtype = check_user_dtype_supported(dtype, "bits")
    if not issubdtype(dtype, np.unsignedinteger):
        raise ValueError(f"dtype argument to `bits` must be an unsigned int dtype, got {dtype}")
    return _bits(key, checked_shape("bits", shape), dtype)


@operation(static_argnames=("shape", "dtype"))
def _bits(key, shape, dtype):
    return random_bits(key, dtype.itemsize * 8, shape)


# ---- uniform and normal --------------------------------------------------------------------------


@boundary
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None):
    """Uniform numbers from `minval` on to below `maxval`.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      minval, maxval: the bounds, which broadcast to the shape.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("uniform", key, out_sharding)
    dtype = floating("uniform", dtype)
    return _uniform(key, canonical(shape, "uniform"), dtype, minval, maxval)


def canonical(shape, name):
    """The shape of a result."""
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int or size < 0:
                break
        else:
            return shape
    return checked_shape(name, () if shape is None else shape)


@_sampler
def _uniform(key, shape, dtype, minval, maxval):
    minval = in_dtype(minval, dtype)
    maxval = in_dtype(maxval, dtype)
    return uniforms(key, shape, dtype, minval, maxval)


def between(key, shape, dtype, minval, maxval):
    """Uniform numbers, with bounds that are scalars."""
    return _uniform(key, shape=shape, dtype=dtype, minval=minval, maxval=maxval)


@boundary
def normal(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the standard normal distribution.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats or complex numbers, by default float32, with x64 float64. The variance of
        complex numbers is one: that of each part is a half.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("normal", key, out_sharding)
    dtype = check_user_dtype_supported(float if dtype is None else dtype, "normal")
    if not issubdtype(dtype, np.inexact):
        raise ValueError(
            f"dtype argument to `normal` must be a float or complex dtype, got {dtype}"
        )
    return _normal(key, canonical(shape, "normal"), dtype)


@_sampler
def _normal(key, shape, dtype):
    if not issubdtype(dtype, np.complexfloating):
        return _normal_real(key, shape, dtype)
    real_dtype = np.dtype(f"float{dtype.itemsize * 4}")
    real_key, imaginary_key = parts(key)
    real = in_dtype(_normal_real(real_key, shape, real_dtype), dtype)
    imaginary = in_dtype(_normal_real(imaginary_key, shape, real_dtype), dtype)
    return div(add(real, mul(dtype.type(1j), imaginary)), dtype.type(np.sqrt(2)))


@_sampler
def _normal_real(key, shape, dtype):
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    uniform_numbers = _uniform(key, shape, dtype, low, dtype.type(1))
    return mul(np.array(np.sqrt(2), dtype)[()], erf_inv(uniform_numbers))


@boundary
def truncated_normal(key, lower, upper, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the standard normal distribution that lie between two bounds.

    Args:
      key: a random key.
      lower, upper: the bounds, scalars or arrays that broadcast to the shape.
      shape: of the result; by default that of the bounds together.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the bounds do not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("truncated_normal", key, out_sharding)
    dtype = floating("truncated_normal", dtype)
    shape = None if shape is None else checked_shape("truncated_normal", shape, lower, upper)
    return _truncated_normal(key, lower, upper, shape, dtype)


@_sampler
def _truncated_normal(key, lower, upper, shape, dtype):
    shape = checked_shape("truncated_normal", shape, lower, upper)
    sqrt2 = np.array(np.sqrt(2), dtype)[()]
    lower, upper = in_dtype(lower, dtype), in_dtype(upper, dtype)
    low = erf(div(lower, sqrt2))
    high = erf(div(upper, sqrt2))
    numbers = mul(sqrt2, erf_inv(_uniform(key, shape, dtype, low, high)))
    infinity = np.array(np.inf, dtype)[()]
    return clip(
        numbers,
        nextafter(stop_gradient(lower), infinity),
        nextafter(stop_gradient(upper), -infinity),
    )


@boundary
def lognormal(key, sigma=np.float32(1.0), shape=None, dtype=None, *, out_sharding=None):
    """Numbers whose logarithm is normal: exp(sigma * x) of standard normal x.

    Args:
      key: a random key.
      sigma: the standard deviation of the logarithm, which broadcasts to the shape.
      shape: of the result; by default that of `sigma`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, sigma does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("lognormal", key, out_sharding)
    dtype = floating("lognormal", dtype)
    return _lognormal(key, sigma, checked_shape("lognormal", shape, sigma), dtype)


@operation(static_argnames=("shape", "dtype"))
def _lognormal(key, sigma, shape, dtype):
    sigma = spread(in_dtype(sigma, dtype), shape)
    return exp(mul(_normal(key, shape, dtype), sigma))


# ---- by inverting the distribution function ------------------------------------------------------


@boundary
def cauchy(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the standard Cauchy distribution.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("cauchy", key, out_sharding)
    dtype = floating("cauchy", dtype)
    return _cauchy(key, canonical(shape, "cauchy"), dtype)


@_sampler
def _cauchy(key, shape, dtype):
    u = _uniform(key, shape, dtype, finfo(dtype).eps, 1.0)
    return tan(mul(np.array(np.pi, dtype)[()], sub(u, dtype.type(0.5))))


@boundary
def exponential(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the exponential distribution of mean one.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("exponential", key, out_sharding)
    dtype = floating("exponential", dtype)
    return _exponential(key, canonical(shape, "exponential"), dtype)


@_sampler
def _exponential(key, shape, dtype):
    return neg(log1p(neg(_uniform(key, shape, dtype, 0.0, 1.0))))


@boundary
def gumbel(key, shape=(), dtype=None, mode=None, *, out_sharding=None):
    """Numbers from the standard Gumbel distribution.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      mode: "low", or "high" for a wider range of values at twice the work; by default what the
        option jax_high_dynamic_range_gumbel says.
      out_sharding: None.

    Raises:
      ValueError: if the dtype or mode is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("gumbel", key, out_sharding)
    dtype = floating("gumbel", dtype)
    return _gumbel(key, canonical(shape, "gumbel"), dtype, checked_mode(mode))


def checked_mode(mode):
    """ "high" or "low", where None is what the option says. ValueError for others."""
    if mode is None:
        mode = "high" if _high_dynamic_range.value else "low"
    if mode not in ("high", "low"):
        raise ValueError(f"Must provide valid mode for Gumbel got: {mode}; wanted high or low")
    return mode


@operation(static_argnames=("shape", "dtype", "mode"), nested=True)
def _gumbel(key, shape, dtype, mode):
    if mode == "low":
        tiny = finfo(dtype).smallest_normal
        return neg(log(neg(log(between(key, shape, dtype, dtype.type(tiny), 1.0)))))
    first, second = list(between(key, (2, *shape), dtype, 0.0, 1.0))
    # Small ones get digits below those of the first.
    digits = mul(dtype.type(2.0 ** -finfo(dtype).nmant), second)
    fine = add(add(first, digits), dtype.type(finfo(dtype).smallest_normal))
    x = selecting.where(ge(first, dtype.type(0.5)), first, fine)
    return neg(log(neg(log1p(neg(x)))))


@boundary
def laplace(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the standard Laplace distribution.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("laplace", key, out_sharding)
    dtype = floating("laplace", dtype)
    return _laplace(key, canonical(shape, "laplace"), dtype)


@_sampler
def _laplace(key, shape, dtype):
    low = np.array(-1, dtype) + np.array(finfo(dtype).epsneg, dtype)
    u = _uniform(key, shape, dtype, low.astype(dtype)[()], 1.0)
    return mul(sign(u), log1p(neg(abs(u))))


@boundary
def logistic(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the standard logistic distribution.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("logistic", key, out_sharding)
    dtype = floating("logistic", dtype)
    return _logistic(key, canonical(shape, "logistic"), dtype)


@_sampler
def _logistic(key, shape, dtype):
    u = _uniform(key, shape, dtype, dtype.type(finfo(dtype).smallest_normal), 1.0)
    return sub(log(u), log1p(neg(u)))


@boundary
def pareto(key, b, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the Pareto distribution on [1, inf) with density b / x**(b + 1).

    Args:
      key: a random key.
      b: the exponent, which broadcasts to the shape.
      shape: of the result; by default that of `b`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `b` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("pareto", key, out_sharding)
    dtype = floating("pareto", dtype)
    return _pareto(key, b, None if shape is None else checked_shape("pareto", shape, b), dtype)


@_sampler
def _pareto(key, b, shape, dtype):
    b = in_dtype(b, dtype)
    numbers = _exponential(key, checked_shape("pareto", shape, b), dtype)
    return exp(ufuncs.divide(numbers, b))


@boundary
def rayleigh(key, scale, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the Rayleigh distribution: lengths of normal vectors in the plane.

    Args:
      key: a random key.
      scale: the standard deviation of the vectors' parts, which broadcasts to the shape.
      shape: of the result; by default that of `scale`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the scale does not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("rayleigh", key, out_sharding)
    dtype = floating("rayleigh", dtype)
    shape = None if shape is None else checked_shape("rayleigh", shape, scale)
    return _rayleigh(key, scale, shape, dtype)


@_sampler
def _rayleigh(key, scale, shape, dtype):
    shape = checked_shape("rayleigh", shape, scale)
    u = _uniform(key, shape, dtype, 0.0, 1.0)
    scale = spread(in_dtype(scale, dtype), shape)
    return mul(scale, sqrt(mul(log(u), dtype.type(-2))))


@boundary
def triangular(key, left, mode, right, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the triangular distribution between two bounds, with its peak at `mode`.

    Args:
      key: a random key.
      left, mode, right: the lower bound, the peak and the upper bound, which broadcast to the
        shape.
      shape: of the result; by default that of the parameters together.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the parameters do not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("triangular", key, out_sharding)
    dtype = floating("triangular", dtype)
    shape = checked_shape("triangular", shape, left, mode, right)
    return _triangular(key, left, mode, right, shape, dtype)


@operation(static_argnames=("shape", "dtype"))
def _triangular(key, left, mode, right, shape, dtype):
    left, right, mode = (spread(in_dtype(x, dtype), shape) for x in (left, right, mode))
    at_peak = div(sub(mode, left), sub(right, left))
    u = _uniform(key, shape, dtype, 0.0, 1.0)
    rising = add(left, sqrt(mul(mul(u, sub(right, left)), sub(mode, left))))
    rest = sub(dtype.type(1), u)
    falling = sub(right, sqrt(mul(mul(rest, sub(right, left)), sub(right, mode))))
    return select(lt(u, at_peak), rising, falling)


@boundary
def weibull_min(key, scale, concentration, shape=(), dtype=None):
    """Numbers from the Weibull distribution, the smaller of its two forms.

    Args:
      key: a random key.
      scale: the factor of the numbers, which broadcasts to the shape.
      concentration: the exponent, which broadcasts likewise.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("weibull_min", key)
    dtype = floating("weibull_min", dtype)
    return _weibull_min(key, scale, concentration, canonical(shape, "weibull_min"), dtype)


@_sampler
def _weibull_min(key, scale, concentration, shape, dtype):
    u = uniform(key, shape, dtype, 0, 1)
    numbers = neg(log1p(neg(u)))
    return ufuncs.multiply(numbers ** (1.0 / concentration), scale)


# ---- of several numbers --------------------------------------------------------------------------


@boundary
def maxwell(key, shape=(), dtype=None, *, out_sharding=None):
    """Numbers from the Maxwell distribution: lengths of standard normal vectors in space.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("maxwell", key, out_sharding)
    dtype = floating("maxwell", dtype)
    return _maxwell(key, canonical(shape, "maxwell"), dtype)


@_sampler
def _maxwell(key, shape, dtype):
    return norm(_normal(key, (*shape, 3), dtype))


@operation(nested=True)
def norm(x):
    """The length of vectors along the last axis."""
    return sqrt(reductions.sum(mul(x, x), axis=-1))


@boundary
def wald(key, mean, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the Wald (inverse Gaussian) distribution of scale one.

    By Michael, Schucany and Haas, "Generating Random Variates Using Transformations with Multiple
    Roots" (1976).

    Args:
      key: a random key.
      mean: of the distribution, which broadcasts to the shape.
      shape: of the result; by default that of `mean`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the mean does not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("wald", key, out_sharding)
    dtype = floating("wald", dtype)
    return _wald(key, mean, None if shape is None else checked_shape("wald", shape, mean), dtype)


@_sampler
def _wald(key, mean, shape, dtype):
    shape = checked_shape("wald", shape, mean)
    normal_key, uniform_key = parts(key)
    mean = spread(in_dtype(mean, dtype), shape)
    v = _normal(normal_key, shape, dtype)
    z = _uniform(uniform_key, shape, dtype, 0.0, 1.0)
    y = v**2
    y_squared = y**2
    mean_squared = mean**2
    root = sqrt(dtype.type(4) * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / dtype.type(2) - mean / dtype.type(2) * root
    return select(le(z, div(mean, add(mean, x))), x, div(mean_squared, x))
