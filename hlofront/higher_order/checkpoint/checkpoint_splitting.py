"""Splitting checkpointed programs into a part that saves values and one that recomputes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, ParamDict, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import not_lowered
from hlofront.core.programs.liveness import live_equations, variables_read
from hlofront.core.programs.program_cache import DerivedCache, once_per_program
from hlofront.core.programs.subprograms import closed_programs_of, replace_programs
from hlofront.core.references import is_reference, touches_references
from hlofront.higher_order.calls.jit_call import call_rules, closed_call_p, jit_p, jit_rules
from hlofront.higher_order.checkpoint.checkpoint_policies import (
    Offloadable,
    Policy,
    decision_on,
    either_policy,
)
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.cond_rules import BranchesInTwo, cond_equation
from hlofront.higher_order.control_flow.scan import scan_p, stacked_variable
from hlofront.higher_order.control_flow.scan_splitting import operand_parts, scan_equation
from hlofront.higher_order.selecting import Flags, variables, where, where_not
from hlofront.primitives.sharding.placing import CopySemantics, device_put_p, memory_space_of
from hlofront.transforms.partial_eval import PartialEval, closed_part, split_equations
from hlofront.transforms.simplify import dead_code_program

remat_p = Primitive("remat2", multiple_results=True, carries_programs=True)
not_lowered(remat_p, "policy")
remat_p.repeats_scopes = True

# ---- known equations that run again --------------------------------------------------------------


class InTwo(NamedTuple):
    """An equation split into one that saves values and one that recomputes results from them.

    Attributes:
      first: the equation that runs first, and computes all results.
      saved: the variables that `first` computes for `again`.
      again: the equation that recomputes needed results; None if all of them are saved.
    """

    first: Equation
    saved: list[Var]
    again: Equation | None


class OwnRecomputation(NamedTuple):
    """The rule of a primitive whose equations may define how they are recomputed.

    Attributes:
      applies: returns whether an equation defines it.
      split: splits an equation, for a policy or None.
    """

    applies: Callable[[Equation], bool]
    split: Callable[[Equation, Policy | None], InTwo]


own_recomputation: dict[Primitive, OwnRecomputation] = {}


def recomputes_itself(equation: Equation) -> bool:
    """Return whether an equation defines how it is recomputed."""
    rule = own_recomputation.get(equation.primitive)
    return rule is not None and rule.applies(equation)


def _save_nothing(*_: object, **__: object) -> bool:
    """Return False: the policy of a checkpoint without one, which still looks into programs."""
    return False


@once_per_program
def _recomputes_itself(program: ClosedJaxpr) -> bool:
    return _any_recomputes_itself(program.eqns)


def _any_recomputes_itself(equations: Iterable[Equation]) -> bool:
    return any(
        recomputes_itself(equation) or any(map(_recomputes_itself, closed_programs_of(equation)))
        for equation in equations
    )


def _references_of(equation: Equation) -> set[Var]:
    """Return the mutable references among an equation's operands."""
    if not touches_references(equation.effects):
        return set()
    return {atom for atom in variables(equation.invars) if is_reference(atom.aval)}


def _moved_to(equation: Equation, values: Sequence[Var], kind: str) -> Equation:
    """Return an equation that moves another equation's results to a memory kind."""
    space = memory_space_of(kind)
    avals: list[Any] = [value.aval for value in values]
    moved = [Var(aval.update(memory_space=space)) for aval in avals]
    return _moving(equation, values, moved, kind)


def _moving(equation: Equation, values: Sequence[Var], moved: Sequence[Var], kind: str) -> Equation:
    """Return an equation that moves values to a memory kind, with the source of `equation`."""
    params: ParamDict = {
        "devices": (memory_space_of(kind),) * len(values),
        "srcs": (None,) * len(values),
        "copy_semantics": (CopySemantics.ALWAYS_COPY,) * len(values),
    }
    return Equation(values, moved, device_put_p, params, source_info=equation.source_info)


