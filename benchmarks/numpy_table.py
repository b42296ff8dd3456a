"""A hundred functions of arrays under NumPy, jax and hlofront: the time of each at two sizes.

    python benchmarks/numpy_table.py [--jax PYTHON] [--rounds 3] [--sizes 1000 1000000] [ROW ...]
    python benchmarks/numpy_table.py --show

The interpreter that runs this has hlofront; PYTHON (by default $HLOFRONT_ORACLE_PYTHON) has jax
0.10.2. Each library runs in a process of its own. All three are asked for a row in turn, round
after round, so that they meet the same machine. jax and hlofront run a row under `jit`.

A figure is the least over all rounds: of the time of a call, and of the mean processor time of the
calls of a round, which other load of the machine changes less. The figures are added to
numpy_table.json beside this file, one run after the other, row by row; `--show` prints the last
figures of each row beside its first ones.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from library_processes import LibraryProcess, answer_requests

HERE = pathlib.Path(__file__)
HISTORY = HERE.with_suffix(".json")
LIBRARIES = ("numpy", "jax", "hlofront")
SECONDS_PER_ROUND = 0.1


class Inputs:
    """The arrays that rows read, of about `size` elements each, equal in all three processes.

    Attributes:
      x, y: normal numbers; `positive` is their exponential, `ordered` is x in order.
      whole, few: integers below the size, and below 100.
      mask: booleans, half of them true.
      rows: normal numbers as a square matrix.
      small: as many 8 x 8 matrices.
      kernel, vector: 33 numbers, and as many as a row has.
      columns: for each row, as many numbers of columns as it has.
      complex: complex numbers.
    """

    def __init__(self, size: int, array: Callable[[Any], Any]):
        random = np.random.default_rng(0)
        side = math.isqrt(size)
        x = random.normal(size=size).astype(np.float32)
        self.x = array(x)
        self.y = array(random.normal(size=size).astype(np.float32))
        self.positive = array(np.exp(x))
        self.unit = array(random.uniform(-1, 1, size).astype(np.float32))
        self.ordered = array(np.sort(x))
        self.whole = array(random.integers(0, size, size).astype(np.int32))
        self.few = array(random.integers(0, 100, size).astype(np.int32))
        self.mask = array(x > 0)
        self.rows = array(x[: side * side].reshape(side, side))
        self.small = array(x[: size // 64 * 64].reshape(-1, 8, 8))
        self.vector = array(x[:side])
        self.kernel = array(x[:33])
        self.columns = array(random.integers(0, side, (side, side)).astype(np.int32))
        self.complex = array(x + 1j * x[::-1])


Function = Callable[[Any, Inputs], Any]


def unary(names: str, operand: str) -> dict[str, Function]:
    """Return rows of functions of one array, by their names."""

    def row(name: str) -> Function:
        return lambda np, i: getattr(np, name)(getattr(i, operand))

    return {name: row(name) for name in names.split()}


ROWS: dict[str, Function] = {
    # Elementwise functions.
    **unary("exp log log1p expm1 sqrt cbrt sin cos tan tanh sinh cosh arctan arcsinh", "positive"),
    **unary("arcsin arccos arctanh", "unit"),
    **unary("abs sign floor rint isnan isfinite reciprocal square exp2 log2 log10 sinc", "x"),
    "add": lambda np, i: i.x + i.y,
    "divide": lambda np, i: i.x / i.y,
    "arctan2": lambda np, i: np.arctan2(i.x, i.y),
    "hypot": lambda np, i: np.hypot(i.x, i.y),
    "logaddexp": lambda np, i: np.logaddexp(i.x, i.y),
    "remainder": lambda np, i: np.remainder(i.x, i.positive),
    "floor_divide": lambda np, i: i.x // i.positive,
    "power 2.5": lambda np, i: i.positive**2.5,
    "power of arrays": lambda np, i: i.positive**i.y,
    "maximum": lambda np, i: np.maximum(i.x, i.y),
    "clip": lambda np, i: np.clip(i.x, -1, 1),
    "where": lambda np, i: np.where(i.mask, i.x, i.y),
    "where of scalar": lambda np, i: np.where(i.mask, i.x, 0),
    "astype int": lambda np, i: i.x.astype(np.int32),
    "abs complex": lambda np, i: np.abs(i.complex),
    "integer divide": lambda np, i: i.whole // (i.few + 1),
    "gcd": lambda np, i: np.gcd(i.whole, i.few),
    "reciprocal of sqrt": lambda np, i: 1 / np.sqrt(i.positive),
    # Reductions.
    **unary("sum prod mean std var max min any nansum count_nonzero ptp", "x"),
    "sum of rows": lambda np, i: i.rows.sum(1),
    "sum of columns": lambda np, i: i.rows.sum(0),
    "max of rows": lambda np, i: i.rows.max(1),
    "norm": lambda np, i: np.linalg.norm(i.x),
    **unary("argmax argmin nanargmax", "x"),
    "argmax of rows": lambda np, i: i.rows.argmax(1),
    "argmax of columns": lambda np, i: i.rows.argmax(0),
    # Cumulative functions.
    **unary("cumsum cumprod diff", "x"),
    "cumsum of rows": lambda np, i: np.cumsum(i.rows, 1),
    "cumsum of columns": lambda np, i: np.cumsum(i.rows, 0),
    # The family of sort.
    **unary("sort argsort median unique_inverse", "x"),
    "sort integers": lambda np, i: np.sort(i.whole),
    "sort rows": lambda np, i: np.sort(i.rows, 1),
    "sort columns": lambda np, i: np.sort(i.rows, 0),
    "argsort rows": lambda np, i: np.argsort(i.rows, 1),
    "lexsort": lambda np, i: np.lexsort((i.x, i.few)),
    "partition": lambda np, i: np.partition(i.x, i.x.size // 2),
    "argpartition": lambda np, i: np.argpartition(i.x, min(10, i.x.size - 1)),
    "quantile": lambda np, i: np.quantile(i.x, 0.3),
    "percentile of rows": lambda np, i: np.percentile(i.rows, 30, axis=1),
    "nanmedian": lambda np, i: np.nanmedian(i.x),
    "searchsorted": lambda np, i: np.searchsorted(i.ordered, i.y),
    "digitize": lambda np, i: np.digitize(i.x, i.ordered[::100]),
    "interp": lambda np, i: np.interp(i.y, i.ordered, i.x),
    "histogram": lambda np, i: np.histogram(i.x, 50)[0],
    "bincount": lambda np, i: np.bincount(i.few, minlength=100),
    "isin": lambda np, i: np.isin(i.whole, i.few[:100]),
    # Functions that move elements.
    "tile": lambda np, i: np.tile(i.x, 3),
    "repeat": lambda np, i: np.repeat(i.x, 3),
    "roll": lambda np, i: np.roll(i.x, 5),
    "flip": lambda np, i: i.x[::-1] * 1,
    "pad": lambda np, i: np.pad(i.x, 5),
    "stack": lambda np, i: np.stack([i.x, i.y]),
    "stack of last axis": lambda np, i: np.stack([i.x, i.y], -1),
    "concatenate": lambda np, i: np.concatenate([i.x, i.y]),
    "transpose": lambda np, i: i.rows.T + 0,
    "take": lambda np, i: i.x[i.whole],
    "take rows": lambda np, i: i.rows[i.columns[0]],
    "take_along_axis": lambda np, i: np.take_along_axis(i.rows, i.columns, 1),
    "every second": lambda np, i: i.x[::2] + 0,
    "one_hot": lambda np, i: (i.few[:, None] == np.arange(16)).astype(np.float32),
    "one_hot @ rows": lambda np, i: (
        (i.columns[0][:, None] == np.arange(i.rows.shape[0])).astype(np.float32) @ i.rows
    ),
    "tril": lambda np, i: np.tril(i.rows),
    "outer": lambda np, i: np.outer(i.vector, i.vector),
    # Linear algebra and convolutions.
    "matmul": lambda np, i: i.rows @ i.rows,
    "matrix-vector": lambda np, i: i.rows @ i.vector,
    "vector-vector": lambda np, i: i.x @ i.y,
    "batched 8 x 8": lambda np, i: i.small @ i.small,
    "einsum ij,ij->i": lambda np, i: np.einsum("ij,ij->i", i.rows, i.rows),
    "convolve": lambda np, i: np.convolve(i.x, i.kernel),
    "fft": lambda np, i: np.fft.fft(i.x),
}


def with_rows_added(np: Any, i: Inputs) -> Any:
    result = np.zeros_like(i.rows)
    np.add.at(result, i.columns[0], i.rows)
    return result


def with_rows_set(np: Any, i: Inputs) -> Any:
    result = i.rows.copy()
    result[i.columns[0]] = i.rows[::-1]
    return result


# Functions that NumPy has under another name, or does with an array that it changes. Its transposed
# arrays keep their order in memory, also through arithmetic.
NUMPY: dict[str, Function] = {
    "transpose": lambda np, i: np.ascontiguousarray(i.rows.T),
    "norm": lambda np, i: np.sqrt(i.x @ i.x),
    "unique_inverse": lambda np, i: np.unique(i.x, return_inverse=True),
    "add at": lambda np, i: np.bincount(i.few, i.x, 100),
    "add at, all apart": lambda np, i: np.bincount(i.whole, i.x, i.x.size),
    "add at, all equal": lambda np, i: np.bincount(i.few * 0, i.x, 100),
    "segment_sum of rows": with_rows_added,
    "set at": lambda np, i: np.put(i.y, i.whole, i.x),
    "set rows at": with_rows_set,
    "top_k": lambda np, i: np.sort(np.partition(i.x, i.x.size - 10)[-10:]),
    "permutation": lambda np, i: np.random.default_rng(0).permutation(i.x),
    "normal": lambda np, i: np.random.default_rng(0).normal(size=i.x.size),
    "softmax of rows": lambda np, i: softmax(i.rows),
}


def softmax(x: Any) -> Any:
    power = np.exp(x - x.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


def jax_rows(jax: Any) -> dict[str, Function]:
    """Return the rows that are said otherwise than in NumPy, for a library with JAX's names."""
    return {
        "unique_inverse": lambda np, i: np.unique(i.x, return_inverse=True, size=i.x.size),
        "add at": lambda np, i: np.zeros(100).at[i.few].add(i.x),
        "add at, all apart": lambda np, i: np.zeros(i.x.size).at[i.whole].add(i.x),
        "add at, all equal": lambda np, i: np.zeros(100).at[i.few * 0].add(i.x),
        "segment_sum of rows": lambda np, i: jax.ops.segment_sum(
            i.rows, i.columns[0], i.rows.shape[0]
        ),
        "set at": lambda np, i: i.y.at[i.whole].set(i.x),
        "set rows at": lambda np, i: i.rows.at[i.columns[0]].set(i.rows[::-1]),
        "bincount": lambda np, i: np.bincount(i.few, length=100),
        "top_k": lambda np, i: jax.lax.top_k(i.x, 10),
        "permutation": lambda np, i: jax.random.permutation(jax.random.key(0), i.x),
        "normal": lambda np, i: jax.random.normal(jax.random.key(0), i.x.shape),
        "softmax of rows": lambda np, i: jax.nn.softmax(i.rows, 1),
    }


