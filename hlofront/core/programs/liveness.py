"""Liveness: the equations and variables that a program's outputs and effects depend on."""

from collections.abc import Callable, Iterable, Sequence

from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Var
from hlofront.core.rules import simplify

# Takes a live equation and the variables that are needed after it, and returns the equation
# that replaces it, or None.
Smaller = Callable[[Equation, set[Atom]], Equation | None]


def live_equations(
    equations: Sequence[Equation], outputs: Iterable[Atom], smaller: Smaller | None = None
) -> list[Equation]:
    """Return the equations that outputs depend on or that have effects, in order.

    Args:
      equations: the equations of a program.
      outputs: the outputs of the program.
      smaller: returns a replacement of a live equation, which may read fewer variables, or None
        to remove it; it is called with an equation of a primitive with a `simplify` rule, and the
        variables needed after it. Rules of other packages decide about equations that no output
        depends on, too.
    """
    return live_and_read(equations, outputs, smaller)[0]


def live_and_read(
    equations: Sequence[Equation], outputs: Iterable[Atom], smaller: Smaller | None = None
) -> tuple[list[Equation], set[Atom]]:
    """Return what `live_equations` returns, and the atoms that these equations or outputs read."""
    # It may contain literals as well: each equals only itself.
    needed = set(outputs)
    live: list[Equation] = []
    for equation in reversed(equations):
        if not equation.effects and needed.isdisjoint(equation.outvars):
            if smaller is None or equation.primitive not in simplify.foreign:
                continue
        if smaller is not None and equation.primitive in simplify:
            replacement = smaller(equation, needed)
            if replacement is None:
                continue
            equation = replacement
        live.append(equation)
        needed.update(equation.invars)
    live.reverse()
    return live, needed


def variables_read(equations: Iterable[Equation], outputs: Iterable[Atom]) -> set[Var]:
    """Return the variables that equations or outputs read."""
    read = {atom for e in equations for atom in e.invars if isinstance(atom, Var)}
    read.update(atom for atom in outputs if isinstance(atom, Var))
    return read


def last_uses(jaxpr: Jaxpr) -> list[set[Var]]:
    """Return for each equation the variables, its results included, that are unused after it."""
    needed = variables_read((), jaxpr.outvars)
    uses: list[set[Var]] = []
    for equation in reversed(jaxpr.eqns):
        done = variables_read((equation,), equation.outvars) - needed
        needed |= done
        uses.append(done)
    uses.reverse()
    return uses
