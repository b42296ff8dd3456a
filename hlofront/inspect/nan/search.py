"""The search for a NaN: a program runs one operation at a time, and its values are inspected."""

from collections.abc import Iterable, Sequence

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, NumPyArray, Shape
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.liveness import last_uses, live_equations
from hlofront.core.names import path_of
from hlofront.core.subprograms import subprograms_of
from hlofront.inspect.nan.operands import ELEMENTWISE, Element, elements_of, expression_of, typed
from hlofront.inspect.nan.report import (
    Inside,
    NanOrigin,
    OperandReport,
    OperationStep,
    SourceLine,
    Values,
    source_line_of,
    written,
)
from hlofront.runtime.debugging.nan_search import NanSearch, nonfinite
from hlofront.transforms.stage import stage

# The maximum number of trails of one array.
_MOST_TRAILS = 8
# The maximum number of described operations; later ones are only counted.
_MOST_DESCRIBED = 100
# Arrays of at most this many bytes stay until their program ends, for the report's expressions.
_SMALL = 1 << 16

# A boolean per element, True where it is bad; NumPy returns a scalar for an array of rank 0.
Mask = NumPyArray | np.bool_


class Start:
    """The origin of bad values: an argument, a constant, or an operation."""

    __slots__ = ("argument", "equation", "number", "operation")

    def __init__(
        self,
        number: int,
        equation: Equation | None = None,
        operation: NanOrigin | None = None,
        argument: str = "",
    ):
        self.number = number
        self.equation = equation
        self.operation = operation
        self.argument = argument

    def brief(self) -> str:
        """Return the origin as one line of text."""
        if self.operation is not None:
            return self.operation.brief()
        if self.equation is None:
            return f"{self.argument}, which is so already"
        return str(
            OperationStep(self.equation.primitive.name, source_line_of(self.equation.traceback))
        )


class Trail:
    """The path of bad values into an array: from a start, through operations in order."""

    __slots__ = ("equation", "previous", "start")

    def __init__(self, start: Start, equation: Equation | None, previous: "Trail | None"):
        self.start = start
        self.equation = equation
        self.previous = previous

    def steps(self) -> tuple[OperationStep, ...]:
        """Return the operations that passed the bad values on, first to last."""
        equations: list[Equation] = []
        trail: Trail | None = self
        while trail is not None and trail.previous is not None:
            if trail.equation is not None and (
                not equations or equations[-1] is not trail.equation
            ):
                equations.append(trail.equation)
            trail = trail.previous
        return tuple(
            OperationStep(e.primitive.name, source_line_of(e.traceback))
            for e in reversed(equations)
        )


class Value:
    """An array of the running program, with its origin and the trails of its bad elements."""

    __slots__ = ("array", "bad", "infinite", "origin")

    def __init__(
        self,
        array: ArrayLike,
        origin: "Equation | str",
        bad: tuple[Trail, ...] = (),
        infinite: tuple[Trail, ...] = (),
    ):
        self.array = array
        # The equation that made the array, or a description of an input.
        self.origin = origin
        self.bad = bad
        # The trails of infinities, while NaNs are searched for: infinities may become NaNs.
        self.infinite = infinite


class Level:
    """The values and equations of one run of one program."""

    __slots__ = ("definitions", "inside", "program", "values")

    def __init__(self, program: Jaxpr, inside: tuple[Inside, ...]):
        self.program = program
        self.inside = inside
        self.values: dict[Atom, Value] = {}
        self.definitions: dict[Atom, Equation] | None = None

    def read(self, atom: Atom) -> Value:
        if type(atom) is Literal:
            return Value(atom.val, f"the constant {_scalar_text(atom.val)}")
        return self.values[atom]

    def definition(self, atom: Atom) -> Equation | None:
        """Return the equation that defines a variable, or None for inputs and literals."""
        if self.definitions is None:
            self.definitions = {var: e for e in self.program.eqns for var in e.outvars}
        return None if type(atom) is Literal else self.definitions.get(atom)


def _scalar_text(value: ArrayLike) -> str:
    return str(np.asarray(value)[()])


