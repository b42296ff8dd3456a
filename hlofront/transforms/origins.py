"""Why a value is a tracer: the arguments it depends on, and the lines that made it."""

from collections.abc import Sequence
from typing import Any

from hlofront.base import errors, source
from hlofront.core.jaxpr import DebugInfo, Equation, Var


def explain_origin(
    debug_info: DebugInfo | None, inputs: Sequence[Var], equations: Sequence[Equation], var: Var
) -> str:
    """Follow a variable back through the equations to the inputs that it depends on."""
    if debug_info is None:
        return ""
    function = debug_info.func_src_info
    traced = f"{function} for {debug_info.traced_for}"
    names = debug_info.arg_names or ()
    reached, made_by = _sources(inputs, equations, var)
    # A function without a place is one of ours, which the user has jitted: where, they know.
    site = None if " at " in function else source.call_site()
    of = ""
    if site is not None:
        of = f" of {function}"
        traced = f"{function}, called at {source.place(site.frame)}, for {debug_info.traced_for}"
    if reached:
        shown = [names[i] + of if i < len(names) else f"number {i}{of}" for i in reached]
        return errors.depends_on_arguments(traced, shown)
    return errors.made_by_operations(traced, [(e.primitive.name, e.traceback) for e in made_by])


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
