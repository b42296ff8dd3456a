"""Random programs of products, convolutions and reductions, whose exact results NumPy computes.

A program is a list of operations on arrays of small integers, so that no result is rounded in the
dtype that it is run in. It is drawn by a number; `exact` runs it, or its gradient, by NumPy in
int64, and `traced` by hlofront.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from tests.xla_faults import windows as w
from tests.xla_faults.windows import Convolution, Windows

# The largest integers up to which each dtype has all.
EXACT = {
    "float64": 2**53,
    "float32": 2**24,
    "float16": 2**11,
    "bfloat16": 2**8,
    "int64": 2**63,
    "int32": 2**31,
    "int8": 2**7,
}
DTYPES = ("float32",) * 8 + ("float64",) * 8 + ("bfloat16",) * 3 + ("float16", "int32", "int64")
DTYPES += ("int8",)
SMALL = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9)
LARGE = tuple(2**k + d for k in range(4, 16) for d in (-1, 0, 1)) + (257, 1000, 20_001, 40_001)
LARGE += (65_535, 65_536, 65_537)
MAX_ELEMENTS = 2**17


class Node(NamedTuple):
    """An operation on earlier nodes, by their places; an input has none."""

    name: str
    operands: tuple[int, ...]
    settings: Any
    shape: tuple[int, ...]
    bound: int
    """No element is greater, nor a sum of absolute values that it is made of."""


class Program(NamedTuple):
    """A program: its operations, its dtype, and whether it is mapped or differentiated.

    The kind is "call", "grad" for the gradient of the sum of its squares or of itself, "scan" or
    "vmap" for the program over rows of its inputs.
    """

    number: int
    dtype: str
    kind: str
    nodes: tuple[Node, ...]

    @property
    def inputs(self) -> list[Node]:
        return [node for node in self.nodes if node.name == "input"]

    def __str__(self) -> str:
        lines = [
            f"  {place}: {node.shape} = {node.name} {node.operands} {node.settings}"
            for place, node in enumerate(self.nodes)
        ]
        return "\n".join([f"program {self.number}, {self.kind} of {self.dtype}:", *lines])


# ---- operations ----------------------------------------------------------------------------------

ROWS = 3  # of a mapped program


def _sum_to(x: "np.ndarray[Any, Any]", shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    """Return the sums of a cotangent along the axes that an operand of this shape lacks."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(i for i, size in enumerate(shape) if size == 1), keepdims=True)


def _einsum_back(ct: Any, xs: Sequence[Any], spec: str) -> list[Any]:
    operands, result = spec.split("->")
    a, b = operands.split(",")
    return [
        np.einsum(f"{result},{b}->{a}", ct, xs[1]),
        np.einsum(f"{result},{a}->{b}", ct, xs[0]),
    ]


def _traced_pad(x: Any, edges: w.Edges, value: int) -> Any:
    return lax.pad(x, np.array(value).astype(x.dtype), edges)


def _moved_back(ct: Any, order: Any, axis: int) -> Any:
    result = np.zeros_like(ct)
    np.put_along_axis(result, order, ct, axis)
    return result


def _added_at(ct: Any, shape: tuple[int, ...], indices: Sequence[int], axis: int) -> Any:
    result = np.zeros(shape, np.int64)
    np.add.at(result, (slice(None),) * axis + (np.array(indices),), ct)
    return result


def _sliced_indices(x: Any, size: int, axis: int) -> Any:
    """Return the indices along an axis of a slice that starts at the array's first element."""
    return min(max(int(x.ravel()[0]), 0), x.shape[axis] - size) + np.arange(size)


def _sliced(x: Any, size: int, axis: int) -> Any:
    return x.take(_sliced_indices(x, size, axis), axis)


def _traced_slice(x: Any, size: int, axis: int) -> Any:
    # The end of a long axis is beyond the numbers of int8.
    start = jnp.clip(x.ravel()[0].astype(np.int64), 0, x.shape[axis] - size)
    return lax.dynamic_slice_in_dim(x, start, size, axis)


