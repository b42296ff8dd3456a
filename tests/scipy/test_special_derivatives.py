"""Derivatives of special functions against differences: first and second, inside and at edges."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlofront.scipy.special as sp
from hlofront import lax
from hlofront.test_util import check_grads

pytestmark = pytest.mark.long

INF = np.inf
X = np.array([0.3, 0.8, 1.7, 4.2])
P = np.array([0.02, 0.3, 0.75])
Y, Z = np.array([0.4, 1.3, 2.6]), np.array([1.2, 0.7, 3.5])

ONE = {
    "exponential": (X, "exp1 expi erfc erfcx dawsn spence"),
    "normal": (X, "erf ndtr log_ndtr i0e i1e expit"),
    "gamma": (X, "gamma gammaln digamma factorial"),
    "unit": (P, "logit ndtri erfinv entr"),
}
TWO = {
    "powers": (Y, Z, "boxcox boxcox1p xlogy xlog1py rel_entr kl_div"),
    "gammas": (Y + 1, Z, "beta betaln poch"),
}


def twice(function, *args):
    """Derivatives of the first and the second order: in each mix of forward and reverse."""
    with jax.enable_x64(True):
        check_grads(jax.jit(function), args, 2, atol=3e-5, rtol=3e-5)


@pytest.mark.parametrize("name", ONE)
def test_of_one_number(name):
    x, names = ONE[name]
    twice(lambda x: sum(getattr(sp, name)(x) * (k + 1) for k, name in enumerate(names.split())), x)


@pytest.mark.parametrize("name", TWO)
def test_of_two_numbers(name):
    x, y, names = TWO[name]
    twice(lambda *a: sum(getattr(sp, n)(*a) * (k + 1) for k, n in enumerate(names.split())), x, y)


def test_of_pairs_of_integrals():
    def total(x):
        return sum(y * (k + 1) for k, y in enumerate((*sp.sici(x), *sp.fresnel(x / 2))))

    twice(total, X)
    twice(lambda h, a: sp.owens_t(h, a), Y, Z / 4)


def test_of_order_and_place():
    """Zeta in both; polygamma, whose order is whole."""
    twice(lambda q: sp.zeta(Y + 1.5, q) + sp.polygamma(1, q), Z)
    with jax.enable_x64(True):
        check_grads(jax.jit(sp.zeta), (Y + 1.5, Z), 1, atol=3e-5, rtol=3e-5)


SLOPES = {
    "betainc": (sp.betainc, None, (2.3, 1.7), lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1)),
}


@pytest.mark.parametrize("name", SLOPES)
def test_incomplete(name):
    """In the end of the integral: the first derivative is the integrand, and gives the second."""
    function, other, parameters, integrand = SLOPES[name]
    x = np.array([0.2, 0.6, 0.9])
    with jax.enable_x64(True):
        slope = jax.grad(lambda x: function(*parameters, x).sum())
        found = np.asarray(slope(x))
        np.testing.assert_allclose(
            found / integrand(*parameters, x), found[0] / integrand(*parameters, x[0]), 1e-12
        )
        check_grads(jax.jit(slope), (x,), 1, atol=1e-6, rtol=1e-6)
        if other:
            np.testing.assert_allclose(jax.grad(lambda x: other(*parameters, x).sum())(x), -found)


def test_incomplete_in_the_shape():
    """Of igamma in a, against differences of igamma; and samples' derivatives, which go on."""
    a, x = np.array([0.6, 1.5, 4.0]), np.array([0.9, 0.5, 6.0])
    step = 1e-5
    with jax.enable_x64(True):
        lower = jax.jit(lax.igamma)
        wanted = (lower(a + step, x) - lower(a - step, x)) / (2 * step)
        np.testing.assert_allclose(jax.jit(lax.igamma_grad_a)(a, x), wanted, 1e-8)
        rate = jax.jit(lax.random_gamma_grad)
        ones, zeros = np.ones_like(a), np.zeros_like(a)
        along = jax.jit(lambda s, t: jax.jvp(lax.random_gamma_grad, (a, x), (s, t))[1])
        for tangents in ((ones, zeros), (zeros, ones)):
            high, low = (rate(a + h * tangents[0], x + h * tangents[1]) for h in (step, -step))
            np.testing.assert_allclose(along(*tangents), (high - low) / (2 * step), 1e-6)


