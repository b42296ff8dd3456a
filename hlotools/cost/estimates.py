"""Estimates of the work of HLO operations from their shapes and attributes."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from hlotools.cost.fusion_needs import Needs
from hlotools.cost.kernel_work import work_of
from hlotools.cost.links import is_collective
from hlotools.cost.traffic import is_allocation, moved_bytes
from hlotools.ir.hlo import Computation, HloModule, Instruction, Shape, once_per_module
from hlotools.ir.quoted_text import unquoted

_ARITHMETIC = frozenset({
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "negate", "abs",
    "compare", "select", "and", "or", "xor", "not", "sign", "floor", "ceil", "clamp",
    "round-nearest-afz", "round-nearest-even", "shift-left", "shift-right-logical",
    "shift-right-arithmetic", "popcnt", "clz", "is-finite", "reduce-precision", "convert",
    "stochastic-convert", "real", "imag", "complex",
})  # fmt: skip
_TRANSCENDENTAL = frozenset({
    "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "sine",
    "cosine", "tan", "sqrt", "rsqrt", "cbrt", "power", "atan2", "erf", "acos", "acosh", "asin",
    "asinh", "atanh", "cosh", "sinh",
})  # fmt: skip
ELEMENTWISE = _ARITHMETIC | _TRANSCENDENTAL
# Opcodes that move the bytes of the computations that they call.
_CONTAINERS = frozenset({"while", "conditional", "call", "async-start"})
_LABELS = re.compile(r"(\w+)_(\w+)->(\w+)")
_FIELD = re.compile(r"(\w+)=((?:-?\d{1,9}(?:_-?\d{1,9})?x?)+)")


# The parts of programs that are not operations: `count_operations` leaves them out.
_UNCOUNTED = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def count_operations(opcodes: Iterable[str]) -> int:
    """Return the number of operations among opcodes, as all tools count them.

    Parameters, constants, tuples and elements of tuples are not counted.
    """
    return sum(opcode not in _UNCOUNTED for opcode in opcodes)


class Work(NamedTuple):
    """The work of an operation: floating-point operations, transcendental ones, bytes moved.

    `known` is False if a part of the work is unknown: a custom call, or a loop without a known trip
    count, which counts as one step.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    known: bool = True

    def __add__(self, other: "Work") -> "Work":  # type: ignore[override]
        return Work(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            self.known and other.known,
        )

    def most(self) -> tuple[int, int]:
        """Return a sort key that is greater for more work: (operations, bytes)."""
        return self.flops + self.transcendentals, self.bytes

    def times(self, count: int) -> "Work":
        return Work(
            self.flops * count, self.transcendentals * count, self.bytes * count, self.known
        )


@once_per_module
def estimates_of(module: HloModule) -> "Estimates":
    """Return the work of a module's operations."""
    return Estimates(module)


class Estimates:
    """The work of a module's operations, with the sum for each computation computed once."""

    def __init__(self, module: HloModule):
        self.module = module
        # By the ids of operations: their work, and their work without bytes.
        self._known: dict[int, Work] = {}
        self._arithmetic: dict[int, Work] = {}
        self._computations: dict[int, Work] = {}
        # The elements that fused computations need of their values, by the ids of the computations.
        self.needs: dict[int, Needs] = {}
        fused = {id(i.fused) for i in module.instructions() if i.fused is not None}
        for computation in module.callees_first():
            # The values inside of a fusion are not in memory.
            estimate = self.arithmetic if id(computation) in fused else self.of
            works = list(map(estimate, computation.instructions))
            self._computations[id(computation)] = Work(
                sum(work.flops for work in works),
                sum(work.transcendentals for work in works),
                sum(work.bytes for work in works),
                all(work.known for work in works),
            )

    def of(self, instruction: Instruction) -> Work:
        """Return the work of an operation, including that of the computations it calls."""
        known = self._known.get(id(instruction))
        if known is None:
            work = self.arithmetic(instruction)
            if instruction.opcode not in _CONTAINERS or not instruction.called:
                work = work._replace(bytes=moved_bytes(instruction, self.needs))
            known = self._known[id(instruction)] = work
        return known

    def arithmetic(self, instruction: Instruction) -> Work:
        """Return the work of an operation without the bytes that it moves."""
        known = self._arithmetic.get(id(instruction))
        if known is None:
            known = self._arithmetic[id(instruction)] = self._computed(instruction)
        return known

    def _computed(self, instruction: Instruction) -> Work:
        opcode = instruction.opcode
        size = instruction.shape.size
        if opcode in _ARITHMETIC:
            # Conversions, comparisons and bitwise operations count as additions do.
            return Work(size)
        if opcode in _TRANSCENDENTAL:
            return Work(0, size)
        if opcode == "dot":
            return Work(2 * size * _contracted(instruction))
        if opcode == "convolution":
            image, kernel = ([o.shape for o in instruction.operands] + [instruction.shape] * 2)[:2]
            return Work(2 * _products(instruction, image, kernel, instruction.shape))
        if opcode == "fft" and instruction.operands:
            # XLA's count: a complex product and sum per element and per factor of two.
            factors = _product(n.bit_length() - 1 for n in instruction.numbers("fft_length"))
            return Work(8 * factors * instruction.operands[0].shape.size)
        called = [self._computations[id(c)] for cs in instruction.called.values() for c in cs]
        if not called:
            if opcode == "custom-call":
                if (kernel := work_of(instruction)) is not None:
                    return Work(kernel.flops, kernel.transcendentals)
                flops = (
                    _gemm_flops(instruction)
                    or _convolution_flops(instruction)
                    or _kernel_flops(instruction)
                )
                known = flops is not None or is_allocation(instruction)
                return Work(flops or 0, known=known)
            return Work()
        if opcode == "fusion":
            inside = called[0]
            return Work(inside.flops, inside.transcendentals, known=inside.known)
        if opcode == "while":
            steps = trip_count(instruction)
            once = called[0]
            for work in called[1:]:
                once = once + work
            return once.times(steps or 1) if steps else once._replace(known=False)
        if opcode in ("conditional", "call", "async-start"):
            # Of a conditional's branches, the one with the most work is counted.
            return max(called, key=Work.most)
        if opcode == "sort" and instruction.operands:
            return Work(_comparisons(instruction))
        return called[-1].times(_applications(instruction))._replace(bytes=0)

    def computation(self, computation: Computation) -> Work:
        return self._computations[id(computation)]

    def total(self) -> Work:
        """Return the work of the whole program."""
        return self._computations[id(self.module.entry)]

    def totals(self) -> dict[str, Any]:
        """Return the totals of a program as a dictionary: counts of operations, and the work."""
        counts = Counter(i.opcode for i in self.module.instructions())
        work = self.total()
        return {
            "operations": count_operations(counts.elements()),
            "fusions": counts["fusion"],
            "copies": counts["copy"] + counts["copy-start"],
            "transposes": counts["transpose"],
            "collectives": sum(n for opcode, n in counts.items() if is_collective(opcode)),
            "custom_calls": counts["custom-call"],
            "loops": counts["while"],
            "flops": work.flops,
            "transcendentals": work.transcendentals,
            "bytes": work.bytes,
        }


