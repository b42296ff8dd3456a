"""What the functions of distributions share: their arguments, documentation, and logarithms."""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import typeof
from hlofront.core.trace import as_array
from hlofront.numpy.promotion import promote_args_inexact
from hlofront.primitives.converting import convert
from hlofront.primitives.elementwise import clamp
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.entropies import log1p

_SAID = {
    "logpdf": "Logarithm of the density.",
    "pdf": "Density.",
    "logpmf": "Logarithm of the probability.",
    "pmf": "Probability.",
    "logcdf": "Logarithm of the distribution function.",
    "cdf": "Distribution function.",
    "logsf": "Logarithm of the survival function.",
    "sf": "Survival function, 1 - cdf.",
    "ppf": "Quantile: the inverse of cdf.",
    "isf": "Inverse of the survival function.",
    "entropy": "Entropy.",
}
_PARAMETERS = {
    "x": "where, real numbers.",
    "k": "whole numbers.",
    "q": "probabilities, from 0 to 1.",
    "loc": "what the variable is shifted by.",
    "scale": "what it is stretched by, positive.",
}


def arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common inexact dtype and rank.

    Raises:
      TypeError: if one is neither array nor scalar.
    """
    return [as_array(x) for x in promote_args_inexact(name, *args)]


def functions_of(
    distribution: str, *, promoted: bool = True, real: bool = False, **parameters: str
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for the functions of a distribution: `@of_beta` on `def logpdf(x, a, b)`.

    They get their arguments as arrays of one inexact dtype, their documentation from their name
    and those of their parameters, and run eagerly as one executable.

    Args:
      distribution: its name.
      promoted: whether the arguments become arrays; otherwise they come as they are given.
      real: whether complex numbers, which have no order, raise TypeError.
      parameters: what those mean that it alone has.
    """
    meanings = _PARAMETERS | parameters

    def decorator(fun: Callable[..., Any]) -> Any:
        signature = inspect.signature(fun)
        name = f"{distribution}.{fun.__name__}"
        fun.__doc__ = "\n".join(
            [
                f"{_SAID[fun.__name__]}\n\nArgs:",
                *[f"  {parameter}: {meanings[parameter]}" for parameter in signature.parameters],
                "\nRaises:\n  TypeError: if an argument is neither array nor scalar.",
            ]
        )

        @functools.wraps(fun)
        def of_arrays(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                given = None
            if given is None:
                return fun(*args, **kwargs)  # Python says what is wrong.
            given.apply_defaults()
            values = arrays(name, *given.args)
            dtype = typeof(values[0]).dtype
            if real and fun.__name__ != "ppf" and issubdtype(dtype, np.complexfloating):
                raise TypeError(f"{name} takes real numbers, and was given {dtype}")
            return fun(*values)

        return operation(of_arrays if promoted else fun)

    return decorator


def exp_of(function: Callable[..., Any], undefined: bool = False) -> Any:
    """The function of a distribution that one called "logpdf" is the logarithm of.

    Args:
      function: the logarithm.
      undefined: whether it puts NaN where parameters are none of the distribution.
    """
    exp = _exp_or_nan if undefined else jnp.exp
    return _composed(exp, function, function.__name__.removeprefix("log"))


def _exp_or_nan(x: Any) -> Any:
    """exp(x), also where XLA for CPUs would take it of a constant NaN, which gives any number."""
    return jnp.where(x == x, jnp.exp(x), x)


def log_of(function: Callable[..., Any]) -> Any:
    """The logarithm of a function of a distribution."""
    return _composed(jnp.log, function, f"log{function.__name__}")


def _composed(outer: Callable[[Any], Any], inner: Callable[..., Any], name: str) -> Any:
    def composed(*args: Any, **kwargs: Any) -> Any:
        return outer(inner(*args, **kwargs))

    composed.__name__ = composed.__qualname__ = name
    composed.__module__ = inner.__module__
    composed.__doc__ = (inner.__doc__ or "").replace(_SAID[inner.__name__], _SAID[name], 1)
    composed.__signature__ = inspect.signature(inner)  # type: ignore[attr-defined]
    return operation(composed)


def log_of_rest(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, to all digits."""
    near = x < math.log(2)
    small, large = jnp.where(near, x, 1.0), jnp.where(near, 1.0, x)
    return jnp.where(near, jnp.log(-jnp.expm1(-small)), log1p(-jnp.exp(-large)))


def between(low: float, x: Any, high: float) -> Any:
    """x, or the bound that it is beyond, with no slope there; and NaN where it is NaN.

    XLA takes any maximum of x and 0 for a number that is not below 0, also where x is NaN.
    """
    aval = typeof(x)
    clamped = clamp(np.full((), low, aval.dtype), x, np.full((), high, aval.dtype))
    return convert(clamped, aval.dtype, aval.weak_type)


def outside(p: Any) -> Any:
    """Whether what should be a probability is none."""
    return ~((p >= 0) & (p <= 1))
