"""The splitting of checkpointed programs: what a policy keeps, and what runs again."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.core.derived import DerivedCache, once_per_program
from hlofront.core.digest import not_lowered
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Literal, Var
from hlofront.core.liveness import live_equations, variables_read
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import closed_programs_of, replace_programs
from hlofront.higher_order.checkpoint_policies import either_policy, is_saved
from hlofront.higher_order.cond import cond_p
from hlofront.higher_order.cond_rules import BranchesInTwo, cond_equation
from hlofront.higher_order.jit_call import call_rules, closed_call_p, jit_p, jit_rules
from hlofront.higher_order.scan import scan_p, stacked
from hlofront.higher_order.scan_splitting import operand_parts, scan_equation, where
from hlofront.transforms.partial_eval import PartialEval, closed, split_equations
from hlofront.transforms.simplify import dead_code_program

remat_p = Primitive("remat2", multiple_results=True, carries_programs=True)
not_lowered(remat_p, "policy")
remat_p.repeats_scopes = True

Flags = tuple[bool, ...]
Policy = Callable[..., Any] | None


# ---- known equations that run again --------------------------------------------------------------


class Recomputed:
    """Known equations: what runs first, what a policy keeps of it, and what runs again.

    `first` computes all that the equations did, and `kept`; `again` computes what is wanted from
    `kept` and from what the equations read; `needed` is what it reads, and what is wanted.
    """

    __slots__ = ("again", "first", "kept", "needed")

    def __init__(self, equations: Sequence[Equation], wanted: Iterable[Any], policy: Policy):
        needed = {atom for atom in wanted if type(atom) is not Literal}
        first: list[Equation] = []
        kept: list[Var] = []
        again: list[Equation] = []
        for equation in reversed(equations):
            flags = tuple([var in needed for var in equation.outvars])
            split = None
            if any(flags) and policy is not None:
                rule = _INSIDE.get(equation.primitive)
                if rule is not None:
                    split = rule(equation, flags, policy)
                elif is_saved(policy, equation):
                    split = equation, where(equation.outvars, flags), None
            before, saved, after = (equation, (), equation) if split is None else split
            first.append(before)
            kept += saved
            if any(flags) and after is not None:
                again.append(after)
                needed.update(atom for atom in after.invars if type(atom) is not Literal)
        self.first = first[::-1]
        self.kept = list(dict.fromkeys(kept[::-1]))
        self.again = again[::-1]
        self.needed = needed


# What runs first, the values that are kept of it, and what runs again, if anything does.
_InTwo = tuple[Equation, list[Var], Equation | None]


_steps: "DerivedCache[tuple[int, int, Flags, Policy], _Steps]" = DerivedCache()


def _scan_in_two(equation: Equation, wanted: Flags, policy: Policy) -> _InTwo | None:
    """A scan whose steps keep values, which are collected, and one that makes the rest of them."""
    params = equation.params
    (program,) = closed_programs_of(equation)
    key = (params["num_consts"], params["num_carry"], wanted, policy)
    steps = _steps.get_or_compute(program, key, lambda: _Steps(program, params, wanted, policy))
    if not steps.kept:
        return None
    count, length = params["num_carry"], params["length"]
    collected = [Var(stacked(var.aval, length)) for var in steps.collected]
    outvars = [*equation.outvars, *collected]
    first = scan_equation(
        equation, steps.first, equation.invars, outvars, params["num_consts"], count
    )
    kept = [outvars[place] for place in steps.kept]
    if steps.again is None:
        return first, kept, None
    consts, carry, xs = operand_parts(equation.invars, params)
    own_consts = [consts[place] for place in steps.consts]
    own_carry = where(carry, steps.carry)
    invars = [
        *own_consts,
        *own_carry,
        *[outvars[place] for place in steps.handed],
        *[xs[place] for place in steps.xs],
    ]
    results = [
        var if want else Var(var.aval)
        for var, want in zip(where(equation.outvars[:count], steps.carry), steps.last, strict=True)
    ]
    results += [equation.outvars[place] for place in steps.rows]
    again = scan_equation(equation, steps.again, invars, results, len(own_consts), len(own_carry))
    return first, kept, again


class _Steps:
    """The steps of a scan in two: see `_scan_in_two`. Places are of operands and results."""

    __slots__ = (
        "again",
        "carry",
        "collected",
        "consts",
        "first",
        "handed",
        "kept",
        "last",
        "rows",
        "xs",
    )

    def __init__(self, program: ClosedJaxpr, params: dict[str, Any], wanted: Flags, policy: Policy):
        jaxpr, count = program.jaxpr, params["num_carry"]
        consts, carried, xs = operand_parts(jaxpr.invars, params)
        carry = wanted[:count]
        while True:
            outputs = where(jaxpr.outvars, (*carry, *wanted[count:]))
            split = Recomputed(jaxpr.eqns, outputs, policy)
            grown = tuple([w or var in split.needed for w, var in zip(carry, carried, strict=True)])
            if grown == carry:
                break
            carry = grown
        # Per member of the carry, whether it runs again, and of those whether the last is wanted.
        self.carry: Flags = carry
        self.last = where(wanted[:count], carry)
        # What is collected already need not be collected twice.
        places = {
            atom: place
            for place, atom in enumerate(jaxpr.outvars)
            if place >= count and type(atom) is not Literal
        }
        self.collected = [var for var in split.kept if var not in places]
        places.update((var, len(jaxpr.outvars) + i) for i, var in enumerate(self.collected))
        self.kept = [places[var] for var in split.kept]
        constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
        results = [*jaxpr.outvars, *self.collected]
        self.first = closed(
            constants, jaxpr.invars, results, live_equations(split.first, results), jaxpr
        )
        kept = set(self.kept)
        self.rows = [i for i, want in enumerate(wanted) if i >= count and want and i not in kept]
        self.again: ClosedJaxpr | None = None
        if not any(carry) and not self.rows:
            return
        results = [*where(jaxpr.outvars[:count], carry), *[jaxpr.outvars[i] for i in self.rows]]
        read = variables_read(split.again, results)
        handed = [var for var in split.kept if var in read]
        self.handed = [places[var] for var in handed]
        self.consts = [i for i, var in enumerate(consts) if var in read]
        self.xs = [i for i, var in enumerate(xs) if var in read]
        inputs = [consts[i] for i in self.consts]
        inputs += [*where(carried, carry), *handed, *[xs[i] for i in self.xs]]
        self.again = closed(constants, inputs, results, split.again, jaxpr)


def _cond_in_two(equation: Equation, wanted: Flags, policy: Policy) -> _InTwo | None:
    """A cond whose branches keep values, and one that makes the rest of them."""
    index, *operands = equation.invars
    split, remade, direct = _branches_in_two(closed_programs_of(equation), wanted, policy)
    if split is None:
        return None
    outvars = [*equation.outvars, *[Var(aval) for aval in split.slots]]
    first = cond_equation(equation, split.known, equation.invars, outvars)
    kept, residuals = _handed(split, outvars, operands)
    kept += where(equation.outvars, direct)
    again = None
    if any(remade):
        results = where(equation.outvars, remade)
        again = cond_equation(equation, split.unknown, [index, *residuals], results)
    return first, kept, again


def _call_in_two(equation: Equation, wanted: Flags, policy: Policy) -> _InTwo | None:
    """Return the call of a program that keeps values, and that of one that makes the rest."""
    rules = jit_rules if equation.primitive is jit_p else call_rules
    split, remade, direct = _branches_in_two(closed_programs_of(equation), wanted, policy)
    if split is None:
        return None
    outvars = [*equation.outvars, *[Var(aval) for aval in split.slots]]
    operands = equation.invars
    first = rules.equation(equation, split.known[0], operands, outvars, [None] * len(operands))
    kept, residuals = _handed(split, outvars, operands)
    kept += where(equation.outvars, direct)
    again = None
    if any(remade):
        results = where(equation.outvars, remade)
        new = [None] * len(residuals)
        again = rules.equation(equation, split.unknown[0], residuals, results, new)
    return first, kept, again


def _handed(
    split: BranchesInTwo, outvars: Sequence[Var], operands: Sequence[Any]
) -> tuple[list[Var], list[Any]]:
    """What is kept, and with it what else the second program reads."""
    residuals = [outvars[p] if p >= 0 else operands[~p] for p in split.residuals]
    return [outvars[p] for p in split.residuals if p >= 0], residuals


def _branches_in_two(
    branches: Sequence[ClosedJaxpr], wanted: Flags, policy: Policy
) -> tuple[BranchesInTwo | None, Flags, Flags]:
    """Programs in two, unless nothing is kept; which results run again, and which are kept."""
    kept = [{*_of_results(program, wanted, policy).kept} for program in branches]
    if not any(kept):
        return None, wanted, (False,) * len(wanted)
    # A result that is kept, in one of them at least, is not made again in any.
    rows = list(zip(*[p.jaxpr.outvars for p in branches], strict=True))
    direct = tuple(
        [
            want and any(type(a) is Var and a in own for a, own in zip(row, kept, strict=True))
            for want, row in zip(wanted, rows, strict=True)
        ]
    )
    again = tuple([want and not d for want, d in zip(wanted, direct, strict=True)])
    splits = [_branch(program, again, policy) for program in branches]
    return BranchesInTwo(splits), again, direct


@once_per_program
def _of_results(program: ClosedJaxpr, wanted: Flags, policy: Policy) -> Recomputed:
    return Recomputed(program.jaxpr.eqns, where(program.jaxpr.outvars, wanted), policy)


@once_per_program
def _branch(program: ClosedJaxpr, again: Flags, policy: Policy) -> PartialEval:
    """A program that computes everything, and one that makes these results again."""
    jaxpr = program.jaxpr
    split = _of_results(program, again, policy)
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
    outputs = list(jaxpr.outvars)
    places: dict[Any, int] = {}
    for place, atom in enumerate(outputs):
        if type(atom) is not Literal:
            places.setdefault(atom, place)
    places.update((var, ~place) for place, var in enumerate(jaxpr.invars))
    results = where(jaxpr.outvars, again)
    read = variables_read(split.again, results)
    handed = [var for var in (*split.kept, *jaxpr.invars) if var in read]
    for var in handed:
        if var not in places:
            places[var] = len(outputs)
            outputs.append(var)
    return PartialEval(
        closed(constants, jaxpr.invars, outputs, live_equations(split.first, outputs), jaxpr),
        closed(constants, handed, results, split.again, jaxpr),
        (False,) * len(jaxpr.outvars),
        tuple([places[var] for var in handed]),
    )


_INSIDE: dict[Any, Callable[[Equation, Flags, Policy], _InTwo | None]] = {
    scan_p: _scan_in_two,
    cond_p: _cond_in_two,
    closed_call_p: _call_in_two,
    jit_p: _call_in_two,
}


# ---- a checkpointed program ----------------------------------------------------------------------


class CheckpointInTwo:
    """A checkpointed program in two: what runs first, and what runs again with the rest.

    The first goes from the known inputs to the known outputs and the saved values; the second
    from the saved values, the known inputs at `inputs` and the unknown inputs to the unknown
    outputs.
    """

    __slots__ = ("inputs", "known", "rest", "unknown_out")

    def __init__(self, program: ClosedJaxpr, unknown: Sequence[bool], policy: Policy):
        if policy is not None:
            if not callable(policy):
                raise TypeError(
                    f"{policy!r} of type {type(policy)} is not callable: the policy of checkpoint "
                    "is one of checkpoint_policies, or a function of a primitive, its avals and "
                    "parameters that returns a bool."
                )
            program = _with_policy(_pruned(program), policy)
        jaxpr = program.jaxpr
        depends = {var for var, u in zip(jaxpr.invars, unknown, strict=True) if u}
        known_equations, rest = split_equations(jaxpr, depends)
        self.unknown_out: Flags = tuple(
            [type(a) is not Literal and a in depends for a in jaxpr.outvars]
        )
        outputs = where(jaxpr.outvars, self.unknown_out)
        rest = live_equations(rest, outputs)
        split = Recomputed(known_equations, variables_read(rest, outputs), policy)
        known_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if not u]
        unknown_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if u]
        self.inputs = [place for place, var in enumerate(known_inputs) if var in split.needed]
        constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
        known_outputs = [
            *(atom for atom, u in zip(jaxpr.outvars, self.unknown_out, strict=True) if not u),
            *split.kept,
        ]
        first = live_equations(split.first, known_outputs)
        self.known = _pruned(closed(constants, known_inputs, known_outputs, first, jaxpr))
        inputs = [*split.kept, *[known_inputs[place] for place in self.inputs], *unknown_inputs]
        self.rest = _pruned(
            closed(constants, inputs, outputs, [*map(_named, split.again), *rest], jaxpr)
        )


def _named(equation: Equation) -> Equation:
    """An equation that runs again, as profilers show it."""
    return equation.replace(name_stack=("rematted_computation", *equation.name_stack))


def _pruned(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program, in which the programs inside lose what nobody reads of their results."""
    everything = (True,) * len(program.jaxpr.outvars)
    return dead_code_program(program, everything, instantiate=True)[0]


@once_per_program
def _with_policy(program: ClosedJaxpr, policy: Policy) -> ClosedJaxpr:
    """Return the program with checkpointed programs inside that obey this policy as well.

    What it keeps of them is handed to them by the program around, which computes it first.
    """
    equations = [_equation_with(equation, policy) for equation in program.eqns]
    if all(new is old for new, old in zip(equations, program.eqns, strict=True)):
        return program
    return ClosedJaxpr(program.jaxpr.replace(eqns=equations), program.consts)


def _equation_with(equation: Equation, policy: Policy) -> Equation:
    params = replace_programs(equation, lambda program: _with_policy(program, policy))
    if equation.primitive is remat_p:
        either = either_policy(policy, params["policy"])
        if either is not params["policy"]:
            params = {**params, "policy": either}
    return equation if params is equation.params else equation.replace(params=params)
