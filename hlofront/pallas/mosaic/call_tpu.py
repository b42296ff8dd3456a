"""The lowering rule of pallas_call for TPUs: a custom call with the kernel's module."""

import base64
import itertools
import json
from collections.abc import Hashable, Sequence

import numpy as np

from hlofront.base.elements import bool_, int32
from hlofront.bridge.mlir import Value, ir
from hlofront.bridge.mosaic import serialized
from hlofront.core.aval import Avals
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.programs.subprograms import all_equations
from hlofront.core.rules import LoweringRule, lower
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import attribute, boolean, i32, string
from hlofront.lowering.ops.ffi import layouts_attribute, operand_aliases
from hlofront.pallas.block_specs import CostEstimate
from hlofront.pallas.compiler_params import CompilerParams, SideEffectType
from hlofront.pallas.grid_mapping import GridMapping
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.pallas.memory import HBM, SEMAPHORE, SMEM, VMEM
from hlofront.pallas.mosaic.checks import check_call
from hlofront.pallas.mosaic.kernel_module import KernelModule, kernel_module

# XLA's numbers of memories, and those that it knows for operands.
_COLORS: dict[object, int] = {HBM: 0, VMEM: 1, SEMAPHORE: 2, SMEM: 4}
_OF_OPERANDS = (_COLORS[HBM], _COLORS[VMEM])


@lower.match(pallas_call_p, platform="tpu")
def _(build: Builder) -> LoweringRule | None:
    """Compile the kernel, unless it is to be interpreted."""
    return None if build.current.params["interpret"] else _compiled


def _compiled(
    build: Builder,
    *operands: Value,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: Sequence[tuple[int, int]],
    out_avals: Avals,
    compiler_params: CompilerParams | None,
    cost_estimate: CostEstimate | None,
    name: str | None,
    metadata: Sequence[tuple[str, str]] | None,
    **_: object,
) -> list[Value]:
    options = compiler_params if isinstance(compiler_params, CompilerParams) else CompilerParams()
    name = name or _name_of(jaxpr)
    check_call(build.current, grid_mapping, name)
    manual = build.module.manual
    kernel = kernel_module(
        jaxpr,
        grid_mapping,
        name,
        options.semantics,
        manual.axes if manual is not None else (),
    )
    if kernel.barrier_tag is not None:
        if options.collective_id is not None:
            raise ValueError(
                f"Conflicting collective_id specified: CompilerParams has {options.collective_id} "
                f"but get_barrier_semaphore has {kernel.barrier_tag!r}, in the kernel {name}. "
                "Specify one of them"
            )
        tag = (kernel.barrier_tag, options.skip_device_barrier)
        options = options.replace(collective_id=_number_of(build, tag))
    if options.collective_id is not None and not (
        kernel.uses_barrier or options.allow_collective_id_without_custom_barrier
    ):
        raise ValueError(
            f"collective_id={options.collective_id} of the kernel {name}, which has no barrier: "
            "collective_id has to be unspecified or None when not using a custom barrier "
            "(pltpu.get_barrier_semaphore)"
        )
    if kernel.uses_barrier and options.collective_id is None:
        raise ValueError(
            f"the kernel {name} uses the barrier semaphore, which collective_id numbers: give "
            "pallas_call compiler_params=pltpu.CompilerParams(collective_id=0); kernels that may "
            "run at the same time have different ones"
        )
    sizes = grid_mapping.num_dynamic_grid_bounds
    aliases = [(sizes + operand, result) for operand, result in input_output_aliases]
    memories = _memories(build.avals_in, out_avals, aliases)
    config = _config(kernel, options, cost_estimate, memories)
    # Kernels hold booleans as int32.
    args = [
        build.convert(x, aval.update(dtype=int32)) if aval.dtype == bool_ else x
        for x, aval in zip(operands, build.avals_in, strict=True)
    ]
    results = [
        aval.update(dtype=int32) if aval.dtype == bool_ else aval for aval in build.avals_out
    ]
    values = build.ops(
        "stablehlo.custom_call",
        args,
        results,
        call_target_name=string("tpu_custom_call"),
        backend_config=string(json.dumps(config)),
        kernel_name=string(name),
        api_version=i32(1),
        operand_layouts=_layouts(build.avals_in),
        result_layouts=_layouts(results),
        output_operand_aliases=operand_aliases(aliases, len(results)),
        **_effects(options, metadata),
    )
    return [
        build.compare("NE", x, build.full(0, wide), wide) if aval.dtype == bool_ else x
        for x, aval, wide in zip(values, build.avals_out, results, strict=True)
    ]


