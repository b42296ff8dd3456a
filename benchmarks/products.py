"""Products, convolutions and decompositions under NumPy, jax and hlofront: calls of XLA and times.

    python benchmarks/products.py [--jax PYTHON] [--rounds 2] [TEXT ...]

The interpreter that runs this has hlofront; PYTHON (by default $HLOFRONT_ORACLE_PYTHON) has jax.
Each library runs in a process of its own, and all are asked for a row in turn, round after round.
A row has the least microseconds of a call in each library, the ratios of hlofront's to the other
two by time and by processor time, milliseconds of processor time to compile it in hlofront and in
jax, and the operations of hlofront's optimized program that are not plain loops: dots,
convolutions, fusions that YNNPACK runs (ynn), loops, calls of libraries, and the number of fusions.
TEXT restricts the rows to those with it in their names. NumPy has no convolutions of several axes.
"""

import argparse
import collections
import math
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from library_processes import LibraryProcess, answer_requests

HERE = pathlib.Path(__file__)
SECONDS_PER_ROUND = 0.05
LIBRARIES = ("numpy", "jax", "hlofront")

Function = Callable[..., Any]


class Case(NamedTuple):
    """A row: the shapes and dtype of its arrays, and the functions of them.

    Attributes:
      of_jax: takes jax or hlofront and returns the function that is jitted.
      of_numpy: the function under NumPy, or None where it has none.
      is_definite: whether the first array holds matrices that are positive definite.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    of_jax: Callable[[Any], Function]
    of_numpy: Function | None = None
    is_definite: bool = False

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(0)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        results: list[np.ndarray] = []
        for shape in self.shapes:
            if dtype.kind in "iu":
                results.append(random.integers(0, 100, shape).astype(dtype))
                continue
            x = random.normal(size=shape)
            if dtype.kind == "c":
                x = x + 1j * random.normal(size=shape)
            if self.is_definite and not results:
                x = x @ np.swapaxes(x, -1, -2) + 2 * shape[-1] * np.eye(shape[-1])
            results.append(x.astype(dtype))
        return results


CASES: dict[str, Case] = {}


def product(subscripts: str, dtype: str, *shapes: tuple[int, ...], result: str | None = None):
    """Add a row of a product of two arrays, said by einsum's subscripts."""

    def of_jax(jax: Any) -> Function:
        return lambda x, y: jax.numpy.einsum(subscripts, x, y, preferred_element_type=result)

    def of_numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if result is not None:
            x, y = x.astype(result), y.astype(result)
        return np.einsum(subscripts, x, y, optimize=True)

    sizes = " ".join("x".join(map(str, shape)) for shape in shapes)
    of_dtype = dtype if result is None else f"{dtype} to {result}"
    CASES[f"{subscripts} {sizes} {of_dtype}"] = Case(shapes, dtype, of_jax, of_numpy)


for side in (8, 32, 128, 512):
    product("ij,jk->ik", "float32", (side, side), (side, side))
for subscripts in ("ji,jk->ik", "ij,kj->ik", "ji,kj->ik"):
    product(subscripts, "float32", (256, 256), (256, 256))
product("ij,jk->ik", "float32", (8, 1024), (1024, 1024))
product("ij,jk->ik", "float32", (1024, 1024), (1024, 8))
product("ij,jk->ik", "float32", (4096, 16), (16, 16))
for side in (64, 1000, 3000):
    product("ij,j->i", "float32", (side, side), (side,))
