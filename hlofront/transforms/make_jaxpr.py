"""Transformations that only trace a function: make_jaxpr and closure_convert."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.axes import axes_in_scope
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.references import touches_references
from hlofront.core.sharding.manual_axes import SAME
from hlofront.core.sharding.requested_shardings import sharding_of
from hlofront.core.trace import Tracer
from hlofront.primitives.references.mutable_values import on_passed_states, passed_states
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import (
    ShapeDtypeStruct,
    abstract,
    check_hashable,
    refuse_generators,
    result_paths,
    stage_tree,
)
from hlofront.transforms.reference_checks import check_references


def _staged(
    fun: Callable[..., PyTree],
    plan: ArgumentPlan,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    traced_for: str,
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """Return the program of a function, and the structure of its result.

    If arguments have mutable state, the results are followed by the values that they then hold.
    """
    dynamic, objects = passed_states(plan.dynamic(args, kwargs))
    leaves, in_tree = tree.tree_flatten(dynamic)
    try:
        avals = [abstract(leaf) for leaf in leaves]
    except (TypeError, OverflowError) as error:
        raise plan.bad_argument(args, kwargs, leaves) from error
    out_tree: Any = None
    debug_info = DebugInfo(
        traced_for,
        plan.signature.where,
        plan.signature.argument_names(dynamic, plan.dynamic_positions(len(args))),
        lambda: result_paths(out_tree),
    )
    of_dynamic = plan.with_statics(fun, args, kwargs)
    if objects:
        of_dynamic = on_passed_states(of_dynamic)
    program, out_tree = stage_tree(of_dynamic, in_tree, avals, debug_info)
    if touches_references(program.effects):
        check_references(program.debug_info, leaves, program.consts)
    if objects:
        out_tree, _ = out_tree.children()
    return program, out_tree


def make_jaxpr(
    fun: Callable[..., PyTree],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., PyTree]:
    """Return a function that computes the jaxpr of `fun` for its arguments.

    Args:
      fun: a function of pytrees of arrays.
      static_argnums: positions of static arguments, which are not traced.
      axis_env: names and sizes of axes that collectives in `fun` may use.
      return_shape: whether to return (jaxpr, ShapeDtypeStructs of the result).

    Returns:
      A function of the arguments of `fun`, which may be arrays or ShapeDtypeStructs, that returns
      a closed jaxpr.

    Example:
      >>> jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
      { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr requires a function, got {fun!r} of type {type(fun)}")
    refuse_generators(fun, "make_jaxpr")
    plan = ArgumentPlan(fun, static_argnums, what="Function passed to make_jaxpr")

    @boundary
    def jaxpr_of(*args: object, **kwargs: object) -> PyTree:
        with axes_in_scope(axis_env or ()):
            program, out_tree = _staged(fun, plan, args, kwargs, "make_jaxpr")
        if not return_shape:
            return program
        return program, _structs(program, out_tree)

    named_as(jaxpr_of, fun)
    jaxpr_of.__name__ = f"make_jaxpr({jaxpr_of.__name__})"
    jaxpr_of.__qualname__ = f"make_jaxpr({jaxpr_of.__qualname__})"
    jaxpr_of.__module__ = make_jaxpr.__module__
    return jaxpr_of


def _structs(program: ClosedJaxpr, out_tree: PyTreeDef) -> PyTree:
    return out_tree.unflatten(map(described, program.out_avals[: out_tree.num_leaves]))


def described(aval: AbstractValue) -> ShapeDtypeStruct | AbstractValue:
    """Return an array's ShapeDtypeStruct, with the sharding in its type; for a token, its aval."""
    if not isinstance(aval, ShapedArray):
        return aval
    sharding = sharding_of(aval)
    if sharding is not None and not sharding.mesh.explicit_axes:
        sharding = None
    manual = None if aval.manual_axis_type is SAME else aval.manual_axis_type
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        sharding=sharding,
        weak_type=aval.weak_type,
        manual_axis_type=manual,
    )


@boundary
def closure_convert(
    fun: Callable[..., PyTree], *example_args: object
) -> tuple[Callable[..., PyTree], list[Value]]:
    """Return `fun` with the traced values that it closes over turned into arguments.

    Args:
      fun: a function of pytrees of arrays.
      example_args: arguments with the shapes and dtypes of later calls.

    Returns:
      (converted, values): `converted(*args, *values)` equals `fun(*args)`, and does not close over
      traced values of floating dtype.
    """
    check_hashable(fun)
    plan = ArgumentPlan(fun)
    program, out_tree = _staged(fun, plan, example_args, {}, "closure_convert")
    has_tangent = [_may_have_tangent(const) for const in program.consts]
    values = [c for c, flag in zip(program.consts, has_tangent, strict=True) if flag]
    in_tree = tree.tree_structure(example_args)

    def converted(*args_and_values: PyTree) -> PyTree:
        count = len(args_and_values) - len(values)
        args, added_values = args_and_values[:count], iter(args_and_values[count:])
        leaves, given_tree = tree.tree_flatten(args)
        if given_tree != in_tree:
            raise TypeError(
                "the closure-converted function was called with arguments of another structure: "
                f"expected {in_tree}, got {given_tree}"
            )
        consts = [
            next(added_values) if flag else c
            for c, flag in zip(program.consts, has_tangent, strict=True)
        ]
        results = eval_jaxpr(program.jaxpr, consts, *leaves)
        return out_tree.unflatten(results[: out_tree.num_leaves])

    return named_as(converted, fun), values


def _may_have_tangent(const: Value) -> bool:
    return isinstance(const, Tracer) and typeof(const).dtype.kind not in "iub"
