"""Makers of derivative rules, sums of tangents, and arrays of zeros."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hlofront.base.config import allow_f16_reductions
from hlofront.base.dtypes import float0, python_scalar_dtype
from hlofront.base.elements import ExtendedDType, bfloat16, host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.rules import JvpResult, JvpRule, RuleTable, infer, transpose
from hlofront.core.sharding.manual_axes import SAME
from hlofront.core.sharding.requested_shardings import cotangent_sharding
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.core.symbolic_zeros import (
    Cotangent,
    Cotangents,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import is_eager, process
from hlofront.primitives.rules import taylor

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# ---- types of the arguments of makers ------------------------------------------------------------
# Types for one or two operands let checkers infer the parameter types of lambdas.


class ContributionOfOne(Protocol):
    """The type of the derivative of an operation of one operand, which receives its parameters."""

    def __call__(self, t: ArrayLike, x: ArrayLike, /, **params: object) -> Tangent: ...


class ContributionOfTwo(Protocol):
    """The type of a function of a tangent, two values and an operation's parameters."""

    def __call__(
        self, t: ArrayLike, x: ArrayLike, y: ArrayLike, /, **params: object
    ) -> Tangent: ...


# The contribution of one operand's tangent to the result's tangent.
Contribution = (
    Callable[[ArrayLike, ArrayLike], Tangent]
    | Callable[[ArrayLike, ArrayLike, ArrayLike], Tangent]
    | Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Tangent]
    | ContributionOfOne
    | ContributionOfTwo
    | Callable[..., Tangent]
)


class CotangentsOfOne(Protocol):
    """The type of a transpose rule of one linear operand, which receives the parameters."""

    def __call__(
        self, cotangent: ArrayLike, x: UndefinedPrimal, /, **params: object
    ) -> Cotangents: ...


# A transpose rule of an operation that is linear in all operands jointly.
LinearTransposeRule = (
    Callable[[ArrayLike, UndefinedPrimal], Cotangents]
    | Callable[[ArrayLike, Operand, Operand], Cotangents]
    | CotangentsOfOne
    | Callable[..., Cotangents]
)

# ---- tangents ------------------------------------------------------------------------------------

add_any_p = Primitive("add_any")
# JAX's other name for it.
add_jaxvals_p = add_any_p


@infer(add_any_p)
def _(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if x.dtype != y.dtype:
        raise TypeError(
            f"the derivatives {x.str_short()} and {y.str_short()} of one value cannot be added, as "
            "their dtypes differ: a rule of a custom_vjp function gives a cotangent of another "
            "dtype than its argument's."
        )
    return x  # As in JAX, even if only y is strongly typed.


def add_tangents(x: Tangent, y: Tangent) -> Tangent:
    """Return the sum of two tangents or cotangents of equal type, where either may be a Zero."""
    if type(x) is Zero:
        return y
    # Tangents of integers have dtype float0, which no device stores: there is nothing to add.
    if type(y) is Zero or (type(x) is np.ndarray and x.dtype == float0):
        return x
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, ExtendedDType):
        return dtype.add(x, y)
    return process(add_any_p, (x, y), {})


def zeros_of(aval: ShapedArray) -> ArrayLike:
    """Return zeros as an array of an aval; a NumPy array for float0, which no device stores."""
    if aval.dtype == float0 and not has_symbolic_size(aval.shape):
        return np.zeros(aval.shape, float0)
    if isinstance(aval.dtype, ExtendedDType):
        zero: Any = aval.dtype.zero()
    else:
        zero = np.zeros((), float0) if aval.dtype == float0 else host_number(0, aval.dtype)
    if aval.weak_type:
        number: complex = zero.item()
        if python_scalar_dtype(type(number)) == aval.dtype:
            zero = number
    varies = aval.manual_axis_type is not SAME
    if not aval.shape and not is_eager() and aval.spec is None and not varies:
        return zero  # A literal of the program.
    # Looked up by name, because files that define operations on shapes import this one.
    sharding = aval.sharding if aval.spec is not None else None
    zeros = process(
        ALL["broadcast_in_dim"],
        (zero,),
        {"shape": aval.shape, "broadcast_dimensions": (), "sharding": sharding},
    )
    if varies:
        axes = tuple(sorted(aval.manual_axis_type.varying, key=str))
        zeros = process(ALL["pvary"], (zeros,), {"axes": axes})
    return zeros


