"""Annotations of the reductions of programs for CPUs: what reads them, and what they read.

A maximum that is only subtracted from the array that it is of, as in softmax, is a shift. XLA's
kernel for maxima of floats on CPUs ignores NaNs (lowering/reducing_cpu.py). With a shift no NaN is
lost, as the difference of a NaN and any number is a NaN, and so is a sum that it is in; only the
differences next to it may be numbers. It may be added again to what such differences make, as in
logsumexp. So a shift keeps the kernel, which is the fastest and takes no time to compile: with a
reduction that propagates NaNs, a step of attention with biases for positions was 1.19 times slower.

A reduction has an operand in lanes if XLA computes each element from those at its position in
stored arrays, by one instruction or a few. Where it broadcasts arrays, as to compare all pairs of
elements of two vectors, a loop over lanes may take ten times as long as one over elements. The
annotation is the number of these instructions: LLVM unrolls short loops alone. Other operands of
maxima and minima are stored first.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.jaxpr import Atom, Equation
from hlofront.core.rules import lower
from hlofront.primitives import comparing as c
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r
from hlofront.primitives.converting import convert_element_type_p, stop_gradient_p
from hlofront.primitives.shaping import broadcast_in_dim_p, reshape_p

# The annotations, parameters of equations that only lowering knows of.
IS_SHIFT = "is_shift"
LANE_OPERATIONS = "lane_operations"
IS_STORED_FIRST = "is_stored_first"

_EXTREMES = (r.reduce_max_p, r.reduce_min_p)
_REDUCTIONS = frozenset((*_EXTREMES, r.reduce_sum_p, r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p))
# A maximum may get another shape or a limit before it is subtracted.
_BETWEEN = (broadcast_in_dim_p, e.max_p, e.min_p, reshape_p, stop_gradient_p)
# Results of these are NaN where an operand, or a number of a sum, is.
_KEEP_NANS = frozenset(
    (
        broadcast_in_dim_p,
        e.abs_p,
        e.add_p,
        e.div_p,
        e.exp_p,
        e.log_p,
        e.mul_p,
        e.neg_p,
        e.sub_p,
        r.reduce_sum_p,
        reshape_p,
        stop_gradient_p,
    )
)
_MOST_KEPT = 64
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
    """Return the live equations of a program for CPUs, with annotated reductions."""
    if not any(map(_may_be_annotated, equations)):
        return equations
    program = _Program(equations, outputs)
    return [program.annotated(each) if _may_be_annotated(each) else each for each in equations]


def _may_be_annotated(equation: Equation) -> bool:
    """Return whether there are several rules for a reduction, none of another package.

    Those of other packages do not know the annotations.
    """
    if equation.primitive not in _REDUCTIONS or equation.primitive in lower.foreign:
        return False
    aval: Any = equation.invars[0].aval
    is_integer = issubdtype(aval.dtype, np.integer) or aval.dtype == np.bool_
    return is_integer or equation.primitive in _EXTREMES


class _Program:
    """The equations of a program, by the values that they read and make."""

    def __init__(self, equations: Sequence[Equation], outputs: Sequence[Atom]):
        self._outputs = set(outputs)
        self._readers: dict[Atom, list[Equation]] = {}
        self._makers: dict[Atom, Equation] = {}
        for equation in equations:
            for atom in equation.invars:
                self._readers.setdefault(atom, []).append(equation)
            for var in equation.outvars:
                self._makers[var] = equation

    def annotated(self, reduction: Equation) -> Equation:
        """Return a reduction with its annotations."""
        (x,), (result,) = reduction.invars, reduction.outvars
        annotations: dict[str, object] = {}
        if reduction.primitive in _EXTREMES and self._is_shift(self._origin(x), result):
            annotations[IS_SHIFT] = True
        operations = self._lane_operations(x)
        if operations is not None:
            annotations[LANE_OPERATIONS] = operations
        elif reduction.primitive in _EXTREMES and IS_SHIFT not in annotations:
            annotations[IS_STORED_FIRST] = True
        if not annotations:
            return reduction
        return reduction.replace(params={**reduction.params, **annotations})

    def _origin(self, x: Atom) -> Atom:
        """Return the value that x is but for gradients."""
        maker = self._makers.get(x)
        while maker is not None and maker.primitive is stop_gradient_p:
            (x,) = maker.invars
            maker = self._makers.get(x)
        return x

    def _is_shift(self, x: Atom, extreme: Atom) -> bool:
        """Return whether an extreme of x is subtracted from x and not read otherwise.

        The derivative of a shift compares it with the elements that it is of. A shift may be
        selected where it is finite, and added to values that are NaN where a difference is.
        """
        pending, visited = [extreme], {extreme}
        differences: list[Atom] = []
        sums: list[Atom] = []
        while pending:
            value = pending.pop()
            if value in self._outputs:
                return False
            for reader in self._readers.get(value, ()):
                (result,) = reader.outvars[:1]
                if reader.primitive in _BETWEEN or self._selects_finite(reader, value):
                    if result not in visited:
                        visited.add(result)
                        pending.append(result)
                elif reader.primitive is e.is_finite_p and self._selects_only(result, value):
                    continue
                elif reader.primitive is e.add_p and reader.invars[0] is not reader.invars[1]:
                    sums += [operand for operand in reader.invars if operand is not value]
                elif self._origin(reader.invars[0]) is not x or reader.invars[1] is not value:
                    return False
                elif reader.primitive is e.sub_p:
                    differences.append(result)
                elif reader.primitive is not c.eq_p:
                    return False
        return bool(differences) and self._are_nan_with(differences, sums)

    def _selects_finite(self, reader: Equation, value: Atom) -> bool:
        """Return whether a value is selected by whether a number is finite."""
        if reader.primitive is not c.select_n_p or reader.invars[0] is value:
            return False
        maker = self._makers.get(reader.invars[0])
        return maker is not None and maker.primitive is e.is_finite_p

    def _selects_only(self, condition: Atom, value: Atom) -> bool:
        """Return whether a condition says whether a value is selected, and nothing else."""
        readers = self._readers.get(condition, ())
        return condition not in self._outputs and all(
            reader.primitive is c.select_n_p
            and reader.invars[0] is condition
            and value in reader.invars[1:]
            for reader in readers
        )

    def _are_nan_with(self, differences: Sequence[Atom], values: Sequence[Atom]) -> bool:
        """Return whether each of some values is NaN where a difference that it is made of is."""
        pending, visited = [*differences], set(differences)
        while pending and len(visited) < _MOST_KEPT:
            for reader in self._readers.get(pending.pop(), ()):
                if reader.primitive in _KEEP_NANS and reader.outvars[0] not in visited:
                    visited.add(reader.outvars[0])
                    pending.append(reader.outvars[0])
        return visited.issuperset(values)

    def _lane_operations(self, x: Atom) -> int | None:
        """Return how many operations in lanes make x of stored arrays and single numbers.

        The result is None if others take part, or more than a few.
        """
        shape, pending = _shape(x), [x]
        visited: set[Atom] = set()
        while pending:
            value = pending.pop()
            maker = self._makers.get(value)
            if maker is None or value in visited or not _shape(value):
                continue
            if maker.primitive.name in _STORED:
                continue
            if maker.primitive is broadcast_in_dim_p and not _shape(maker.invars[0]):
                continue
            visited.add(value)
            if maker.primitive not in _IN_LANES or _rounds(maker):
                return None
            if any(_shape(operand) not in ((), shape) for operand in maker.invars):
                return None
            if len(visited) > _MOST_OPERATIONS:
                return None
            pending.extend(maker.invars)
        return len(visited)


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