def names() -> list[str]:
    return list(dict.fromkeys([*ROWS, *NUMPY]))


# ---- the process of one library ------------------------------------------------------------------


class Reading:
    """Inputs that list which of them were read."""

    def __init__(self, inputs: Inputs):
        self.inputs = inputs
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in self.names:
            self.names.append(name)
        return getattr(self.inputs, name)


class Timer:
    """A library in this process, which runs rows and measures them."""

    def __init__(self, library: str):
        self.ready: dict[tuple[str, int], Callable[[], object]] = {}
        self.inputs: dict[int, Inputs] = {}
        if library == "numpy":
            rows, self.array = {**ROWS, **NUMPY}, np.asarray
            self.prepared = lambda name, inputs: lambda: rows[name](np, inputs)
            return
        jax: Any = __import__(library)
        numpy: Any = __import__(f"{library}.numpy").numpy
        rows, self.array = {**ROWS, **jax_rows(jax)}, numpy.asarray

        def prepared(name: str, inputs: Inputs) -> Callable[[], object]:
            row = rows[name]

            read = Reading(inputs)
            jax.eval_shape(lambda: row(numpy, read))

            def function(*arrays: Any) -> Any:
                return row(numpy, types.SimpleNamespace(**dict(zip(read.names, arrays))))

            compiled = jax.jit(function)
            arrays = [getattr(inputs, name) for name in read.names]
            return lambda: jax.block_until_ready(compiled(*arrays))

        self.prepared = prepared

    def measure(self, name: str, size: int) -> tuple[float, float]:
        """Return the least time of a call and the mean processor time of a call, in seconds."""
        if size not in self.inputs:
            self.inputs[size] = Inputs(size, self.array)
        if (name, size) not in self.ready:
            self.ready[name, size] = self.prepared(name, self.inputs[size])
            self.ready[name, size]()
        call = self.ready[name, size]
        least, count = math.inf, 0
        processor, start = time.process_time(), time.perf_counter()
        now = start
        while count < 3 or now - start < SECONDS_PER_ROUND:
            before = now
            call()
            now = time.perf_counter()
            least, count = min(least, now - before), count + 1
        return least, (time.process_time() - processor) / count


