"""while under transformations: the derivative, splitting, batching, dead code."""

from collections.abc import Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.aval import AbstractValue
from hlofront.core.axes import AxisData
from hlofront.core.derived import DerivedCache, once_per_program
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Literal, Var
from hlofront.core.liveness import live_equations
from hlofront.core.symbolic_zeros import Zero
from hlofront.higher_order.jit_call import spread
from hlofront.higher_order.while_loop import split, while_p
from hlofront.primitives.batching import to_front
from hlofront.primitives.derivatives import instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import partial_eval_program, split_equations
from hlofront.transforms.simplify import dead_code_program

Flags = tuple[bool, ...]
Params = dict[str, Any]

# Of the body of a loop, by the condition, the number of its constants, and flags per operand.
_splits: "DerivedCache[tuple[ClosedJaxpr, int, Flags], _Split]" = DerivedCache()
_batched_loops: DerivedCache[
    tuple[ClosedJaxpr, int, AxisData, Flags], tuple[ClosedJaxpr, ClosedJaxpr, Flags]
] = DerivedCache()


def _parts(members: Sequence[Any], params: Params) -> tuple[Any, Any, Any]:
    return split(members, params["cond_nconsts"], params["body_nconsts"])


def _where(members: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [member for member, flag in zip(members, flags, strict=True) if flag]


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if type(atom) is not Literal]


def _with_unread(program: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
    """Return the program with more inputs, after its own, that it does not read."""
    return _with_inputs(program, tuple(avals)) if avals else program


@once_per_program
def _with_inputs(program: ClosedJaxpr, avals: tuple[AbstractValue, ...]) -> ClosedJaxpr:
    jaxpr = program.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=[*jaxpr.invars, *map(Var, avals)]), program.consts)


# ---- derivatives ---------------------------------------------------------------------------------


@rules.jvp(while_p)
def _(primals, tangents, **params):
    cond_consts, body_consts, carry = _parts(primals, params)
    _, const_tangents, carry_tangents = _parts(tangents, params)
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    consts = tuple([type(t) is not Zero for t in const_tangents])
    moving: Flags = tuple([type(t) is not Zero for t in carry_tangents])
    while True:
        made, present = jvp_program(body, (*consts, *moving), moving)
        if present == moving:
            break
        moving = present
    made = _constants_first(made, consts, len(moving))
    avals = [aval.to_tangent_aval() for aval in _where(body.out_avals, moving)]
    given = _where(const_tangents, consts)
    results = while_p.bind(
        *cond_consts,
        *body_consts,
        *given,
        *carry,
        *map(instantiate, _where(carry_tangents, moving)),
        cond_jaxpr=_with_unread(condition, avals),
        body_jaxpr=made,
        cond_nconsts=len(cond_consts),
        body_nconsts=len(consts) + len(given),
    )
    count = len(moving)
    return results[:count], spread(results[count:], moving, body.out_avals)


@once_per_program
def _constants_first(made: ClosedJaxpr, consts: Flags, count: int) -> ClosedJaxpr:
    """Return a body of values and tangents with its inputs in the order that a loop wants.

    Args:
      consts: per constant of the body, whether it has a tangent.
      count: the number of members of the carry.
    """
    inputs = made.jaxpr.invars
    own, given = len(consts), consts.count(True)
    first = own + count
    ordered = [*inputs[:own], *inputs[first : first + given]]
    ordered += [*inputs[own:first], *inputs[first + given :]]
    return ClosedJaxpr(made.jaxpr.replace(invars=ordered), made.consts)


@rules.transpose(while_p)
def _(cotangents, *operands, **_):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values: how many steps there will be is not known, and so not how much "
        "room to keep for what each of them computes. Instead:\n"
        "  * lax.scan, or lax.fori_loop with integers of Python as bounds, where the number of "
        "steps is known, or a bound of it is: a step that is not needed returns its carry;\n"
        "  * lax.custom_root for iterations to a solution of an equation, and custom_vjp wherever "
        "you know the derivative of the whole loop;\n"
        "  * jvp or jacfwd: forward mode goes through the loop."
    )


# ---- splitting -----------------------------------------------------------------------------------


