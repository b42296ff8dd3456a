"""The function linear_call, for linear functions with a user-defined transpose."""

from collections.abc import Callable, Sequence

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import not_lowered
from hlofront.core.programs.subprograms import Subprogram, called
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Tangents, UndefinedPrimal
from hlofront.higher_order.calls.jit_call import (
    captured_by,
    run_by_program,
    typed_by_program,
    with_captured,
)
from hlofront.higher_order.selecting import nonzero_flags
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.flatten import NO_KEYWORDS, stage_tree

linear_call_p = Primitive("linear_call", multiple_results=True, carries_programs=True)
not_lowered(linear_call_p, "transpose")
typed_by_program(linear_call_p, "callee")
run_by_program(linear_call_p, "callee")


@rules.subprograms(linear_call_p)
def _(
    *, callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int
) -> tuple[Subprogram, Subprogram]:
    return called(callee, "callee"), Subprogram(transpose, "transpose", "alternative")


@boundary
def linear_call(
    fun: Callable[..., PyTree],
    fun_transpose: Callable[..., PyTree],
    residual_args: PyTree,
    linear_args: PyTree,
) -> PyTree:
    """Call a linear function that has a user-defined transpose.

    Args:
      fun: `fun(residual_args, linear_args)`, linear in `linear_args`.
      fun_transpose: `fun_transpose(residual_args, cotangent)` returns the cotangent of
        `linear_args`.
      residual_args: a pytree of arrays that are not differentiated.
      linear_args: a pytree of arrays.

    Returns:
      The result of `fun`.

    Raises:
      TypeError: if the transpose's result differs from `linear_args` in structure or types.
    """
    residuals = tree.tree_leaves(residual_args)
    operands, linear_tree = tree.tree_flatten(linear_args)
    residual_avals = [typeof(x) for x in residuals]
    linear_avals: list[ShapedArray] = [typeof(x) for x in operands]
    call, out_tree = stage_tree(
        fun,
        tree.tree_structure(((residual_args, linear_args), NO_KEYWORDS)),
        [*residual_avals, *linear_avals],
        DebugInfo("linear_call", source.describe_callable(fun)),
    )
    cotangents = out_tree.unflatten([0] * out_tree.num_leaves)
    back, back_tree = stage_tree(
        fun_transpose,
        tree.tree_structure(((residual_args, cotangents), NO_KEYWORDS)),
        [*residual_avals, *call.out_avals],
        DebugInfo("linear_call transpose", source.describe_callable(fun_transpose)),
    )
    if back_tree != linear_tree:
        raise TypeError(
            "transpose output pytree structure must match that of linear inputs, got output "
            f"structure {back_tree} and input structure {linear_tree}."
        )
    for aval, expected in zip(back.out_avals, linear_avals, strict=True):
        if aval.shape != expected.shape or aval.dtype != expected.dtype:
            raise TypeError(
                "transpose output must be of the types of the linear inputs, got "
                f"{aval.str_short()} where {expected.str_short()} is expected."
            )
    # Tracers of enclosing functions that either program captures are residuals of both.
    captured = captured_by(call, back)
    results = linear_call_p.bind(
        *captured,
        *residuals,
        *operands,
        callee=with_captured(call, captured),
        transpose=with_captured(back, captured),
        num_res=len(captured) + len(residuals),
    )
    return out_tree.unflatten(results)


@rules.jvp(linear_call_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, num_res: int, **params: object
) -> tuple[list[ArrayLike], list[ArrayLike]]:
    if any(nonzero_flags(tangents[:num_res])):
        raise TypeError(
            "linear_call cannot be differentiated with respect to its residual_args: its "
            "transpose does not cover them. Stop their gradients, or use custom_vjp."
        )
    results = linear_call_p.bind(*primals, num_res=num_res, **params)
    arrays = [instantiate(t) for t in tangents[num_res:]]
    return results, linear_call_p.bind(*primals[:num_res], *arrays, num_res=num_res, **params)


@rules.transpose(linear_call_p)
def _(
    cotangents: Sequence[Cotangent],
    *operands: Value,
    callee: ClosedJaxpr,
    transpose: ClosedJaxpr,
    num_res: int,
) -> list[Cotangent | None]:
    residuals = operands[:num_res]
    if any(type(x) is not UndefinedPrimal for x in operands[num_res:]):
        raise TypeError("linear_call is linear in all of its linear_args together")
    arrays = [instantiate(c) for c in cotangents]
    results = linear_call_p.bind(
        *residuals, *arrays, callee=transpose, transpose=callee, num_res=num_res
    )
    return [*[None] * num_res, *results]


@rules.batch_with_axis(linear_call_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    callee: ClosedJaxpr,
    transpose: ClosedJaxpr,
    num_res: int,
) -> BatchResult:
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)]
    flags = [a is not None for a in axes]
    # All linear operands and all results are batched, so that the transpose fits.
    linear = [True] * (len(values) - num_res)
    values[num_res:] = [
        x if b else with_new_axis(x, axis.size)
        for x, b in zip(values[num_res:], flags[num_res:], strict=True)
    ]
    call, _ = batch_program(callee, axis, [*flags[:num_res], *linear], True)
    back, _ = batch_program(
        transpose, axis, [*flags[:num_res], *[True] * len(callee.out_avals)], True
    )
    results = linear_call_p.bind(*values, callee=call, transpose=back, num_res=num_res)
    return results, [0] * len(results)