# By name: what it computes with NumPy's functions, and its cotangents; None where there are none.
Forward = Callable[[Any, Sequence[Any], Any], Any]
Backward = Callable[[Any, Sequence[Any], Any], Sequence[Any]]
OPERATIONS: dict[str, tuple[Forward, Backward | None]] = {
    "mul": (
        lambda xp, xs, _: xs[0] * xs[1],
        lambda ct, xs, _: [_sum_to(ct * xs[1], xs[0].shape), _sum_to(ct * xs[0], xs[1].shape)],
    ),
    "add": (
        lambda xp, xs, _: xs[0] + xs[1],
        lambda ct, xs, _: [_sum_to(ct, x.shape) for x in xs],
    ),
    "sub": (
        lambda xp, xs, _: xs[0] - xs[1],
        lambda ct, xs, _: [_sum_to(ct, xs[0].shape), -_sum_to(ct, xs[1].shape)],
    ),
    "abs": (lambda xp, xs, _: xp.abs(xs[0]), lambda ct, xs, _: [ct * np.where(xs[0] >= 0, 1, -1)]),
    "square": (lambda xp, xs, _: xs[0] * xs[0], lambda ct, xs, _: [2 * ct * xs[0]]),
    "neg": (lambda xp, xs, _: -xs[0], lambda ct, xs, _: [-ct]),
    "maximum": (lambda xp, xs, s: xp.maximum(xs[0], s), None),
    "where": (
        lambda xp, xs, _: xp.where(xs[0] > 0, xs[0], xp.zeros_like(xs[0])),
        lambda ct, xs, _: [ct * (xs[0] > 0)],
    ),
    "sum": (
        lambda xp, xs, axes: xs[0].sum(axes),
        lambda ct, xs, axes: [np.broadcast_to(np.expand_dims(ct, axes), xs[0].shape)],
    ),
    "keep_sum": (
        lambda xp, xs, axes: xs[0].sum(axes, keepdims=True),
        lambda ct, xs, axes: [np.broadcast_to(ct, xs[0].shape)],
    ),
    "max": (lambda xp, xs, axes: xs[0].max(axes), None),
    "min": (lambda xp, xs, axes: xs[0].min(axes), None),
    "argmax": (lambda xp, xs, axis: xs[0].argmax(axis), None),
    "cumsum": (
        lambda xp, xs, axis: xs[0].cumsum(axis),
        lambda ct, xs, axis: [np.flip(np.flip(ct, axis).cumsum(axis), axis)],
    ),
    "transpose": (
        lambda xp, xs, axes: xs[0].transpose(axes),
        lambda ct, xs, axes: [ct.transpose(np.argsort(axes))],
    ),
    "reshape": (
        lambda xp, xs, shape: xs[0].reshape(shape),
        lambda ct, xs, shape: [ct.reshape(xs[0].shape)],
    ),
    "reverse": (
        lambda xp, xs, axis: xp.flip(xs[0], axis),
        lambda ct, xs, axis: [np.flip(ct, axis)],
    ),
    "einsum": (lambda xp, xs, spec: xp.einsum(spec, *xs), _einsum_back),
    "convolution": (
        lambda xp, xs, c: (w.convolved if xp is np else w.traced_convolution)(*xs, c),
        lambda ct, xs, c: w.convolved_back(ct, *xs, c),
    ),
    "pad": (
        lambda xp, xs, s: (w.padded if xp is np else _traced_pad)(xs[0], *s),
        lambda ct, xs, s: [w.padded_back(ct, xs[0].shape, s[0])],
    ),
    "window_sum": (
        lambda xp, xs, s: (
            w.reduced_windows(xs[0], s, np.add) if xp is np else w.traced_windows(xs[0], s, lax.add)
        ),
        lambda ct, xs, s: [w.summed_windows_back(ct, xs[0].shape, s)],
    ),
    "window_max": (
        lambda xp, xs, s: (
            w.reduced_windows(xs[0], s, np.maximum)
            if xp is np
            else w.traced_windows(xs[0], s, lax.max)
        ),
        None,
    ),
    "sort": (
        lambda xp, xs, axis: xp.sort(xs[0], axis),
        lambda ct, xs, axis: [_moved_back(ct, np.argsort(xs[0], axis, kind="stable"), axis)],
    ),
    "take": (
        lambda xp, xs, s: xs[0].take(np.array(s[0]), s[1]),
        lambda ct, xs, s: [_added_at(ct, xs[0].shape, *s)],
    ),
    "dynamic_slice": (
        lambda xp, xs, s: (_sliced if xp is np else _traced_slice)(xs[0], *s),
        lambda ct, xs, s: [_added_at(ct, xs[0].shape, _sliced_indices(xs[0], *s), s[1])],
    ),
}
LIKELY = ("abs", "square", "square", "neg", "maximum", "where", "mul", "add", "sub", "keep_sum")
REDUCTIONS = ("sum",) * 12 + ("max", "min", "argmax", "cumsum")