def trip_count(instruction: Instruction) -> int | None:
    """Return the trip count of a loop; None if neither XLA nor the loop's code determines it."""
    config = instruction.backend_config
    known = config.get("known_trip_count") if isinstance(config, dict) else None
    count = known.get("n") if isinstance(known, dict) else None
    text = str(count)
    if text.isdecimal() and len(text) < 19:
        return int(text)
    return _counted(instruction)


def _counted(loop: Instruction) -> int | None:
    """Return the trip count of a loop that counts up by 1 to a constant, as in TPU programs."""
    condition, body = (loop.called.get(name, [None])[0] for name in ("condition", "body"))
    if condition is None or body is None or condition.root.opcode != "compare":
        return None
    number, end = (condition.root.operands + [loop, loop])[:2]
    last = _constant(end)
    if last is None or condition.root.attributes.get("direction") != "LT":
        return None
    position = number.attributes.get("index", "")
    if number.opcode != "get-tuple-element" or not position.isdecimal():
        return None
    carried = [tuple_.operands for tuple_ in (loop.operands[0], body.root)]
    if not all(int(position) < len(operands) for operands in carried):
        return None
    start, following = (operands[int(position)] for operands in carried)
    first = _constant(start)
    steps = [_constant(operand) for operand in following.operands if operand.literal]
    if first is None or following.opcode != "add" or steps != [1]:
        return None
    return max(last - first, 0)


def _constant(instruction: Instruction) -> int | None:
    """Return the value of an integer constant, or of a copy of one."""
    while instruction.opcode == "copy":
        instruction = instruction.operands[0]
    text = instruction.literal if instruction.opcode == "constant" else ""
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _product(sizes: Iterable[int]) -> int:
    return math.prod(max(size, 0) for size in sizes)


def _contracted(instruction: Instruction) -> int:
    """Return the number of products that are summed for one element of a dot's result."""
    if not instruction.operands:
        return 0
    sizes = instruction.operands[0].shape.dimensions
    return _product(sizes[n] for n in instruction.numbers("lhs_contracting_dims") if n < len(sizes))


# The products of longer windows with holes are not counted individually.
_LONGEST_WINDOW = 100_000


def _convolution_flops(instruction: Instruction) -> int | None:
    """Return the flops of a library's convolution, or None for other custom calls."""
    target = unquoted(instruction.attributes.get("custom_call_target", ""))
    results = list(instruction.shape.leaves())
    if not target.startswith("__cudnn$conv") or len(instruction.operands) < 2 or not results:
        return None
    first, second, result = *(o.shape for o in instruction.operands[:2]), results[0]
    # The labels are those of the forward convolution, also for the two gradients.
    if "BackwardInput" in target:
        first, result = result, first
    elif "BackwardFilter" in target:
        second, result = result, second
    return 2 * _products(instruction, first, second, result) or None


