"""Lowering to modules and functions, for other packages, as in `jax.interpreters.mlir`."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import context, ir
from hlofront.core.aval import AbstractValue, token_aval
from hlofront.core.effects import Effect
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.primitive import Primitive
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.core.sharding.mesh import AbstractMesh, Mesh, NamedAxes
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import sharding_attribute
from hlofront.lowering.core.module_state import ManualMesh
from hlofront.lowering.extension.rules import LoweringRule, ModuleContext, builder_rule
from hlofront.lowering.rules import lower_program
from hlofront.transforms.simplify import constants_as_inputs

# The kinds of channels between devices and the host, as StableHLO numbers them.
DEVICE_TO_DEVICE_TYPE = 1
SEND_TO_HOST_TYPE = 2
RECV_FROM_HOST_TYPE = 3

MeshAxisName = Any


@dataclass(frozen=True, slots=True)
class SPMDAxisContext:
    """The devices of a module as a mesh.

    Attributes:
      mesh: the mesh.
      manual_axes: its axes of type Manual in the module's operations.
    """

    mesh: Mesh | AbstractMesh
    manual_axes: frozenset[MeshAxisName] = frozenset()


@dataclass(frozen=True, slots=True)
class ShardingContext:
    """The devices of a module, without a mesh.

    Attributes:
      num_devices: the number of devices.
      device_assignment: the devices in order, or None if they are not known.
      abstract_mesh: the mesh in types, or None.
    """

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: AbstractMesh | None = None

    def __post_init__(self) -> None:
        devices = self.device_assignment
        if devices is not None and self.num_devices != len(devices):
            raise AssertionError(f"num_devices={self.num_devices} for {len(devices)} devices")


AxisContext = SPMDAxisContext | ShardingContext


@dataclass(frozen=True)
class LoweringParameters:
    """The options of lowering a module.

    Attributes:
      override_lowering_rules: pairs of a primitive and the rule that lowers it in this module.
      global_constant_computation, for_export, export_ignore_forward_compatibility,
        hoist_constants_as_args: options of JAX's exporter, which must be False: `hlofront.export`
        has its own options.

    Raises:
      ValueError: if one of them is True.
    """

    override_lowering_rules: tuple[tuple[Primitive, LoweringRule], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False

    def __post_init__(self) -> None:
        (_, *of_exporter) = fields(self)
        refused = [field.name for field in of_exporter if getattr(self, field.name)]
        if refused:
            raise ValueError(
                f"LoweringParameters were given {', '.join(refused)}, which is for an exporter of "
                "modules: hlofront.export.export makes modules for export, and num_const_args says "
                "whether constants are arguments"
            )


class ShapePolyLoweringState:
    """The arguments of a module's functions other than those of its program.

    Attributes:
      dim_vars: the names of the variables of symbolic sizes; in a module for several platforms,
        they follow that of the platform index.
      uses_dim_vars: whether there are any.
      has_platform_index_argument: whether the first argument is the platform index.
    """

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None):
        several = lowering_platforms is not None and len(lowering_platforms) > 1
        self.dim_vars = ("_platform_index", *dim_vars) if several else tuple(dim_vars)
        self.uses_dim_vars = bool(self.dim_vars)
        self.has_platform_index_argument = several


class LoweringResult(NamedTuple):
    """A lowered module.

    Attributes:
      module: the module.
      keepalive: the objects that an executable must keep alive.
      host_callbacks: the calls of Python functions.
      shape_poly_state: the arguments of its functions other than those of the program.
    """

    module: ir.Module
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState


class _Shardings(NamedTuple):
    """The shardings of a module's arguments and results, in the form for `lower_program`."""

    device_count: int
    mesh: NamedAxes | None
    inputs: Sequence[Any]
    outputs: Sequence[Any] | None
    typed_mesh: NamedAxes | None = None