def inside(
    level: Level, equation: Equation, program: ClosedJaxpr, branch: int | None = None
) -> tuple[Inside, ...]:
    """Return the calls, loops and branches around the operations of an equation's subprogram."""
    info = program.debug_info
    name = equation.params.get("name")
    name = name if isinstance(name, str) else "" if info is None else info.func_name
    line = source_line_of(equation.traceback)
    return (*level.inside, Inside(equation.primitive.name, name, line, None, branch))


class TrailSearch(NanSearch[Value, list[Value], Level]):
    """An interpreter that runs programs and records the origins of bad values."""

    __slots__ = (
        "carried", "described", "followed", "number", "starts", "steps", "times",
    )  # fmt: skip

    def __init__(self, kinds: Sequence[str]):
        super().__init__(kinds)
        # The attributes of `Value` that hold trails. Infinities may become NaNs.
        self.followed = ("bad", "infinite") if self.kinds == ("nan",) else ("bad",)
        self.starts: list[Start] = []
        self.number = 0
        self.described = 0
        # The ids of equations whose bad values are in the final carry of a long loop.
        self.carried: set[int] = set()
        # The number of times that each equation was a start, by the equation's id.
        self.times: dict[int, int] = {}
        # For each program that has run: its equations, with the variables last used by each.
        self.steps: dict[Jaxpr, list[tuple[Equation, set[Var]]]] = {}

    # ---- masks of bad elements

    def mask(self, array: NumPyArray, which: str = "bad") -> Mask:
        """Return a boolean mask of the elements that are bad, or infinite if `which` says so."""
        return np.isinf(array) if which == "infinite" else self.bad_elements(array)

    def part(self, array: ArrayLike, whole: Value) -> Value:
        """Return a part of an array as a value, with the whole's trails if it has bad elements."""
        if not whole.bad and not whole.infinite:
            return Value(array, whole.origin)
        host = nonfinite(array)
        if host is None:
            return Value(array, whole.origin)
        value = Value(array, whole.origin)
        for which in self.followed:
            if self.mask(host, which).any():
                setattr(value, which, getattr(whole, which))
        return value

    def input_value(self, array: ArrayLike, name: str) -> Value:
        """Return an argument or constant as a value, with a new trail if it has bad elements."""
        host = nonfinite(array)
        if host is None:
            return Value(array, name)
        value = Value(array, name)
        trail = (Trail(Start(self._next(), argument=name), None, None),)
        for which in self.followed:
            if self.mask(host, which).any():
                setattr(value, which, trail)
        return value

    def _next(self) -> int:
        self.number += 1
        return self.number

    # ---- running

    def run(
        self, program: ClosedJaxpr, args: Sequence[Value], inside: tuple[Inside, ...] = ()
    ) -> list[Value]:
        """Run a program on values one operation at a time, and return its results."""
        jaxpr = program.jaxpr
        level = Level(jaxpr, inside)
        values = level.values
        for var, const in zip(jaxpr.constvars, program.consts, strict=True):
            values[var] = self.input_value(const, "a constant that the function captured")
        values.update(zip(jaxpr.invars, args, strict=True))
        steps = self.steps.get(jaxpr)
        if steps is None:
            # Dead equations are not compiled either, and might not run.
            lean = jaxpr.replace(eqns=live_equations(jaxpr.eqns, jaxpr.outvars))
            steps = self.steps[jaxpr] = list(zip(lean.eqns, last_uses(lean), strict=True))
        for equation, done in steps:
            operands = [level.read(atom) for atom in equation.invars]
            results = self.enter(equation, operands, level)
            if results is None:
                results = self.operation(level, equation, operands)
            values.update(zip(equation.outvars, results, strict=True))
            for var in done:
                if type(var) is not Var or getattr(values[var].array, "nbytes", 0) > _SMALL:
                    del values[var]
        return [level.read(atom) for atom in jaxpr.outvars]

    def array_of(self, operand: Value) -> ArrayLike:
        return operand.array

    def in_call(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        inputs: Sequence[Value],
        context: Level,
        branch: int | None,
    ) -> list[Value]:
        return self.run(program, inputs, inside(context, equation, program, branch))

    def operation(self, level: Level, equation: Equation, operands: list[Value]) -> list[Value]:
        """Run one operation on its operands' arrays, and return its results as values."""
        primitive = equation.primitive
        results = primitive.bind(*(v.array for v in operands), **equation.params)
        if not primitive.multiple_results:
            results = (results,)
        return [self.judged(level, equation, operands, x) for x in results]

    def judged(
        self, level: Level, equation: Equation, operands: list[Value], x: ArrayLike
    ) -> Value:
        """Return a result of an operation as a value, with the trails of its bad elements."""
        host = nonfinite(x)
        if host is None:
            return Value(x, equation)
        bad: tuple[Trail, ...] = ()
        infinite: tuple[Trail, ...] = ()
        if (mask := self.mask(host)).any():
            bad = self._trails(level, equation, operands, host, mask, "bad")
        if "infinite" in self.followed and (mask := np.isinf(host)).any():
            infinite = self._trails(level, equation, operands, host, mask, "infinite")
        return Value(x, equation, bad, infinite)

    def _trails(
        self,
        level: Level,
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        which: str,
    ) -> tuple[Trail, ...]:
        """Return the trails of a result's bad elements: those of operands, or a new one."""
        name = equation.primitive.name
        new = mask
        trails: list[Trail] = []
        for position, operand in enumerate(operands):
            theirs: tuple[Trail, ...] = getattr(operand, which)
            if not theirs:
                continue
            if name in ELEMENTWISE:
                array = np.asarray(operand.array)
                shared = np.broadcast_to(self.mask(array, which), host.shape) & mask
                if name == "select_n":
                    shared = shared & (
                        np.asarray(operands[0].array).astype(np.int32) == position - 1
                    )
                if not shared.any():
                    continue
                new = new & ~shared
            trails += theirs
        if not trails or (name in ELEMENTWISE and new.any()):
            start = self.start(level, equation, operands, host, new, which)
            trails.append(Trail(start, equation, None))
        return self.together(
            trail if trail.equation is equation else Trail(trail.start, equation, trail)
            for trail in trails
        )

    def together(self, trails: Iterable[Trail]) -> tuple[Trail, ...]:
        """Return one trail per start, the earliest start first, at most `_MOST_TRAILS`."""
        by_start: dict[Start, Trail] = {}
        for trail in trails:
            by_start.setdefault(trail.start, trail)
        if len(by_start) == 1:
            return tuple(by_start.values())
        return tuple(sorted(by_start.values(), key=lambda trail: trail.start.number)[:_MOST_TRAILS])

    # ---- starts

    def start(
        self,
        level: Level,
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        which: str = "bad",
    ) -> Start:
        """Record an operation that makes bad values from operands that have none."""
        key = id(equation)
        operation = None
        if which == "bad":
            self.times[key] = self.times.get(key, 0) + 1
        if self.described < _MOST_DESCRIBED or self.times.get(key, 0) == 1:
            self.described += 1
            elements = host[mask] if host.shape else host
            kind = "inf" if which == "infinite" else self.kind_of(elements)
            operation = self._described(level, equation, operands, host, mask, kind)
        start = Start(self._next(), equation, operation)
        if which == "bad":
            self.starts.append(start)
        return start

    def _described(
        self,
        level: Level,
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        kind: str,
    ) -> NanOrigin:
        index = tuple(int(i) for i in np.unravel_index(int(mask.argmax()), host.shape))
        arrays = [v.array for v in operands]
        elements = elements_of(equation, arrays, index)
        lines = callers(equation.traceback)
        return NanOrigin(
            primitive=equation.primitive.name,
            parameters=_parameters(equation),
            kind=kind,
            expression=expression_of(equation, arrays, elements),
            value=str(host[index]),
            source_line=lines[0] if lines else None,
            callers=lines[1:],
            name_stack=tuple(filter(None, path_of(equation.name_stack).split("/"))),
            inside=level.inside,
            operands=tuple(
                self._operand(level, atom, operand, element, index)
                for atom, operand, element in zip(equation.invars, operands, elements, strict=True)
            )
            if operands
            else (),
            result=facts("", host, index, mask),
        )

    def _operand(
        self, level: Level, atom: Atom, operand: Value, element: Element | None, index: Shape
    ) -> OperandReport:
        definition = level.definition(atom)
        lines: list[str] = []
        source_line = None
        if definition is not None:
            source_line = source_line_of(definition.traceback)
            described = _computed(level, definition, index, written(source_line))
            lines = _before(level, definition, index)
        elif isinstance(operand.origin, str):
            described = operand.origin
        else:
            source_line = source_line_of(operand.origin.traceback)
            at = written(source_line)
            described = operand.origin.primitive.name + (f" at {at}" if at else "")
        since = ""
        for trail in operand.infinite[:1]:
            start = trail.start
            if start.equation is None:
                since = f"{start.argument}, where it is so already"
            elif start.equation is not definition:
                since = (
                    start.operation.brief()
                    if start.operation
                    else str(
                        OperationStep(
                            start.equation.primitive.name, source_line_of(start.equation.traceback)
                        )
                    )
                )
        name = operand.origin if isinstance(operand.origin, str) else ""
        return OperandReport(
            facts(name, operand.array), element, described, source_line, tuple(lines), since
        )


