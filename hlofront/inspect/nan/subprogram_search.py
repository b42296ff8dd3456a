"""The search for a NaN inside loops.

Short loops are run step by step. Long ones are compiled and run whole; if a result is bad, a
second, instrumented program finds the step at which each part of the carry went bad, and only that
step is run one operation at a time.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLikes, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.programs.subprograms import Subprogram, equation_count, split_inputs
from hlofront.higher_order.control_flow.library_loops import while_loop
from hlofront.inspect.nan.instrumentation import (
    SearchFor,
    count_watched,
    noted,
    strong,
    watched_step,
)
from hlofront.inspect.nan.search import TrailSearch, Value
from hlofront.inspect.stepwise.loops import SHORT, LoopRun, row, run_scan, stacked
from hlofront.inspect.stepwise.report_parts import Inside
from hlofront.inspect.stepwise.run import Level
from hlofront.inspect.stepwise.trails import Trail
from hlofront.numpy import full, where
from hlofront.primitives.arrays.dynamic_slicing import dynamic_index_in_dim
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.runtime.checks.nan_search import nonfinite
from hlofront.runtime.dispatch.jit_function import jit

Arrays = ArrayLikes
# The step, the carry, the steps since which its parts are bad, and each operation's first step.
LoopState = tuple[Array, Arrays, list[list[Array]], Array]


class Watched(NamedTuple):
    """The state of a loop before a step, computed by a compiled loop."""

    carry: Arrays
    since: Sequence[Sequence[Array]]
    """For each followed kind, the step that made each part of the carry bad: -1 for parts that are
    bad from the start, -2 for those that are not bad.
    """
    firsts: Array
    """For each operation of a step, the first step in which it made bad elements, or -1."""


# ---- loops ---------------------------------------------------------------------------------------


class _Loop(LoopRun[Value]):
    """A run of a loop, whose time counts steps from 0 even in a reversed scan."""

    def __init__(
        self, search: TrailSearch, level: Level[Value], equation: Equation, program: ClosedJaxpr
    ):
        super().__init__(level, equation, program)
        self.search = search
        self.looked_at: dict[int, list[Value]] = {}
        self.start_time = 0
        self.start_carry: list[Value] = []

    def index(self, time: int) -> int:
        return time

    def inside(self, index: int) -> tuple[Inside, ...]:
        return super().inside(self.index(index))

    def step(self, time: int, carry: Sequence[Value]) -> list[Value]:
        """Return the results of one step on a carry: the new carry, then outputs to be stacked."""
        raise TypeError(f"{type(self).__name__} has no steps")

    def watched(self, time: int) -> Watched:
        """Return the carry before a step and the first bad steps, computed by a compiled loop."""
        raise TypeError(f"{type(self).__name__} cannot be watched")

    def carry_at(self, time: int) -> list[Value]:
        """Return the carry before a step, with the trails of its bad values."""
        if time == self.start_time:
            return self.start_carry
        watched = self.watched(time)
        values: list[Value] = []
        for position, array in enumerate(watched.carry):
            value = Value(array, self.origin(position))
            values.append(value)
            host = nonfinite(array)
            if host is None:
                continue
            for which, times in zip(self.search.followed, watched.since, strict=True):
                first = int(times[position])
                if self.search.mask(host, which).any():
                    begun = getattr(self.start_carry[position], which)
                    trails = begun if first == -1 else self.made_at(first, position, value, which)
                    setattr(value, which, trails)
        return values

    def origin(self, position: int) -> "Equation | str":
        """Return the equation that makes a part of the carry, or "the carry" if none does."""
        jaxpr = self.program.jaxpr
        for equation in reversed(jaxpr.eqns):
            if jaxpr.outvars[position] in equation.outvars:
                return equation
        return "the carry"

    def made_at(
        self, time: int, position: int, value: Value, which: str = "bad"
    ) -> tuple[Trail, ...]:
        """Return the trails to the origins of bad elements in one iteration's result.

        Args:
          time: the number of the iteration, rerun operation by operation if any reruns are left.
          position: the number of the result.
          value: the result, searched if the rerun has no trails.
          which: the attribute of `Value` that holds its trails.
        """
        results = self.looked_at.get(time)
        if results is None and self.left > 0:
            self.left -= 1
            results = self.looked_at[time] = self.step(time, self.carry_at(time))
        trails = getattr(results[position], which) if results is not None else ()
        if trails:
            return self.search.together(trail.through(self.equation) for trail in trails)
        # No reruns are left, or the operations give different results when run one at a time.
        host = np.asarray(value.array)
        level: Level[Value] = Level(self.level.program, self.inside(time))
        mask = self.search.mask(host, which)
        start = self.search.start(level, self.equation, [], host, mask, which)
        return (Trail(start, self.equation, None),)

    def whole(
        self, operands: Sequence[Value], collected_from: int, times: Sequence[int] | None
    ) -> list[Value]:
        """Run the loop as one operation, and return its results with the trails of bad ones.

        Args:
          operands: the loop's operands.
          collected_from: the number of the first result that is stacked over steps.
          times: the time of the step at each index of the stacked results.
        """
        equation, search = self.equation, self.search
        results = equation.primitive.bind(*(v.array for v in operands), **equation.params)
        values: list[Value] = []
        last: list[Value] | None = None
        for position, array in enumerate(results):
            value = Value(array, equation)
            values.append(value)
            host = nonfinite(array)
            if host is None:
                continue
            if "infinite" in search.followed and np.isinf(host).any():
                # The origins of infinities that long loops make are not searched for.
                value.infinite = search.together(t for v in operands for t in v.infinite)
            mask = search.mask(host)
            if not mask.any():
                continue
            if position >= collected_from:
                rows = mask.reshape(len(mask), -1).any(axis=1)
                first = min(times[i] for i in np.flatnonzero(rows))
                part = Value(host[self.index(first)], equation)
                value.bad = self.made_at(first, position, part)
            else:
                last = last or self.carry_at(self.end())
                value.bad = last[position].bad or self.made_at(self.end() - 1, position, value)
            value.bad = search.together(t.through(equation) for t in value.bad)
        self.look_beside(values, collected_from)
        return values

    def look_beside(self, results: Sequence[Value], collected_from: int) -> None:
        """Rerun the iterations where an operation first makes a bad value, and record its trails.

        Args:
          results: the loop's results; the trails that reach stacked outputs are added to these.
          collected_from: the number of the first result that is stacked over iterations.
        """
        firsts = np.asarray(self.watched(self.end()).firsts)
        for time in sorted({int(n) for n in firsts if n >= 0}):
            if time in self.looked_at or self.left <= 0:
                continue
            self.left -= 1
            outputs = self.looked_at[time] = self.step(time, self.carry_at(time))
            for position, value in enumerate(outputs):
                trails = [t.through(self.equation) for t in value.bad]
                if position >= collected_from:
                    results[position].bad = self.search.together((*results[position].bad, *trails))
                elif any(result.bad for result in results[:collected_from]):
                    # The bad value may be in the final carry, or overwritten before.
                    self.search.carried.update(id(t.start.equation) for t in trails)

    def end(self) -> int:
        """Return the number of steps, which is the time after the last one."""
        raise TypeError(f"{type(self).__name__} has no end")


# The compiled searches of scans, by the search's kinds and the scan's direction.
_watched_scans: DerivedCache[tuple[object, bool], Callable[..., tuple[object, ...]]] = (
    DerivedCache()
)


class _Scan(_Loop):
    """A run of a scan."""

    def __init__(
        self,
        search: TrailSearch,
        level: Level[Value],
        equation: Equation,
        body: Subprogram,
        operands: list[Value],
    ):
        super().__init__(search, level, equation, body.closed)
        self.consts, self.start_carry, self.xs = split_inputs(body, operands)
        self.length = body.iterations or 0
        self.reverse: bool = equation.params["reverse"]

    def index(self, time: int) -> int:
        return self.length - 1 - time if self.reverse else time

    def part(self, whole: Value, index: int) -> Value:
        """Return one index of the first axis of a value."""
        return self.search.part(row(whole.array, index), whole)

    def end(self) -> int:
        return self.length

    def step(self, time: int, carry: Sequence[Value]) -> list[Value]:
        parts = [self.part(x, self.index(time)) for x in self.xs]
        return self.search.run(self.program, [*self.consts, *carry, *parts], self.inside(time))

    def watched(self, time: int) -> Watched:
        program, reverse = self.program, self.reverse
        search_for = self.search.kinds, self.search.followed
        run = _watched_scans.get_or_compute(
            program,
            (search_for, reverse),
            lambda: jit(
                lambda consts, carry, xs, end: _watch_scan(
                    program, search_for, reverse, consts, carry, xs, end
                )
            ),
        )
        arrays = [[v.array for v in part] for part in (self.consts, self.start_carry, self.xs)]
        return Watched(*run(*arrays, np.int32(time)))


def _watch_scan(
    program: ClosedJaxpr,
    search_for: SearchFor,
    reverse: bool,
    consts: Arrays,
    carry: Arrays,
    xs: Arrays,
    end: Array,
) -> tuple[object, ...]:
    length = typeof(xs[0]).shape[0] if xs else 0

    def cond(state: LoopState) -> Array:
        return state[0] < end

    def step(state: LoopState) -> LoopState:
        time, carry, since, firsts = state
        at = length - 1 - time if reverse else time
        parts = [dynamic_index_in_dim(x, at, keepdims=False) for x in xs]
        results, begun = watched_step(program, search_for, [*consts, *carry, *parts])
        new = strong(results[: len(carry)])
        firsts = where((firsts < 0) & begun, time, firsts)
        return time + 1, new, noted(search_for, time, new, since), firsts

    carry = strong(carry)
    never = full((count_watched(program),), -1, np.int32)
    state = (convert_element_type(0, np.int32), carry, noted(search_for, 0, carry, None), never)
    return while_loop(cond, step, state)[1:]


def _stacked(search: TrailSearch, values: Sequence[Value], equation: Equation) -> Value:
    """Return the outputs of all steps stacked along a new first axis, with their trails."""
    return Value(
        stacked([v.array for v in values]),
        equation,
        search.together(t.through(equation) for v in values for t in v.bad),
        search.together(t.through(equation) for v in values for t in v.infinite),
    )


def _in_scan(
    search: TrailSearch,
    level: Level[Value],
    equation: Equation,
    body: Subprogram,
    operands: list[Value],
) -> list[Value]:
    loop = _Scan(search, level, equation, body, operands)
    program, length = loop.program, loop.length
    count = len(body.carried)
    if not length:
        return search.operation(level, equation, operands)
    if not program.effects and length * equation_count(program.jaxpr) > SHORT:
        times = [loop.index(i) for i in range(length)]
        return loop.whole(operands, count, times)
    return run_scan(
        equation,
        body,
        operands,
        loop.part,
        lambda index, inputs: search.run(program, inputs, loop.inside(loop.index(index))),
        lambda values: _stacked(search, values, equation),
    )


# The compiled searches of while loops, by condition and search's kinds.
_watched_loops: DerivedCache[tuple[ClosedJaxpr, object], Callable[..., tuple[object, ...]]] = (
    DerivedCache()
)


class _While(_Loop):
    """A run of a while loop."""

    def __init__(
        self,
        search: TrailSearch,
        level: Level[Value],
        equation: Equation,
        body: Subprogram,
        condition: Subprogram,
        operands: list[Value],
    ):
        super().__init__(search, level, equation, body.closed)
        self.condition = condition.closed
        self.read = split_inputs(condition, operands)[0]
        self.consts, self.start_carry, _ = split_inputs(body, operands)
        self.ended = 0

    def end(self) -> int:
        if not self.ended:
            self.ended = self._watch(np.iinfo(np.int32).max)[0]
        return self.ended

    def evaluate_condition(self, time: int, carry: Sequence[Value]) -> NumPyArray:
        """Return the condition's value: a boolean scalar, or an array where the loop is batched."""
        inputs = [*self.read, *carry]
        return np.asarray(self.search.run(self.condition, inputs, self.inside(time))[0].array)

    def step(self, time: int, carry: Sequence[Value]) -> list[Value]:
        answer = self.evaluate_condition(time, carry)
        new = self.search.run(self.program, [*self.consts, *carry], self.inside(time))
        if not answer.ndim:
            return new
        return [self._merged(answer, x, y) for x, y in zip(new, carry, strict=True)]

    def _merged(self, answer: NumPyArray, new: Value, old: Value) -> Value:
        """Return a part of the carry after a batched step, old where the condition is false."""
        rank = len(typeof(new.array).shape)
        chosen = answer.reshape(answer.shape + (1,) * (rank - answer.ndim))
        if isinstance(typeof(new.array).dtype, ExtendedDType):
            return Value(where(chosen, new.array, old.array), new.origin)
        array = np.where(chosen, np.asarray(new.array), np.asarray(old.array))
        merged = Value(array, new.origin)
        host = nonfinite(array)
        if host is None:
            return merged
        for which in self.search.followed:
            mask = self.search.mask(host, which)
            trails: tuple[Trail, ...] = ()
            for value, there in ((new, chosen), (old, ~chosen)):
                if (mask & there).any():
                    trails += getattr(value, which)
            setattr(merged, which, self.search.together(trails))
        return merged

    def watched(self, time: int) -> Watched:
        return self._watch(time)[1]

    def _watch(self, end: int) -> tuple[int, Watched]:
        """Return the iteration, at most `end`, at which the compiled loop stops, and its state."""
        program, condition = self.program, self.condition
        search_for = self.search.kinds, self.search.followed
        run = _watched_loops.get_or_compute(
            program,
            (condition, search_for),
            lambda: jit(
                lambda read, consts, carry, begin, end: _watch_while(
                    condition, program, search_for, read, consts, carry, begin, end
                )
            ),
        )
        arrays = [[v.array for v in part] for part in (self.read, self.consts, self.start_carry)]
        time, *rest = run(*arrays, np.int32(self.start_time), np.int32(end))
        return int(time), Watched(*rest)