def _instantiated(zero: Zero) -> ArrayLike:
    return zeros_of(zero.aval)


Zero.instantiate = _instantiated


def instantiate(tangent: Tangent) -> ArrayLike:
    """Return a tangent as an array: zeros for a Zero."""
    return zeros_of(tangent.aval) if type(tangent) is Zero else tangent


def is_linear(x: object) -> "TypeIs[UndefinedPrimal]":
    """Return whether an operand of a transpose rule is a linear one."""
    return type(x) is UndefinedPrimal


def known(x: Operand) -> ArrayLike:
    """Return the value of a known operand of a transpose rule.

    Raises:
      TypeError: if it is linear, although the operation is linear in one operand at a time.
    """
    if type(x) is UndefinedPrimal:
        raise TypeError(f"an operand must be known, and is linear: {x}")
    return x


def unbroadcast(cotangent: ArrayLike, operand: UndefinedPrimal) -> ArrayLike:
    """Sum a cotangent over the axes that its operand was broadcast along.

    The operand is a scalar, or has size 1 along the axes that are summed.
    """
    expected = operand.aval.shape
    shape = typeof(cotangent).shape
    if shape == expected:
        return cotangent
    if expected:
        axes = tuple([i for i, size in enumerate(shape) if size != expected[i]])
    else:
        axes = tuple(range(len(shape)))
    # The primitives are looked up by name, because their files import this one.
    check_sum_allowed(cotangent, axes)
    cotangent = process(ALL["reduce_sum"], (cotangent,), {"axes": axes, "out_sharding": None})
    if not expected:
        return cotangent
    operand_sharding = cotangent_sharding(operand.aval, cotangent)
    params = {"new_sizes": expected, "dimensions": None, "sharding": operand_sharding}
    return process(ALL["reshape"], (cotangent,), params)


# ---- makers --------------------------------------------------------------------------------------


def derivative(primitive: Primitive, *contributions: Contribution | None) -> None:
    """Register the jvp rule of a primitive with one result from its partial derivatives.

    Args:
      primitive: the primitive.
      contributions: per operand a function (tangent, *operands, **params) -> its contribution to
        the result's tangent; None if the derivative with respect to this operand is zero.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        result = process(primitive, tuple(primals), params)
        total: Tangent | None = None
        for contribution, tangent in zip(contributions, tangents, strict=True):
            if type(tangent) is not Zero and contribution is not None:
                share = contribution(tangent, *primals, **params)
                total = share if total is None else add_tangents(total, share)
        return result, Zero.of(result) if total is None else total

    _register(rules.jvp, primitive, rule)


def derivative_from_result(primitive: Primitive, *contributions: Contribution | None) -> None:
    """Register the jvp rule of a primitive with one result from derivatives that use the result.

    Args:
      primitive: the primitive.
      contributions: per operand a function (tangent, result, *operands, **params) -> its
        contribution to the result's tangent; None if the derivative with respect to this operand is
        zero.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        result = process(primitive, tuple(primals), params)
        total: Tangent | None = None
        for contribution, tangent in zip(contributions, tangents, strict=True):
            if type(tangent) is not Zero and contribution is not None:
                share = contribution(tangent, result, *primals, **params)
                total = share if total is None else add_tangents(total, share)
        return result, Zero.of(result) if total is None else total

    _register(rules.jvp, primitive, rule)


def linear(primitive: Primitive, transposed: LinearTransposeRule | None = None) -> None:
    """Register the jvp rule of a primitive that is linear in all operands jointly.

    `transposed` is its transpose rule; None if that is registered elsewhere.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        result = process(primitive, tuple(primals), params)
        return result, process(primitive, tuple(map(instantiate, tangents)), params)

    _register(rules.jvp, primitive, rule)
    taylor.linear(primitive)
    if transposed is not None:
        transpose(primitive)(transposed)


def linear_in_first(primitive: Primitive) -> None:
    """Register the jvp rule of a primitive that is linear in operand 0.

    Tangents of the other operands are ignored.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        result = process(primitive, tuple(primals), params)
        tangent = tangents[0]
        if type(tangent) is Zero:
            return result, Zero.of(result)
        return result, process(primitive, (tangent, *primals[1:]), params)

    _register(rules.jvp, primitive, rule)
    taylor.linear_in_first(primitive)


