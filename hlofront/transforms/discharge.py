"""Discharge: turning programs with mutable references into programs of values, for lowering.

A reference that is an input becomes the array that it holds, and where the program writes to it,
the array that it holds at the end becomes an output.
"""

from collections.abc import Sequence

from hlofront.base.boundary import user_context
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLikes
from hlofront.core import rules
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Equation, Jaxpr, Literal, Value
from hlofront.core.names import coming_from
from hlofront.core.programs.liveness import live_equations
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import called_by, inputs_among
from hlofront.core.references import is_reference, touches_references
from hlofront.core.trace import process
from hlofront.transforms.simplify import without_unused_constants
from hlofront.transforms.stage import stage


class Discharged(NamedTuple):
    """A program without references.

    Attributes:
      program: maps inputs, with arrays instead of references, to (*outputs, *new arrays).
      written: per input, whether it is a reference that the program writes to, so that its new
        array is an output.
    """

    program: ClosedJaxpr
    written: tuple[bool, ...]


def discharge_jaxpr(
    jaxpr: Jaxpr, consts: ArrayLikes, inputs: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Evaluate a jaxpr with references as operations on the arrays that they hold.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      inputs: a value per input; for a reference, the array that it holds.

    Returns:
      The outputs; and per input its new array if it is a reference that was written to, or None.
    """
    # References have an entry too: the array that they hold.
    values: dict[Atom, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))
    written: set[Atom] = set()
    for equation in jaxpr.eqns:
        operands = [
            atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
        ]
        try:
            with coming_from(equation.name_stack, equation.traceback):
                if _has_references(equation):
                    new_arrays, results = discharge_equation(equation, operands)
                else:
                    results = process(equation.primitive, tuple(operands), equation.params)
                    new_arrays = ()
        except Exception:
            with user_context(equation.traceback):
                raise
        for atom, array in zip(equation.invars, new_arrays, strict=False):
            if array is not None:
                values[atom] = array
                written.add(atom)
        if not equation.primitive.multiple_results:
            results = (results,)
        values.update(zip(equation.outvars, results, strict=True))
    outputs = [atom.operand if type(atom) is Literal else values[atom] for atom in jaxpr.outvars]
    return outputs, [values[var] if var in written else None for var in jaxpr.invars]


def _has_references(equation: Equation) -> bool:
    return touches_references(equation.effects) or any(
        is_reference(atom.aval) for atom in equation.invars
    )


def discharge_equation(
    equation: Equation, operands: Sequence[Value]
) -> tuple[Sequence[Value], Value]:
    """Run an equation with arrays instead of references; return their new arrays, and results.

    An operation that calls a program and has no rule of its own is replaced by the program.

    Raises:
      NoRuleError: if there is neither a rule nor a program.
    """
    primitive = equation.primitive
    call = None if primitive in rules.discharge else called_by(equation)
    if call is None:
        return rules.discharge[primitive](equation, operands)
    results, new_arrays = discharge_jaxpr(call.jaxpr, call.consts, inputs_among(call, operands))
    of_operands: list[Value] = [None] * len(operands)
    for index, array in zip(call.operands or (), new_arrays, strict=True):
        of_operands[index] = array
    return of_operands, results


def discharge_program(program: ClosedJaxpr, written: Sequence[bool] | None = None) -> Discharged:
    """Return a closed jaxpr without references; cached per program.

    Args:
      program: the closed jaxpr.
      written: per input, whether its array is an output; None for all that the program writes to.
    """
    return _discharged(program, None if written is None else tuple(written))


@once_per_program
def _discharged(program: ClosedJaxpr, written: tuple[bool, ...] | None) -> Discharged:
    avals = [getattr(aval, "inner_aval", aval) for aval in program.in_avals]
    flags = written

    def on_arrays(*inputs: Value) -> list[Value]:
        nonlocal flags
        outputs, new_arrays = discharge_jaxpr(program.jaxpr, program.consts, inputs)
        if flags is None:
            flags = tuple(array is not None for array in new_arrays)
        final = [old if new is None else new for old, new in zip(inputs, new_arrays, strict=True)]
        return [*outputs, *(x for x, is_output in zip(final, flags, strict=True) if is_output)]

    staged = stage(on_arrays, avals, program.jaxpr.origin)
    flags = flags or ()
    info = program.jaxpr.debug_info
    # The old elements that a write returns are mostly unused.
    jaxpr = staged.jaxpr.replace(
        eqns=live_equations(staged.jaxpr.eqns, staged.jaxpr.outvars),
        debug_info=None if info is None else _debug_info(info, flags),
    )
    return Discharged(without_unused_constants(jaxpr, staged), flags)


def _debug_info(info: DebugInfo, written: Sequence[bool]) -> DebugInfo:
    """Return the debug info with the updated references' values appended to the results."""

    def arg_names() -> tuple[str, ...]:
        names = info.arg_names or ()
        # The function may close over references, which are the last inputs.
        return (*names, *[f"captured[{i}]" for i in range(len(written) - len(names))])

    def result_paths() -> tuple[str, ...]:
        if info.result_paths is None:
            return ()
        new_arrays = [
            name for name, is_output in zip(arg_names(), written, strict=True) if is_output
        ]
        return (*info.result_paths, *new_arrays)

    return DebugInfo(info.traced_for, lambda: info.func_src_info, arg_names, result_paths)
