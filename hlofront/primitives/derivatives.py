"""Makers of derivative rules, and what tangents need: their sum, and zeros as arrays."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.config import allow_f16_reductions
from hlofront.base.dtypes import float0, python_scalar_dtype
from hlofront.base.elements import bfloat16, host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.rules import Results, RuleTable, Tangents, infer, transpose
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, UndefinedPrimal, Zero
from hlofront.core.trace import is_eager, process

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Rule = Callable[..., Any]

# ---- tangents ------------------------------------------------------------------------------------

add_any_p = Primitive("add_any")


@infer(add_any_p)
def _(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if x.dtype != y.dtype:
        raise TypeError(
            f"the derivatives {x.str_short()} and {y.str_short()} of one value cannot be added, as "
            "their dtypes differ: a rule of a custom_vjp function gives a cotangent of another "
            "dtype than its argument's."
        )
    return x if x is y else x.update(weak_type=x.weak_type and y.weak_type)


def add_tangents(x: Tangent, y: Tangent) -> Tangent:
    """The sum of two tangents or cotangents of one type, either of which may be a Zero."""
    if type(x) is Zero:
        return y
    # Tangents of integers: there is nothing to add, and no device has them.
    if type(y) is Zero or (type(x) is np.ndarray and x.dtype == float0):
        return x
    return process(add_any_p, (x, y), {})


def zeros_of(aval: ShapedArray) -> ArrayLike:
    """Zeros of this type; of float0 they are NumPy's, as no device has it."""
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    zero = host_number(0, aval.dtype)
    if aval.weak_type and python_scalar_dtype(type(zero.item())) == aval.dtype:
        zero = zero.item()
    if not aval.shape and not is_eager():
        return zero  # a literal of the program that is being written down
    # By its name, because files that define operations on shapes need this one for their rules.
    return process(
        ALL["broadcast_in_dim"],
        (zero,),
        {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None},
    )


def instantiate(tangent: Tangent) -> ArrayLike:
    """A tangent as an array, where it is a Zero."""
    return zeros_of(tangent.aval) if type(tangent) is Zero else tangent


def is_linear(x: object) -> "TypeIs[UndefinedPrimal]":
    """Say whether the operation is linear in this operand of its transpose rule."""
    return type(x) is UndefinedPrimal


def unbroadcast(cotangent: ArrayLike, operand: UndefinedPrimal) -> ArrayLike:
    """Sum a cotangent over the axes that its operand was broadcast along.

    Operands are broadcast as elementwise operations do: scalars, and axes of size 1.
    """
    wanted = operand.aval.shape
    shape = typeof(cotangent).shape
    if shape == wanted:
        return cotangent
    if wanted:
        axes = tuple([i for i, size in enumerate(shape) if size != wanted[i]])
    else:
        axes = tuple(range(len(shape)))
    # By their names, as in `zeros_of`.
    check_sum_allowed(cotangent, axes)
    cotangent = process(ALL["reduce_sum"], (cotangent,), {"axes": axes, "out_sharding": None})
    if not wanted:
        return cotangent
    params = {"new_sizes": wanted, "dimensions": None, "sharding": None}
    return process(ALL["reshape"], (cotangent,), params)


# ---- makers --------------------------------------------------------------------------------------


def derivative(primitive: Primitive, *contributions: Rule | None) -> None:
    """Register the jvp rule of a primitive with one result from its partial derivatives.

    One contribution per operand: (tangent, *operands, **params) -> its share of the tangent of
    the result. None says that the result does not vary with that operand.
    """

    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        result = process(primitive, tuple(primals), params)
        total: Any = None
        for contribution, tangent in zip(contributions, tangents, strict=True):
            if type(tangent) is not Zero and contribution is not None:
                share = contribution(tangent, *primals, **params)
                total = share if total is None else add_tangents(total, share)
        return result, Zero.of(result) if total is None else total

    _register(rules.jvp, primitive, rule)


