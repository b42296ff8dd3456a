"""The work of a Mosaic kernel for TPUs, from its code: operations, and bytes by its block specs.

A kernel runs for each step of its grid. If no memory is read for them, the choice of branches and
the trips of loops are integers that follow from the indices of the step: they are computed for all
steps. So of a kernel that skips blocks, only those that it computes are counted.
"""

import functools
import itertools
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from hlotools.ir.custom_kernels import CustomKernel
from hlotools.ir.hlo import Instruction
from hlotools.ir.kernel_parameters import mosaic_function
from hlotools.ir.mlir_lines import stablehlo_lines

_OPERATION = re.compile(r"(?:(%[\w.\-]+)(?::\d+)? = )?([a-z_]+\.\w+)(.*)")
_VALUE = re.compile(r"%[\w$.\-]+")
_BOUND = re.compile(r"(%[\w.\-]+) =")
_VECTOR = re.compile(r"vector<((?:\d{1,9}x){1,16})(\w+)>")
_CONTRACTED = re.compile(r"dot_dimension_numbers<\[([\d, ]*)\]")
_DMA = re.compile(r"source\(%\S+ : memref<((?:\d{1,9}x){1,16})(\w+),")
_IN_MEMORY = re.compile(r"memory_space<(?:any|hbm)>")
_ARITHMETIC_OF_MATH = frozenset({
    "absf", "absi", "floor", "ceil", "round", "roundeven", "trunc", "fma", "copysign",
})  # fmt: skip
# The number of values of all grid steps that are computed for one kernel.
_MOST_VALUES = 4_000_000
_LARGEST_GRID = 1 << 40
_MOST_AXES = 16
# The factor by which the author's estimate may differ from the code.
_CONTRADICTION = 2.0
_FIGURES = ("flops", "transcendentals", "bytes_accessed")
# The size of an axis of the grid that is known only when the kernel runs.
_AT_RUN_TIME = re.compile(r"(?<=[ ,])-9223372036854775808(?=[,>])")


class KernelWork(NamedTuple):
    """The work of one call of a kernel.

    Attributes:
      flops: its operations; a branch counts as always run if its condition is unknown.
      transcendentals: its transcendental operations.
      products: the operations of the products of matrices that certainly run, by the dtype of their
          operands in MLIR and the passes of their precision.
      windows: for each operand and result the bytes of its blocks that are copied, None if it has
          no blocks.
      copied: the bytes that its own copies (DMA) move to and from HBM.
    """

    flops: int
    transcendentals: int
    products: Mapping[tuple[str, int], int]
    windows: tuple[int | None, ...]
    copied: int


class Contradiction(NamedTuple):
    """A figure of the author's CostEstimate that differs from the kernel's code by more than 2."""

    instruction: str
    figure: str
    estimated: int
    counted: int

    def __str__(self) -> str:
        return (
            f"kernel {self.instruction}: its CostEstimate says {self.estimated:,} {self.figure}, "
            f"and its code {self.counted:,}"
        )


def work_of(call: Instruction) -> KernelWork | None:
    """Return the work of the kernel of a custom call, None if its code does not determine it."""
    kernel = call.kernel
    if kernel is None or kernel.kind != "Mosaic TPU" or not kernel.mlir:
        return None
    return work_of_code(kernel.mlir)


def contradictions(call: Instruction, moved: int) -> list[Contradiction]:
    """Return the figures of a kernel's CostEstimate that its code contradicts.

    Args:
      call: the custom call.
      moved: the bytes that it moves.
    """
    kernel, work = call.kernel, work_of(call)
    if kernel is None or work is None:
        return []
    found: list[Contradiction] = []
    for figure, counted in zip(_FIGURES, (work.flops, work.transcendentals, moved), strict=True):
        estimated = _estimated(kernel, figure)
        if estimated is None:
            continue
        less, more = sorted((estimated, counted))
        if more > _CONTRADICTION * less:
            words = figure.replace("_", " ")
            found.append(Contradiction(call.name, words, estimated, counted))
    return found


def _estimated(kernel: CustomKernel, figure: str) -> int | None:
    """Return a figure of the author's CostEstimate, None without one."""
    try:
        estimate = json.loads(kernel.options.get("cost_estimate", "{}"))
    except (ValueError, RecursionError):
        return None
    estimated = estimate.get(figure) if isinstance(estimate, dict) else None
    return int(estimated) if str(estimated).isdecimal() else None


