"""Lowering rules of collectives: their named axes are manual axes of the mesh of a shard_map.

The axes of vmap no longer exist when a program is lowered; positional ones are reduced here.
"""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NotRequired, TypedDict, Unpack

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray, token_aval
from hlofront.core.axes import axes_in_scope
from hlofront.core.futures import AbstractFuture
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.module_state import ManualMesh
from hlofront.lowering.ops.shard_map import lowering_in, manual_attributes
from hlofront.primitives.arrays.reducing import reduce_max, reduce_min, reduce_sum
from hlofront.primitives.arrays.shaping import transpose
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.collectives import collectives as c
from hlofront.primitives.collectives import exchanges, futures
from hlofront.primitives.collectives.collectives import Groups
from hlofront.primitives.collectives.pcast import (
    preduced_p,
    reduced_vary_cast_p,
    unreduced_pmax_p,
    unreduced_pmin_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)
from hlofront.primitives.collectives.ragged_exchanges import by_gathering, ragged_all_to_all_p
from hlofront.primitives.collectives.sending import precv_p, psend_p
from hlofront.primitives.collectives.varying import psum_invariant_p, pvary_p

_INT32, _UINT32 = (ShapedArray((), np.dtype(name)) for name in ("int32", "uint32"))


# ---- devices -------------------------------------------------------------------------------------


def _manual_mesh(build: Builder, names: Sequence[Hashable]) -> ManualMesh:
    """Return the mesh of the enclosing shard_map.

    Raises:
      NameError: if one of the names is not a manual axis of the mesh.
    """
    manual = build.module.manual
    if manual is None or not manual.manual.issuperset(names):
        raise NameError(
            f"{build.primitive} works along the named axis {names}, which nothing maps where the "
            "program is compiled: call the function inside of vmap(..., axis_name=...) or "
            "shard_map."
        )
    return manual


def _groups_of_devices(
    build: Builder, names: Sequence[Hashable], groups: Groups
) -> tuple[tuple[int, ...], ...]:
    """Return groups of communicating devices, by their positions in the mesh.

    Args:
      build: the builder of the operation.
      names: the mesh axes along which devices communicate, the outermost first.
      groups: which indices along these axes communicate; None for all of them.
    """
    return _groups_in_mesh(_manual_mesh(build, names).axes, tuple(names), groups)


@memoize
def _groups_in_mesh(
    axes: tuple[tuple[Hashable, int], ...], names: tuple[Hashable, ...], groups: Groups
) -> tuple[tuple[int, ...], ...]:
    """Return groups of devices like `_groups_of_devices`, for a mesh with these axes."""
    all_names = [name for name, _ in axes]
    numbers = np.arange(math.prod(size for _, size in axes)).reshape([size for _, size in axes])
    along = [all_names.index(name) for name in names]
    numbers = np.moveaxis(numbers, along, range(-len(along), 0))
    rows = numbers.reshape(-1, math.prod(numbers.shape[numbers.ndim - len(along) :]))
    whole = rows if groups is None else [row[list(group)] for row in rows for group in groups]
    return tuple([tuple(row.tolist()) for row in whole])


def replica_groups(
    build: Builder, names: Sequence[Hashable], groups: Groups
) -> dict[str, ir.Attribute]:
    """Return the attributes of a collective for the devices that communicate."""
    return _groups_attributes(_groups_of_devices(build, names, groups))


@memoize
def _groups_attributes(rows: tuple[tuple[int, ...], ...]) -> dict[str, ir.Attribute]:
    longest = max(map(len, rows))
    padded = [[*row, *[-1] * (longest - len(row))] for row in rows]
    return {
        "replica_groups": types.i64_matrix(padded, longest),
        "channel_handle": types.attribute(_CHANNEL),
    }


# All collectives use one channel: XLA assigns separate ones.
_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"
_GLOBAL_IDS = {"use_global_device_ids": types.attribute("unit")}


# ---- reductions ----------------------------------------------------------------------------------


def _combiner(operation: str, aval: ShapedArray) -> Callable[[Builder, Value, Value], list[Value]]:
    return lambda inner, x, y: [inner.op(operation, (x, y), aval)]


def _scalar(aval: ShapedArray) -> ShapedArray:
    return ShapedArray((), aval.dtype)


