"""debug_nans and debug_infs: results are looked at, and the operation behind a bad one is found."""

import itertools
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.config import debug_infs, debug_nans
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal
from hlofront.core.names import replayed_traceback
from hlofront.core.subprograms import (
    Subprogram,
    branches_of,
    condition_of,
    executed_by,
    inputs_among,
    split_inputs,
)
from hlofront.core.trace import engine, interpreting_with
from hlofront.higher_order.jit_call import jit_p
from hlofront.primitives.slicing import index_in_dim
from hlofront.transforms.stage import EAGER, stage


def are_on() -> bool:
    """Whether results are looked at."""
    return debug_nans.value or debug_infs.value


def check(
    program: ClosedJaxpr, name: str, args: Sequence[Any], results: Sequence[Any], donates: bool
) -> None:
    """Raise an error if the results of a program have values that are looked for.

    The program is run again, one operation at a time, to find the first that makes one.

    Args:
      program: what was run.
      name: of the function behind it.
      args: what it was run on.
      results: what came out.
      donates: whether it took the memory of arguments, so that it cannot run again.

    Raises:
      FloatingPointError: with the operation's name; its traceback ends at the user's line.
    """
    search = Search(debug_nans.value, debug_infs.value)
    kind = search.kind_of(results)
    if kind is None:
        return
    if donates:
        raise FloatingPointError(
            f"invalid value ({kind}) encountered in {name}. It was compiled to reuse the memory of "
            "donated arguments, so it cannot run again to find the operation: compile it while "
            "jax_debug_nans or jax_debug_infs is set, and it keeps them."
        )
    # The operations are run as they are otherwise, and looked at here.
    with debug_nans(False), debug_infs(False), interpreting_with(engine()):
        found = search.in_program(program, args)
    if found is None:
        raise FloatingPointError(
            f"invalid value ({kind}) encountered in the output of {name}, and in none of its "
            "operations when they were run one by one. Either it is a constant that is returned "
            "as it is, or the compiled program computes in another way than its operations do: "
            "to leave it like that, take away the jit, or use hlofront.disable_jit()."
        )
    info = program.debug_info
    if found.equation in program.eqns and (info is None or info.traced_for == EAGER):
        # All lines that call for this operation share the program: it was written for the first.
        found.traceback = replayed_traceback() or source.current()
    raise found.error()


class Found:
    """The operation that makes a bad value, and where it is."""

    __slots__ = ("equation", "kind", "places", "traceback")

    traceback: Any
    # The steps of loops that it is in, innermost first.
    places: list[str]

    def __init__(self, kind: str, equation: Equation):
        self.kind = kind
        self.equation = equation
        self.traceback = equation.traceback
        self.places = []

    def error(self) -> FloatingPointError:
        lines = [f"invalid value ({self.kind}) encountered in {self.equation.primitive}"]
        frame = source.user_frame(self.traceback)
        if frame is not None:
            lines.append(f"  at {source.describe_frame_with_line(frame)}")
        lines += [f"  in {place}" for place in self.places]
        error = FloatingPointError("\n".join(lines))
        return error.with_traceback(_frames_of_function(self.traceback))


class Search:
    """Looks for the first operation that makes a bad value."""

    __slots__ = ("infinities", "nans")

    def __init__(self, nans: bool, infinities: bool):
        self.nans = nans
        self.infinities = infinities

    def kind_of(self, values: Sequence[Any]) -> str | None:
        """What is bad in the first of the values in which something is: "nan" or "inf"."""
        for x in values:
            dtype = getattr(x, "dtype", None)
            if dtype is None or isinstance(dtype, ExtendedDType):
                continue
            if not issubdtype(dtype, np.inexact):
                continue
            value = np.asarray(x)
            if self.nans and np.isnan(value).any():
                return "nan"
            if self.infinities and np.isinf(value).any():
                return "inf"
        return None

    def in_program(self, program: ClosedJaxpr, args: Sequence[Any]) -> Found | None:
        jaxpr: Jaxpr = program.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, program.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for equation in jaxpr.eqns:
            if not equation.outvars:
                continue  # What it does was done, and is not to be done again.
            operands = [
                atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
            ]
            results = equation.primitive.bind(*operands, **equation.params)
            if not equation.primitive.multiple_results:
                results = [results]
            kind = self.kind_of(results)
            if kind is not None:
                return self.in_equation(equation, operands) or Found(kind, equation)
            values.update(zip(equation.outvars, results, strict=True))
        return None

    def in_equation(self, equation: Equation, operands: Sequence[Any]) -> Found | None:
        """Search the programs that an equation with a bad result runs on these operands."""
        part = executed_by(equation)
        if part is None:
            return None
        if part.role == "body":
            return self._in_loop(equation, part, condition_of(equation), operands)
        if part.role == "branch":
            branches = branches_of(equation)
            part = branches[min(max(int(operands[0]), 0), len(branches) - 1)]
        return self.in_program(part.closed, inputs_among(part, operands))

    def _in_loop(
        self,
        equation: Equation,
        body: Subprogram,
        condition: Subprogram | None,
        operands: Sequence[Any],
    ) -> Found | None:
        """Run a loop step by step, and search the first step with a bad result."""
        consts, carry, rows = split_inputs(body, operands)
        for index in _indices(equation, body):
            if condition is not None:
                read = split_inputs(condition, operands)[0]
                (goes_on,) = _run(condition.closed, [*read, *carry])
                if np.ndim(goes_on) or not goes_on:
                    return None
            inputs = [*consts, *carry, *[index_in_dim(x, index, keepdims=False) for x in rows]]
            after = _run(body.closed, inputs)
            if self.kind_of(after) is not None:
                found = self.in_program(body.closed, inputs)
                if found is not None:
                    name = "while_loop" if condition is not None else equation.primitive.name
                    found.places.append(f"step {index} of {name}")
                return found
            carry = after[: len(carry)]
        return None


def _indices(equation: Equation, body: Subprogram) -> Iterable[int]:
    """Return the indices of a loop's iterations, in the order in which they run."""
    if body.iterations is None:
        return itertools.count()
    order = range(body.iterations)
    return reversed(order) if equation.params.get("reverse") else order


def _run(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return jit_p.bind(
        *args,
        name="step",
        jaxpr=program,
        donated_invars=(False,) * len(args),
        keep_unused=False,
        inline=False,
        compiler_options_kvs=(),
    )


# ---- tracebacks ----------------------------------------------------------------------------------


def _frames_of_function(traceback: Any) -> types.TracebackType | None:
    """The part of a C++ traceback that lies inside of the function that was traced.

    As a Python traceback, which takes the place of the frames that would be there if the function
    ran now. What is above it, the caller of now has in its own.
    """
    if traceback is None:
        return None
    entry = traceback.as_python_traceback()
    while entry is not None and not _is_start(entry.tb_frame.f_code):
        entry = entry.tb_next
    return None if entry is None else entry.tb_next


def _is_start(code: types.CodeType) -> bool:
    # Its frames have code objects of their own: they cannot be told by identity.
    start = stage.__code__
    return code.co_name == start.co_name and code.co_filename == start.co_filename
