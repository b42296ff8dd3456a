"""Lowering rules of callbacks: calls of host functions by index, or transfers."""

# Callbacks take arguments of any type.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.tree import PyTreeDef
from hlofront.bridge.client import HloSharding
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, token_aval
from hlofront.core.effects import Effect, OwnEffect
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.extended import physical
from hlofront.lowering.core.host_call import Channel, Channels, HostCall
from hlofront.lowering.core.mesh_attributes import on_first_device
from hlofront.lowering.core.module_state import ModuleState
from hlofront.lowering.extension.rules import LoweringRuleContext, builder_here
from hlofront.lowering.ops.ffi import operand_aliases
from hlofront.primitives.calls import callbacks as c
from hlofront.primitives.calls.buffer_callback import buffer_callback_p, on_buffers
from hlofront.primitives.calls.ffi import Aliases

# A user's function of arrays that returns flat results.
HostFunction = Callable[..., Sequence[object]]

_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}
# Custom call targets for calls that each device makes with its own shards.
_PARTITIONED = {
    "cpu": "xla_ffi_partitioned_python_cpu_callback",
    "cuda": "xla_ffi_partitioned_python_gpu_callback",
    "rocm": "xla_ffi_partitioned_python_gpu_callback",
}
# Custom call targets for buffer callbacks, and the suffix for those that GPUs may record.
_OF_BUFFERS = {
    "cpu": "xla_buffer_python_cpu_callback",
    "cuda": "xla_buffer_python_gpu_callback",
    "rocm": "xla_buffer_python_gpu_callback",
}
_RECORDED = "_cmd_buffer"
# Avals of the arrays that are sent without operands, and received without results.
_NOTHING_SENT = ShapedArray((1,), np.dtype(np.float32))
_NOTHING_RECEIVED = ShapedArray((), np.dtype(np.float32))


@lower(c.pure_callback_p)
def _(build: Builder, *operands: Value, callback: HostFunction, **_: object) -> list[Value]:
    return call_host(build, callback, operands, side_effect=False)


@lower(c.io_callback_p)
def _(
    build: Builder, *operands: Value, callback: HostFunction, ordered: bool, **_: object
) -> list[Value]:
    return call_host(build, callback, operands, c.ordered_io_effect if ordered else None)


@lower(c.debug_callback_p)
def _(
    build: Builder,
    *operands: Value,
    callback: HostFunction,
    effect: Effect,
    partitioned: bool,
) -> list[Value]:
    return call_host(build, callback, operands, effect if effect.ordered else None, partitioned)


@lower(c.debug_print_p)
def _(
    build: Builder, *operands: Value, ordered: bool, partitioned: bool, **params: object
) -> list[Value]:
    callback = partial(c.print_now, **params)
    effect = c.ordered_debug_effect if ordered else None
    return call_host(build, callback, operands, effect, partitioned)


@lower(buffer_callback_p)
def _(
    build: Builder,
    *operands: Value,
    callback: Callable[..., None],
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    has_side_effect: bool,
    input_output_aliases: Aliases,
    command_buffer_compatible: bool,
    **_: object,
) -> list[Value]:
    module, name = build.module, build.primitive.name
    if len(module.platforms) > 1:
        raise NotImplementedError(  # JAX raises this class.
            f"multi-platform lowering for {name}: a program that calls Python functions is lowered "
            f"for one platform at a time, not for {', '.join(module.platforms)}"
        )
    target = _OF_BUFFERS.get(module.platform)
    if target is None:
        raise ValueError(
            f"`{name}` not supported on {module.platform} backend: it is available on "
            f"{', '.join(sorted(_OF_BUFFERS))}"
        )
    if command_buffer_compatible and module.platform != "cpu":
        target += _RECORDED
    number = len(module.callbacks)
    function = partial(on_buffers, callback, in_tree, out_tree)
    avals_in, avals_out = list(build.avals_in), list(build.avals_out)
    call = HostCall(name, function, avals_in, avals_out, ordered=False, takes_buffers=True)
    module.callbacks.append(call)
    return build.ops(
        "stablehlo.custom_call",
        operands,
        build.avals_out,
        call_target_name=types.string(target),
        api_version=types.i32(4),
        has_side_effect=types.boolean(has_side_effect),
        backend_config=types.attribute(f"{{index = {number} : ui64}}"),
        operand_layouts=_layouts(avals_in),
        result_layouts=_layouts(avals_out),
        output_operand_aliases=operand_aliases(input_output_aliases, len(avals_out)),
    )


