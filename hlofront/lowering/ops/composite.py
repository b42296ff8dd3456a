"""The lowering rule of composite: a named operation with attributes and a decomposition."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.hashable import HashableArray
from hlofront.bridge.mlir import Value, context, ir
from hlofront.core.aval import token_aval
from hlofront.core.effects import ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order.control_flow.platform import composite_p
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder, large_constants
from hlofront.lowering.core.types import NumPyDType


@lower(composite_p)
def _(
    build: Builder,
    *args: Value,
    name: str,
    attributes: Sequence[tuple[str, Sequence[object], Any]],
    version: int,
    jaxpr: ClosedJaxpr,
) -> list[Value]:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"StableHLO does not accept the name {name!r} of a composite op: it requires a "
            'namespace, a dot and a name, as in "my_library.gelu".'
        )
    ordered = ordered_effects(jaxpr.effects)
    constants = build.carried(large_constants(jaxpr))
    symbol = build.define_function(
        (composite_p, jaxpr),
        name,
        jaxpr.in_avals,
        jaxpr.out_avals,
        lambda inner, *xs: inner.inline_closed(jaxpr, xs),
        constants,
        ordered,
    )
    extra = build.values_of(constants)
    unflattened = {key: tree.unflatten(leaves) for key, leaves, tree in attributes}
    # Leave out attributes that are None.
    values = {
        key: _attribute(name, key, value) for key, value in unflattened.items() if value is not None
    }
    fields: dict[str, ir.Attribute] = {"name": types.string(name), "decomposition": symbol}
    if values:
        fields["composite_attributes"] = ir.DictAttr.get(values, context=context)
    if version:
        fields["version"] = types.i32(version)
    operands = [*extra, *build.tokens_of(ordered), *args]
    avals = [*[token_aval] * len(ordered), *build.avals_out]
    operation = build.operation("stablehlo.composite", operands, avals, 0, fields)
    return build.take_tokens(ordered, operation.results)


_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


def _attribute(name: str, key: str, value: object) -> ir.Attribute:
    try:
        return _value(value)
    except TypeError as error:
        raise TypeError(f"attribute {key!r} of the composite op {name!r}: {error}") from error


def _value(value: object) -> ir.Attribute:
    """Return a Python or NumPy value as an MLIR attribute.

    Raises:
      TypeError: if values of this type cannot be attributes; the message lists those that can.
    """
    if isinstance(value, bool | np.bool_):
        return types.boolean(bool(value))
    if isinstance(value, str | bytes):
        return types.string(value.decode() if isinstance(value, bytes) else value)
    if isinstance(value, int):
        return types.i64(value)
    if isinstance(value, np.generic):
        return _number(value.item(), value.dtype)
    if isinstance(value, float):
        return _number(value, np.dtype(np.float64))
    if isinstance(value, HashableArray):
        return types.dense(value.val)
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(types.element_type(value), context=context)
    if isinstance(value, list | tuple):
        return ir.ArrayAttr.get([_value(member) for member in value], context=context)
    if isinstance(value, dict):
        members = {str(key): _value(member) for key, member in value.items()}
        return ir.DictAttr.get(members, context=context)
    raise TypeError(
        f"{value!r} of type {type(value)} cannot be part of a program. Wanted a number, a string, "
        "a NumPy array, a dtype, or lists, tuples and dicts of those."
    )


def _number(value: Any, dtype: NumPyDType) -> ir.Attribute:
    kind = types.element_type(dtype)
    if dtype.kind in "iu":
        return ir.IntegerAttr.get(kind, value)
    if dtype.kind == "c":
        raise TypeError(f"{value!r} is complex, and attributes are not")
    return ir.FloatAttr.get(kind, value, loc=types.unknown)
