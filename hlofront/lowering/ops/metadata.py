"""Lowering rules of operations that carry frontend attributes."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence

from hlofront.bridge.mlir import Value, Values, context, ir
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order.metadata_calls import compute_on_p, xla_metadata_call_p
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.frontend_attributes import add
from hlofront.primitives.calls.metadata import (
    compute_attributes,
    metadata_text,
    xla_metadata_value_p,
)


@lower(xla_metadata_value_p)
def _(build: Builder, x: Value, *, xla_metadata_kvs: Sequence[tuple[str, object]]) -> Value:
    owner: ir.OpView | ir.Block = x.owner
    # An argument of the function or of a region has no operation to annotate.
    if not isinstance(owner, ir.Block) and xla_metadata_kvs:
        add(owner.operation, metadata_text(xla_metadata_kvs))
    return x


def _call(
    build: Builder, program: ClosedJaxpr, args: Values, attributes: dict[str, str]
) -> list[Value]:
    values: dict[str, ir.Attribute] = {
        name: ir.StringAttr.get(text, context=context) for name, text in attributes.items()
    }
    metadata = {"mhlo.frontend_attributes": ir.DictAttr.get(values, context=context)}
    return build.call(program, build.primitive.name, args, **metadata)


@lower(xla_metadata_call_p)
def _(build: Builder, *args: Value, jaxpr: ClosedJaxpr, **meta: str) -> list[Value]:
    return _call(build, jaxpr, args, meta)


@lower(compute_on_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    compute_type: str,
    compiler_options_json: str | None,
) -> list[Value]:
    attributes = compute_attributes(compute_type)
    if compiler_options_json is not None:
        attributes["backend_config"] = compiler_options_json
    return _call(build, jaxpr, args, attributes)