@rules.partial_eval(while_p)
def _(unknown, equation):
    params = equation.params
    # The number of steps must be known; and then what is known is computed by a loop of it alone.
    flags = tuple(unknown)
    found = _splits.get_or_compute(
        params["body_jaxpr"],
        (params["cond_jaxpr"], params["cond_nconsts"], flags),
        lambda: _Split(params, flags),
    )
    if not found.decided:
        return None, equation, (True,) * len(equation.outvars), []
    known = None
    if not all(found.carry) or found.body.effects or found.condition.effects:
        cond_consts, body_consts, carry = _parts(equation.invars, params)
        _, own_consts, own_carry = _parts(found.inputs, params)
        outvars = _where(equation.outvars, [not u for u in found.carry])
        invars = [*cond_consts, *_where(body_consts, own_consts), *_where(carry, own_carry)]
        made = {
            "cond_jaxpr": found.condition,
            "body_jaxpr": found.body,
            "cond_nconsts": len(cond_consts),
            "body_nconsts": own_consts.count(True),
        }
        known = _equation(equation, invars, outvars, made)
    rest = None
    if any(found.carry):
        # The whole loop again, as each of its steps needs what is known of that step.
        outvars = [
            var if u else Var(var.aval)
            for var, u in zip(equation.outvars, found.carry, strict=True)
        ]
        again = {**params, "cond_jaxpr": found.again[0], "body_jaxpr": found.again[1]}
        rest = _equation(equation, equation.invars, outvars, again)
    residuals = [atom for atom, u in zip(equation.invars, unknown, strict=True) if not u]
    return known, rest, found.carry, _variables(residuals)


def _equation(
    equation: Equation, invars: Sequence[Any], outvars: Sequence[Any], params: Params
) -> Equation:
    effects = params["cond_jaxpr"].effects | params["body_jaxpr"].effects
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=effects)


class _Split:
    """A loop in two: what known operands decide, and all of it again."""

    __slots__ = ("again", "body", "carry", "condition", "decided", "inputs")

    def __init__(self, params: Params, unknown: Flags):
        condition, body = params["cond_jaxpr"], params["body_jaxpr"]
        cond_consts, consts, carry = _parts(unknown, params)
        while True:
            parts = partial_eval_program(body, (*consts, *carry), carry)
            if parts.unknown_out == carry:
                break
            carry = parts.unknown_out
        # Per member of the carry, whether it is unknown.
        self.carry: Flags = carry
        whether = partial_eval_program(condition, (*cond_consts, *carry))
        # Whether known values decide how many steps there are.
        self.decided = not any(cond_consts) and not any(whether.unknown_out)
        if not self.decided:
            return
        known = tuple([not u for u in carry])
        count = known.count(True)
        # The condition reads none of what is unknown.
        self.condition = _of_inputs(condition, (*[True] * len(cond_consts), *known))
        jaxpr = parts.known.jaxpr
        outvars = jaxpr.outvars[:count]
        made = ClosedJaxpr(
            jaxpr.replace(outvars=outvars, eqns=live_equations(jaxpr.eqns, outvars)),
            parts.known.consts,
        )
        own = consts.count(False)
        self.body, stays = dead_code_program(
            made, (True,) * count, (*[False] * own, *[True] * count)
        )
        read = iter(stays)
        # Per operand, whether the known loop takes it.
        self.inputs = (
            *[True] * len(cond_consts),
            *[not u and next(read) for u in consts],
            *known,
        )
        self.again = (
            _once(condition, (*cond_consts, *carry)),
            _once(body, (*consts, *carry)),
        )
        twice = self.again[0].effects | (self.again[1].effects & self.body.effects)
        if twice and not all(carry):
            raise NotImplementedError(  # the class that JAX raises
                f"Effects not supported in partial-eval of `while`: {sorted(map(str, twice))}. The "
                "loop is run once for its values and once for its tangents. Do this outside of it."
            )


def _of_inputs(program: ClosedJaxpr, chosen: Flags) -> ClosedJaxpr:
    """The program of those inputs that it reads."""
    jaxpr = program.jaxpr.replace(invars=_where(program.jaxpr.invars, chosen))
    return ClosedJaxpr(jaxpr, program.consts)


