"""Trace + lower of programs of equinox, flax nnx and numpyro, under jax and under hlofront.

    python benchmarks/libraries.py [--python PYTHON]

PYTHON, or HLOFRONT_LIBRARIES_PYTHON, has jax and the packages of tests/libraries/requirements.txt.
Each program is traced and lowered anew seven times in a process of its own for each side; the
least CPU time counts.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__)


def equinox():
    """A training step of a network of five layers by adam."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    model = eqx.nn.MLP(8, 8, 64, 4, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    x = jnp.ones((16, 8))

    def fresh():
        def step(model, state, x):
            loss, gradient = eqx.filter_value_and_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(
                model
            )
            updates, state = optimizer.update(gradient, state, model)
            return eqx.apply_updates(model, updates), state, loss

        return lambda: eqx.filter_jit(step).lower(model, state, x)

    return fresh


def flax_nnx():
    """A training step of a convolution, batch normalization, dropout and a layer, by adam."""
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.convolution = nnx.Conv(1, 8, (3, 3), rngs=rngs)
            self.normalization = nnx.BatchNorm(8, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)
            self.linear = nnx.Linear(8, 4, rngs=rngs)

        def __call__(self, x):
            x = nnx.relu(self.normalization(self.convolution(x)))
            return self.linear(self.dropout(x.mean((1, 2))))

    network = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adam(1e-3), wrt=nnx.Param)
    x = jnp.ones((4, 8, 8, 1))

    def fresh():
        def step(network, optimizer, x):
            loss, gradient = nnx.value_and_grad(lambda n: (n(x) ** 2).mean())(network)
            optimizer.update(network, gradient)
            return loss

        return lambda: nnx.jit(step).lower(network, optimizer, x)

    return fresh


def numpyro():
    """A step of NUTS on eight schools."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS

    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def fresh():
        def schools(effects):
            mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
            scale = numpyro.sample("scale", dist.HalfCauchy(5.0))
            with numpyro.plate("schools", 8):
                standard = numpyro.sample("standard", dist.Normal(0.0, 1.0))
                numpyro.sample("effect", dist.Normal(mean + scale * standard, errors), obs=effects)

        kernel = NUTS(schools)
        state = kernel.init(jax.random.key(0), 10, None, (effects,), {})
        return lambda: jax.jit(lambda s: kernel.sample(s, (effects,), {})).lower(state)

    return fresh


PROGRAMS = {"equinox": equinox, "flax_nnx": flax_nnx, "numpyro": numpyro}


def seconds_of(name: str) -> float:
    """Return the least CPU time of tracing and lowering a program anew, in this process."""
    fresh = PROGRAMS[name]()
    times = []
    for _ in range(7):
        lower = fresh()
        started = time.process_time()
        lower()
        times.append(time.process_time() - started)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=os.environ.get("HLOFRONT_LIBRARIES_PYTHON"))
    parser.add_argument("--inside", choices=PROGRAMS, help="measure in this process, and print it")
    options = parser.parse_args()
    if options.inside:
        print(seconds_of(options.inside))
        return
    for name in PROGRAMS:
        seconds = {}
        for side, door in (("jax", []), ("hlofront", ["-m", "hlofront", "as-jax"])):
            command = [options.python, "-W", "ignore", *door, str(HERE), "--inside", name]
            root = str(HERE.parents[1]) if door else ""
            environment = {**os.environ, "PYTHONPATH": root}
            text = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
            seconds[side] = float(text.split()[-1])
        mine, theirs = seconds["hlofront"], seconds["jax"]
        print(f"{name:10} {mine * 1e3:6.1f} ms, jax {theirs * 1e3:6.1f} ms: {mine / theirs:.2f}")


if __name__ == "__main__":
    sys.exit(main())
