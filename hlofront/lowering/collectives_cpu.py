"""The lowering rules of maxima and minima over named axes for CPUs, which propagate NaNs.

XLA's CPU devices combine floats by the C++ library's maximum, which keeps a NaN or not by the order
of the devices (jaxlib 0.10.2 to 0.12). So they get integers in the order of the floats.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, ir
from hlofront.core.aval import ShapedArray
from hlofront.lowering.builder import Builder
from hlofront.lowering.collectives import all_reduced, reduced_over_axes, replica_groups
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.selecting_cpu import floats_of_ordered, ordered_integers
from hlofront.primitives import collectives as c
from hlofront.primitives import elementwise as e
from hlofront.primitives.collectives import Groups
from hlofront.primitives.converting import convert
from hlofront.primitives.pcast import unreduced_pmax_p, unreduced_pmin_p
from hlofront.primitives.reducing import reduce_max, reduce_min

_MAXIMA = (c.pmax_p, unreduced_pmax_p)
_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)


def _has_floats(equation: Candidate) -> bool:
    return any(issubdtype(aval.dtype, np.floating) for aval in equation.avals_in)


@formula_on_cpu(c.pmax_p, c.pmin_p, when=_has_floats, elementwise=True)
def _(
    build: Builder,
    *args: Value,
    axes: Sequence[int | Hashable],
    axis_index_groups: Groups,
) -> Sequence[Value]:
    fold = reduce_max if build.primitive in _MAXIMA else reduce_min
    return reduced_over_axes(build, args, axes, axis_index_groups, fold, _extreme)


@formula_on_cpu(unreduced_pmax_p, unreduced_pmin_p, when=_has_floats, elementwise=True)
def _(build: Builder, x: Value, *, axes: Sequence[Hashable]) -> Value:
    return _extreme(build, x, build.avals_out[0], replica_groups(build, axes, None))


def _extreme(
    build: Builder, x: Value, aval: ShapedArray, attributes: dict[str, ir.Attribute]
) -> Value:
    """Return the maximum or minimum of the values of x on the devices that attributes say."""
    is_maximum = build.primitive in _MAXIMA
    if not issubdtype(aval.dtype, np.floating):
        operation = "stablehlo.maximum" if is_maximum else "stablehlo.minimum"
        return all_reduced(build, x, aval, operation, attributes)
    wide = _float64 if aval.dtype == _float64 else _float32
    integers = aval.update(dtype=np.dtype(f"int{8 * wide.itemsize}"))

    def ordered(x: Array) -> Array:
        """Return the floats as integers in the order that is asked for; NaNs are the greatest."""
        x = convert(x, wide, False)
        return ordered_integers(x if is_maximum else e.neg(x))

    def floats(x: Array) -> Array:
        x = floats_of_ordered(x, wide)
        return convert(x if is_maximum else e.neg(x), aval.dtype, False)

    (x,) = build.by_tracing(ordered, [x], [aval])
    x = all_reduced(build, x, integers, "stablehlo.maximum", attributes)
    return build.by_tracing(floats, [x], [integers])[0]