def all_reduced(
    build: Builder, x: Value, aval: ShapedArray, operation: str, attributes: dict[str, ir.Attribute]
) -> Value:
    """Return x combined over the devices that the attributes name."""
    scalar = _scalar(aval)
    return build.with_region(
        "stablehlo.all_reduce",
        [x],
        [aval],
        {**attributes, **_GLOBAL_IDS},
        [scalar, scalar],
        _combiner(operation, scalar),
    )[0]


# (builder, value, its aval, attributes of the collective) -> the value combined over devices.
Combine = Callable[[Builder, Value, ShapedArray, dict[str, ir.Attribute]], Value]


def reduced_over_axes(
    build: Builder,
    args: Values,
    axes: Sequence[int | Hashable],
    axis_index_groups: Groups,
    fold: Callable[..., Array],
    combine: Combine,
) -> Values:
    """Return arrays reduced over axes: of the arrays by `fold`, named ones by `combine`."""
    positions = c.positional(axes)
    names = [axis for axis in axes if axis not in positions]
    values: Values = args
    if positions:
        values = build.by_tracing(lambda *xs: [fold(x, positions) for x in xs], args)
    if not names:
        return values
    attributes = replica_groups(build, names, axis_index_groups)
    return [
        combine(build, x, aval, attributes) for x, aval in zip(values, build.avals_out, strict=True)
    ]


def _reduction(primitive: Primitive, operation: str, fold: Callable[..., Array]) -> None:
    def combine(
        build: Builder, x: Value, aval: ShapedArray, attributes: dict[str, ir.Attribute]
    ) -> Value:
        return all_reduced(build, x, aval, operation, attributes)

    def rule(
        build: Builder, *args: Value, axes: Sequence[int | Hashable], axis_index_groups: Groups
    ) -> Values:
        return reduced_over_axes(build, args, axes, axis_index_groups, fold, combine)

    lower(primitive)(rule)


_reduction(c.psum_p, "stablehlo.add", reduce_sum)
_reduction(c.pmax_p, "stablehlo.maximum", reduce_max)
_reduction(c.pmin_p, "stablehlo.minimum", reduce_min)


_COMBINING = {
    psum_invariant_p: "stablehlo.add",
    unreduced_psum_p: "stablehlo.add",
    unreduced_pmax_p: "stablehlo.maximum",
    unreduced_pmin_p: "stablehlo.minimum",
}


@lower(*_COMBINING)
def _(build: Builder, x: Value, *, axes: Sequence[Hashable]) -> Value:
    attributes = replica_groups(build, axes, None)
    operation = _COMBINING[build.primitive]
    return all_reduced(build, x, build.avals_out[0], operation, attributes)


@lower(pvary_p, preduced_p, reduced_vary_cast_p, vary_unreduced_cast_p)
def _(build: Builder, x: Value, *, axes: object) -> Value:
    return x


# ---- exchanges -----------------------------------------------------------------------------------


@lower(exchanges.all_gather_p, exchanges.all_gather_invariant_p, exchanges.all_gather_reduced_p)
def _(
    build: Builder,
    x: Value,
    *,
    all_gather_dimension: int,
    axis_name: Sequence[Hashable],
    axis_size: int,
    tiled: bool,
    axis_index_groups: Groups = None,
) -> Value:
    aval: ShapedArray = build.avals_in[0]
    if not tiled:
        shape = list(aval.shape)
        shape.insert(all_gather_dimension, 1)
        axes = [i for i in range(len(shape)) if i != all_gather_dimension]
        x = build.broadcast(x, aval.update(shape=shape), axes)
    return build.op(
        "stablehlo.all_gather",
        (x,),
        all_gather_dim=types.i64(all_gather_dimension),
        **replica_groups(build, axis_name, axis_index_groups),
        **_GLOBAL_IDS,
    )


class _ScatterParams(TypedDict):
    """The parameters of a reduce_scatter, and of the operation that starts one."""

    axis_name: Sequence[Hashable]
    axis_size: int
    scatter_dimension: int
    tiled: bool
    axis_index_groups: NotRequired[Groups]


@lower(exchanges.reduce_scatter_p, exchanges.unreduced_reduce_scatter_p)
def _(build: Builder, x: Value, **params: Unpack[_ScatterParams]) -> Value:
    out: ShapedArray = build.avals_out[0]
    if params["tiled"]:
        return _reduce_scattered(build, x, out, params)
    shape = list(out.shape)
    shape.insert(params["scatter_dimension"], 1)
    return build.reshape(_reduce_scattered(build, x, out.update(shape=shape), params), out)


