"""Programs as StableHLO modules: main functions, names, used inputs and donation."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hlofront.base.cpu_settings import CpuSettings
from hlofront.base.errors import VerificationError
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import foreign
from hlofront.bridge.mlir import (
    Operation,
    Value,
    Values,
    bytecode_of,
    context,
    hlo_text,
    ir,
    module_of_bytecode,
    to_xla_computation,
    with_known_sizes,
)
from hlofront.core.aval import AbstractToken, AbstractValue, MemorySpace, ShapedArray, token_aval
from hlofront.core.effects import Effect, lowerable_effects, ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.lowering_request import DeviceShardings, LoweringRequest
from hlofront.core.primitive import Primitive
from hlofront.core.programs.liveness import variables_read
from hlofront.core.programs.subprograms import all_programs, opened
from hlofront.core.rules import LoweringRule
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.core.sizes.equations import Solution
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_lin_p
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder, Constant, hoisted_arguments, large_constants
from hlofront.lowering.core.fences import Fence
from hlofront.lowering.core.host_call import HostCall
from hlofront.lowering.core.mesh_attributes import is_unreduced, sharding_attribute
from hlofront.lowering.core.module_state import AfterEquation, ManualMesh, ModuleState, symbol_name
from hlofront.lowering.core.partitioned_call import PartitionedCall
from hlofront.lowering.core.per_platform import INDEX, index_aval
from hlofront.lowering.core.pruning import live_equations
from hlofront.lowering.core.unknown_sizes import emit_variables
from hlofront.transforms.simplify import dead_code_program


@dataclass(slots=True, eq=False)
class Module:
    """A lowered program, and the data needed to run it.

    Attributes:
      const_args: the large constants, which precede the other arguments.
      kept_inputs: the positions of the program's inputs that the module takes.
      donated: the positions of the inputs whose buffers the module may reuse.
      unusable: the types of donated inputs whose memory no result can use.
      callbacks: the host calls, in the order of their index. See lowering/ops/callbacks.py.
      ordered: the ordered effects whose tokens are the first arguments and the first results.
      cpu_settings: the settings with which it was lowered.
      fences: the fences that lowering emitted.
      has_barriers: whether there are barriers: fences, or those of the user or of checkpoint.
      has_inner_barriers: whether some of them may be in loops.
      keepalives: the objects that rules of other packages keep alive with the executable.
      partitioned_calls: the equations that the host partitions or inspects while XLA compiles, by
        the numbers of their custom calls. See lowering/ops/partitioning.py.
      is_foreign: whether a part of it comes from an untrusted file.
    """

    ir_module: ir.Module
    name: str
    const_args: list[Constant]
    kept_inputs: tuple[int, ...]
    donated: tuple[int, ...]
    unusable: list[str]
    callbacks: list[HostCall]
    ordered: tuple[Effect, ...]
    cpu_settings: CpuSettings
    fences: list[Fence]
    has_barriers: bool
    has_inner_barriers: bool
    keepalives: list[object]
    partitioned_calls: list[PartitionedCall]
    is_foreign: bool = False

    @property
    def keeps_barriers(self) -> bool:
        """True if XLA must keep the module's barriers, which it may otherwise drop."""
        return self.cpu_settings.fences and self.has_barriers

    def text(self, debug_info: bool = False) -> str:
        """Return the module as StableHLO text."""
        asm = self.ir_module.operation.get_asm(
            enable_debug_info=debug_info, large_elements_limit=None
        )
        return cast(str, asm)

    def hlo(self) -> Any:
        """Return the module as an XlaComputation, the form in which XLA reads it."""
        return to_xla_computation(self.ir_module)

    def hlo_text(self, debug_info: bool = False) -> str:
        """Return the HLO text of the module before optimization."""
        return hlo_text(self.hlo().get_hlo_module(), debug_info)


