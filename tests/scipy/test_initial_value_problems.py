"""odeint against solutions in closed form, and the errors of calls that make no problem."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.ode import interp_fit_dopri, odeint, runge_kutta_step

TIMES = np.array([0.0, 0.3, 1.0, 2.5])


@pytest.fixture(autouse=True)
def in_64_bits():
    with jax.enable_x64(True):
        yield


def decay(y, t, rate):
    return -rate * y


def test_a_decay_is_an_exponential():
    np.testing.assert_allclose(odeint(decay, 2.0, TIMES, 0.7), 2 * np.exp(-0.7 * TIMES), 1e-7)


def test_a_state_is_a_pytree():
    circle = odeint(lambda y, t: {"x": -y["y"], "y": y["x"]}, {"x": 1.0, "y": 0.0}, TIMES)
    np.testing.assert_allclose(circle["x"], np.cos(TIMES), atol=1e-7)
    np.testing.assert_allclose(circle["y"], np.sin(TIMES), atol=1e-7)


def test_a_state_may_be_complex():
    turned = odeint(lambda y, t: 1j * y, 1.0 + 0j, TIMES)
    np.testing.assert_allclose(turned, np.exp(1j * TIMES), atol=1e-7)


def test_gradients_by_state_times_and_arguments_are_those_of_the_solution():
    def last(solve):
        return lambda y, t, rate: solve(y, t, rate)[-1] ** 2

    numeric = jax.grad(last(lambda y, t, rate: odeint(decay, y, t, rate)), (0, 1, 2))
    exact = jax.grad(last(lambda y, t, rate: y * jnp.exp(-rate * (t - t[0]))), (0, 1, 2))
    for own, wanted in zip(numeric(2.0, TIMES, 0.7), exact(2.0, TIMES, 0.7), strict=True):
        np.testing.assert_allclose(own, wanted, atol=1e-6)


def test_integer_arguments_have_no_gradient():
    def last(rate, power):
        return odeint(lambda y, t, rate, power: -rate * y**power, 1.0, TIMES, rate, power)[-1]

    np.testing.assert_allclose(jax.grad(last)(0.7, 1), -2.5 * np.exp(-0.7 * 2.5), rtol=1e-6)


def test_a_function_is_traced_once_for_all_calls_of_a_kind():
    calls = []

    def slope(y, t):
        calls.append(t)
        return -y

    odeint(slope, 1.0, TIMES)
    before = len(calls)
    odeint(slope, 2.0, TIMES)
    # Whether it closes over traced values is looked up in each call.
    assert len(calls) <= before + 2


def test_a_step_has_order_5_and_its_middle_order_4():
    def errors(dt):
        y, f = jnp.ones(1), -jnp.ones(1)
        end, _, _, slopes = runge_kutta_step(lambda y, t: -y, y, f, 0.0, dt)
        middle = jnp.polyval(interp_fit_dopri(y, end, slopes, dt), 0.5)
        return abs(end[0] - np.exp(-dt)), abs(middle[0] - np.exp(-dt / 2))

    (end, middle), (half_end, half_middle) = errors(0.4), errors(0.2)
    assert end / half_end > 2**5.5
    assert middle / half_middle > 2**4.5


@pytest.mark.parametrize(
    ("call", "class_", "words"),
    [
        (lambda: odeint(decay, 1, TIMES, 1.0), TypeError, "one is of int64: convert it"),
        (lambda: odeint(decay, 1.0, [0, 1], 1.0), TypeError, "t must be an array of floats"),
        (lambda: odeint(decay, 1.0, TIMES[:0], 1.0), IndexError, "t is empty"),
        (lambda: odeint(decay, 1.0, TIMES, "fast"), TypeError, "arrays or scalars, but got fast"),
        (lambda: odeint(lambda y, t: y[:1], jnp.ones(2), TIMES), TypeError, r"result \(1,\)"),
        (lambda: jax.jacfwd(lambda y: odeint(decay, y, TIMES, 1.0))(1.0), TypeError, "jvp"),
    ],
    ids=["integers", "times", "no times", "text", "shape", "forward mode"],
)
def test_what_is_no_problem_is_refused(call, class_, words):
    with pytest.raises(class_, match=words):
        call()