# ---- the process that asks -----------------------------------------------------------------------

# library -> the least seconds of a call, and the least mean processor time.
Row = dict[str, list[float]]


def measured(
    rows: Iterable[str], sizes: list[int], rounds: int, pythons: dict[str, str]
) -> Iterator[tuple[str, dict[str, Row]]]:
    """Yield each row with its figures by size."""
    settings = {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "2"}
    workers = {
        library: LibraryProcess(HERE, library, python, **settings)
        for library, python in pythons.items()
    }
    for name in rows:
        by_size: dict[str, Row] = {}
        for size in sizes:
            row: Row = {library: [math.inf, math.inf] for library in workers}
            for _ in range(rounds):
                for library, worker in workers.items():
                    row[library] = list(map(min, row[library], worker.ask(name, size)))
            by_size[str(size)] = row
            print(line_of(name, size, row), flush=True)
        yield name, by_size
    for worker in workers.values():
        worker.close()


def line_of(name: str, size: int, row: Row, before: Row | None = None) -> str:
    times = "".join(f"{row[library][0] * 1e6:12.1f}" for library in LIBRARIES)
    mine = row["hlofront"]
    ratios = "".join(
        f"{mine[0] / row[library][0]:8.2f}{mine[1] / row[library][1]:8.2f}"
        for library in ("numpy", "jax")
    )
    first = "" if before is None else f"{mine[0] / before['hlofront'][0]:8.2f}"
    return f"{name:22}{size:9}{times}{ratios}{first}"


