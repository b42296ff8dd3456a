"""Reductions whose combining function is the user's program."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.caches import weak_keyed
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.dimensions import canonical_axes, integers
from hlofront.core.evaluate import eval_jaxpr
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer
from hlofront.core.subprograms import combines
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import Tracer, process
from hlofront.higher_order.jit_call import spread
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r
from hlofront.primitives import windowed as w
from hlofront.primitives.batching import shifted, with_same_axis
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import scalar_of
from hlofront.primitives.cumulative import fold_by_halves, merge_axes
from hlofront.primitives.derivatives import instantiate
from hlofront.primitives.shaping import refuse_sharding
from hlofront.transforms.batch import batch_program
from hlofront.transforms.flatten import stage_tree
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.simplify import dead_code
from hlofront.transforms.stage import stage

# A function is written down once, so its program says which operation is meant: what is compiled
# for one is kept, though the parameters hold programs.
reduce_p = Primitive("reduce", multiple_results=True)
reduce_window_p = Primitive("reduce_window", multiple_results=True)
select_and_scatter_p = Primitive("select_and_scatter")
rules.subprograms(reduce_p, reduce_window_p)(combines("jaxpr"))
rules.subprograms(select_and_scatter_p)(combines("select_jaxpr", "scatter_jaxpr"))


# ---- the user's function -------------------------------------------------------------------------


def _stage_scalars(
    function: Callable[..., Any], structures: Sequence[Any], leaves: Sequence[Any], purpose: str
) -> tuple[ClosedJaxpr, Any]:
    """Write down a function of trees of scalars, one tree per structure, of these leaves' dtypes.

    Raises:
      TypeError: if it is no function.
      NotImplementedError: if it uses values of a function around it that is being traced.
    """
    avals = []
    for leaf in leaves:
        aval = typeof(leaf)
        avals.append(ShapedArray((), aval.dtype, aval.weak_type))
    if not callable(function):
        raise TypeError(f"{purpose} must be a function, got {function!r}")
    # What cannot be a key is written down each time.
    kind = type(function)
    may_be_key = kind.__weakrefoffset__ and kind.__hash__ is not None
    write = _write_down if may_be_key else _write_down.__wrapped__
    return write(function, tuple(structures), tuple(avals), purpose)


@weak_keyed(in_context=True)
def _write_down(
    function: Callable[..., Any], structures: Any, avals: Any, purpose: str
) -> tuple[ClosedJaxpr, Any]:
    in_tree = tree.tree_structure(
        (tuple(tree.tree_unflatten(s, [0] * s.num_leaves) for s in structures), {})
    )
    info = DebugInfo(purpose, source.describe_callable(function))
    program, out_tree = stage_tree(function, in_tree, list(avals) * len(structures), info)
    captured = [const for const in program.consts if isinstance(const, Tracer)]
    if captured:
        raise NotImplementedError(  # the class that JAX raises
            "Reduction computations can't close over Tracers: the function of a reduction uses the "
            f"traced value {captured[0]} of the function around it, which no device can hand to "
            "it. Combine with that value before or after the reduction, or reduce it as another "
            "operand."
        )
    return program, out_tree


# ---- reduce --------------------------------------------------------------------------------------


@boundary
def reduce(operands, init_values, computation, dimensions, out_sharding=None):
    """Fold axes of arrays with a function of two elements.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: scalars in the same tree: what folding starts from.
      computation: of two trees of scalars, which it combines into one. The order in which
        elements are combined is not defined, so it should be associative and commutative, and
        `init_values` its identity.
      dimensions: the axes to fold away.
      out_sharding: None.

    Returns:
      A tree like `operands`, without these axes.

    Raises:
      ValueError: if the trees differ, an initial value is no scalar, or axes are out of range.
      TypeError: if dtypes of operands and initial values differ.
    """
    if out_sharding is not None:
        refuse_sharding("reduce", "out_sharding", out_sharding)
    leaves, structure = tree.tree_flatten(operands)
    starts, start_structure = tree.tree_flatten(init_values)
    _check_trees(structure, start_structure)
    if not leaves:
        raise ValueError("reduce wants at least one operand, got none.")
    if len(leaves) == 1:
        fold = _known_reduction(computation, leaves[0], starts[0])
        if fold is not None:
            axes = integers(dimensions, "dimensions of reduce")
            result = fold(leaves[0], axes)
            # It is weak where both are, as the result of a computation is.
            weak = typeof(leaves[0]).weak_type and typeof(starts[0]).weak_type
            if typeof(result).weak_type != weak:
                result = convert(result, typeof(result).dtype, weak)
            return tree.tree_unflatten(structure, [result])
    program, out_tree = _stage_scalars(computation, (structure,) * 2, starts, "reduce comp")
    _check_result("reduce", out_tree, structure)
    params = {
        "computation": computation,
        "jaxpr": program,
        "dimensions": integers(dimensions, "dimensions of reduce"),
    }
    results = process(reduce_p, (*leaves, *starts), params)
    return tree.tree_unflatten(structure, results)


def _check_trees(structure: Any, start_structure: Any) -> None:
    if structure != start_structure:
        raise ValueError(
            "Operands must have the same tree structure as init_values: "
            f"{structure} vs. {start_structure}"
        )


def _check_result(name: str, out_tree: Any, structure: Any) -> None:
    if out_tree != structure:
        raise ValueError(
            f"{name} computation must return the tree structure of the operands, {structure}; it "
            f"returned {out_tree}"
        )


def _known_reduction(computation: Any, operand: Any, init: Any) -> Callable[..., Any] | None:
    """The reduction that a function of lax stands for, when it starts from its identity."""
    try:
        known = _REDUCTIONS.get(computation)
    except TypeError:  # a callable that cannot be hashed
        return None
    if known is None or isinstance(init, Tracer) or typeof(init).shape:
        return None
    fold, is_identity = known
    start = np.asarray(init, typeof(init).dtype)
    return fold if is_identity(start, typeof(operand).dtype) else None


def _is(value: float) -> Callable[[np.ndarray, Any], bool]:
    return lambda start, dtype: bool(start == value)


def _is_extreme(value: float, of_dtype: Callable[[Any], np.ndarray]):
    """Whether it is `value`, or the one of the dtype where it has that dtype."""
    return lambda start, dtype: bool(
        start == value or (start.dtype == dtype and start == of_dtype(dtype))
    )


def _all_bits(dtype: Any) -> np.ndarray:
    return np.array(True) if dtype == np.bool_ else np.array(-1).astype(dtype)


# function of lax -> the reduction it stands for, and whether that starts from a value.
_REDUCTIONS: dict[Any, tuple[Callable[..., Any], Callable[[np.ndarray, Any], bool]]] = {
    e.add: (r.reduce_sum, _is(0)),
    e.mul: (r.reduce_prod, _is(1)),
    e.max: (r.reduce_max, _is_extreme(-np.inf, r.least_value)),
    e.min: (r.reduce_min, _is_extreme(np.inf, r.greatest_value)),
    e.bitwise_and: (r.reduce_and, _is_extreme(-1, _all_bits)),
    e.bitwise_or: (r.reduce_or, _is(0)),
    e.bitwise_xor: (r.reduce_xor, _is(0)),
}


@infer(reduce_p)
def _(*avals, computation, jaxpr, dimensions):
    operands, starts = _halves(avals)
    if any(start.shape for start in starts):
        raise ValueError(
            f"reduce found non-scalar initial value: {[start.shape for start in starts]}"
        )
    _check_dtypes("reduce", operands, starts)
    shape = operands[0].shape
    if any(operand.shape != shape for operand in operands):
        raise ValueError(
            f"reduce wants operands of one shape, got {[operand.shape for operand in operands]}"
        )
    axes = canonical_axes(dimensions, len(shape))
    r.check_axes(axes, operands[0])
    _check_out_avals("reduce", jaxpr.out_avals, operands)
    shape = r.without_axes(shape, axes)
    return [
        ShapedArray(shape, operand.dtype, operand.weak_type and start.weak_type)
        for operand, start in zip(operands, starts, strict=True)
    ]


@effects(reduce_p, reduce_window_p)
def _(*avals, jaxpr, **_):
    return jaxpr.effects


def _halves(avals: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    half = len(avals) // 2
    return avals[:half], avals[half:]


def _check_dtypes(name: str, operands: Sequence[Any], starts: Sequence[Any]) -> None:
    if any(operand.dtype != start.dtype for operand, start in zip(operands, starts, strict=True)):
        raise TypeError(
            f"{name} operand dtypes should match corresponding initial value dtypes, got "
            f"operands={list(operands)} and initial_values={list(starts)}. Give initial values "
            "that dtype, as in jnp.zeros((), x.dtype)."
        )


def _check_out_avals(name: str, results: Sequence[Any], operands: Sequence[Any]) -> None:
    for result, operand in zip(results, operands, strict=True):
        if result.shape or result.dtype != operand.dtype:
            raise ValueError(
                f"{name} computation must return scalars of the operands' dtypes, "
                f"{[operand.dtype.name for operand in operands]}; it returned "
                f"{[result.str_short() for result in results]}."
            )


# ---- reduce_window -------------------------------------------------------------------------------


@boundary
def reduce_window(
    operand,
    init_value,
    computation,
    window_dimensions,
    window_strides=None,
    padding="VALID",
    base_dilation=None,
    window_dilation=None,
):
    """Fold the elements under a sliding window with a function of two elements.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: scalars in the same tree: what folding starts from, and what padding is.
      computation: of two trees of scalars; see `reduce`.
      window_dimensions: sizes of the window, one per axis.
      window_strides: steps of the window; 1 by default.
      padding: pairs of how much to pad before and after, or "VALID", "SAME", "SAME_LOWER"; see
        `padtype_to_pads`.
      base_dilation: distances at which elements of the operand are put, padding between; 1 by
        default.
      window_dilation: distances between elements of the window; 1 by default.

    Returns:
      A tree like `operand`; each array has one element per window.

    Raises:
      ValueError: if the trees differ, or there is not one padding per axis.
      TypeError: if numbers of axes differ, sizes are not positive, or dtypes differ.
      RuntimeError: if `padding` is no known name.
    """
    leaves, structure = tree.tree_flatten(operand)
    starts, start_structure = tree.tree_flatten(init_value)
    _check_trees(structure, start_structure)
    if not leaves:
        raise ValueError("reduce_window must have at least one operand, got none.")
    windows = w.canonical_windows(
        typeof(leaves[0]).shape,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    if len(leaves) == 1:
        fold = _known_window_reduction(computation, leaves[0], starts[0])
        if fold is not None:
            return tree.tree_unflatten(structure, [fold(leaves[0], *windows)])
    program, out_tree = _stage_scalars(computation, (structure,) * 2, starts, "reduce_window comp")
    if out_tree != structure:
        raise ValueError(
            "reduce_window output must have the same tree structure as the operands "
            f"{structure} vs. {out_tree}"
        )
    params = {"jaxpr": program.jaxpr, "consts": tuple(program.consts), **windows._asdict()}
    results = process(reduce_window_p, (*leaves, *starts), params)
    return tree.tree_unflatten(structure, results)


def _known_window_reduction(computation: Any, operand: Any, init: Any):
    fold = _known_reduction(computation, operand, init)
    return _WINDOW_REDUCTIONS.get(fold)


_WINDOW_REDUCTIONS = {
    r.reduce_sum: w.reduce_window_sum,
    r.reduce_max: w.reduce_window_max,
    r.reduce_min: w.reduce_window_min,
}


@infer(reduce_window_p)
def _(*avals, jaxpr, consts, **windows):
    operands, starts = _halves(avals)
    if any(start.shape for start in starts):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[start.shape for start in starts]}."
        )
    if [aval.dtype for aval in operands] != [aval.dtype for aval in starts]:
        raise TypeError(
            "reduce_window got inconsistent dtypes for operands and init_values: got operand "
            f"dtypes {[aval.dtype for aval in operands]} and init_value dtypes "
            f"{[aval.dtype for aval in starts]}."
        )
    if any(operand.shape != operands[0].shape for operand in operands):
        raise TypeError(
            "reduce_window wants operands of one shape, got "
            f"{[operand.shape for operand in operands]}."
        )
    shape = w.window_output_shape("reduce_window", operands[0].shape, w.Windows(**windows))
    _check_out_avals("reduce_window", jaxpr.out_avals, operands)
    return [ShapedArray(shape, operand.dtype) for operand in operands]


# ---- select_and_scatter --------------------------------------------------------------------------


def select_and_scatter(
    operand, select, window_dimensions, window_strides, padding, source, init_value, scatter
):
    """Select one element of `operand` under each window, and fold `source` into its place.

    Args:
      operand: the array that the windows lie on.
      select: of two scalars: whether the first is rather selected.
      window_dimensions: sizes of the window.
      window_strides: its steps.
      padding: pairs of padding before and after.
      source: one element per window.
      init_value: a scalar: what no element was folded into.
      scatter: of two scalars, the sum so far and an element of `source`: the new sum.

    Returns:
      An array like `operand`.
    """
    leaf = tree.tree_structure(0)
    selecting, _ = _stage_scalars(select, (leaf, leaf), [operand], "select")
    scattering, _ = _stage_scalars(scatter, (leaf, leaf), [source], "scatter")
    params = {
        "select_jaxpr": selecting.jaxpr,
        "select_consts": tuple(selecting.consts),
        "scatter_jaxpr": scattering.jaxpr,
        "scatter_consts": tuple(scattering.consts),
        "window_dimensions": integers(window_dimensions, "window_dimensions"),
        "window_strides": integers(window_strides, "window_strides"),
        "padding": w.canonical_pads(padding),
    }
    return process(select_and_scatter_p, (operand, source, init_value), params)


@infer(select_and_scatter_p)
def _(
    operand,
    source,
    init_value,
    *,
    select_jaxpr,
    scatter_jaxpr,
    window_dimensions,
    window_strides,
    padding,
    **_,
):
    if not operand.dtype == source.dtype == init_value.dtype or init_value.shape:
        raise TypeError(
            "select_and_scatter wants an operand and a source of one dtype and a scalar "
            f"init_value of it, got {operand}, {source} and {init_value}."
        )
    w.check_source_shape(
        "select_and_scatter", source, operand, window_dimensions, window_strides, padding
    )
    (chosen,), (total,) = select_jaxpr.out_avals, scatter_jaxpr.out_avals
    if chosen.shape or chosen.dtype != np.bool_:
        raise ValueError(
            f"select of select_and_scatter must return a boolean, it returned {chosen}"
        )
    _check_out_avals("scatter of select_and_scatter", [total], [operand])
    return operand.strip_weak_type()


# ---- derivatives ---------------------------------------------------------------------------------


def _moving_slots(program: ClosedJaxpr, given: Sequence[bool]) -> tuple[bool, ...]:
    """Which values have tangents when these operands do: what is combined is combined again."""
    moving = tuple(given)
    while True:
        _, present = jvp_program(program, moving * 2)
        grown = tuple(map(operator.or_, moving, present))
        if grown == moving:
            return moving
        moving = grown


@rules.jvp(reduce_p)
def _(primals, tangents, *, computation, jaxpr, dimensions):
    operands, starts = _halves(primals)
    tangents, start_tangents = _halves(tangents)
    if any(type(tangent) is not Zero for tangent in start_tangents):
        raise NotImplementedError(  # the class that JAX raises
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
    moving = _moving_slots(jaxpr, [type(tangent) is not Zero for tangent in tangents])
    present = [instantiate(t) for t, m in zip(tangents, moving, strict=True) if m]
    merged = [merge_axes(x, axes) for x in (*operands, *present)]
    axis, count = merged[0][1], len(operands)
    program, _ = jvp_program(jaxpr, moving * 2, moving)

    def combine(a: Sequence[Any], b: Sequence[Any]) -> Sequence[Any]:
        args = (*a[:count], *b[:count], *a[count:], *b[count:])
        return _on_arrays(program, args)

    zeros = [scalar_of(0, typeof(t).dtype) for t in present]
    folded = fold_by_halves(combine, [x for x, _ in merged], (*starts, *zeros), axis)
    results = folded[:count]
    avals = [typeof(result) for result in results]
    return results, spread(folded[count:], moving, avals)


def _on_arrays(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program of scalars for each element of arrays of one shape."""
    for size in reversed(typeof(args[0]).shape):
        program, _ = batch_program(program, AxisData(None, size), (True,) * len(args), True)
    return eval_jaxpr(program.jaxpr, program.consts, *args)


