"""Loops that count, whose steps are functions of arrays that are traced and inlined."""

from collections.abc import Callable, Sequence

from hlofront.base.elements import int32
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import Avals, ShapedArray
from hlofront.lowering.core.builder import Builder

_index_aval = ShapedArray((), int32)

# (index, *values) -> the next index and the new values.
Step = Callable[..., Sequence[Array]]


def count_up(
    build: Builder, index: Value, count: int, step: Step, values: Values, avals: Avals
) -> list[Value]:
    """Repeat a step that increments its index while the index is less than `count`.

    Args:
      index: the first index, a scalar of int32.
      step: `step(index, *values)` returns the next index and the new values.
      values: the values before the first step, with these `avals`.
    """
    return _loop(build, "LT", index, count, step, values, avals)


def count_down(
    build: Builder, index: Value, step: Step, values: Values, avals: Avals
) -> list[Value]:
    """Repeat a step that decrements its index until the index is below 0.

    Args:
      index: the first index, a scalar of int32.
      step: `step(index, *values)` returns the next index and the new values.
      values: the values before the first step, with these `avals`.
    """
    return _loop(build, "GE", index, 0, step, values, avals)


def _loop(
    build: Builder,
    direction: str,
    index: Value,
    bound: int,
    step: Step,
    values: Values,
    avals: Avals,
) -> list[Value]:
    avals = [_index_aval, *avals]

    def condition(inner: Builder, index: Value, *_: Value) -> Value:
        return inner.compare(direction, index, inner.constant(bound, int32), _index_aval)

    def body(inner: Builder, *xs: Value) -> list[Value]:
        return inner.by_tracing(step, xs, avals)

    return build.while_loop(condition, body, [index, *values], avals)[1:]
