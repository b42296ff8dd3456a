"""Scans of many small steps under jax and hlofront: nanoseconds per step and times to compile.

    python benchmarks/loops.py [--jax PYTHON] [--rounds 5] [--unroll 1] [TEXT ...]

The interpreter that runs this has hlofront; PYTHON (by default $HLOFRONT_ORACLE_PYTHON) has jax.
Each library runs in a process of its own, and both are asked for a row in turn, round after round.
A row has the least nanoseconds per step in each library, by time and by processor time, the ratio
of the latter, milliseconds of processor time to compile it in hlofront and in jax, and the loops
of hlofront's optimized program: those that XLA makes one native function of (kernels), whose steps
run as code alone, and the others (whiles), each kernel of whose steps is called by itself.
TEXT restricts the rows to those with it in their names. `--unroll` is scan's argument of that name
in hlofront's process: with 1 hlofront decides.
"""

import argparse
import math
import os
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from library_processes import LibraryProcess, answer_requests

HERE = pathlib.Path(__file__)
SECONDS_PER_ROUND = 0.05
STEPS = 100_000
LIBRARIES = ("jax", "hlofront")

Function = Callable[..., Any]


class Case(NamedTuple):
    """A row: the arrays, and the function of them, which takes (jax, unroll) before it is made."""

    of_jax: Callable[[Any, int], Function]
    arrays: tuple[np.ndarray, ...]


CASES: dict[str, Case] = {}


def row(name: str, *arrays: Any):
    """Return a decorator that adds a row; the arrays are made float32 where they are float64."""

    def register(of_jax: Callable[[Any, int], Function]) -> None:
        narrow = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}
        made = [np.asarray(x) for x in arrays]
        CASES[name] = Case(of_jax, tuple(x.astype(narrow.get(x.dtype, x.dtype)) for x in made))

    return register


def of_carry(name: str, step: Callable[[Any, Any], Any], carry: Any) -> None:
    """Add a row of a scan with a carry alone; `step` takes jax.numpy and the carry."""

    @row(name, carry)
    def _(jax: Any, unroll: int) -> Function:
        numpy = jax.numpy

        def body(carry: Any, _: Any) -> Any:
            return step(numpy, carry), None

        return lambda carry: jax.lax.scan(body, carry, None, length=STEPS, unroll=unroll)[0]


def of_rows(name: str, step: Callable[[Any, Any, Any], Any], carry: Any, xs: Any) -> None:
    """Add a row of a scan over `xs`; `step` takes jax.numpy, the carry and a row."""

    @row(name, *carry, xs)
    def _(jax: Any, unroll: int) -> Function:
        numpy = jax.numpy

        def function(*arrays: Any) -> Any:
            *first, xs = arrays
            return jax.lax.scan(lambda c, x: step(numpy, c, x), tuple(first), xs, unroll=unroll)

        return function


numbers = np.random.default_rng(0).normal(size=(STEPS,))
ten = np.arange(10) / 10
of_carry("a carry of 10", lambda _, x: x * 0.999 + 0.001, ten)
of_rows(
    "a carry of 10, sums of rows", lambda _, c, x: ((c[0] * 0.9 + x.sum(),), None), [ten],
    np.random.default_rng(0).normal(size=(STEPS, 3)),
)  # fmt: skip


@row("results of 10 for each step", ten)
def _(jax: Any, unroll: int) -> Function:
    def body(carry: Any, _: Any) -> Any:
        carry = carry * 0.999 + 0.001
        return carry, carry * 2

    return lambda x: jax.lax.scan(body, x, None, length=STEPS, unroll=unroll)


of_carry("a carry of one number", lambda _, x: x * 0.999 + 0.001, 0.5)