def _reduce_scattered(
    build: Builder, x: Value, share: ShapedArray, params: _ScatterParams
) -> Value:
    scalar = _scalar(share)
    attributes = {
        **replica_groups(build, params["axis_name"], params.get("axis_index_groups")),
        **_GLOBAL_IDS,
        "scatter_dimension": types.i64(params["scatter_dimension"]),
    }
    combiner = _combiner("stablehlo.add", scalar)
    return build.with_region(
        "stablehlo.reduce_scatter", [x], [share], attributes, [scalar, scalar], combiner
    )[0]


@lower(futures.reduce_scatter_start_p, futures.unreduced_reduce_scatter_start_p)
def _(build: Builder, x: Value, **params: Unpack[_ScatterParams]) -> Value:
    future: AbstractFuture = build.avals_out[0]

    def started(inner: Builder, operand: Value) -> list[Value]:
        return [_reduce_scattered(inner, operand, future.inner_aval, params)]

    return build.with_region("stablehlo.async_start", [x], [future], {}, build.avals_in, started)[0]


@lower(futures.reduce_scatter_done_p)
def _(build: Builder, future: Value) -> Value:
    return build.op("stablehlo.async_done", (future,))


@lower(exchanges.all_to_all_p)
def _(
    build: Builder,
    x: Value,
    *,
    axis_index_groups: Groups,
    axis_name: object,
    concat_axis: int,
    split_axis: int,
    tiled: bool,
) -> Value:
    names = c.as_names(axis_name)
    aval: ShapedArray = build.avals_in[0]
    out: ShapedArray = build.avals_out[0]
    groups = _groups_of_devices(build, names, axis_index_groups)
    count = len(groups[0])
    if count == 1 and tiled:
        return x
    result = out
    if not tiled:
        # The axis that is split has the size of the named axis. It remains, with size 1, and
        # received arrays are concatenated along a new axis, which takes its position among the
        # others.
        other_axes = [i for i in range(aval.ndim) if i != split_axis]
        order = [*other_axes[:concat_axis], split_axis, *other_axes[concat_axis:]]
        (x,) = build.by_tracing(_transposed, [x], order=order)
        split_axis = concat_axis
        result = out
    return build.op(
        "stablehlo.all_to_all",
        (x,),
        result,
        concat_dimension=types.i64(concat_axis),
        split_dimension=types.i64(split_axis),
        split_count=types.i64(count),
        **replica_groups(build, names, axis_index_groups),
    )


def _transposed(x: Array, order: Sequence[int]) -> Array:
    return x if list(order) == sorted(order) else transpose(x, order)


@lower(exchanges.ppermute_p)
def _(
    build: Builder,
    x: Value,
    *,
    axis_name: Sequence[Hashable],
    perm: Sequence[tuple[int, int]],
) -> Value:
    return build.op(
        "stablehlo.collective_permute",
        (x,),
        source_target_pairs=types.i64_matrix(_pairs(build, axis_name, perm)),
        channel_handle=types.attribute(_CHANNEL),
    )


@lower(exchanges.pbroadcast_p)
def _(build: Builder, x: Value, *, axis_name: object, source: int) -> Value:
    groups = _groups_of_devices(build, c.as_names(axis_name), None)
    # The first device of a group sends to all.
    rows = [[row[source], *row[:source], *row[source + 1 :]] for row in groups]
    return build.op(
        "stablehlo.collective_broadcast",
        (x,),
        replica_groups=types.i64_matrix(rows, len(rows[0])),
        channel_handle=types.attribute(_CHANNEL),
    )


@lower(exchanges.pbroadcast_p, platform="cpu")
def _(build: Builder, x: Value, *, axis_name: object, source: int) -> Value:
    # XLA's CPU backend has no broadcast: gather all, and take one.
    names = c.as_names(axis_name)
    aval: ShapedArray = build.avals_in[0]
    count = len(_groups_of_devices(build, names, None)[0])
    gathered = aval.update(shape=(count, *aval.shape))
    rows = build.broadcast(x, aval.update(shape=(1, *aval.shape)), range(1, aval.ndim + 1))
    rows = build.op(
        "stablehlo.all_gather",
        (rows,),
        gathered,
        all_gather_dim=types.i64(0),
        **replica_groups(build, names, None),
        **_GLOBAL_IDS,
    )
    (row,) = build.by_tracing(index_in_dim, [rows], [gathered], index=source, keepdims=False)
    return row


