# pyright: strict
"""The transformation jet: Taylor mode, and rules of other packages' primitives for it."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import result_type, to_inexact_dtype
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import Series, ZeroSeries, zero_series
from hlofront.core.trace import as_array

# The rules of calls, branches and loops are loaded with the transformation that uses them.
from hlofront.higher_order import taylor_rules as taylor_rules
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.taylor_rules import integral, scaled
from hlofront.primitives.rules.derivatives import zeros_of
from hlofront.primitives.rules.taylor import (
    Expansion,
    constant_rule,
    has_terms,
    linear_rule,
    polynomial,
)
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import check_callable
from hlofront.transforms.grad import FlatCall
from hlofront.transforms.taylor import jet_flat

Function = Callable[..., PyTree]


@boundary
def jet(
    fun: Function,
    primals: ArrayLikes,
    series: Sequence[ArrayLikes],
    factorial_scaled: bool = True,
    **_: object,
) -> tuple[PyTree, PyTree]:
    """Return the value of a function at a point of a curve, and its derivatives along the curve.

    The curve goes through `primals` and is defined by its derivatives there: the series (v, 0, 0)
    of an argument x stands for the line x + t v, and the results are the derivatives of orders 1 to
    3 with respect to t. For most operations the cost of n orders grows as n squared, and for almost
    all others as a polynomial in n, whereas that of nested `jvp` doubles with each order.

    A function with a custom_jvp rule is expanded by that rule, as in nested `jvp`; custom_vjp rules
    are ignored.

    Args:
      fun: a function of arrays that returns a pytree of arrays.
      primals: a tuple or list of the arguments of `fun`: arrays or numbers; integers are converted
          to floats.
      series: for each argument a tuple or list of its derivatives of orders 1 to n, of the shape
        and dtype of the argument.
      factorial_scaled: whether the terms of series are derivatives. If not, they are coefficients
        of power series: derivatives divided by the factorial of their order.

    Returns:
      A pair: the result of `fun`, and its pytree with a list of n terms instead of each array.
      Terms of a result that is not floating or complex are zeros of the default float dtype.

    Raises:
      ValueError: if arguments or terms are not arrays, or series are absent or of different
        lengths.
      TypeError: if a term's dtype does not promote to that of its argument, or its shape does not
        broadcast to the argument's.

    Example:
      >>> value, derivatives = jet(lambda x: x**3, (2.0,), ((1.0, 0.0),))
      >>> print(value, *derivatives)  # 2**3, 3 * 2**2 and 6 * 2
      8.0 12.0 12.0

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 13.
    """
    check_callable(fun, "jet")
    primals, series = list(primals), [list(terms) for terms in series]
    if len(primals) != len(series):
        raise ValueError(
            f"jet requires one series per argument: got {len(series)} series for {len(primals)} "
            "arguments"
        )
    order = _common_order(series)
    for position, (x, terms) in enumerate(zip(primals, series, strict=True)):
        _check_array(x, f"primal value at position {position}")
        for k, term in enumerate(terms):
            _check_array(term, f"term {k} for argument {position}")
    primals = [_floating(x) for x in primals]
    scales = [1 / math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    coefficients = [
        [
            scaled(_term_of(x, term, position), scale)
            for term, scale in zip(terms, scales, strict=True)
        ]
        for position, (x, terms) in enumerate(zip(primals, series, strict=True))
    ]
    signature = Signature(fun)
    call = FlatCall(fun, signature, tree.tree_structure(tuple(primals)))
    if order:
        info = DebugInfo("jet", signature.find_where)
        results, expansions = jet_flat(call, primals, coefficients, info)
    else:
        results = call(*primals)
        expansions = [zero_series] * len(results)
    result, _aux = call.split(results)
    return result, call.out_tree.unflatten(
        [
            [zeros_of(_aval_of_terms(x))] * order
            if isinstance(terms, ZeroSeries)
            else [as_array(scaled(t, 1 / scale)) for t, scale in zip(terms, scales, strict=True)]
            for x, terms in zip(results, expansions, strict=True)
        ]
    )


def jet2(
    fun: Function,
    primals: ArrayLikes,
    series: Sequence[ArrayLikes],
    *,
    factorial_scaled: bool = False,
    **_: object,
) -> tuple[PyTree, PyTree]:
    """Return the value of a function at a point of a curve, and its series along the curve.

    Args:
      fun: a function of arrays that returns a pytree of arrays.
      primals: a tuple or list of the arguments of `fun`: arrays or numbers.
      series: for each argument a tuple or list of its terms of orders 1 to n, of its shape and
        dtype.
      factorial_scaled: whether terms are derivatives. By default they are coefficients of power
        series: derivatives divided by the factorial of their order.

    Returns:
      A pair: the result of `fun`, and its pytree with a list of n terms instead of each array.

    Raises:
      ValueError: if arguments or terms are not arrays, or series are absent or of different
        lengths.
      TypeError: if a term's dtype or shape does not fit its argument.
    """
    return jet(fun, primals, series, factorial_scaled)


def _common_order(series: Sequence[ArrayLikes]) -> int:
    lengths = sorted({len(terms) for terms in series})
    if len(lengths) != 1:
        raise ValueError(
            "jet terms have inconsistent lengths for different arguments: expected at least one "
            f"argument, and one series of n terms for each, got series of lengths {lengths}"
        )
    return lengths[0]


def _check_array(x: object, name: str) -> None:
    if is_value(x):
        return
    leaves = tree.tree_leaves(x)
    if len(leaves) == 1 and leaves[0] is x:
        raise TypeError(
            f"{name} is {source.shortened(repr(x))} of type {type(x)}, which is not a valid JAX "
            "type: jet expects arrays or numbers"
        )
    raise ValueError(
        f"{name} is not an array but {source.shortened(repr(x))}: take its leaves with "
        "hlofront.tree.flatten, and let the function of jet put them together again"
    )


def _floating(x: ArrayLike) -> ArrayLike:
    """Return an argument as an array; integers are converted to a float dtype."""
    x = as_array(x)
    aval = typeof(x)
    return x if has_terms(x) else convert(x, to_inexact_dtype(aval.dtype), aval.weak_type)


def _term_of(x: ArrayLike, term: ArrayLike, position: int) -> ArrayLike:
    """Return a term converted to the type of its argument."""
    aval = typeof(x)
    if result_type(x, term) != aval.dtype:
        raise TypeError(
            f"a term of argument {position} has the dtype {typeof(term).dtype}, which does not "
            f"promote to the argument's, {aval.dtype}: convert the one or the other"
        )
    term = convert(as_array(term), aval.dtype, aval.weak_type)
    shape = typeof(term).shape
    if shape == aval.shape:
        return term
    try:
        broadcasts = np.broadcast_shapes(shape, aval.shape) == aval.shape
    except ValueError:
        broadcasts = False
    if not broadcasts or len(shape) not in (0, aval.ndim):
        raise TypeError(
            f"a term of argument {position} has the shape {shape}, expected the argument's shape "
            f"{aval.shape}"
        )
    return broadcast_in_dim(term, aval.shape, ascending(len(shape)))


def _aval_of_terms(x: ArrayLike) -> ShapedArray:
    aval = typeof(x)
    return aval if has_terms(x) else ShapedArray(aval.shape, to_inexact_dtype(aval.dtype), True)


# ---- rules of other packages' primitives ---------------------------------------------------------


def deflinear(prim: Primitive) -> None:
    """Declare a primitive to be linear, jointly in all floating operands, in Taylor mode."""
    rules.taylor[prim] = linear_rule(prim)


def defzero(prim: Primitive) -> None:
    """Declare the results of a primitive to be constant in Taylor mode."""
    rules.taylor[prim] = constant_rule(prim)


def def_deriv(prim: Primitive, deriv: Function) -> None:
    """Define the Taylor rule of a primitive of one operand by its derivative.

    Args:
      prim: the primitive, whose result has the shape of its operand.
      deriv: (operand, **params) -> the elementwise derivative of the result.
    """

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        return deriv_prop(prim, deriv, primals, series, **params)

    rules.taylor[prim] = rule


def def_comp(prim: Primitive, comp: Function, **kwargs: object) -> None:
    """Define the Taylor rule of a primitive by a function whose operations have Taylor rules.

    Args:
      prim: the primitive.
      comp: computes the result of the primitive from its operands and parameters.
      **kwargs: further arguments of `comp`.
    """

    def composition(*operands: ArrayLike, **params: object) -> list[ArrayLike]:
        results = comp(*operands, **params)
        return list(results) if prim.multiple_results else [results]

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        results, expansions = jet_flat(
            lambda *operands: composition(*operands, **params, **kwargs), primals, series
        )
        return (results, expansions) if prim.multiple_results else (results[0], expansions[0])

    rules.taylor[prim] = rule


def linear_prop(
    prim: Primitive, primals_in: ArrayLikes, series_in: Sequence[Series], **params: object
) -> Expansion:
    """Return the result and series of a primitive that is linear in its floating operands."""
    return linear_rule(prim)(primals_in, series_in, **params)


def zero_prop(
    prim: Primitive, primals_in: ArrayLikes, series_in: Sequence[Series], **params: object
) -> Expansion:
    """Return the result of a primitive, and the series of a constant."""
    return constant_rule(prim)(primals_in, series_in, **params)


def deriv_prop(
    prim: Primitive,
    deriv: Function,
    primals_in: ArrayLikes,
    series_in: Sequence[Series],
    **params: object,
) -> Expansion:
    """Return the result and series of a primitive of one operand, by its elementwise derivative."""
    (x,), (terms,) = primals_in, series_in
    result = prim.bind(x, **params)
    if isinstance(terms, ZeroSeries):
        return result, terms
    if len(terms) == 1:
        return result, integral([x, *terms], [deriv(x, **params)])

    def slope(operand: ArrayLike) -> list[ArrayLike]:
        return [deriv(operand, **params)]

    slopes, (slope_terms,) = jet_flat(slope, [x], [terms[:-1]])
    return result, integral([x, *terms], polynomial(slopes[0], slope_terms))