def _watch_while(
    condition: ClosedJaxpr,
    program: ClosedJaxpr,
    search_for: SearchFor,
    read: Arrays,
    consts: Arrays,
    carry: Arrays,
    begin: Array,
    end: Array,
) -> LoopState:
    def answer(carry: Arrays) -> Array:
        return jaxpr_as_fun(condition, *read, *carry)[0]

    def step(state: LoopState) -> LoopState:
        time, carry, since, firsts = state
        results, begun = watched_step(program, search_for, [*consts, *carry])
        new = strong(results)
        chosen = answer(carry)
        if chosen.ndim:
            new = [
                where(chosen.reshape(chosen.shape + (1,) * (x.ndim - chosen.ndim)), x, y)
                for x, y in zip(new, carry, strict=True)
            ]
        firsts = where((firsts < 0) & begun, time, firsts)
        return time + 1, new, noted(search_for, time, new, since), firsts

    carry = strong(carry)
    never = full((count_watched(program),), -1, np.int32)
    state = (begin, carry, noted(search_for, 0, carry, None), never)
    return while_loop(lambda state: (state[0] < end) & answer(state[1]).any(), step, state)


def _in_while(
    search: TrailSearch,
    level: Level[Value],
    equation: Equation,
    body: Subprogram,
    condition: Subprogram,
    operands: list[Value],
) -> list[Value]:
    loop = _While(search, level, equation, body, condition, operands)
    cost = equation_count(loop.program.jaxpr) + equation_count(loop.condition.jaxpr)
    short = SHORT // max(cost, 1)
    effects = loop.program.effects | loop.condition.effects
    time, carry = 0, list(loop.start_carry)
    while effects or time < short:
        if not loop.evaluate_condition(time, carry).any():
            return carry
        carry = loop.step(time, carry)
        time += 1
    loop.start_time, loop.start_carry = time, carry
    return loop.whole([*loop.read, *loop.consts, *carry], len(carry), None)


class ProgramSearch(TrailSearch):
    """A search for NaNs that also searches loops."""

    in_scan = _in_scan
    in_while = _in_while
