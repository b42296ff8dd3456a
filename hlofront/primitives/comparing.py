"""Primitives that compare, and that choose by what was compared."""

from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process
from hlofront.primitives.families import (
    ANY,
    ORDERED,
    binary,
    check_same_dtypes,
    elementwise_primitive,
    to_bool,
)

eq_p, eq = binary("eq", ANY, "Elementwise `x == y`, as booleans.", result_dtype=to_bool)
ne_p, ne = binary("ne", ANY, "Elementwise `x != y`, as booleans.", result_dtype=to_bool)
ge_p, ge = binary("ge", ORDERED, "Elementwise `x >= y`, as booleans.", result_dtype=to_bool)
gt_p, gt = binary("gt", ORDERED, "Elementwise `x > y`, as booleans.", result_dtype=to_bool)
le_p, le = binary("le", ORDERED, "Elementwise `x <= y`, as booleans.", result_dtype=to_bool)
lt_p, lt = binary("lt", ORDERED, "Elementwise `x < y`, as booleans.", result_dtype=to_bool)

# In the total order of floating-point numbers: -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN.
eq_to_p = elementwise_primitive("eq_to", ORDERED, 2, to_bool)
le_to_p = elementwise_primitive("le_to", ORDERED, 2, to_bool)
lt_to_p = elementwise_primitive("lt_to", ORDERED, 2, to_bool)

select_n_p = Primitive("select_n")


@boundary
def select(pred, on_true, on_false):
    """Elementwise `on_true` where `pred`, else `on_false`.

    Args:
      pred: booleans, a scalar or of the shape of the cases.
      on_true, on_false: arrays of one shape and dtype.

    Raises TypeError if the shapes or dtypes do not fit.
    """
    return process(select_n_p, (pred, on_false, on_true), {})


@boundary
def select_n(which, *cases):
    """Elementwise the case that `which` names: 0 or False for the first.

    Args:
      which: integers, or booleans if there are at most two cases; a scalar or of their shape.
        Integers that name no case mean the first or the last one.
      cases: one or more arrays of one shape and dtype.

    Raises:
      ValueError: if there are no cases.
      TypeError: if the shapes or dtypes do not fit.
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return process(select_n_p, (which, *cases), {})


@infer(select_n_p)
def _(which: Any, *cases: Any):
    if which.dtype == np.bool_:
        if len(cases) > 2:
            raise TypeError(f"select with boolean `which` cannot have > 2 cases, got {len(cases)}.")
    elif not issubdtype(which.dtype, np.integer):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype}.")
    first = cases[0]  # pyright: ignore[reportGeneralTypeIssues]
    if any(case.shape != first.shape for case in cases):
        raise TypeError(
            f"select cases must have the same shapes, got {[case.shape for case in cases]}."
        )
    if which.shape and which.shape != first.shape:
        raise TypeError(
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.shape} but case shape {first.shape}."
        )
    check_same_dtypes("select", cases)
    return ShapedArray(first.shape, first.dtype, all(case.weak_type for case in cases))
