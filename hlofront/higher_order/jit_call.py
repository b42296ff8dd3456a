"""A whole program as one operation: what a jitted function is inside another program."""

from typing import Any

from hlofront.core import rules
from hlofront.core.jaxpr import ClosedJaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.trace import Tracer

jit_p = Primitive("jit", multiple_results=True, carries_programs=True)


@rules.infer(jit_p)
def _(*avals, jaxpr, **_):
    return jaxpr.out_avals


@rules.effects(jit_p)
def _(*avals, jaxpr, **_):
    return jaxpr.effects


@rules.staged(jit_p)
def _(trace, *args, jaxpr, **params):
    # Values of an enclosing program that the function closed over become its first operands. A
    # program that is called again is opened once: the calls share it, here and in what is lowered.
    opened = trace.programs_of.get(id(jaxpr))
    if opened is None:
        opened = trace.programs_of[id(jaxpr)] = (*split_captured(jaxpr), jaxpr)
    program, captured, _ = opened
    if captured:
        args = (*captured, *args)
        donated = (False,) * len(captured) + tuple(params["donated_invars"])
        params = {**params, "donated_invars": donated}
    return trace.write(jit_p, args, {"jaxpr": program, **params})


def split_captured(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Turn constants that are tracers into inputs, which come first; and return the tracers."""
    captured = [isinstance(const, Tracer) for const in program.consts]
    if not any(captured):
        return program, []
    jaxpr = program.jaxpr
    pairs = list(zip(jaxpr.constvars, program.consts, captured, strict=True))
    inputs: list[Var] = [var for var, _, moved in pairs if moved]
    opened = jaxpr.replace(
        constvars=[var for var, _, moved in pairs if not moved],
        invars=[*inputs, *jaxpr.invars],
    )
    return (
        ClosedJaxpr(opened, [const for _, const, moved in pairs if not moved]),
        [const for _, const, moved in pairs if moved],
    )
