"""The rules of HiPrims, through which interpreters call their methods with raised values."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from hlofront.base import tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects, no_effects
from hlofront.core.high_types import low_types, lowered, raised
from hlofront.core.jaxpr import Equation, Value, Var
from hlofront.core.programs.subprograms import no_subprograms
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    BatchAxis,
    Cotangent,
    Duals,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import current_trace
from hlofront.higher_order.calls.jit_call import closed_call_p, split_captured
from hlofront.higher_order.checkpoint.checkpoint_policies import Policy
from hlofront.higher_order.checkpoint.checkpoint_splitting import (
    InTwo,
    OwnRecomputation,
    own_recomputation,
)
from hlofront.higher_order.hi_prim.accumulators import NullAccum, ValAccum
from hlofront.higher_order.hi_prim.hi_calls import (
    call_hi_primitive_jvp_p,
    call_hi_primitive_linearized_p,
    call_hi_primitive_p,
)
from hlofront.higher_order.hi_prim.hi_prim import (
    HiPrim,
    cotangent_type,
    flags_of_operands,
    groups_of,
    of_low,
    raised_tangents,
    results_with_tangents,
    run_jvp,
    tangent_type,
    tangents_of_result,
    with_axis_at,
)
from hlofront.higher_order.selecting import where, with_zeros
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.backward_logs import log, may_log
from hlofront.transforms.jvp import jvp_flat
from hlofront.transforms.linear_transpose import linear_transpose
from hlofront.transforms.linearize import SplitTrace
from hlofront.transforms.partial_eval import SplitEquation
from hlofront.transforms.simplify import SmallerEquation
from hlofront.transforms.stage import StagingTrace, stage

for _primitive in (call_hi_primitive_p, call_hi_primitive_jvp_p, call_hi_primitive_linearized_p):
    rules.subprograms(_primitive)(no_subprograms)


# ---- the operation -------------------------------------------------------------------------------


def _expanded(*low: Value, _prim: HiPrim) -> list[Value]:
    return _prim.low_result(_prim.expand(*_prim.raised_args(low)))


@rules.infer(call_hi_primitive_p)
def _(*_: AbstractValue, _prim: HiPrim) -> list[AbstractValue]:
    return _prim.low_types_out


@rules.effects(call_hi_primitive_p)
def _(*_: AbstractValue, _prim: HiPrim) -> Effects:
    return frozenset(_prim.effects)


@rules.jvp(call_hi_primitive_p)
def _(primals: ArrayLikes, tangents: Tangents, *, _prim: HiPrim) -> Duals:
    trace = current_trace()
    if isinstance(trace, SplitTrace):
        return _linearized(_prim, primals, tangents, trace.runs_forward)
    if isinstance(trace, StagingTrace):
        # The program may be split into a known and a linear part later.
        present = tuple(of_low(_prim.in_avals_flat, flags_of_operands(_prim, tangents)))
        arrays = [instantiate(t) for t in where(tangents, present)]
        has_tangent = results_with_tangents(_prim)
        results = call_hi_primitive_jvp_p.bind(*primals, *arrays, _prim=_prim, present=present)
        count = len(has_tangent)
        return results[:count], with_zeros(results[count:], has_tangent, _prim.low_types_out)
    return run_jvp(_prim, primals, tangents)


def _linearized(prim: HiPrim, primals: ArrayLikes, tangents: Tangents, runs_forward: bool) -> Duals:
    """Run the forward rule, and bind what is linear in the tangents."""
    flags = flags_of_operands(prim, tangents)
    args = prim.raised_args(primals)
    nonzero_in = prim.in_tree.unflatten(flags)
    forward = prim.lin if runs_forward else prim.vjp_fwd
    result, residuals, *more = forward(nonzero_in, *args)
    if runs_forward:
        types = [tangent_type(t) for t in prim.in_avals_flat]
        raised = prim.in_tree.unflatten(raised_tangents(types, tangents))
        low = tangents_of_result(prim, prim.linearized(residuals, *raised))
    else:
        low = _bind_linearized(prim, residuals, tangents, flags)
    if more:
        depends = tree.broadcast_prefix(more[0], prim.out_aval)
        groups = groups_of(prim.out_avals_flat, low)
        types = groups_of(prim.out_avals_flat, prim.low_types_out)
        low = [
            tangent if flag else Zero(t.to_tangent_aval())
            for flag, group, group_types in zip(depends, groups, types, strict=True)
            for tangent, t in zip(group, group_types, strict=True)
        ]
    return prim.low_result(result), low


def _bind_linearized(
    prim: HiPrim, residuals: PyTree, tangents: Tangents, flags: Sequence[bool]
) -> list[Tangent]:
    leaves, residuals_tree = tree.tree_flatten(residuals)
    groups = groups_of(prim.in_avals_flat, tangents)
    results = call_hi_primitive_linearized_p.bind(
        *leaves,
        *[instantiate(t) for group, flag in zip(groups, flags, strict=True) if flag for t in group],
        _prim=prim,
        residuals_tree=residuals_tree,
        nz_in_flat=tuple(flags),
    )
    return with_zeros(results, results_with_tangents(prim), prim.low_types_out)


@rules.staged(call_hi_primitive_p)
def _(trace: StagingTrace, *low: Value, _prim: HiPrim) -> list[Value]:
    if not _prim.defines("staging"):
        return trace.write(call_hi_primitive_p, low, {"_prim": _prim})
    source_info = trace.source_info()
    return _prim.low_result(_prim.staging(trace, source_info, *_prim.raised_args(low)))


def _recomputed(equation: Equation, policy: Policy | None) -> InTwo:
    """Split an operation of a checkpointed program by its method `remat`."""
    prim: HiPrim = equation.params["_prim"]
    again: Any = None
    captured: list[Any] = []

    def forward(*low: Value) -> list[Value]:
        nonlocal again, captured
        result, recompute = prim.recomputed(policy, *prim.raised_args(low))

        def backward(*low: Value) -> list[Value]:
            return prim.low_result(recompute(*prim.raised_args(low)))

        again, captured = split_captured(stage(backward, low_types(prim.in_avals_flat)))
        return [*prim.low_result(result), *captured]

    program = stage(forward, low_types(prim.in_avals_flat))
    saved = [Var(atom.aval) for atom in program.jaxpr.outvars[len(equation.outvars) :]]
    call = equation.replace(primitive=closed_call_p)
    return InTwo(
        call.replace(outvars=[*equation.outvars, *saved], params={"call_jaxpr": program}),
        saved,
        call.replace(invars=[*saved, *equation.invars], params={"call_jaxpr": again}),
    )


def _defines_remat(equation: Equation) -> bool:
    prim: HiPrim = equation.params["_prim"]
    return prim.defines("remat")


own_recomputation[call_hi_primitive_p] = OwnRecomputation(_defines_remat, _recomputed)


@rules.transpose(call_hi_primitive_p)
def _(cotangents: Sequence[Cotangent], *operands: Value, _prim: HiPrim) -> list[Cotangent | None]:
    types = _prim.in_avals_flat
    values: list[Any] = []
    for t, group in zip(types, groups_of(types, operands), strict=True):
        if any(type(x) is UndefinedPrimal for x in group):
            values.append(ValAccum(cotangent_type(t)))
        else:
            values += raised([t], group)
    arriving = raised_tangents([cotangent_type(t) for t in _prim.out_avals_flat], cotangents)
    _prim.transpose(_prim.out_tree.unflatten(arriving), *_prim.in_tree.unflatten(values))
    departing: list[Cotangent | None] = []
    for value, group in zip(values, groups_of(types, operands), strict=True):
        departing += value.low if isinstance(value, ValAccum) else [None] * len(group)
    return departing


@rules.simplify(call_hi_primitive_p)
def _(used: Sequence[bool], equation: Equation) -> SmallerEquation:
    prim: HiPrim = equation.params["_prim"]
    read = [any(group) for group in groups_of(prim.out_avals_flat, used)]
    operands, results, smaller = prim.without_dead_code(prim.out_tree.unflatten(read))
    if smaller is None and equation.effects:
        return [True] * len(equation.invars), equation
    if smaller is None:
        return [False] * len(equation.invars), None
    stays = of_low(prim.in_avals_flat, tree.broadcast_prefix(operands, prim.in_avals))
    made = of_low(prim.out_avals_flat, tree.broadcast_prefix(results, prim.out_aval))
    call = equation.replace(
        invars=where(equation.invars, stays),
        outvars=where(equation.outvars, made),
        params={"_prim": smaller},
    )
    return stays, call


# ---- the derivative in programs ------------------------------------------------------------------


def _split_operands(
    operands: Sequence[Any], present: Sequence[bool], avals: Sequence[Any]
) -> tuple[Sequence[Any], list[Any]]:
    """Return primals, and their tangents with symbolic zeros among them."""
    count = len(present)
    return operands[:count], with_zeros(operands[count:], present, avals)


def _jvp_of_low(*operands: Value, _prim: HiPrim, present: Sequence[bool]) -> list[Value]:
    primals, tangents = _split_operands(operands, present, low_types(_prim.in_avals_flat))
    results, tangents_out = run_jvp(_prim, primals, tangents)
    return [*results, *[instantiate(t) for t in where(tangents_out, results_with_tangents(_prim))]]


@rules.infer(call_hi_primitive_jvp_p)
def _(*_: AbstractValue, _prim: HiPrim, present: Sequence[bool]) -> list[AbstractValue]:
    types = _prim.low_types_out
    return [*types, *[t.to_tangent_aval() for t in where(types, results_with_tangents(_prim))]]


@rules.effects(call_hi_primitive_jvp_p)
def _(*_: AbstractValue, _prim: HiPrim, present: Sequence[bool]) -> Effects:
    return frozenset(_prim.effects)


@rules.jvp(call_hi_primitive_jvp_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    return jvp_flat(partial(_jvp_of_low, **params), primals, tangents)


@rules.batch_with_axis(call_hi_primitive_jvp_p)
def _(
    axis: AxisData, values: ArrayLikes, axes: BatchAxes, *, _prim: HiPrim, present: Sequence[bool]
) -> BatchResult:
    count = len(present)
    tangent_axes = iter(axes[count:])
    primal_axes = list(axes[:count])
    for index, flag in enumerate(present):
        tangent_axis = next(tangent_axes) if flag else None
        if primal_axes[index] is None:
            primal_axes[index] = tangent_axis
    wanted = [*primal_axes, *where(primal_axes, present)]
    aligned = [
        with_axis_at(x, a, w, axis.size) for x, a, w in zip(values, axes, wanted, strict=True)
    ]
    primals, tangents = _split_operands(aligned, present, low_types(_prim.in_avals_flat))
    axes_out: BatchAxes = ()

    def batched(*low: ArrayLike) -> Sequence[Value]:
        nonlocal axes_out
        results, axes_out = _batched(_prim, axis, low, primal_axes)
        return results

    results, tangents_out = jvp_flat(batched, primals, tangents)
    has_tangent = results_with_tangents(_prim)
    nonzero_tangents_out = [instantiate(t) for t in where(tangents_out, has_tangent)]
    return [*results, *nonzero_tangents_out], [*axes_out, *where(axes_out, has_tangent)]


@rules.partial_eval(call_hi_primitive_jvp_p)
def _(unknown: Sequence[bool], equation: Equation) -> SplitEquation:
    prim: HiPrim = equation.params["_prim"]
    present: Sequence[bool] = equation.params["present"]
    primals, outvars = equation.invars[: len(present)], equation.outvars
    if any(unknown[: len(present)]):
        return None, equation, [True] * len(outvars), []
    # All low tangents of an operand are present, or none is.
    flags = tuple([any(group) for group in groups_of(prim.in_avals_flat, present)])
    runs_forward = prim.defines("lin") and not prim.defines("vjp_fwd")
    residuals_tree: Any = None

    def forward(*low: Value) -> list[Value]:
        nonlocal residuals_tree
        rule = prim.lin if runs_forward else prim.vjp_fwd
        result, residuals, *_ = rule(prim.in_tree.unflatten(flags), *prim.raised_args(low))
        leaves, residuals_tree = tree.tree_flatten(residuals)
        return [*prim.low_result(result), *leaves]

    program = stage(forward, low_types(prim.in_avals_flat))
    count = len(prim.low_types_out)
    residuals = [Var(aval) for aval in program.out_avals[count:]]
    known = equation.replace(
        invars=primals,
        outvars=[*outvars[:count], *residuals],
        primitive=closed_call_p,
        params={"call_jaxpr": program},
        effects=program.effects,
    )
    tangent_vars = equation.invars[len(present) :]
    unknown_equation = equation.replace(
        invars=[*residuals, *tangent_vars], outvars=outvars[count:], effects=no_effects
    )
    if runs_forward:
        types = [tangent_type(t) for t in prim.in_avals_flat]

        def linear(*operands: Value) -> list[Value]:
            residual_values, arriving = operands[: len(residuals)], iter(operands[len(residuals) :])
            low = [next(arriving) if p else Zero(t) for p, t in zip(present, low_types(types))]
            raised = prim.in_tree.unflatten(raised_tangents(types, low))
            result = prim.linearized(residuals_tree.unflatten(residual_values), *raised)
            low_out = tangents_of_result(prim, result)
            return [instantiate(t) for t in where(low_out, results_with_tangents(prim))]

        linear_program = stage(linear, [atom.aval for atom in unknown_equation.invars])
        unknown_equation = unknown_equation.replace(
            primitive=closed_call_p, params={"call_jaxpr": linear_program}
        )
    else:
        params = {"_prim": prim, "residuals_tree": residuals_tree, "nz_in_flat": flags}
        unknown_equation = unknown_equation.replace(
            primitive=call_hi_primitive_linearized_p, params=params
        )
    return known, unknown_equation, [False] * count + [True] * (len(outvars) - count), residuals


# ---- the linear part -----------------------------------------------------------------------------

may_log[call_hi_primitive_linearized_p] = lambda params: params["_prim"].may_log


@rules.infer(call_hi_primitive_linearized_p)
def _(*_: AbstractValue, _prim: HiPrim, **__: object) -> list[AbstractValue]:
    return [t.to_tangent_aval() for t in where(_prim.low_types_out, results_with_tangents(_prim))]


def _cotangents_of_operands(
    prim: HiPrim,
    residuals: PyTree,
    cotangents: Sequence[Cotangent],
    flags: Sequence[bool],
) -> list[Cotangent]:
    """Run the backward rule; return the low cotangents of the operands that have a tangent."""
    arriving = raised_tangents(
        [cotangent_type(t) for t in prim.out_avals_flat],
        with_zeros(cotangents, results_with_tangents(prim), prim.low_types_out),  # pyright: ignore[reportArgumentType]
    )
    sums = [
        (ValAccum if flag else NullAccum)(cotangent_type(t))
        for t, flag in zip(prim.in_avals_flat, flags, strict=True)
    ]
    logs = prim.vjp_bwd(residuals, prim.out_tree.unflatten(arriving), *prim.in_tree.unflatten(sums))
    if logs:
        log(logs, f"{type(prim).__name__}.vjp_bwd")
    return [low for total in sums if isinstance(total, ValAccum) for low in total.low]


@rules.transpose(call_hi_primitive_linearized_p)
def _(
    cotangents: Sequence[Cotangent],
    *operands: Value,
    _prim: HiPrim,
    residuals_tree: PyTreeDef,
    nz_in_flat: Sequence[bool],
) -> list[Cotangent | None]:
    count = residuals_tree.num_leaves
    residuals = residuals_tree.unflatten(operands[:count])
    departing = _cotangents_of_operands(_prim, residuals, cotangents, nz_in_flat)
    return [*[None] * count, *departing]


def _run_forward(
    *operands: Value,
    _prim: HiPrim,
    residuals_tree: PyTreeDef,
    nz_in_flat: Sequence[bool],
) -> Sequence[Value]:
    """Return tangents of the result as the transpose of the backward rule, which is linear."""
    if not _prim.defines("lin"):
        _no_forward()
    count = residuals_tree.num_leaves
    residuals = residuals_tree.unflatten(operands[:count])

    def backward(*cotangents: ArrayLike) -> list[ArrayLike]:
        low = _cotangents_of_operands(_prim, residuals, cotangents, nz_in_flat)
        return [instantiate(ct) for ct in low]

    types = [
        t.to_cotangent_aval() for t in where(_prim.low_types_out, results_with_tangents(_prim))
    ]
    return linear_transpose(backward, *types)([*operands[count:]])


def _no_forward(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to the backward rule of a HiPrim: use "
        "reverse mode (vjp, grad, jacrev), or define its methods lin and linearized."
    )


rules.jvp(call_hi_primitive_linearized_p)(_no_forward)


# ---- batches -------------------------------------------------------------------------------------


@rules.batch_with_axis(call_hi_primitive_p)
def _(axis: AxisData, values: ArrayLikes, axes: BatchAxes, *, _prim: HiPrim) -> BatchResult:
    return _batched(_prim, axis, values, axes)


def _batched(
    prim: HiPrim, axis: AxisData, low: ArrayLikes, axes: BatchAxes
) -> tuple[list[Value], list[BatchAxis]]:
    """Run the method `batch` on low values; return the result's low values and batch axes."""
    if all(a is None for a in axes):
        results = call_hi_primitive_p.bind(*low, _prim=prim)
        return results, [None] * len(results)
    values: list[Any] = []
    dims: list[BatchAxis] = []
    types = prim.in_avals_flat
    for t, group, group_axes in zip(
        types, groups_of(types, low), groups_of(types, axes), strict=True
    ):
        dim = next((a for a in group_axes if a is not None), None)
        values += raised(
            [t],
            [with_axis_at(x, a, dim, axis.size) for x, a in zip(group, group_axes, strict=True)],
        )
        dims.append(dim)
    result, dims_out = prim.batch(
        axis, prim.in_tree.unflatten(values), prim.in_tree.unflatten(dims)
    )
    leaves: list[Any] = prim.out_tree.flatten_up_to(result)
    results = lowered(map(typeof, leaves), leaves)
    return results, of_low(prim.out_avals_flat, prim.out_tree.flatten_up_to(dims_out))


# These functions on low values compute the operations' results, also in programs.
rules.run[call_hi_primitive_p] = _expanded
rules.run[call_hi_primitive_jvp_p] = _jvp_of_low
rules.run[call_hi_primitive_linearized_p] = _run_forward
