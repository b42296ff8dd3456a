"""The types of results over a mesh: the part that the tables `sharding` and `varying` infer.

Infer rules only handle shapes and dtypes. They see operands without the mesh axes that split them
or that they vary along, and this module adds the axes that these tables infer to the results.
"""

from collections.abc import Hashable, Sequence
from typing import Any, cast

from hlofront.base.dtypes import short_name
from hlofront.base.errors import ShardingTypeError
from hlofront.base.typing import Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, Split, spec_of
from hlofront.core.memories import Memories, MemorySpace
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef
from hlofront.core.rules import Entries
from hlofront.core.sharding.forbidden_collectives import check_moves, check_splits, may_communicate
from hlofront.core.sharding.manual_axes import SAME, ManualAxisType, names_text
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.mesh_context import vma_enabled
from hlofront.core.sharding.partition import PartitionSpec, UnreducedKind, axes_of
from hlofront.core.sharding.requested_shardings import spec_of_rank

# The parameters of primitives by which a user requests a sharding of the result.
_REQUESTS = ("out_sharding", "sharding")


def infer_types(primitive: Primitive, avals: Sequence[AbstractValue], params: Params) -> Any:
    """Return the aval of the result of an operation, or a list of avals of several.

    Raises:
      ShardingTypeError: if the splits of the operands do not determine that of the result.
      ValueError: if the operands are split over different meshes, or in different memories.
    """
    results = _infer_types(primitive, avals, params)
    if primitive.carries_programs or primitive.moves_memory:
        return results
    space = _common_memory(primitive, avals)
    if space is MemorySpace.Device:
        return results
    if not primitive.multiple_results:
        return results.update(memory_space=space)
    return [result.update(memory_space=space) for result in results]


def _common_memory(primitive: Primitive, avals: Sequence[AbstractValue]) -> Memories:
    """Return the memory that holds the operands of an operation; scalars may be in any memory."""
    first: ShapedArray | None = None
    for aval in avals:
        if not isinstance(aval, ShapedArray) or not aval.ndim:
            continue
        if first is None:
            first = aval
        elif aval.memory_space is not first.memory_space:
            raise ValueError(
                f"memory_space of all inputs passed to `{primitive}` must be the same: got "
                f"operands of types {first.str_short()} and {aval.str_short()}. Move one of them "
                "with device_put, to memory.Space.Device or memory.Space.Host."
            )
    return MemorySpace.Device if first is None else first.memory_space


def _infer_types(primitive: Primitive, avals: Sequence[AbstractValue], params: Params) -> Any:
    rule = rules.infer[primitive]
    if primitive.carries_programs or primitive in rules.infers_whole_types:
        return rule(*avals, **params)
    request = _request(params)
    varies = primitive in rules.varying and vma_enabled()
    if request is None and not varies and not any(map(_is_over_mesh, avals)):
        return rule(*avals, **params)
    arrays = [aval for aval in avals if isinstance(aval, ShapedArray)]
    is_split = request is not None or any(aval.spec is not None for aval in arrays)
    # As in JAX, another package's rule sees how operands are split and says how results are.
    says_splits = primitive in rules.infer.foreign and primitive not in rules.sharding
    seen = avals if says_splits else [plain_aval(aval) for aval in avals]
    inferred: Any = rule(*seen, **params)
    results: list[Any] = list(inferred) if primitive.multiple_results else [inferred]
    if is_split and not says_splits:
        results = _with_splits(primitive, arrays, results, params, request)
    if varies or any(aval.manual_axis_type is not SAME for aval in arrays):
        arrays += [aval.inner_aval for aval in avals if isinstance(aval, AbstractRef)]
        results = _with_manual_types(primitive, arrays, results, params)
    return results if primitive.multiple_results else results[0]