def lower_program(
    program: ClosedJaxpr,
    request: LoweringRequest,
    *,
    arg_names: Sequence[str] | None = None,
    result_paths: Sequence[str] | None = None,
    wrapper: str = "jit",
    embed_constants: bool = False,
    after_equation: AfterEquation | None = None,
    manual: ManualMesh | None = None,
    overrides: Mapping[Primitive, LoweringRule] | None = None,
    unknown_sizes: Solution | None = None,
) -> Module:
    """Lower a program to a verified module whose main function computes it.

    Args:
      program: the program.
      request: how to lower it: the platform, the devices, donation and so on.
      arg_names, result_paths: the names of inputs and results, if known.
      wrapper: the name of the transformation that calls the function, in names and locations.
      embed_constants: whether large constants are part of the module, not arguments of main.
      after_equation: called with the builder after each equation, including those of subprograms.
      manual: the mesh whose devices each run the program on their shards, or None.
      overrides: lowering rules, by primitive, that replace those of the table in this module.
      unknown_sizes: the variables of symbolic sizes as functions of the sizes of the inputs; None
        if all sizes are known.

    Raises:
      ValueError: if the types of inputs have symbolic sizes and `unknown_sizes` is None, or an
        effect cannot be lowered.
      VerificationError: if a lowering rule emitted invalid StableHLO.
    """
    name, device_assignment, layouts = request.name, request.device_assignment, request.layouts
    if _holds_backward_only(program.jaxpr):
        # Dead code, such as an unused operand of a call, may use the input.
        program, _ = dead_code_program(program, (True,) * len(program.out_avals), True)
    jaxpr = program.jaxpr
    inputs = tuple(range(len(jaxpr.invars))) if request.keep_unused else _used_inputs(program)
    unlowerable = lowerable_effects.filter_not_in(jaxpr.effects)
    if unlowerable:
        raise ValueError(
            f"Cannot lower jaxpr with effects: {', '.join(sorted(map(str, unlowerable)))}. Their "
            "classes are added by mlir.lowerable_effects.add_type"
        )
    if unknown_sizes is None:
        _refuse_symbolic_sizes(name, jaxpr)
    else:
        measured = {dimension.argument for dimension in unknown_sizes.dimensions}
        inputs = tuple(sorted(measured.union(inputs)))
    large = large_constants(program)
    constants = [] if embed_constants else large
    module_name = f"{wrapper}_{symbol_name(name)}"
    ir_module = ir.Module.create(loc=types.unknown)
    operation = ir_module.operation
    operation.attributes["sym_name"] = types.string(module_name)
    count = device_assignment.device_count if device_assignment else 1
    operation.attributes["mhlo.num_partitions"] = types.i32(count)
    operation.attributes["mhlo.num_replicas"] = types.i32(1)
    platform = request.platform
    platforms = (platform,) if isinstance(platform, str) else platform
    typed_mesh = device_assignment.typed_mesh if device_assignment else None
    state = ModuleState(platforms, ir_module, request.cpu_settings, count > 1, typed_mesh)
    state.after_equation = after_equation
    state.program = jaxpr
    state.manual = manual
    state.overrides = overrides or {}
    state.mesh = device_assignment.mesh if device_assignment else None
    several = len(platforms) > 1

    ordered = ordered_effects(jaxpr.effects)
    tokens = [token_aval] * len(ordered)
    in_avals: list[AbstractValue] = [*([index_aval] if several else ()), *tokens]
    in_avals += [constant.aval for constant in constants]
    in_avals += [jaxpr.invars[i].aval for i in inputs]
    in_types = [types.aval_type(aval) for aval in in_avals]
    out_types = [types.aval_type(aval) for aval in (*tokens, *jaxpr.out_avals)]
    names = ["platform index"] if several else []
    names += [f"token of {effect}" for effect in ordered]
    names += [f"constant{i}" for i in range(len(constants))]
    names += [arg_names[i] if arg_names and i < len(arg_names) else f"args[{i}]" for i in inputs]
    locations = [state.locations.named(n) for n in names]
    function = state.create_function("main", "public", in_types, out_types, types.unknown)
    splits = Splits(state, jaxpr, device_assignment)
    block = function.regions[0].blocks.append(*in_types, arg_locs=locations)
    parameters: list[Value] = list(block.arguments)
    index = parameters.pop(0) if several else None
    arguments = parameters[len(ordered) :]
    hoisted = hoisted_arguments(constants, arguments)
    if index is not None:
        hoisted[id(INDEX)] = index
    builder = Builder(state, ir.InsertionPoint(block), (f"{wrapper}({name})",), hoisted)
    builder.is_at_top = True
    if embed_constants:
        for value, aval in large:
            hoisted[id(value)] = builder.hoist(value, aval.dtype)
    builder.take_tokens(ordered, parameters)
    # Unused inputs have no value.
    values: list[Any] = [None] * len(jaxpr.invars)
    for position, argument in zip(inputs, arguments[len(constants) :], strict=True):
        values[position] = argument
    if unknown_sizes is not None:
        emit_variables(builder, unknown_sizes, values)
    outputs = builder.inline(jaxpr, program.consts, values)
    if splits.has_unreduced:
        outputs = splits.constrained(builder, outputs, jaxpr.out_avals)
    outputs = [*builder.tokens_of(ordered), *outputs]
    Operation.create("func.return", (), outputs, loc=types.unknown, ip=builder.ip)

    layout = _ArgumentLayout(several, len(ordered), len(constants), inputs)
    donation = _set_argument_attributes(function, jaxpr, layout, request.donated, splits, layouts)
    uses_host = any(map(_is_on_host, (*jaxpr.in_avals, *jaxpr.out_avals)))
    if result_paths or ordered or splits.outputs or layouts or uses_host:
        paths = result_paths or [""] * len(jaxpr.outvars)
        function.attributes["res_attrs"] = _result_attributes(
            len(ordered), paths, splits, layouts, jaxpr.out_avals if uses_host else ()
        )
    _verify(ir_module, module_name)
    if state.calls_unknown_sizes and not state.size_variables:
        if state.is_foreign:
            ir_module = module_of_bytecode(foreign.with_known_sizes(bytecode_of(ir_module)))
        else:
            ir_module = with_known_sizes(ir_module)
    return Module(
        ir_module=ir_module,
        name=module_name,
        const_args=constants,
        kept_inputs=inputs,
        donated=donation.donated,
        unusable=donation.unusable,
        callbacks=state.callbacks,
        ordered=ordered,
        cpu_settings=request.cpu_settings,
        fences=state.fences.recorded() if state.fences else [],
        has_barriers=state.has_barriers,
        # Rules of other packages may emit uncounted barriers.
        has_inner_barriers=state.has_inner_barriers or state.extension_context is not None,
        keepalives=state.keepalives,
        partitioned_calls=state.partitioned_calls,
        is_foreign=state.is_foreign,
    )


