"""The checkify rules of primitives that hold programs, such as calls, branches and loops."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, DType, Shape
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation, ParamDict, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import DerivedCache, once_per_program
from hlofront.core.programs.subprograms import (
    Subprogram,
    called_by,
    closed_programs_of,
    inputs_among,
    split_inputs,
    subprograms_of,
    with_program,
)
from hlofront.core.sharding.manual_axes import ManualAxisType, MeshAxisNames
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.higher_order.calls.jit_call import closed_call_p, jit_p
from hlofront.higher_order.checkify.checkify_errors import ErrorCategory
from hlofront.higher_order.checkify.checkify_rules import (
    State,
    axes_of,
    error_check,
    evaluate,
    run,
    run_for_nans,
)
from hlofront.higher_order.checkify.checking import ErrorEffect, check_effect, first_of
from hlofront.higher_order.checkpoint.checkpoint import remat_p
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.platform import composite_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_vjp_call_p
from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.custom_rules.linear_call import linear_call_p
from hlofront.higher_order.custom_rules.linear_solve import custom_linear_solve_p
from hlofront.higher_order.shard_map.shard_map import ShardMapParams, shard_map_p
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.transforms.stage import stage


@dataclasses.dataclass(slots=True, eq=False)
class CheckedProgram:
    """A program with its checkify checks: (failed, *inputs) -> (failed, *slots, *outputs).

    Attributes:
      program: the closed jaxpr.
      effects: the kinds of errors that have slots among its outputs.
      metadata: the tree definition of each error, by the error's number.
    """

    program: ClosedJaxpr
    effects: tuple[ErrorEffect, ...]
    metadata: dict[int, PyTreeDef]

    @property
    def axes(self) -> MeshAxisNames:
        """The manual axes along which the outputs that encode the error vary."""
        return self.program.out_avals[0].manual_axis_type.varying

    @property
    def width(self) -> int:
        """The number of leading outputs that encode the error: the flag and the slots."""
        return 1 + sum(1 + len(effect.shape_dtypes) for effect in self.effects)

    def call(self, state: State, operands: ArrayLikes) -> list[ArrayLike]:
        """Run the checked program, record its errors in `state`, and return its own outputs."""
        return self.own_outputs(state, jaxpr_as_fun(self.program, state.flag(), *operands))

    def own_outputs(self, state: State, results: ArrayLikes) -> list[ArrayLike]:
        """Return the results without the error outputs, which are recorded in `state`."""
        state.merge(self.effects, self.metadata, results[: self.width])
        return list(results[self.width :])


# The part of the state on which checked programs depend: the kinds of errors, whether checks are
# quiet, and the manual axes along which the error varies.
_Checks = tuple[frozenset[ErrorCategory], bool, MeshAxisNames]
_programs: DerivedCache[_Checks, CheckedProgram | None] = DerivedCache()
# Each cache's key begins with `_Checks`. Then come, for branches, the axes of their results and all
# branches; for a scan's body, its number of constants; and for a while loop, its condition and the
# condition's number of constants.
_branches: DerivedCache[
    tuple[_Checks, MeshAxisNames, tuple[ClosedJaxpr, ...]], tuple[ClosedJaxpr, ...]
] = DerivedCache()
_bodies_of_scan: DerivedCache[tuple[_Checks, int], ClosedJaxpr] = DerivedCache()
_loops: DerivedCache[tuple[_Checks, ClosedJaxpr, int], tuple[ClosedJaxpr, ClosedJaxpr]] = (
    DerivedCache()
)


def _checks_of(state: State, axes: MeshAxisNames | None = None) -> _Checks:
    return state.errors, state.quiet, axes_of(state.flag()) if axes is None else axes


def checked(
    program: ClosedJaxpr, state: State, axes: MeshAxisNames | None = None
) -> CheckedProgram | None:
    """Return a program with checks of the errors that `state` selects; None if it needs none.

    Args:
      program: the program.
      state: the checkify state of the enclosing program.
      axes: the manual axes along which the error flag that it receives varies; by default those
        of the state's flag.
    """
    key = _checks_of(state, axes)
    return _programs.get_or_compute(program, key, lambda: _checked(program, state, key[-1]))


def _checked(program: ClosedJaxpr, outer: State, axes: MeshAxisNames) -> CheckedProgram | None:
    effects: tuple[ErrorEffect, ...] = ()
    metadata: dict[int, PyTreeDef] = {}

    def with_checks(failed: ArrayLike, *args: ArrayLike) -> list[ArrayLike]:
        # The state holds tracers and must not outlive their trace.
        nonlocal effects, metadata
        state = State(outer.errors, failed, outer.quiet)
        outputs = evaluate(program.jaxpr, program.consts, args, state)
        effects, metadata = tuple(state.slots), state.metadata
        return [*state.values(effects), *outputs]

    inputs = [*_slot_avals((), axes), *program.in_avals]
    with_slots = stage(with_checks, inputs, program.jaxpr.origin)
    # Users' checks are removed from a program even if their category of errors is not selected.
    if not effects and check_effect not in program.effects:
        return None
    return CheckedProgram(with_slots, effects, metadata)


def without_checks(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program with all equations of `checkify.check` removed."""
    return _without_checks(program) if check_effect in program.effects else program