def _parameters(equation: Equation) -> dict[str, str]:
    """Return an equation's parameters as text, without subprograms, callables and None."""
    texts: dict[str, str] = {}
    programs = {part.parameter for part in subprograms_of(equation)}
    for name, value in equation.params.items():
        if value is None or callable(value) or name in programs:
            continue
        if isinstance(value, tuple | list) and any(map(callable, value)):
            continue
        texts[name] = source.shortened(str(value))
    return texts


# The maximum number of operations listed before an operand.
_MOST_BEFORE = 3


def _before(level: Level, definition: Equation, index: Shape) -> list[str]:
    """Return a line of text for each operation that leads to an operand, the nearest first."""
    lines: list[str] = []
    equation = definition
    for _ in range(_MOST_BEFORE):
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
            f"<- {_computed(level, previous, index, written(source_line_of(previous.traceback)))}"
        )
        equation = previous
    return lines


def _computed(level: Level, equation: Equation, index: Shape, at: str) -> str:
    """Return an operation as text, with its operands' elements at an index if available."""
    text = equation.primitive.name
    values = [level.read(a) if type(a) is Literal else level.values.get(a) for a in equation.invars]
    if text in ELEMENTWISE and all(v is not None for v in values):
        arrays = [v.array for v in values if v is not None]
        elements = elements_of(equation, arrays, index)
        if all(x is not None for x in elements):
            text = expression_of(equation, arrays, elements)
    return f"{text} at {at}" if at else text


