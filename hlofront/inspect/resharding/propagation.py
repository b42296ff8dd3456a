"""How Shardy splits each value of a program: read from XLA's dump after its propagation."""

import pathlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hlofront.base.source import user_frame
from hlofront.bridge.client import is_absent
from hlofront.bridge.mlir import Value, context, ir
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.names import path_of
from hlofront.lowering.core.frontend_attributes import add
from hlofront.lowering.module import Module
from hlofront.lowering.rules import lower_program
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.compile import compile_module, compile_options, mlir_lock
from hlofront.runtime.compilation.aot_targets import compile_absent
from hlofront.runtime.compilation.host_calls import HostFailures, host_function
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.partitioning import partition_of

# XLA keeps frontend attributes of operations, on CPUs too, where Shardy's dumps have no locations.
_MARK = "hlofront.equation"
_DUMPED = {"xla_dump_hlo_pass_re": "shardy.*", "xla_dump_hlo_as_text": True}
MANUAL = "sdy.manual_computation"
CONSTRAINTS = ("sdy.reshard", "sdy.sharding_constraint")
_AXES = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
_MESH_AXIS = re.compile(r'"([^"]+)"=(\d+)')
_SPLITS = re.compile(r"<@\w+, (\[[^<>]*?\])(?:, [a-z]+=[^<>]*)?>")
_MAPPINGS = re.compile(r"\[([^\[\]]*)\]")
_FACTOR = re.compile(r"[a-z](?:_\d+)?")
_FACTOR_SIZE = re.compile(r"([a-z](?:_\d+)?)=(\d+)")
_WHOLE = re.compile(r"need_replication=\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Origin:
    """The operation of the user's program to which a value, or a use of one, belongs."""

    name: str
    path: str
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class AxisSplit:
    """The mesh axes that split each dimension of an array; no axes where it is whole."""

    axes: tuple[tuple[str, ...], ...]

    def all_axes(self) -> frozenset[str]:
        """Return the axes that split any dimension."""
        return frozenset(axis for axes in self.axes for axis in axes)

    def __str__(self) -> str:
        def entry(axes: tuple[str, ...]) -> str:
            return "None" if not axes else repr(axes[0] if len(axes) == 1 else axes)

        return f"P({', '.join(map(entry, self.axes))})"


@dataclass(slots=True)
class Propagated:
    """A program after Shardy has chosen how each value is split.

    Attributes:
      mesh: the sizes of the mesh axes, by name.
      module: the module, which the operations belong to.
      arguments: the names of the arguments.
      origins: the operations of the user's program, by the numbers in marks.
      constraints: the numbers of sharding constraints, by `place_of` their values, and of calls
        of shard_map, by `place_of_call`.
    """

    mesh: dict[str, int]
    module: ir.Module
    arguments: tuple[str, ...]
    origins: list[Origin]
    constraints: dict[object, int]


# ---- lowering with marks, and compiling with dumps -----------------------------------------------


class MarkedProgram:
    """A program for several devices, each of whose operations is marked with its equation.

    Args:
      program: the program.
      name: the name of the traced function.
      where: the devices.
    """

    def __init__(self, program: ClosedJaxpr, name: str, where: DeviceAssignment):
        self.program, self.name, self.where = program, name, where
        self.origins: list[Origin] = []
        info = program.debug_info
        names = (info and info.arg_names) or ()
        count = len(program.in_avals)
        names = [names[i] if i < len(names) else f"args[{i}]" for i in range(count)]
        request = LoweringRequest(
            self.name,
            lowering_platform(where.device),
            device_assignment=where,
            keep_unused=True,
        )
        self.module: Module = lower_program(
            program, request, arg_names=names, after_equation=self._mark
        )
        self.arguments = tuple(names)
        self.chosen_outputs = where.chosen_outputs(program)

    def _mark(self, build: Any, equation: Equation, values: Mapping[Any, Any]) -> None:
        number = str(len(self.origins))
        frame = user_frame(equation.traceback)
        file, line = (None, None) if frame is None else (frame.file, frame.line)
        path = path_of(equation.name_stack) if equation.name_stack else ""
        self.origins.append(Origin(equation.primitive.name, path, file, line))
        for var in equation.outvars:
            value = values.get(var)
            if isinstance(value, ir.OpResult):
                add(value.owner, {_MARK: number})

    def compile(self, overrides: Mapping[str, object]) -> Any:
        """Compile the module as it is now, with options of XLA; return its executable."""
        where = self.where
        if is_absent(where.device):
            options = dict(overrides)
            return compile_absent(self.program, self.name, self.module, where, options)
        options = compile_options(where.devices, overrides, chosen_outputs=self.chosen_outputs)
        client = where.device.client
        return compile_module(
            client,
            self.module.ir_module,
            where.devices,
            options,
            [host_function(call, client, HostFailures()) for call in self.module.callbacks],
            partition_of(self.module, where),
        )

    def propagated(self) -> tuple[Propagated, str]:
        """Compile the module; return the splits that Shardy chose, and the HLO.

        Raises:
          JaxRuntimeError: if XLA refuses the program.
          ValueError: if this jaxlib or plugin does not dump Shardy's module.
        """
        with tempfile.TemporaryDirectory(prefix="hlofront_") as folder:
            executable = self.compile({**_DUMPED, "xla_dump_to": folder})
            hlo = "\n\n".join(module.to_string() for module in executable.hlo_modules())
            dumps = sorted(pathlib.Path(folder).glob("shardy/*/*.mlir"))
            texts = {path.stem.partition(".")[2]: path.read_text("utf-8") for path in dumps}
        if "after_propagation" not in texts:
            raise ValueError("XLA's compiler did not dump how Shardy splits the program")
        with mlir_lock:
            after = ir.Module.parse(texts["after_propagation"], context)
        constraints: dict[object, int] = {}
        for operation in operations_of(self.module.ir_module.operation):
            mark = mark_of(operation)
            if mark is not None and operation.name in CONSTRAINTS:
                constraints.setdefault(place_of(operation.results[0]), mark)
            if mark is not None and operation.name == MANUAL:
                constraints.setdefault(place_of_call(operation), mark)
        mesh = _mesh_of(after)
        return Propagated(mesh, after, self.arguments, self.origins, constraints), hlo


def main_of(module: ir.Module) -> ir.Operation:
    """Return the main function of a program."""
    for operation in module.body.operations:
        found = operation.operation
        if (
            found.name == "func.func"
            and ir.StringAttr(found.attributes["sym_name"]).value == "main"
        ):
            return found
    raise ValueError("the module has no function main")


def operations_of(operation: ir.Operation) -> Iterator[ir.Operation]:
    """Return the operations in the regions of an operation, in order, at all depths."""
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.operation
                yield from operations_of(each.operation)


def place_of(value: Value) -> object:
    """Return what identifies a value before and after XLA's passes, if its origin is marked.

    Constraints lose their marks in XLA, and are recognized by the values that they constrain.
    """
    if isinstance(value, ir.BlockArgument):
        owner = value.owner.owner
        return "argument", mark_of(owner), value.arg_number
    result = ir.OpResult(value)
    operation = result.owner
    if operation.name in CONSTRAINTS:
        return "constraint", place_of(operation.operands[0])
    return mark_of(operation), result.result_number


def place_of_call(operation: ir.Operation) -> object:
    """Return what identifies a call of shard_map, which loses its mark as constraints do."""
    places: list[object] = []
    for operand in operation.operands:
        value = operand
        while not isinstance(value, ir.BlockArgument):
            maker = ir.OpResult(value).owner
            if maker.name not in CONSTRAINTS:
                break
            value = maker.operands[0]
        places.append(place_of(value))
    return "call", tuple(places)


def mark_of(operation: ir.Operation) -> int | None:
    """Return the number of the equation that an operation is marked with."""
    attributes = operation.attributes
    if "mhlo.frontend_attributes" not in attributes:
        return None
    found = re.search(rf'{re.escape(_MARK)} = "(\d+)"', str(attributes["mhlo.frontend_attributes"]))
    return int(found[1]) if found else None


def _mesh_of(module: ir.Module) -> dict[str, int]:
    """Return the sizes of the axes of a module's meshes, by name."""
    meshes = (each.operation for each in module.body.operations)
    texts = (str(each.attributes["mesh"]) for each in meshes if each.name == "sdy.mesh")
    return {name: int(size) for text in texts for name, size in _MESH_AXIS.findall(text)}


# ---- attributes of Shardy ------------------------------------------------------------------------


def splits_in(attribute: object) -> list[AxisSplit]:
    """Return the splits in a sharding attribute of one or several values."""
    return [
        _split(body)
        for body in re.findall(r"<@\w+, (\[[^<>]*?\])(?:, [a-z]+=\S+)*>", str(attribute))
    ]


def _split(text: str) -> AxisSplit:
    """Parse a split such as "[{"x"}, {"y":(1)2, ?}]"."""
    dimensions = re.findall(r"\{([^{}]*)\}", text)
    return AxisSplit(
        tuple(tuple(name + part for name, part in _AXES.findall(each)) for each in dimensions)
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """The factors of an operation's iteration space that each dimension of its values has.

    "([i, k], [k, j])->([i, j])" is the rule of a matrix product. Factors in `whole` are never
    split, such as the axis of a Fourier transform.
    """

    operands: tuple[tuple[tuple[str, ...], ...], ...]
    results: tuple[tuple[tuple[str, ...], ...], ...]
    sizes: dict[str, int]
    whole: frozenset[str]


def rule_of(operation: ir.Operation) -> Rule | None:
    """Return an operation's rule, which Shardy's dump has."""
    if "sdy.sharding_rule" not in operation.attributes:
        return None
    text = str(operation.attributes["sdy.sharding_rule"])
    before, _, after = text.partition("->")
    results, _, sizes = after.partition(" {")
    whole = _WHOLE.search(sizes)
    return Rule(
        _dimensions(before),
        _dimensions(results),
        {name: int(size) for name, size in _FACTOR_SIZE.findall(sizes)},
        frozenset(_FACTOR.findall(whole[1]) if whole else ()),
    )


def _dimensions(text: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    return tuple(
        tuple(tuple(_FACTOR.findall(each)) for each in mapping.split(","))
        if mapping.strip()
        else ()
        for mapping in _MAPPINGS.findall(text)
    )