def _refuse_symbolic_sizes(name: str, jaxpr: Jaxpr) -> None:
    """Raise a ValueError if an input of a program that is not exported has a symbolic size."""
    for aval in jaxpr.in_avals:
        if isinstance(aval, ShapedArray) and has_symbolic_size(aval.shape):
            raise ValueError(
                f"{name} is lowered for an argument {aval.str_short()} of unknown sizes, which "
                "programs that are compiled do not have: export it, by hlofront.export.export"
            )


def _holds_backward_only(jaxpr: Jaxpr) -> bool:
    """Return whether a program has, at any depth, an operation that cannot be lowered."""
    return any(
        equation.primitive is custom_lin_p
        for program in all_programs(jaxpr, live_equations)
        for equation in live_equations(opened(program))
    )


def _used_inputs(program: ClosedJaxpr) -> tuple[int, ...]:
    jaxpr = program.jaxpr
    used = variables_read(live_equations(jaxpr), jaxpr.outvars)
    return tuple(i for i, var in enumerate(jaxpr.invars) if var in used)


class Splits:
    """The sharding attributes of a program's inputs and outputs, by position, where known."""

    __slots__ = ("_declared", "_state", "has_unreduced", "inputs", "outputs")

    def __init__(self, state: ModuleState, jaxpr: Jaxpr, device_assignment: DeviceShardings | None):
        self._state = state
        self._declared: tuple[Sequence[Any], Sequence[Any]] | None = None
        self.inputs: dict[int, ir.Attribute] = {}
        self.outputs: dict[int, ir.Attribute] = {}
        self.has_unreduced = False
        if device_assignment is not None:
            outputs = device_assignment.outputs or (None,) * len(jaxpr.outvars)
            self._declared = device_assignment.inputs, outputs
            self.inputs = self._attributes(device_assignment.inputs, jaxpr.in_avals)
            self.outputs = self._attributes(outputs, jaxpr.out_avals)
            self.has_unreduced = any(map(is_unreduced, (*device_assignment.inputs, *outputs)))

    def _attributes(
        self, shardings: Sequence[Any], avals: Sequence[Any]
    ) -> dict[int, ir.Attribute]:
        pairs = zip(shardings, avals, strict=True)
        return {
            i: sharding_attribute(self._state, sharding, aval)
            for i, (sharding, aval) in enumerate(pairs)
            if sharding is not None
        }

    def constrained(
        self, build: Builder, outputs: Values, avals: Sequence[AbstractValue]
    ) -> list[Value]:
        """Return outputs constrained to their shardings.

        Shardy combines values along unreduced axes, and makes unreduced ones, at constraints and
        not at the return of a function.
        """
        return [
            build.op("sdy.sharding_constraint", (x,), aval, sharding=self.outputs[i])
            if i in self.outputs
            else x
            for i, (x, aval) in enumerate(zip(outputs, avals, strict=True))
        ]

    def alike(self, index: int, output: int) -> bool:
        """Return whether an input and output certainly have equal shardings, and may alias."""
        if self._declared is None:
            return True
        inputs, outputs = self._declared
        return inputs[index] is not None and inputs[index] == outputs[output]