def _products(instruction: Instruction, image: Shape, kernel: Shape, result: Shape) -> int:
    """Return the number of products that a convolution sums, without padding and holes."""
    labels = _LABELS.search(instruction.attributes.get("dim_labels", ""))
    if labels is None:
        return 0
    sizes = [
        dict(zip(label, shape.dimensions, strict=False))
        for label, shape in zip(labels.groups(), (image, kernel, result), strict=True)
    ]
    window = _window(instruction)
    groups = max([*instruction.numbers("batch_group_count"), 1])
    products = sizes[1].get("i", 0) * sizes[1].get("o", 0) * sizes[0].get("b", 0) // groups
    for n in range(len(window.get("size", ()))):
        products *= _taps(window, n, sizes[0].get(str(n), 0), sizes[2].get(str(n), 0))
    return products


_Window = dict[str, list[str]]


def _window(instruction: Instruction) -> _Window:
    """Return the fields of an operation's window, each with a text per dimension."""
    text = instruction.attributes.get("window", "")
    return {key: value.split("x") for key, value in _FIELD.findall(text)}


def _taps(window: _Window, n: int, length: int, outputs: int) -> int:
    """Return the number of elements that all windows see along a dimension, without padding.

    Args:
      window: the fields of the window.
      n: the dimension among those of the window.
      length: the size of the operand along it.
      outputs: the size of the result along it.
    """

    def field(name: str, default: str) -> str:
        values = window.get(name, [])
        return values[n] if n < len(values) else default

    size, low = int(field("size", "1")), int(field("pad", "0_0").split("_")[0])
    stride, holes, dilation = (
        int(field(name, "1")) for name in ("stride", "lhs_dilate", "rhs_dilate")
    )
    return _seen(length, outputs, size, low, stride, holes, dilation)


@functools.lru_cache(maxsize=4096)
def _seen(
    length: int, outputs: int, size: int, low: int, stride: int, holes: int, dilation: int
) -> int:
    """Return the sum over a dimension's windows of the elements that each of them sees."""
    if holes == dilation == 1:
        starts = (out * stride - low for out in range(outputs))
        return sum(max(min(at + size, length) - max(at, 0), 0) for at in starts)
    if outputs * size > _LONGEST_WINDOW:
        return outputs * size
    taps = (out * stride + tap * dilation - low for out in range(outputs) for tap in range(size))
    return sum(1 for at in taps if 0 <= at <= (length - 1) * holes and at % max(holes, 1) == 0)


def _comparisons(instruction: Instruction) -> int:
    """Return an estimate of the number of comparisons of a sort."""
    shape = instruction.operands[0].shape
    along = [shape.dimensions[n] for n in instruction.dimensions if n < len(shape.dimensions)]
    return shape.size * max(1, math.ceil(math.log2(max([*along, 2]))))


def _applications(instruction: Instruction) -> int:
    """Return an estimate of the number of calls that a reduction, scatter or map makes."""
    operands = instruction.operands
    if not operands:
        return 0
    first = operands[0].shape.size
    leaves = max(1, sum(1 for _ in instruction.shape.leaves()))
    size = instruction.shape.size // leaves
    match instruction.opcode:
        case "reduce":
            return max(first - size, 0)
        case "reduce-window":
            window = _window(instruction)
            results = next(instruction.shape.leaves()).dimensions
            lengths = zip(operands[0].shape.dimensions, results, strict=False)
            seen = _product(_taps(window, n, *both) for n, both in enumerate(lengths))
            # However long the windows are, one application per element is enough.
            return max(min(seen - size, max(first, size)), 0)
        case "select-and-scatter":
            taps = _product(int(n) for n in _window(instruction).get("size", ()) if n.isdecimal())
            return size * max(taps - 1, 1)
        case "scatter":
            return operands[-1].shape.size
        case "custom-call":
            # It calls the computation an unknown number of times: at least once.
            return 1
    return size


def _gemm_flops(instruction: Instruction) -> int | None:
    """Return the flops of a library's matrix product, or None for other custom calls."""
    config = instruction.backend_config
    gemm = config.get("gemm_backend_config") if isinstance(config, dict) else None
    if not isinstance(gemm, dict) or not instruction.operands:
        return None
    numbers = gemm.get("dot_dimension_numbers")
    listed = numbers.get("lhs_contracting_dimensions") if isinstance(numbers, dict) else None
    sizes = instruction.operands[0].shape.dimensions
    if not isinstance(listed, list):
        return None
    contracting = [int(n) for n in map(str, listed) if n.isdecimal() and len(n) < 4]
    result = next(iter(instruction.shape.leaves()), None)
    if result is None:
        return None
    return 2 * result.size * _product(sizes[n] for n in contracting if n < len(sizes))


def _kernel_flops(instruction: Instruction) -> int | None:
    """Return the flops by a TPU kernel's own estimate, or None for other custom calls."""
    config = instruction.backend_config
    kernel = config.get("custom_call_config") if isinstance(config, dict) else None
    estimate = kernel.get("cost_estimate") if isinstance(kernel, dict) else None
    flops = str(estimate.get("flops")) if isinstance(estimate, dict) else ""
    return int(flops) if flops.isdecimal() and len(flops) < 19 else None
