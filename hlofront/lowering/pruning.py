"""Dead code elimination: the equations that a program's outputs or effects depend on."""

from collections.abc import Sequence

from hlofront.core import liveness
from hlofront.core.jaxpr import Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.rules import simplify

# Loops and branches are lowered without unused operands and results. Calls keep theirs, since all
# calls of a program share one function.
PRUNED: set[Primitive] = set()


def live_equations(jaxpr: Jaxpr) -> Sequence[Equation]:
    """Return the equations that outputs or effects depend on, in order; cached per program."""
    if jaxpr.live is None:
        jaxpr.live = tuple(liveness.live_equations(jaxpr.eqns, jaxpr.outvars, _pruned))
    return jaxpr.live


def _pruned(equation: Equation, needed: set[Var]) -> Equation | None:
    if equation.primitive not in PRUNED:
        return equation
    return simplify[equation.primitive]([var in needed for var in equation.outvars], equation)[1]
