"""The density and the survival function that the gamma and the chi-square distribution share."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import at_infinity


def log_density(outer: Array, y: Array, a: Array, scale: Array | int) -> Array:
    """Return the logarithm of the density at y = (x - loc) / scale, and -inf where `outer` is."""
    part = jnp.where(outer, 1, y)
    # At infinity the power is negligible compared with the exponential.
    base = jnp.where((part == jnp.inf) & (scale > 0) & (a < jnp.inf), 1, part)
    logarithm = xlogy(a - 1, base) - part - gammaln(a) - jnp.log(scale)
    return jnp.where(outer, -jnp.inf, logarithm)


def survival(outer: Array, y: Array, a: Array) -> Array:
    """Return gammaincc(a, y), which is 1 where `outer` is, and 0 at infinity."""
    above = at_infinity(a, y)
    rest = gammaincc(a, jnp.where(outer | above, 1, y))
    return jnp.where(outer, 1, jnp.where(above, 0, rest))
