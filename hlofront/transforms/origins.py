"""Origins of tracers: the arguments that a variable depends on, and the lines that made it."""

from collections.abc import Sequence

from hlofront.base import errors, source
from hlofront.core.jaxpr import Atom, DebugInfo, Equation, Var
from hlofront.core.trace import Tracer


def explain_origin(
    debug_info: DebugInfo | None,
    inputs: Sequence[Var],
    equations: Sequence[Equation],
    operands: Sequence[object],
    var: Atom,
) -> str:
    """Return a message about the function and inputs that a staged variable comes from.

    Args:
      debug_info: the names of the traced function and of its arguments.
      inputs: the input variables of the program.
      equations: its equations so far.
      operands: the values that an enclosing program calls it with, or ().
      var: the variable to explain.
    """
    if debug_info is None:
        return ""
    function = debug_info.func_src_info
    traced = f"{function} for {debug_info.traced_for}"
    reached, made_by = _sources(inputs, equations, var)
    site = None if _is_users(debug_info) else source.call_site()
    if site is not None:
        called_at = source.describe_frame(site.frame)
        traced = f"{function}, called at {called_at}, for {debug_info.traced_for}"
    if not reached:
        return errors.made_by_operations(traced, [(e.primitive.name, e.traceback) for e in made_by])
    if site is None:
        return errors.depends_on_arguments(traced, _names(debug_info, reached))
    named = user_arguments(debug_info, inputs, equations, operands, var)
    return errors.depends_on_arguments(
        traced, named or [f"{name} of {function}" for name in _names(debug_info, reached)]
    )


def user_arguments(
    debug_info: DebugInfo | None,
    inputs: Sequence[Var],
    equations: Sequence[Equation],
    operands: Sequence[object],
    var: Atom,
) -> list[str]:
    """Return the arguments of users' functions that a variable depends on, as in "x of loss".

    For a jitted function of hlofront itself, these are the arguments behind its operands in the
    enclosing program.
    """
    if debug_info is None:
        return []
    reached, _ = _sources(inputs, equations, var)
    if _is_users(debug_info):
        return [f"{name} of {debug_info.func_name}" for name in _names(debug_info, reached)]
    called_with = [operands[i] for i in reached if i < len(operands)]
    named = [x._origin_arguments() for x in called_with if isinstance(x, Tracer)]  # pyright: ignore[reportPrivateUsage]
    return list(dict.fromkeys([name for names in named for name in names]))


def _is_users(debug_info: DebugInfo) -> bool:
    """Return whether the traced function is the user's; hlofront's own have no source line."""
    return " at " in debug_info.func_src_info


def _names(debug_info: DebugInfo, positions: Sequence[int]) -> list[str]:
    names = debug_info.arg_names or ()
    return [names[i] if i < len(names) else f"number {i}" for i in positions]


def _sources(
    inputs: Sequence[Var], equations: Sequence[Equation], var: Atom
) -> tuple[list[int], list[Equation]]:
    wanted: set[Atom] = {var}
    made_by: list[Equation] = []
    for equation in reversed(equations):
        if wanted.isdisjoint(equation.outvars):
            continue
        made_by.append(equation)
        wanted.update(a for a in equation.invars if isinstance(a, Var))
    return [i for i, v in enumerate(inputs) if v in wanted], made_by[::-1]
