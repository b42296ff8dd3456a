"""Lowering of calls of exported programs, whose modules become functions of the caller's module."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any, Protocol

from hlofront.bridge.mlir import Operation, Value, context, ir, run_passes
from hlofront.core.aval import ShapedArray, token_aval
from hlofront.core.effects import Effect
from hlofront.core.rules import lower
from hlofront.core.sizes.equations import Solution
from hlofront.higher_order.calls.exported_call import call_exported_p, real_inputs
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import DescribedSharding
from hlofront.lowering.core.module_state import ModuleState, symbol_name
from hlofront.lowering.core.per_platform import number_of
from hlofront.lowering.ops.sharding import constrained


class ExportedModule(Protocol):
    """A protocol of exported programs for lowering; `runtime/export/exported.py` has the class."""

    @property
    def fun_name(self) -> str: ...
    @property
    def in_avals(self) -> tuple[ShapedArray, ...]: ...
    @property
    def out_avals(self) -> tuple[ShapedArray, ...]: ...
    @property
    def unknown_sizes(self) -> Solution | None: ...
    @property
    def in_splits(self) -> Sequence[DescribedSharding | None]: ...
    @property
    def out_splits(self) -> Sequence[DescribedSharding | None]: ...
    @property
    def nr_devices(self) -> int: ...
    @property
    def platforms(self) -> tuple[str, ...]: ...
    @property
    def any_platform(self) -> bool: ...
    @property
    def ordered_effects(self) -> tuple[Effect, ...]: ...
    @property
    def taken_inputs(self) -> tuple[int, ...]: ...
    @property
    def mlir_module_serialized(self) -> bytes: ...
    @property
    def is_foreign(self) -> bool: ...
    def ir_module(self) -> ir.Module: ...


@lower(call_exported_p)
def _(build: Builder, *args: Value, exported: ExportedModule) -> list[Value]:
    _check_devices(build.module, exported)
    positions = real_inputs(exported.in_avals)
    taken = set(exported.taken_inputs)
    operands: list[Value] = []
    if len(exported.platforms) > 1:
        numbers = [_number_of_platform(exported, name) for name in build.module.platforms]
        operands.append(number_of(build, numbers))
    else:
        for name in build.module.platforms:
            _number_of_platform(exported, name)
    operands += build.tokens_of(exported.ordered_effects)
    for position, x, aval in zip(positions, args, build.avals_in, strict=True):
        if position in taken:
            x = _split(build, x, exported.in_splits[position], aval)
            operands.append(_as_type(build, x, types.aval_type(exported.in_avals[position])))
    if exported.unknown_sizes is not None:
        build.module.calls_unknown_sizes = True
    tokens = [types.aval_type(token_aval)] * len(exported.ordered_effects)
    result_types = [*tokens, *(types.aval_type(aval) for aval in exported.out_avals)]
    type_ = ir.FunctionType.get([x.type for x in operands], result_types, context)
    symbol = _function_of(build.module, exported, type_)
    operation = Operation.create(
        "func.call",
        result_types,
        operands,
        {"callee": symbol},
        loc=build.loc,
        ip=build.ip,
    )
    results = build.take_tokens(exported.ordered_effects, operation.results)
    return [
        _split(build, _as_type(build, x, types.aval_type(aval)), sharding, aval)
        for x, sharding, aval in zip(results, exported.out_splits, build.avals_out, strict=True)
    ]


def _as_type(build: Builder, x: Value, type_: ir.Type) -> Value:
    """Return a value as another type, in which more or fewer of its sizes are known."""
    if x.type == type_:
        return x
    return Operation.create(
        "stablehlo.convert", (type_,), (x,), loc=build.loc, ip=build.ip
    ).results[0]


def _split(build: Builder, x: Value, sharding: DescribedSharding | None, aval: Any) -> Value:
    """Return a value with its sharding over devices in the exported program."""
    if sharding is None or not build.module.several_devices:
        return x
    return constrained(build, x, sharding, aval)


def _check_devices(state: ModuleState, exported: ExportedModule) -> None:
    """Raise ValueError if an export for several devices is called for another number of them."""
    count = ir.IntegerAttr(state.ir_module.operation.attributes["mhlo.num_partitions"]).value
    if exported.nr_devices not in (1, count):
        raise ValueError(
            f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and is "
            f"called in a context with {count} devices, which is not allowed: split its arguments "
            f"over {exported.nr_devices} devices, as `in_shardings_jax(mesh)` of it says."
        )


def _number_of_platform(exported: ExportedModule, platform: str) -> int:
    """Return the index of a platform in an exported program.

    Raises:
      ValueError: if it was not exported for the platform.
    """
    if platform in exported.platforms:
        return exported.platforms.index(platform)
    if exported.any_platform:
        return 0
    raise ValueError(
        f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it "
        f"is used on '{platform}': export it with platforms=, or with disabled_checks=["
        "DisabledSafetyCheck.platform()] if its module is the same on all."
    )


def _function_of(
    state: ModuleState, exported: ExportedModule, type_: ir.Type
) -> ir.FlatSymbolRefAttr:
    """Return the symbol of an exported program's main function, added to the module once.

    Args:
      type_: the type that the function must have.

    Raises:
      ValueError: if it has another type.
    """
    key = call_exported_p, exported
    symbol = state.functions.get(key)
    if symbol is None:
        name = symbol_name(f"call_exported_{exported.fun_name}")
        artifact = exported.mlir_module_serialized
        # Artifacts contain the names of their operations as text.
        if b"optimization_barrier" in artifact:
            state.has_barriers = state.has_inner_barriers = True
        state.is_foreign = state.is_foreign or exported.is_foreign
        module = exported.ir_module()
        main = ir.SymbolTable(module.operation)["main"].operation
        type_of_main = ir.TypeAttr(main.attributes["function_type"]).value
        if type_of_main != type_:
            raise ValueError(
                f"the module of {exported.fun_name} is of type {type_of_main}, and its header says "
                f"{type_}: the file is damaged"
            )
        symbol = state.functions[key] = merge_module(state, module, name)
    return symbol


def merge_module(state: ModuleState, module: ir.Module, name: str) -> ir.FlatSymbolRefAttr:
    """Move the functions and meshes of a module to the module that is being built.

    Args:
      state: the module that is being built.
      module: a module with a function `main`, which is empty afterwards.
      name: the name of that function in the module, if it is free.

    Returns:
      The symbol of that function.
    """
    attributes = module.operation.attributes
    if "xla.sdy.meshes" in str(attributes):
        # Modules of older versions of JAX hold their shardings in frontend attributes.
        run_passes(module, "xla-sdy-round-trip-import-shardy-attrs")
        run_passes(module, "sdy-lift-inlined-meshes")
    operations = [operation.operation for operation in module.body.operations]
    old_names = [ir.StringAttr(op.attributes["sym_name"]).value for op in operations]
    new_names: dict[str, str] = {}
    shared: set[str] = set()
    for old, operation in zip(old_names, operations, strict=True):
        same = _equal_mesh(state, operation) if operation.name == "sdy.mesh" else None
        if same is not None:
            shared.add(old)
        new_names[old] = same or _free_symbol(state, name if old == "main" else old, old_names)
    for old, new in new_names.items():
        if old != new:
            ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
    for old, operation in zip(old_names, operations, strict=True):
        if old in shared:
            continue
        operation.attributes["sym_name"] = types.string(new_names[old])
        operation.detach_from_parent()
        if operation.name == "sdy.mesh":
            _insert_mesh(state, operation)
        else:
            operation.attributes["sym_visibility"] = types.string("private")
            _drop_argument_roles(operation)
            state.ip.insert(operation)
        state.add_symbol(operation)
    return ir.FlatSymbolRefAttr.get(new_names["main"], context)


def _free_symbol(state: ModuleState, name: str, taken_names: Sequence[str]) -> str:
    """Return a symbol that is new to the module being built and to the one moved into it."""
    symbol = state.unique_symbol(name)
    while symbol != name and symbol in taken_names:
        symbol = state.unique_symbol(name)
    return symbol


def _equal_mesh(state: ModuleState, mesh: ir.Operation) -> str | None:
    """Return the symbol of the mesh with the same axes in the module being built."""
    for operation in state.ir_module.body.operations:
        other = operation.operation
        if other.name != "sdy.mesh":
            continue
        if other.attributes["mesh"] == mesh.attributes["mesh"]:
            return ir.StringAttr(other.attributes["sym_name"]).value
    return None


def _insert_mesh(state: ModuleState, mesh: ir.Operation) -> None:
    last = state.last_mesh
    top = ir.InsertionPoint.at_block_begin(state.ip.block)
    (top if last is None else ir.InsertionPoint.after(last)).insert(mesh)
    state.last_mesh = mesh


def _drop_argument_roles(function: ir.Operation) -> None:
    """Remove attributes that only a main function can have, such as donation, from a function."""
    if "arg_attrs" not in function.attributes:
        return
    roles = {"tf.aliasing_output", "jax.buffer_donor", "jax.global_constant", "mhlo.layout_mode"}
    arguments = [
        ir.DictAttr.get(
            {
                attribute.name: attribute.attr
                for attribute in ir.DictAttr(argument)
                if attribute.name not in roles
            },
            context,
        )
        for argument in ir.ArrayAttr(function.attributes["arg_attrs"])
    ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments, context)