class Recomputed:
    """The known equations of a program, split into a forward part and a recomputed part.

    Args:
      equations: the known equations.
      wanted: the values that the backward pass reads.
      policy: decides which values are saved.

    Attributes:
      first: the equations that compute all results of `equations`, and `saved`.
      saved: the variables that the policy saves.
      again: the equations that recompute the wanted values from `saved` and from the inputs of
        `equations`.
      needed: the variables of `wanted`, and those that `again` reads.
    """

    __slots__ = ("again", "first", "needed", "saved")

    def __init__(
        self, equations: Sequence[Equation], wanted: Iterable[Atom], policy: Policy | None
    ):
        needed = set(variables(wanted))
        first: list[Equation] = []
        saved: list[Var] = []
        again: list[Equation] = []
        made = {v for e in equations if e.primitive.ref_allocating for v in e.outvars}
        for equation in reversed(equations):
            flags = tuple([var in needed for var in equation.outvars])
            is_wanted = any(flags)
            split = None
            references = _references_of(equation)
            if references <= made:
                # Writes are repeated if the values that they write are read again.
                is_wanted = is_wanted or not references.isdisjoint(needed)
            elif is_wanted:
                # References from outside may have other values later, and must be written to once.
                split = InTwo(equation, where(equation.outvars, flags), None)
            if policy is not None and not any(flags):
                _ask(policy, equation)
            elif split is None and any(flags) and recomputes_itself(equation):
                rule = own_recomputation[equation.primitive]
                split = rule.split(equation, None if policy is _save_nothing else policy)
            elif split is None and policy is not None:
                rule = _INSIDE.get(equation.primitive)
                if rule is not None:
                    split = rule(equation, flags, policy)
                else:
                    decision = decision_on(policy, equation)
                    results = where(equation.outvars, flags)
                    if isinstance(decision, Offloadable):
                        to_host = _moved_to(equation, results, decision.dst)
                        back = _moving(equation, to_host.outvars, results, decision.src)
                        first.append(to_host)
                        split = InTwo(equation, list(to_host.outvars), back)
                    elif decision:
                        split = InTwo(equation, results, None)
            if split is None:
                split = InTwo(equation, [], equation)
            first.append(split.first)
            saved += split.saved
            if is_wanted and split.again is not None:
                again.append(split.again)
                needed.update(variables(split.again.invars))
        self.first = first[::-1]
        self.saved = list(dict.fromkeys(saved[::-1]))
        self.again = again[::-1]
        self.needed = needed


def _ask(policy: Policy, equation: Equation) -> None:
    """Ask a policy about an equation whose results are unused, so that its errors are raised."""
    if equation.primitive in _INSIDE:
        for program in closed_programs_of(equation):
            _ask_inside(program, policy)
    elif not equation.primitive.carries_programs:
        decision_on(policy, equation)


@once_per_program
def _ask_inside(program: ClosedJaxpr, policy: Policy) -> None:
    for equation in program.eqns:
        _ask(policy, equation)


_steps: "DerivedCache[tuple[int, int, Flags, Policy], _Steps]" = DerivedCache()


def _scan_in_two(equation: Equation, wanted: Flags, policy: Policy) -> InTwo | None:
    """Split a scan into one that saves values of its steps and one that recomputes the rest.

    Return None if the policy saves nothing.
    """
    params = equation.params
    (program,) = closed_programs_of(equation)
    key = (params["num_consts"], params["num_carry"], wanted, policy)
    steps = _steps.get_or_compute(program, key, lambda: _Steps(program, params, wanted, policy))
    if not steps.saved and not _recomputes_itself(program):
        return None
    count, length = params["num_carry"], params["length"]
    collected = [stacked_variable(var, length) for var in steps.collected]
    outvars = [*equation.outvars, *collected]
    first = scan_equation(
        equation, steps.first, equation.invars, outvars, params["num_consts"], count
    )
    saved = [outvars[index] for index in steps.saved]
    if steps.again is None:
        return InTwo(first, saved, None)
    consts, carry, xs = operand_parts(equation.invars, params)
    own_consts = [consts[index] for index in steps.consts]
    own_carry = where(carry, steps.carry)
    invars = [
        *own_consts,
        *own_carry,
        *[outvars[index] for index in steps.saved_inputs],
        *[xs[index] for index in steps.xs],
    ]
    results = [
        var if want else Var(var.aval)
        for var, want in zip(where(equation.outvars[:count], steps.carry), steps.last, strict=True)
    ]
    results += [equation.outvars[index] for index in steps.ys]
    again = scan_equation(equation, steps.again, invars, results, len(own_consts), len(own_carry))
    return InTwo(first, saved, again)


