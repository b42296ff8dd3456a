"""What the guards against XLA's faults cost on a CPU: `python benchmarks/guards.py`.

Each program is compiled with the guards of `hlofront/bridge/xla_faults.py`, without them and, where
$HLOFRONT_ORACLE_PYTHON names a Python that has it, under jax. Calls alternate between the first
two for some seconds. Printed are the least times of a call in microseconds and their ratios.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 4.0

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def programs(jax: Any) -> Iterator[tuple[str, Program]]:
    """Yield the name of each program, with its function and operands."""
    import models

    jnp, keys = jax.numpy, jax.random.split(jax.random.key(0), 4)
    line, square = (jax.random.normal(keys[0], shape) for shape in ((10**6,), (1000, 1000)))
    heads = tuple(jax.random.normal(key, (4, 128, 8, 32)) for key in keys[1:])
    attention = jax.nn.dot_product_attention

    def layer_norm(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def step(*operands: Any) -> Any:
        return models.gpt(jax, 4)[0](*operands)

    yield "sum of 10^6", (jnp.sum, (line,))
    yield "sums of rows, 1,000 x 1,000", (lambda x: x.sum(1), (square,))
    yield "sums of columns", (lambda x: x.sum(0), (square,))
    yield "norms of rows", (lambda x: jnp.linalg.norm(x, axis=1), (square,))
    yield "maxima of rows", (lambda x: x.max(1), (square,))
    yield "variances of rows", (lambda x: x.var(1), (square,))
    yield "variances of columns", (lambda x: x.var(0), (square,))
    yield "softmax of rows", (jax.nn.softmax, (square,))
    yield "logsumexp of rows", (lambda x: jax.nn.logsumexp(x, 1), (square,))
    yield "layer norm", (layer_norm, (square,))
    yield "gradient of layer norm", (jax.grad(lambda x: (layer_norm(x) ** 3).sum()), (square,))
    yield "attention, 4 x 128 x 8 x 32", (attention, heads)
    gradient = jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2))
    yield "gradient of attention", (gradient, heads)
    yield "exp of 10^6", (jnp.exp, (line,))
    yield "product, 1,000 x 1,000", (jnp.matmul, (square, square))
    yield "a step of a GPT of 4 layers", (step, models.gpt(jax, 4)[1])


def measure(jax: Any, guards: tuple[bool | None, ...]) -> dict[str, list[float]]:
    """Return the microseconds of a call of each program, for each setting of the guards.

    Args:
      guards: whether programs are guarded; None where the library has no such option.
    """
    return {name: microseconds(jax, *program, guards) for name, program in programs(jax)}


def microseconds(
    jax: Any,
    function: Callable[..., Any],
    operands: tuple[Any, ...],
    guards: tuple[bool | None, ...],
) -> list[float]:
    """Return the least time of a call for each setting of the guards, in turns."""
    operands = jax.device_put(operands)
    compiled = []
    for are_on in guards:
        if are_on is not None:
            jax.config.update("hlofront_xla_guards", are_on)
        # A function of its own: a program that is lowered twice may be compiled once.
        compiled.append(jax.jit(lambda *xs: function(*xs)).lower(*operands).compile())
    least = [float("inf")] * len(compiled)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for i, program in enumerate(compiled):
            start = time.perf_counter()
            jax.block_until_ready(program(*operands))
            least[i] = min(least[i], time.perf_counter() - start)
    return [1e6 * seconds for seconds in least]


def in_process(python: str, module: str, guards: tuple[bool | None, ...]) -> dict[str, list[float]]:
    """Return the times of each program, measured in a process of its own."""
    code = f"import json, {module} as jax; from guards import measure; "
    code += f"print(json.dumps(measure(jax, {guards})))"
    root = os.path.dirname(os.path.abspath(__file__))
    settings = {"HLOFRONT_CACHE": "off", "HLOFRONT_WARN_RECOMPILES": "0", "JAX_PLATFORMS": "cpu"}
    path = os.pathsep.join((root, os.path.dirname(root)))
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    done = subprocess.run(
        [python, "-c", code],
        env=environment,
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    times = in_process(sys.executable, "hlofront", (False, True))
    oracle = os.environ.get("HLOFRONT_ORACLE_PYTHON")
    jax_times = in_process(oracle, "jax", (None,)) if oracle else {}
    print(f"{'':30}{'without':>9}{'with':>9}{'jax':>9}{'with / without':>16}{'with / jax':>12}")
    for name, (without, guarded) in times.items():
        (jax_us,) = jax_times.get(name, [float("nan")])
        ratios = f"{guarded / without:16.2f}{guarded / jax_us:12.2f}"
        print(f"{name:30}{without:9.0f}{guarded:9.0f}{jax_us:9.0f}{ratios}")


if __name__ == "__main__":
    main()
