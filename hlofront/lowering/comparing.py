"""Comparisons and selection as StableHLO."""

import math

import numpy as np

from hlofront.base.elements import ExtendedDType
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import comparing as c

_DIRECTIONS = {
    c.eq_p: "EQ",
    c.ne_p: "NE",
    c.ge_p: "GE",
    c.gt_p: "GT",
    c.le_p: "LE",
    c.lt_p: "LT",
}
_TOTAL_ORDER_DIRECTIONS = {c.eq_to_p: "EQ", c.le_to_p: "LE", c.lt_to_p: "LT"}


def _comparison(direction, total_order=False):
    def rule(build, x, y):
        aval_x, aval_y = build.avals_in
        operands = ShapedArray(build.avals_out[0].shape, aval_x.dtype)
        x = build.broadcast_to(x, aval_x, operands)
        y = build.broadcast_to(y, aval_y, operands)
        if isinstance(aval_x.dtype, ExtendedDType):
            return _compare_extended(build, direction, x, y, operands)
        is_float = aval_x.dtype.kind not in "biu" and types.is_float(aval_x.dtype)
        kind = "TOTALORDER" if total_order and is_float else None
        return build.compare(direction, x, y, operands, kind)

    return rule


for _primitive, _direction in _DIRECTIONS.items():
    lower(_primitive)(_comparison(_direction))
for _primitive, _direction in _TOTAL_ORDER_DIRECTIONS.items():
    lower(_primitive)(_comparison(_direction, total_order=True))
