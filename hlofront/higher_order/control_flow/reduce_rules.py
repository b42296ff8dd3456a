"""The rules of reductions with a user-defined function: jvp, partial evaluation, batching."""

from collections.abc import Sequence
from typing import NoReturn

from hlofront.base.caches import weak_keyed
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Value, Var
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.rules import BatchResult
from hlofront.core.sharding.sharded_types import entries_of
from hlofront.core.sizes.dimensions import canonical_axes
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Duals,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.reduce_types import (
    halves,
    reduce_p,
    reduce_window_p,
    select_and_scatter_p,
)
from hlofront.higher_order.selecting import Flags, nonzero_flags, where, with_zeros
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.cumulative import fold_by_halves, merge_axes
from hlofront.primitives.rules.batching import shifted, with_same_axis
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import SplitEquation
from hlofront.transforms.simplify import dead_code
from hlofront.transforms.stage import stage

# ---- derivatives ---------------------------------------------------------------------------------


def _operands_with_tangents(program: ClosedJaxpr, has_tangent: Flags) -> Flags:
    """Return, per operand of a reduction, whether its partial results have tangents.

    Args:
      program: combines two elements, or partial results, of all operands.
      has_tangent: per operand, whether it has a tangent.
    """
    while True:
        _, present = jvp_program(program, has_tangent * 2)
        grown = tuple([a or b for a, b in zip(has_tangent, present, strict=True)])
        if grown == has_tangent:
            return has_tangent
        has_tangent = grown


@rules.jvp(reduce_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    computation: object,
    jaxpr: ClosedJaxpr,
    dimensions: Sequence[int],
) -> Duals:
    operands, starts = halves(primals)
    tangents, start_tangents = halves(tangents)
    if any(nonzero_flags(start_tangents)):
        raise NotImplementedError(  # JAX raises this class.
            "Gradient of general lax.reduce with non-zero tangents for initial values to reduction "
            "not implemented: combine the result with the initial values afterwards."
        )
    axes = canonical_axes(dimensions, typeof(operands[0]).ndim)
    if not axes:
        return operands, tangents
    if any(typeof(operands[0]).shape[axis] == 0 for axis in axes):
        params = {"computation": computation, "jaxpr": jaxpr, "dimensions": dimensions}
        results = process(reduce_p, tuple(primals), params)
        return results, [Zero.of(result) for result in results]
    has_tangent = _operands_with_tangents(jaxpr, nonzero_flags(tangents))
    present = list(map(instantiate, where(tangents, has_tangent)))
    merged = [merge_axes(x, axes) for x in (*operands, *present)]
    axis, count = merged[0][1], len(operands)
    program, _ = jvp_program(jaxpr, has_tangent * 2, has_tangent)

    def combine(a: ArrayLikes, b: ArrayLikes) -> ArrayLikes:
        args = (*a[:count], *b[:count], *a[count:], *b[count:])
        return _on_arrays(program, args)

    zeros = [scalar_of(0, typeof(t).dtype) for t in present]
    folded = fold_by_halves(combine, [x for x, _ in merged], (*starts, *zeros), axis)
    results = folded[:count]
    avals = [typeof(result) for result in results]
    return results, with_zeros(folded[count:], has_tangent, avals)


def _on_arrays(program: ClosedJaxpr, args: ArrayLikes) -> list[ArrayLike]:
    """Run a program of scalars elementwise on arrays of equal shapes."""
    aval = typeof(args[0])
    for size, names in zip(reversed(aval.shape), reversed(entries_of(aval)), strict=True):
        axis = AxisData(None, size, explicit_mesh_axis=names, mesh=aval.mesh)
        program, _ = batch_program(program, axis, (True,) * len(args), True)
    return eval_jaxpr(program.jaxpr, program.consts, *args)


