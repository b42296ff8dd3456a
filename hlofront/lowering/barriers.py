"""Barriers and tokens as StableHLO."""

from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import barriers as b


@lower(b.optimization_barrier_p)
def _(build, *operands):
    if not operands:
        return []
    return build.barrier(operands, build.avals_out)


@lower(b.create_token_p)
def _(build):
    return build.op("stablehlo.create_token", ())


@lower(b.after_all_p)
def _(build, *tokens):
    return build.op("stablehlo.after_all", tokens)


@lower(b.dce_sink_p)
def _(build, x, *, prevent_mlir_dce):
    if prevent_mlir_dce:
        build.ops(
            "stablehlo.custom_call",
            (x,),
            (),
            call_target_name=types.string("dce_sink"),
            has_side_effect=types.boolean(True),
        )
    return []
