"""The shared parts of distributions: promotion of arguments, docstrings, exp and log."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import as_array
from hlofront.numpy.support.promotion import promote_args_inexact
from hlofront.primitives.elementwise.converting import strong
from hlofront.primitives.elementwise.weak_types import strong_cotangents, times_one, weak_tangents
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.entropies import log1p

Function = Callable[..., Array]

# The first docstring sentence of each function of a distribution.
_SUMMARIES = {
    "logpdf": "Compute the logarithm of the density.",
    "pdf": "Compute the density.",
    "logpmf": "Compute the logarithm of the probability.",
    "pmf": "Compute the probability.",
    "logcdf": "Compute the logarithm of the distribution function.",
    "cdf": "Compute the distribution function.",
    "logsf": "Compute the logarithm of the survival function.",
    "sf": "Compute the survival function, 1 - cdf.",
    "ppf": "Compute the quantile: the inverse of cdf.",
    "isf": "Compute the inverse of the survival function.",
    "entropy": "Compute the entropy.",
}
_PARAMETERS = {
    "x": "the points, real numbers.",
    "k": "whole numbers.",
    "q": "probabilities, from 0 to 1.",
    "loc": "the shift of the variable.",
    "scale": "the factor that it is stretched by, positive.",
}


def arrays(name: str, *args: ArrayLike) -> list[Array]:
    """Return the arguments as arrays of their common inexact dtype and rank.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return [as_array(x) for x in promote_args_inexact(name, *args)]


def functions_of(
    distribution: str, *, promoted: bool = True, real: bool = False, **parameters: str
) -> Callable[[Function], Function]:
    """Return a decorator for the functions of a distribution, such as `def logpdf(x, a, b)`.

    The functions receive their arguments as arrays of one inexact dtype, have documentation
    generated from their name and those of their parameters, and run eagerly as one executable.

    Args:
      distribution: its name.
      promoted: whether the arguments become arrays; if not, the functions receive them unchanged.
      real: whether complex numbers, which have no order, raise TypeError.
      parameters: the meanings of parameters that other distributions do not have.
    """
    meanings = _PARAMETERS | parameters

    def decorator(fun: Function) -> Function:
        signature = inspect.signature(fun)
        public = [p.replace(annotation="ArrayLike") for p in signature.parameters.values()]
        name = f"{distribution}.{fun.__name__}"
        fun.__doc__ = "\n".join(
            [
                f"{_SUMMARIES[fun.__name__]}\n\nArgs:",
                *[f"  {parameter}: {meanings[parameter]}" for parameter in signature.parameters],
                "\nRaises:\n  TypeError: if an argument is neither array nor scalar.",
            ]
        )

        @functools.wraps(fun)
        def of_arrays(*args: ArrayLike, **kwargs: ArrayLike) -> Array:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                bound = None
            if bound is None:
                return fun(*args, **kwargs)  # Python's own call protocol raises the TypeError.
            bound.apply_defaults()
            values = arrays(name, *bound.args)
            dtype = typeof(values[0]).dtype
            if real and fun.__name__ != "ppf" and is_complex(dtype):
                raise TypeError(f"{name} takes real numbers, and was given {dtype}")
            return fun(*values)

        of_arrays.__signature__ = signature.replace(parameters=public)  # type: ignore[attr-defined]
        return operation(of_arrays if promoted else fun)

    return decorator


def strongly_typed(function: Function) -> Function:
    """Decorate a function of arrays whose results are strongly typed where arrays are not.

    In JAX its formula has constants of the dtype of its argument, added in jax.numpy. Python
    scalars stay weakly typed.
    """
    return _of_strong_result(function, strong)


def with_constants(function: Function) -> Function:
    """Decorate a function of arrays whose results and cotangents are strongly typed.

    In JAX its formula has constants of the dtype of its argument, added in lax: no conversion
    makes cotangents weakly typed again. Python scalars stay weakly typed.
    """
    return _of_strong_result(function, times_one)


def _of_strong_result(function: Function, by: Callable[[Array], Array]) -> Function:
    @functools.wraps(function)
    def with_strong_result(*args: Array) -> Array:
        result = function(*args)
        return by(result) if typeof(result).shape else result

    return with_strong_result


def cotangents(*, weak: str = "", strong: str = "") -> Callable[[Function], Function]:
    """Return a decorator that gives cotangents the weak or strong types that they have in JAX.

    Args:
      weak: the names of weakly typed arguments that have weakly typed cotangents.
      strong: the names of weakly typed arguments that have strongly typed cotangents.
    """
    changes = dict.fromkeys(weak.split(), weak_tangents)
    changes |= dict.fromkeys(strong.split(), strong_cotangents)

    def decorator(function: Function) -> Function:
        parameters = inspect.signature(function).parameters

        @functools.wraps(function)
        def with_typed_cotangents(*args: Array) -> Array:
            return function(
                *[
                    changes[name](x) if name in changes and typeof(x).shape else x
                    for name, x in zip(parameters, args, strict=True)
                ]
            )

        return with_typed_cotangents

    return decorator


def exp_of(function: Function, undefined: bool = False) -> Function:
    """Return the exponential of a distribution's log function, such as `pdf` from `logpdf`.

    Args:
      function: the logarithm, whose name begins with "log".
      undefined: whether it returns NaN for parameters outside of the distribution's domain.
    """
    exp = exp_or_nan if undefined else jnp.exp
    return _composed(exp, function, function.__name__.removeprefix("log"))


def exp_or_nan(x: Array) -> Array:
    """Return exp(x), and NaN with NaN slopes for NaN, which XLA's exp on CPUs may not keep."""
    return jnp.exp(x) * jnp.where(x == x, 1.0, jnp.nan)


def _composed(outer: Callable[[Array], Array], inner: Function, name: str) -> Function:
    def composed(*args: ArrayLike, **kwargs: ArrayLike) -> Array:
        return outer(inner(*args, **kwargs))

    composed.__name__ = composed.__qualname__ = name
    composed.__module__ = inner.__module__
    composed.__doc__ = (inner.__doc__ or "").replace(
        _SUMMARIES[inner.__name__], _SUMMARIES[name], 1
    )
    composed.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    return operation(composed)


def log_of_share(share: Array, rest: Array) -> Array:
    """Return log(share), computed as log1p(-rest) if rest = 1 - share is less than 1/2."""
    near = rest < 0.5
    by_rest = log1p(-jnp.where(near, rest, 0))
    return jnp.where(near, by_rest, jnp.log(jnp.where(near, 1, share)))


def log_of_rest(x: Array) -> Array:
    """Return log(1 - exp(-x)) for x >= 0, accurately."""
    near = x < math.log(2)
    small, large = jnp.where(near, x, 1.0), jnp.where(near, 1.0, x)
    return jnp.where(near, jnp.log(-jnp.expm1(-small)), log1p(-jnp.exp(-large)))


def nan_unless(valid: Array) -> Array:
    """Return a factor of 1, and of NaN where `valid` is False: slopes are NaN there as well."""
    return jnp.where(valid, 1.0, jnp.nan)


def at_infinity(a: Array, y: Array) -> Array:
    """Return a mask of where y is infinite and the shape a of a gamma distribution is known."""
    return (y == jnp.inf) & (a >= 0) & (a < jnp.inf)


def outside(p: Array) -> Array:
    """Return a mask of the elements of p that are outside [0, 1] or NaN."""
    return ~((p >= 0) & (p <= 1))
