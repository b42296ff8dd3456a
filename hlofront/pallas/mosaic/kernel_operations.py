"""Mosaic rules of operations only in kernels: on grids, buffers, copies, semaphores and devices."""

from collections.abc import Hashable, Mapping, Sequence

from hlofront.base.elements import bool_, int32
from hlofront.base.tree import PyTreeDef
from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import Jaxpr
from hlofront.lowering.core.types import attribute, boolean, i32
from hlofront.pallas.barrier import get_barrier_semaphore_p
from hlofront.pallas.control import multiple_of_p
from hlofront.pallas.copies import CopyOperands, dma_start_p, dma_wait_p
from hlofront.pallas.grid_indices import num_programs_p, program_id_p
from hlofront.pallas.masked import masked_load_p, masked_swap_p
from hlofront.pallas.mosaic.builder import KernelBuilder, KernelRef, Operand
from hlofront.pallas.mosaic.elementwise import bitcast
from hlofront.pallas.mosaic.references import (
    Index,
    allocated,
    leaves_of,
    load,
    part_of,
    store,
    view_of_part,
)
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.shaping import array_attribute, as_numbers
from hlofront.pallas.mosaic.types import memory_of, memref_type, value_type
from hlofront.pallas.scoped import run_scoped_p
from hlofront.pallas.semaphores import (
    DeviceIdType,
    semaphore_read_p,
    semaphore_signal_p,
    semaphore_wait_p,
)
from hlofront.pallas.tpu_operations import bitcast_p, reciprocal_p, roll_p
from hlofront.primitives.collectives.collectives import axis_index_p

# The number of a device, or coordinates in the mesh; a dict may leave out the kernel's own.
Device = Index | Sequence[Index] | Mapping[Hashable, Index]

# ---- the grid ------------------------------------------------------------------------------------


@mosaic(program_id_p)
def _(build: KernelBuilder, *, axis: int) -> Value:
    return build.grid_indices[build.kernel.own_axes[axis]]


@mosaic(num_programs_p)
def _(build: KernelBuilder, *, axis: int) -> Value:
    place = build.kernel.own_axes[axis]
    size = build.kernel.grid[place]
    if size is not None:
        return build.constant(size, int32)
    return build.op("tpu.iteration_bound", (), value_type((), int32), dim=i32(place))


@mosaic(multiple_of_p)
def _(build: KernelBuilder, x: Value, *, values: tuple[int, ...]) -> Value:
    for number in values:
        x = build.op("tpu.assume_multiple", (x,), x.type, multiple=i32(number))
    return x


# ---- masked reads and writes ---------------------------------------------------------------------


@mosaic(masked_load_p)
def _(build: KernelBuilder, *leaves: Operand, args_tree: PyTreeDef, **_: object) -> Value:
    # Elements are undefined where the mask is False, so they may as well be read.
    ref, transforms, _mask, _other = args_tree.unflatten(leaves_of(build, leaves, 0))
    return load(build, part_of(build, ref, transforms))


@mosaic(masked_swap_p)
def _(build: KernelBuilder, *leaves: Operand, args_tree: PyTreeDef, **_: object) -> Value | None:
    ref, transforms, _value, _mask = args_tree.unflatten(leaves_of(build, leaves, 0))
    _ref, _transforms, value, mask = args_tree.unflatten(leaves)
    part = part_of(build, ref, transforms)
    old = load(build, part) if build.is_read else None
    store(build, part, value, mask)
    return old


# ---- buffers -------------------------------------------------------------------------------------


@mosaic(run_scoped_p)
def _(build: KernelBuilder, *consts: Operand, jaxpr: Jaxpr, **_: object) -> list[Value]:
    def body(inner: KernelBuilder) -> None:
        buffers = [allocated(inner, var.aval) for var in jaxpr.invars]
        inner.effect("tpu.yield", inner.inline(jaxpr, consts, buffers))

    types = [build.type_of(aval) for aval in build.avals_out]
    return build.with_regions("tpu.region", (), types, ((), body))


# ---- semaphores ----------------------------------------------------------------------------------


def _view(build: KernelBuilder, ref: KernelRef, transforms: Sequence[object]) -> Value:
    """Return the memref of the part of a reference that indexers select."""
    return view_of_part(build, part_of(build, ref, transforms)).value