def _number_of(build: Builder, tag: Hashable) -> int:
    """Return the collective_id of the kernels of a module with a tag: one that no kernel has."""
    numbers = build.module.kernel_numbers
    if tag not in numbers:
        calls = [e for e in all_equations(build.module.program) if e.primitive is pallas_call_p]
        params = [call.params["compiler_params"] for call in calls]
        used = {*numbers.values(), *[getattr(each, "collective_id", None) for each in params]}
        numbers[tag] = next(number for number in itertools.count() if number not in used)
    return numbers[tag]


def _name_of(jaxpr: Jaxpr) -> str:
    info = jaxpr.debug_info
    return info.func_name if info is not None else "kernel"


def _layouts(avals: Avals) -> ir.Attribute:
    return layouts_attribute([tuple(reversed(range(aval.ndim))) for aval in avals])


def _memories(
    in_avals: Avals, out_avals: Avals, aliases: Sequence[tuple[int, int]]
) -> dict[str, object]:
    """Return the options for operands and results whose types have memories of TPUs."""
    ins, outs = (
        [_COLORS.get(aval.memory_space) for aval in avals] for avals in (in_avals, out_avals)
    )
    for operand, result in aliases:
        both = {ins[operand], outs[result]} - {None}
        if len(both) > 1:
            raise ValueError(
                f"operand {operand} of a kernel is in another memory than result {result}, which "
                "takes its memory: give with_memory_space_constraint that of the out_shape"
            )
        ins[operand] = outs[result] = next(iter(both), None)
    of_outputs = [
        {"color": color, **({"shape_index": [place]} if len(outs) > 1 else {})}
        for place, color in enumerate(outs)
        if color is not None
    ]
    of_inputs = [
        {"operand_index": n, "color": color} for n, color in enumerate(ins) if color in _OF_OPERANDS
    ]
    return {
        "output_memory_space_colors": of_outputs or None,
        "input_memory_space_colors": of_inputs or None,
    }


def _effects(
    options: CompilerParams, metadata: Sequence[tuple[str, str]] | None
) -> dict[str, ir.Attribute]:
    """Return the attributes of a kernel's effects, and of its metadata for tools."""
    side_effects = options.has_side_effects
    attributes: dict[str, ir.Attribute] = {}
    frontend: list[str] = []
    if side_effects is True or side_effects in (
        SideEffectType.SIDE_EFFECTING,
        SideEffectType.DATAFLOW_SIDE_EFFECTING,
    ):
        attributes["has_side_effect"] = boolean(True)
    if side_effects is SideEffectType.DATAFLOW_SIDE_EFFECTING:
        frontend.append('xla_allow_dce_side_effecting_op = "true"')
    if metadata:
        frontend.append(f"kernel_metadata = {string(json.dumps(dict(metadata)))}")
    if frontend:
        attributes["mhlo.frontend_attributes"] = attribute(f"{{{', '.join(frontend)}}}")
    return attributes


def _config(
    module: KernelModule,
    options: CompilerParams,
    cost: CostEstimate | None,
    memories: dict[str, object],
) -> dict[str, object]:
    """Return libtpu's input: the kernel, and the options that differ from their defaults."""
    body = base64.b64encode(serialized(module.ir_module)).decode("ascii")
    kernel: dict[str, object] = {
        "body": body,
        **memories,
        "has_communication": module.communicates or None,
        "cost_estimate": None if cost is None else vars(cost),
        "serialization_format": options.serialization_format,
        "needs_layout_passes": options.needs_layout_passes,
        "collective_id": options.collective_id,
        "allow_input_fusion": options.allow_input_fusion,
        "internal_scratch_in_bytes": options.internal_scratch_in_bytes,
        "shape_invariant_numerics": None if options.shape_invariant_numerics else False,
        "disable_bounds_checks": options.disable_bounds_checks or None,
        "disable_semaphore_checks": options.disable_semaphore_checks or None,
        "skip_device_barrier": options.skip_device_barrier or None,
    }
    given = {key: value for key, value in kernel.items() if value is not None}
    config: dict[str, object] = {"custom_call_config": given}
    if options.vmem_limit_bytes is not None:
        size = {"memory_space": _COLORS[VMEM], "offset": 0, "size": options.vmem_limit_bytes}
        config["scoped_memory_configs"] = [size]
    if options.flags:
        config["flag_configs"] = [_flag(*item) for item in options.flags.items()]
    return config


def _flag(name: str, value: object) -> dict[str, object]:
    kinds = (("boolean", bool | np.bool_), ("integer", int), ("double", float), ("string", str))
    for kind, of in kinds:
        if isinstance(value, of):
            return {"flag_type": name, "value": {f"{kind}_value": value}}
    raise ValueError(f"the option {name} of the compiler is a number or a str, got {value!r}")
