"""Programs that XLA ends the process on, or computes wrongly, where their arrays are split.

    JAX_NUM_CPU_DEVICES=2 python -m tests.xla_faults.test_split_programs [NAME ...]

runs the named ones, or all, and prints whether each is right; the tests run it.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS
from hlofront.sharding import AxisType, Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.xla_faults import windows as w
from tests.xla_faults.windows import Convolution, Windows

DILATED, GROUPS = "cuts of split axes", "groups of split convolutions"


def mesh() -> Mesh:
    return jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))


def is_right(traced: Callable[..., Any], expected: Any, arguments: Any, specs: Any) -> bool:
    """Return whether a function of split whole numbers has the expected results."""
    pairs = zip(arguments, specs, strict=True)
    split = [jax.device_put(np.float32(x), NamedSharding(mesh(), spec)) for x, spec in pairs]
    return np.array_equal(jax.jit(traced)(*split), expected)


def integers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-4, 5, shape)


def pads(*edges: tuple[int, int, int]) -> bool:
    x = integers(*[4] * len(edges))
    traced = lambda x: lax.pad(x, np.float32(0), edges)
    return is_right(traced, w.padded(x, edges), [x], [P("x")])


def sums(low: int, high: int, dilation: int) -> bool:
    windows = Windows((2,), (1,), ((low, high),), (dilation,), (1,))
    x = integers(4)
    expected = w.reduced_windows(x, windows, np.add)
    return is_right(lambda x: w.traced_windows(x, windows, lax.add), expected, [x], [P("x")])


def convolves(low: int, high: int, dilation: int) -> bool:
    windows = Windows((2,), (1,), ((low, high),), (dilation,), (1,))
    settings = Convolution(windows, 1, 1, ("NC0", "OI0", "NC0"))
    return has_right_convolution(settings, (2, 3, 4), (2, 3, 2), P(None, None, "x"))


def convolves_groups(layouts: tuple[str, str, str], groups: int, batch_groups: int = 1) -> bool:
    """Return whether convolutions are right with each of their operands' axes split."""
    windows = Windows((2,), (1,), ((1, 0),), (1,), (1,))
    settings = Convolution(windows, groups, batch_groups, layouts)
    sizes = {"N": 2 * batch_groups, "C": 2 * groups, "0": 4}
    shape = tuple(sizes[axis] for axis in layouts[0])
    kernel = tuple({"O": 2 * groups * batch_groups, "I": 2, "0": 2}[axis] for axis in layouts[1])
    specs = [P(), P("x"), P(None, "x"), P(None, None, "x")]
    return all(has_right_convolution(settings, shape, kernel, a, b) for a in specs for b in specs)


def has_right_convolution(c: Convolution, shape: Any, kernel: Any, *specs: P) -> bool:
    arguments = integers(*shape), integers(*kernel)
    specs = (*specs, *[P()] * (2 - len(specs)))
    traced = lambda x, y: w.traced_convolution(x, y, c)
    return is_right(traced, w.convolved(*arguments, c), arguments, specs)


def pads_by_2_to_62() -> bool:
    x, edges = integers(4), [(-(2**62), 2**62, 0)]
    return is_right(lambda x: lax.pad(x, np.float32(9), edges), np.full(4, 9), [x], [P("x")])


def compiles_long_row() -> bool:
    here = NamedSharding(mesh(), P())
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((2,), (2, 2**31))]
    jax.jit(jnp.matmul, in_shardings=here, out_shardings=here).lower(*shapes).compile()
    return True


# The fault that each shows without guards, "" for those that are only tried with them, and a
# function that returns whether it is right.
PROGRAMS: dict[str, tuple[str, Callable[[], bool]]] = {
    "pad, cut within a step": (DILATED, lambda: pads((-1, 0, 1))),
    "pad, cut within its third step": ("", lambda: pads((-8, 1, 2), (1, -1, 1))),
    "convolution, cut within a step": (DILATED, lambda: convolves(-1, 0, 2)),
    "convolution of padding": ("", lambda: convolves(-4, 2, 1)),
    "sums of windows, cut within a step": ("", lambda: sums(-1, 1, 2)),
    "features in groups": (GROUPS, lambda: convolves_groups(("NC0", "OI0", "0NC"), 4)),
    "features in groups, last": (GROUPS, lambda: convolves_groups(("N0C", "0IO", "CN0"), 4)),
    "batch in groups": ("", lambda: convolves_groups(("NC0", "OI0", "0NC"), 1, 2)),
    "padding by 2**62": ("", pads_by_2_to_62),
    "a long row": ("", compiles_long_row),
}


def run(names: list[str], guards: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "HLOFRONT_XLA_GUARDS": guards}
    command = [sys.executable, "-m", "tests.xla_faults.test_split_programs", *names]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.long
def test_split_programs_are_right():
    done = run([], "1")
    assert done.stdout.splitlines() == [f"{name}: right" for name in PROGRAMS], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (fault, _) in PROGRAMS.items() if fault])
def test_the_faults_are_there_without_the_guards(name):
    fault = next(each for each in FAULTS if each.name == PROGRAMS[name][0])
    done = run([name], "0")
    is_right = done.returncode == 0 and done.stdout == f"{name}: right\n"
    assert is_right == (not fault.is_in(state.jaxlib_version)), done.stderr


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        try:
            said = "right" if PROGRAMS[name][1]() else "wrong"
        except jax.errors.JaxRuntimeError:
            said = "an error"
        print(f"{name}: {said}", flush=True)


if __name__ == "__main__":
    main()
