"""The lowering rules for CPUs of maxima and minima of floats, which propagate NaNs.

YNNPACK's kernels for the maxima and minima of an array ignore NaNs (see bridge/xla_faults.py), and
so do maxima over devices, depending on their order. The maximum of integers in the order of the
floats, with NaN as the largest, is the same in all of XLA's code.

The function of `lax.reduce` and `lax.reduce_window` may also be a maximum, with any initial value;
these are lowered like the primitives of maxima.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import float32, float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.bridge.xla_faults import is_present
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.rules import LoweringRule, lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.higher_order.control_flow import reduce as r
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.mesh_attributes import is_unreduced
from hlofront.lowering.cpu.float_bits import floats_of_ordered, ordered_integers
from hlofront.lowering.ops.collectives import all_reduced, reduced_over_axes, replica_groups
from hlofront.lowering.ops.reduce_by_function import combination_of
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.shaping import broadcast
from hlofront.primitives.collectives import collectives as c
from hlofront.primitives.collectives.collectives import Groups
from hlofront.primitives.collectives.pcast import unreduced_pmax_p, unreduced_pmin_p
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert

# The minimum number of elements in an operand for which XLA uses YNNPACK's kernel.
_MIN_SIZE_OF_KERNEL = 4_096


def is_fault_lowered() -> bool:
    """Return whether the fault is guarded here, rather than by an option of XLA's compiler."""
    return is_present("maxima by YNNPACK") and not is_present("reductions by YNNPACK")


def ignores_nans(build: Builder) -> bool:
    """Return whether XLA's code for a maximum of the operand may ignore NaNs."""
    aval, module = build.avals_in[0], build.module
    if not module.guards_for_cpu or not issubdtype(aval.dtype, np.floating):
        return False
    # The type of the integers could not say that they represent partial maxima.
    if aval.dtype.itemsize == 1 or any(
        is_unreduced(type_) for type_ in (*build.avals_in, *build.avals_out)
    ):
        return False
    # XLA may split the operand over devices and combine the devices' maxima.
    if module.several_devices:
        return True
    is_large = has_symbolic_size(aval.shape) or aval.size >= _MIN_SIZE_OF_KERNEL
    return is_large and is_fault_lowered()


def _extreme_of_integers(x: Array, maximum: Callable[[Array], Array], is_maximum: bool) -> Array:
    """Return a maximum or minimum of floats, which is NaN if one of them is.

    Args:
      x: the floats.
      maximum: returns the maximum of the integers that represent the floats.
      is_maximum: whether the maximum of the floats is requested.
    """
    x = x if is_maximum else e.neg(x)
    extreme = floats_of_ordered(maximum(ordered_integers(x)), x.dtype)
    return extreme if is_maximum else e.neg(extreme)


# ---- axes and windows ----------------------------------------------------------------------------


