"""The lowering rules for CPUs of reductions whose function is a maximum or a minimum.

The function of `lax.reduce` and of `lax.reduce_window` may be `jnp.maximum`, or an initial value
may be another one than the identity. XLA takes its kernel that ignores NaNs for them, too, so they
are lowered as the primitives of maxima and minima are (reducing_cpu.py and windowed_cpu.py).
"""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.higher_order import reduce as r
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.reduce import combination_of
from hlofront.lowering.reducing_cpu import ignores_nans
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing
from hlofront.primitives import windowed as w
from hlofront.primitives.shaping import broadcast


class _Extreme(NamedTuple):
    """A maximum or minimum: of two arrays, along axes, and of windows."""

    of_two: Callable[..., Array]
    of_axes: Callable[..., Array]
    of_windows: Callable[..., Array]


_EXTREMES: dict[Primitive, _Extreme] = {
    e.max_p: _Extreme(e.max, reducing.reduce_max, w.reduce_window_max),
    e.min_p: _Extreme(e.min, reducing.reduce_min, w.reduce_window_min),
}


def _is_extreme_of_axes(equation: Candidate) -> bool:
    program = equation.params["jaxpr"].jaxpr
    return ignores_nans(equation.avals_in[0]) and combination_of(program) in _EXTREMES


def _is_extreme_of_windows(equation: Candidate) -> bool:
    program = equation.params["jaxpr"]
    return ignores_nans(equation.avals_in[0]) and combination_of(program) in _EXTREMES


def _extreme_of(jaxpr: Jaxpr) -> _Extreme:
    combination = combination_of(jaxpr)
    assert combination is not None
    return _EXTREMES[combination]


@formula_on_cpu(r.reduce_p, when=_is_extreme_of_axes, elementwise=True)
def _(
    build: Builder, *args: Value, computation: object, jaxpr: ClosedJaxpr, dimensions: Sequence[int]
) -> list[Value]:
    extreme, ndim = _extreme_of(jaxpr.jaxpr), build.avals_in[0].ndim
    axes = [axis + ndim if axis < 0 else axis for axis in dimensions]

    def reduced(x: Array, start: Array) -> Array:
        result = extreme.of_axes(x, axes)
        return extreme.of_two(result, broadcast(start, result.shape))

    return build.by_tracing(reduced, args)


@formula_on_cpu(r.reduce_window_p, when=_is_extreme_of_windows, elementwise=True)
def _(
    build: Builder, *args: Value, jaxpr: Jaxpr, consts: Sequence[object], **windows: Any
) -> list[Value]:
    extreme = _extreme_of(jaxpr)

    def reduced(x: Array, start: Array) -> Array:
        result = extreme.of_windows(x, *w.Windows(**windows))
        return extreme.of_two(result, broadcast(start, result.shape))

    return build.by_tracing(reduced, args)
