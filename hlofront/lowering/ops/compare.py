"""Lowering rules of comparisons and selection."""

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import iinfo, issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.reduce import emit_reduce, one_op
from hlofront.primitives.elementwise import compare as c


def _comparison(direction: str, total_order: bool = False) -> Callable[..., Value]:
    def rule(build: Builder, x: Value, y: Value) -> Value:
        aval_x, aval_y = build.avals_in
        dtype = aval_x.dtype
        aval = ShapedArray(build.avals_out[0].shape, dtype)
        x = build.broadcast_to(x, aval_x, aval)
        y = build.broadcast_to(y, aval_y, aval)
        if isinstance(dtype, ExtendedDType):
            return _compare_extended(build, direction, x, y, aval)
        kind = "TOTALORDER" if total_order and issubdtype(dtype, np.floating) else None
        return build.compare(direction, x, y, aval, kind)

    return rule


def _compare_extended(
    build: Builder, direction: str, x: Value, y: Value, aval: ShapedArray
) -> Value:
    """Compare extended dtypes, whose elements are equal if all parts of their storage are."""
    physical = ShapedArray(*aval.dtype.physical(aval.shape))
    equal = build.compare(direction, x, y, physical)
    init = build.constant(direction == "EQ")
    result = aval.update(dtype=np.dtype(np.bool_))
    fold = one_op("stablehlo.and" if direction == "EQ" else "stablehlo.or")(result)
    axes = range(aval.ndim, physical.ndim)
    return emit_reduce(build, [equal], [init], [result], axes, fold)[0]


lower(c.eq_p)(_comparison("EQ"))
lower(c.ne_p)(_comparison("NE"))
lower(c.ge_p)(_comparison("GE"))
lower(c.gt_p)(_comparison("GT"))
lower(c.le_p)(_comparison("LE"))
lower(c.lt_p)(_comparison("LT"))
lower(c.eq_to_p)(_comparison("EQ", total_order=True))
lower(c.le_to_p)(_comparison("LE", total_order=True))
lower(c.lt_to_p)(_comparison("LT", total_order=True))


@lower(c.select_n_p)
def _(build: Builder, which: Value, *cases: Value) -> Value:
    which_aval, case_aval = build.avals_in[0], build.avals_out[0]
    if len(cases) == 1:
        return cases[0]
    if isinstance(case_aval.dtype, ExtendedDType):
        which, which_aval = _over_elements(build, which, which_aval, case_aval)
    return _select(build, which, which_aval, cases, 0)


def _select(
    build: Builder, which: Value, which_aval: ShapedArray, cases: Values, offset: int
) -> Value:
    """Select among the cases by binary search; `offset` is the number of the first case."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    if which_aval.dtype == np.bool_:
        return build.op("stablehlo.select", (which, cases[1], cases[0]))
    if offset + middle > iinfo(which_aval.dtype).max:
        return _select(build, which, which_aval, cases[:middle], offset)
    bound = build.full(offset + middle, which_aval)
    is_below = build.compare("LT", which, bound, which_aval)
    return build.op(
        "stablehlo.select",
        (
            is_below,
            _select(build, which, which_aval, cases[:middle], offset),
            _select(build, which, which_aval, cases[middle:], offset + middle),
        ),
    )


def _over_elements(
    build: Builder, which: Value, aval: ShapedArray, case_aval: ShapedArray
) -> tuple[Value, ShapedArray]:
    """Return `which` broadcast to the physical shape of the cases, which have an extended dtype."""
    if not aval.shape:
        return which, aval
    shape, _ = case_aval.dtype.physical(case_aval.shape)
    result = aval.update(shape=shape)
    return build.broadcast(which, result, range(aval.ndim)), result
