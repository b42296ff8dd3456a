"""A whole program as one operation: what a jitted function is inside another program."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import calls
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import Tracer
from hlofront.transforms.batch import batch_program_at
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import partial_eval_program
from hlofront.transforms.simplify import dead_code_program
from hlofront.transforms.transpose import transpose_program

jit_p = Primitive("jit", multiple_results=True, carries_programs=True)
# A program whose operations go, where they are traced again, into the program around it.
closed_call_p = Primitive("closed_call", multiple_results=True, carries_programs=True)


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


def with_captured(program: ClosedJaxpr, captured: Sequence[Any]) -> ClosedJaxpr:
    """The program with these values, which may be among its constants, as its first inputs."""
    jaxpr: Jaxpr = program.jaxpr
    own = {id(c): var for var, c in zip(jaxpr.constvars, program.consts, strict=True)}
    inputs = [own.pop(id(c), None) or Var(typeof(c)) for c in captured]
    kept = [
        (var, c) for var, c in zip(jaxpr.constvars, program.consts, strict=True) if id(c) in own
    ]
    opened = jaxpr.replace(constvars=[var for var, _ in kept], invars=[*inputs, *jaxpr.invars])
    return ClosedJaxpr(opened, [c for _, c in kept])


# ---- derivatives and batching: the programs are made once and shared by all calls ----------------


def spread(found: Sequence[Any], present: Sequence[bool], avals: Sequence[Any]) -> list[Any]:
    """The tangents that were computed in their places among Zeros."""
    rest: Iterator[Any] = iter(found)
    return [
        next(rest) if there else Zero(aval.to_tangent_aval())
        for there, aval in zip(present, avals, strict=True)
    ]


class CallRules:
    """The rules of an operation that hands all its operands as they are to one program.

    Args:
      primitive: the operation.
      parameter: the name of the parameter that holds the program.
      adapted: (params, places of the operands that stay) -> params for a program made from it:
        a place is None for an operand that is new.
      inlined: whether the operation does nothing but call, so that the program's equations may
        replace it.
    """

    def __init__(
        self,
        primitive: Primitive,
        parameter: str,
        adapted: Callable[[dict[str, Any], Sequence[int | None]], dict[str, Any]] = lambda p, _: p,
        inlined: bool = False,
    ):
        self.primitive = primitive
        self.parameter = parameter
        self.adapted = adapted
        rules.subprograms(primitive)(calls(parameter, "inlined" if inlined else "call"))
        rules.infer(primitive)(lambda *avals, **params: params[parameter].out_avals)
        rules.effects(primitive)(lambda *avals, **params: params[parameter].effects)
        rules.jvp(primitive)(self.jvp)
        rules.transpose(primitive)(self.transpose)
        rules.batch_with_axis(primitive)(self.batch)
        rules.simplify(primitive)(self.simplify)

    def params(
        self, params: dict[str, Any], program: ClosedJaxpr, places: Sequence[int | None]
    ) -> dict[str, Any]:
        return {**self.adapted(params, places), self.parameter: program}

    def call(self, program: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        # The rule of a custom derivative may close over values of an enclosing function.
        program, captured = split_captured(program)
        args = (*captured, *args)
        return self.primitive.bind(*args, **self.params(params, program, [None] * len(args)))

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        program = params[self.parameter]
        nonzero = [type(t) is not Zero for t in tangents]
        made, present = jvp_program(program, nonzero)
        given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
        results = self.call(made, (*primals, *given), params)
        count = len(present)
        return results[:count], spread(results[count:], present, program.out_avals)

    def transpose(self, cotangents: Any, *operands: Any, **params: Any) -> list[Any]:
        linear = [type(x) is UndefinedPrimal for x in operands]
        nonzero = [type(c) is not Zero for c in cotangents]
        made, present = transpose_program(params[self.parameter], linear, nonzero)
        known = [x for x in operands if type(x) is not UndefinedPrimal]
        given = [c for c in cotangents if type(c) is not Zero]
        wanted = [x.aval for x in operands if type(x) is UndefinedPrimal]
        found = iter(spread(self.call(made, (*known, *given), params), present, wanted))
        return [next(found) if is_linear else None for is_linear in linear]

    def batch(self, axis: AxisData, values: Any, axes: Any, **params: Any) -> Any:
        made, axes_out = batch_program_at(params[self.parameter], axis, axes)
        return self.call(made, values, params), axes_out

    def equation(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        invars: Sequence[Any],
        outvars: Sequence[Any],
        places: Sequence[int | None],
    ) -> Equation:
        """The equation with another program, operands and results."""
        return equation.replace(
            primitive=self.primitive,
            invars=invars,
            outvars=outvars,
            params=self.params(equation.params, program, places),
            effects=program.effects,
        )

    def partial_eval(self, unknown: Any, equation: Equation) -> Any:
        split = partial_eval_program(equation.params[self.parameter], unknown)
        known_inputs = [atom for atom, u in zip(equation.invars, unknown, strict=True) if not u]
        unknown_inputs = [atom for atom, u in zip(equation.invars, unknown, strict=True) if u]
        pairs = list(zip(equation.outvars, split.unknown_out, strict=True))
        known_outputs: list[Any] = [var for var, u in pairs if not u]
        known_outputs += [Var(aval) for aval in split.known.out_avals[len(known_outputs) :]]
        residuals = [known_outputs[p] if p >= 0 else known_inputs[~p] for p in split.residuals]
        known = rest = None
        if known_outputs or split.known.effects:
            places = [None] * len(known_inputs)
            known = self.equation(equation, split.known, known_inputs, known_outputs, places)
        if any(split.unknown_out) or split.unknown.effects:
            invars = [*residuals, *unknown_inputs]
            outvars = [var for var, u in pairs if u]
            rest = self.equation(equation, split.unknown, invars, outvars, [None] * len(invars))
        return known, rest, split.unknown_out, residuals

    def simplify(self, used: Any, equation: Equation) -> Any:
        if not any(used) and not equation.effects:
            return [False] * len(equation.invars), None
        program = equation.params[self.parameter]
        smaller, stays = dead_code_program(program, used)
        if smaller is program:
            return stays, equation
        pairs = list(enumerate(zip(equation.invars, stays, strict=True)))
        return stays, self.equation(
            equation,
            smaller,
            [atom for _, (atom, stay) in pairs if stay],
            [var for var, u in zip(equation.outvars, used, strict=True) if u],
            [place for place, (_, stay) in pairs if stay],
        )


def _donating(params: dict[str, Any], places: Sequence[int | None]) -> dict[str, Any]:
    """What is new is not donated."""
    donated = params["donated_invars"]
    return {
        **params,
        "donated_invars": tuple([place is not None and donated[place] for place in places]),
    }


jit_rules = CallRules(jit_p, "jaxpr", _donating, inlined=True)
rules.partial_eval(jit_p)(jit_rules.partial_eval)
call_rules = CallRules(closed_call_p, "call_jaxpr", inlined=True)
rules.partial_eval(closed_call_p)(call_rules.partial_eval)


@rules.staged(jit_p)
def _(trace, *args, jaxpr, inline, **params):
    if inline:
        return jaxpr_as_fun(jaxpr, *args)
    return trace.write(jit_p, args, {**params, "jaxpr": jaxpr, "inline": inline})


@rules.run(closed_call_p)
def _(*args, call_jaxpr):
    return jaxpr_as_fun(call_jaxpr, *args)


@rules.staged(closed_call_p)
def _(trace, *args, call_jaxpr):
    return jaxpr_as_fun(call_jaxpr, *args)
