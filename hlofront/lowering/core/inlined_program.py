"""The program whose equations the builder emits, for rules that consider several of them."""

from collections.abc import Mapping, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Var
from hlofront.lowering.core.pruning import live_equations


class EquationGroup(NamedTuple):
    """An equation and all equations that read its results, which a single function can replace.

    Attributes:
      readers: the equations that read the results, in order.
      operands: the operands of the equation, then those of each reader, without the results.
      outvars: the results of the readers.
      before: the later equations that do not depend on the readers, in order.
      after: the later equations that do.
    """

    readers: Sequence[Equation]
    operands: Sequence[Atom]
    outvars: Sequence[Var]
    before: Sequence[Equation]
    after: Sequence[Equation]


class InlinedProgram:
    """A program while its equations are emitted.

    Args:
      jaxpr: the program.
      environment: the MLIR values of the variables that have been emitted.
    """

    __slots__ = ("_jaxpr", "_makers", "environment", "pending")

    def __init__(self, jaxpr: Jaxpr, environment: Mapping[Var, Value]):
        self._jaxpr = jaxpr
        self.environment = environment
        # The equations after the current one; the next one is the last.
        self.pending = list(reversed(live_equations(jaxpr)))
        self._makers: dict[Atom, Equation] | None = None

    def maker(self, atom: Atom) -> Equation | None:
        """Return the equation whose result is an atom, or None for inputs and constants."""
        if self._makers is None:
            equations = live_equations(self._jaxpr)
            self._makers = {var: equation for equation in equations for var in equation.outvars}
        return self._makers.get(atom)

    def group(self, equation: Equation) -> EquationGroup | None:
        """Return the current equation with its readers, or None if they must be emitted separately.

        They must be if a result is an output of the program, if an operand of a reader depends on
        another reader, or if a later equation has effects, whose order must not change.
        """
        results: set[Atom] = {*equation.outvars}
        if not results.isdisjoint(self._jaxpr.outvars):
            return None
        readers: list[Equation] = []
        before: list[Equation] = []
        after: list[Equation] = []
        dependent: set[Atom] = set()
        for later in reversed(self.pending):
            if later.effects:
                return None
            if not results.isdisjoint(later.invars):
                readers.append(later)
            elif dependent.isdisjoint(later.invars):
                before.append(later)
                continue
            else:
                after.append(later)
            dependent.update(later.outvars)
        operands = [*equation.invars, *(atom for reader in readers for atom in reader.invars)]
        operands = [atom for atom in operands if atom not in results]
        if not dependent.isdisjoint(operands):
            return None
        outvars = [var for reader in readers for var in reader.outvars]
        return EquationGroup(readers, operands, outvars, before, after)

    def merge(self, group: EquationGroup, merged: Equation) -> None:
        """Emit an equation instead of a group's readers, after all that it may depend on."""
        self.pending = [*group.before, merged, *group.after][::-1]