def lower_jaxpr_to_module(
    module_name: str,
    jaxpr: ClosedJaxpr,
    *,
    num_const_args: int,
    in_avals: Sequence[AbstractValue],
    ordered_effects: Sequence[Effect],
    platforms: Sequence[str],
    backend: object,
    axis_context: AxisContext,
    donated_args: Sequence[bool],
    replicated_args: Sequence[bool] | None = None,
    arg_shardings: Sequence[object] | None = None,
    result_shardings: Sequence[object] | None = None,
    in_layouts: Sequence[object] | None = None,
    out_layouts: Sequence[object] | None = None,
    arg_names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
    num_partitions: int = 1,
    all_default_mem_kind: bool = True,
    input_output_aliases: Sequence[int | None] | None = None,
    propagated_out_mem_kinds: Sequence[str | None] | None = None,
    lowering_parameters: LoweringParameters,
) -> LoweringResult:
    """Lower a program to a module, whose main function computes it.

    Args:
      module_name: the name of the module.
      jaxpr: the program.
      num_const_args: how many of the program's constants are leading arguments: all or 0.
      in_avals: the types of the arguments.
      ordered_effects: the effects whose tokens are the first arguments and results; they must
        include those of the program.
      platforms: the platforms of the module.
      backend: ignored, for compatibility with JAX: modules are for platforms.
      axis_context: the devices.
      donated_args: per argument, whether results may use its memory.
      replicated_args: per argument, whether all replicas have the same value.
      arg_shardings, result_shardings: per argument and result, its sharding or None.
      in_layouts, out_layouts: per argument and result, its layout or None.
      arg_names, result_names: per argument and result, its name in the module.
      num_partitions: the number of devices.
      all_default_mem_kind, propagated_out_mem_kinds: ignored, for compatibility with JAX: types
        include the memory of values.
      input_output_aliases: per argument, the result that reuses its memory, or None.
      lowering_parameters: further options.

    Raises:
      ValueError: if some but not all constants are arguments, or an effect cannot be lowered.
    """
    if num_const_args not in (0, len(jaxpr.consts)):
        raise ValueError(
            f"num_const_args is 0 or the number of constants, {len(jaxpr.consts)}: got "
            f"{num_const_args}"
        )
    if num_const_args:
        jaxpr = ClosedJaxpr(constants_as_inputs(jaxpr))
    if len(in_avals) != len(jaxpr.in_avals):
        raise ValueError(
            f"the program takes {len(jaxpr.in_avals)} arguments, and in_avals has {len(in_avals)}"
        )
    shardings = arg_shardings or [None] * len(in_avals)
    several = num_partitions > 1 or bool(arg_shardings or result_shardings)
    mesh = axis_context.mesh if isinstance(axis_context, SPMDAxisContext) else None
    manual: ManualMesh | None = None
    if isinstance(axis_context, SPMDAxisContext) and axis_context.manual_axes:
        axes: tuple[tuple[Hashable, int], ...] = tuple(axis_context.mesh.shape.items())
        manual = ManualMesh(axes, axis_context.manual_axes)
    overrides = {p: builder_rule(r) for p, r in lowering_parameters.override_lowering_rules or ()}
    request = LoweringRequest(
        module_name,
        tuple(platforms),
        donated_args or (),
        keep_unused=True,
        device_assignment=_Shardings(num_partitions, mesh, shardings, result_shardings)
        if several
        else None,
        layouts=_modes(in_layouts, out_layouts, jaxpr),
    )
    module = lower_program(
        jaxpr,
        request,
        arg_names=arg_names,
        result_paths=result_names,
        embed_constants=True,
        manual=manual,
        overrides=overrides,
    )
    ir_module = module.ir_module
    ir_module.operation.attributes["sym_name"] = types.string(module_name)
    attributes: list[dict[str, ir.Attribute]] = [{} for _ in in_avals]
    for own, replicated, alias in zip(
        attributes,
        replicated_args or [False] * len(in_avals),
        input_output_aliases or [None] * len(in_avals),
        strict=True,
    ):
        if replicated:
            own["mhlo.is_same_data_across_replicas"] = types.boolean(True)
        if alias is not None:
            own["tf.aliasing_output"] = types.i32(len(module.ordered) + alias)
    (main,) = (op for op in ir_module.body.operations if op.sym_name.value == "main")
    _add_attributes(main, "arg_attrs", attributes)
    state = ShapePolyLoweringState((), tuple(platforms))
    return LoweringResult(ir_module, module.keepalives, module.callbacks, state)


