"""Initial value problems against the reference: solutions, gradients, steps, bounds of steps."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

TIMES = np.linspace(0.0, 2.0, 4)
ONE = np.float64(1)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    module = jax
    if not isinstance(jax, Anything):
        module = importlib.import_module(f"{jax.__name__}.experimental.ode")
    solutions(corpus, module.odeint, jax, jnp)
    gradients(corpus, module.odeint, jax, jnp)
    parts(corpus, module, jnp)
    refused(corpus, module.odeint, jnp)
    return corpus


def pendulum(jnp):
    return lambda y, t: jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])


def solutions(corpus, odeint, jax, jnp):
    def add(name, function, *args, tolerance=1e-9):
        corpus.add(name, function, *args, x64=True, tolerance=tolerance)

    start = np.array([1.0, 0.5])
    add("pendulum", lambda y: odeint(pendulum(jnp), y, TIMES), start)
    for name, options in (
        ("tolerances", {"rtol": 1e-3, "atol": 1e-4}),
        ("two_steps", {"mxstep": 2}),
        ("no_steps", {"mxstep": 0}),
        ("short_steps", {"hmax": 0.05}),
    ):
        add(name, lambda y, o=options: odeint(pendulum(jnp), y, TIMES, **o), start)
    add("repeated_times", lambda y: odeint(lambda y, t: -y, y, np.array([0.0, 1, 1, 2])), ONE)
    add("one_time", lambda y: odeint(lambda y, t: -y, y, TIMES[:1]), ONE)
    add("times_that_decrease", lambda y: odeint(lambda y, t: -y, y, TIMES[::-1]), ONE)
    add("complex", lambda y: odeint(lambda y, t: (1j - 0.2) * y, y, TIMES), np.complex128(1))
    add("nothing", lambda y: odeint(lambda y, t: -y, y, TIMES), np.zeros((0,)))
    add(
        "trees_and_arguments",
        lambda y, k: odeint(
            lambda y, t, k: (k["a"] * y[1], -y[0] * t), (y, {"z": 2 * y}["z"]), TIMES, {"a": k}
        ),
        ONE,
        ONE,
    )
    add("batch", jax.vmap(lambda y: odeint(pendulum(jnp), y, TIMES)), np.stack([start, 2 * start]))
    add(
        "batch_of_times", jax.vmap(lambda t: odeint(lambda y, t: -y, 1.0, t)), np.stack([TIMES] * 2)
    )
    add("captured", jax.jit(lambda k: odeint(lambda y, t: -k * y, 1.0, TIMES)), ONE)
    corpus.add("in_32_bits", lambda y: odeint(lambda y, t: -y, y, np.float32(TIMES)), np.float32(1))
    add(
        "in_32_bits_with_times_of_64",
        lambda y: odeint(lambda y, t: -y, y, TIMES),
        np.float32(1),
        tolerance=1e-5,
    )


def gradients(corpus, odeint, jax, jnp):
    def total(y, t, k):
        ys = odeint(lambda y, t, k: -k * y * t + jnp.sin(y), y, t, k)
        return jnp.sum(ys * jnp.arange(4.0))

    def add(name, function, *args):
        corpus.add(name, function, *args, x64=True, tolerance=1e-7)

    add("by_all", jax.grad(total, (0, 1, 2)), ONE, TIMES, ONE)
    add(
        "of_complex",
        jax.grad(lambda y, t: jnp.sum(jnp.abs(odeint(lambda y, t: (1j - 0.2) * y, y, t))), (0, 1)),
        np.complex128(1),
        TIMES,
    )
    add("of_batch", jax.vmap(jax.grad(total), (0, None, 0)), TIMES, TIMES, TIMES)


def parts(corpus, module, jnp):
    def add(name, function, *args):
        corpus.add(name, function, *args, x64=True, tolerance=1e-10)

    y, f = np.array([1.0, 2.0]), np.array([-1.0, -0.5])
    slope = lambda y, t: -y * (1 + t)
    length = np.float64(0.1)

    @corpus.program(y, f, length, x64=True, tolerance=1e-10)
    def a_step(y, f, length):
        length = jnp.asarray(length)
        end, last, error, slopes = module.runge_kutta_step(slope, y, f, 0 * length, length)
        return end, last, error, slopes, module.interp_fit_dopri(y, end, slopes, length)

    add(
        "quartic",
        lambda y, f, dt: module.fit_4th_order_polynomial(
            jnp.asarray(y), 2 * y, y, f, 3 * f, jnp.asarray(dt)
        ),
        y,
        f,
        length,
    )
    add("first_step", lambda y, f: module.initial_step_size(slope, 0.0, y, 4, 1e-3, 1e-4, f), y, f)
    add("error", lambda y, f: module.mean_error_ratio(1e-4 * f, 1e-3, 1e-4, y, f), y, f)
    add("squares", lambda x: module.abs2(jnp.asarray(x)), np.array([3 + 4j, -2]))
    for ratio in (0.0, 1e-9, 0.5, 1.0, 2.0, 1e9, np.nan):
        add(f"next_step_{ratio}", module.optimal_step_size, length, np.float64(ratio))


def refused(corpus, odeint, jnp):
    slope = lambda y, t, *args: -y
    for name, *args in (
        ("integers", slope, 1, TIMES),
        ("times_of_integers", slope, 1.0, np.arange(3)),
        ("a_table_of_times", slope, 1.0, np.ones((2, 2))),
        ("no_times", slope, 1.0, TIMES[:0]),
        ("text", slope, 1.0, TIMES, "a"),
        ("a_function", slope, 1.0, TIMES, slope),
        ("no_function", 3, 1.0, TIMES),
        ("larger_slopes", lambda y, t: jnp.ones(3), np.ones(2, np.float32), TIMES),
    ):
        corpus.add(f"refused_{name}", lambda a=args: odeint(*a))
