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
from hlofront.pallas.block_specs import CostEstimate
from hlofront.pallas.compiler_params import CompilerParams, GridDimensionSemantics, SideEffectType
from hlofront.pallas.grid_mapping import GridMapping
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.pallas.mosaic.checks import check_call
from hlofront.pallas.mosaic.kernel_module import KernelModule, kernel_module

# XLA's number of the memory VMEM.
_VMEM = 1


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
        _semantics(options),
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
    config = _config(kernel, options, cost_estimate)
    # Kernels hold booleans as int32.
    args = [
        build.convert(x, aval.update(dtype=int32)) if aval.dtype == bool_ else x
        for x, aval in zip(operands, build.avals_in, strict=True)
    ]
    results = [
        aval.update(dtype=int32) if aval.dtype == bool_ else aval for aval in build.avals_out
    ]
    dynamic = grid_mapping.num_dynamic_grid_bounds
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
        **_aliases(input_output_aliases, len(results), dynamic),
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


def _semantics(options: CompilerParams) -> list[str] | None:
    if options.dimension_semantics is None:
        return None
    return [
        entry.value if isinstance(entry, GridDimensionSemantics) else entry
        for entry in options.dimension_semantics
    ]


def _layouts(avals: Avals) -> ir.Attribute:
    """Return the attribute of the layouts of arrays, all of them row-major."""
    layouts: list[str] = []
    for aval in avals:
        order = ", ".join(map(str, reversed(range(aval.ndim))))
        layouts.append(f"dense<[{order}]> : tensor<{aval.ndim}xindex>")
    return attribute(f"[{', '.join(layouts)}]")


def _aliases(
    pairs: Sequence[tuple[int, int]], results: int, dynamic: int
) -> dict[str, ir.Attribute]:
    """Return the attribute of the results that share the memory of operands."""
    if not pairs:
        return {}
    listed = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if results > 1 else ''}], "
        f"operand_index = {operand + dynamic}, operand_tuple_indices = []>"
        for operand, out in pairs
    ]
    return {"output_operand_aliases": attribute(f"[{', '.join(listed)}]")}


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
    module: KernelModule, options: CompilerParams, cost: CostEstimate | None
) -> dict[str, object]:
    """Return libtpu's input: the kernel, and the options that differ from their defaults."""
    body = base64.b64encode(serialized(module.ir_module)).decode("ascii")
    kernel: dict[str, object] = {"body": body}
    if module.communicates:
        kernel["has_communication"] = True
    if cost is not None:
        kernel["cost_estimate"] = vars(cost)
    kernel["serialization_format"] = options.serialization_format
    kernel["needs_layout_passes"] = options.needs_layout_passes
    given = {
        "collective_id": options.collective_id,
        "allow_input_fusion": options.allow_input_fusion,
        "internal_scratch_in_bytes": options.internal_scratch_in_bytes,
        "shape_invariant_numerics": None if options.shape_invariant_numerics else False,
    }
    for flag in ("disable_bounds_checks", "disable_semaphore_checks", "skip_device_barrier"):
        given[flag] = getattr(options, flag) or None
    kernel.update({key: value for key, value in given.items() if value is not None})
    config: dict[str, object] = {"custom_call_config": kernel}
    if options.vmem_limit_bytes is not None:
        size = {"memory_space": _VMEM, "offset": 0, "size": options.vmem_limit_bytes}
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