class _Steps:
    """A scan's step, split into a step that saves values and a step that recomputes the rest.

    Attributes:
      first: the step that runs first.
      collected: the step's variables that are stacked only because they are saved.
      saved: the indices, among the results of the first scan, of the values that are saved.
      again: the step that runs again; None if all needed results are saved.
      consts: the indices of the constants that `again` reads.
      carry: per member of the carry, whether `again` computes it.
      last: per member of the carry that `again` computes, whether its last value is needed.
      saved_inputs: the indices, among the results of the first scan, of additional `xs`.
      xs: the indices of the `xs` that `again` reads.
      ys: the indices of the scan's results that `again` stacks.
    """

    __slots__ = (
        "again",
        "carry",
        "collected",
        "consts",
        "first",
        "last",
        "saved",
        "saved_inputs",
        "xs",
        "ys",
    )

    def __init__(self, program: ClosedJaxpr, params: ParamDict, wanted: Flags, policy: Policy):
        jaxpr = program.jaxpr
        count: int = params["num_carry"]
        consts, carried, xs = operand_parts(jaxpr.invars, params)
        carry = wanted[:count]
        while True:
            outputs = where(jaxpr.outvars, (*carry, *wanted[count:]))
            split = Recomputed(jaxpr.eqns, outputs, policy)
            grown = tuple([w or var in split.needed for w, var in zip(carry, carried, strict=True)])
            if grown == carry:
                break
            carry = grown
        self.carry: Flags = carry
        self.last = where(wanted[:count], carry)
        # A variable that is already collected is not collected twice.
        indices: dict[Atom, int] = {
            atom: index
            for index, atom in enumerate(jaxpr.outvars)
            if index >= count and isinstance(atom, Var)
        }
        self.collected = [var for var in split.saved if var not in indices]
        indices.update((var, len(jaxpr.outvars) + i) for i, var in enumerate(self.collected))
        self.saved = [indices[var] for var in split.saved]
        constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
        results = [*jaxpr.outvars, *self.collected]
        self.first = closed_part(
            constants, jaxpr.invars, results, live_equations(split.first, results), jaxpr
        )
        saved = set(self.saved)
        self.ys = [i for i, want in enumerate(wanted) if i >= count and want and i not in saved]
        self.again: ClosedJaxpr | None = None
        if not any(carry) and not self.ys:
            return
        results = [*where(jaxpr.outvars[:count], carry), *[jaxpr.outvars[i] for i in self.ys]]
        read = variables_read(split.again, results)
        saved_inputs = [var for var in split.saved if var in read]
        self.saved_inputs = [indices[var] for var in saved_inputs]
        self.consts = [i for i, var in enumerate(consts) if var in read]
        self.xs = [i for i, var in enumerate(xs) if var in read]
        inputs = [consts[i] for i in self.consts]
        inputs += [*where(carried, carry), *saved_inputs, *[xs[i] for i in self.xs]]
        self.again = closed_part(constants, inputs, results, split.again, jaxpr)


def _cond_in_two(equation: Equation, wanted: Flags, policy: Policy) -> InTwo | None:
    """Split a cond into one whose branches save values and one that recomputes the rest.

    Return None if the policy saves nothing.
    """
    index, *operands = equation.invars
    programs = _programs_in_two(closed_programs_of(equation), wanted, policy)
    if programs is None:
        return None
    split = programs.split
    outvars = [*equation.outvars, *[Var(aval) for aval in split.slots]]
    first = cond_equation(equation, split.known, equation.invars, outvars)
    again = None
    if any(programs.again):
        results = where(equation.outvars, programs.again)
        invars = [index, *programs.residuals(outvars, operands)]
        again = cond_equation(equation, split.unknown, invars, results)
    return InTwo(first, programs.saved_variables(outvars), again)


def _call_in_two(equation: Equation, wanted: Flags, policy: Policy) -> InTwo | None:
    """Split a call into the call that saves residuals and the call that recomputes results.

    Args:
      equation: the call.
      wanted: per result, whether the backward pass uses it.
      policy: decides which values are saved.

    Returns:
      Both calls; None if the policy saves nothing.
    """
    rules = jit_rules if equation.primitive is jit_p else call_rules
    programs = _programs_in_two(closed_programs_of(equation), wanted, policy)
    if programs is None:
        return None
    split, operands = programs.split, equation.invars
    outvars = [*equation.outvars, *[Var(aval) for aval in split.slots]]
    first = rules.equation(equation, split.known[0], operands, outvars, [None] * len(operands))
    again = None
    if any(programs.again):
        results = where(equation.outvars, programs.again)
        invars = programs.residuals(outvars, operands)
        origins = [None] * len(invars)
        again = rules.equation(equation, split.unknown[0], invars, results, origins)
    return InTwo(first, programs.saved_variables(outvars), again)