def linear_by_cotangent(primitive: Primitive, transpose_rule: Callable[..., Cotangents]) -> None:
    """Register the jvp and transpose rules of a primitive that is linear in all operands jointly.

    `transpose_rule(cotangent, **params)` returns the cotangents of the operands.
    """

    def rule(cotangent: ArrayLike, *operands: UndefinedPrimal, **params: object) -> Cotangents:
        return transpose_rule(cotangent, **params)

    linear(primitive, rule)


def bilinear(
    prim: Primitive, lhs_rule: Callable[..., Cotangent], rhs_rule: Callable[..., Cotangent]
) -> None:
    """Register the jvp and transpose rules of a primitive that is linear in each of two operands.

    Args:
      prim: the primitive.
      lhs_rule: (cotangent, x, y, **params) -> cotangent of x, which is an UndefinedPrimal.
      rhs_rule: (cotangent, x, y, **params) -> cotangent of y, which is an UndefinedPrimal.
    """

    def moved_left(tangent: ArrayLike, x: ArrayLike, y: ArrayLike, **params: object) -> Array:
        return process(prim, (tangent, y), params)

    def moved_right(tangent: ArrayLike, x: ArrayLike, y: ArrayLike, **params: object) -> Array:
        return process(prim, (x, tangent), params)

    derivative(prim, moved_left, moved_right)
    taylor.bilinear(prim)

    def rule(cotangent: ArrayLike, x: Operand, y: Operand, **params: object) -> Cotangents:
        if is_linear(x):
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    _register(rules.transpose, prim, rule)


def no_derivative(*primitives: Primitive) -> None:
    """Register jvp rules with zero tangents, for integer, boolean or piecewise constant results."""
    for primitive in primitives:
        _register(rules.jvp, primitive, _constant_rule(primitive))
        taylor.locally_constant(primitive)


def _constant_rule(primitive: Primitive) -> JvpRule:
    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        results = process(primitive, tuple(primals), params)
        if primitive.multiple_results:
            return results, [Zero.of(result) for result in results]
        return results, Zero.of(results)

    return rule


def unknown_derivative(primitive: Primitive, advice: str) -> None:
    """Register a jvp rule that raises NotImplementedError, for a missing derivative.

    Args:
      primitive: the primitive.
      advice: the end of the message.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        raise NotImplementedError(  # JAX raises this class.
            f"Differentiation rule for '{primitive}' not implemented: {advice}"
        )

    _register(rules.jvp, primitive, rule)


def _register(table: RuleTable[Any], primitive: Primitive, rule: Callable[..., Any]) -> None:
    rule.__name__ = rule.__qualname__ = f"{primitive.name}_{table.name}"
    table(primitive)(rule)


def aval_of_operand(x: Operand) -> ShapedArray:
    """Return the aval of an operand of a transpose rule, linear or known."""
    return x.aval if type(x) is UndefinedPrimal else typeof(x)


linear(add_any_p, lambda cotangent, x, y: (cotangent, cotangent))


_NARROW_FLOATS = (np.dtype(np.float16), np.dtype(bfloat16))


def check_sum_allowed(operand: ArrayLike, axes: Collection[int]) -> None:
    """Raise ValueError for a sum of 16-bit floats that jax_allow_f16_reductions forbids.

    Callers that bind reduce_sum must check this, because its infer rule is cached by avals.
    """
    if allow_f16_reductions.value:
        return
    aval = typeof(operand)
    folded = [aval.shape[axis] for axis in axes if axis < aval.ndim]
    if aval.dtype in _NARROW_FLOATS and any(size != 1 for size in folded):
        raise ValueError(
            f"reduce_sum on operand {aval.str_short(True)} is not allowed when "
            "jax_allow_f16_reductions=False. Convert it to float32 first."
        )