def callers(traceback: "source.Traceback | None") -> tuple[SourceLine, ...]:
    """Return the user's source lines inside the traced function, innermost first."""
    if traceback is None:
        return ()
    start = stage.__code__
    lines: list[SourceLine] = []
    for code, instruction in zip(*traceback.raw_frames(), strict=True):
        if code.co_name == start.co_name and code.co_filename == start.co_filename:
            break
        if source.is_user_file(code.co_filename):
            frame = source.Frame(code, instruction)
            lines.append(
                SourceLine(
                    frame.file,
                    frame.line,
                    frame.function,
                    source.line_text(frame),
                    source.expression_text(frame),
                    frame.column,
                )
            )
    if lines:
        return tuple(lines)
    # The frame is in a program that hlofront's own code traced: the user's line is further out.
    outer = source_line_of(traceback)
    return (outer,) if outer else ()


def facts(
    name: str,
    array: ArrayLike,
    index: Shape | None = None,
    mask: Mask | None = None,
) -> Values:
    """Return a summary of an array: its dtype, shape, range and bad elements.

    Args:
      index: the index of the first bad element; by default the first in `mask`, or not finite.
    """
    dtype, shape = typed(array)
    if isinstance(dtype, ExtendedDType):
        return Values(name, str(dtype), shape, 0, 0, None, None)
    host = np.asarray(array)
    nans = infinities = 0
    ordered = host
    if issubdtype(host.dtype, np.inexact):
        finite = np.isfinite(host)
        if not finite.all():
            nans, infinities = int(np.isnan(host).sum()), int(np.isinf(host).sum())
            ordered = host[finite]
            if index is None:
                wanted = ~finite if mask is None else mask
                index = tuple(int(i) for i in np.unravel_index(int(wanted.argmax()), host.shape))
    least = greatest = None
    if ordered.size and not issubdtype(host.dtype, np.complexfloating):
        least, greatest = ordered.min(), ordered.max()
    return Values(name, str(host.dtype), shape, nans, infinities, least, greatest, index)