@rules.jvp(reduce_window_p)
def _(primals, tangents, *, jaxpr, consts, **windows):
    operands, starts = _halves(primals)
    tangents, start_tangents = _halves(tangents)
    if any(type(tangent) is not Zero for tangent in start_tangents):
        raise TypeError(
            "reduce_window jvp does not support non-zero init_value_tangent: an initial value is "
            "what padding is, too. Make it a constant, and combine afterwards."
        )
    given = tuple([type(tangent) is not Zero for tangent in tangents])
    # What is made of a function without arrays of its own is kept.
    make = _write_down_pairs.__wrapped__ if consts else _write_down_pairs
    program, moving = make(jaxpr, given, *([consts] if consts else ()))
    present = [instantiate(t) for t, m in zip(tangents, moving, strict=True) if m]
    zeros = [scalar_of(0, typeof(t).dtype) for t in present]
    params = {"jaxpr": program.jaxpr, "consts": tuple(program.consts), **windows}
    results = process(reduce_window_p, (*operands, *present, *starts, *zeros), params)
    count = len(operands)
    avals = [typeof(result) for result in results[:count]]
    return results[:count], spread(results[count:], moving, avals)


@weak_keyed
def _write_down_pairs(
    jaxpr: Jaxpr, given: tuple[bool, ...], consts: Sequence[Any] = ()
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program that combines values with tangents, and which of the values have one."""
    program = ClosedJaxpr(jaxpr, consts)
    moving = _moving_slots(program, given)
    with_tangents, _ = jvp_program(program, moving * 2, moving)
    count, moved = len(moving), sum(moving)

    def combine(*args: Any) -> list[Any]:
        # JAX's order is that of the results: values and tangents of one side, then of the other.
        a, b = _halves(args)
        inputs = (*a[:count], *b[:count], *a[count:], *b[count:])
        return eval_jaxpr(with_tangents.jaxpr, with_tangents.consts, *inputs)

    avals = with_tangents.in_avals
    side = (*avals[:count], *avals[2 * count : 2 * count + moved])
    return stage(combine, [*side, *side], jaxpr.debug_info), moving


@rules.partial_eval(reduce_window_p)
def _(unknown, equation):
    # Windows of operands that depend on nothing unknown are folded on their own.
    params, count = equation.params, len(equation.outvars)
    jaxpr: Jaxpr = params["jaxpr"]
    known = [not (operand or start) for operand, start in zip(*_halves(unknown), strict=True)]

    def depends(place: int) -> bool:
        _, used = dead_code(jaxpr, [i == place for i in range(count)])
        return any(u and not known[i % count] for i, u in enumerate(used))

    while any(lost := [known[i] and depends(i) for i in range(count)]):
        known = [k and not gone for k, gone in zip(known, lost, strict=True)]
    unknown_out = [not k for k in known]
    if not any(known):
        return None, equation, unknown_out, []
    part, _ = dead_code(jaxpr, known, known * 2)
    inputs = [atom for atom, k in zip(equation.invars, known * 2, strict=True) if k]
    first = equation.replace(
        invars=inputs,
        outvars=[var for var, k in zip(equation.outvars, known, strict=True) if k],
        params={**params, "jaxpr": part},
    )
    outvars = [Var(var.aval) if k else var for var, k in zip(equation.outvars, known, strict=True)]
    return first, equation.replace(outvars=outvars), unknown_out, inputs


@rules.transpose(reduce_window_p)
def _(cotangents, *operands, **params):
    raise ValueError(
        "reduce_window with a function other than add, max or min cannot be differentiated in "
        "reverse mode. Differentiate it forward, with jvp or jacfwd; or fold slices of the operand."
    )


# ---- batches -------------------------------------------------------------------------------------


def _batched_operands(name: str, values: Any, axes: Any) -> tuple[tuple[Any, ...], int]:
    """Operands with one batch axis, then the starts, which have none; and that axis."""
    operands, starts = _halves(values)
    operand_axes, start_axes = _halves(axes)
    if any(axis is not None for axis in start_axes):
        raise NotImplementedError(  # the class that JAX raises
            f"{name} batching is not implemented for initial values: they are the same for all of "
            "a batch. Combine the results with what differs afterwards."
        )
    operands, axis = with_same_axis(operands, operand_axes)
    return (*operands, *starts), axis


@rules.batch(reduce_p)
def _(values, axes, *, dimensions, **params):
    values, axis = _batched_operands("reduce", values, axes)
    dimensions = shifted(canonical_axes(dimensions, typeof(values[0]).ndim - 1), axis)
    results = process(reduce_p, values, {"dimensions": dimensions, **params})
    return results, [axis - sum(i < axis for i in dimensions)] * len(results)


@rules.batch(reduce_window_p)
def _(values, axes, *, jaxpr, consts, **windows):
    values, axis = _batched_operands("reduce_window", values, axes)
    params = {"jaxpr": jaxpr, "consts": consts, **w.batched_windows(windows, axis)}
    results = process(reduce_window_p, values, params)
    return results, [axis] * len(results)


@rules.batch(select_and_scatter_p)
def _(values, axes, *, window_dimensions, window_strides, padding, **params):
    operand, source, start = values
    if axes[2] is not None:
        raise NotImplementedError(  # the class that JAX raises
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
