"""XLA's frontend attributes of operations: named texts that passes and plugins read."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hlofront.bridge.mlir import context, ir

_NAME = "mhlo.frontend_attributes"


@contextmanager
def marked(block: ir.Block, attributes: dict[str, str]) -> Generator[None, None, None]:
    """Add frontend attributes to the operations that are emitted at the end of an MLIR block.

    Operations in their regions get them too. Existing attributes are kept; constants get none,
    because operations share them.
    """
    before = len(block.operations)
    yield
    for operation in list(block.operations)[before:]:
        _add_to_all(operation.operation, attributes)


def _add_to_all(operation: ir.Operation, attributes: dict[str, str]) -> None:
    if operation.name not in ("stablehlo.constant", "stablehlo.return"):
        add(operation, attributes)
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                _add_to_all(inner.operation, attributes)


def add(operation: ir.Operation, attributes: dict[str, str]) -> None:
    """Add frontend attributes to an operation, without changing those that it has already."""
    merged: dict[str, ir.Attribute] = {
        name: ir.StringAttr.get(value, context=context) for name, value in attributes.items()
    }
    present: Any = operation.attributes
    if _NAME in present:
        merged.update({entry.name: entry.attr for entry in present[_NAME]})
    present[_NAME] = ir.DictAttr.get(merged, context=context)
