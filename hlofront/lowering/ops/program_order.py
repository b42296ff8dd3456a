"""The lowering rule of programs whose operations keep their order."""

from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order.program_order import in_order, program_order_p
from hlofront.lowering.core.builder import Builder


@lower(program_order_p)
def _(
    build: Builder,
    *args: Value,
    call_jaxpr: ClosedJaxpr,
    enforce: bool,
    strict_in: bool,
    strict_out: bool,
    exclude_mask: tuple[bool, ...],
) -> list[Value]:
    program = in_order(call_jaxpr, strict_in, strict_out) if enforce else call_jaxpr
    return build.inline_closed(program, args, "program_order")
