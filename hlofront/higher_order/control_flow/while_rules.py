"""The rules of the while primitive: jvp, partial evaluation, batching, dead code."""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.axes import AxisData
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, ParamDict, Value, Var
from hlofront.core.programs.liveness import live_equations
from hlofront.core.programs.program_cache import DerivedCache, once_per_program
from hlofront.core.references import touches_references
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangent, Tangents
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.selecting import (
    Flags,
    Member,
    Parts,
    nonzero,
    nonzero_flags,
    three_parts,
    variables,
    where,
    where_not,
    with_zeros,
)
from hlofront.primitives.rules.batching import to_front
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import SplitEquation, partial_eval_program, split_equations
from hlofront.transforms.simplify import SmallerEquation, dead_code_program


class _BatchedLoop(NamedTuple):
    """The programs of a batched while loop, and per member of the carry whether it is batched."""

    condition: ClosedJaxpr
    body: ClosedJaxpr
    carry: Flags


# Cached by the body of a loop, the condition, its number of constants, and flags per operand.
_splits: "DerivedCache[tuple[ClosedJaxpr, int, Flags], _Split]" = DerivedCache()
_batched_loops: DerivedCache[tuple[ClosedJaxpr, int, AxisData, Flags], _BatchedLoop] = (
    DerivedCache()
)


def _parts(members: Iterable[Member], params: ParamDict) -> Parts[Member]:
    """Split a sequence over a while loop's operands: condition constants, body constants, carry."""
    return three_parts(members, params["cond_nconsts"], params["body_nconsts"])


def _with_unread(program: ClosedJaxpr, avals: Avals) -> ClosedJaxpr:
    """Append unused inputs of types `avals` to a program."""
    return _with_inputs(program, tuple(avals)) if avals else program


@once_per_program
def _with_inputs(program: ClosedJaxpr, avals: tuple[ShapedArray, ...]) -> ClosedJaxpr:
    jaxpr = program.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=[*jaxpr.invars, *map(Var, avals)]), program.consts)


# ---- derivatives ---------------------------------------------------------------------------------