@lower(psend_p, platform="gpu")
def _(
    build: Builder, x: Value, *, axis_name: Sequence[Hashable], perm: Sequence[tuple[int, int]]
) -> Value:
    token = build.op("stablehlo.create_token", (), token_aval)
    return build.op("stablehlo.send", (x, token), **_transfer(build, axis_name, perm))


@lower(precv_p, platform="gpu")
def _(
    build: Builder,
    token: Value,
    *,
    out_shape: ShapedArray,
    axis_name: Sequence[Hashable],
    perm: Sequence[tuple[int, int]],
) -> Value:
    avals = [build.avals_out[0], token_aval]
    attributes = _transfer(build, axis_name, perm)
    return build.ops("stablehlo.recv", (token,), avals, **attributes)[0]


def _transfer(
    build: Builder, axis_name: Sequence[Hashable], perm: Sequence[tuple[int, int]]
) -> dict[str, ir.Attribute]:
    return {
        "source_target_pairs": types.i64_matrix(_pairs(build, axis_name, perm)),
        "channel_handle": types.attribute(_CHANNEL),
    }


@lower(ragged_all_to_all_p)
def _(
    build: Builder, *args: Value, axis_name: Sequence[Hashable], axis_index_groups: Groups
) -> Value:
    groups = _groups_of_devices(build, axis_name, axis_index_groups)
    matrix = types.i64_matrix(groups, len(groups[0]))
    config = f"{{channel_id = 1 : i64, replica_groups = {matrix}}}"
    return build.op(
        "stablehlo.custom_call",
        args,
        call_target_name=types.string("ragged_all_to_all"),
        backend_config=types.attribute(config),
        # XLA accepts a dictionary as configuration from version 4 of the custom call API on.
        api_version=types.i32(4),
    )


@lower(ragged_all_to_all_p, platform="cpu")
def _(
    build: Builder, *args: Value, axis_name: Sequence[Hashable], axis_index_groups: Groups
) -> Value:
    # XLA's CPU backend has no such operation.
    with axes_in_scope(_manual_mesh(build, axis_name).axes):
        return build.by_tracing(
            by_gathering, args, axis_name=axis_name, axis_index_groups=axis_index_groups
        )[0]


def _pairs(
    build: Builder, names: Sequence[Hashable], perm: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return pairs of device numbers for each source and target."""
    groups = _groups_of_devices(build, names, None)
    return [(group[source], group[target]) for group in groups for source, target in perm]


# ---- axis indices --------------------------------------------------------------------------------


@lower(c.axis_index_p)
def _(build: Builder, *, axis_name: Hashable) -> Value:
    mesh = _manual_mesh(build, (axis_name,))
    automatic = [name for name, _ in mesh.axes if name not in mesh.manual]
    if not automatic:
        return _index_along(build, mesh, axis_name)
    # The number of a device is only known if all axes of the mesh are manual.
    whole = ManualMesh(mesh.axes, mesh.manual.union(automatic))
    attributes = manual_attributes(build, whole, automatic, [], [(PartitionSpec(), _INT32)])
    operation = build.operation("sdy.manual_computation", [], [_INT32], 1, attributes)
    with lowering_in(build, whole):
        build.region(
            operation, 0, [], lambda inner: [_index_along(inner, mesh, axis_name)], "sdy.return"
        )
    return operation.results[0]


def _index_along(build: Builder, mesh: ManualMesh, name: Hashable) -> Value:
    """Return the index along a mesh axis of the device that runs the program."""
    names = [each for each, _ in mesh.axes]
    sizes = [size for _, size in mesh.axes]
    position = names.index(name)
    step = math.prod(sizes[position + 1 :])
    device = build.op("stablehlo.partition_id", (), _UINT32)
    row = build.op("stablehlo.divide", (device, build.constant(np.uint32(step))), _UINT32)
    size = build.constant(np.uint32(sizes[position]))
    return build.convert(build.op("stablehlo.remainder", (row, size), _UINT32), _INT32)