def _modes(
    inputs: Sequence[object] | None, outputs: Sequence[object] | None, program: ClosedJaxpr
) -> LayoutModes | None:
    if inputs is None and outputs is None:
        return None
    texts = [
        tuple([None if layout is None else str(layout) for layout in layouts or [None] * count])
        for layouts, count in (
            (inputs, len(program.in_avals)),
            (outputs, len(program.out_avals)),
        )
    ]
    return LayoutModes(*texts)


def _add_attributes(
    function: object, name: str, entries: Sequence[dict[str, ir.Attribute]]
) -> None:
    """Add attributes to those of a function's last arguments or results."""
    if not any(entries):
        return
    operation = function.operation
    if name in operation.attributes:
        present = [
            {attribute.name: attribute.attr for attribute in own}
            for own in operation.attributes[name]
        ]
    else:
        types_of = operation.attributes["function_type"].value
        of_results = name == "res_attrs"
        present = [{} for _ in (types_of.results if of_results else types_of.inputs)]
    for own, more in zip(present[len(present) - len(entries) :], entries, strict=True):
        own.update(more)
    operation.attributes[name] = ir.ArrayAttr.get(
        [ir.DictAttr.get(own, context=context) for own in present], context=context
    )


def lower_jaxpr_to_fun(
    ctx: ModuleContext,
    name: str,
    jaxpr: ClosedJaxpr,
    effects: Sequence[Effect],
    *,
    num_const_args: int,
    main_function: bool = False,
    replicated_args: Sequence[bool] | None = None,
    in_avals: Sequence[AbstractValue],
    arg_shardings: Sequence[object] | None = None,
    result_shardings: Sequence[object] | None = None,
    use_sharding_annotations: bool = True,
    input_output_aliases: Sequence[int | None] | None = None,
    xla_donated_args: Sequence[bool] | None = None,
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str] | None = None,
    arg_memory_kinds: Sequence[str | None] | None = None,
    result_memory_kinds: Sequence[str | None] | None = None,
    arg_layouts: Sequence[object] | None = None,
    result_layouts: Sequence[object] | None = None,
    propagated_out_mem_kinds: Sequence[str | None] | None = None,
) -> Any:
    """Add a function that computes a program to a module, and return its MLIR operation.

    Args:
      ctx: the module, the `module_context` of a rule's context.
      name: the name of the function, to which a number is added if it is taken.
      jaxpr: the program.
      effects: the effects whose tokens are the first arguments and results.
      num_const_args: how many of the program's constants are leading arguments: all or 0.
      main_function: whether the function is public.
      in_avals: the types of the arguments.
      replicated_args, arg_shardings, result_shardings, input_output_aliases, xla_donated_args,
        arg_names, result_names, arg_memory_kinds, result_memory_kinds, arg_layouts,
        result_layouts: the contents of attributes of each argument and result, or None.
      use_sharding_annotations, propagated_out_mem_kinds: ignored, for compatibility with JAX.
    """
    state = ctx._state
    if num_const_args:
        jaxpr = ClosedJaxpr(constants_as_inputs(jaxpr))
    count = len(effects)
    token_types = [types.aval_type(token_aval)] * count
    in_types = [*token_types, *map(types.aval_type, in_avals)]
    out_types = [*token_types, *map(types.aval_type, jaxpr.out_avals)]
    symbol = "main" if main_function else state.unique_symbol(name)
    visibility = "public" if main_function else "private"
    function = state.create_function(symbol, visibility, in_types, out_types, types.unknown)
    labels = [*[None] * count, *(arg_names or [None] * len(in_avals))]
    locations = [types.unknown if n is None else state.locations.named(n) for n in labels]
    block = function.regions[0].blocks.append(*in_types, arg_locs=locations)
    build = Builder(state, ir.InsertionPoint(block), (name,) if main_function else (), {})
    arguments = list(block.arguments)
    build.take_tokens(effects, arguments)
    results = build.inline(jaxpr.jaxpr, jaxpr.consts, arguments[count:])
    outputs = [*build.tokens_of(effects), *results]
    ir.Operation.create("func.return", (), outputs, loc=types.unknown, ip=build.ip)

    def described(
        shardings: Sequence[object] | None, avals: Sequence[object], *texts: tuple[str, Any]
    ) -> list[dict[str, ir.Attribute]]:
        entries: list[dict[str, ir.Attribute]] = [{} for _ in avals]
        for own, sharding, aval in zip(entries, shardings or [None] * len(avals), avals):
            if sharding is not None:
                own["sdy.sharding"] = sharding_attribute(state, sharding, aval)
        for key, values in texts:
            for own, value in zip(entries, values or (), strict=False):
                if isinstance(value, bool):
                    if value:
                        own[key] = types.boolean(True)
                elif value is not None:
                    is_number = isinstance(value, int)
                    own[key] = types.i32(count + value) if is_number else types.string(str(value))
        return entries

    of_arguments = described(
        arg_shardings,
        in_avals,
        ("mhlo.is_same_data_across_replicas", replicated_args),
        ("tf.aliasing_output", input_output_aliases),
        ("jax.buffer_donor", xla_donated_args),
        ("mhlo.memory_kind", arg_memory_kinds),
        ("mhlo.layout_mode", arg_layouts),
    )
    of_results = described(
        result_shardings,
        jaxpr.out_avals,
        ("jax.result_info", result_names),
        ("mhlo.memory_kind", result_memory_kinds),
        ("mhlo.layout_mode", result_layouts),
    )
    _add_attributes(function, "arg_attrs", of_arguments)
    _add_attributes(function, "res_attrs", of_results)
    return function.opview


