"""Samples of special functions: everywhere that they differ in kind, and at the edges."""

import numpy as np
import scipy.special

from hlofront import lax
from tests.samples import sample
from tests.samples.elementwise import wide
from tests.support.cases import bf16, f8, f16, f32, f64

inf, nan = np.inf, np.nan
LINE = np.float32([nan, inf, -inf, 0.0, -0.0, 0.1, -0.1, 0.9, 1, -1, 1.5, -1.5, 3.7, 8, 12.5, 30])
INSIDE = np.float32([nan, 0.0, -0.0, 0.1, -0.1, 0.9, -0.99, 0.999, 1, -1, 1.5])


def without_overflow(x):
    """What XLA gives beyond the ends: NaN."""
    return np.where(np.abs(x) > 1, nan, scipy.special.erfinv(x))


for function, reference, values in (
    (lax.erf, scipy.special.erf, LINE),
    (lax.erfc, scipy.special.erfc, LINE),
    (lax.erf_inv, without_overflow, INSIDE),
    (lax.lgamma, None, LINE),
    (lax.digamma, None, LINE),
    (lax.bessel_i0e, scipy.special.i0e, np.append(LINE, np.float32([-8.9, 9.1, 100, 1e6, 1e30]))),
    (lax.bessel_i1e, scipy.special.i1e, np.append(LINE, np.float32([-8.9, 9.1, 100, 1e6]))),
):
    sample(
        function, values, reference=reference and wide(reference), name=function.__name__ + "(line)"
    )
    for spec in (bf16[2, 3], f64[4]):
        sample(function, spec.between(0.1, 0.9))
sample(lax.erf, f16[0, 2], reference=scipy.special.erf)
for function in (lax.erfc, lax.lgamma, lax.bessel_i1e):
    sample(function, f8[3].between(0.1, 0.9))
sample(lax.lgamma, f32[2, 3].between(0.1, 30), reference=wide(scipy.special.gammaln))
sample(lax.digamma, f32[2, 3].between(0.1, 30), reference=wide(scipy.special.digamma))
sample(lax.bessel_i0e, f64[9].between(-60, 60), reference=scipy.special.i0e)
sample(lax.bessel_i0e, 2.0, reference=scipy.special.i0e)
sample(lax.erf, 0.5, reference=scipy.special.erf)

# ---- zeta and polygamma ----------------------------------------------------------------------

sample(
    lax.zeta,
    np.float32([1.1, 2, 3, 7, 2, 1, 3, nan]),
    np.float32([1, 0.5, 9, 2, 100, 2, -1.5, 1]),
    name="zeta(line)",
)
NO_ZETA = (NotImplementedError, "zeta")
sample(
    lax.zeta,
    f32[4].between(1.5, 9),
    f32[4].between(0.5, 9),
    reference=wide(scipy.special.zeta),
    not_differentiable=NO_ZETA,
)
sample(lax.zeta, bf16[2].between(2, 3), bf16[()].between(1, 2), not_differentiable=NO_ZETA)
sample(
    lax.polygamma,
    np.float32([0, 1, 2, 3, 1, 0.5]),
    np.float32([0.5, 1, 2, 9, -1.5, 1]),
    not_differentiable=(ValueError, "with respect to m"),
)
sample(
    lax.polygamma, 1.0, f32[3].between(0.5, 9), reference=lambda m, x: scipy.special.polygamma(1, x)
)

# ---- incomplete gamma ------------------------------------------------------------------------

EDGE = np.float32([nan, -inf, -1.5, -0.0, 0.0, 0.3, 1, 3])
A = EDGE.reshape(-1, 1)
X = np.append(EDGE, np.float32(inf)).reshape(1, -1)
# The series, the continued fraction, the expansion; close to the mean and far off.
SHAPES = np.float32([1e-3, 0.2, 0.9, 5, 9, 11, 90, 90, 90, 110, 110, 110, 300, 2e3, 2e3, 1e5, 3e7])
POINTS = np.float32(
    [1e-5, 0.9, 1.1, 2, 30, 11, 60, 90, 130, 60, 110, 150, 300, 1.5e3, 2e3, 1e5, 3e7]
)


LOSES_BITS = "jax loses bits as the parameters grow; ours are held against scipy"
AT_ZERO = "jax says NaN for a = 0 and x < 1, where scipy and ours say 0 or 1"


def igamma_of_nothing(function, of_zero):
    """As scipy, but with what is said of both parameters zero or infinite."""

    def reference(a, x):
        return np.where((a == 0) & (x > 0), of_zero, function(a, x))

    return reference