def _is_over_mesh(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and (
        aval.spec is not None or aval.manual_axis_type is not SAME
    )


def plain_aval(aval: AbstractValue) -> AbstractValue:
    """Return an aval without the mesh axes that split it or that it varies along."""
    if not isinstance(aval, ShapedArray) or not _is_over_mesh(aval):
        return aval
    return ShapedArray(aval.shape, aval.dtype, aval.weak_type, memory_space=aval.memory_space)


def _request(params: Params) -> Split | None:
    """Return the mesh and spec of the sharding that an operation's parameters request, or None."""
    for name in _REQUESTS:
        requested_sharding: Any = params.get(name)
        mesh = getattr(requested_sharding, "mesh", None)
        if mesh is not None and mesh.explicit_axes:
            return Split(mesh.abstract_mesh, requested_sharding.spec)
    return None


def types_are_constant(
    primitive: Primitive, avals: Sequence[AbstractValue], params: Params, results: Any
) -> bool:
    """Return whether the types of an operation's results are the same at each call.

    They are not if `no_collectives` may refuse the operation.

    Args:
      primitive: the operation.
      avals: the avals of its operands.
      params: its parameters.
      results: what `infer_types` returned.
    """
    made = results if primitive.multiple_results else [results]
    return not may_communicate(primitive, avals, made, _request(params) is not None)


# ---- explicit axes -------------------------------------------------------------------------------


def refusal(name: str, avals: Avals, problem: str) -> ShardingTypeError:
    """Return the error for operands whose splits an operation does not take.

    Args:
      name: the operation's name.
      avals: the avals of the operands.
      problem: what is wrong with them.
    """
    return ShardingTypeError(
        f"{name} operation with inputs: {types_text(avals)} cannot be split: {problem}. "
        f"{_advice(name)}"
    )


def _advice(name: str) -> str:
    """Return the sentence that tells users what to do about the operands of an operation."""
    asking = _ASKED_BY.get(name, "")
    asking = f"Say how the result is split, by {asking}, or reshard" if asking else "Reshard"
    return f"{asking} an operand first, as by jax.sharding.reshard(x, jax.P(...))."


# Operation's name -> the functions' argument that requests a sharding of its result.
_ASKED_BY = {
    "dot_general": "the argument out_sharding=",
    "reshape": "the argument out_sharding=",
    "broadcast_in_dim": "the argument out_sharding=",
    "conv_general_dilated": "the argument out_sharding=",
    "reduce_sum": "the argument out_sharding=",
    "reduce_max": "the argument out_sharding=",
    "reduce_min": "the argument out_sharding=",
    **dict.fromkeys(("gather", "slice", "dynamic_slice"), "x.at[...].get(out_sharding=)"),
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
        "x.at[...].set(..., out_sharding=)",
    ),
}


def entries_of(aval: ShapedArray) -> Entries:
    """Return per axis of an array the names of the explicit mesh axes that split it."""
    if aval.spec is None:
        return ((),) * aval.ndim
    return tuple(map(axes_of, aval.spec.partitions))


def _with_splits(
    primitive: Primitive,
    avals: Avals,
    results: list[ShapedArray],
    params: Params,
    request: Split | None,
) -> list[AbstractValue]:
    mesh = common_mesh([*avals], request.mesh if request else None)
    _check_extremes(primitive, avals)
    if request is not None:
        _check_requested_kind(primitive, avals, request.spec)
        check = rules.sharding.get(primitive)
        if check is not None:
            for natural in check(avals, results, **params):
                check_moves(primitive, natural, request.spec)
        spec = _with_own_unreduced(primitive, avals, request.spec)
        splits: list[AbstractValue] = [
            result.update(sharding=Split(mesh, spec_of_rank(spec, result.ndim)))
            for result in results
        ]
        check_splits(primitive, avals, splits)
        return splits
    if primitive not in rules.sharding:
        raise ShardingTypeError(
            f"{primitive} has no rule for operands that are split along explicit axes of a mesh, "
            f"and was given {types_text(avals)}. Replicate them first, by "
            "reshard(x, PartitionSpec()), or call it in a function decorated by auto_axes, where "
            "XLA decides how results are split."
        )
    entries = rules.sharding[primitive](avals, results, **params)
    specs = [_sums(primitive, avals).update(partitions=entry) for entry in entries]
    splits = [
        _split_result(primitive, avals, result, mesh, spec)
        for result, spec in zip(results, specs, strict=True)
    ]
    check_splits(primitive, avals, splits)
    return splits


# Reductions to maxima and minima, whose operands may themselves be unreduced maxima or minima.
_MAKE_EXTREMES = {
    "reduce_max": UnreducedKind.max,
    "reduce_min": UnreducedKind.min,
    "pmax": UnreducedKind.max,
    "pmin": UnreducedKind.min,
}

# Operations that only move elements, and may be applied to unreduced maxima or minima.
_MOVE_ELEMENTS = frozenset(
    {
        "transpose",
        "reshape",
        "squeeze",
        "slice",
        "stack",
        "concatenate",
        "dynamic_update_slice",
        "copy",
        "copy_p",
        "stop_gradient",
        "optimization_barrier",
        "pvary",
        "unreduced_pmax",
        "unreduced_pmin",
    }
)