def estimated_steps(call: Instruction) -> int | None:
    """Return the steps of a kernel whose grid has a size that is known only when it runs.

    These are the steps in which its code computes the flops of the author's CostEstimate. The
    result is None for other kernels, and if there is no estimate.
    """
    kernel = call.kernel
    if kernel is None or kernel.kind != "Mosaic TPU" or not _AT_RUN_TIME.search(kernel.mlir):
        return None
    mlir = _AT_RUN_TIME.sub("1", kernel.mlir)
    flops, work = _estimated(kernel, "flops"), work_of_code(mlir)
    if not flops or work is None or not work.flops:
        return None
    lines = [line.written for line in stablehlo_lines(mlir, renamed=False)]
    steps = math.prod(int(size[:20]) for size in mosaic_function(lines).grid)
    return max(round(steps * flops / work.flops), 1)


# ---- integers that follow from the indices of the grid -------------------------------------------


def _product(left: int, right: int) -> int:
    """Return a product wrapped to 64 bits."""
    return (left * right + (1 << 63)) % (1 << 64) - (1 << 63)


def _quotient(left: int, right: int) -> int:
    """Return a quotient rounded toward zero; 0 for a division by zero."""
    size = abs(left) // abs(right) if right else 0
    return -size if (left < 0) != (right < 0) else size


# By the name of an operation: its function, and its number of operands.
_INTEGERS: dict[str, tuple[Callable[..., int], int]] = {
    "addi": (operator.add, 2),
    "subi": (operator.sub, 2),
    "muli": (_product, 2),
    "divsi": (_quotient, 2),
    "remsi": (lambda left, right: left - _quotient(left, right) * right, 2),
    "andi": (operator.and_, 2),
    "ori": (operator.or_, 2),
    "xori": (operator.xor, 2),
    "maxsi": (max, 2),
    "minsi": (min, 2),
    "select": (lambda condition, left, right: left if condition else right, 3),
    "extui": (int, 1),
    "extsi": (int, 1),
    "trunci": (int, 1),
    "index_cast": (int, 1),
}
_COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}


