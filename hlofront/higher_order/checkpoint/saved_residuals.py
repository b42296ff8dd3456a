"""The functions saved_residuals and print_saved_residuals, and the logging of residuals."""

import logging
from collections.abc import Callable, Sequence

from hlofront.base import events, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.option import options
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Literal, Value, Var
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import NO_KEYWORDS, abstract, stage_tree
from hlofront.transforms.grad import linearize
from hlofront.transforms.simplify import inline_jaxpr

# The aval of a residual, and a text that describes its origin.
Residual = tuple[AbstractValue, str]


@boundary
def saved_residuals(f: Callable[..., PyTree], *args: object, **kwargs: object) -> list[Residual]:
    """List the values that differentiation of `f` saves for its backward pass.

    Args:
      f: a function of pytrees of arrays.
      args, kwargs: the arguments of `f`, or objects with their shapes and dtypes.

    Returns:
      A pair for each value: the aval, and a text that describes its origin.
    """
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    signature = Signature(f)
    names = signature.argument_names((args, kwargs))

    def residuals(*flat: ArrayLike) -> ArrayLikes:
        def of_leaves(*leaves_in: ArrayLike) -> list[Value]:
            own_args, own_kwargs = in_tree.unflatten(leaves_in)
            return f(*own_args, **own_kwargs)

        return linearize(of_leaves, *flat)[1].residuals

    flat_tree = tree.tree_structure((tuple(leaves), NO_KEYWORDS))
    program, _ = stage_tree(
        residuals,
        flat_tree,
        [abstract(leaf) for leaf in leaves],
        DebugInfo("saved_residuals", signature.find_where),
    )
    return _described(inline_jaxpr(program), names)


def _described(program: ClosedJaxpr, names: tuple[str, ...]) -> list[Residual]:
    """Return the aval of each result of a program, and a text that describes its origin.

    They are ordered by kind: literals, constants, arguments, results of equations.

    Args:
      program: a program whose results are residuals.
      names: the names of the program's inputs.
    """
    jaxpr = program.jaxpr
    arguments = dict(zip(jaxpr.invars, names, strict=True))
    constants = set(jaxpr.constvars)
    computed_by = {var: equation for equation in jaxpr.eqns for var in equation.outvars}
    named: dict[Atom, str] = {
        equation.invars[0]: equation.params["name"]
        for equation in jaxpr.eqns
        if equation.primitive is name_p and isinstance(equation.invars[0], Var)
    }
    variables = (*jaxpr.constvars, *jaxpr.invars, *computed_by)
    order: dict[Atom, int] = {var: number for number, var in enumerate(variables)}
    residuals: dict[Atom, Residual] = {}
    for atom in sorted(jaxpr.outvars, key=lambda atom: order.get(atom, -1)):
        if isinstance(atom, Literal):
            text = "from a literal"
        elif atom in arguments:
            text = f"from the argument {arguments[atom]}"
        elif atom in constants:
            text = "from a constant"
        else:
            equation = computed_by[atom]
            line = source.summarize(equation.traceback)
            if equation.primitive is name_p:
                text = f"named '{equation.params['name']}' from {line}"
            elif atom in named:
                text = f"named '{named[atom]}' from {line}"
            else:
                text = f"output of {equation.primitive.name} from {line}"
        residuals[atom] = atom.aval, text
    return list(residuals.values())


@boundary
def print_saved_residuals(f: Callable[..., PyTree], *args: object, **kwargs: object) -> None:
    """Print the values that differentiation of `f` saves for its backward pass, one per line.

    Args:
      f: a function of pytrees of arrays.
      args, kwargs: the arguments of `f`, or objects with their shapes and dtypes.
    """
    for aval, text in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(True)} {text}")


_log_residuals = options["jax_log_checkpoint_residuals"]


def log_checkpoint_residuals(
    program: ClosedJaxpr, inputs: Sequence[AbstractValue], known: ClosedJaxpr, saved_count: int
) -> None:
    """Log a checkpointed function's saved values; warn under jax_log_checkpoint_residuals.

    Args:
      program: the checkpointed program.
      inputs: the types of the inputs that are saved.
      known: the program that runs first, whose last results are saved.
      saved_count: the number of results that are saved.
    """
    level = logging.WARNING if _log_residuals.value else logging.DEBUG
    if not events.logger.isEnabledFor(level):
        return
    jaxpr = known.jaxpr
    saved = jaxpr.outvars[len(jaxpr.outvars) - saved_count :]
    saving = inline_jaxpr(ClosedJaxpr(jaxpr.replace(outvars=saved), known.consts))
    lines = [f"  {aval.str_short()}, an argument" for aval in inputs]
    lines += [
        f"  {aval.str_short()}, {text}"
        for aval, text in _described(saving, ("",) * len(jaxpr.invars))
    ]
    info = program.debug_info
    function = (info and info.func_src_info) or "a function"
    what = "saves for its derivative:\n" if lines else "saves nothing for its derivative"
    events.logger.log(level, "checkpoint of %s %s%s", function, what, "\n".join(lines))