def test_hypergeometric():
    """In the first argument and the last, reverse; of the second order in the last."""
    step = 1e-5
    given = {
        "hyp1f1": (1.3, 2.1, np.array([0.6, 0.0, -40.0])),
        "hyp2f1": (1.3, 0.4, 2.1, np.array([0.3, 0.0, -2.0])),
    }
    for name, args in given.items():
        function, (a, *others, x) = getattr(sp, name), args

        def total(a, x, function=function, others=others):
            return function(a, *others, x).sum()

        def several(a, x, function=function, others=others, total=total):
            return function(a, *others, x), jax.grad(total, (0, 1))(a, x)

        with jax.enable_x64(True):
            compiled = jax.jit(several)
            a = np.full(3, a)
            moved = [compiled(a + step, x), compiled(a - step, x)]
            moved += [compiled(a, x + step), compiled(a, x - step)]
            found = compiled(a, x)[1]
            for k, slope in enumerate(found):
                wanted = (moved[2 * k][0] - moved[2 * k + 1][0]) / (2 * step)
                np.testing.assert_allclose(slope, wanted, 1e-6, 1e-9)
            if name == "hyp1f1":
                second = jax.jit(jax.grad(lambda x: jax.grad(total, 1)(a, x).sum()))
                wanted = (moved[2][1][1] - moved[3][1][1]) / (2 * step)
                np.testing.assert_allclose(second(x), wanted, 1e-6, 1e-9)


def slopes(function, *args):
    """Forward and reverse derivatives in each argument, which agree."""
    found = jax.grad(function, tuple(range(len(args))))(*args)
    for k, slope in enumerate(found):
        tangents = tuple(np.float64(k == i) for i in range(len(args)))
        forward = jax.jvp(function, args, tangents)[1]
        np.testing.assert_array_equal(forward, slope)
    return [float(x) for x in found]


# What is finite at the edge of where a function is defined.
EDGES = {
    "xlogy": (sp.xlogy, (0.0, 2.0), [np.log(2), 0]),
    "xlog1py": (sp.xlog1py, (0.0, 2.0), [np.log(3), 0]),
    "rel_entr": (sp.rel_entr, (1.0, 1.0), [1, -1]),
    "kl_div": (sp.kl_div, (0.0, 2.0), [-1, 1]),
    "i0e": (sp.i0e, (0.0,), [0]),
    "i1e": (sp.i1e, (0.0,), [0.5]),
    "i0": (sp.i0, (0.0,), [0]),
    "i1": (sp.i1, (0.0,), [0.5]),
    "sinc": (jnp.sinc, (0.0,), [0]),
    # Where the exponent is 0 and not 2, it is 0 times the logarithm of 0, as jax's.
    "gammainc": (lambda x: sp.gammainc(3.0, x), (0.0,), [0]),
    "betainc": (lambda x: sp.betainc(3.0, 2.0, x), (0.0,), [0]),
    "boxcox": (lambda x: sp.boxcox(x, 0.0), (2.0,), [0.5]),
    "spence": (sp.spence, (1.0,), [-1]),
    "sici": (lambda x: sp.sici(x)[0], (0.0,), [1]),
    "fresnel": (lambda x: sp.fresnel(x)[1], (0.0,), [1]),
    "dawsn": (sp.dawsn, (0.0,), [1]),
    "erfinv": (sp.erfinv, (0.0,), [np.sqrt(np.pi) / 2]),
    "expn": (lambda x: sp.expn(3, x), (0.0,), [-1]),
}


@pytest.mark.parametrize("name", EDGES)
def test_at_edges(name):
    function, args, wanted = EDGES[name]
    with jax.enable_x64(True):
        found = slopes(function, *args)
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-15)


def of_order(function, order, mixed):
    """The derivative of this order, by reverse and forward mode in turn or all forward."""
    for k in range(order):
        if mixed and k % 2 == 0:
            function = jax.grad(function)
        else:
            function = forward_derivative(function)
    return function


def forward_derivative(function):
    return lambda x: jax.jvp(function, (x,), (1.0,))[1]