@once_per_program
def _without_checks(program: ClosedJaxpr) -> ClosedJaxpr:
    return stage(
        lambda *args: evaluate(program.jaxpr, program.consts, args, State(frozenset())),
        program.in_avals,
        program.jaxpr.origin,
    )


def _union(
    parts: Sequence[CheckedProgram | None],
) -> tuple[tuple[ErrorEffect, ...], dict[int, PyTreeDef]]:
    """Return the union of checked programs' kinds of errors, and of their tree definitions."""
    effects: dict[ErrorEffect, None] = {}
    metadata: dict[int, PyTreeDef] = {}
    for part in parts:
        if part is not None:
            effects.update(dict.fromkeys(part.effects))
            metadata.update(part.metadata)
    return tuple(effects), metadata


def _slot_avals(
    effects: Sequence[ErrorEffect], axes: MeshAxisNames, lead: Shape = ()
) -> list[ShapedArray]:
    """Return the avals of the error flag and of the slots for the kinds of errors in `effects`.

    Args:
      effects: the kinds of errors.
      axes: the manual axes along which they vary.
      lead: the sizes of leading axes.
    """
    kinds: list[tuple[Shape, DType]] = [((), np.dtype(np.bool_))]
    for effect in effects:
        kinds.append(((), np.dtype(np.int32)))
        kinds += [(s.shape, s.dtype) for s in effect.shape_dtypes]
    varying = ManualAxisType(varying=axes)
    return [ShapedArray((*lead, *shape), dtype, manual_axis_type=varying) for shape, dtype in kinds]


# ---- calls ---------------------------------------------------------------------------------------


def _program_of(equation: Equation) -> tuple[Subprogram, ClosedJaxpr]:
    """Return the subprogram that an equation calls, and its closed jaxpr.

    Raises:
      TypeError: if the equation calls no program.
    """
    part = called_by(equation)
    if part is None or not isinstance(part.program, ClosedJaxpr):
        raise TypeError(f"{equation.primitive} calls no program that is written down")
    return part, part.program


def _call(
    primitive: Primitive,
    adapted: Callable[[ParamDict], ParamDict] = lambda params: {},
) -> None:
    """Register the checkify rule of a primitive that passes its operands to a program unchanged.

    Args:
      primitive: the primitive.
      adapted: (parameters) -> parameters to replace, for a program with one more input.
    """

    @error_check(primitive)
    def _(state: State, equation: Equation, operands: list[Value]) -> Value:
        params = equation.params
        part, program = _program_of(equation)
        with_checks = checked(program, state)
        if with_checks is None:
            return run(equation, operands)
        params = with_program({**params, **adapted(params)}, part, with_checks.program)
        results = primitive.bind(state.flag(), *operands, **params)
        return with_checks.own_outputs(state, results)


_call(jit_p, lambda p: {"donated_invars": (False, *p["donated_invars"])})
_call(closed_call_p)
_call(
    remat_p,
    lambda p: (
        {} if isinstance(p["prevent_cse"], bool) else {"prevent_cse": (True, *p["prevent_cse"])}
    ),
)


@error_check(
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vmap_call_p,
    linear_call_p,
    composite_p,
    custom_linear_solve_p,
)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    """Run an equation that has custom rules, and run its program a second time for its checks.

    The second run has no derivative, and XLA merges it with the first.
    """
    part, program = _program_of(equation)
    if check_effect in program.effects and equation.primitive is not custom_linear_solve_p:
        params = with_program(equation.params, part, without_checks(program))
        equation = equation.replace(params=params)
    with_checks = checked(program, State(state.errors, quiet=True))
    if with_checks is None:
        return run_for_nans(state, equation, operands)
    with_checks.call(state, [stop_gradient(x) for x in inputs_among(part, operands)])
    return run(equation, operands)