def _once(program: ClosedJaxpr, unknown: Flags) -> ClosedJaxpr:
    """The program without what known values decide, has effects and no results: that was done."""
    jaxpr = program.jaxpr
    if not jaxpr.effects:
        # A copy: what is derived from a program must not refer to it, or it goes late.
        return ClosedJaxpr(jaxpr, program.consts)
    depends = set(_where(jaxpr.invars, unknown))
    split_equations(jaxpr, depends)
    kept = [
        e
        for e in jaxpr.eqns
        if e.outvars or not e.effects or not depends.isdisjoint(_variables(e.invars))
    ]
    effects = no_effects.union(*[e.effects for e in kept])
    return ClosedJaxpr(jaxpr.replace(eqns=kept, effects=effects), program.consts)


@rules.simplify(while_p)
def _(used, equation):
    params = equation.params
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    own, given = params["cond_nconsts"], params["body_nconsts"]
    _, read = dead_code_program(condition, (True,))
    needed: Flags = tuple([u or r for u, r in zip(used, read[own:], strict=True)])
    while True:
        _, stays = dead_code_program(body, needed)
        more = tuple([n or s for n, s in zip(needed, stays[given:], strict=True)])
        if more == needed:
            break
        needed = more
    smaller, stays = dead_code_program(body, needed, (*[False] * given, *needed))
    tested, read = dead_code_program(condition, (True,), (*[False] * own, *needed))
    inputs = (*read[:own], *stays[:given], *needed)
    made = {
        "cond_jaxpr": tested,
        "body_jaxpr": smaller,
        "cond_nconsts": sum(read[:own]),
        "body_nconsts": sum(stays[:given]),
    }
    outvars = _where(equation.outvars, needed)
    return inputs, _equation(equation, _where(equation.invars, inputs), outvars, made)


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(while_p)
def _(axis: AxisData, values, axes, **params):
    batched = tuple([a is not None for a in axes])
    condition, body, carry = _batched_loops.get_or_compute(
        params["body_jaxpr"],
        (params["cond_jaxpr"], params["cond_nconsts"], axis, batched),
        lambda: _batched(axis, batched, params),
    )
    consts = [to_front(x, a, axis.size) if a else x for x, a in zip(values, axes, strict=True)]
    cond_consts, body_consts, first = _parts(consts, params)
    *_, first_axes = _parts(axes, params)
    first = [
        to_front(x, None, axis.size) if b and a is None else x
        for x, a, b in zip(first, first_axes, carry, strict=True)
    ]
    results = while_p.bind(
        *cond_consts,
        *body_consts,
        *first,
        **{**params, "cond_jaxpr": condition, "body_jaxpr": body},
    )
    return results, [0 if b else None for b in carry]


def _batched(
    axis: AxisData, batched: Flags, params: Params
) -> tuple[ClosedJaxpr, ClosedJaxpr, Flags]:
    """The condition and the body over an axis, and which members of the carry have it."""
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    cond_consts, body_consts, carry = _parts(batched, params)
    several = bool(condition.out_avals[0].shape)
    while True:
        tested, (each,) = batch_program(condition, axis, (*cond_consts, *carry))
        # Each example has its own number of steps. So it is too where another axis has one number
        # per example: the condition then has both axes, first, as all of the carry has.
        apart = each or (several and any(carry))
        if apart and not all(carry):
            carry = (True,) * len(carry)
            continue
        stepped, found = batch_program(body, axis, (*body_consts, *carry), carry)
        if found == carry:
            break
        carry = found
    if apart:
        tested, _ = batch_program(condition, axis, (*cond_consts, *carry), True)
        stepped, _ = batch_program(body, axis, (*body_consts, *carry), True)
        effects = [e for e in condition.effects | body.effects if not e.repeatable]
        if effects:
            raise NotImplementedError(  # the class that JAX raises
                f"{effects[0]} effects not supported in while_loop with batched predicate: "
                "examples that have ended take part in the steps of the others. Loop over the "
                "examples with lax.map, or do this outside of the loop."
            )
    return tested, stepped, carry
