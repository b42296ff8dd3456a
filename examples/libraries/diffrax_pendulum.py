"""A pendulum by diffrax, with gradients. It is a program for jax, which hlofront runs:

python -m hlofront as-jax examples/libraries/diffrax_pendulum.py
"""

import time

import diffrax
import jax
import jax.numpy as jnp

started = time.perf_counter()
times = jnp.linspace(0.0, 10.0, 11)


def dynamics(t, state, length):
    angle, velocity = state
    return velocity, -9.81 / length * jnp.sin(angle)


@jax.jit
def angles(length):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(dynamics),
        diffrax.Tsit5(),
        t0=0.0,
        t1=10.0,
        dt0=0.01,
        y0=(1.0, 0.0),
        args=length,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
    )
    return solution.ys[0]


print("angles", [f"{angle:.3f}" for angle in angles(1.0)])
first = time.perf_counter()
gradient = jax.jit(jax.grad(lambda length: angles(length)[-1]))
print(f"derivative of the last angle by the length {gradient(1.0):.2f}")
start = time.perf_counter()
for _ in range(20):
    angles(1.0).block_until_ready()
last = time.perf_counter()
print(f"time to first result {first - started:.2f} s, per call {(last - start) / 20 * 1e3:.2f} ms")
