"""Dead code elimination: the equations that a program's outputs or effects depend on."""

from collections.abc import Sequence

from hlofront.core.jaxpr import Equation, Jaxpr
from hlofront.core.programs import liveness
from hlofront.transforms.simplify import simplified


def live_equations(jaxpr: Jaxpr) -> Sequence[Equation]:
    """Return the equations that outputs or effects depend on, in order; cached per program.

    Equations that hold programs lose unused operands and results. Calls of the same program whose
    same results are used share one smaller program.
    """
    if jaxpr.live is None:
        jaxpr.live = tuple(liveness.live_equations(jaxpr.eqns, jaxpr.outvars, simplified))
    return jaxpr.live