@mosaic(semaphore_signal_p)
def _(
    build: KernelBuilder, *leaves: Operand, args_tree: PyTreeDef, device_id_type: DeviceIdType
) -> list[Value]:
    ref, transforms, count, device, core = args_tree.unflatten(leaves_of(build, leaves, 0))
    semaphore = _view(build, ref, transforms)
    devices = _devices(build, device, device_id_type)
    cores = () if core is None else (build.to_int32(core),)
    build.effect(
        "tpu.sem_signal",
        (semaphore, build.to_int32(count), *devices, *cores),
        operandSegmentSizes=array_attribute((1, 1, len(devices), len(cores), 0), 32),
    )
    return []


@mosaic(semaphore_wait_p)
def _(build: KernelBuilder, *leaves: Operand, args_tree: PyTreeDef, decrement: bool) -> list[Value]:
    if not decrement:
        build.refuse(
            "semaphore_wait(decrement=False): kernels of TPUs subtract what they wait for. Use "
            "pl.semaphore_read, or signal the count again",
            NotImplementedError,
        )
    ref, transforms, count = args_tree.unflatten(leaves_of(build, leaves, 0))
    build.effect("tpu.sem_wait", (_view(build, ref, transforms), build.to_int32(count)))
    return []


@mosaic(get_barrier_semaphore_p)
def _(build: KernelBuilder, *, tag: Hashable) -> KernelRef:
    build.kernel.uses_barrier = True
    if tag is not None:
        build.kernel.barrier_tags.add(tag)
    if len(build.kernel.barrier_tags) > 1:
        build.refuse(
            "Cannot specify multiple distinct barrier semaphore tags within a single kernel: "
            f"{build.kernel.barrier_tags}. Give all calls of get_barrier_semaphore one tag"
        )
    aval = build.avals_out[0]
    value = build.op("tpu.sem_barrier", (), memref_type((), aval.dtype, memory_of(aval)))
    return KernelRef(value, aval, ())


@mosaic(semaphore_read_p)
def _(build: KernelBuilder, *leaves: Operand, args_tree: PyTreeDef) -> Value:
    ref, transforms = args_tree.unflatten(leaves_of(build, leaves, 0))
    return build.op("tpu.sem_read", (_view(build, ref, transforms),))


# ---- copies --------------------------------------------------------------------------------------


@mosaic(dma_start_p)
def _(
    build: KernelBuilder,
    *leaves: Operand,
    tree: PyTreeDef,
    device_id_type: DeviceIdType,
    priority: int,
    add: bool,
) -> list[Value]:
    if add:
        build.refuse(
            "a copy that adds: kernels of TPUs copy to a buffer, and add from there",
            NotImplementedError,
        )
    copy: CopyOperands = tree.unflatten(leaves_of(build, leaves, 0))
    sent = () if copy.src_sem is None else (_view(build, copy.src_sem, copy.src_sem_transforms),)
    devices = _devices(build, copy.device_id, device_id_type)
    build.effect(
        "tpu.enqueue_dma",
        (
            _view(build, copy.src, copy.src_transforms),
            *sent,
            _view(build, copy.dst, copy.dst_transforms),
            _view(build, copy.dst_sem, copy.dst_sem_transforms),
            *devices,
        ),
        priority=i32(priority),
        strict_ordering=boolean(False),
        operandSegmentSizes=array_attribute((1, len(sent), 1, 1, len(devices), 0, 0), 32),
    )
    return []


@mosaic(dma_wait_p)
def _(
    build: KernelBuilder,
    *leaves: Operand,
    tree: PyTreeDef,
    device_id_type: DeviceIdType,
    is_wait_send: bool,
) -> list[Value]:
    copy: CopyOperands = tree.unflatten(leaves_of(build, leaves, 0))
    devices = _devices(build, copy.device_id, device_id_type)
    semaphore = (
        _view(build, copy.src_sem, copy.src_sem_transforms)
        if is_wait_send
        else _view(build, copy.dst_sem, copy.dst_sem_transforms)
    )
    src = _view(build, copy.src, copy.src_transforms)
    dst = _view(build, copy.dst, copy.dst_transforms)
    # The size of a send is that of the source.
    ends = (dst, src) if is_wait_send else (src, dst)
    build.effect(
        "tpu.wait_dma2",
        (semaphore, *ends, *devices),
        operandSegmentSizes=array_attribute((1, 1, 1, len(devices), 0), 32),
    )
    return []


# ---- devices -------------------------------------------------------------------------------------


