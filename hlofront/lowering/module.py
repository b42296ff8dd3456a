"""A program as a StableHLO module: its main function, names, kept arguments and donation."""

import re
from collections.abc import Sequence
from typing import Any

from hlofront.base.errors import VerificationError
from hlofront.bridge.mlir import Operation, context, hlo_text, ir, to_xla_computation
from hlofront.core.aval import AbstractToken, token_aval
from hlofront.core.effects import Effect, ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.liveness import variables_read
from hlofront.core.subprograms import subjaxprs
from hlofront.higher_order.custom_vjp_call import custom_lin_p
from hlofront.lowering import types
from hlofront.lowering.builder import Builder, large_constants, live_equations
from hlofront.lowering.fences import Fence, Fences
from hlofront.lowering.module_state import ModuleState
from hlofront.lowering.per_platform import INDEX, index_aval
from hlofront.lowering.sharding import sharding_attribute
from hlofront.transforms.simplify import dead_code_program


class Module:
    """A lowered program, and what running it needs to know."""

    __slots__ = (
        "callbacks",
        "const_args",
        "donated",
        "fences",
        "has_barriers",
        "ir_module",
        "keepalives",
        "kept",
        "name",
        "ordered",
        "unusable",
    )

    ir_module: Any
    name: str
    # The large constants, which come before the other arguments, with their avals.
    const_args: list[tuple[Any, Any]]
    # The positions of the program's inputs that the module takes.
    kept: tuple[int, ...]
    # Those of them whose buffers it may reuse.
    donated: tuple[int, ...]
    # The types of those that no result can reuse.
    unusable: list[str]
    # What it calls on the host, in the order of their index. See lowering/callbacks.py.
    callbacks: list[Any]
    # The ordered effects whose tokens are its first arguments and its first results.
    ordered: tuple[Effect, ...]
    # The barriers that lowering placed; None where it was to place none.
    fences: list[Fence] | None
    # Whether there are barriers in it: these, the user's, or those of checkpoint.
    has_barriers: bool
    # The objects that other packages' lowering rules want to live as long as the executable.
    keepalives: list[object]

    def __init__(
        self,
        ir_module,
        name,
        const_args,
        kept,
        donation,
        callbacks,
        ordered,
        fences,
        has_barriers,
        keepalives,
    ):
        self.ir_module = ir_module
        self.name = name
        self.const_args = const_args
        self.kept = kept
        self.donated, self.unusable = donation
        self.callbacks = callbacks
        self.ordered = ordered
        self.fences = fences
        self.has_barriers = has_barriers
        self.keepalives = keepalives

    def text(self, debug_info: bool = False) -> str:
        """The module as StableHLO text."""
        return self.ir_module.operation.get_asm(
            enable_debug_info=debug_info, large_elements_limit=None
        )

    def hlo(self) -> Any:
        """The module as XLA first sees it: an XlaComputation."""
        return to_xla_computation(self.ir_module)

    def hlo_text(self, debug_info: bool = False) -> str:
        """The HLO text of the module before optimization."""
        return hlo_text(self.hlo().get_hlo_module(), debug_info)


