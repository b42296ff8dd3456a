"""Why a value is a tracer: the arguments it depends on, and the lines that made it."""

from collections.abc import Sequence
from typing import Any

from hlofront.base import source
from hlofront.core.jaxpr import DebugInfo, Equation, Var

_MOST_SHOWN = 5


def explain_origin(
    debug_info: DebugInfo | None, inputs: Sequence[Var], equations: Sequence[Equation], var: Var
) -> str:
    """Trace a variable back through the equations to the inputs that it depends on."""
    if debug_info is None:
        return ""
    message = (
        f"The error occurred while tracing the function {debug_info.func_src_info} "
        f"for {debug_info.traced_for}. "
    )
    names = debug_info.arg_names or ()
    reached, made_by = _sources(inputs, equations, var)
    if reached:
        shown = [names[i] if i < len(names) else f"number {i}" for i in reached[:_MOST_SHOWN]]
        more = "" if len(reached) <= _MOST_SHOWN else f" and {len(reached) - _MOST_SHOWN} more"
        plural = "s" if len(reached) > 1 else ""
        return (
            f"{message}This concrete value was not available in Python because it depends on "
            f"the value{plural} of the argument{plural} {', '.join(shown)}{more}."
        )
    if made_by:
        lines = [
            f"  {equation.primitive} at {source.summarize(equation.traceback)}"
            for equation in made_by[-_MOST_SHOWN:]
        ]
        return f"{message}This value became a tracer by the operations on these lines:\n" + (
            "\n".join(lines)
        )
    return message


def _sources(
    inputs: Sequence[Var], equations: Sequence[Equation], var: Var
) -> tuple[list[int], list[Equation]]:
    wanted: set[Any] = {var}
    made_by: list[Equation] = []
    for equation in reversed(equations):
        if wanted.isdisjoint(equation.outvars):
            continue
        made_by.append(equation)
        wanted.update(a for a in equation.invars if isinstance(a, Var))
    return [i for i, v in enumerate(inputs) if v in wanted], made_by[::-1]
