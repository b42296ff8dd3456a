"""Measures from which size on replacements of XLA's operations on CPUs pay, and writes the sizes.

Run it on an idle machine: `python benchmarks/calibrate.py`, or with `--only sin --only sort`. It
writes hlofront/lowering/min_sizes.py. `--check` prints what it would write, and what never pays:
such a replacement should be deleted.

A replacement pays at a size if 100 calls save the time that it takes longer to compile, and if it
is at least twice as fast there as the program without it, or takes a fifth less time to compile, or
is more exact than XLA's operation.
"""

import argparse
import math
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

# Programs have to be compiled to measure it, and are compiled again for each size.
os.environ |= {"HLOFRONT_CACHE": "off", "HLOFRONT_WARN_RECOMPILES": "0"}

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering import min_sizes, rules
from hlofront.lowering.cpu.maxima import is_fault_lowered

SIZES = [2**n for n in range(10, 21)]
# Products of two numbers are more than the elements of a program's arrays.
NUMBERS_OF_PRODUCTS = [2**n for n in range(14, 27, 2)]
OF_PRODUCTS = (
    "depthwise",
    "dilated inputs",
    "bytes",
    "shifted",
    "small",
    "vectors",
    "windows",
)
# Where XLA's operation loses half of the digits or more.
MORE_EXACT = (("erf_inv", "float64"), ("lgamma", "float32"))
CALLS = 100
SPEEDUP = 2
QUICKER = 0.8
# No program is so large.
NEVER = 1 << 62
PATH = pathlib.Path(min_sizes.__file__)

# A program and its operands.
Case = tuple[Callable[..., Any], list[np.ndarray]]
random = np.random.default_rng(0)


class Measured(NamedTuple):
    """What a replacement gains.

    Attributes:
      min_size: the least size from which it pays; None if it never does.
      speedup: how many times as fast it is at the greatest size.
      compile_ms: the milliseconds that it takes longer to compile.
    """

    min_size: int | None
    speedup: float
    compile_ms: float


# ---- cases ---------------------------------------------------------------------------------------

DOMAINS = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-1, 1), "erf_inv": (-1, 1)}
COUNTS_OF_OPERANDS = {"atan2": 2, "div": 2, "rem": 2}


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return random.normal(size=shape).astype(dtype)


def elementwise(name: str, dtype: str) -> Callable[[int], Case]:
    """Return a function of the size that returns the case of an elementwise function."""
    low, high = DOMAINS.get(name, (-3, 3))

    def case(size: int) -> Case:
        operands = []
        for _ in range(COUNTS_OF_OPERANDS.get(name, 1)):
            x = random.uniform(low, high, size)
            if dtype == "integers":
                operands.append(random.integers(1, 99, size).astype(np.int32))
            else:
                operands.append(x.astype(dtype))
        return getattr(lax, name), operands

    return case


def square(size: int) -> int:
    return max(math.isqrt(size), 1)


