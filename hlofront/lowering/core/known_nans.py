"""Programs in which XLA may see a NaN at compile time: a constant, or a result of constants.

XLA's exponentials on CPUs return an arbitrary number for such a NaN (see bridge/xla_faults.py), so
they are guarded, but only in these programs.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Literal
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import closed_programs_in

# XLA does not look into larger constants.
_LARGEST = 10_000
# Operations whose result may be NaN for finite operands, with a test of the value of a literal
# operand at a position that rules this out.
_NAN_OF_FINITE: dict[str, tuple[tuple[int, Callable[[float], bool]], ...]] = {
    "acos": (),
    "acosh": (),
    "asin": (),
    "atanh": (),
    "digamma": (),
    "div": ((0, bool), (1, bool)),
    "erf_inv": (),
    "lgamma": (),
    "log": (),
    "log1p": (),
    "pow": ((0, lambda x: x > 0),),
    "rem": ((1, bool),),
    "rsqrt": (),
    "sqrt": (),
}
# Operations whose result is never NaN for infinite operands.
_NO_NAN_OF_INFINITE = frozenset(
    "abs broadcast_in_dim clamp concatenate convert_element_type copy copy_p eq expand_dims ge gt "
    "is_finite le lt max min ne neg pad reduce_max reduce_min reshape rev select_n sign slice "
    "squeeze stop_gradient transpose".split()
)


def has_nan(array: NumPyArray) -> bool:
    """Return whether a constant has a NaN that XLA may see."""
    return (
        array.size <= _LARGEST
        and issubdtype(array.dtype, np.inexact)
        and bool((array != array).any())
    )


@once_per_program
def may_find_nan(jaxpr: Jaxpr, of_constants: bool = False) -> bool:
    """Return whether equations may compute a NaN from constants, or have one as a literal.

    Args:
      jaxpr: the program. Subprograms are only inspected if all operands of their equation are
        constants.
      of_constants: whether its inputs are constants.
    """
    constants: set[Atom] = {*jaxpr.constvars, *(jaxpr.invars if of_constants else ())}
    infinite: set[Atom] = set()
    for equation in jaxpr.eqns:
        operands = equation.invars
        literals = [atom.val for atom in operands if isinstance(atom, Literal)]
        if literals and any(map(_is_nan, literals)):
            return True
        name, holds_programs = equation.primitive.name, equation.primitive.carries_programs
        is_infinite = bool(literals) and any(map(_is_infinite, literals))
        is_infinite = is_infinite or not infinite.isdisjoint(operands)
        if is_infinite and name not in _NO_NAN_OF_INFINITE:
            return True
        if not all(isinstance(atom, Literal) or atom in constants for atom in operands):
            continue
        constants.update(equation.outvars)
        if is_infinite:
            infinite.update(equation.outvars)
        elif holds_programs:
            inner = closed_programs_in([equation])
            if any(may_find_nan(subprogram.jaxpr, True) for subprogram in inner):
                return True
        elif name in _NAN_OF_FINITE and not _is_number(equation, name):
            return True
    return False


def _is_number(equation: Equation, name: str) -> bool:
    """Return whether the result of an operation on finite constants cannot be NaN."""
    aval: Any = equation.outvars[0].aval
    if not issubdtype(aval.dtype, np.inexact):
        return True
    operands: Sequence[Atom] = equation.invars
    return any(
        isinstance(atom := operands[position], Literal) and fits(atom.val)
        for position, fits in _NAN_OF_FINITE[name]
    )


def _is_nan(value: Any) -> bool:
    return _may_be_float(value) and value != value


def _is_infinite(value: Any) -> bool:
    return _may_be_float(value) and value in (math.inf, -math.inf)


def _may_be_float(value: Any) -> bool:
    # float0 is a structured dtype.
    return isinstance(value, float | np.generic) and not isinstance(value, np.void)
