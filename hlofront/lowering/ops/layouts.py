"""Lowering rules of primitives for the order of elements in memory."""

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.extended import physical
from hlofront.primitives.sharding.layouts import MemoryOrder, layout_constraint_p


@lower(layout_constraint_p)
def _(build: Builder, x: Value, *, layout: MemoryOrder) -> Value:
    rank, stored_rank = build.avals_in[0].ndim, physical(build.avals_in[0]).ndim
    # The axes of the elements' storage, such as those of random keys, come last in the default
    # order.
    order = (*layout.major_to_minor, *range(rank, stored_rank))
    body = f"[{', '.join(map(str, order[::-1]))}]" if order else ""
    layouts = types.attribute(f"[dense<{body}> : tensor<{stored_rank}xindex>]")
    return build.op(
        "stablehlo.custom_call",
        (x,),
        call_target_name=types.string("LayoutConstraint"),
        operand_layouts=layouts,
        result_layouts=layouts,
    )
