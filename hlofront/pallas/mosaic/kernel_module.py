"""The module of a kernel: its function, and one that returns the block of each operand's window."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import importlib
from collections.abc import Callable, Hashable, Sequence

from hlofront.base.elements import int32
from hlofront.base.errors import VerificationError
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Operation, Value, Values, context, ir
from hlofront.bridge.mosaic import load_dialect
from hlofront.core.jaxpr import Jaxpr
from hlofront.lowering.core.module_state import symbol_name
from hlofront.lowering.core.types import attribute, i64, string
from hlofront.pallas.block_specs import Blocked, Element, Squeezed, block_size
from hlofront.pallas.compiler_params import LoweringException
from hlofront.pallas.grid_mapping import BlockMapping, GridMapping, padding_of
from hlofront.pallas.mosaic.builder import KernelBuilder, KernelRef, KernelState, Shape
from hlofront.pallas.mosaic.references import RefPart, view_of_part
from hlofront.pallas.mosaic.shaping import array_attribute
from hlofront.pallas.mosaic.types import memory_of, memref_type, no_elements, value_type

# The modules with rules, which register them.
_RULES = (
    "control_flow",
    "core_operations",
    "elementwise",
    "formulas",
    "kernel_operations",
    "packing",
    "printing",
    "products",
    "reducing",
    "references",
    "shaping",
)
# The number that stands for a size of the grid that is known only when the kernel runs.
_DYNAMIC = ir.ShapedType.get_dynamic_size()
# Mosaic's names of pipelines, by number of buffers.
_PIPELINES = {1: "synchronous", 2: "double_buffered"}
# The memories into which blocks are copied: arrays in other memories are not moved.
_WINDOWED = ("vmem", "smem")


class KernelModule(NamedTuple):
    """A kernel as a verified module of Mosaic.

    Attributes:
      ir_module: the module.
      uses_barrier: whether it waits at the barrier of several devices.
      barrier_tag: the tag by which kernels share the barrier, or None.
      communicates: whether it copies to other devices, or signals their semaphores.
    """

    ir_module: ir.Module
    uses_barrier: bool
    barrier_tag: Hashable
    communicates: bool


def kernel_module(
    jaxpr: Jaxpr,
    mapping: GridMapping,
    name: str,
    semantics: Sequence[str] | None = None,
    mesh_axes: Sequence[tuple[Hashable, int]] = (),
) -> KernelModule:
    """Return the module of a kernel.

    Args:
      jaxpr: the kernel as a program of references.
      mapping: its grid and blocks.
      name: its name.
      semantics: per axis of the grid, how its steps may run; None for one after another.
      mesh_axes: the names and sizes of the axes of the mesh around the kernel.

    Raises:
      NotImplementedError: if kernels for TPUs lack an operation of the kernel.
      ValueError: if an operation has operands that Mosaic does not take.
      VerificationError: if a rule made an invalid module.
    """
    load_dialect()
    for module in _RULES:
        importlib.import_module(f"{__package__}.{module}")
    name = symbol_name(name)
    sizes = [size if isinstance(size, int) else None for size in mapping.grid]
    kernel = KernelState(name, sizes, mapping.kernel_axes, mesh_axes)
    with context:
        ir_module = ir.Module.create(loc=kernel.locations.unknown)
        ir_module.operation.attributes["sym_name"] = string(name)
        _emit_kernel(kernel, ir_module, jaxpr, mapping, _semantics(mapping, semantics))
        for number, block in enumerate(mapping.block_mappings):
            if mapping.grid and memory_of(block.block_aval) in _WINDOWED:
                _emit_transform(kernel, ir_module, number, block, mapping)
        try:
            ir_module.operation.verify()
        except ir.MLIRError as error:
            raise VerificationError(
                f"lowering the kernel {name} for TPUs made an invalid module: {error}. This is a "
                "bug of hlofront; please report it with the kernel."
            ) from error
    tag = next(iter(kernel.barrier_tags), None)
    return KernelModule(ir_module, kernel.uses_barrier, tag, kernel.communicates)


def _semantics(mapping: GridMapping, semantics: Sequence[str] | None) -> list[str]:
    """Return per axis of the grid how its steps may run; axes that vmap added are parallel."""
    if semantics is None:
        return ["arbitrary"] * len(mapping.grid)
    axes = mapping.kernel_axes
    if len(semantics) != len(axes):
        raise ValueError(
            f"dimension_semantics={tuple(semantics)} has {len(semantics)} entries, and the grid "
            f"has {len(axes)} axes: give one per axis of the grid"
        )
    found = dict(zip(axes, semantics, strict=True))
    return [found.get(axis, "parallel") for axis in range(len(mapping.grid))]


def _function(
    kernel: KernelState,
    ir_module: ir.Module,
    name: str,
    arguments: Sequence[ir.Type],
    results: Sequence[ir.Type],
    body: Callable[[KernelBuilder, Values], Values],
    grid_axes: int,
    **attributes: ir.Attribute,
) -> None:
    """Add a function to a module, whose first arguments are the indices of the grid."""
    function_type = ir.FunctionType.get(list(arguments), list(results), context)
    operation = Operation.create(
        "func.func",
        (),
        (),
        {
            "sym_name": string(name),
            "function_type": ir.TypeAttr.get(function_type, context),
            **attributes,
        },
        regions=1,
        loc=kernel.locations.unknown,
        ip=ir.InsertionPoint(ir_module.body),
    )
    locations = [kernel.locations.unknown] * len(arguments)
    block = operation.regions[0].blocks.append(*arguments, arg_locs=locations)
    values = list(block.arguments)
    build = KernelBuilder(kernel, ir.InsertionPoint(block), values[:grid_axes])
    build.effect("func.return", body(build, values[grid_axes:]))


def _index_types(mapping: GridMapping) -> list[ir.Type]:
    return [value_type((), int32)] * len(mapping.grid)


def _emit_kernel(
    kernel: KernelState,
    ir_module: ir.Module,
    jaxpr: Jaxpr,
    mapping: GridMapping,
    semantics: list[str],
) -> None:
    avals = [var.aval for var in jaxpr.invars]
    # The shape of each memref, and the axes that the kernel does not see.
    shapes: list[tuple[Shape, Shape]] = [(aval.shape, ()) for aval in avals]
    for place, block in enumerate(mapping.block_mappings, mapping.num_index_operands):
        shapes[place] = (
            (block.array_aval.shape, ()) if _is_part_of_unmoved(block) else _window(block)
        )
    _check_elements(kernel, jaxpr, mapping)
    types = [
        memref_type(shape, aval.dtype, memory_of(aval))
        for aval, (shape, _) in zip(avals, shapes, strict=True)
    ]

    def body(build: KernelBuilder, values: Values) -> Values:
        refs = [
            KernelRef(value, aval, shape, squeezed)
            for value, aval, (shape, squeezed) in zip(values, avals, shapes, strict=True)
        ]
        scalars = refs[: mapping.num_index_operands]
        for place, block in enumerate(mapping.block_mappings, mapping.num_index_operands):
            if _is_part_of_unmoved(block):
                refs[place] = _unmoved_part(build, refs[place], block, scalars)
        build.inline(jaxpr, (), refs)
        return ()

    listed = ", ".join(f"#tpu.dimension_semantics<{word}>" for word in semantics)
    attributes = {
        "dimension_semantics": attribute(f"[{listed}]"),
        "scalar_prefetch": i64(mapping.num_index_operands),
        "scratch_operands": i64(len(mapping.scratch_avals)),
        "tpu.core_type": attribute("#tpu.core_type<tc>"),
    }
    if mapping.grid:
        sizes = [_DYNAMIC if size is None else size for size in kernel.grid]
        attributes["iteration_bounds"] = array_attribute(sizes, 64)
        windows = [_window_params(n, block) for n, block in enumerate(mapping.block_mappings)]
        attributes["window_params"] = attribute(f"[{', '.join(windows)}]")
    arguments = [*_index_types(mapping), *types]
    _function(kernel, ir_module, kernel.name, arguments, (), body, len(mapping.grid), **attributes)


def _check_elements(kernel: KernelState, jaxpr: Jaxpr, mapping: GridMapping) -> None:
    """Raise TypeError, with its name, for a reference to elements that TPUs lack."""
    info = jaxpr.debug_info
    at = info.func_src_info if info is not None else kernel.name
    names = [f"prefetched scalar {n}" for n in range(mapping.num_index_operands)]
    names += [block.origin for block in mapping.block_mappings]
    names += [f"scratch {n}" for n in range(len(mapping.scratch_avals))]
    for name, var in zip(names, jaxpr.invars, strict=True):
        lacking = no_elements(var.aval.dtype)
        if lacking:
            raise TypeError(
                f"{name} of the kernel {at}: {lacking}. Convert it to another dtype, and back in "
                "or after the kernel"
            )


def _window(block: BlockMapping) -> tuple[Shape, Shape]:
    """Return the shape of the memref of a block, and the axes that the kernel does not see."""
    squeezed = [n for n, dim in enumerate(block.block_shape) if isinstance(dim, Squeezed)]
    return tuple(map(block_size, block.block_shape)), tuple(squeezed)


def _is_part_of_unmoved(block: BlockMapping) -> bool:
    """Return whether a block is a part of an array that is not moved, such as in a batch."""
    return memory_of(block.block_aval) not in _WINDOWED and not block.has_trivial_window()


def _unmoved_part(
    build: KernelBuilder, ref: KernelRef, block: BlockMapping, scalars: Sequence[KernelRef]
) -> KernelRef:
    """Return a reference to the block of an array that is not moved."""
    sizes, squeezed = _window(block)
    if any(n % size for n, size in zip(ref.shape, sizes, strict=True)):
        build.refuse(
            f"blocks of shape {sizes} do not divide {block.origin}, which is not moved and whose "
            f"shape is {ref.shape}: pad the array, or give the BlockSpec no memory_space"
        )
    starts = _starts(build, block, scalars)
    aval = ref.aval.update(inner_aval=block.array_aval)
    kept = tuple([axis not in squeezed for axis in range(len(sizes))])
    part = RefPart(ref._replace(aval=aval), tuple(starts), sizes, (1,) * len(sizes), kept)
    return view_of_part(build, part)


def _starts(build: KernelBuilder, block: BlockMapping, scalars: Sequence[KernelRef]) -> list[Value]:
    """Return the first element of the block of a step along each axis."""
    indices = build.inline(block.index_map_jaxpr, (), [*build.grid_indices, *scalars])
    return [
        build.op("arith.muli", (x, build.constant(dim.block_size, int32)), x.type)
        if isinstance(dim, Blocked)
        else x
        for x, dim in zip(indices, block.block_shape, strict=True)
    ]


# ---- windows -------------------------------------------------------------------------------------


def _window_params(number: int, block: BlockMapping) -> str:
    """Return the text of the attribute for the part of an array that is a block."""
    if memory_of(block.block_aval) not in _WINDOWED:
        return "{}"
    bounds, _ = _window(block)
    listed = ", ".join(map(str, bounds))
    params = [
        f"transform_indices = @transform_{number}",
        f"window_bounds = array<i64{f': {listed}' if bounds else ''}>",
    ]
    mode = _pipeline(block)
    if mode:
        params.append(f"pipeline_mode = #tpu.pipeline_mode<{mode}>")
    if _has_elements(block):
        low, high = zip(*map(padding_of, block.block_shape), strict=True)
        params.append(f"window_kind = #tpu.element_window<{list(low)}, {list(high)}>")
    return f"{{{', '.join(params)}}}"


def _pipeline(block: BlockMapping) -> str:
    if block.pipeline_mode is not None:
        count = block.pipeline_mode.buffer_count
        if count not in _PIPELINES:
            raise LoweringException(
                f"Only single (1) and double (2) buffering are supported. Got {count} for "
                f"{block.origin}: pltpu.emit_pipeline has more buffers"
            )
        return _PIPELINES[count]
    in_vmem = memory_of(block.block_aval) == "vmem"
    return _PIPELINES[1] if in_vmem and block.has_trivial_window() else ""


def _has_elements(block: BlockMapping) -> bool:
    return any(isinstance(dim, Element) for dim in block.block_shape)


def _emit_transform(
    kernel: KernelState,
    ir_module: ir.Module,
    number: int,
    block: BlockMapping,
    mapping: GridMapping,
) -> None:
    """Add the function from the indices of the grid to the indices of a block."""
    avals = mapping.index_map_avals[len(mapping.kernel_axes) :]
    index = value_type((), int32)
    scalars = [memref_type(aval.shape, aval.dtype, memory_of(aval)) for aval in avals]

    def body(build: KernelBuilder, values: Values) -> Values:
        refs = [
            KernelRef(value, aval, aval.shape) for value, aval in zip(values, avals, strict=True)
        ]
        if _has_elements(block):
            # If one axis of a window is indexed by elements, all are.
            return _starts(build, block, refs)
        return build.inline(block.index_map_jaxpr, (), [*build.grid_indices, *refs])

    arguments = [*_index_types(mapping), *scalars]
    results = [index] * len(block.block_shape)
    name = f"transform_{number}"
    _function(kernel, ir_module, name, arguments, results, body, len(mapping.grid))