def _trips(start: int, stop: int, step: int) -> int:
    return max(-(-(stop - start) // step), 0) if step > 0 else 0


class _Integers:
    """The integers of a kernel, by number: how each is computed from others and the grid."""

    def __init__(self, grid: Sequence[int]):
        self.grid = grid
        self._left = _MOST_VALUES
        self._made: list[tuple[Callable[..., int] | int, tuple[int, ...]]] = []
        self._axes: list[frozenset[int]] = []

    def constant(self, value: int) -> int:
        return self._add(value, (), frozenset())

    def index(self, axis: int) -> int:
        return self._add(axis, (), frozenset([axis]))

    def of(self, function: Callable[..., int], *operands: int | None) -> int | None:
        """Return the number of a value that is computed from others; None if one is unknown."""
        known = tuple(each for each in operands if each is not None)
        if len(known) < len(operands):
            return None
        return self._add(function, known, frozenset().union(*(self._axes[n] for n in known)))

    def _add(
        self, made: Callable[..., int] | int, operands: tuple[int, ...], axes: frozenset[int]
    ) -> int:
        self._made.append((made, operands))
        self._axes.append(axes)
        return len(self._made) - 1

    def over(self, values: Iterable[int], axes: Sequence[int]) -> list[list[int]] | None:
        """Return values at all indices along axes, in row-major order; None if that is too much.

        Args:
          values: the numbers of the values.
          axes: axes that include those on which the values depend.
        """
        values = list(values)
        needed: set[int] = set()
        stack = list(values)
        while stack:
            n = stack.pop()
            if n not in needed:
                needed.add(n)
                stack += self._made[n][1]
        count = math.prod(self.grid[axis] for axis in axes)
        self._left -= count * (len(needed) + len(axes))
        if self._left < 0:
            return None
        points = list(itertools.product(*(range(self.grid[axis]) for axis in axes)))
        found: dict[int, list[int]] = {}
        for n in sorted(needed):
            made, operands = self._made[n]
            if callable(made):
                found[n] = list(map(made, *(found[each] for each in operands)))
            elif self._axes[n]:
                place = list(axes).index(made)
                found[n] = [point[place] for point in points]
            else:
                found[n] = [made] * count
        return [found[n] for n in values]

    def mean(self, value: int) -> float | None:
        """Return the mean of a value over the grid, None if it is too much to compute."""
        axes = sorted(self._axes[value])
        found = self.over([value], axes)
        return sum(found[0]) / max(len(found[0]), 1) if found else None

    def changes(self, values: Sequence[int]) -> int | None:
        """Return how many times values change over the grid in row-major order, plus one.

        The result is None if that is too much to compute.
        """
        last = max((axis for value in values for axis in self._axes[value]), default=-1)
        found = self.over(values, range(last + 1))
        if found is None:
            return None
        points = list(zip(*found, strict=True)) or [()]
        return 1 + sum(a != b for a, b in itertools.pairwise(points))


class _Scope:
    """The integers of a function's values, by name; None for other values."""

    def __init__(self, integers: _Integers, head: str):
        self.integers = integers
        arguments = _VALUE.findall(head.partition(") ")[0])
        self._numbers: dict[str, int | None] = {
            name: integers.index(axis) for axis, name in enumerate(arguments[: len(integers.grid)])
        }

    def of(self, text: str) -> list[int | None]:
        """Return the numbers of the values that a text names."""
        return [self._numbers.get(name) for name in _VALUE.findall(text)]

    def define(self, name: str, operation: str, rest: str) -> None:
        """Record the value of an operation on integers; other operations have unknown values."""
        self._numbers[name] = None
        dialect, _, word = operation.partition(".")
        text, _, type_ = rest.partition(" : ")
        if dialect != "arith" or "<" in type_:
            return
        if word == "constant":
            value = {"true": "1", "false": "0"}.get(text.strip(), text.strip())
            if re.fullmatch(r"-?\d{1,18}", value):
                self._numbers[name] = self.integers.constant(int(value))
            return
        function, count = _INTEGERS.get(word, (None, 0))
        if word == "cmpi":
            function, count = _COMPARISONS.get(text.split(",")[0].strip()), 2
        elif word == "extsi" and type_.startswith("i1 "):
            function = operator.neg
        operands = self.of(text)
        if function is not None and len(operands) == count:
            self._numbers[name] = self.integers.of(function, *operands)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._numbers[name] = None


# ---- the code ------------------------------------------------------------------------------------


class _Region(NamedTuple):
    """A region of the code: the number of its runs in a grid step, and whether it is certain."""

    runs: int
    is_sure: bool
    otherwise: "_Region | None" = None
    """The region of the branch that runs if this one does not."""


@functools.lru_cache(maxsize=64)
def work_of_code(mlir: str) -> KernelWork | None:
    """Return the work of a kernel's MLIR, None if the grid or a loop's trips are not known.

    It is also None for a grid with too many steps to compute the work of each.
    """
    lines = [line.written for line in stablehlo_lines(mlir, renamed=False)]
    function = mosaic_function(lines)
    grid = [int(size[:20]) for size in function.grid]
    if len(grid) > _MOST_AXES or math.prod(grid) > _LARGEST_GRID:
        return None
    integers = _Integers(grid)
    counted = _counted(_body(lines, function.head), integers)
    if counted is None:
        return None
    steps = math.prod(grid)
    totals: Counter[tuple[str, ...]] = Counter()
    for (region, *what), count in counted.items():
        mean = integers.mean(region.runs)
        if mean is None:
            return None
        totals[tuple(map(str, what))] += round(count * steps * mean)
    products = {
        (key[1], int(key[2])): count for key, count in totals.items() if key[0] == "product"
    }
    given = dict(enumerate(function.windows, function.prefetched))
    windows: list[int | None] = []
    for n in range(len(function.references) - function.scratch):
        windows.append(_window_bytes(given.get(n, {}), function.references[n], lines, integers))
    return KernelWork(
        totals["flops",], totals["transcendentals",], products, tuple(windows), totals["copied",]
    )


def _body(lines: Sequence[str], head: str) -> list[str]:
    """Return the lines of a function, its head first."""
    start = lines.index(head) if head in lines else len(lines)
    body = itertools.takewhile(lambda line: not line.startswith("func.func "), lines[start + 1 :])
    return [head, *body]


def _counted(body: Sequence[str], integers: _Integers) -> Counter[tuple[_Region, ...]] | None:
    """Return the operations of a function by region and kind, in one run of each region."""
    scope = _Scope(integers, body[0])
    regions = [_Region(integers.constant(1), True)]
    counted: Counter[tuple[_Region, ...]] = Counter()
    for line in body[1:]:
        if line.startswith("}"):
            closed = regions.pop()
            if not regions:
                break
            if line.endswith("{"):
                regions.append(closed.otherwise or closed)
            continue
        found = _OPERATION.match(line)
        if found is None:
            continue
        name, operation, rest = found.groups()
        region = regions[-1]
        if line.endswith("{"):
            inner = _inner(operation, rest, region, scope)
            if inner is None:
                return None
            regions.append(inner)
            scope.forget(_BOUND.findall(rest))
        for kind, count in _kinds(operation, rest, region):
            counted[(region, *kind)] += count
        if name:
            scope.define(name, operation, rest)
    return counted


def _inner(operation: str, rest: str, region: _Region, scope: _Scope) -> _Region | None:
    """Return the region inside an operation, None if the number of its runs is unknown."""
    integers = scope.integers
    values = [*scope.of(rest), None, None, None, None]
    if operation == "scf.if":
        runs = integers.of(
            lambda outer, condition: outer * (condition != 0), region.runs, values[0]
        )
        others = integers.of(
            lambda outer, condition: outer * (condition == 0), region.runs, values[0]
        )
        if runs is None or others is None:
            unsure = _Region(region.runs, False)
            return unsure._replace(otherwise=unsure)
        return _Region(runs, region.is_sure, _Region(others, region.is_sure))
    if operation == "scf.for":
        runs = integers.of(_product, region.runs, integers.of(_trips, *values[1:4]))
        return None if runs is None else _Region(runs, region.is_sure)
    return None if operation == "scf.while" else region


def _kinds(operation: str, rest: str, region: _Region) -> Iterable[tuple[tuple[object, ...], int]]:
    """Yield the kinds of work of an operation, and their amounts."""
    dialect, _, word = operation.partition(".")
    vectors = [(math.prod(_sizes(sizes)), sizes, dtype) for sizes, dtype in _VECTOR.findall(rest)]
    if word in ("matmul", "contract") and len(vectors) > 2:
        numbers = _CONTRACTED.search(rest)
        sizes = _sizes(vectors[0][1])
        along = (
            [int(n) for n in re.findall(r"\d{1,2}", numbers[1])] if numbers else [len(sizes) - 1]
        )
        count = 2 * vectors[-1][0] * math.prod(sizes[n] for n in along if n < len(sizes))
        yield ("flops",), count
        if region.is_sure:
            passes = 6 if "contract_precision<fp32>" in rest and vectors[0][2] == "f32" else 1
            yield ("product", vectors[0][2], passes), count
    elif operation == "tpu.enqueue_dma":
        if (moved := _DMA.search(rest)) and _IN_MEMORY.search(rest):
            yield ("copied",), _bytes(_sizes(moved[1]), moved[2])
    elif vectors and dialect == "math" and word not in _ARITHMETIC_OF_MATH:
        yield ("transcendentals",), vectors[-1][0]
    elif vectors and (dialect == "math" or (dialect == "arith" and word != "constant")):
        yield ("flops",), vectors[-1][0]
    elif word == "multi_reduction" and vectors:
        yield ("flops",), max(vectors[0][0] - (vectors[-1][0] if len(vectors) > 1 else 1), 0)


def _window_bytes(
    given: Mapping[str, str], reference: str, lines: Sequence[str], integers: _Integers
) -> int | None:
    """Return the bytes that are copied for the blocks of an operand or result over the grid.

    A block is copied when its index differs from that of the step before.
    """
    symbol = given.get("transform_indices")
    sizes = [int(size) for size in re.findall(r"\d{1,9}", given.get("window_bounds", ""))]
    dtype = re.match(r"memref<(?:\d+x)*(\w+)", reference)
    if symbol is None or not sizes or dtype is None:
        return None
    head = next((line for line in lines if line.startswith(f"func.func {symbol}(")), "")
    body = _body(lines, head)
    scope = _Scope(integers, head)
    for line in body[1:]:
        if line.startswith("return"):
            indices = [n for n in scope.of(line) if n is not None]
            if len(indices) < len(scope.of(line)):
                return None
            changes = integers.changes(indices)
            return None if changes is None else _bytes(sizes, dtype[1]) * changes
        found = _OPERATION.match(line)
        if found is None or line.endswith("{"):
            return None
        if found[1]:
            scope.define(*found.groups())
    return None


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split("x") if size]


def _bytes(sizes: Sequence[int], dtype: str) -> int:
    """Return the bytes of an array of an MLIR type, such as bf16 or f8E4M3FN."""
    bits = re.search(r"\d{1,3}", dtype)
    return -(-math.prod(sizes) * (int(bits[0]) if bits else 32) // 8)