class _Draft:
    """The program that is being drawn."""

    def __init__(self, random: np.random.Generator, magnitude: int):
        self.random = random
        self.magnitude = magnitude
        self.nodes: list[Node] = []

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def put(
        self, name: str, operands: tuple[int, ...], settings: Any, shape: Sequence[int], bound: int
    ) -> int:
        self.nodes.append(Node(name, operands, settings, tuple(map(int, shape)), int(bound)))
        return len(self.nodes) - 1

    def input(self, shape: Sequence[int]) -> int:
        return self.put("input", (), None, shape, self.magnitude)

    def shape(self) -> list[int]:
        """Return a shape, mostly with one large size, and now and then of up to eight axes."""
        rank = self.one_of((1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8))
        sizes = [self.one_of(SMALL) for _ in range(rank)]
        if self.random.random() < 0.8:
            sizes[int(self.random.integers(rank))] = self.one_of(LARGE)
        if rank > 1 and self.random.random() < 0.25:
            sizes[int(self.random.integers(rank))] = self.one_of(LARGE[:24])
        while math.prod(sizes) > MAX_ELEMENTS:
            largest = sizes.index(max(sizes))
            others = math.prod(sizes) // sizes[largest]
            fitting = [size for size in LARGE if size * others <= MAX_ELEMENTS]
            sizes[largest] = self.one_of(fitting or SMALL)
        return sizes

    def broadcast(self, shape: Sequence[int]) -> int:
        """Return an input that broadcasts to a shape."""
        sizes = [size if self.random.random() < 0.6 else 1 for size in shape]
        if self.random.random() < 0.3:
            sizes = sizes[int(self.random.integers(len(sizes) + 1)) :]
        return self.input(sizes)

    def product(self) -> int:
        """Return a product of matrices, with batch axes at times."""
        # XLA splits products of few rows and many columns otherwise than others.
        large = self.one_of(LARGE)
        if self.random.random() < 0.5:
            large = int(self.random.integers(2**14, 2**16))
        inner = self.one_of((2, 3, 3, 4, 5, 5, 7, 8, 9, 16, 17))
        few = self.one_of((1, 2, 2, 3, 3, 4, 4, 8, 17))
        batch = self.one_of((0, 0, 0, 0, 0, 2, 3, 8))
        most = 2 * MAX_ELEMENTS // (max(batch, 1) * max(few, inner))
        sizes = {"i": min(large, most), "j": inner, "k": few}
        left = self.one_of(("ij", "ij", "ji"))
        right = self.one_of(("kj", "kj", "jk"))
        result = self.one_of(("ik", "ki"))
        if batch:
            sizes["b"] = batch
            left, result = f"b{left}", f"b{result}"
            right = f"b{right}" if self.random.random() < 0.5 else right
        if self.random.random() < 0.5:
            left, right = right, left
        a, b = (self.input([sizes[c] for c in letters]) for letters in (left, right))
        spec = f"{left},{right}->{result}"
        bound = self.nodes[a].bound * self.nodes[b].bound * inner
        return self.put("einsum", (a, b), spec, [sizes[c] for c in result], bound)

    def windows(self, shape: Sequence[int], most: int) -> Windows:
        """Return windows of axes of these sizes: at least one, and few positions in each."""

        def small(largest: int, often: float) -> tuple[int, ...]:
            """Return a number for each axis, mostly 1."""
            return tuple(
                1 if self.random.random() < often else int(self.random.integers(1, largest + 1))
                for _ in shape
            )

        for _ in range(100):
            sizes, strides = small(most, 0.2), small(3, 0.6)
            dilation, window_dilation = small(3, 0.7), small(3, 0.7)
            low, high = -3, 4
            if self.random.random() < 0.3:  # Whole operands are cut, too.
                low = -max(shape)
            padding = tuple(
                (0, 0)
                if self.random.random() < 0.3
                else (int(self.random.integers(low, high)), int(self.random.integers(low, high)))
                for _ in shape
            )
            found = Windows(sizes, strides, padding, dilation, window_dilation)
            whole = math.prod(map(w.padded_size, shape, found.edges))
            if min(found.counts(shape)) > 0 and math.prod(sizes) <= 60:
                if whole <= max(2 * MAX_ELEMENTS, math.prod(shape)):
                    return found
        ones = (1,) * len(shape)
        return Windows(ones, ones, ((0, 0),) * len(shape), ones, ones)

    def layout(self, first: str, rank: int, in_order: bool = False) -> str:
        """Return two letters and the digits of spatial axes in some order, mostly a usual one."""
        letters = first + "012"[:rank]
        if self.random.random() < 0.4:
            return letters
        if self.random.random() < 0.6:
            return letters[0] + letters[2:] + letters[1]
        mixed = "".join(self.random.permutation(list(letters)))
        digits = iter(letters[2:])
        return "".join(next(digits) if c.isdigit() else c for c in mixed) if in_order else mixed

    def convolution(self) -> int:
        rank = self.one_of((1, 1, 2, 2, 2, 2, 3))
        space = [self.one_of((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)) for _ in range(rank)]
        if self.random.random() < 0.4:
            space[int(self.random.integers(rank))] = self.one_of((15, 16, 17, 31, 32, 33, 64, 100))
        groups = self.one_of((1, 1, 1, 1, 2, 3, 4, 8))
        batch_groups = self.one_of((1, 1, 1, 1, 1, 2, 3)) if groups == 1 else 1
        batch = batch_groups * self.one_of((1, 1, 2, 3, 4))
        features = self.one_of((1, 1, 2, 3, 4, 8, 16))
        outputs = groups * batch_groups * self.one_of((1, 1, 2, 3, 4, 8, 17))
        while math.prod(space) * batch * features * groups > MAX_ELEMENTS // 8:
            space[space.index(max(space))] //= 2
        windows = self.windows(space, 5)
        sizes = {"N": batch, "C": features * groups, "O": outputs, "I": features}
        layouts = self.layout("NC", rank), self.layout("OI", rank, True), self.layout("NC", rank)
        along = dict(zip("012", space, strict=False))
        x = self.input([(sizes | along)[c] for c in layouts[0]])
        along = dict(zip("012", windows.sizes, strict=False))
        kernel = self.input([(sizes | along)[c] for c in layouts[1]])
        along = dict(zip("012", windows.counts(space), strict=False))
        along |= {"N": batch // batch_groups, "C": outputs}
        bound = self.magnitude**2 * features * math.prod(windows.sizes)
        settings = Convolution(windows, groups, batch_groups, layouts)
        return self.put("convolution", (x, kernel), settings, [along[c] for c in layouts[2]], bound)

    def windowed(self, x: int) -> int:
        """Return the sums or the maxima of windows, or a padded array."""
        node = self.nodes[x]
        windows = self.windows(node.shape, 4)
        name = self.one_of(("pad", "pad", "window_sum", "window_max"))
        bound = max(node.bound, -w.LEAST)
        if name == "pad":
            shape = list(map(w.padded_size, node.shape, windows.edges))
            if min(shape) < 1:
                return x
            value = int(self.random.integers(-1, 2))
            return self.put(name, (x,), (tuple(windows.edges), value), shape, bound)
        if name == "window_sum":
            bound *= math.prod(windows.sizes)
        return self.put(name, (x,), windows, windows.counts(node.shape), bound)

    def selected(self, x: int) -> int:
        """Return elements of an array along an axis: sorted, by their indices, or a slice."""
        node = self.nodes[x]
        axis = int(self.random.integers(len(node.shape)))
        size = node.shape[axis]
        name = self.one_of(("sort", "take", "dynamic_slice"))
        if name == "sort":
            return self.put(name, (x,), axis, node.shape, node.bound)
        count = int(self.random.integers(1, min(size, 40) + 1))
        indices = tuple(map(int, self.random.integers(size, size=count)))
        settings = (indices if name == "take" else count, axis)
        shape = (*node.shape[:axis], count, *node.shape[axis + 1 :])
        return self.put(name, (x,), settings, shape, node.bound)

    def elementwise(self, x: int) -> int:
        name, node = self.one_of(LIKELY), self.nodes[x]
        if name in ("mul", "add", "sub"):
            other = x if self.random.random() < 0.1 else self.broadcast(node.shape)
            bound = self.nodes[other].bound
            bound = bound * node.bound if name == "mul" else bound + node.bound
            pair = (x, other) if self.random.random() < 0.5 else (other, x)
            return self.put(name, pair, None, node.shape, bound)
        if name == "keep_sum":
            return self.less_sum(x)
        bound = node.bound**2 if name == "square" else max(node.bound, 2)
        settings = int(self.random.integers(-1, 3)) if name == "maximum" else None
        return self.put(name, (x,), settings, node.shape, bound)

    def less_sum(self, x: int) -> int:
        """Return a value less its sums along an axis."""
        node = self.nodes[x]
        if not node.shape:
            return x
        axis = int(self.random.integers(len(node.shape)))
        kept = [1 if i == axis else size for i, size in enumerate(node.shape)]
        bound = node.bound * node.shape[axis]
        total = self.put("keep_sum", (x,), (axis,), kept, bound)
        return self.put("sub", (x, total), None, node.shape, bound + node.bound)

    def moved(self, x: int) -> int:
        node = self.nodes[x]
        rank = len(node.shape)
        name = self.one_of(("transpose", "reshape", "reverse"))
        if not rank:
            return x
        if name == "transpose":
            axes = tuple(map(int, self.random.permutation(rank)))
            return self.put(name, (x,), axes, [node.shape[i] for i in axes], node.bound)
        if name == "reverse":
            return self.put(name, (x,), int(self.random.integers(rank)), node.shape, node.bound)
        cut = int(self.random.integers(rank))
        shape = (*node.shape[:cut], math.prod(node.shape[cut:]))
        return self.put(name, (x,), shape, shape, node.bound)

    def reduced(self, x: int) -> int:
        node = self.nodes[x]
        rank = len(node.shape)
        if not rank:
            return x
        name = self.one_of(REDUCTIONS)
        if name in ("argmax", "cumsum"):
            axis = int(self.random.integers(rank))
            size = node.shape[axis]
            if name == "argmax":
                shape = (*node.shape[:axis], *node.shape[axis + 1 :])
                return self.put(name, (x,), axis, shape, size)
            return self.put(name, (x,), axis, node.shape, node.bound * size)
        count = 1 if self.random.random() < 0.65 else int(self.random.integers(1, rank + 1))
        axes = tuple(sorted(map(int, self.random.choice(rank, count, replace=False))))
        if count == 1 and self.random.random() < 0.6:
            axes = (node.shape.index(min(node.shape)),)
        shape = [size for axis, size in enumerate(node.shape) if axis not in axes]
        number = math.prod(node.shape[axis] for axis in axes)
        return self.put(name, (x,), axes, shape, node.bound * (number if name == "sum" else 1))


def _drafted(random: np.random.Generator, magnitude: int) -> _Draft:
    draft = _Draft(random, magnitude)
    choice = random.random()
    if choice < 0.35:
        x = draft.convolution()
    elif choice < 0.6:
        x = draft.product()
    else:
        shape = draft.shape()
        x = draft.input(shape)
        if random.random() < 0.75:
            other = draft.broadcast(shape)
            x = draft.put("mul", (x, other), None, shape, magnitude**2)
    for _ in range(draft.one_of((0, 1, 1, 2))):
        x = draft.elementwise(x)
    if random.random() < 0.15:
        x = draft.moved(x)
    if random.random() < 0.3 and draft.nodes[x].shape:
        x = draft.windowed(x) if random.random() < 0.7 else draft.selected(x)
    if choice > 0.35 or random.random() < 0.5:
        x = draft.reduced(x)
    if random.random() < 0.25:
        x = draft.elementwise(x)
        draft.reduced(x)
    return draft


def random_program(number: int) -> Program:
    """Return the program of a number."""
    random = np.random.default_rng(number)
    for attempt in range(100):
        magnitude = int(random.integers(1, 5)) if attempt < 4 else 1
        nodes = _drafted(random, magnitude).nodes
        kind = ("call", "call", "call", "grad", "grad", "scan", "vmap")[int(random.integers(7))]
        dtype = DTYPES[int(random.integers(len(DTYPES)))]
        differentiable = all(
            node.name == "input" or OPERATIONS[node.name][1] is not None for node in nodes
        )
        if kind == "grad" and (not differentiable or dtype.startswith("int")):
            kind = "call"
        # The gradient of a product is at most the product of all else, twice for each square.
        bound = max(node.bound for node in nodes)
        if kind == "grad":
            bound = 4 * bound * max(math.prod(node.shape) for node in nodes)
        if kind == "scan":
            bound *= ROWS
        if bound <= EXACT[dtype]:
            return Program(number, dtype, kind, tuple(nodes))
    return Program(number, "float64", "call", tuple(nodes))


# ---- runs ----------------------------------------------------------------------------------------


def arguments_of(program: Program) -> "list[np.ndarray[Any, Any]]":
    """Return the inputs of a program, with a row for each step where it is mapped."""
    random = np.random.default_rng([program.number, 1])
    rows = (ROWS,) if program.kind in ("scan", "vmap") else ()
    return [
        random.integers(-node.bound, node.bound + 1, (*rows, *node.shape))
        for node in program.inputs
    ]


def _values(xp: Any, program: Program, arguments: Sequence[Any]) -> list[Any]:
    values: list[Any] = []
    remaining = iter(arguments)
    for node in program.nodes:
        if node.name == "input":
            values.append(next(remaining))
        else:
            forward, _ = OPERATIONS[node.name]
            values.append(forward(xp, [values[i] for i in node.operands], node.settings))
    return values


def _weights(program: Program, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    """Return the weights of a result's elements in the sum that is differentiated."""
    ones = np.ones(shape, np.int64)
    return (np.arange(ones.size).reshape(shape) % 3 - 1) if program.number % 2 else ones


def exact(program: Program, arguments: "Sequence[np.ndarray[Any, Any]]") -> list[Any]:
    """Return the results of a program, in int64."""
    if program.kind == "call":
        return [_values(np, program, arguments)[-1]]
    if program.kind in ("scan", "vmap"):
        rows = [_values(np, program, each)[-1] for each in zip(*arguments, strict=True)]
        stacked = np.stack(rows)
        return [stacked] if program.kind == "vmap" else [stacked.sum(0), stacked]
    values = _values(np, program, arguments)
    cotangents: list[Any] = [np.zeros(value.shape, np.int64) for value in values]
    cotangents[-1] = _weights(program, values[-1].shape)
    for place in reversed(range(len(values))):
        node = program.nodes[place]
        if node.name == "input":
            continue
        _, backward = OPERATIONS[node.name]
        assert backward is not None
        operands = [values[i] for i in node.operands]
        back = backward(cotangents[place], operands, node.settings)
        for i, ct in zip(node.operands, back, strict=True):
            cotangents[i] = cotangents[i] + ct
    return [cotangents[i] for i, node in enumerate(program.nodes) if node.name == "input"]


def traced(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """Return the results of a program of hlofront's arrays or tracers."""

    def run(*arguments: Any) -> Any:
        return _values(jnp, program, arguments)[-1]

    if program.kind == "call":
        return [run(*arguments)]
    if program.kind == "vmap":
        return [jax.vmap(run)(*arguments)]
    if program.kind == "scan":

        def step(total: Any, row: Any) -> tuple[Any, Any]:
            result = run(*row)
            return total + result, result

        shape = jax.eval_shape(run, *(argument[0] for argument in arguments))
        start = jnp.zeros(shape.shape, shape.dtype)
        return list(lax.scan(step, start, tuple(arguments)))
    every = tuple(range(len(arguments)))

    def weighted(*arguments: Any) -> Any:
        result = run(*arguments)
        weights = _weights(program, result.shape)
        return (result * weights.astype(result.dtype) if program.number % 2 else result).sum()

    return list(jax.grad(weighted, every)(*arguments))
