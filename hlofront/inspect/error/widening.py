"""Programs in float64: each operation of a program, with its narrower dtypes widened."""

import enum
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, ArrayLikes, DType, Value
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import (
    Program,
    called_by,
    closed,
    inputs_among,
    opened,
    subprograms_of,
    with_program,
)
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.linalg.dot_general import DotAlgorithm, DotAlgorithmPreset
from hlofront.transforms.stage import stage

# Operations on the bits of numbers, which mean something else in other dtypes.
_OF_BITS = frozenset(("bitcast_convert_type", "nextafter", "rng_bit_generator", "rng_uniform"))
# Operations that run code of this process, which has no form in another dtype.
_FOREIGN = frozenset(("ffi_call", "pure_callback"))
# Operations that make sense in every dtype but have no implementation in float64.
_NARROW_ONLY = frozenset(("scaled_dot", *_FOREIGN))


def widened_dtype(dtype: DType) -> DType:
    """Return float64 for a floating-point dtype, complex128 for a complex one, or the dtype."""
    if isinstance(dtype, ExtendedDType) or not issubdtype(dtype, np.inexact):
        return dtype
    is_complex = issubdtype(dtype, np.complexfloating)
    return np.dtype(np.complex128 if is_complex else np.float64)


def widened_aval(aval: AbstractValue) -> AbstractValue:
    """Return the aval of a value in a widened program."""
    return aval.update(dtype=widened_dtype(aval.dtype)) if isinstance(aval, ShapedArray) else aval


def widen(x: ArrayLike) -> ArrayLike:
    """Return an inexact array in float64 or complex128, and any other value itself."""
    dtype = typeof(x).dtype
    wide = widened_dtype(dtype)
    return x if wide == dtype else convert_element_type(x, wide)


def keeps_dtypes(equation: Equation) -> bool:
    """Return whether an operation runs in its own dtypes in a widened program, too."""
    name = equation.primitive.name
    return bool(equation.effects) or name in _OF_BITS or name in _NARROW_ONLY


def is_foreign(equation: Equation) -> bool:
    """Return whether an operation runs code of this process."""
    return bool(equation.effects) or equation.primitive.name in _FOREIGN


def bind_widened(equation: Equation, operands: ArrayLikes) -> ArrayLikes:
    """Run an equation on widened operands, and return its results, widened.

    An operation that has no form in float64 runs in its own dtypes, on rounded operands.
    """
    name = equation.primitive.name
    if name == "reduce_precision":
        return [operands[0]]
    if keeps_dtypes(equation):
        narrow = [
            convert_element_type(x, atom.aval.dtype)
            if typeof(x).dtype != getattr(atom.aval, "dtype", None)
            else x
            for x, atom in zip(operands, equation.invars, strict=True)
        ]
        results = equation.primitive.bind(*narrow, **equation.params)
        results = results if equation.primitive.multiple_results else (results,)
        return [widen(x) for x in results]
    results = equation.primitive.bind(*operands, **widened_params(equation))
    return results if equation.primitive.multiple_results else (results,)


def widened_params(equation: Equation) -> dict[str, object]:
    """Return the parameters of an equation with its dtypes and programs widened."""
    params = {name: _widened_value(value) for name, value in equation.params.items()}
    for part in subprograms_of(equation):
        params = with_program(params, part, _widened(part.program))
    return params


def _widened(program: Program) -> Program:
    """Return a program in 64-bit dtypes: a Jaxpr of a Jaxpr, a ClosedJaxpr of a ClosedJaxpr."""
    wide = widened_program(closed(program))
    return wide if isinstance(program, ClosedJaxpr) else opened(wide)


def _widened_value(value: object) -> object:
    if isinstance(value, np.dtype):
        return widened_dtype(value)
    # Dot algorithms are for certain dtypes; products in float64 have only one precision.
    return None if _is_algorithm(value) else value


def _is_algorithm(value: object) -> bool:
    members = value if isinstance(value, tuple) and not hasattr(value, "_fields") else (value,)
    return any(
        isinstance(x, DotAlgorithm) or (isinstance(x, enum.Enum) and type(x) is DotAlgorithmPreset)
        for x in members
    )


@once_per_program
def widened_program(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program with all of its floating-point dtypes widened; 64-bit dtypes must be on."""
    jaxpr = program.jaxpr
    return stage(
        lambda *inputs: evaluate_widened(jaxpr, program.consts, inputs),
        [widened_aval(aval) for aval in program.in_avals],
        jaxpr.origin,
    )


def evaluate_widened(jaxpr: Jaxpr, consts: Sequence[Value], inputs: ArrayLikes) -> list[ArrayLike]:
    """Evaluate a jaxpr on widened inputs, and return its outputs, widened."""
    values: dict[Atom, ArrayLike] = dict(zip(jaxpr.constvars, map(widen, consts), strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Atom) -> ArrayLike:
        return widen(atom.operand) if type(atom) is Literal else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        call = called_by(equation)
        if call is None:
            results = bind_widened(equation, operands)
        else:
            results = evaluate_widened(call.jaxpr, call.consts, inputs_among(call, operands))
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]