def merge_mlir_modules(
    dst_module: ir.Module,
    sym_name: str,
    src_module: ir.Module,
    dst_symtab: ir.SymbolTable | None = None,
) -> str:
    """Move the functions of a module into another, as private functions with unique names.

    Args:
      dst_module: the module that receives the functions; its own functions keep their names.
      sym_name: the name for the main function of `src_module`, if it is free.
      src_module: a module of the same context with a function main; it must not be used afterwards.
      dst_symtab: the symbol table of `dst_module`, if the caller has one.

    Returns:
      The name of the main function of `src_module` in `dst_module`.
    """
    source = ir.SymbolTable(src_module.operation)
    target = dst_symtab or ir.SymbolTable(dst_module.operation)
    operations = list(src_module.body.operations)
    private = types.string("private")
    renamed: dict[str, str] = {}
    for operation in operations:
        name = operation.sym_name.value
        if name == "main" or name in target:
            base = new = sym_name if name == "main" else name
            number = 0
            while new in source or new in target or new in renamed.values():
                new = f"{base}_{number}"
                number += 1
            renamed[name] = new
    for operation in operations:
        name = operation.sym_name.value
        if name in renamed:
            source.set_symbol_name(operation, renamed[name])
        operation.attributes["sym_visibility"] = private
    for name, new in renamed.items():
        for operation in operations:
            source.replace_all_symbol_uses(name, new, operation)
    for operation in operations:
        dst_module.body.append(operation)
        target.insert(operation)
    return renamed["main"]