class _ArgumentLayout(NamedTuple):
    """The arguments of main, in order.

    Attributes:
      several: whether the first argument is the platform index.
      tokens: the number of token arguments after it.
      constants: the number of large constants after those.
      inputs: the positions of the program's inputs to which the remaining arguments correspond.
    """

    several: bool
    tokens: int
    constants: int
    inputs: tuple[int, ...]


class _Donation(NamedTuple):
    """The positions of donated inputs, and the types of those that match no output."""

    donated: tuple[int, ...]
    unusable: list[str]


def _set_argument_attributes(
    function: ir.Operation,
    jaxpr: Jaxpr,
    layout: _ArgumentLayout,
    donated: Sequence[bool] | None,
    splits: Splits,
    layouts: LayoutModes | None,
) -> _Donation:
    """Set the argument attributes for the platform index, tokens, shardings, layouts and donation.

    Each donated input is matched with an output of its shape and dtype, to share a buffer. An input
    that matches no output is marked as a donor, which XLA may use for temporaries.
    """
    donation = _Donation((), [])
    donates = donated is not None and any(donated)
    on_host = {i for i, aval in enumerate(jaxpr.in_avals) if _is_on_host(aval)}
    if not (donates or layout.tokens or layout.several or splits.inputs or on_host):
        if layouts is None:
            return donation
    attributes = [_is_token() for _ in range(layout.tokens)]
    if layout.several:
        attributes.insert(0, {"jax.global_constant": types.string("_platform_index")})
    attributes += [{} for _ in range(layout.constants)]
    inputs: list[dict[str, ir.Attribute]] = [{} for _ in layout.inputs]
    if donated is not None and any(donated):
        donation = _alias_donated(inputs, jaxpr, layout, donated, splits)
    for attribute, index in zip(inputs, layout.inputs, strict=True):
        if index in splits.inputs:
            attribute["sdy.sharding"] = splits.inputs[index]
        if index in on_host:
            attribute["mhlo.memory_kind"] = types.string(MemorySpace.Host.value)
        _set_layout(attribute, None if layouts is None else layouts.inputs[index])
    function.attributes["arg_attrs"] = _dictionaries([*attributes, *inputs])
    return donation