def derivative_from_result(primitive: Primitive, *contributions: Rule | None) -> None:
    """As `derivative`, of contributions (tangent, result, *operands, **params)."""

    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        result = process(primitive, tuple(primals), params)
        total: Any = None
        for contribution, tangent in zip(contributions, tangents, strict=True):
            if type(tangent) is not Zero and contribution is not None:
                share = contribution(tangent, result, *primals, **params)
                total = share if total is None else add_tangents(total, share)
        return result, Zero.of(result) if total is None else total

    _register(rules.jvp, primitive, rule)


def linear(primitive: Primitive, transposed: Rule | None = None) -> None:
    """Register that the result is linear in all operands together: tangents pass as values do.

    `transposed` is the transpose rule, where there is one to register here.
    """

    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        result = process(primitive, tuple(primals), params)
        return result, process(primitive, tuple(map(instantiate, tangents)), params)

    _register(rules.jvp, primitive, rule)
    if transposed is not None:
        transpose(primitive)(transposed)


def linear_in_first(primitive: Primitive) -> None:
    """Register that the result is linear in operand 0, and that the others have no tangents."""

    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        result = process(primitive, tuple(primals), params)
        tangent = tangents[0]
        if type(tangent) is Zero:
            return result, Zero.of(result)
        return result, process(primitive, (tangent, *primals[1:]), params)

    _register(rules.jvp, primitive, rule)


def linear_by_cotangent(primitive: Primitive, transpose_rule: Rule) -> None:
    """As `linear`, of a transpose rule that is given the cotangent and parameters alone."""
    linear(primitive, lambda cotangent, *operands, **params: transpose_rule(cotangent, **params))


def bilinear(prim: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Register that the result is linear in each of two operands.

    `lhs_rule(cotangent, x, y, **params)`, with `x.aval` alone known, gives the cotangent of the
    first operand, `rhs_rule` likewise that of the second.
    """

    def moved_left(tangent: ArrayLike, x: ArrayLike, y: ArrayLike, **params: object) -> Array:
        return process(prim, (tangent, y), params)

    def moved_right(tangent: ArrayLike, x: ArrayLike, y: ArrayLike, **params: object) -> Array:
        return process(prim, (x, tangent), params)

    derivative(prim, moved_left, moved_right)

    def rule(
        cotangent: ArrayLike, x: Operand, y: Operand, **params: object
    ) -> Sequence[Cotangent | None]:
        if is_linear(x):
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    _register(rules.transpose, prim, rule)


def no_derivative(*primitives: Primitive) -> None:
    """Register that results never vary smoothly: integers, booleans, steps."""
    for primitive in primitives:
        _register(rules.jvp, primitive, _constant_rule(primitive))


def _constant_rule(primitive: Primitive) -> Rule:
    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        results = process(primitive, tuple(primals), params)
        if primitive.multiple_results:
            return results, [Zero.of(result) for result in results]
        return results, Zero.of(results)

    return rule


def unknown_derivative(primitive: Primitive, advice: str) -> None:
    """Register a jvp rule that raises NotImplementedError, for a missing derivative.

    Args:
      advice: the end of the message.
    """

    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        raise NotImplementedError(  # the class that JAX raises
            f"Differentiation rule for '{primitive}' not implemented: {advice}"
        )

    _register(rules.jvp, primitive, rule)


def _register(table: RuleTable[Any], primitive: Primitive, rule: Rule) -> None:
    rule.__name__ = rule.__qualname__ = f"{primitive.name}_{table.name}"
    table(primitive)(rule)


def aval_of_operand(x: Operand) -> AbstractValue:
    """The aval of an operand of a transpose rule, linear or known."""
    return x.aval if type(x) is UndefinedPrimal else typeof(x)


linear(add_any_p, lambda cotangent, x, y: (cotangent, cotangent))


_NARROW_FLOATS = (np.dtype(np.float16), np.dtype(bfloat16))


def check_sum_allowed(operand: ArrayLike, axes: Collection[int]) -> None:
    """Raise ValueError for a sum of 16-bit floats that jax_allow_f16_reductions forbids.

    Whoever binds reduce_sum asks, as its rule `infer` is not asked again for the same avals.
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