def _devices(
    build: KernelBuilder, device: Device | None, device_id_type: DeviceIdType
) -> tuple[Value, ...]:
    """Return the number of a device that is named by its number or its mesh coordinates, if any."""
    if device is None:
        return ()
    axes = build.kernel.mesh_axes
    if not axes:
        build.refuse(
            "Cannot use communication in pallas_call without shard_map: call the kernel in "
            "jax.shard_map over a mesh of the devices"
        )
    build.kernel.communicates = True
    if device_id_type is DeviceIdType.LOGICAL:
        if isinstance(device, tuple | list | dict):
            build.refuse(
                "LOGICAL device_id_type does not support device_id as a tuple or dict: give the "
                "number of the device, or device_id_type=pl.DeviceIdType.MESH"
            )
        return (build.to_int32(device),)
    if isinstance(device, dict):
        coordinates = [
            device[name] if name in device else _coordinate(build, place)
            for place, (name, _) in enumerate(axes)
        ]
    else:
        coordinates = list(device) if isinstance(device, tuple | list) else [device]
    if len(coordinates) != len(axes):
        build.refuse(
            f"device_id has {len(coordinates)} coordinates, and the mesh has the axes "
            f"{', '.join(str(name) for name, _ in axes)}: give one per axis"
        )
    type_ = value_type((), int32)
    number = build.to_int32(coordinates[0])
    for coordinate, (_, size) in zip(coordinates[1:], axes[1:], strict=True):
        number = build.op("arith.muli", (number, build.constant(size, int32)), type_)
        number = build.op("arith.addi", (number, build.to_int32(coordinate)), type_)
    return (number,)


def _coordinate(build: KernelBuilder, place: int) -> Value:
    """Return the coordinate of the kernel's own device along an axis of the mesh."""
    axes, type_ = build.kernel.mesh_axes, value_type((), int32)
    number = build.op("tpu.device_id", (), type_)
    for _, size in axes[:place:-1]:
        number = build.op("arith.divui", (number, build.constant(size, int32)), type_)
    # The remainder tells libtpu the range of the coordinate, even along the first axis.
    return build.op("arith.remui", (number, build.constant(axes[place][1], int32)), type_)


@mosaic(axis_index_p)
def _(build: KernelBuilder, *, axis_name: Hashable, **_: object) -> Value:
    names = [name for name, _ in build.kernel.mesh_axes]
    if axis_name not in names:
        build.refuse(
            f"axis_index({axis_name!r}) in a kernel: the mesh around it has the axes {names}"
        )
    return _coordinate(build, names.index(axis_name))


# ---- vectors -------------------------------------------------------------------------------------


@mosaic(roll_p)
def _(
    build: KernelBuilder,
    x: Value,
    shift: Value,
    *,
    axis: int,
    stride: int | None,
    stride_axis: int | None,
) -> Value:
    numbers = {"dimension": axis, "stride": stride, "stride_dimension": stride_axis}
    attributes = {k: attribute(f"{n} : si32") for k, n in numbers.items() if n is not None}
    aval = build.avals_in[0]
    return as_numbers(
        build,
        x,
        aval,
        aval,
        lambda number, type_: build.op("tpu.dynamic_rotate", (number, shift), type_, **attributes),
    )


@mosaic(bitcast_p)
def _(build: KernelBuilder, x: Value, *, dim: int, **_: object) -> Value:
    aval, out = build.avals_in[0], build.avals_out[0]
    if dim != aval.ndim - 2 and aval.shape != out.shape:
        build.refuse(
            f"pltpu.bitcast along axis {dim} of {aval.str_short()}: elements are packed along the "
            f"last axis but one, {aval.ndim - 2}: transpose first",
            NotImplementedError,
        )
    if bool_ in (aval.dtype, out.dtype):
        build.refuse(
            f"pltpu.bitcast from {aval.str_short()} to {out.str_short()}: booleans have no bits of "
            "their own. Convert by x.astype(jnp.int32), or x != 0",
            NotImplementedError,
        )
    return bitcast(build, x, out)


@mosaic(reciprocal_p)
def _(build: KernelBuilder, x: Value, *, approx: bool, full_range: bool) -> Value:
    if not build.avals_in[0].shape:
        one = build.constant(1, build.avals_in[0].dtype)
        return build.op("arith.divf", (one, x))
    flags = {"approx": boolean(approx)}
    if not full_range:
        flags["full_range"] = boolean(False)
    return build.op("tpu.reciprocal", (x,), **flags)