product("ij,i->j", "float32", (1000, 1000), (1000,))
product("i,i->", "float32", (1_000_000,), (1_000_000,))
product("ij,ij->i", "float32", (1000, 1000), (1000, 1000))
for side in (2, 3, 4, 8, 16, 32, 64):
    matrices = (65536 // side**2, side, side)
    product("bij,bjk->bik", "float32", matrices, matrices)
product("bij,bkj->bik", "float32", (4096, 4, 4), (4096, 4, 4))
product("bij,bj->bi", "float32", (4096, 4, 4), (4096, 4))
product("bij,bj->bi", "float32", (64, 64, 64), (64, 64))
product("bqhd,bkhd->bhqk", "float32", (4, 128, 8, 32), (4, 128, 8, 32))
for side in (16, 128, 512):
    product("ij,jk->ik", "int8", (side, side), (side, side), result="int32")
product("ij,kj->ik", "int8", (512, 512), (512, 512), result="int32")
product("ij,jk->ik", "int8", (1, 1024), (1024, 1024), result="int32")
product("ij,jk->ik", "uint8", (128, 128), (128, 128), result="int32")
for dtype in ("int8", "int16", "int32", "uint32", "bfloat16", "float16", "float64", "complex64"):
    for side in (32, 256):
        product("ij,jk->ik", dtype, (side, side), (side, side))
product("ij,jk->ik", "bfloat16", (512, 512), (512, 512), result="float32")
product("ij,j->i", "int32", (1000, 1000), (1000,))
product("ij,j->i", "bfloat16", (1000, 1000), (1000,))
product("ij,j->i", "float16", (1000, 1000), (1000,))
product("ij,j->i", "complex64", (500, 500), (500,))
for dtype in ("int32", "bfloat16", "complex64"):
    product("bij,bjk->bik", dtype, (1024, 8, 8), (1024, 8, 8))

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


def convolution(
    name: str,
    x: tuple[int, ...],
    kernel: tuple[int, ...],
    dtype: str = "float32",
    strides: int = 1,
    gradients: bool = True,
    **options: Any,
):
    """Add a row of a convolution, and rows of its gradients by the input and by the kernel."""
    axes = len(x) - 2
    options = {
        "window_strides": (strides,) * axes,
        "padding": "SAME",
        "dimension_numbers": LAYOUTS[axes],
        **options,
    }

    def of_jax(jax: Any) -> Function:
        return lambda x, kernel: jax.lax.conv_general_dilated(x, kernel, **options)

    def by(position: int) -> Callable[[Any], Function]:
        def of_jax_by(jax: Any) -> Function:
            function = of_jax(jax)

            def gradient(x: Any, kernel: Any) -> Any:
                varied = (x, kernel)[position]
                of_one = (lambda x: function(x, kernel), lambda kernel: function(x, kernel))
                y, pull = jax.vjp(of_one[position], varied)
                return pull(jax.numpy.ones_like(y) * 0.5 + y)[0]

            return gradient

        return of_jax_by

    CASES[name] = Case((x, kernel), dtype, of_jax)
    if gradients:
        # The gradients are those of y + y**2, so that the cotangent is an array that is computed.
        CASES[f"{name}, with by x"] = Case((x, kernel), dtype, by(0))
        CASES[f"{name}, with by kernel"] = Case((x, kernel), dtype, by(1))


image, features = (8, 28, 28, 64), (3, 3, 64, 64)
convolution("conv 3x3 of 8x28x28x64", image, features)
convolution("conv 3x3 strided", image, features, strides=2)
convolution("conv 3x3 dilated", image, features, rhs_dilation=(2, 2))
for side in (2, 3, 4):
    pads = ((side // 2, (side + 1) // 2),) * 2
    name = f"conv {side}x{side} transposed"
    convolution(name, (2, 28, 28, 64), (side, side, 64, 64), lhs_dilation=(2, 2), padding=pads)
convolution("conv 1x1", image, (1, 1, 64, 64))
convolution("conv 1x1 strided", image, (1, 1, 64, 64), strides=2)
convolution("conv 7x7 strided of 3", (4, 112, 112, 3), (7, 7, 3, 32), strides=2)
convolution("conv 16x16 patches", (4, 128, 128, 3), (16, 16, 3, 96), strides=16)
convolution("conv 5x5 to 1", image, (5, 5, 64, 1))
convolution("depthwise 3x3", image, (3, 3, 1, 64), feature_group_count=64)
convolution("4 groups 3x3", image, (3, 3, 16, 64), feature_group_count=4)
convolution("32 groups 3x3", image, (3, 3, 2, 64), feature_group_count=32)
convolution("conv1d 5 of 8x256x64", (8, 256, 64), (5, 64, 64))
convolution("conv1d dilated", (8, 256, 64), (2, 64, 64), rhs_dilation=(4,))
convolution("conv1d transposed", (8, 256, 64), (4, 64, 64), lhs_dilation=(2,), padding=((2, 2),))
convolution("conv1d depthwise", (8, 256, 64), (4, 1, 64), feature_group_count=64)
for dtype in ("bfloat16", "float16", "float64", "int8", "int32"):
    convolution(f"conv 3x3 {dtype}", (4, 14, 14, 64), features, dtype, gradients=False)
to_int32 = {"gradients": False, "preferred_element_type": "int32"}
convolution("conv 3x3 int8 to int32", (4, 14, 14, 64), features, "int8", **to_int32)


def of_linalg(name: str, *shapes: tuple[int, ...], dtype: str = "float32"):
    """Add a row of a function of numpy.linalg, of matrices of which the first is definite."""

    def of(numpy: Any) -> Function:
        function = getattr(numpy.linalg, name)

        def returned(*arrays: Any) -> Any:
            results = function(*arrays)
            return tuple(results) if isinstance(results, tuple) else results

        return returned

    sizes = " ".join("x".join(map(str, shape)) for shape in shapes)
    row = f"{name} {sizes} {dtype}"
    CASES[row] = Case(shapes, dtype, lambda jax: of(jax.numpy), of(np), is_definite=True)


for name in ("cholesky", "inv", "det", "qr", "eigh", "svd"):
    of_linalg(name, (128, 128))
    for side in (3, 8):
        of_linalg(name, (256, side, side))
of_linalg("solve", (128, 128), (128, 1))
of_linalg("solve", (256, 3, 3), (256, 3, 1))
of_linalg("solve", (256, 8, 8), (256, 8, 1))


# ---- the process of one library ------------------------------------------------------------------


def operations(text: str) -> str:
    """Return the operations of an optimized program, and how many there are of each."""
    found = collections.Counter[str]()
    for line in text.splitlines():
        if target := re.search(r'custom_call_target="([^"]*)"', line):
            found[target[1]] += 1
        elif "kind=kCustom" in line:
            found["ynn" if "ynn" in line else "custom fusion"] += 1
        elif operation := re.search(r" (dot|convolution|while|fusion|call)\(", line):
            found[operation[1]] += 1
    return ", ".join(f"{count} {name}" for name, count in found.items())


class Worker:
    """A library in this process, which compiles the rows that it is asked for and measures them."""

    def __init__(self, library: str):
        self.library = library
        self.calls: dict[str, Callable[[], object]] = {}
        self.jax: Any = None
        if library != "numpy":
            self.jax = __import__(library)
            self.jax.config.update("jax_enable_x64", True)

    def prepared(self, name: str) -> list[Any]:
        """Prepare a row; return the seconds to compile it, and XLA's operations."""
        case = CASES[name]
        arrays = case.arrays()
        if self.jax is None:
            function = case.of_numpy
            if function is not None:
                self.calls[name] = lambda: function(*arrays)
            return [0, ""]
        on_device = [self.jax.numpy.asarray(x) for x in arrays]
        lowered = self.jax.jit(case.of_jax(self.jax)).lower(*on_device)
        before = time.process_time()
        compiled = lowered.compile()
        seconds = time.process_time() - before
        self.calls[name] = lambda: self.jax.block_until_ready(compiled(*on_device))
        self.calls[name]()
        return [seconds, operations(compiled.as_text())]

    def measured(self, name: str) -> list[float]:
        """Return the least time of a call and the mean processor time of a call, in seconds."""
        call = self.calls.get(name)
        if call is None:
            return [math.nan, math.nan]
        least, count = math.inf, 0
        processor, start = time.process_time(), time.perf_counter()
        now = start
        while not count or now - start < SECONDS_PER_ROUND:
            before = now
            call()
            now = time.perf_counter()
            least, count = min(least, now - before), count + 1
        return [least, (time.process_time() - processor) / count]


# ---- the process that asks -----------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="a part of the names of rows")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--inside", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        worker = Worker(options.inside)
        answer_requests(lambda method, name: getattr(worker, method)(name))
        return
    if not options.jax:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    pythons = {"numpy": sys.executable, "jax": options.jax, "hlofront": sys.executable}
    settings = {"JAX_PLATFORMS": "cpu", "HLOFRONT_CACHE": "0", "OMP_NUM_THREADS": "2"}
    workers = {
        library: LibraryProcess(HERE, library, python, **settings)
        for library, python in pythons.items()
    }
    print(
        f"{'microseconds':48}{'numpy':>10}{'jax':>10}{'hlofront':>10}{'to numpy':>9}{'(cpu)':>7}"
        f"{'to jax':>7}{'(cpu)':>7}{'compile':>8}{'jax':>6}"
    )
    for name in CASES:
        if options.texts and not any(text in name for text in options.texts):
            continue
        ready = {library: worker.ask("prepared", name) for library, worker in workers.items()}
        least = dict.fromkeys(LIBRARIES, (math.inf, math.inf))
        for _ in range(options.rounds):
            for library, worker in workers.items():
                figures = worker.ask("measured", name)
                least[library] = tuple(map(min, figures, least[library]))
        mine = least["hlofront"]
        times = "".join(f"{least[library][0] * 1e6:10.1f}" for library in LIBRARIES)
        numpy, jax = ([a / b for a, b in zip(mine, least[x])] for x in ("numpy", "jax"))
        compiling = f"{ready['hlofront'][0] * 1e3:8.0f}{ready['jax'][0] * 1e3:6.0f}"
        print(
            f"{name:48}{times}{numpy[0]:9.2f}{numpy[1]:7.2f}{jax[0]:7.2f}{jax[1]:7.2f}{compiling}"
            f"  {ready['hlofront'][1]}",
            flush=True,
        )
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    main()
