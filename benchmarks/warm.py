"""Cold code with warm caches on disk, beside jax with its own: fresh processes, wall time.

    python benchmarks/warm.py [--jax PYTHON] [--rounds 5]

Two programs: 60 distinct eager operations, and the training step of a GPT up to its first result.
Each library's cache is filled by a first run; jax's is told to keep everything.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent


def eager(jax):
    """60 operations, each on small arrays and compiled by itself."""
    jnp = jax.numpy
    x = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
    y = jnp.abs(x) + 0.5
    i = jnp.arange(6)
    results = [
        *(x + y, x - y, x * y, x / y, x**2, -x, x > y, x <= y, x == y, x @ y.T, abs(x)),
        *(jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.exp(x), jnp.log(y), jnp.sqrt(y), jnp.tanh(x)),
        *(jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x), jnp.square(x), jnp.exp2(x)),
        *(x.sum(), x.sum(0), x.mean(), x.mean(1), x.max(), x.min(0), x.prod(), x.std(), x.var(0)),
        *(x.argmax(), x.argmin(1), jnp.cumsum(x, 0), jnp.sort(x, 1), jnp.argsort(x, 1)),
        *(x[1], x[:, 1:3], x[::2], x[jnp.array([0, 2])], x.at[1].set(0.0), x.at[0, 0].add(1.0)),
        *(jnp.concatenate([x, y]), jnp.stack([x, y]), x.T, x.reshape(4, 3), x.ravel()),
        *(jnp.where(x > 0, x, y), jnp.clip(x, -0.5, 0.5), jnp.maximum(x, y), jnp.minimum(x, y)),
        *(jnp.zeros((2, 3)), jnp.ones(5), jnp.eye(3), jnp.dot(x, y.T), jnp.outer(x[0], y[0])),
        *(jnp.flip(x), jnp.roll(x, 1), i % 4, i // 2, i << 1, jnp.tile(x, 2), jnp.triu(x)),
    ]
    jax.block_until_ready(results)


def gpt(jax):
    import models

    step, arguments = models.gpt(jax, 12, 64, length=32)
    jax.block_until_ready(jax.jit(step)(*arguments))


def run(library, program):
    start = time.perf_counter()
    if library == "jax":
        import jax
        import jax.numpy
    else:
        import hlofront as jax
        import hlofront.numpy
    globals()[program](jax)
    print(time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(*options.run)
        return
    if not options.jax:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": str(HERE.parent),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

        def seconds(python, library, program):
            own = {
                "JAX_COMPILATION_CACHE_DIR": f"{folder}/{library}",
                "HLOFRONT_CACHE_DIR": f"{folder}/small",
            }
            command = [python, str(HERE / "warm.py"), "--run", library, program]
            done = subprocess.run(
                command, capture_output=True, text=True, env={**environment, **own}, check=False
            )
            if done.returncode:
                sys.exit(f"{library}, {program} failed:\n{done.stderr[-2000:]}")
            return float(done.stdout.splitlines()[-1])

        print(f"{'import included':32s}{'hlofront':>10s}{'jax':>10s}{'ratio':>8s}{'aim':>7s}")
        for title, program, aim in (
            ("60 eager operations", "eager", 0.3),
            ("GPT, 12 layers, to first result", "gpt", 0.6),
        ):
            sides = (sys.executable, "hlofront"), (options.jax, "jax")
            cold = [seconds(python, library, program) for python, library in sides]
            times = [
                [seconds(python, library, program) for python, library in sides]
                for _ in range(options.rounds)
            ]
            ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{title + ', cold':32s}{cold[0]:9.2f}s{cold[1]:9.2f}s{cold[0] / cold[1]:8.2f}")
            mark = "" if ours / theirs <= aim else " *"
            print(f"{title:32s}{ours:9.2f}s{theirs:9.2f}s{ours / theirs:8.2f}{aim:7.2f}{mark}")


if __name__ == "__main__":
    main()
