"""Replacements of elementwise functions of large arrays on CPUs by vectorized formulas.

If XLA has no formula of its own, its CPU code calls a scalar function of the C library for each
element; it also divides integers one at a time. LLVM vectorizes formulas. Some formulas are only
correct for usual operands, such as angles that are not huge. Then the program first checks all
operands, and computes the formula or, if any operand is unusual, XLA's operation.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import float32, int32
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.formulas import Formula
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import (
    Candidate,
    Emit,
    computed_in,
    has_default_accuracy,
    is_large,
    replaces,
)
from hlofront.primitives.arrays.reducing import reduce_max
from hlofront.primitives.elementwise.converting import convert

# A function of the operands.
OfOperands = Callable[..., Formula]


def replaced_by_formula(
    primitive: Primitive,
    dtype: NumPyDType,
    needs_fallback: OfOperands | None = None,
    description: str = "A vectorized formula.",
) -> Callable[[OfOperands], OfOperands]:
    """Add a formula to the table of replacements, from the size in min_sizes.py on.

    Args:
      primitive: an elementwise primitive without parameters other than an accuracy.
      dtype: the dtype of the operands and the result; floats narrower than float32 are converted
        to it.
      needs_fallback: a function of the operands that returns where the formula is wrong; None if it
        is always correct.
      description: its description in the table.

    Returns:
      A decorator of a function of formulas.
    """

    def register(formula: OfOperands) -> OfOperands:
        emit_formula = partial(_emit, formula=formula, needs_fallback=needs_fallback, dtype=dtype)
        of_integers = issubdtype(dtype, np.integer)
        min_sizes, kind = MIN_SIZES[primitive.name], "integers" if of_integers else dtype.name
        # Each device would have to know whether any other has an unusual operand.
        splits = needs_fallback is None

        def match(equation: Candidate) -> Emit | None:
            (result,) = equation.avals_out
            if computed_in(result.dtype) != dtype or not is_large(result, min_sizes[kind]):
                return None
            # LLVM turns integer division by a constant into multiplication, and most scalars are
            # constants.
            if of_integers and equation.avals_in[1].size == 1:
                return None
            return emit_formula if has_default_accuracy(equation) else None

        match.__doc__ = description
        home, form = formula.__module__, dtype.name
        replaces(primitive, form=form, home=home, needs_barriers=True, splits=splits)(match)
        return formula

    return register


def _emit(
    build: Builder,
    *operands: Value,
    formula: OfOperands,
    needs_fallback: OfOperands | None,
    dtype: NumPyDType,
) -> Value:
    """Emit a formula behind a barrier, or the equation's operation if any operand is unusual.

    Args:
      operands: the operands of the equation.
      formula: a function of the operands in the dtype.
      needs_fallback: a function of the operands that returns where the formula is wrong, or None.
      dtype: the dtype to which the operands are converted.
    """
    (result,), params = build.avals_out, build.current.params
    operands = tuple(build.broadcast_operands(*operands))
    avals = [aval.update(shape=result.shape) for aval in build.avals_in]

    def converted(arrays: Sequence[Array]) -> list[Formula]:
        return [Formula(convert(x, dtype, False)) for x in arrays]

    def of_arrays(*arrays: Array) -> Array:
        return convert(formula(*converted(arrays)).value, result.dtype, False)

    def by_formula(build: Builder) -> list[Value]:
        with enable_x64(True):
            return build.by_tracing(of_arrays, operands, avals)

    def by_operation(build: Builder) -> list[Value]:
        build.avals_in, build.avals_out = avals, [result]
        return [lower[build.primitive](build, *operands, **params)]

    if needs_fallback is None:
        (value,) = by_formula(build)
    else:
        any_is = partial(_any_is, needs_fallback, converted)
        with enable_x64(True):
            (branch,) = build.by_tracing(any_is, operands, avals)
        (value,) = build.case(branch, [by_formula, by_operation], [result])
    # XLA would recompute the formula for each of its users, and for each of their users. Quotients,
    # as in formulas for integers, are only computed once.
    if issubdtype(dtype, np.integer):
        return value
    return build.barrier((value,), (result,))[0]


def _any_is(
    needs_fallback: OfOperands,
    converted: Callable[[Sequence[Array]], list[Formula]],
    *arrays: Array,
) -> Array:
    """Return 1 in int32 if any operand is unusual, else 0."""
    unusual = needs_fallback(*converted(arrays)).value
    # A maximum of floats is faster to compile than one of booleans.
    greatest = reduce_max(convert(unusual, float32, False), range(unusual.ndim))
    return convert(greatest, int32, False)
