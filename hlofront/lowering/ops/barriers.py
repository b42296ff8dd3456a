"""Lowering rules of optimization barriers and tokens."""

from hlofront.bridge.mlir import Value, Values
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.calls import barriers as b


@lower(b.optimization_barrier_p)
def _(build: Builder, *operands: Value) -> Value | Values:
    if not operands:
        return []
    return build.barrier(operands, build.avals_out)


@lower(b.create_token_p)
def _(build: Builder) -> Value | Values:
    return build.op("stablehlo.create_token", ())


@lower(b.after_all_p)
def _(build: Builder, *tokens: Value) -> Value | Values:
    return build.op("stablehlo.after_all", tokens)


@lower(b.dce_sink_p)
def _(build: Builder, x: Value, *, prevent_mlir_dce: bool) -> Value | Values:
    if prevent_mlir_dce:
        build.ops(
            "stablehlo.custom_call",
            (x,),
            (),
            call_target_name=types.string("dce_sink"),
            # XLA registers the handler under its typed FFI, which is version 4 of the custom call
            # API.
            api_version=types.i32(4),
            backend_config=types.attribute("{}"),
            has_side_effect=types.boolean(True),
        )
    return []
