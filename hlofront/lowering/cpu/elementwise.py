"""Replacements of elementwise functions of large arrays on CPUs by vectorized formulas.

Where XLA has no formula of its own, its CPU code calls a scalar function of the C library for each
element, and it divides integers one by one. LLVM vectorizes formulas.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
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
from hlofront.primitives.elementwise.converting import convert

# A function of the operands.
OfOperands = Callable[..., Formula]


def replaced_by_formula(
    primitive: Primitive,
    dtype: NumPyDType,
    description: str = "A formula that is vectorized.",
) -> Callable[[OfOperands], OfOperands]:
    """Add a formula to the table of replacements, from the size in min_sizes.py on.

    Args:
      primitive: an elementwise primitive without parameters other than an accuracy.
      dtype: the dtype of the operands and the result; floats narrower than float32 are converted
        to it.
      description: what the table says of it.

    Returns:
      A decorator of a function of formulas.
    """

    def register(formula: OfOperands) -> OfOperands:
        emit_formula = partial(_emit, formula=formula, dtype=dtype)
        of_integers = issubdtype(dtype, np.integer)
        min_sizes, kind = MIN_SIZES[primitive.name], "integers" if of_integers else dtype.name

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
        replaces(primitive, form=form, home=home, needs_barriers=True, splits=True)(match)
        return formula

    return register


def _emit(build: Builder, *operands: Value, formula: OfOperands, dtype: NumPyDType) -> Value:
    """Emit a formula behind a barrier.

    Args:
      operands: the operands of the equation.
      formula: a function of the operands in the dtype.
      dtype: the dtype to which the operands are converted.
    """
    (result,) = build.avals_out
    operands = tuple(build.broadcast_operands(*operands))
    avals = [aval.update(shape=result.shape) for aval in build.avals_in]

    def of_arrays(*arrays: Array) -> Array:
        formulas = [Formula(convert(x, dtype, False)) for x in arrays]
        return convert(formula(*formulas).value, result.dtype, False)

    with enable_x64(True):
        (value,) = build.by_tracing(of_arrays, operands, avals)
    # XLA would compute the formula again for each of its users, and for each of their users; the
    # quotient in formulas for integers is computed once.
    if issubdtype(dtype, np.integer):
        return value
    return build.barrier((value,), (result,))[0]