def lower_program(
    program: ClosedJaxpr,
    name: str,
    platform: str | tuple[str, ...],
    *,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    arg_names: Sequence[str] | None = None,
    result_paths: Sequence[str] | None = None,
    wrapper: str = "jit",
    fences: bool = False,
    device_assignment: Any = None,
) -> Module:
    """Lower a program to a verified module whose main function computes it.

    Args:
      platform: the one that it is for. For several, the first argument of main is the number of
        that which it runs on.
      device_assignment: the devices, with `device_count`, and as `inputs` and `outputs` the
        sharding of each input and output of the program, or None where XLA decides.
      fences: whether to store values that XLA would compute at every use. See fences.py.

    Raises:
      VerificationError: if a lowering rule made a module that is not valid StableHLO.
    """
    if _holds_backward_only(program.jaxpr):
        # Dead code may ask for it, such as an unused operand of a call.
        program, _ = dead_code_program(program, (True,) * len(program.out_avals), True)
    jaxpr = program.jaxpr
    kept = tuple(range(len(jaxpr.invars))) if keep_unused else _used_inputs(program)
    constants = large_constants(program)
    module_name = f"{wrapper}_{symbol_name(name)}"
    ir_module = ir.Module.create(loc=types.unknown)
    operation = ir_module.operation
    operation.attributes["sym_name"] = types.string(module_name)
    count = device_assignment.device_count if device_assignment else 1
    operation.attributes["mhlo.num_partitions"] = types.i32(count)
    operation.attributes["mhlo.num_replicas"] = types.i32(1)
    wanted = Fences() if fences else None
    platforms = (platform,) if isinstance(platform, str) else platform
    state = ModuleState(platforms, ir_module, wanted, count > 1)
    several = len(platforms) > 1

    ordered = ordered_effects(jaxpr.effects)
    tokens: list[Any] = [token_aval] * len(ordered)
    in_avals = [*([index_aval] if several else ()), *tokens]
    in_avals += [*(aval for _, aval in constants), *(jaxpr.invars[i].aval for i in kept)]
    in_types = [types.aval_type(aval) for aval in in_avals]
    out_types = [types.aval_type(aval) for aval in (*tokens, *jaxpr.out_avals)]
    names = ["platform index"] if several else []
    names += [f"token of {effect}" for effect in ordered]
    names += [f"constant{i}" for i in range(len(constants))]
    names += [arg_names[i] if arg_names and i < len(arg_names) else f"args[{i}]" for i in kept]
    locations = [state.locations.named(n) for n in names]
    function = _create_main(in_types, out_types, state.ip)
    splits = Splits(state, jaxpr, device_assignment)
    block = function.regions[0].blocks.append(*in_types, arg_locs=locations)
    given = list(block.arguments)
    index = given.pop(0) if several else None
    arguments = given[len(ordered) :]
    hoisted = {
        id(value): argument for (value, _), argument in zip(constants, arguments, strict=False)
    }
    if several:
        hoisted[id(INDEX)] = index
    builder = Builder(state, ir.InsertionPoint(block), (f"{wrapper}({name})",), hoisted)
    builder.take_tokens(ordered, given)
    values: list[Any] = [None] * len(jaxpr.invars)
    for position, argument in zip(kept, arguments[len(constants) :], strict=True):
        values[position] = argument
    outputs = builder.inline(jaxpr, program.consts, values)
    outputs = [*builder.tokens_of(ordered), *outputs]
    Operation.create("func.return", (), outputs, loc=types.unknown, ip=builder.ip)

    donation = _set_argument_attributes(
        function, jaxpr, kept, several, len(ordered), len(constants), donated, splits
    )
    if result_paths or ordered or splits.outputs:
        paths = result_paths or [""] * len(jaxpr.outvars)
        function.attributes["res_attrs"] = _result_attributes(len(ordered), paths, splits)
    _verify(ir_module, module_name)
    placed = wanted.placed() if wanted else None
    return Module(
        ir_module=ir_module,
        name=module_name,
        const_args=constants,
        kept=kept,
        donation=donation,
        callbacks=state.callbacks,
        ordered=ordered,
        fences=placed,
        has_barriers=state.has_barriers,
        keepalives=state.keepalives,
    )


def symbol_name(name: str) -> str:
    """A function's name as part of a symbol: `<lambda>` becomes `_lambda`."""
    return re.sub(r"[^\w.-]", "", name.replace("<", "_")) or "unnamed"


def _create_main(in_types: list[Any], out_types: list[Any], ip: Any) -> Any:
    function_type = ir.FunctionType.get(in_types, out_types, context=context)
    return Operation.create(
        "func.func",
        attributes={
            "sym_name": types.string("main"),
            "sym_visibility": types.string("public"),
            "function_type": ir.TypeAttr.get(function_type, context=context),
        },
        regions=1,
        loc=types.unknown,
        ip=ip,
    )


def _holds_backward_only(jaxpr: Jaxpr) -> bool:
    """Return whether a program has an operation that cannot be lowered, at any depth."""
    return any(equation.primitive is custom_lin_p for equation in live_equations(jaxpr)) or any(
        map(_holds_backward_only, subjaxprs(jaxpr))
    )


def _used_inputs(program: ClosedJaxpr) -> tuple[int, ...]:
    jaxpr = program.jaxpr
    used = variables_read(live_equations(jaxpr), jaxpr.outvars)
    return tuple(i for i, var in enumerate(jaxpr.invars) if var in used)