@rules.jvp(reduce_window_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, jaxpr: Jaxpr, consts: ArrayLikes, **windows: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    operands, starts = halves(primals)
    tangents, start_tangents = halves(tangents)
    if any(nonzero_flags(start_tangents)):
        raise TypeError(
            "reduce_window jvp does not support non-zero init_value_tangent: an initial value is "
            "what padding is, too. Make it a constant, and combine afterwards."
        )
    flags = nonzero_flags(tangents)
    # The program is cached for functions without captured arrays.
    if consts:
        program, has_tangent = _write_down_pairs.__wrapped__(jaxpr, flags, consts)
    else:
        program, has_tangent = _write_down_pairs(jaxpr, flags)
    present = list(map(instantiate, where(tangents, has_tangent)))
    zeros = [scalar_of(0, typeof(t).dtype) for t in present]
    params = {"jaxpr": program.jaxpr, "consts": tuple(program.consts), **windows}
    results = process(reduce_window_p, (*operands, *present, *starts, *zeros), params)
    count = len(operands)
    avals = [typeof(result) for result in results[:count]]
    return results[:count], with_zeros(results[count:], has_tangent, avals)


@weak_keyed
def _write_down_pairs(
    jaxpr: Jaxpr, flags: Flags, consts: ArrayLikes = ()
) -> tuple[ClosedJaxpr, Flags]:
    """Return the jvp of a reduction's computation, and per operand whether it has a tangent.

    Args:
      jaxpr: combines two elements of all operands.
      flags: per operand, whether it has a tangent.
      consts: the values of the constants of `jaxpr`.
    """
    program = ClosedJaxpr(jaxpr, consts)
    has_tangent = _operands_with_tangents(program, flags)
    with_tangents, _ = jvp_program(program, has_tangent * 2, has_tangent)
    count, tangent_count = len(has_tangent), sum(has_tangent)

    def combine(*args: ArrayLike) -> list[ArrayLike]:
        # JAX orders inputs like results: primals and tangents of one side, then of the other.
        a, b = halves(args)
        inputs = (*a[:count], *b[:count], *a[count:], *b[count:])
        return eval_jaxpr(with_tangents.jaxpr, with_tangents.consts, *inputs)

    avals = with_tangents.in_avals
    side = (*avals[:count], *avals[2 * count : 2 * count + tangent_count])
    return stage(combine, [*side, *side], jaxpr.debug_info), has_tangent


@rules.partial_eval(reduce_window_p)
def _(unknown: list[bool], equation: Equation) -> SplitEquation:
    # Results that do not depend on unknown operands are computed by a separate reduction.
    params, count = equation.params, len(equation.outvars)
    jaxpr: Jaxpr = params["jaxpr"]
    known = [not (operand or start) for operand, start in zip(*halves(unknown), strict=True)]

    def depends(result: int) -> bool:
        """Return whether the result at index `result` depends on an unknown operand."""
        _, used = dead_code(jaxpr, [i == result for i in range(count)])
        return any(u and not known[i % count] for i, u in enumerate(used))

    while any(lost := [known[i] and depends(i) for i in range(count)]):
        known = [k and not is_lost for k, is_lost in zip(known, lost, strict=True)]
    unknown_out = [not k for k in known]
    if not any(known):
        return None, equation, unknown_out, []
    part, _ = dead_code(jaxpr, known, known * 2)
    inputs = where(equation.invars, known * 2)
    first = equation.replace(
        invars=inputs, outvars=where(equation.outvars, known), params={**params, "jaxpr": part}
    )
    outvars = [Var(var.aval) if k else var for var, k in zip(equation.outvars, known, strict=True)]
    return first, equation.replace(outvars=outvars), unknown_out, inputs


@rules.transpose(reduce_window_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, **params: object) -> NoReturn:
    raise ValueError(
        "reduce_window with a function other than add, max or min cannot be differentiated in "
        "reverse mode. Differentiate it forward, with jvp or jacfwd; or fold slices of the operand."
    )


# ---- batches -------------------------------------------------------------------------------------


def _batched_operands(
    name: str, values: ArrayLikes, axes: BatchAxes
) -> tuple[tuple[ArrayLike, ...], int]:
    """Move a reduction's operands to a common batch axis; return all values, and that axis.

    Raises:
      NotImplementedError: if an initial value has a batch axis.
    """
    operands, starts = halves(values)
    operand_axes, start_axes = halves(axes)
    if any(axis is not None for axis in start_axes):
        raise NotImplementedError(  # JAX raises this class.
            f"{name} batching is not implemented for initial values: they are the same for all of "
            "a batch. Combine the results with what differs afterwards."
        )
    operands, axis = with_same_axis(operands, operand_axes)
    return (*operands, *starts), axis


@rules.batch(reduce_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, dimensions: Sequence[int], **params: object
) -> BatchResult:
    values, axis = _batched_operands("reduce", values, axes)
    dimensions = shifted(canonical_axes(dimensions, typeof(values[0]).ndim - 1), axis)
    results = process(reduce_p, values, {"dimensions": dimensions, **params})
    return results, [axis - sum(i < axis for i in dimensions)] * len(results)


@rules.batch(reduce_window_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, jaxpr: Jaxpr, consts: ArrayLikes, **windows: Value
) -> BatchResult:
    values, axis = _batched_operands("reduce_window", values, axes)
    params = {"jaxpr": jaxpr, "consts": consts, **w.batched_windows(windows, axis)}
    results = process(reduce_window_p, values, params)
    return results, [axis] * len(results)


@rules.batch(select_and_scatter_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    **params: object,
) -> BatchResult:
    operand, source, start = values
    if axes[2] is not None:
        raise NotImplementedError(  # JAX raises this class.
            "select_and_scatter batching is not implemented for initial values: they are the same "
            "for all of a batch. Combine the results with what differs afterwards."
        )
    both, axis = with_same_axis((operand, source), axes[:2])
    windows = {
        "window_dimensions": window_dimensions,
        "window_strides": window_strides,
        "padding": padding,
    }
    params = {**params, **w.batched_windows(windows, axis)}
    return process(select_and_scatter_p, (*both, start), params), axis