@row("a dense layer", ten, np.eye(10) * 0.9, ten)
def _(jax: Any, unroll: int) -> Function:
    def function(x: Any, weights: Any, bias: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return jax.numpy.tanh(weights @ carry + bias), None

        return jax.lax.scan(body, x, None, length=STEPS, unroll=unroll)[0]

    return function


@row("two carries", ten, ten + 1)
def _(jax: Any, unroll: int) -> Function:
    def body(carry: Any, _: Any) -> Any:
        x, y = carry
        return (x * 0.999 + y * 0.001, y * 0.999 - x * 0.001), None

    return lambda x, y: jax.lax.scan(body, (x, y), None, length=STEPS, unroll=unroll)[0]


@row("the gradient of a sine", ten)
def _(jax: Any, unroll: int) -> Function:
    def body(carry: Any, _: Any) -> Any:
        return jax.numpy.sin(carry), None

    def loss(x: Any) -> Any:
        return jax.lax.scan(body, x, None, length=STEPS, unroll=unroll)[0].sum()

    return jax.grad(loss)


@row("a fori_loop of 10", ten)
def _(jax: Any, unroll: int) -> Function:
    def function(x: Any) -> Any:
        body = lambda _, x: x * 0.999 + 0.001
        return jax.lax.fori_loop(0, STEPS, body, x, unroll=unroll)

    return function


# ---- everyday loops ------------------------------------------------------------------------------

of_carry("logistic map", lambda _, x: 3.7 * x * (1 - x), 0.3)
of_carry("logistic map of 64", lambda _, x: 3.7 * x * (1 - x), np.arange(1, 65) / 65)
of_carry("Newton's iteration", lambda _, x: x - (x * x - 2) / (2 * x), 1.0)
of_carry("xorshift", lambda _, x: xorshift(x), np.uint32(2463534242))


def xorshift(x: Any) -> Any:
    x = x ^ (x << 13)
    x = x ^ (x >> 17)
    return x ^ (x << 5)


def euler(numpy: Any, angle: Any, speed: Any) -> Any:
    return angle + 0.01 * speed, speed - 0.01 * numpy.sin(angle)


def runge_kutta(numpy: Any, angle: Any, speed: Any) -> Any:
    def slope(angle: Any, speed: Any) -> Any:
        return speed, -numpy.sin(angle)

    a1, s1 = slope(angle, speed)
    a2, s2 = slope(angle + 0.005 * a1, speed + 0.005 * s1)
    a3, s3 = slope(angle + 0.005 * a2, speed + 0.005 * s2)
    a4, s4 = slope(angle + 0.01 * a3, speed + 0.01 * s3)
    sixth = 0.01 / 6
    return angle + sixth * (a1 + 2 * a2 + 2 * a3 + a4), speed + sixth * (s1 + 2 * s2 + 2 * s3 + s4)


for name, step in (("pendulum, Euler", euler), ("pendulum, Runge-Kutta", runge_kutta)):

    def of_pendulum(jax: Any, unroll: int, step: Any = step) -> Function:
        def body(carry: Any, _: Any) -> Any:
            return step(jax.numpy, *carry), None

        return lambda *first: jax.lax.scan(body, first, None, length=STEPS, unroll=unroll)[0]

    row(name, 1.0, 0.0)(of_pendulum)


@row("Kalman filter, 2 x 2", np.zeros(2), np.eye(2), numbers)
def _(jax: Any, unroll: int) -> Function:
    moves = np.array([[1, 0.1], [0, 1]], np.float32)

    def body(carry: Any, x: Any) -> Any:
        mean, covariance = carry
        mean, covariance = moves @ mean, moves @ covariance @ moves.T + 0.01 * np.eye(2)
        gain = covariance[:, 0] / (covariance[0, 0] + 1)
        mean = mean + gain * (x - mean[0])
        covariance = covariance - jax.numpy.outer(gain, covariance[0])
        return (mean, covariance.astype("float32")), mean

    return lambda mean, covariance, xs: jax.lax.scan(body, (mean, covariance), xs, unroll=unroll)


def low_pass(_: Any, carry: Any, x: Any) -> Any:
    y = 0.9 * carry[0] + 0.1 * x
    return (y,), y


def biquad(_: Any, carry: Any, x: Any) -> Any:
    first, second = carry
    y = 0.2 * x + first
    return (0.4 * x + 0.5 * y + second, 0.2 * x - 0.3 * y), y


def reset_maximum(numpy: Any, carry: Any, x: Any) -> Any:
    y = numpy.where(x < -2, x, numpy.maximum(carry[0], x))
    return (y,), y


def mean_of_all(_: Any, carry: Any, x: Any) -> Any:
    mean, count = carry
    count = count + 1
    mean = mean + (x - mean) / count
    return (mean, count), mean


of_rows("low-pass filter", low_pass, [0.0], numbers)
of_rows("low-pass filter of 10", low_pass, [ten], np.stack([numbers] * 10, 1))
of_rows("biquad filter", biquad, [0.0, 0.0], numbers)
of_rows("running mean", mean_of_all, [0.0, 0.0], numbers)
of_rows("random walk", lambda _, c, x: ((c[0] + x,), None), [0.0], numbers)
of_rows(
    "random walk of 10", lambda _, c, x: ((c[0] + x,), None), [ten], np.stack([numbers] * 10, 1)
)
of_rows("Horner", lambda _, c, x: ((c[0] * 0.5 + x,), None), [ten], numbers)
of_rows("cumulative maximum, reset", reset_maximum, [0.0], numbers)


@row("elements by their index", 0.0, numbers)
def _(jax: Any, unroll: int) -> Function:
    def function(x: Any, xs: Any) -> Any:
        body = lambda i, x: x * 0.5 + xs[i]
        return jax.lax.fori_loop(0, STEPS, body, x, unroll=unroll)

    return function


# ---- the process of one library ------------------------------------------------------------------


class Worker:
    """A library in this process, which compiles the rows that it is asked for and measures them."""

    def __init__(self, library: str):
        self.calls: dict[str, Callable[[], object]] = {}
        self.jax: Any = __import__(library)

    def prepared(self, name: str, unroll: int) -> list[Any]:
        """Prepare a row; return the seconds to compile it, and the loops of the program."""
        case = CASES[name]
        arrays = [self.jax.numpy.asarray(x) for x in case.arrays]
        lowered = self.jax.jit(case.of_jax(self.jax, unroll)).lower(*arrays)
        before = time.process_time()
        compiled = lowered.compile()
        seconds = time.process_time() - before
        self.calls[name] = lambda: self.jax.block_until_ready(compiled(*arrays))
        self.calls[name]()
        text = compiled.as_text()
        whiles, kernels = text.count(" while("), text.count('xla_cpu_small_call="true"')
        return [seconds, f"{kernels} kernels, {whiles - kernels} whiles"]

    def measured(self, name: str) -> list[float]:
        """Return the least time of a call, and the least processor time of one, in seconds."""
        call = self.calls[name]
        least = spent = math.inf
        start = now = time.perf_counter()
        while now - start < SECONDS_PER_ROUND:
            before, processor = now, time.process_time()
            call()
            spent = min(spent, time.process_time() - processor)
            now = time.perf_counter()
            least = min(least, now - before)
        return [least, spent]


# ---- the process that asks -----------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="a part of the names of rows")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--unroll", type=int, default=1, help="scan's argument, in hlofront alone")
    parser.add_argument("--inside", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        worker = Worker(options.inside)
        answer_requests(lambda method, *arguments: getattr(worker, method)(*arguments))
        return
    if not options.jax:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    pythons = {"jax": options.jax, "hlofront": sys.executable}
    workers = {
        library: LibraryProcess(HERE, library, python, JAX_PLATFORMS="cpu", HLOFRONT_CACHE="0")
        for library, python in pythons.items()
    }
    unrolls = {"jax": 1, "hlofront": options.unroll}
    print(
        f"{'nanoseconds per step':30}{'jax':>8}{'(cpu)':>8}{'hlofront':>9}{'(cpu)':>8}"
        f"{'ratio':>7}{'compile':>8}{'jax':>6}"
    )
    for name in CASES:
        if options.texts and not any(text in name for text in options.texts):
            continue
        ready = {x: workers[x].ask("prepared", name, unrolls[x]) for x in LIBRARIES}
        least = dict.fromkeys(LIBRARIES, (math.inf, math.inf))
        for _ in range(options.rounds):
            for library, worker in workers.items():
                figures = worker.ask("measured", name)
                least[library] = tuple(map(min, figures, least[library]))
        times = "".join(
            f"{least[x][0] * 1e9 / STEPS:{width}.1f}{least[x][1] * 1e9 / STEPS:8.1f}"
            for x, width in zip(LIBRARIES, (8, 9), strict=True)
        )
        ratio = least["hlofront"][1] / least["jax"][1]
        compiling = f"{ready['hlofront'][0] * 1e3:8.0f}{ready['jax'][0] * 1e3:6.0f}"
        print(f"{name:30}{times}{ratio:7.2f}{compiling}  {ready['hlofront'][1]}", flush=True)
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
