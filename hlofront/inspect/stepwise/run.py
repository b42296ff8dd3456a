"""The run of a program one operation at a time, also inside its subprograms."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.names import path_of
from hlofront.core.programs.liveness import last_uses, live_equations
from hlofront.core.programs.subprograms import Subprogram
from hlofront.inspect.stepwise.operands import ELEMENTWISE, elements_of, expression_of
from hlofront.inspect.stepwise.report_parts import (
    Inside,
    OperationStep,
    callers,
    facts,
    parameters_of,
    source_line_of,
    written,
)
from hlofront.runtime.checks.program_walk import ProgramWalk

# Arrays of at most this many bytes are kept until their program ends, for the report's text.
_SMALL = 1 << 16


class StepValue:
    """An array of the running program, with its origin."""

    __slots__ = ("array", "origin")

    def __init__(self, array: ArrayLike, origin: "Equation | str"):
        self.array = array
        # The equation that made the array, or a description of an input.
        self.origin = origin


V = TypeVar("V", bound=StepValue)


class Level(Generic[V]):
    """The values and equations of one run of one program."""

    __slots__ = ("definitions", "inside", "program", "values")

    def __init__(self, program: Jaxpr, inside: tuple[Inside, ...]):
        self.program = program
        self.inside = inside
        self.values: dict[Atom, V] = {}
        self.definitions: dict[Atom, Equation] | None = None

    def definition(self, atom: Atom) -> Equation | None:
        """Return the equation that defines a variable, or None for inputs and literals."""
        if self.definitions is None:
            self.definitions = {var: e for e in self.program.eqns for var in e.outvars}
        return None if type(atom) is Literal else self.definitions.get(atom)


def inside(
    level: Level[V], equation: Equation, program: ClosedJaxpr, branch: int | None = None
) -> tuple[Inside, ...]:
    """Return the calls, loops and branches around the operations of an equation's subprogram."""
    info = program.debug_info
    name = equation.params.get("name")
    name = name if isinstance(name, str) else "" if info is None else info.func_name
    line = source_line_of(equation.traceback)
    return (*level.inside, Inside(equation.primitive.name, name, line, None, branch))


class StepwiseRun(ProgramWalk[V, list[V], Level[V]]):
    """An interpreter that runs programs one operation at a time, on values of its own class.

    Subclasses define how an operation runs, and how loops do.
    """

    def __init__(self):
        # For each program that has run: its equations, with the variables last used by each.
        self.steps: dict[Jaxpr, list[tuple[Equation, set[Var]]]] = {}

    @abstractmethod
    def input_value(self, array: ArrayLike, name: str) -> V:
        """Return an argument or a captured constant as a value."""

    @abstractmethod
    def literal_value(self, array: ArrayLike, name: str) -> V:
        """Return a constant in an equation as a value."""

    @abstractmethod
    def operation(self, level: Level[V], equation: Equation, operands: list[V]) -> list[V]:
        """Run one operation, and return its results as values."""

    @abstractmethod
    def in_scan(
        self, level: Level[V], equation: Equation, body: Subprogram, operands: list[V], /
    ) -> list[V]:
        """Run a scan, and return its results as values."""

    @abstractmethod
    def in_while(
        self,
        level: Level[V],
        equation: Equation,
        body: Subprogram,
        condition: Subprogram,
        operands: list[V],
        /,
    ) -> list[V]:
        """Run a while loop, and return its results as values."""

    def read(self, level: Level[V], atom: Atom) -> V:
        """Return the value of a variable or of a literal."""
        if type(atom) is Literal:
            return self.literal_value(atom.operand, f"the constant {np.asarray(atom.val)[()]}")
        return level.values[atom]

    def captured(self, program: ClosedJaxpr) -> dict[Atom, V]:
        """Return the values of a program's constants."""
        values: dict[Atom, V] = {}
        for var, const in zip(program.jaxpr.constvars, program.consts, strict=True):
            # With 64-bit dtypes off, those of NumPy are narrowed when they are used.
            dtype = getattr(var.aval, "dtype", None)
            if isinstance(const, np.ndarray) and const.dtype != dtype:
                const = const.astype(dtype)
            values[var] = self.input_value(const, "a constant that the function captured")
        return values

    def run(
        self, program: ClosedJaxpr, args: Sequence[V], inside: tuple[Inside, ...] = ()
    ) -> list[V]:
        """Run a program on values one operation at a time, and return its results."""
        jaxpr = program.jaxpr
        level: Level[V] = Level(jaxpr, inside)
        values = level.values
        values.update(self.captured(program))
        values.update(zip(jaxpr.invars, args, strict=True))
        steps = self.steps.get(jaxpr)
        if steps is None:
            # XLA drops dead equations, too, and these might not run.
            lean = jaxpr.replace(eqns=live_equations(jaxpr.eqns, jaxpr.outvars))
            steps = self.steps[jaxpr] = list(zip(lean.eqns, last_uses(lean), strict=True))
        for equation, done in steps:
            operands = [self.read(level, atom) for atom in equation.invars]
            results = self.enter(equation, operands, level)
            if results is None:
                results = self.operation(level, equation, operands)
            values.update(zip(equation.outvars, results, strict=True))
            for var in done:
                if type(var) is not Var or getattr(values[var].array, "nbytes", 0) > _SMALL:
                    del values[var]
        return [self.read(level, atom) for atom in jaxpr.outvars]

    def array_of(self, operand: V) -> ArrayLike:
        return operand.array

    def in_call(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        inputs: Sequence[V],
        context: Level[V],
        branch: int | None,
    ) -> list[V]:
        return self.run(program, inputs, inside(context, equation, program, branch))

    def in_loop(
        self,
        equation: Equation,
        body: Subprogram,
        condition: Subprogram | None,
        operands: Sequence[V],
        context: Level[V],
    ) -> list[V]:
        if condition is None:
            return self.in_scan(context, equation, body, list(operands))
        return self.in_while(context, equation, body, condition, list(operands))