# Derivatives at 0 of the orders 0, 1, 2 ..., and how the functions behave near it.
ORDERS = {
    "sinc": (jnp.sinc, [1, 0, -(np.pi**2) / 3, 0, np.pi**4 / 5, 0]),
    "numpy_i0": (jnp.i0, [1, 0, 1 / 2, 0, 3 / 8, 0]),
    "i0": (sp.i0, [1, 0, 1 / 2, 0, 3 / 8, 0]),
    "i1": (sp.i1, [0, 1 / 2, 0, 3 / 8, 0, 5 / 16]),
    "sine_integral": (lambda x: sp.sici(x)[0], [0, 1, 0, -1 / 3, 0, 1 / 5]),
    "spence": (lambda x: sp.spence(1 + x), [0, -1, 1 / 2, -2 / 3, 3 / 2, -24 / 5]),
    "boxcox": (lambda x: sp.boxcox(2.0, x), [np.log(2) ** k / k for k in range(1, 7)]),
    "boxcox1p": (lambda x: sp.boxcox1p(2.0, x), [np.log(3) ** k / k for k in range(1, 7)]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_at_zero(name):
    """To the fifth order, in both modes; and no cancellation next to 0."""
    function, wanted = ORDERS[name]
    with jax.enable_x64(True):
        for mixed in (False, True):
            for x in (0.0, -0.0, 1e-12):
                found = [of_order(function, order, mixed)(x) for order in range(len(wanted))]
                np.testing.assert_allclose(found, wanted, 1e-12, 1e-9)


@pytest.mark.parametrize("name", ["i0", "i1", "sinc"])
def test_orders_of_float32_near_zero(name):
    """The shorter series of float32 reaches as far, to the fourth order."""
    function = {**vars(sp), "sinc": jnp.sinc}[name]
    for x in (0.0, 0.25, -0.9375):
        with jax.enable_x64(True):
            wanted = [of_order(function, order, True)(x) for order in range(5)]
        with jax.enable_x64(False):
            found = [of_order(function, order, True)(np.float32(x)) for order in range(5)]
        np.testing.assert_allclose(found, wanted, 3e-6, 3e-5)


def test_of_sinc_at_complex_zero():
    assert jax.grad(jnp.sinc, holomorphic=True)(0j) == 0


def test_orders_far_out():
    """Where the density has underflowed, and where whole turns of an angle are taken off."""
    with jax.enable_x64(True):
        found = [of_order(sp.log_ndtr, order, True)(1e4) for order in range(5)]
        assert found == [0] * 5
        found = [of_order(sp.log_ndtr, order, True)(-30.0) for order in range(4)]
        wanted = [-454.3212439955671, 30.033259667433676, -0.9988962284881099, 7.309993e-5]
        # The third derivative is a difference of numbers of about 30**3, whose last bits are lost.
        np.testing.assert_allclose(found, wanted, 1e-7, atol=4 * np.spacing(30.0**3))
        found = [of_order(lambda x: sp.fresnel(x)[0], order, True)(1e4) for order in (1, 2, 3)]
        np.testing.assert_allclose(found, [0, np.pi * 1e4, np.pi], 1e-12, 1e-12)


def test_sums_with_nothing_in_them():
    """Minus infinity is an entry of no weight, and one alone has all."""
    x = np.array([0.5, -INF, 1.5])
    with jax.enable_x64(True):
        weights = np.exp([0.5, -INF, 1.5])
        weights /= weights.sum()
        np.testing.assert_allclose(jax.grad(sp.logsumexp)(x), weights)
        found = jax.jacobian(sp.softmax)(x)
        np.testing.assert_allclose(found, np.diag(weights) - np.outer(weights, weights), 1e-12)
        found = jax.grad(lambda x: sp.log_softmax(x)[0])(x)
        np.testing.assert_allclose(found, [1 - weights[0], 0, -weights[2]])
        alone = np.array([-INF, 2.0])
        np.testing.assert_array_equal(jax.grad(sp.logsumexp)(alone), [0, 1])
        twice(sp.logsumexp, X)
        twice(lambda x: sp.log_softmax(x) + sp.softmax(x), X)
