"""The check of an untrusted module: which operations it has, and which functions they call.

Some operations are replaced with which XLA's code for CPUs would abort the process that runs it.

This file imports nothing of hlofront except its neighbor: workers load both by their paths.
"""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

from jaxlib.mlir import ir

try:
    from custom_call_checks import CustomCallError, check_custom_call
except ImportError:  # Not in a worker.
    from hlofront.bridge.custom_call_checks import CustomCallError, check_custom_call

_stablehlo: Any = import_module("jaxlib.mlir._mlir_libs._stablehlo")
_DIALECTS = frozenset({"builtin", "func", "stablehlo", "chlo", "sdy"})
# Operations that wait for the host or write to it, which exported programs do not have.
_WITH_THE_HOST = frozenset(f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv"))
# The attributes of functions that the parent process reads in Python.
_READ_ELSEWHERE = ("sym_name", "arg_attrs", "res_attrs")
# The attributes in which collectives name devices, by number.
_DEVICE_NUMBERS = ("replica_groups", "source_target_pairs")
_CUSTOM_CALL = "stablehlo.custom_call"
_CONVOLUTION = "stablehlo.convolution"
# The maximum number of operations once all functions are inlined, as XLA does.
_MAX_OPERATIONS = 20_000_000


def check_module(module: "ir.Module", registered: Collection[str], device_count: int) -> None:
    """Raise ValueError unless an untrusted file may contain a module.

    Sorts become stable: with an inconsistent comparator, others access memory outside the array.
    The inputs of convolutions that pad one end of an axis and cut the other are padded first.

    Args:
      module: the module.
      registered: the names of the functions that the user has registered with XLA.
      device_count: the number of devices for which it was made.
    """
    functions: dict[str, Any] = {}
    for op in module.body.operations:
        operation = op.operation
        if operation.name not in ("func.func", "sdy.mesh"):
            raise ValueError(f"its module has {operation.name} outside of functions")
        name = ir.StringAttr(operation.attributes["sym_name"]).value
        if operation.name == "func.func":
            if not len(operation.regions[0].blocks):
                raise ValueError(f"its function {name!r} has no body")
            functions[name] = operation
    if "main" not in functions:
        raise ValueError("its module has no function main")
    counts = {
        name: _Count(operation, registered, device_count) for name, operation in functions.items()
    }
    _check_size(counts)


def check_custom_calls(module: "ir.Module", registered: Collection[str]) -> None:
    """Check the custom calls of a user's module again after it has included an untrusted one.

    Convolutions are replaced again, too: their padding may have been a value.

    Raises:
      CustomCallError: if the types of one do not fit its target.
    """

    def visited(operation: Any) -> "ir.WalkResult":
        if operation.name == _CUSTOM_CALL:
            errors.extend(_refusals(operation.operation, registered))
        if operation.name == _CONVOLUTION:
            convolutions.append(operation.operation)
        return ir.WalkResult.INTERRUPT if errors else ir.WalkResult.ADVANCE

    errors: list[CustomCallError] = []
    convolutions: list[ir.Operation] = []
    module.operation.walk(visited)
    if errors:
        raise errors[0]
    for operation in convolutions:
        _pad_first(operation)


def _refusals(operation: "ir.Operation", registered: Collection[str]) -> list[CustomCallError]:
    try:
        check_custom_call(operation, registered, others=True)
    except CustomCallError as error:
        return [error]
    return []


def _check_devices(operation: "ir.Operation", name: str, device_count: int) -> None:
    """Raise ValueError if a collective names devices that its program does not have."""
    numbers = operation.attributes[name]
    if isinstance(numbers, ir.DenseIntElementsAttr):
        # Groups of different sizes are filled with -1.
        if any(not -1 <= number < device_count for number in numbers):
            raise ValueError(
                f"its operation {operation.name} has {name} = {str(numbers)[:100]}, and it is for "
                f"{device_count} devices"
            )


def _pad_first(convolution: "ir.Operation") -> None:
    """Pad the input of a convolution by another operation where it pads one end and cuts the other.

    XLA's code for CPUs reads outside of such an axis, or ends the process. It has none for complex
    numbers.
    """
    attributes = convolution.attributes
    if "padding" not in attributes:
        return
    values: Any = ir.DenseIntElementsAttr(attributes["padding"])
    numbers: list[int] = list(values)
    pads = list(zip(numbers[::2], numbers[1::2], strict=True))
    if not any(min(edges) < 0 < max(edges) for edges in pads):
        return
    steps = [1] * len(pads)
    if "lhs_dilation" in attributes:
        steps = list(ir.DenseI64ArrayAttr(attributes["lhs_dilation"]))
    x = convolution.operands[0]
    type_ = ir.RankedTensorType(x.type)
    element = str(type_.element_type)
    if element.startswith("complex"):
        return
    shape = list(type_.shape)
    low, high, interior = [0] * len(shape), [0] * len(shape), [0] * len(shape)
    axes = _stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"]).input_spatial_dimensions
    for axis, (before, after), step in zip(axes, pads, steps, strict=True):
        low[axis], high[axis], interior[axis] = before, after, step - 1
        if not type_.is_dynamic_dim(axis):
            shape[axis] += before + after + max(shape[axis] - 1, 0) * (step - 1)
    if min(shape) < 0 and not any(map(type_.is_dynamic_dim, range(len(shape)))):
        raise ValueError("it has a convolution that cuts more than there is")
    zero_text = "false" if element == "i1" else "0" if re.match("u?i", element) else "0.0"
    place, where = ir.InsertionPoint(convolution), convolution.location
    zero = ir.Operation.create(
        "stablehlo.constant",
        [ir.RankedTensorType.get([], type_.element_type, loc=where)],
        attributes={"value": ir.Attribute.parse(f"dense<{zero_text}> : tensor<{element}>")},
        loc=where,
        ip=place,
    )
    padded = ir.Operation.create(
        "stablehlo.pad",
        [ir.RankedTensorType.get(shape, type_.element_type, loc=where)],
        [x, zero.result],
        {
            "edge_padding_low": ir.DenseI64ArrayAttr.get(low),
            "edge_padding_high": ir.DenseI64ArrayAttr.get(high),
            "interior_padding": ir.DenseI64ArrayAttr.get(interior),
        },
        loc=where,
        ip=place,
    )
    convolution.operands[0] = padded.result
    attributes["lhs_dilation"] = ir.DenseI64ArrayAttr.get([1] * len(pads))
    attributes["padding"] = ir.Attribute.parse(f"dense<0> : tensor<{len(pads)}x2xi64>")


def _read_texts(attribute: Any) -> None:
    """Read the texts in an attribute: invalid UTF-8 aborts the process, which is harmless here."""
    if isinstance(attribute, ir.DictAttr):
        for named in attribute:
            _read_texts(attribute[named.name])
    elif isinstance(attribute, ir.ArrayAttr):
        for member in attribute:
            _read_texts(member)
    elif isinstance(attribute, ir.StringAttr | ir.FlatSymbolRefAttr):
        attribute.value  # noqa: B018


class _Count:
    """The number of operations in a function, and the functions to which these refer.

    Raises:
      ValueError: if an operation is not allowed in an untrusted file.
    """

    def __init__(self, function: "ir.Operation", registered: Collection[str], device_count: int):
        self.operations = 0
        self.callees: dict[str, int] = {}
        waiting = [function]
        while waiting:
            operation = waiting.pop()
            self.operations += 1
            self._check(operation, registered)
            names = list(operation.attributes)
            for name in _READ_ELSEWHERE:
                if name in names:
                    _read_texts(operation.attributes[name])
            for name in _DEVICE_NUMBERS:
                if name in operation.attributes:
                    _check_devices(operation, name, device_count)
            if operation.name == "stablehlo.sort":
                operation.attributes["is_stable"] = ir.BoolAttr.get(True)
            if operation.name == _CONVOLUTION:
                _pad_first(operation)
            for region in operation.regions:
                for block in region.blocks:
                    waiting += [op.operation for op in block.operations]

    def _check(self, operation: "ir.Operation", registered: Collection[str]) -> None:
        name = operation.name
        if name.partition(".")[0] not in _DIALECTS or name in _WITH_THE_HOST:
            raise ValueError(f"its module has the operation {name}, which exported programs lack")
        if name == _CUSTOM_CALL:
            check_custom_call(operation, registered)
        if name == "func.call":
            self._refer(operation.attributes["callee"])
        elif name == _CUSTOM_CALL and "called_computations" in operation.attributes:
            for symbol in ir.ArrayAttr(operation.attributes["called_computations"]):
                self._refer(symbol)
        elif name == "stablehlo.composite":
            self._refer(operation.attributes["decomposition"])

    def _refer(self, symbol: Any) -> None:
        name = ir.FlatSymbolRefAttr(symbol).value
        self.callees[name] = self.callees.get(name, 0) + 1


def _check_size(counts: Mapping[str, _Count]) -> None:
    """Raise ValueError if functions call themselves, or inline to too many operations."""
    totals: dict[str, int] = {}
    # A function is on the path while those that it calls are counted.
    path: dict[str, None] = {}
    waiting = list(counts)
    while waiting:
        name = waiting[-1]
        if name in totals:
            waiting.pop()
            continue
        count = counts.get(name)
        if count is None:
            raise ValueError(f"its module calls a function {name!r} that it does not have")
        missing = [callee for callee in count.callees if callee not in totals]
        if missing:
            path[name] = None
            if any(callee in path for callee in missing):
                raise ValueError(f"its function {name!r} calls itself")
            waiting += missing
            continue
        path.pop(name, None)
        waiting.pop()
        totals[name] = count.operations + sum(
            times * totals[callee] for callee, times in count.callees.items()
        )
    if totals["main"] > _MAX_OPERATIONS:
        raise ValueError(
            f"its functions call each other so often that they are {totals['main']:.1e} operations "
            "when inlined"
        )