def results_of(equation: Equation, operands: Sequence[StepValue]) -> Sequence[Array]:
    """Run an operation on the arrays of values, and return its results."""
    primitive = equation.primitive
    results = primitive.bind(*(v.array for v in operands), **equation.params)
    return results if primitive.multiple_results else (results,)


# ---- where an operand comes from -----------------------------------------------------------------

# The maximum number of operations listed before an operand.
_MAX_OPERATIONS_BEFORE = 3


def operation_facts(
    level: Level[V], equation: Equation, operands: Sequence[V], index: Shape
) -> dict[str, Any]:
    """Return the fields of an OperationReport that identify and locate the operation."""
    arrays = [v.array for v in operands]
    lines = callers(equation.traceback)
    return {
        "primitive": equation.primitive.name,
        "parameters": parameters_of(equation),
        "expression": expression_of(equation, arrays, elements_of(equation, arrays, index)),
        "source_line": lines[0] if lines else None,
        "callers": lines[1:],
        "name_stack": tuple(filter(None, path_of(equation.name_stack).split("/"))),
        "inside": level.inside,
    }


def operand_facts(
    level: Level[V], equation: Equation, operands: Sequence[V], index: Shape
) -> Iterator[tuple[Atom, V, dict[str, Any]]]:
    """Yield the atom and value of each operand, and the fields of its OperandReport.

    Args:
      level: the run of the program.
      equation: the operation.
      operands: its operands, or none if they are not known.
      index: the index of an element of the result.
    """
    elements = elements_of(equation, [v.array for v in operands], index)
    inner = index_in_operands(equation, index)
    for atom, operand, element in zip(equation.invars, operands, elements, strict=False):
        definition, origin = level.definition(atom), operand.origin
        lines: list[str] = []
        source_line = None
        if definition is not None:
            source_line = source_line_of(definition.traceback)
            source = computed(level, definition, inner, written(source_line))
            lines = before(level, definition, inner)
        elif isinstance(origin, str):
            source = origin
        else:
            source_line = source_line_of(origin.traceback)
            source = str(OperationStep(origin.primitive.name, source_line))
        yield (
            atom,
            operand,
            {
                "values": facts(origin if isinstance(origin, str) else "", operand.array),
                "element": element,
                "source": source,
                "source_line": source_line,
                "before": tuple(lines),
            },
        )


def index_in_operands(equation: Equation, index: Shape | None) -> Shape | None:
    """Return the index of the operands' elements behind a result's; None if they differ."""
    return index if equation.primitive.name in ELEMENTWISE else None


def before(level: Level[V], definition: Equation, index: Shape | None) -> list[str]:
    """Return a line of text for each operation that leads to an operand, the nearest first.

    Args:
      level: the run of the program.
      definition: the equation that makes the operand.
      index: the index of an element of the operand; None where it is not known.
    """
    lines: list[str] = []
    equation = definition
    for _ in range(_MAX_OPERATIONS_BEFORE):
        index = index_in_operands(equation, index)
        atoms = [atom for atom in equation.invars if type(atom) is not Literal]
        inexact = [a for a in atoms if issubdtype(getattr(a.aval, "dtype", bool), np.inexact)]
        atom = (inexact or atoms or [None])[0]
        if atom is None:
            break
        previous = level.definition(atom)
        if previous is None:
            value = level.values.get(atom)
            if value is not None:
                origin = value.origin
                described = origin if isinstance(origin, str) else origin.primitive.name
                lines.append(f"<- {described}")
            break
        lines.append(
            f"<- {computed(level, previous, index, written(source_line_of(previous.traceback)))}"
        )
        equation = previous
    return lines


def computed(level: Level[V], equation: Equation, index: Shape | None, at: str) -> str:
    """Return an operation as text, with its operands' elements at an index if available."""
    text = equation.primitive.name
    arrays = [
        a.val if type(a) is Literal else None if (v := level.values.get(a)) is None else v.array
        for a in equation.invars
    ]
    if index is not None and text in ELEMENTWISE and all(x is not None for x in arrays):
        elements = elements_of(equation, arrays, index)
        if all(x is not None for x in elements):
            text = expression_of(equation, arrays, elements)
    return f"{text} at {at}" if at else text
