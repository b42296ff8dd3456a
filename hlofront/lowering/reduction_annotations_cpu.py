"""Annotations of the reductions of programs for CPUs: what reads them, and what they read.

A maximum that is only subtracted from the array that it is of, as in softmax, is a shift. XLA's
kernel for maxima of floats on CPUs ignores NaNs (lowering/reducing_cpu.py). For a shift that does
not matter: the difference of a NaN and any number is a NaN. So a shift keeps the kernel, which is
the fastest and takes no time to compile: by a reduction that knows NaNs a step of attention with
biases for positions took 1.19 times as long.

A reduction has an operand in lanes if XLA computes each element from those at its position in
stored arrays, by one instruction or a few. Where it broadcasts arrays, as to compare all pairs of
elements of two vectors, a loop over lanes may take ten times as long as one over elements.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.jaxpr import Atom, Equation, Literal
from hlofront.core.rules import lower
from hlofront.primitives import comparing as c
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r
from hlofront.primitives.converting import convert_element_type_p, stop_gradient_p
from hlofront.primitives.shaping import broadcast_in_dim_p, reshape_p

# The annotations, parameters of equations that only lowering knows of.
IS_SHIFT = "is_shift"
IS_IN_LANES = "is_in_lanes"

_EXTREMES = (r.reduce_max_p, r.reduce_min_p)
_REDUCTIONS = frozenset((*_EXTREMES, r.reduce_sum_p, r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p))
# A maximum may get another shape or a limit before it is subtracted.
_BETWEEN = (broadcast_in_dim_p, e.max_p, e.min_p, reshape_p, stop_gradient_p)
# Operations that are one vector instruction or a few, for all dtypes,
_IN_LANES = frozenset(
    (
        c.eq_p,
        c.ge_p,
        c.gt_p,
        c.le_p,
        c.lt_p,
        c.ne_p,
        c.select_n_p,
        convert_element_type_p,
        e.abs_p,
        e.add_p,
        e.and_p,
        e.is_finite_p,
        e.max_p,
        e.min_p,
        e.mul_p,
        e.neg_p,
        e.not_p,
        e.or_p,
        e.sub_p,
        e.xor_p,
        stop_gradient_p,
    )
)
# and the most of them between stored arrays and the operand.
_MOST_OPERATIONS = 16
# Some operations whose results XLA stores.
_STORED = (
    "argmax",
    "argmin",
    "conv_general_dilated",
    "dot_general",
    "gather",
    "scan",
    "sort",
    "while",
)


def with_annotations(equations: Sequence[Equation], outputs: Sequence[Atom]) -> Sequence[Equation]:
    """Return the live equations of a program for one CPU, with annotated reductions."""
    if not any(each.primitive in _REDUCTIONS for each in equations):
        return equations
    program = _Program(equations, outputs)
    return [program.annotated(each) for each in equations]


class _Program:
    """The equations of a program, by the values that they read and make."""

    def __init__(self, equations: Sequence[Equation], outputs: Sequence[Atom]):
        self._outputs = outputs
        self._readers: dict[Atom, list[Equation]] = {}
        self._makers: dict[Atom, Equation] = {}
        for equation in equations:
            for atom in equation.invars:
                self._readers.setdefault(atom, []).append(equation)
            for var in equation.outvars:
                self._makers[var] = equation

    def annotated(self, equation: Equation) -> Equation:
        """Return an equation with its annotations, which rules of other packages do not know."""
        if equation.primitive not in _REDUCTIONS or equation.primitive in lower.foreign:
            return equation
        (x,), (result,) = equation.invars, equation.outvars
        annotations: dict[str, object] = {}
        if equation.primitive in _EXTREMES and self._differences(self._origin(x), result):
            annotations[IS_SHIFT] = True
        if self._operations(x) is not None:
            annotations[IS_IN_LANES] = True
        return (
            equation.replace(params={**equation.params, **annotations}) if annotations else equation
        )

    def _origin(self, x: Atom) -> Atom:
        """Return the value that x is but for gradients."""
        maker = self._makers.get(x)
        if maker is None or maker.primitive is not stop_gradient_p:
            return x
        return self._origin(maker.invars[0])

    def _differences(self, x: Atom, extreme: Atom) -> int | None:
        """Return how often an extreme of x is subtracted from x; None if it is read otherwise.

        The derivative of a shift compares it with the elements that it is of.
        """
        if extreme in self._outputs:
            return None
        count = 0
        for reader in self._readers.get(extreme, ()):
            if reader.primitive in _BETWEEN:
                further = self._differences(x, reader.outvars[0])
                if further is None:
                    return None
                count += further
                continue
            if reader.primitive not in (e.sub_p, c.eq_p) or reader.invars[1] is not extreme:
                return None
            if self._origin(reader.invars[0]) is not x:
                return None
            count += reader.primitive is e.sub_p
        return count

    def _operations(self, x: Atom) -> int | None:
        """Return how many operations in lanes make x of stored arrays; None if others do."""
        maker = None if isinstance(x, Literal) else self._makers.get(x)
        if maker is None:
            return 0
        if maker.primitive.name in _STORED:
            return 0
        if maker.primitive is broadcast_in_dim_p and not _shape(maker.invars[0]):
            return 0
        if maker.primitive not in _IN_LANES or _rounds(maker):
            return None
        count = 1
        for operand in maker.invars:
            if _shape(operand) not in ((), _shape(x)):
                return None
            further = self._operations(operand)
            if further is None or count + further > _MOST_OPERATIONS:
                return None
            count += further
        return count


def _shape(atom: Atom) -> tuple[object, ...]:
    aval: Any = atom.aval
    return aval.shape


def _rounds(equation: Equation) -> bool:
    """Return whether an equation makes integers of floats, which takes many instructions."""
    if equation.primitive is not convert_element_type_p:
        return False
    avals: list[Any] = [equation.invars[0].aval, equation.outvars[0].aval]
    before, after = (aval.dtype for aval in avals)
    return issubdtype(before, np.floating) and issubdtype(after, np.integer)
