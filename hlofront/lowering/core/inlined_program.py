"""The program whose equations the builder emits, for rules that consider several of them."""

from collections.abc import Mapping

from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Var
from hlofront.lowering.core.pruning import live_equations


class InlinedProgram:
    """A program while its equations are emitted.

    Args:
      jaxpr: the program.
      environment: the MLIR values of the variables that have been emitted.
    """

    __slots__ = ("_makers", "environment", "equations")

    def __init__(self, jaxpr: Jaxpr, environment: Mapping[Var, Value]):
        self.environment = environment
        self.equations = live_equations(jaxpr)
        self._makers: dict[Atom, Equation] | None = None

    def maker(self, atom: Atom) -> Equation | None:
        """Return the equation whose result is an atom, or None for inputs and constants."""
        if self._makers is None:
            self._makers = {
                var: equation for equation in self.equations for var in equation.outvars
            }
        return self._makers.get(atom)
