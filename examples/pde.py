"""Solves the Korteweg-de Vries equation: two waves in a canal, where the tall one overtakes.

Derivatives are products with wave numbers, by FFT; a fourth-order method steps through time and
treats the linear part exactly. You see the waves pass through each other, and the distance to the
exact solution. At the end `diff` compares the step with one that uses complex transforms, which
gives the same waves for twice the memory traffic.

Run it:   python examples/pde.py [STEPS]
See it:   python -m hlofront diff examples/pde.py:complex_step examples/pde.py:step
"""

import functools
import sys

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

LENGTH, POINTS, END, FRAMES = 60.0, 256, 16.0, 16
X = np.arange(POINTS) * (LENGTH / POINTS)
REAL, COMPLEX = (jnp.fft.rfft, jnp.fft.irfft), (jnp.fft.fft, jnp.fft.ifft)


def exact(t, widths=(1.4, 0.8), starts=(15.0, 25.0)):
    """The exact solution at time t, f64[POINTS]: 2 (log F)'' for a sum F of exponentials."""
    k1, k2 = widths
    e1, e2 = (np.exp(k * (X - start - k * k * t)) for k, start in zip(widths, starts, strict=True))
    both = ((k1 - k2) / (k1 + k2)) ** 2 * e1 * e2
    f, slope = 1 + e1 + e2 + both, k1 * e1 + k2 * e2 + (k1 + k2) * both
    curvature = k1 * k1 * e1 + k2 * k2 * e2 + (k1 + k2) ** 2 * both
    return 2 * (f * curvature - slope**2) / f**2


def advance(u, dt, transforms):
    """One step of u_t + 6 u u_x + u_xxx = 0, for u f32[POINTS] with the ends joined."""
    forward, back = transforms
    frequencies = np.fft.rfftfreq if transforms is REAL else np.fft.fftfreq
    k = 2 * np.pi * frequencies(POINTS, LENGTH / POINTS)
    half = jnp.exp(1j * dt / 2 * jnp.asarray(k**3, jnp.complex64))
    scale = -3j * dt * jnp.asarray(k, jnp.complex64)

    def bend(v):
        return scale * forward(back(v).real ** 2)

    # The Runge-Kutta method for v, in coordinates in which the term u_xxx vanishes.
    v = forward(u)
    a = bend(v)
    b = bend(half * (v + a / 2))
    c = bend(half * v + b / 2)
    d = bend(half * (half * v + c))
    return back(half * (half * (v + a / 6) + (b + c) / 3) + d / 6).real


step = jax.jit(functools.partial(advance, transforms=REAL))
complex_step = jax.jit(functools.partial(advance, transforms=COMPLEX))


@functools.partial(jax.jit, static_argnames="steps")
def solve(u, steps):
    """FRAMES snapshots of u until END, f32[FRAMES, POINTS], after `steps` steps in all."""

    def frame(u, _):
        u = jax.lax.fori_loop(0, steps // FRAMES, lambda _, u: step(u, END / steps), u)
        return u, u

    return jax.lax.scan(frame, u, length=FRAMES)[1]


def example_args():
    """What `python -m hlofront diff` calls `step` and `complex_step` with."""
    return exact(0.0).astype(np.float32), np.float32(0.005)


def as_text(u):
    """One line of characters for u, darker where the wave is higher."""
    levels = np.clip(np.asarray(u)[:: POINTS // 64] * 10, 0, 9).astype(int)
    return "".join(np.array(list(" .:-=+*#%@"))[levels])


def main(steps=3200):
    """Solve; return the largest error. The tall wave has height 0.98."""
    frames = np.asarray(solve(example_args()[0], steps))
    errors = []
    for number, u in enumerate(frames, 1):
        t = END * number / FRAMES
        errors.append(np.abs(u - exact(t)).max())
        print(f"t = {t:4.1f} |{as_text(u)}| error {errors[-1]:.1e}")
    print(f"water: {frames[0].sum():.4f} at first, {frames[-1].sum():.4f} at last")

    def compiled(f):
        return f.lower(*example_args()).compile()

    print(jax.inspect.diff(compiled(complex_step), compiled(step), labels=("complex", "real")))
    return max(errors)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