class _ProgramsInTwo(NamedTuple):
    """The programs of an equation, split into those that save values and those that recompute.

    Attributes:
      split: the programs that run first and save values, and those that run again.
      again: per result of the equation, whether it is recomputed.
      saved: per result of the equation, whether it is saved.
    """

    split: BranchesInTwo
    again: Flags
    saved: Flags

    def residuals(self, outvars: Sequence[Var], operands: Sequence[Atom]) -> list[Atom]:
        """Return the inputs of the recomputing programs: saved results, and operands."""
        return [outvars[p] if p >= 0 else operands[~p] for p in self.split.residuals]

    def saved_variables(self, outvars: Sequence[Var]) -> list[Var]:
        """Return the saved variables among `outvars`, the results of the first programs."""
        residuals = [outvars[p] for p in self.split.residuals if p >= 0]
        return residuals + where(outvars[: len(self.saved)], self.saved)


def _programs_in_two(
    programs: Sequence[ClosedJaxpr], wanted: Flags, policy: Policy
) -> _ProgramsInTwo | None:
    """Split the programs of an equation by a policy; return None if the policy saves nothing."""
    saved_in = [{*_of_results(program, wanted, policy).saved} for program in programs]
    if not any(saved_in) and not any(map(_recomputes_itself, programs)):
        return None
    # A result that at least one program saves is not recomputed in any.
    rows = list(zip(*[p.jaxpr.outvars for p in programs], strict=True))
    saved = tuple(
        [
            want and any(atom in own for atom, own in zip(row, saved_in, strict=True))
            for want, row in zip(wanted, rows, strict=True)
        ]
    )
    again = tuple([want and not is_saved for want, is_saved in zip(wanted, saved, strict=True)])
    splits = [_program_in_two(program, again, policy) for program in programs]
    return _ProgramsInTwo(BranchesInTwo(splits), again, saved)


@once_per_program
def _of_results(program: ClosedJaxpr, wanted: Flags, policy: Policy) -> Recomputed:
    return Recomputed(program.jaxpr.eqns, where(program.jaxpr.outvars, wanted), policy)


@once_per_program
def _program_in_two(program: ClosedJaxpr, again: Flags, policy: Policy) -> PartialEval:
    """Split a program into one that computes all results and one that recomputes some of them."""
    jaxpr = program.jaxpr
    split = _of_results(program, again, policy)
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
    outputs = list(jaxpr.outvars)
    indices: dict[Atom, int] = {}
    for index, atom in enumerate(outputs):
        if isinstance(atom, Var):
            indices.setdefault(atom, index)
    indices.update((var, ~index) for index, var in enumerate(jaxpr.invars))
    results = where(jaxpr.outvars, again)
    read = variables_read(split.again, results)
    residuals = [var for var in (*split.saved, *jaxpr.invars) if var in read]
    for var in residuals:
        if var not in indices:
            indices[var] = len(outputs)
            outputs.append(var)
    return PartialEval(
        closed_part(constants, jaxpr.invars, outputs, live_equations(split.first, outputs), jaxpr),
        closed_part(constants, residuals, results, split.again, jaxpr),
        (False,) * len(jaxpr.outvars),
        tuple([indices[var] for var in residuals]),
    )


_INSIDE: dict[Primitive, Callable[[Equation, Flags, Policy], InTwo | None]] = {
    scan_p: _scan_in_two,
    cond_p: _cond_in_two,
    closed_call_p: _call_in_two,
    jit_p: _call_in_two,
}


# ---- a checkpointed program ----------------------------------------------------------------------