def _check_extremes(primitive: Primitive, avals: Avals) -> None:
    """Check that an operation may be applied to the maxima or minima on devices one by one.

    Raises:
      ValueError: if an operand consists of unreduced maxima or minima, and it may not.
    """
    for aval in avals:
        kind = aval.manual_axis_type.unreduced_kind or spec_of(aval).unreduced_kind
        if kind is None or kind is UnreducedKind.sum:
            continue
        if primitive.name not in _MOVE_ELEMENTS and _MAKE_EXTREMES.get(primitive.name) is not kind:
            raise ValueError(
                f"{primitive} does not accept an operand with unreduced_kind={kind.name}: each "
                f"device holds only the {kind.name} of its part. Got {types_text(avals)}. Combine "
                f"the parts first, with reshard(x, jax.P(...)), or lax.p{kind.name} in "
                "shard_map."
            )


def _check_requested_kind(primitive: Primitive, avals: Avals, spec: PartitionSpec) -> None:
    """Check that an operation makes what `unreduced_kind` of the requested spec says.

    Raises:
      ShardingTypeError: if it does not.
    """
    kind, name = spec.unreduced_kind, primitive.name
    own = spec_of(avals[0]) if name == "reshape" else PartitionSpec()
    if own.unreduced_kind not in (None, UnreducedKind.sum):
        if (own.unreduced, own.unreduced_kind) == (spec.unreduced, kind):
            return
    elif kind is None or kind is _MAKE_EXTREMES.get(name, UnreducedKind.sum):
        return
    raise ShardingTypeError(
        f"{name} of {types_text(avals)}: out_sharding= requests a result split as {spec}, whose "
        "unreduced_kind does not match the operation: reduce_max makes UnreducedKind.max, "
        "reduce_min makes min, reshape keeps that of its operand, and others make sum"
    )


def _with_own_unreduced(primitive: Primitive, avals: Avals, spec: PartitionSpec) -> PartitionSpec:
    """Return a requested spec with the axes along which the operand of a reduction is unreduced.

    Raises:
      ValueError: if a reshape would combine values along such axes.
    """
    if primitive.name not in ("reshape", "reduce_sum", "reduce_max", "reduce_min"):
        return spec
    own = spec_of(avals[0])
    if own.unreduced <= spec.unreduced:
        return spec
    if primitive.name == "reshape":
        raise ValueError(
            f"out_sharding of reshape is unreduced along the axes of its operand: got {spec} for "
            f"{types_text(avals)}. Combine the values of devices first, by reshard(x, jax.P(...))"
        )
    return spec.update(unreduced=spec.unreduced | own.unreduced, unreduced_kind=own.unreduced_kind)


def _sums(primitive: Primitive, avals: Avals) -> PartitionSpec:
    """Return a spec of no entries, with the unreduced and reduced axes of the results.

    All operands must agree in these axes. Scalars without any are ignored, unless another operand
    is unreduced.
    """
    sums = {
        spec_of(aval).update(partitions=()) for aval in avals if aval.ndim or aval.spec is not None
    }
    name = primitive.name
    if name == "dot_general" and not any(spec.unreduced for spec in sums):
        # The cotangents of its operands are summed up, so they need not be reduced.
        return PartitionSpec()
    if name == "mul" and len(sums) == 2:
        # A product of an unreduced value and one that all devices have is unreduced.
        own, other = sorted(sums, key=_is_reduced)
        if own.unreduced == other.reduced and not own.reduced and not other.unreduced:
            return own
    if len(sums) > 1:
        raise ShardingTypeError(
            f"{primitive} requires operands that are unreduced, and reduced, along the same mesh "
            f"axes: got {types_text(avals)}. Add up the summands first, by reshard(x, jax.P(...))."
        )
    own = sums.pop() if sums else PartitionSpec()
    if own.unreduced_kind is UnreducedKind.sum and name not in _LINEAR_IN_SUMMANDS:
        raise ShardingTypeError(
            f"{primitive} of summands is not the summand of its result: got {types_text(avals)}. "
            "Add them up first, by reshard(x, jax.P(...))."
        )
    return own


def _is_reduced(spec: PartitionSpec) -> bool:
    return bool(spec.reduced)


