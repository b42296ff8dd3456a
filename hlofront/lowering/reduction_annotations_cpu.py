"""Maxima that programs for CPUs only subtract from the array that they are of, as softmax does.

XLA's kernel for maxima of floats on CPUs ignores NaNs (lowering/reducing_cpu.py). For such a shift
that does not matter: the difference of a NaN and any number is a NaN. So the equation of a shift is
marked, and keeps the kernel, which is the fastest and takes no time to compile: by a reduction that
knows NaNs a step of attention with biases for positions took 1.19 times as long.
"""

from collections.abc import Sequence

from hlofront.core.jaxpr import Atom, Equation
from hlofront.primitives.comparing import eq_p
from hlofront.primitives.converting import stop_gradient_p
from hlofront.primitives.elementwise import max_p, min_p, sub_p
from hlofront.primitives.reducing import reduce_max_p, reduce_min_p
from hlofront.primitives.shaping import broadcast_in_dim_p, reshape_p

# The parameter of the equations of reduce_max and reduce_min that are shifts.
IS_SHIFT = "is_shift"

# The maximum may get another shape or a limit before it is subtracted.
_BETWEEN = (broadcast_in_dim_p, max_p, min_p, reshape_p, stop_gradient_p)


def with_shifts(equations: Sequence[Equation], outputs: Sequence[Atom]) -> Sequence[Equation]:
    """Return the live equations of a program for one CPU, of which those of shifts are marked.

    The derivative of a shift compares it with the elements that it is of, to find the greatest.
    """
    if not any(each.primitive in (reduce_max_p, reduce_min_p) for each in equations):
        return equations
    readers: dict[Atom, list[Equation]] = {}
    origins: dict[Atom, Atom] = {}
    for equation in equations:
        for atom in equation.invars:
            readers.setdefault(atom, []).append(equation)
        if equation.primitive is stop_gradient_p:
            (x,), (same,) = equation.invars, equation.outvars
            origins[same] = origins.get(x, x)

    def differences(x: Atom, extreme: Atom) -> int | None:
        """Return how often an extreme of x is subtracted from x; None if it is read otherwise."""
        if extreme in outputs:
            return None
        count = 0
        for reader in readers.get(extreme, ()):
            if reader.primitive in _BETWEEN:
                further = differences(x, reader.outvars[0])
                if further is None:
                    return None
                count += further
                continue
            if reader.primitive not in (sub_p, eq_p) or reader.invars[1] is not extreme:
                return None
            if origins.get(reader.invars[0], reader.invars[0]) is not x:
                return None
            count += reader.primitive is sub_p
        return count

    def marked(equation: Equation) -> Equation:
        if equation.primitive not in (reduce_max_p, reduce_min_p):
            return equation
        (x,), (extreme,) = equation.invars, equation.outvars
        if not differences(origins.get(x, x), extreme):
            return equation
        return equation.replace(params={**equation.params, IS_SHIFT: True})

    return [marked(each) for each in equations]