def _set_layout(attribute: dict[str, ir.Attribute], mode: str | None) -> None:
    if mode is not None:
        attribute["mhlo.layout_mode"] = types.string(mode)


def _is_token() -> dict[str, ir.Attribute]:
    return {"jax.token": types.boolean(True)}


def _dictionaries(entries: Sequence[dict[str, ir.Attribute]]) -> ir.Attribute:
    attributes = [ir.DictAttr.get(entry, context=context) for entry in entries]
    return ir.ArrayAttr.get(attributes, context=context)


def _alias_donated(
    attributes: list[dict[str, ir.Attribute]],
    jaxpr: Jaxpr,
    layout: _ArgumentLayout,
    donated: Sequence[bool],
    splits: Splits,
) -> _Donation:
    free: dict[Hashable, list[int]] = {}
    for i, aval in enumerate(jaxpr.out_avals):
        if not isinstance(aval, AbstractToken):
            free.setdefault(_buffer(aval), []).append(i)
    unmatched: list[Any] = []
    for position, index in enumerate(layout.inputs):
        if not donated[index]:
            continue
        aval: Any = jaxpr.invars[index].aval
        if isinstance(aval, AbstractToken):
            continue
        outputs = free.get(_buffer(aval))
        alike = next((i for i in outputs or () if splits.alike(index, i)), None)
        if outputs and alike is not None:
            outputs.remove(alike)
            attributes[position]["tf.aliasing_output"] = types.i32(layout.tokens + alike)
            continue
        attributes[position]["jax.buffer_donor"] = types.boolean(True)
        if outputs:  # XLA decides whether their shardings are equal.
            outputs.pop(0)
        else:
            unmatched.append(aval)
    # XLA may also store a result with as many elements there, whatever its shape and dtype.
    sizes = [_size(jaxpr.out_avals[i]) for outputs in free.values() for i in outputs]
    unusable: list[str] = []
    for aval in unmatched:
        if _size(aval) in sizes:
            sizes.remove(_size(aval))
        else:
            unusable.append(aval.str_short())
    return _Donation(tuple(i for i in layout.inputs if donated[i]), unusable)


def _size(aval: Any) -> Hashable:
    """Return the number of elements of an array, and the memory that holds them."""
    return aval.size, getattr(aval, "memory_space", None)


def _buffer(aval: Any) -> Hashable:
    """Return a buffer's shape, dtype and memory; values that agree in these can share a buffer."""
    return aval.shape, aval.dtype, getattr(aval, "memory_space", None)


def _result_attributes(
    tokens: int,
    paths: Sequence[str],
    splits: Splits,
    layouts: LayoutModes | None,
    in_memories: Sequence[object],
) -> ir.Attribute:
    infos: list[dict[str, ir.Attribute]] = [
        {"jax.result_info": types.string(path)} if path else {} for path in paths
    ]
    for position, attribute in splits.outputs.items():
        infos[position]["sdy.sharding"] = attribute
    for info, mode in zip(infos, layouts.outputs if layouts else (), strict=False):
        _set_layout(info, mode)
    for info, aval in zip(infos, in_memories, strict=False):
        if isinstance(aval, ShapedArray):
            info["mhlo.memory_kind"] = types.string(aval.memory_space.value)
    return _dictionaries([_is_token() for _ in range(tokens)] + infos)


def _is_on_host(aval: AbstractValue) -> bool:
    return isinstance(aval, ShapedArray) and aval.memory_space is MemorySpace.Host


def _verify(ir_module: ir.Module, name: str) -> None:
    # XLA aborts the process on some invalid modules, so none may reach it.
    try:
        valid = ir_module.operation.verify()
        reason = ""
    except ir.MLIRError as error:
        valid, reason = False, str(error)
    if not valid:
        raise VerificationError(
            f"the module {name} is not valid StableHLO: a lowering rule is wrong.\n{reason}"
        )