@rules.jvp(while_p)
def _(
    primals: ArrayLikes, tangents: Tangents, **params: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    cond_consts, body_consts, carry = _parts(primals, params)
    _, const_tangents, carry_tangents = _parts(tangents, params)
    condition, body = _programs(params)
    consts, has_tangent = nonzero_flags(const_tangents), nonzero_flags(carry_tangents)
    while True:
        with_tangents, present = jvp_program(body, (*consts, *has_tangent), has_tangent)
        if present == has_tangent:
            break
        has_tangent = present
    avals = [aval.to_tangent_aval() for aval in where(body.out_avals, has_tangent)]
    results = while_p.bind(
        *cond_consts,
        *body_consts,
        *nonzero(const_tangents),
        *carry,
        *map(instantiate, where(carry_tangents, has_tangent)),
        cond_jaxpr=_with_unread(condition, avals),
        body_jaxpr=_constants_first(with_tangents, consts, len(has_tangent)),
        cond_nconsts=len(cond_consts),
        body_nconsts=len(consts) + consts.count(True),
    )
    count = len(has_tangent)
    return results[:count], with_zeros(results[count:], has_tangent, body.out_avals)


def _programs(params: ParamDict) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Return the condition and the body of a while loop, from the parameters of its equation."""
    return params["cond_jaxpr"], params["body_jaxpr"]


@once_per_program
def _constants_first(body: ClosedJaxpr, consts: Flags, count: int) -> ClosedJaxpr:
    """Reorder the inputs of a jvp of a loop's body: constants first, then the carry.

    Args:
      body: the program that `jvp_program` made from the body.
      consts: per constant of the body, whether it has a tangent.
      count: the number of members of the carry.
    """
    inputs = body.jaxpr.invars
    const_count, tangent_count = len(consts), consts.count(True)
    first = const_count + count
    ordered = [*inputs[:const_count], *inputs[first : first + tangent_count]]
    ordered += [*inputs[const_count:first], *inputs[first + tangent_count :]]
    return ClosedJaxpr(body.jaxpr.replace(invars=ordered), body.consts)


@rules.transpose(while_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, **_: object) -> NoReturn:
    raise _no_reverse_mode()


def _no_reverse_mode() -> ValueError:
    """Return the error for reverse-mode differentiation of a while loop."""
    return ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values: the number of steps is unknown, and so is the memory that "
        "their intermediate values need. Instead, use:\n"
        "  * lax.scan, or lax.fori_loop with integers of Python as bounds, where the number of "
        "steps or an upper bound is known: a step that is not needed returns its carry;\n"
        "  * lax.custom_root for iterations to a solution of an equation, and custom_vjp wherever "
        "you know the derivative of the whole loop;\n"
        "  * jvp or jacfwd: forward mode goes through the loop."
    )


# ---- splitting -----------------------------------------------------------------------------------


@rules.partial_eval(while_p)
def _(unknown: list[bool], equation: Equation) -> SplitEquation:
    params = equation.params
    flags = tuple(unknown)
    if touches_references(params["cond_jaxpr"].effects | params["body_jaxpr"].effects):
        # References cannot be written to in the known loop and again in the unknown one.
        raise _no_reverse_mode()
    split_loop = _splits.get_or_compute(
        params["body_jaxpr"],
        (params["cond_jaxpr"], params["cond_nconsts"], flags),
        lambda: _Split(params, flags),
    )
    # A loop with an unknown number of iterations is unknown as a whole.
    known_loop, carry = split_loop.known, split_loop.carry
    if known_loop is None:
        return None, equation, (True,) * len(equation.outvars), []
    known = None
    if not all(carry) or known_loop.body.effects or known_loop.condition.effects:
        known = _equation(
            equation,
            where(equation.invars, known_loop.inputs),
            where_not(equation.outvars, carry),
            {
                "cond_jaxpr": known_loop.condition,
                "body_jaxpr": known_loop.body,
                "cond_nconsts": params["cond_nconsts"],
                "body_nconsts": _parts(known_loop.inputs, params)[1].count(True),
            },
        )
    unknown_equation = None
    if any(carry):
        # The whole loop runs again, because each iteration reads its known values.
        outvars = [
            var if u else Var(var.aval) for var, u in zip(equation.outvars, carry, strict=True)
        ]
        again = {
            **params,
            "cond_jaxpr": known_loop.condition_again,
            "body_jaxpr": known_loop.body_again,
        }
        unknown_equation = _equation(equation, equation.invars, outvars, again)
    return known, unknown_equation, carry, variables(where_not(equation.invars, unknown))


def _equation(
    equation: Equation, invars: Sequence[Atom], outvars: Sequence[Var], params: ParamDict
) -> Equation:
    condition, body = _programs(params)
    effects = condition.effects | body.effects
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=effects)


class _KnownLoop(NamedTuple):
    """The programs of a split while loop with a known number of iterations.

    Attributes:
      inputs: per operand, whether it is an operand of the loop of known values.
      condition: the condition, of known operands.
      body: the body, of known operands.
      condition_again: the condition of the whole loop, run again for the unknown values.
      body_again: the body of the whole loop, run again for the unknown values.
    """

    inputs: Flags
    condition: ClosedJaxpr
    body: ClosedJaxpr
    condition_again: ClosedJaxpr
    body_again: ClosedJaxpr


class _Split:
    """A while loop, split into a loop of known values and a rerun of the whole loop.

    Attributes:
      carry: per member of the carry, whether it is unknown.
      known: the programs; None if the number of iterations depends on unknown values.
    """

    __slots__ = ("carry", "known")

    def __init__(self, params: ParamDict, unknown: Flags):
        condition, body = _programs(params)
        cond_consts, consts, carry = _parts(unknown, params)
        while True:
            split_body = partial_eval_program(body, (*consts, *carry), carry)
            if split_body.unknown_out == carry:
                break
            carry = split_body.unknown_out
        self.carry: Flags = carry
        split_condition = partial_eval_program(condition, (*cond_consts, *carry))
        self.known: _KnownLoop | None = None
        if any(cond_consts) or any(split_condition.unknown_out):
            return
        known = tuple([not u for u in carry])
        count = known.count(True)
        jaxpr = split_body.known.jaxpr
        outvars = jaxpr.outvars[:count]
        known_body = ClosedJaxpr(
            jaxpr.replace(outvars=outvars, eqns=live_equations(jaxpr.eqns, outvars)),
            split_body.known.consts,
        )
        known_count = consts.count(False)
        known_body, stays = dead_code_program(
            known_body, (True,) * count, (*[False] * known_count, *[True] * count)
        )
        read = iter(stays)
        loop = self.known = _KnownLoop(
            inputs=(
                *[True] * len(cond_consts),
                *[not u and next(read) for u in consts],
                *known,
            ),
            # The condition reads no unknown values.
            condition=_of_inputs(condition, (*[True] * len(cond_consts), *known)),
            body=known_body,
            condition_again=_once(condition, (*cond_consts, *carry)),
            body_again=_once(body, (*consts, *carry)),
        )
        twice = loop.condition_again.effects | (loop.body_again.effects & loop.body.effects)
        if twice and not all(carry):
            raise NotImplementedError(  # JAX raises this class.
                f"Effects not supported in partial-eval of `while`: {sorted(map(str, twice))}. The "
                "loop is run once for its values and once for its tangents. Do this outside of it."
            )


def _of_inputs(program: ClosedJaxpr, chosen: Flags) -> ClosedJaxpr:
    """Return a program with only its `chosen` inputs; it must read no others."""
    jaxpr = program.jaxpr.replace(invars=where(program.jaxpr.invars, chosen))
    return ClosedJaxpr(jaxpr, program.consts)


def _once(program: ClosedJaxpr, unknown: Flags) -> ClosedJaxpr:
    """Remove the effects of a program that the loop of known values has already performed.

    The removed equations depend only on known values and have no results.
    """
    jaxpr = program.jaxpr
    if not jaxpr.effects:
        # A copy: a cached value must not refer to its source program, or its release is delayed.
        return ClosedJaxpr(jaxpr, program.consts)
    depends = set(where(jaxpr.invars, unknown))
    split_equations(jaxpr, depends)
    stay = [
        e
        for e in jaxpr.eqns
        if e.outvars or not e.effects or not depends.isdisjoint(variables(e.invars))
    ]
    effects = no_effects.union(*[e.effects for e in stay])
    return ClosedJaxpr(jaxpr.replace(eqns=stay, effects=effects), program.consts)


@rules.simplify(while_p)
def _(used: list[bool], equation: Equation) -> SmallerEquation:
    params = equation.params
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    condition, body = _programs(params)
    cond_nconsts: int = params["cond_nconsts"]
    body_nconsts: int = params["body_nconsts"]
    _, read = dead_code_program(condition, (True,))
    needed: Flags = tuple([u or r for u, r in zip(used, read[cond_nconsts:], strict=True)])
    while True:
        _, stays = dead_code_program(body, needed)
        grown = tuple([n or s for n, s in zip(needed, stays[body_nconsts:], strict=True)])
        if grown == needed:
            break
        needed = grown
    smaller_body, stays = dead_code_program(body, needed, (*[False] * body_nconsts, *needed))
    smaller_condition, read = dead_code_program(
        condition, (True,), (*[False] * cond_nconsts, *needed)
    )
    inputs = (*read[:cond_nconsts], *stays[:body_nconsts], *needed)
    smaller = {
        "cond_jaxpr": smaller_condition,
        "body_jaxpr": smaller_body,
        "cond_nconsts": sum(read[:cond_nconsts]),
        "body_nconsts": sum(stays[:body_nconsts]),
    }
    outvars = where(equation.outvars, needed)
    return inputs, _equation(equation, where(equation.invars, inputs), outvars, smaller)


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(while_p)
def _(axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Value) -> BatchResult:
    batched = tuple([a is not None for a in axes])
    batched_loop = _batched_loops.get_or_compute(
        params["body_jaxpr"],
        (params["cond_jaxpr"], params["cond_nconsts"], axis, batched),
        lambda: _batched(axis, batched, params),
    )
    in_front = [to_front(x, a, axis.size) if a else x for x, a in zip(values, axes, strict=True)]
    cond_consts, body_consts, first = _parts(in_front, params)
    _, _, first_axes = _parts(axes, params)
    first = [
        to_front(x, None, axis.size) if b and a is None else x
        for x, a, b in zip(first, first_axes, batched_loop.carry, strict=True)
    ]
    programs = {"cond_jaxpr": batched_loop.condition, "body_jaxpr": batched_loop.body}
    results = while_p.bind(*cond_consts, *body_consts, *first, **{**params, **programs})
    return results, [0 if b else None for b in batched_loop.carry]


def _batched(axis: AxisData, batched: Flags, params: ParamDict) -> _BatchedLoop:
    """Return the programs of a batched while loop.

    Args:
      axis: the size and name of the batch axis.
      batched: per operand, whether it has the batch axis.
      params: the parameters of the loop.
    """
    condition, body = _programs(params)
    cond_consts, body_consts, carry = _parts(batched, params)
    several = bool(condition.out_avals[0].shape)
    while True:
        over_axis, (condition_varies,) = batch_program(condition, axis, (*cond_consts, *carry))
        # If the condition is batched, each example has its own number of iterations, so the whole
        # carry is batched. If it is already batched over another axis, both get both axes.
        own_steps = condition_varies or (several and any(carry))
        if own_steps and not all(carry):
            carry = (True,) * len(carry)
            continue
        body_over_axis, carry_out = batch_program(body, axis, (*body_consts, *carry), carry)
        if carry_out == carry:
            break
        carry = carry_out
    if own_steps:
        over_axis, _ = batch_program(condition, axis, (*cond_consts, *carry), True)
        body_over_axis, _ = batch_program(body, axis, (*body_consts, *carry), True)
        effects = [e for e in condition.effects | body.effects if not e.repeatable]
        if effects:
            raise NotImplementedError(  # JAX raises this class.
                f"{effects[0]} effects not supported in while_loop with batched predicate: "
                "examples that have ended take part in the steps of the others. Loop over the "
                "examples with lax.map, or do this outside of the loop."
            )
    return _BatchedLoop(over_axis, body_over_axis, carry)
