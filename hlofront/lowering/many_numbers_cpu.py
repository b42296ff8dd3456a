"""Elementwise functions of many numbers on CPUs, by formulas without branches and calls.

Where XLA has no formula of its own, its CPU code calls a scalar function of the C library for each
element, and it divides integers one by one. LLVM makes vector instructions of formulas. Some are
right for usual operands only, such as angles that are not huge. Then the program looks at all
operands first, and computes the formula, or XLA's operation if a single operand is unusual.

XLA gives two threads to a formula of some hundred elements, and one to an operation on less than
256 KiB. The other thread costs 70 to 90 us where it has to be woken, on an Intel Xeon of 2 cores.
So formulas are for more elements where XLA's operation takes a few nanoseconds for each: a sine of
4,096 numbers took 75 us as a formula, and takes 22. The least numbers here are those from which
one formula by itself takes no longer.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu, is_narrow_float
from hlofront.lowering.formulas import Formula
from hlofront.lowering.types import NumPyDType
from hlofront.primitives import elementwise as e
from hlofront.primitives.converting import convert
from hlofront.primitives.reducing import reduce_max

_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)
_int32 = np.dtype(np.int32)

# Fewer elements keep one operation, which is easier to read, whatever it is.
FEWEST = 4096

# A function of the operands.
OfOperands = Callable[..., Formula]


class _ManyNumbers(NamedTuple):
    """The rule of an elementwise primitive, for operands of one dtype."""

    formula: OfOperands
    """The result, in the dtype of the operands."""
    is_unusual: OfOperands | None
    """The elements for which the formula is wrong."""
    fewest: int
    """The least number of elements for which the formula takes less time."""


_RULES: dict[tuple[Primitive, NumPyDType], _ManyNumbers] = {}


def of_many(
    primitive: Primitive,
    dtype: NumPyDType,
    is_unusual: OfOperands | None = None,
    fewest: int = FEWEST,
) -> Callable[[OfOperands], OfOperands]:
    """Register a formula as the rule of many numbers on CPUs.

    Args:
      primitive: an elementwise primitive without parameters, but for an accuracy.
      dtype: the dtype of the operands and the result; floats narrower than float32 are converted
        to it.
      is_unusual: a function of the operands, which returns where the formula is wrong; None if it
        is right for all.
      fewest: the least number of elements for which the formula takes less time.

    Returns:
      A decorator of a function of formulas.
    """

    def register(formula: OfOperands) -> OfOperands:
        if not any(known is primitive for known, _ in _RULES):
            pays = partial(_pays, primitive)
            formula_on_cpu(primitive, when=pays, stored=True, elementwise=True)(_emit)
        _RULES[primitive, dtype] = _ManyNumbers(formula, is_unusual, fewest)
        return formula

    return register


def _dtype_of(result: ShapedArray) -> NumPyDType:
    """Return the dtype that a result is computed in."""
    return _float32 if is_narrow_float(result.dtype) else result.dtype


def _pays(primitive: Primitive, equation: Candidate) -> bool:
    """Return whether the equation has many numbers, of a dtype that the primitive has rules for."""
    (result,) = equation.avals_out
    rule = _RULES.get((primitive, _dtype_of(result)))
    if rule is None:
        return False
    # LLVM makes products of quotients of integers by a constant, which most scalars are.
    if _is_integer(result) and equation.avals_in[1].size == 1:
        return False
    is_usual = equation.params.get("accuracy") in (None, e.AccuracyMode.DEFAULT)
    return is_usual and result.size >= rule.fewest


def _is_integer(result: ShapedArray) -> bool:
    return issubdtype(result.dtype, np.integer)


def _emit(build: Builder, *operands: Value, **params: Any) -> Value:
    (result,) = build.avals_out
    dtype = _dtype_of(result)
    formula, is_unusual, _ = _RULES[build.primitive, dtype]
    return emit(build, formula, is_unusual, dtype, *operands, **params)


def emit(
    build: Builder,
    formula: OfOperands,
    is_unusual: OfOperands | None,
    dtype: NumPyDType,
    *operands: Value,
    more: Sequence[Value] = (),
    **params: Any,
) -> Value:
    """Emit a formula behind a barrier, or if any operand is unusual, the equation's operation.

    Args:
      formula: a function of the operands in the dtype, and more values.
      is_unusual: a function of the operands, which returns where the formula is wrong, or None.
      dtype: the dtype to which the operands are converted.
      operands: those of the equation.
      more: float64 values of the shape of the result.
      params: those of the equation.
    """
    (result,) = build.avals_out
    if is_unusual is not None and build.module.several_devices:
        # Each device would have to know whether another one has an unusual operand.
        return lower[build.primitive](build, *operands, **params)
    operands = tuple(build.broadcast_operands(*operands))
    avals = [aval.update(shape=result.shape) for aval in build.avals_in]

    def converted(arrays: Sequence[Array]) -> list[Formula]:
        return [Formula(convert(x, dtype, False)) for x in arrays]

    def of_arrays(*arrays: Array) -> Array:
        first, others = arrays[: len(operands)], arrays[len(operands) :]
        value = formula(*converted(first), *map(Formula, others)).value
        return convert(value, result.dtype, False)

    def by_formula(build: Builder) -> list[Value]:
        more_avals = [result.update(dtype=_float64)] * len(more)
        with enable_x64(True):
            return build.by_tracing(of_arrays, (*operands, *more), [*avals, *more_avals])

    def by_operation(build: Builder) -> list[Value]:
        build.avals_in, build.avals_out = avals, [result]
        return [lower[build.primitive](build, *operands, **params)]

    if is_unusual is None:
        (value,) = by_formula(build)
    else:
        any_is = partial(_any_is, is_unusual, converted)
        with enable_x64(True):
            (branch,) = build.by_tracing(any_is, operands, avals)
        (value,) = build.case(branch, [by_formula, by_operation], [result])
    # XLA would compute the formula again for each of its users, and in each of theirs; the quotient
    # in those of integers it computes once.
    if _is_integer(result):
        return value
    return build.barrier((value,), (result,))[0]


def _any_is(
    is_unusual: OfOperands, converted: Callable[[Sequence[Array]], list[Formula]], *arrays: Array
) -> Array:
    """Return 1 in int32 if any operand is unusual, else 0."""
    unusual = is_unusual(*converted(arrays)).value
    # To compile a maximum of floats takes a quarter of the time that one of booleans takes.
    greatest = reduce_max(convert(unusual, _float32, False), range(unusual.ndim))
    return convert(greatest, _int32, False)
