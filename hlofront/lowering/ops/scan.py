"""The lowering rule of scan: one loop over the first axis of its inputs and stacked outputs."""

import numpy as np

from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray, SymbolicSize
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.names import path_of
from hlofront.core.rules import lower
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.extended import physical

_INDEX = ShapedArray((), np.dtype(np.int32))


@lower(scan_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> list[Value]:
    loop = Loop(jaxpr, args, num_consts, num_carry, length, reverse)
    if isinstance(length, SymbolicSize):
        return loop.emit_all(build)
    return loop.emit(build, max(1, min(unroll, length)))


class Loop:
    """A scan that is being lowered."""

    def __init__(
        self,
        program: ClosedJaxpr,
        args: Values,
        num_consts: int,
        num_carry: int,
        length: int,
        reverse: bool,
    ):
        first = num_consts + num_carry
        self.program = program
        self.consts = args[:num_consts]
        self.carry = args[num_consts:first]
        self.xs = args[first:]
        in_avals = program.in_avals
        self.carry_avals = in_avals[num_consts:first]
        # The avals of one step, with random keys as arrays of integers.
        self.x_avals = list(map(physical, in_avals[first:]))
        self.y_avals = list(map(physical, program.out_avals[num_carry:]))
        self.length = length
        self.reverse = reverse

    def emit(self, build: Builder, unroll: int) -> list[Value]:
        self.unrolled = unroll > 1
        trips = self.length // unroll
        looped = trips * unroll if trips > 1 else 0
        carry = list(self.carry)
        # Without a loop, the steps' outputs are all the stacked rows.
        ys: list[Value] = []
        if looped or not self.length:
            around = build.loc
            build.loc = self._located(build, "broadcast_in_dim")
            ys = [build.full(0, _longer(aval, self.length)) for aval in self.y_avals]
            build.loc = around
        if looped:
            carry, ys = self._loop(build, carry, ys, looped, unroll)
        if looped < self.length:
            # The remaining steps are the last ones, which read the first rows in a reverse scan.
            start = 0 if self.reverse else looped
            carry, ys = self._steps(build, carry, ys, start, self.length - looped)
        return [*carry, *ys]

    def emit_all(self, build: Builder) -> list[Value]:
        """Emit a loop over an unknown number of steps, one at a time."""
        self.unrolled = False
        ys = [build.full(0, _longer(aval, self.length)) for aval in self.y_avals]
        carry, ys = self._loop(build, list(self.carry), ys, self.length, 1)
        return [*carry, *ys]

    def _loop(
        self, build: Builder, carry: list[Value], ys: list[Value], looped: int, unroll: int
    ) -> tuple[list[Value], list[Value]]:
        """Emit a loop of `looped` steps, `unroll` per iteration; return carries and rows."""
        avals = [_longer(aval, self.length) for aval in self.y_avals]

        def cond(inner: Builder, index: Value, *_: Value) -> Value:
            inner.loc = self._named(inner, "cond", "lt")
            return inner.compare("LT", index, inner.size(looped, _INDEX), _INDEX)

        def body(inner: Builder, index: Value, *values: Value) -> list[Value]:
            row = index
            if self.reverse:
                inner.loc = self._named(inner, "body", "sub")
                last = inner.size(self.length - unroll, _INDEX)
                row = inner.op("stablehlo.subtract", (last, index), _INDEX)
            inner.loc = self._named(inner, "body", "add")
            now = list(values[: len(carry)])
            now, collected = self._steps(inner, now, list(values[len(carry) :]), row, unroll)
            step = inner.constant(unroll, np.int32)
            return [inner.op("stablehlo.add", (index, step), _INDEX), *now, *collected]

        start = build.constant(0, np.int32)
        build.loc = self._located(build, "while")
        results = build.while_loop(
            cond,
            body,
            [start, *carry, *ys],
            [_INDEX, *self.carry_avals, *avals],
            self.program.effects,
        )
        return results[1 : 1 + len(carry)], results[1 + len(carry) :]

    @staticmethod
    def _located(build: Builder, name: str) -> ir.Location:
        """Return the location of a part of the scan itself."""
        return build.location(path_of(build.within(name)))

    @staticmethod
    def _named(build: Builder, region: str, name: str) -> ir.Location:
        """Return the location of an operation on the loop index."""
        return build.location(path_of(build.within("while", region, name)))

    def _steps(
        self, build: Builder, carry: list[Value], ys: list[Value], row: Value | int, count: int
    ) -> tuple[list[Value], list[Value]]:
        """Emit `count` steps on the rows from `row` on; return carries and stacked rows."""
        around = build.loc
        build.loc = self._named(build, "body", "jit(dynamic_index_in_dim)/dynamic_slice")
        blocks = [
            _rows(build, x, aval, self.length, row, count)
            for x, aval in zip(self.xs, self.x_avals, strict=True)
        ]
        collected: list[list[Value]] = [[] for _ in self.y_avals]
        indices = range(count)
        order = reversed(indices) if self.reverse else indices
        for index, fenced in zip(order, self._fenced(build, count), strict=True):
            build.loc = self._named(build, "body", "jit(dynamic_index_in_dim)/squeeze")
            step = [
                _row(build, block, aval, index, count)
                for block, aval in zip(blocks, self.x_avals, strict=True)
            ]
            args = [*self.consts, *carry, *step]
            # The scopes are JAX's, whose steps are calls.
            scope = ("while", "body", "closed_call")
            program = self.program
            if self.unrolled and len(program.eqns) > _FEW:
                results = build.call(program, "step", args)
            else:
                results = build.inline_closed(program, args, *scope)
            carry = results[: len(carry)]
            for position in fenced:
                aval = self.carry_avals[position]
                carry[position] = build.fence(carry[position], aval, build.current)
            for rows, y in zip(collected, results[len(carry) :], strict=True):
                rows.append(y)
        if self.reverse:
            for rows in collected:
                rows.reverse()
        update = "jit(dynamic_update_index_in_dim)"
        build.loc = self._named(build, "body", f"{update}/broadcast_in_dim")
        blocks = [
            _block(build, rows, aval) for rows, aval in zip(collected, self.y_avals, strict=True)
        ]
        build.loc = self._named(build, "body", f"{update}/dynamic_update_slice")
        if count != self.length:
            blocks = [
                _updated(build, y, block, aval, self.length, row)
                for y, block, aval in zip(ys, blocks, self.y_avals, strict=True)
            ]
        build.loc = around
        return carry, blocks

    def _fenced(self, build: Builder, count: int) -> list[list[int]]:
        """Return the positions of the carries to fence after each of `count` consecutive steps."""
        fences = build.module.fences
        if fences is None or count == 1:
            return [[]] * count
        return fences.of_steps(self.program, len(self.consts), len(self.carry), count)


# Steps with more equations than this become a function if they are emitted more than once.
_FEW = 4


def _longer(aval: ShapedArray, length: int) -> ShapedArray:
    return aval.update(shape=(length, *aval.shape))


def _starts(build: Builder, row: Value | int, aval: ShapedArray) -> list[Value]:
    if isinstance(row, int):
        row = build.constant(row, np.int32)
    if not aval.shape:
        return [row]
    return [row, *[build.constant(0, np.int32)] * len(aval.shape)]


def _rows(
    build: Builder, x: Value, aval: ShapedArray, length: int, row: Value | int, count: int
) -> Value:
    """Return `count` rows of an array, from `row` on."""
    if count == length:
        return x
    result = _longer(aval, count)
    if isinstance(row, int):
        return _static_rows(build, x, aval, row, count)
    return build.dynamic_slice(x, _longer(aval, length), _starts(build, row, aval), result)


def _static_rows(build: Builder, x: Value, aval: ShapedArray, row: int, count: int) -> Value:
    rank = len(aval.shape)
    starts, limits = (row, *[0] * rank), (row + count, *aval.shape)
    return build.slice(x, starts, limits, result=_longer(aval, count))


def _row(build: Builder, block: Value, aval: ShapedArray, index: int, count: int) -> Value:
    """Return one row of a block of rows, without the row axis."""
    if count > 1:
        block = _static_rows(build, block, aval, index, 1)
    return build.reshape(block, aval)


def _block(build: Builder, rows: Values, aval: ShapedArray) -> Value:
    """Return rows stacked along a new first axis."""
    longer = [build.reshape(row, _longer(aval, 1)) for row in rows]
    if len(longer) == 1:
        return longer[0]
    return build.concatenate(longer, [_longer(aval, 1)] * len(rows), 0, _longer(aval, len(rows)))


def _updated(
    build: Builder, y: Value, block: Value, aval: ShapedArray, length: int, row: Value | int
) -> Value:
    """Return y with its rows from `row` on replaced by a block."""
    return build.op(
        "stablehlo.dynamic_update_slice",
        (y, block, *_starts(build, row, aval)),
        _longer(aval, length),
    )