@lower.match(reducing.reduce_max_p, reducing.reduce_min_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    return _axes_rule if build.current.params["axes"] and ignores_nans(build) else None


@in_function
def _axes_rule(build: Builder, x: Value, *, axes: Sequence[int], **_: object) -> Value:
    is_maximum = build.primitive is reducing.reduce_max_p

    def reduced(x: Array) -> Array:
        return _extreme_of_integers(x, partial(reducing.reduce_max, axes=axes), is_maximum)

    return build.by_tracing(reduced, [x])[0]


@lower.match(w.reduce_window_max_p, w.reduce_window_min_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    return _windows_rule if ignores_nans(build) else None


@in_function
def _windows_rule(build: Builder, x: Value, **windows: Any) -> Value:
    is_maximum = build.primitive is w.reduce_window_max_p

    def maxima(integers: Array) -> Array:
        # A window of only padding would give the smallest integer, which represents a NaN.
        lowest = np.array(-np.inf, build.avals_in[0].dtype).view(integers.dtype)
        lowest ^= np.iinfo(integers.dtype).max
        result = w.reduce_window_max(integers, *w.Windows(**windows))
        return e.max(result, full_like(result, lowest))

    def reduced(x: Array) -> Array:
        return _extreme_of_integers(x, maxima, is_maximum)

    return build.by_tracing(reduced, [x])[0]


# ---- functions of users --------------------------------------------------------------------------


class _Extreme(NamedTuple):
    """The functions for a maximum or minimum of two arrays, along axes, and of windows."""

    of_two: Callable[..., Array]
    of_axes: Callable[..., Array]
    of_windows: Callable[..., Array]


_EXTREMES: dict[Primitive, _Extreme] = {
    e.max_p: _Extreme(e.max, reducing.reduce_max, w.reduce_window_max),
    e.min_p: _Extreme(e.min, reducing.reduce_min, w.reduce_window_min),
}


def _extreme_of(build: Builder, jaxpr: Jaxpr) -> _Extreme | None:
    """Return the extreme that a function of two floats computes, or None for other functions."""
    combination = combination_of(jaxpr)
    return _EXTREMES.get(combination) if combination and ignores_nans(build) else None


@lower.match(r.reduce_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    extreme = _extreme_of(build, build.current.params["jaxpr"].jaxpr)
    if extreme is None:
        return None
    ndim = build.avals_in[0].ndim
    axes = [axis % ndim for axis in build.current.params["dimensions"]]
    return partial(_with_initial, extreme, partial(extreme.of_axes, axes=axes))


@lower.match(r.reduce_window_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    windows = dict(build.current.params)
    extreme = _extreme_of(build, windows.pop("jaxpr"))
    del windows["consts"]
    if extreme is None:
        return None
    return partial(_with_initial, extreme, lambda x: extreme.of_windows(x, *w.Windows(**windows)))


def _with_initial(
    extreme: _Extreme,
    reduce: Callable[[Array], Array],
    build: Builder,
    *operands: Value,
    **_: object,
) -> Values:
    """Emit the extreme of the initial value and of what `reduce` returns."""

    def reduced(x: Array, start: Array) -> Array:
        result = reduce(x)
        return extreme.of_two(result, broadcast(start, result.shape))

    return build.by_tracing(reduced, operands)


# ---- devices -------------------------------------------------------------------------------------

_MAXIMA = (c.pmax_p, unreduced_pmax_p)


def _has_floats(build: Builder) -> bool:
    return any(issubdtype(aval.dtype, np.floating) for aval in build.avals_in)


@lower.match(c.pmax_p, c.pmin_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    return _devices_rule if _has_floats(build) else None


@lower.match(unreduced_pmax_p, unreduced_pmin_p, platform="cpu")
def _(build: Builder) -> LoweringRule | None:
    return _unreduced_rule if _has_floats(build) else None


@in_function
def _devices_rule(
    build: Builder, *args: Value, axes: Sequence[int | Hashable], axis_index_groups: Groups
) -> Values:
    fold = reducing.reduce_max if build.primitive in _MAXIMA else reducing.reduce_min
    return reduced_over_axes(build, args, axes, axis_index_groups, fold, _over_devices)


@in_function
def _unreduced_rule(build: Builder, x: Value, *, axes: Sequence[Hashable]) -> Value:
    return _over_devices(build, x, build.avals_out[0], replica_groups(build, axes, None))


def _over_devices(
    build: Builder, x: Value, aval: ShapedArray, attributes: dict[str, ir.Attribute]
) -> Value:
    """Return the maximum or minimum of x over the devices in a collective's attributes."""
    is_maximum = build.primitive in _MAXIMA
    if not issubdtype(aval.dtype, np.floating):
        operation = "stablehlo.maximum" if is_maximum else "stablehlo.minimum"
        return all_reduced(build, x, aval, operation, attributes)
    wide = float64 if aval.dtype == float64 else float32
    integers = aval.update(dtype=np.dtype(f"int{8 * wide.itemsize}"))

    def ordered(x: Array) -> Array:
        """Return floats as integers in the requested order, with NaNs as the largest."""
        x = convert(x, wide, False)
        return ordered_integers(x if is_maximum else e.neg(x))

    def floats(x: Array) -> Array:
        x = floats_of_ordered(x, wide)
        return convert(x if is_maximum else e.neg(x), aval.dtype, False)

    (x,) = build.by_tracing(ordered, [x], [aval])
    x = all_reduced(build, x, integers, "stablehlo.maximum", attributes)
    return build.by_tracing(floats, [x], [integers])[0]