def call_host(
    build: Builder,
    function: HostFunction,
    operands: Values,
    effect: Effect | None = None,
    partitioned: bool = False,
    side_effect: bool = True,
    sharding: Mapping[str, ir.Attribute] | None = None,
    takes_numpy: bool = False,
) -> list[Value]:
    """Emit the call of a host function, and return its results.

    Args:
      effect: the ordered effect whose token the call takes and returns; None if it is unordered.
      partitioned: whether each device makes the call with its own shards.
      side_effect: whether XLA must not remove the call.
      sharding: the attributes that say which devices make the call; by default the first one.
      takes_numpy: whether the function takes NumPy arrays.

    Raises:
      NotImplementedError: for several platforms, or a partitioned call on TPUs.
      ValueError: if the platform has no host callbacks.
    """
    name = build.primitive.name
    if len(build.module.platforms) > 1:
        raise NotImplementedError(  # JAX raises this class.
            f"multi-platform lowering for {name}: a program that calls Python functions is lowered "
            f"for one platform at a time, not for {', '.join(build.module.platforms)}"
        )
    platform = build.module.platform
    if platform == "tpu" and not partitioned:
        return _transfer(build, function, operands, effect)
    if platform == "tpu":
        raise NotImplementedError(  # JAX raises this class.
            f"{name}: TPUs call no function with each device's own part: leave out partitioned=True"
        )
    targets = _PARTITIONED if partitioned else _TARGETS
    if platform not in targets:
        raise ValueError(
            f"{name}: programs on {platform} cannot call Python functions; those on "
            f"{', '.join((*sorted(_TARGETS), 'tpu'))} can"
        )
    ordered = () if effect is None else (effect,)
    avals_in = [physical(aval).strip_weak_type() for aval in build.avals_in]
    avals_out = [physical(aval).strip_weak_type() for aval in build.avals_out]
    module = build.module
    number = len(module.callbacks)
    call = HostCall(name, function, avals_in, avals_out, bool(ordered), takes_numpy=takes_numpy)
    module.callbacks.append(call)
    tokens = [token_aval] * len(ordered)
    results_of = [*tokens, *avals_out]
    if sharding is None:
        sharding = _sharding(module, len(results_of), effect, partitioned)
    results = build.ops(
        "stablehlo.custom_call",
        [*build.tokens_of(ordered), *operands],
        results_of,
        call_target_name=types.string(targets[platform]),
        api_version=types.i32(4),
        has_side_effect=types.boolean(side_effect),
        backend_config=types.attribute(f"{{index = {number} : ui64}}"),
        operand_layouts=_layouts([*tokens, *avals_in]),
        result_layouts=_layouts(results_of),
        **sharding,
    )
    return build.take_tokens(ordered, results)


class _CallbackOrder(OwnEffect):
    """The order of callbacks between which another package's rule passes a token."""

    __slots__ = ()
    ordered = True


_callback_order = _CallbackOrder()


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: HostFunction,
    token: Value | None,
    operands: Values,
    operand_avals: Avals,
    result_avals: Avals,
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: object = None,
) -> tuple[list[Value], Value | None, HostCall]:
    """Emit the call of a Python function at the ambient insertion point, for lowering rules.

    Args:
      ctx: the context of the rule.
      callback: takes the operands as arrays, and returns a sequence with an array per result.
      token: the token of the previous operation; None for an unordered call.
      operands: the operands.
      operand_avals: their avals.
      result_avals: the avals of the results.
      has_side_effect: whether XLA must not remove the call.
      returns_token: whether to return the token after the call.
      partitioned: whether each device makes the call, with its own part of the operands.
      sharding: an OpSharding of XLA, or an attribute of Shardy, that says which devices make the
        call; None for the first device.

    Returns:
      The results, the token or None, and the object that the executable keeps alive anyway.
    """
    build = builder_here(ctx)
    before = build.avals_in, build.avals_out
    build.avals_in, build.avals_out = operand_avals, result_avals
    if token is not None:
        build.tokens[_callback_order] = token
    order = None if token is None else _callback_order
    try:
        described = None if sharding is None else _described(sharding)
        results = call_host(
            build, callback, operands, order, partitioned, has_side_effect, described
        )
        after = build.tokens.get(_callback_order) if returns_token else None
    finally:
        build.avals_in, build.avals_out = before
        build.tokens.pop(_callback_order, None)
    return results, after, build.module.callbacks[-1]