class CheckpointInTwo:
    """A checkpointed program, split into the part that runs first and the rest.

    The rest recomputes the known values that it reads and that the policy does not save.

    Args:
      program: the program.
      unknown: per input, whether it is unknown.
      policy: decides which values are saved; None saves none.

    Raises:
      TypeError: if the policy cannot be called.

    Attributes:
      known: the program from the known inputs to the known outputs and the saved values.
      rest: the program from the saved values, some known inputs and the unknown inputs to the
        unknown outputs.
      inputs: the indices, among the known inputs, of the inputs of `rest`.
      unknown_out: per output, whether it is unknown.
    """

    __slots__ = ("inputs", "known", "rest", "unknown_out")

    def __init__(self, program: ClosedJaxpr, unknown: Sequence[bool], policy: Policy | None):
        # Dead equations need no derivatives.
        program = pruned(program)
        if policy is not None:
            if not callable(policy):
                raise TypeError(
                    f"{policy!r} of type {type(policy)} is not callable: the policy of checkpoint "
                    "is one of checkpoint_policies, or a function of a primitive, its avals and "
                    "parameters that returns a bool."
                )
            program = _with_policy(program, policy)
        jaxpr = program.jaxpr
        unknown_inputs = where(jaxpr.invars, unknown)
        depends = set(unknown_inputs)
        known_equations, dependent = split_equations(jaxpr, depends)
        self.unknown_out: Flags = tuple([atom in depends for atom in jaxpr.outvars])
        outputs = where(jaxpr.outvars, self.unknown_out)
        dependent = live_equations(dependent, outputs)
        says_how = bool(own_recomputation) and _any_recomputes_itself(known_equations)
        if policy is None and says_how:
            policy = _save_nothing
        split = Recomputed(known_equations, variables_read(dependent, outputs), policy)
        known_inputs = where_not(jaxpr.invars, unknown)
        constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
        known_outputs = [*where_not(jaxpr.outvars, self.unknown_out), *split.saved]
        first = live_equations(split.first, known_outputs)
        self.known = pruned(closed_part(constants, known_inputs, known_outputs, first, jaxpr))
        again = [*split.again, *dependent]
        if not split.saved and not program.effects and not says_how:
            # Everything runs again. A loop that is not split keeps no values for a second loop,
            # unless the rest is transposed, which splits the loop.
            whole = closed_part(constants, jaxpr.invars, outputs, jaxpr.eqns, jaxpr)
            again = pruned(whole).eqns
        read = variables_read(again, outputs)
        self.inputs = [index for index, var in enumerate(known_inputs) if var in read]
        inputs = [*split.saved, *[known_inputs[index] for index in self.inputs], *unknown_inputs]
        self.rest = pruned(closed_part(constants, inputs, outputs, again, jaxpr))


@once_per_program
def split_for_transposition(program: ClosedJaxpr, linear: Flags) -> ClosedJaxpr:
    """Return an equivalent program whose equations are either linear or known.

    Args:
      program: a checkpointed program, whose equations may be both.
      linear: per input, whether the program is linear in it.
    """
    jaxpr = program.jaxpr
    known, dependent = split_equations(jaxpr, set(where(jaxpr.invars, linear)))
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
    equations = [*map(_named, known), *dependent]
    return closed_part(constants, jaxpr.invars, jaxpr.outvars, equations, jaxpr)


def _named(equation: Equation) -> Equation:
    """Return an equation whose name stack marks it as rematerialized, for profilers."""
    return equation.replace(source_info=equation.source_info.inside("rematted_computation"))


def pruned(program: ClosedJaxpr) -> ClosedJaxpr:
    """Remove dead code from a program and its subprograms; all outputs remain."""
    everything = (True,) * len(program.jaxpr.outvars)
    return dead_code_program(program, everything, instantiate=True)[0]


@once_per_program
def _with_policy(program: ClosedJaxpr, policy: Policy) -> ClosedJaxpr:
    """Return a program whose nested checkpointed programs also apply the policy.

    The enclosing program computes the values that the policy saves, and passes them.
    """
    equations = [_equation_with(equation, policy) for equation in program.eqns]
    if all(new is old for new, old in zip(equations, program.eqns, strict=True)):
        return program
    return ClosedJaxpr(program.jaxpr.replace(eqns=equations), program.consts)


def _equation_with(equation: Equation, policy: Policy) -> Equation:
    params = replace_programs(equation, lambda program: _with_policy(program, policy))
    if equation.primitive is remat_p:
        policy_of_call: Policy | None = equation.params["policy"]
        either = either_policy(policy, policy_of_call)
        if either is not policy_of_call:
            params = {**params, "policy": either}
    return equation if params is equation.params else equation.replace(params=params)