class Splits:
    """How the inputs and outputs of a program are split; empty where nothing is said."""

    __slots__ = ("_state", "_declared", "inputs", "outputs")

    def __init__(self, state: ModuleState, jaxpr: Any, device_assignment: Any):
        self._state = state
        self._declared: Any = None
        self.inputs = self.outputs = {}
        if device_assignment is not None:
            declared = (
                device_assignment.inputs,
                device_assignment.outputs or (None,) * len(jaxpr.outvars),
            )
            self._declared = declared
            self.inputs = self._attributes(declared[0], jaxpr.invars)
            self.outputs = self._attributes(declared[1], jaxpr.outvars)

    def _attributes(self, shardings: Sequence[Any], atoms: Sequence[Any]) -> dict[int, Any]:
        pairs = zip(shardings, atoms, strict=True)
        return {
            i: sharding_attribute(self._state, sharding, atom.aval)
            for i, (sharding, atom) in enumerate(pairs)
            if sharding is not None
        }

    def alike(self, place: int, output: int) -> bool:
        """Whether an input is sure to be split as an output, so that they may share a buffer."""
        if self._declared is None:
            return True
        inputs, outputs = self._declared
        return inputs[place] is not None and inputs[place] == outputs[output]


def _set_argument_attributes(
    function: Any,
    jaxpr: Any,
    kept: tuple[int, ...],
    several: bool,
    tokens: int,
    constants: int,
    donated: Sequence[bool] | None,
    splits: Splits,
) -> tuple[tuple[int, ...], list[str]]:
    """Mark the arguments of main that say the platform, are tokens, are split, and are donated.

    Each donated input is given an output of its shape and dtype to share a buffer with. One that
    fits no output is marked as a donor: XLA may use it for temporaries.

    Returns:
      The positions of the donated inputs, and the types of those that fit no output.
    """
    donates = bool(donated) and any(donated)
    donation: tuple[tuple[int, ...], list[str]] = (), []
    if not donates and not tokens and not several and not splits.inputs:
        return donation
    attributes: list[dict[str, Any]] = [_is_token() for _ in range(tokens)]
    if several:
        attributes.insert(0, {"jax.global_constant": types.string("_platform_index")})
    attributes += [{} for _ in range(constants)]
    inputs: list[dict[str, Any]] = [{} for _ in kept]
    if donates:
        donation = _alias_donated(inputs, jaxpr, kept, tokens, donated, splits)
    for attribute, index in zip(inputs, kept, strict=True):
        if index in splits.inputs:
            attribute["sdy.sharding"] = splits.inputs[index]
    function.attributes["arg_attrs"] = _dictionaries([*attributes, *inputs])
    return donation


def _is_token() -> dict[str, Any]:
    return {"jax.token": types.boolean(True)}


def _dictionaries(given: Sequence[dict[str, Any]]) -> Any:
    attributes = [ir.DictAttr.get(each, context=context) for each in given]
    return ir.ArrayAttr.get(attributes, context=context)


def _alias_donated(
    attributes: list[dict[str, Any]],
    jaxpr: Any,
    kept: tuple[int, ...],
    tokens: int,
    donated: Any,
    splits: Splits,
) -> tuple[tuple[int, ...], list[str]]:
    free: dict[Any, list[int]] = {}
    for i, aval in enumerate(jaxpr.out_avals):
        if not isinstance(aval, AbstractToken):
            free.setdefault((aval.shape, aval.dtype), []).append(i)
    unusable: list[str] = []
    for position, index in enumerate(kept):
        if not donated[index]:
            continue
        aval = jaxpr.invars[index].aval
        if isinstance(aval, AbstractToken):
            continue
        outputs = free.get((aval.shape, aval.dtype))
        alike = next((i for i in outputs or () if splits.alike(index, i)), None)
        if outputs and alike is not None:
            outputs.remove(alike)
            attributes[position]["tf.aliasing_output"] = types.i32(tokens + alike)
            continue
        attributes[position]["jax.buffer_donor"] = types.boolean(True)
        if outputs:  # XLA finds out whether they are split alike.
            outputs.pop(0)
        else:
            unusable.append(aval.str_short())
    return tuple(i for i in kept if donated[i]), unusable


def _result_attributes(tokens: int, paths: Sequence[str], splits: Splits) -> Any:
    infos: list[dict[str, Any]] = [
        {"jax.result_info": types.string(path)} if path else {} for path in paths
    ]
    for place, attribute in splits.outputs.items():
        infos[place]["sdy.sharding"] = attribute
    return _dictionaries([_is_token() for _ in range(tokens)] + infos)


def _verify(ir_module: Any, name: str) -> None:
    # XLA ends the process on some invalid modules, so none may reach it.
    try:
        valid = ir_module.operation.verify()
        reason = ""
    except ir.MLIRError as error:
        valid, reason = False, str(error)
    if not valid:
        raise VerificationError(
            f"the module {name} is not valid StableHLO: a lowering rule is wrong.\n{reason}"
        )
