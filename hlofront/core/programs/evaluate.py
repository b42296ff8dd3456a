"""Evaluation of a jaxpr: each equation is bound again with the current interpreter."""

from collections.abc import Sequence

from hlofront.base.boundary import user_context
from hlofront.base.typing import Value
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from hlofront.core.names import coming_from
from hlofront.core.programs.liveness import last_uses
from hlofront.core.trace import as_array, as_result, is_eager
from hlofront.core.typed_scalars import typed


def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Value], *args: Value, propagate_source_info: bool = True
) -> list[Value]:
    """Evaluate a jaxpr on values, and return the list of its outputs.

    Each value is released after its last use, so that intermediate arrays are freed early.

    Args:
      jaxpr: the jaxpr.
      consts: a value for each of its constants.
      *args: a value for each of its inputs.
      propagate_source_info: while tracing, whether new equations get the source lines of the
        jaxpr's equations, rather than the line of this call.

    Raises:
      ValueError: if the number of constants or inputs is not the jaxpr's.
    """
    environment: dict[Atom, Value] = {}
    _assign(environment, "constant", jaxpr.constvars, consts)
    _assign(environment, "input", jaxpr.invars, args)
    del args
    uses = last_uses(jaxpr)
    tracing = not is_eager()

    def read(atom: Atom) -> Value:
        return atom.operand if type(atom) is Literal else environment[atom]

    try:
        for equation, is_last in zip(jaxpr.eqns, uses, strict=True):
            operands = [read(atom) for atom in equation.invars]
            if tracing:
                if equation.primitive.jvp_calls_user:
                    operands = [
                        as_array(x) if type(atom) is Literal else x
                        for atom, x in zip(equation.invars, operands, strict=True)
                    ]
                traceback = equation.traceback if propagate_source_info else None
                with coming_from(equation.name_stack, traceback):
                    results = equation.primitive.bind(*operands, **equation.params)
            else:
                results = equation.primitive.bind(*operands, **equation.params)
            if not equation.primitive.multiple_results:
                results = (results,)
            environment.update(zip(equation.outvars, results, strict=True))
            for var in is_last:
                del environment[var]
            # Release the references to values before the next operation runs.
            del operands, results
    except Exception:
        with user_context(equation.traceback):  # pyright: ignore[reportPossiblyUnboundVariable]
            raise
    if tracing:
        return [read(atom) for atom in jaxpr.outvars]
    # Outputs that are literals are Python or NumPy scalars, which may have 64 bits although x64
    # is off.
    return [
        as_result(typed(atom.operand) if type(atom) is Literal else read(atom))
        for atom in jaxpr.outvars
    ]


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Value) -> list[Value]:
    """Evaluate a closed jaxpr on inputs, and return the list of its outputs.

    Raises:
      ValueError: if the number of inputs is wrong.
    """
    return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def _assign(
    environment: dict[Atom, Value], kind: str, variables: Sequence[Var], values: Sequence[Value]
) -> None:
    if len(variables) != len(values):
        raise ValueError(
            f"the program has {len(variables)} {kind}s, and {len(values)} values were given"
        )
    environment.update(zip(variables, values, strict=True))