@error_check(shard_map_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    params = equation.params
    shard_map_params = ShardMapParams(*(params[name] for name in ShardMapParams._fields))
    (body,) = closed_programs_of(equation)
    with shard_map_params.inside():
        part = checked(body, state)
        if part is None:
            return run(equation, operands)
        program = _with_error_per_device(part)
    everywhere, per_device = PartitionSpec(), PartitionSpec(shard_map_params.manual_axes)
    results = shard_map_params.bind(
        program,
        [state.flag(), *operands],
        (everywhere, *params["in_specs"]),
        (*[per_device] * part.width, *params["out_specs"]),
    )
    # The first of the devices' errors is reported.
    failed, values = first_of(results[0], results[1 : part.width])
    state.merge(part.effects, part.metadata, [failed, *values])
    return results[part.width :]


def _with_error_per_device(part: CheckedProgram) -> ClosedJaxpr:
    """Return a checked program for one device, whose errors have a leading axis over devices."""

    def on_device(*args: ArrayLike) -> list[ArrayLike]:
        results = jaxpr_as_fun(part.program, *args)
        return [*[_repeated(x, (1,)) for x in results[: part.width]], *results[part.width :]]

    return stage(on_device, part.program.in_avals, part.program.jaxpr.origin)


# ---- branches ------------------------------------------------------------------------------------


@error_check(cond_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    branches = closed_programs_of(equation)
    parts = [checked(branch, state) for branch in branches]
    if all(part is None for part in parts):
        return run(equation, operands)
    effects, metadata = _union(parts)
    index, *rest = operands
    # The index decides which branch runs, so the errors vary along the same axes as the index.
    error_axes = axes_of(index).union(*[part.axes for part in parts if part is not None])
    key = _checks_of(state)
    checked_branches = _branches.get_or_compute(
        branches[0],
        (key, error_axes, branches),
        lambda: tuple(
            [
                _branch(b, part, effects, state, error_axes)
                for b, part in zip(branches, parts, strict=True)
            ]
        ),
    )
    params = {**equation.params, "branches": checked_branches}
    results = cond_p.bind(index, state.flag(), *rest, **params)
    width = len(results) - len(equation.outvars)
    state.merge(effects, metadata, results[:width])
    return results[width:]


def _branch(
    branch: ClosedJaxpr,
    part: CheckedProgram | None,
    effects: Sequence[ErrorEffect],
    outer: State,
    axes: MeshAxisNames,
) -> ClosedJaxpr:
    """Return a branch of a cond with its checks, and with the slots of all branches as outputs.

    Args:
      branch: the branch.
      part: the branch with its checks; None if it has none.
      effects: the kinds of errors of all branches.
      outer: the checkify state of the enclosing program.
      axes: the manual axes along which the errors of all branches vary.
    """

    def with_slots(failed: ArrayLike, *args: ArrayLike) -> list[ArrayLike]:
        state = State(outer.errors, failed)
        if part is None:
            outputs = jaxpr_as_fun(branch, *args)
        else:
            outputs = part.call(state, args)
        return [*state.values(effects, axes), *outputs]

    inputs = [*_slot_avals((), axes_of(outer.flag())), *branch.in_avals]
    return stage(with_slots, inputs, branch.jaxpr.origin)


# ---- loops ---------------------------------------------------------------------------------------


def _checked_in_loop(
    programs: Sequence[ClosedJaxpr], state: State, axes: MeshAxisNames
) -> tuple[list[CheckedProgram | None], MeshAxisNames]:
    """Return the programs of a loop with checks, and the manual axes along which errors vary.

    The errors of one iteration are passed to the next, so they vary along all axes along which the
    errors of any iteration do.

    Args:
      programs: the programs.
      state: the checkify state of the enclosing program.
      axes: manual axes along which the errors vary in any case.
    """
    while True:
        parts = [checked(program, state, axes) for program in programs]
        later = axes.union(*[part.axes for part in parts if part is not None])
        if later == axes:
            return parts, axes
        axes = later


@error_check(scan_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    params, errors = equation.params, state.errors
    (step_part,) = subprograms_of(equation)
    (body,) = closed_programs_of(equation)
    (part,), axes = _checked_in_loop([body], state, state.axes)
    if part is None:
        return run(equation, operands)
    effects, count = part.effects, step_part.carried.start
    width = part.width

    def step(*args: ArrayLike) -> list[ArrayLike]:
        inner = State(errors)
        inner.set(effects, args[count : count + width])
        outputs = part.call(inner, [*args[:count], *args[count + width :]])
        return [*inner.values(effects), *outputs]

    avals = [*body.in_avals[:count], *_slot_avals(effects, axes), *body.in_avals[count:]]
    checked_body = _bodies_of_scan.get_or_compute(
        body,
        (_checks_of(state, axes), count),
        lambda: stage(step, avals, body.jaxpr.origin),
    )
    results = scan_p.bind(
        *operands[:count],
        *state.values(effects, axes),
        *operands[count:],
        **{
            **with_program(params, step_part, checked_body),
            "num_carry": params["num_carry"] + width,
        },
    )
    state.metadata.update(part.metadata)
    state.set(effects, results[:width])
    return results[width:]


@error_check(while_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    errors = state.errors
    condition, body = closed_programs_of(equation)
    condition_part, body_part = subprograms_of(equation)
    read, carry, _ = split_inputs(condition_part, operands)
    consts, _, _ = split_inputs(body_part, operands)
    # The condition is checked here before the first iteration, and by the body after each
    # iteration.
    of_condition = checked(condition, state)
    if of_condition is not None:
        of_condition.call(state, [*read, *carry])
    # Devices may leave the loop after different numbers of iterations, and thus with different
    # errors.
    axes = state.axes | condition.out_avals[0].manual_axis_type.varying
    (of_condition, of_body), axes = _checked_in_loop([condition, body], state, axes)
    if of_condition is None and of_body is None:
        return run(equation, operands)
    effects, metadata = _union([of_condition, of_body])
    state.metadata.update(metadata)
    # Under vmap the condition may have batch axes, and then the whole carry has them.
    lead: Shape = condition.out_avals[0].shape
    error_avals = _slot_avals(effects, axes, lead)
    width = len(error_avals)
    first, last = len(read), len(read) + len(consts)

    def step(*args: ArrayLike) -> list[ArrayLike]:
        (failed, *rest), before = args[last : last + width], args[last + width :]
        inner = State(errors)
        failed, rest = first_of(failed, rest)
        inner.set(effects, [failed, *rest])
        if of_body is None:
            after = jaxpr_as_fun(body, *args[first:last], *before)
        else:
            after = of_body.call(inner, [*args[first:last], *before])
        if of_condition is not None:
            of_condition.call(inner, [*args[:first], *after])
        return [*[_repeated(x, lead) for x in inner.values(effects)], *after]

    def cond(*args: ArrayLike) -> list[ArrayLike]:
        return jaxpr_as_fun(without_checks(condition), *args[:first], *args[first + width :])

    def programs() -> tuple[ClosedJaxpr, ClosedJaxpr]:
        avals = condition.in_avals[:first], body.in_avals[: last - first]
        carried = body.in_avals[last - first :]
        return (
            stage(cond, [*avals[0], *error_avals, *carried], condition.jaxpr.origin),
            stage(step, [*avals[0], *avals[1], *error_avals, *carried], body.jaxpr.origin),
        )

    key = (_checks_of(state, axes), condition, len(read))
    checked_condition, checked_body = _loops.get_or_compute(body, key, programs)
    results = while_p.bind(
        *read,
        *read,
        *consts,
        *[_repeated(x, lead) for x in state.values(effects, axes)],
        *carry,
        cond_jaxpr=checked_condition,
        body_jaxpr=checked_body,
        cond_nconsts=len(read),
        body_nconsts=len(read) + len(consts),
    )
    failed, rest = first_of(results[0], results[1:width])
    state.set(effects, [failed, *rest])
    return results[width:]


def _repeated(x: ArrayLike, lead: Shape) -> ArrayLike:
    """Broadcast an array along new leading axes of the sizes `lead`."""
    if not lead:
        return x
    shape = typeof(x).shape
    return broadcast_in_dim(x, (*lead, *shape), tuple(range(len(lead), len(lead) + len(shape))))
