"""Checks of debug_nans and debug_infs on results, and a search for the first bad operation."""

import itertools
import types
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base import source
from hlofront.base.config import debug_infs, debug_nans
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.names import replayed_traceback
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Subprogram, split_inputs
from hlofront.core.sharding.mesh_context import NO_MESH
from hlofront.core.trace import engine, interpreting_with
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.runtime.checks.nan_search import NanSearch, nonfinite
from hlofront.transforms.stage import EAGER, stage

if TYPE_CHECKING:
    from hlofront.bridge.fast_parts import Traceback


def are_on() -> bool:
    """Return whether results are checked for NaNs or infinities."""
    return debug_nans.value or debug_infs.value


def check(
    program: ClosedJaxpr,
    name: str,
    args: Sequence[object],
    results: Sequence[object],
    donates: bool,
) -> None:
    """Raise an error if the results of a program have NaNs or infinities, as the options require.

    The program is run again, one operation at a time, to locate the first bad operation.

    Args:
      program: the program.
      name: the name of the traced function.
      args: the arguments that it was run on.
      results: its results.
      donates: whether it donates arguments, so that it cannot run again.

    Raises:
      FloatingPointError: with the operation's name; its traceback ends at the user's line.
    """
    switches = {"nan": debug_nans.value, "inf": debug_infs.value}
    search = FirstBadOperation([kind for kind, is_on in switches.items() if is_on])
    kind = search.kind_in(results)
    if kind is None:
        return
    if donates:
        raise FloatingPointError(
            f"invalid value ({kind}) encountered in {name}. It was compiled to reuse the memory of "
            "donated arguments, so it cannot run again to find the operation: compile it while "
            "jax_debug_nans or jax_debug_infs is set, and it keeps them."
        )
    # The operations run eagerly, and `search` checks their results.
    with debug_nans(False), debug_infs(False), interpreting_with(engine()):
        operation = search.in_program(program, args)
    if operation is None:
        raise FloatingPointError(
            f"invalid value ({kind}) encountered in the output of {name}, and in none of its "
            "operations when they were run one by one. Either it is a constant that is returned "
            "as it is, or the compiled program computes in another way than its operations do: "
            "to leave it like that, take away the jit, or use jax.disable_jit()."
        )
    info = program.debug_info
    if operation.equation in program.eqns and (info is None or info.traced_for == EAGER):
        # All lines that call this operation share the program, which has the first one's traceback.
        operation.traceback = replayed_traceback() or source.current()
    raise operation.error()


class BadOperation:
    """An operation that produces a bad value, with its source position and loop iterations."""

    __slots__ = ("equation", "kind", "loop_steps", "traceback")

    traceback: "Traceback | None"
    # The iterations of enclosing loops, innermost first.
    loop_steps: list[str]

    def __init__(self, kind: str, equation: Equation):
        self.kind = kind
        self.equation = equation
        self.traceback = equation.traceback
        self.loop_steps = []

    def error(self) -> FloatingPointError:
        lines = [f"invalid value ({self.kind}) encountered in {self.equation.primitive}"]
        frame = source.user_frame(self.traceback)
        if frame is not None:
            lines.append(f"  at {source.describe_frame_with_line(frame)}")
        lines += [f"  in {step}" for step in self.loop_steps]
        error = FloatingPointError("\n".join(lines))
        return error.with_traceback(_frames_of_function(self.traceback))


class FirstBadOperation(NanSearch[object, BadOperation, None]):
    """A search for the first operation that produces a bad value."""

    __slots__ = ()

    def kind_in(self, values: Sequence[object]) -> str | None:
        """Return "nan" or "inf", the kind of the first bad value; None if all are good."""
        for x in values:
            array = nonfinite(x)
            if array is not None and self.bad_elements(array).any():
                return self.kind_of(array)
        return None

    def in_program(self, program: ClosedJaxpr, args: Sequence[object]) -> BadOperation | None:
        """Return the first operation of a program that produces a bad value for these arguments."""
        jaxpr: Jaxpr = program.jaxpr
        values: dict[Var, object] = dict(zip(jaxpr.constvars, program.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for equation in jaxpr.eqns:
            if not equation.outvars:
                continue  # Its side effect has already run, and must not be repeated.
            operands = [
                atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
            ]
            results = equation.primitive.bind(*operands, **equation.params)
            if not equation.primitive.multiple_results:
                results = [results]
            kind = self.kind_in(results)
            if kind is not None:
                return self.enter(equation, operands, None) or BadOperation(kind, equation)
            values.update(zip(equation.outvars, results, strict=True))
        return None

    def in_call(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        inputs: Sequence[object],
        context: None,
        branch: int | None,
    ) -> BadOperation | None:
        return self.in_program(program, inputs)

    def in_loop(
        self,
        equation: Equation,
        body: Subprogram,
        condition: Subprogram | None,
        operands: Sequence[object],
        context: None,
    ) -> BadOperation | None:
        """Run a loop step by step, and search the first iteration with a bad result."""
        consts, carry, rows = split_inputs(body, operands)
        for index in _indices(equation, body):
            if condition is not None:
                read = split_inputs(condition, operands)[0]
                (continues,) = _run(condition.closed, [*read, *carry])
                if np.ndim(continues) or not continues:
                    return None
            inputs = [*consts, *carry, *[index_in_dim(x, index, keepdims=False) for x in rows]]
            after = _run(body.closed, inputs)
            if self.kind_in(after) is not None:
                operation = self.in_program(body.closed, inputs)
                if operation is not None:
                    name = "while_loop" if condition is not None else equation.primitive.name
                    operation.loop_steps.append(f"step {index} of {name}")
                return operation
            carry = after[: len(carry)]
        return None


def _indices(equation: Equation, body: Subprogram) -> Iterable[int]:
    """Return the indices of a loop's iterations, in execution order."""
    if body.iterations is None:
        return itertools.count()
    order = range(body.iterations)
    return reversed(order) if equation.params.get("reverse") else order


@once_per_program
def _without_names(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program of a loop's step without the names of results.

    They are those of the user's function, some of whose results the loop may not compute.
    """
    jaxpr = program.jaxpr
    return ClosedJaxpr(jaxpr.replace(debug_info=jaxpr.origin), program.consts)


def _run(program: ClosedJaxpr, args: Sequence[object]) -> list[Any]:
    return jit_p.bind(
        *args,
        name="step",
        jaxpr=_without_names(program),
        donated_invars=(False,) * len(args),
        keep_unused=False,
        inline=False,
        compiler_options_kvs=(),
        ctx_mesh=NO_MESH,
    )


# ---- tracebacks ----------------------------------------------------------------------------------


def _frames_of_function(traceback: "Traceback | None") -> types.TracebackType | None:
    """Return the part of a C++ traceback inside of the traced function, as a Python traceback.

    It replaces the frames that would exist if the function ran now. The frames above it are those
    of the present call.
    """
    if traceback is None:
        return None
    entry = traceback.as_python_traceback()
    while entry is not None and not _is_start(entry.tb_frame.f_code):
        entry = entry.tb_next
    return None if entry is None else entry.tb_next


def _is_start(code: types.CodeType) -> bool:
    # C++ frames have their own code objects, which are not identical to the function's.
    start = stage.__code__
    return code.co_name == start.co_name and code.co_filename == start.co_filename