HEADER = (
    f"{'microseconds':22}{'elements':>9}{'numpy':>12}{'jax':>12}{'hlofront':>12}"
    f"{'to numpy':>9}{'(cpu)':>7}{'to jax':>8}{'(cpu)':>8}"
)


def history() -> list[dict[str, Any]]:
    return json.loads(HISTORY.read_text()) if HISTORY.exists() else []


def show() -> None:
    """Print the last figures of each row; the last column is its time to that of its first run."""
    first: dict[tuple[str, str], Row] = {}
    last: dict[tuple[str, str], Row] = {}
    for run in history():
        for name, by_size in run["rows"].items():
            for size, row in by_size.items():
                first.setdefault((name, size), row)
                last[name, size] = row
    sizes = sorted({size for _, size in last}, key=int)
    for size in sizes:
        print(HEADER + f"{'to first':>9}")
        rows = {name: row for (name, at), row in last.items() if at == size}
        for name, row in rows.items():
            print(line_of(name, int(size), row, first[name, size]))
        for library in ("numpy", "jax"):
            ratios = [row["hlofront"][0] / row[library][0] for row in rows.values()]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slow = sum(ratio > 2 for ratio in ratios)
            print(
                f"{len(rows)} functions at {size}: geometric mean {mean:.2f} of {library}'s "
                f"time, more than twice at {slow}"
            )
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="the rows to run; all by default")
    parser.add_argument("--jax", default=os.environ.get("HLOFRONT_ORACLE_PYTHON"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--note", default="", help="what is said of this run in the history")
    parser.add_argument("--forget", action="store_true", help="keep no figures")
    parser.add_argument("--show", action="store_true", help="print the kept figures")
    parser.add_argument("--inside", choices=LIBRARIES, help="answer what is asked on the input")
    options = parser.parse_args()
    if options.inside:
        answer_requests(Timer(options.inside).measure)
        return
    if options.show:
        show()
        return
    if not options.jax:
        sys.exit("give the interpreter that has jax: --jax PYTHON, or HLOFRONT_ORACLE_PYTHON")
    unknown = set(options.rows) - set(names())
    if unknown:
        sys.exit(f"no rows {', '.join(sorted(unknown))}: there are {', '.join(names())}")
    pythons = {"numpy": sys.executable, "jax": options.jax, "hlofront": sys.executable}
    print(HEADER)
    git = ["git", "-C", str(HERE.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    before, figures = history(), dict[str, dict[str, Row]]()
    rows = options.rows or names()
    for name, by_size in measured(rows, options.sizes, options.rounds, pythons):
        figures[name] = {
            size: {
                library: [float(f"{each:.4g}") for each in pair] for library, pair in row.items()
            }
            for size, row in by_size.items()
        }
        run = {"date": date, "commit": commit, "note": options.note, "rows": figures}
        if not options.forget:
            HISTORY.write_text("[\n" + ",\n".join(map(json.dumps, (*before, run))) + "\n]\n")


if __name__ == "__main__":
    main()