def depthwise_gradient(size: int) -> Case:
    x = floats(1, 16, 16, max(size // 256, 1))
    kernel = floats(3, 3, 1, x.shape[-1])

    def convolved(kernel: jax.Array, x: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x,
            kernel,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1],
        )

    return lambda k, x, y: jax.vjp(lambda k: convolved(k, x), k)[1](y)[0], [kernel, x, x]


def transposed_gradient(size: int) -> Case:
    """The derivative of a transposed convolution by its kernel, of so many products of numbers."""
    features = max(round((size / (2 * 28 * 28 * 16)) ** 0.5), 1)
    numbers = ("NHWC", "HWIO", "NHWC")
    x, kernel = floats(2, 14, 14, features), floats(4, 4, features, features)

    def convolved(kernel: jax.Array) -> jax.Array:
        pads = ((2, 2), (2, 2))
        return lax.conv_general_dilated(x, kernel, (1, 1), pads, (2, 2), dimension_numbers=numbers)

    cotangent = np.ones(jax.eval_shape(convolved, kernel).shape, np.float32)
    return lambda k, y: jax.vjp(convolved, k)[1](y)[0], [kernel, cotangent]


def maxima(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def images(size: int) -> np.ndarray:
    """Images whose windows have so many elements in total."""
    return floats(1, 56, 56, max(size * 4 // (9 * 56 * 56), 1))


def product(size: int, dtype: Any) -> Case:
    """A product of square matrices with so many products of numbers."""
    side = max(round(size ** (1 / 3)), 1)
    x = (floats(side, side) * 9).astype(dtype)
    return jnp.matmul, [x, x]


def keys_of(size: int) -> Case:
    return lambda key: jax.random.bits(key, (size,)), [np.asarray(jax.random.PRNGKey(0))]


CASES: dict[str, dict[str, Callable[[int], Case]]] = {
    "conv_general_dilated": {
        "depthwise": lambda n: (jnp.convolve, [floats(max(n // 9, 9)), floats(9)]),
        "groups of a batch": depthwise_gradient,
        "dilated inputs": transposed_gradient,
    },
    "cumsum": {"all": lambda n: (jnp.cumsum, [floats(n)])},
    "dot_general": {
        "small": lambda n: (jnp.matmul, [floats(n // 64, 4, 4), floats(n // 64, 4, 4)]),
        "vectors": lambda n: (
            jnp.matmul,
            [x.astype(jnp.bfloat16) for x in (floats(square(n), square(n)), floats(square(n)))],
        ),
        "bytes": lambda n: product(n, np.int8),
        "shifted": lambda n: product(n, np.uint8),
    },
    "reduce": {
        "integers": lambda n: (jnp.max, [random.integers(0, 999, n).astype(np.int32)]),
        # Before jaxlib 0.11 these are XLA's own.
        **(
            {"floats": lambda n: (lambda x: jnp.max(x, -1), [floats(n // 256, 256)])}
            if is_fault_lowered()
            else {}
        ),
    },
    "select_and_scatter_add": {
        "windows": lambda n: (jax.grad(lambda x: maxima(x).sum()), [images(n)]),
    },
    "sort": {"packed": lambda n: (jnp.sort, [floats(n)])},
    "threefry2x32": {"all": keys_of},
}


def case_of(name: str, kind: str) -> Callable[[int], Case] | None:
    """Return a function of the size that returns a case of a row; None if there is none."""
    if name in CASES:
        return CASES[name].get(kind)
    return elementwise(name, kind) if hasattr(lax, name) else None


# ---- measurements --------------------------------------------------------------------------------


def compiled(name: str, kind: str, case: Case, replaced: bool) -> tuple[Callable[..., Any], float]:
    """Return a program with or without a replacement, and the milliseconds of its compilation."""
    function, operands = case
    with patch.dict(min_sizes.MIN_SIZES[name], {kind: 1 if replaced else NEVER}):
        start = time.process_time()
        program = jax.jit(lambda *xs: function(*xs)).lower(*operands).compile()
        return program, 1000 * (time.process_time() - start)


def milliseconds(program: Any, operands: list[np.ndarray]) -> float:
    """Return the least time of a call."""
    operands = [jax.device_put(x) for x in operands]
    jax.block_until_ready(program(*operands))
    times: list[float] = []
    end = time.perf_counter() + 0.1
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        jax.block_until_ready(program(*operands))
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def measure(name: str, kind: str, case: Callable[[int], Case], sizes: list[int]) -> Measured:
    """Return from which size on a replacement pays: smaller sizes end the search."""
    least, speedup, compile_ms = None, 0.0, 0.0
    for size in reversed(sizes):
        at_size = case(size)
        (new, compile_new), (old, compile_old) = (
            min((compiled(name, kind, at_size, replaced) for _ in range(3)), key=lambda x: x[1])
            for replaced in (True, False)
        )
        time_new, time_old = (milliseconds(program, at_size[1]) for program in (new, old))
        if size == sizes[-1]:
            speedup, compile_ms = time_old / time_new, compile_new - compile_old
        is_better = time_old >= SPEEDUP * time_new or compile_new <= QUICKER * compile_old
        is_better = is_better or (name, kind) in MORE_EXACT
        if not (is_better and CALLS * (time_old - time_new) >= compile_new - compile_old):
            break
        least = size
    return Measured(least, speedup, compile_ms)


# ---- the file ------------------------------------------------------------------------------------


def text_of(
    sizes: dict[str, dict[str, int]], gains: dict[str, dict[str, tuple[float, int]]]
) -> str:
    """Return the source of min_sizes.py, with its docstring and comments as they are."""
    source = PATH.read_text()
    head, _, rest = source.partition("MIN_SIZES: ")
    between = rest[rest.index("\n}\n") + 3 : rest.index("GAINS: ")]
    lines = [head + "MIN_SIZES: dict[str, dict[str, int]] = {"]
    for name, of_name in sorted(sizes.items()):
        kinds = ", ".join(f'"{kind}": {size:_}' for kind, size in of_name.items())
        lines.append(f'    "{name}": {{{kinds}}},')
    lines.append("}\n" + between + "GAINS: dict[str, dict[str, tuple[float, int]]] = {")
    for name, of_name in sorted(gains.items()):
        kinds = ", ".join(f'"{kind}": ({a}, {b})' for kind, (a, b) in of_name.items())
        lines.append(f'    "{name}": {{{kinds}}},')
    return "\n".join([*lines, "}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the name of a primitive")
    parser.add_argument("--check", action="store_true", help="print the sizes, write nothing")
    arguments = parser.parse_args()
    rules.import_all()
    jax.config.update("jax_enable_x64", True)
    sizes = {name: dict(kinds) for name, kinds in min_sizes.MIN_SIZES.items()}
    gains = {name: dict(kinds) for name, kinds in min_sizes.GAINS.items()}
    names = [name for name in sizes if not arguments.only or name in arguments.only]
    for name in names:
        for kind in sizes[name]:
            case = case_of(name, kind)
            if case is None:
                continue
            numbers = NUMBERS_OF_PRODUCTS if kind in OF_PRODUCTS else SIZES
            found = measure(name, kind, case, numbers)
            print(f"{name:24} {kind:20} {found.min_size or 'never':>8} ", end="")
            print(f"{found.speedup:6.1f} times as fast, {found.compile_ms:+6.0f} ms to compile")
            gains.setdefault(name, {})[kind] = round(found.speedup, 1), round(found.compile_ms)
            if found.min_size is not None:
                sizes[name][kind] = found.min_size
    if not arguments.check:
        PATH.write_text(text_of(sizes, gains))
        print(f"wrote {PATH}: format it by `ruff format`")


if __name__ == "__main__":
    main()