# By its first parameter it has one derivative, which has none.
ONCE = (NotImplementedError, "igamma_grad_a")
lower = igamma_of_nothing(scipy.special.gammainc, 1.0)
upper = igamma_of_nothing(scipy.special.gammaincc, 0.0)
for function, reference in ((lax.igamma, lower), (lax.igammac, upper)):
    name = function.__name__
    sample(function, A, X, reference=wide(reference), name=f"{name}(edges)", unlike_jax=AT_ZERO)
    sample(
        function,
        SHAPES,
        POINTS,
        reference=wide(reference),
        name=f"{name}(regions)",
        unlike_jax=LOSES_BITS,
        not_twice=ONCE,
    )
sample(
    lax.igamma,
    f64[12].between(0.1, 900),
    f64[12].between(0.1, 900),
    reference=lower,
    unlike_jax=LOSES_BITS,
    not_twice=ONCE,
)
sample(
    lax.igammac,
    f64[9].between(0.1, 40),
    f64[9].between(0.1, 40),
    reference=upper,
    not_twice=ONCE,
)
sample(lax.igammac, 1e-6, np.float32([1e-3, 0.5, 1]), reference=wide(scipy.special.gammaincc))
sample(
    lax.igamma,
    bf16[2, 1].between(0.5, 3),
    bf16[2, 3].between(0.5, 3),
    reference=wide(lower),
    not_twice=ONCE,
)
sample(lax.igamma, f16[0].between(0.5, 3), f16[0], reference=lower, not_twice=ONCE)


def by_differences(a, x):
    h = 1e-3 * a
    p = scipy.special.gammainc
    far = p(a + 2 * h, x) - p(a - 2 * h, x)
    return (8 * (p(a + h, x) - p(a - h, x)) - far) / (12 * h)


def sample_by_differences(a, x):
    density = np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))
    return -by_differences(a, x) / density


FIRST = np.float32([0.5, 0.7, 1.2, 2.5, 2, 3, 20, 30, 40, 300, 320, 330])
SECOND = np.float32([0.6, 2, 0.3, 1.5, 3, 2.9, 25, 30, 33, 310, 310, 310])
for function, reference in (
    (lax.igamma_grad_a, by_differences),
    (lax.random_gamma_grad, sample_by_differences),
):
    name = function.__name__
    reference = wide(reference)
    refusal = ONCE if function is lax.igamma_grad_a else None
    sample(
        function,
        FIRST,
        SECOND,
        reference=reference,
        name=f"{name}(regions)",
        unlike_jax=LOSES_BITS,
        not_differentiable=refusal,
    )
    sample(function, A, X, name=f"{name}(edges)")
    sample(
        function,
        bf16[2].between(0.5, 3),
        bf16[()].between(0.5, 3),
        reference=reference,
        not_differentiable=refusal,
    )

# ---- incomplete beta -------------------------------------------------------------------------

SIDE = np.float32([nan, -1, 0, 0.25, 1, 2, inf])
UNIT = np.float32([nan, -0.5, -0.0, 0, 0.3, 1, 1.5])
ONE_ONLY = (ValueError, "with respect to a and b")
beta = wide(scipy.special.betainc)
sample(
    lax.betainc,
    SIDE.reshape(-1, 1, 1),
    SIDE.reshape(1, -1, 1),
    UNIT.reshape(1, 1, -1),
    reference=beta,
    name="betainc(edges)",
)
sample(
    lax.betainc,
    np.float32([1e-3, 0.2, 5, 5, 90, 90, 400, 4e3, 3e4, 3e4, 1e5]),
    np.float32([0.4, 3.0, 9, 9, 2, 200, 3e3, 0.5, 3e4, 7e4, 1e5]),
    np.float32([1e-3, 0.9, 0.2, 0.8, 0.99, 0.3, 0.12, 0.9995, 0.5, 0.299, 0.4995]),
    reference=beta,
    name="betainc(regions)",
    unlike_jax=LOSES_BITS,
    not_differentiable=ONE_ONLY,
)
for dtype in (f32, f64):
    sample(
        lax.betainc,
        *[dtype[2, 3].between(0.1, 0.9)] * 3,
        reference=beta,
        not_differentiable=ONE_ONLY,
    )
sample(lax.betainc, 1.5, 2.0, f32[3].between(0.1, 0.9), reference=beta)
sample(lax.betainc, *[bf16[3].between(0.1, 0.9)] * 3, reference=beta, not_differentiable=ONE_ONLY)
sample(lax.betainc, f16[0], f16[0], f16[0], not_differentiable=ONE_ONLY)