def _transfer(
    build: Builder, function: HostFunction, operands: Values, effect: Effect | None
) -> list[Value]:
    """Emit a send to the host per operand, and then a receive per result."""
    avals_in = [physical(aval).strip_weak_type() for aval in build.avals_in]
    avals_out = [physical(aval).strip_weak_type() for aval in build.avals_out]
    sent = list(zip(operands, avals_in, strict=True))
    if not sent:
        sent = [(build.full(0, _NOTHING_SENT), _NOTHING_SENT)]
    received = [aval for aval in avals_out if aval.size] if avals_out else [_NOTHING_RECEIVED]
    callbacks = build.module.callbacks
    start = 1 + sum(len(ids) for call in callbacks for ids in call.channels or ())
    outgoing = [Channel(start + i, aval) for i, (_, aval) in enumerate(sent)]
    incoming = [Channel(start + len(sent) + i, aval) for i, aval in enumerate(received)]
    name, channels = build.primitive.name, Channels(outgoing, incoming)
    callbacks.append(HostCall(name, function, avals_in, avals_out, effect is not None, channels))
    # Each transfer waits for the previous one.
    token = build.tokens[effect] if effect else build.op("stablehlo.create_token", (), token_aval)
    for (number, _), (value, _) in zip(outgoing, sent, strict=True):
        attributes = {**_channel(number, 2), **_sharding(build.module, 1, effect)}
        token = build.op("stablehlo.send", (value, token), token_aval, **attributes)
    values: list[Value] = []
    for number, aval in incoming:
        attributes = {**_channel(number, 3), **_sharding(build.module, 2, effect)}
        value, token = build.ops("stablehlo.recv", (token,), (aval, token_aval), **attributes)
        values.append(value)
    if effect:
        build.tokens[effect] = token
    arrived = iter(values)
    return [next(arrived) if aval.size else build.full(0, aval) for aval in avals_out]


def _sharding(
    module: ModuleState, results: int, effect: Effect | None, partitioned: bool = False
) -> dict[str, ir.Attribute]:
    """Return the attribute for the devices that make a host call: the first, or all if partitioned.

    Partitioned calls receive their device's shards. Programs with ordered calls run on one device.
    """
    if module.several_devices and not partitioned:
        return on_first_device(module, results)
    if module.platform == "cpu" or effect is not None:
        return {}
    each = "{replicated}" if partitioned else "{maximal device=0}"
    text = each if results < 2 else f"{{{', '.join([each] * results)}}}"
    return {"mhlo.sharding": types.string(text)}


def _described(sharding: Any) -> dict[str, ir.Attribute]:
    """Return the attribute of an operation with this sharding."""
    if isinstance(sharding, ir.Attribute):
        return {"sdy.sharding": sharding}
    if hasattr(sharding, "build"):
        return {"sdy.sharding": sharding.build()}
    return {"mhlo.sharding": types.string(str(HloSharding.from_proto(sharding)))}


def _channel(number: int, kind: int) -> dict[str, ir.Attribute]:
    """Return the attributes of a host transfer: `kind` is 2 to send to the host, 3 to receive."""
    return {
        "channel_handle": types.attribute(
            f"#stablehlo.channel_handle<handle = {number}, type = {kind}>"
        ),
        "is_host_transfer": types.boolean(True),
        "mhlo.frontend_attributes": types.attribute(
            '{_xla_host_transfer_handler_name = "pjrt_rendezvous", '
            f'_xla_host_transfer_rendezvous = "{number}"}}'
        ),
    }


def _layouts(avals: Sequence[AbstractValue]) -> ir.Attribute:
    """Return the row-major layouts of arrays, which host functions expect."""
    return types.attribute(f"[{', '.join(_row_major(getattr(a, 'ndim', 0)) for a in avals)}]")


def _row_major(rank: int) -> str:
    body = f"[{', '.join(map(str, reversed(range(rank))))}]" if rank else ""
    return f"dense<{body}> : tensor<{rank}xindex>"
