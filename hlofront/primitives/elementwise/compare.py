"""Primitives that compare elements and select by the result: eq, lt, select_n."""

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, jvp, transpose
from hlofront.core.symbolic_zeros import Cotangent, Cotangents, Dual, Operand, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.elementwise.families import (
    ANY,
    ORDERED,
    binary,
    check_same_dtypes,
    elementwise_primitive,
    to_bool,
)
from hlofront.primitives.rules.batching import batch_of_one_shape
from hlofront.primitives.rules.derivatives import instantiate, is_linear, no_derivative, zeros_of

eq_p, eq = binary("eq", ANY, "Return elementwise `x == y`, as booleans.", result_dtype=to_bool)
ne_p, ne = binary("ne", ANY, "Return elementwise `x != y`, as booleans.", result_dtype=to_bool)
ge_p, ge = binary("ge", ORDERED, "Return elementwise `x >= y`, as booleans.", result_dtype=to_bool)
gt_p, gt = binary("gt", ORDERED, "Return elementwise `x > y`, as booleans.", result_dtype=to_bool)
le_p, le = binary("le", ORDERED, "Return elementwise `x <= y`, as booleans.", result_dtype=to_bool)
lt_p, lt = binary("lt", ORDERED, "Return elementwise `x < y`, as booleans.", result_dtype=to_bool)

# The total order of floating-point numbers: -NaN < -inf < -0.0 < 0.0 < inf < NaN.
eq_to_p = elementwise_primitive("eq_to", ORDERED, 2, to_bool)
le_to_p = elementwise_primitive("le_to", ORDERED, 2, to_bool)
lt_to_p = elementwise_primitive("lt_to", ORDERED, 2, to_bool)

no_derivative(eq_p, ne_p, ge_p, gt_p, le_p, lt_p, eq_to_p, le_to_p, lt_to_p)

select_n_p = Primitive("select_n")


@boundary
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return elementwise `on_true` where `pred` is True, else `on_false`.

    Args:
      pred: booleans: a scalar, or an array of the shape of the cases.
      on_true, on_false: arrays of equal shape and dtype.

    Raises:
      TypeError: if the shapes or dtypes do not fit.

    Example:
      >>> x = jnp.array([-2.0, 3.0])
      >>> lax.select(x > 0, x, jnp.zeros(2))
      Array([0., 3.], dtype=float32)
    """
    return process(select_n_p, (pred, on_false, on_true), {})


@boundary
def select_n(which: object, *cases: ArrayLike) -> Array:
    """Return elementwise the case that `which` selects by its index; False is 0, True is 1.

    Args:
      which: integers, or booleans if there are at most two cases: a scalar, or an array of their
        shape. Integers out of range select the first or the last case.
      cases: one or more arrays of equal shape and dtype.

    Raises:
      ValueError: if there are no cases.
      TypeError: if the shapes or dtypes do not fit.

    Example:
      >>> lax.select_n(jnp.array([2, 0]), *jnp.array([[1, 2], [10, 20], [100, 200]]))
      Array([100,   2], dtype=int32)
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    return process(select_n_p, (which, *cases), {})


@infer(select_n_p)
def _(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
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


@jvp(select_n_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    result = process(select_n_p, tuple(primals), {})
    cases = tangents[1:]
    if all(type(tangent) is Zero for tangent in cases):
        return result, Zero.of(result)
    # Zeros are made once, with the dtype of the other tangents but perhaps not their weak type.
    zeros = None
    if any(type(tangent) is Zero for tangent in cases):
        zeros = instantiate(next(tangent for tangent in cases if type(tangent) is Zero))
    case_tangents = [zeros if type(tangent) is Zero else tangent for tangent in cases]
    return result, process(select_n_p, (primals[0], *case_tangents), {})


@transpose(select_n_p)
def _(cotangent: ArrayLike, which: ArrayLike, *cases: Operand) -> Cotangents:
    if len(cases) == 1:
        return [None, cotangent]
    zeros = zeros_of(typeof(cotangent))
    results: list[Cotangent | None] = [None]
    for number, case in enumerate(cases):
        if not is_linear(case):
            results.append(None)
        elif typeof(which).dtype == np.bool_:
            either = (zeros, cotangent) if number else (cotangent, zeros)
            results.append(process(select_n_p, (which, *either), {}))
        else:
            chosen = _names(which, number, len(cases))
            results.append(process(select_n_p, (chosen, zeros, cotangent), {}))
    return results


def _names(which: ArrayLike, number: int, cases: int) -> Array:
    """Return booleans: where `which`, clamped to the range of cases, selects case `number`."""
    compare = le if number == 0 else ge if number == cases - 1 else eq
    return compare(which, host_number(number, typeof(which).dtype))


batch_of_one_shape(select_n_p, may_be_scalars=(0,))