# Operations that may be applied to summands one by one.
_LINEAR_IN_SUMMANDS = frozenset(
    {
        "add",
        "add_any",
        "sub",
        "neg",
        "copy",
        "copy_p",
        "convert_element_type",
        "broadcast_in_dim",
        "transpose",
        "reshape",
        "squeeze",
        "expand_dims",
        "reduce_sum",
        "slice",
        "pad",
        "split",
        "stack",
        "concatenate",
        "dynamic_update_slice",
        "select_n",
        "real",
        "imag",
        "stop_gradient",
        "reshard",
        "optimization_barrier",
        "sharding_constraint",
        "argument_sharding",
    }
)


def _split_result(
    primitive: Primitive,
    avals: Avals,
    result: AbstractValue,
    mesh: AbstractMesh,
    spec: PartitionSpec,
) -> AbstractValue:
    if not isinstance(result, ShapedArray):
        return result
    names = [name for name in spec.names() if name in mesh.explicit_axes]
    if len(names) != len(set(names)):
        shown = _shape_text(result, spec)
        raise ShardingTypeError(
            f"{primitive} operation with inputs: {types_text(avals)} produces an illegally sharded "
            f"result: {shown}. A mesh axis splits one axis of an array: reshard an operand, or "
            "say by out_sharding= how the result is split."
        )
    try:
        return result.update(sharding=Split(mesh, spec))
    except ValueError as error:
        raise ShardingTypeError(
            f"{primitive} operation with inputs: {types_text(avals)} would have the result "
            f"{_shape_text(result, spec)}: {error}. {_advice(primitive.name)}"
        ) from None


def _shape_text(result: ShapedArray, spec: PartitionSpec) -> str:
    """Return the type of an array as text, with a spec that is invalid for it."""
    sizes = [
        f"{size}@{names_text(axes_of(entry))}" if axes_of(entry) else str(size)
        for size, entry in zip(result.shape, spec.partitions, strict=True)
    ]
    return f"{short_name(result.dtype)}[{','.join(sizes)}]"


def without_splits(aval: ShapedArray, axes: Sequence[int]) -> ShapedArray:
    """Return the type of an array without the mesh axes that split some of its axes."""
    if aval.split is None:
        return aval
    mesh, spec = aval.split
    entries = [None if i in axes else entry for i, entry in enumerate(spec.partitions)]
    return ShapedArray(
        aval.shape,
        aval.dtype,
        aval.weak_type,
        sharding=Split(mesh, spec.update(partitions=entries)),
        memory_space=aval.memory_space,
        manual_axis_type=aval.manual_axis_type,
    )


def common_mesh(avals: Avals, mesh: AbstractMesh | None = None) -> AbstractMesh:
    """Return the mesh whose explicit axes split the arrays.

    Raises:
      ValueError: if there are several.
    """
    for aval in avals:
        if aval.mesh is None:
            continue
        if mesh is not None and aval.mesh is not mesh:
            raise ValueError(
                f"Mesh for all inputs should be equal. Got one mesh: {mesh} and another mesh: "
                f"{aval.mesh}"
            )
        mesh = aval.mesh
    return cast(AbstractMesh, mesh)


def types_text(avals: Avals) -> str:
    """Return the types of operands as text: "f32[8@x,4], f32[]"."""
    return ", ".join(aval.str_short(True) for aval in avals)


# ---- manual axes ---------------------------------------------------------------------------------


def _with_manual_types(
    primitive: Primitive, avals: Avals, results: Sequence[AbstractValue], params: Params
) -> list[AbstractValue]:
    _check_extremes(primitive, avals)
    rule = rules.varying.get(primitive)
    if rule is not None:
        types = rule(avals, **params)
    else:
        types = [_joined(primitive, avals)] * len(results)
    return [
        result.update(manual_axis_type=type_) if isinstance(result, ShapedArray) else result
        for result, type_ in zip(results, types, strict=True)
    ]


def _joined(primitive: Primitive, avals: Avals) -> ManualAxisType:
    """Return the manual type of the result of operands; `process` makes them vary alike first."""
    varying = frozenset[Hashable]().union(*[aval.manual_axis_type.varying for aval in avals])
    manual_types = {aval.manual_axis_type.with_varying(()) for aval in avals}
    if len(manual_types) > 1:
        raise ShardingTypeError(
            f"{primitive} requires operands that are unreduced along the same manual axes: got "
            f"{types_text(avals)}"
        )
    own = manual_types.pop()
    if own.unreduced_kind is UnreducedKind.sum and primitive.name not in _LINEAR_IN_SUMMANDS:
        raise ShardingTypeError(
            f"{primitive} of summands is not the summand of its result: got {types_text(avals)}. "
            "Add them up first, by psum."
        )
    return own.with_varying(varying)
