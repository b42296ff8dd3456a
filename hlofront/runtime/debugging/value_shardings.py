"""The shardings of all values of a lowered program: arguments, results and intermediate values."""

# The parts of stages have no public types.
# pyright: basic

from collections.abc import Callable, Mapping
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.source import user_frame
from hlofront.bridge.client import Sharding, is_absent
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Equation
from hlofront.core.lowering_request import LoweringRequest
from hlofront.lowering.ops.partitioning import inspect_value
from hlofront.lowering.rules import lower_program
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.compile import compile_module, compile_options
from hlofront.runtime.compilation.host_calls import HostFailures, host_function
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.partitioning import partition_of
from hlotools.source_lines import short_line


class ValueSharding(NamedTuple):
    """A value of a program and how it is split over devices.

    Attributes:
      name: "argument x", "result", or the name of the operation that computes it.
      aval: the type of the whole value.
      sharding: how it is split.
      file, line: the user's line that computes it; None where it is not known.
      count: the number of such values, if an operation is repeated or called several times.
    """

    name: str
    aval: ShapedArray
    sharding: Sharding
    file: str | None = None
    line: int | None = None
    count: int = 1

    def spec_text(self) -> str:
        """Return the PartitionSpec as text, or XLA's description if there is none."""
        spec = getattr(self.sharding, "spec", None)
        return str(self.sharding) if spec is None else str(spec)

    def shard_text(self) -> str:
        """Return the type of each device's shard, such as "f32[2,2]"."""
        shape = self.sharding.shard_shape(self.aval.shape)
        return ShapedArray(shape, self.aval.dtype).str_short(short_dtypes=True)


def end_shardings(compiled: Compiled) -> list[ValueSharding]:
    """Return the shardings of a compiled program's arguments and results."""
    executable: Any = compiled._executable
    known = executable.shardings
    program = compiled._traced.program
    if known is None:
        return []
    info = program.debug_info
    names = (info and info.arg_names) or ()
    arguments = [
        ValueSharding(f"argument {names[i] if i < len(names) else i}", program.in_avals[i], each)
        for i, each in zip(executable.kept_inputs, known.inputs, strict=True)
    ]
    paths = (info and info.result_paths) or ("result",) * len(program.out_avals)
    results = map(ValueSharding, paths, program.out_avals, known.outputs)
    return [x for x in (*arguments, *results) if isinstance(x.aval, ShapedArray)]


def value_shardings(lowered: Lowered) -> list[ValueSharding]:
    """Return the shardings that XLA chooses for the arrays that a program's operations compute.

    The program is compiled once more, with a call after each operation that shows XLA's choice.
    Scalars are omitted, and programs for one device or for compile-only devices have no entries.

    Raises:
      JaxRuntimeError: if XLA refuses the program.
    """
    where = lowered._where
    if type(where) is not DeviceAssignment or is_absent(where.device):
        return []
    seen: list[ValueSharding] = []

    def keep(equation: Equation, aval: ShapedArray) -> Callable[[Any], None]:
        frame = user_frame(equation.traceback)
        file_and_line = (None, None) if frame is None else (frame.file, frame.line)
        name = equation.primitive.name
        return lambda sharding: seen.append(ValueSharding(name, aval, sharding, *file_and_line))

    def after_equation(build: Any, equation: Equation, values: Mapping[Any, Any]) -> None:
        if build.module.manual is not None:
            return  # XLA does not split values in bodies of shard_map.
        for var in equation.outvars:
            aval = var.aval
            if isinstance(aval, ShapedArray) and aval.ndim and var in values:
                inspect_value(build, values[var], aval, keep(equation, aval))

    traced = lowered._traced
    module = lower_program(
        traced.program,
        LoweringRequest(
            lowered._jitted.name, lowering_platform(where.device), device_assignment=where
        ),
        after_equation=after_equation,
    )
    client = where.device.client
    compile_module(
        client,
        module.ir_module,
        where.devices,
        compile_options(where.devices, chosen_outputs=where.chosen_outputs(traced.program)),
        [host_function(call, client, HostFailures()) for call in module.callbacks],
        partition_of(module, where),
    )
    counts: dict[ValueSharding, int] = {}
    for value in seen:
        counts[value] = counts.get(value, 0) + 1
    return [value._replace(count=count) for value, count in counts.items()]


def table_of(values: list[ValueSharding]) -> str:
    """Return a table of values with their types, shards, shardings and source lines."""
    rows = [("value", "type", "on each device", "split as", "source")]
    for value in values:
        name = f"{value.name} ({value.count} times)" if value.count > 1 else value.name
        source = short_line(value.file, value.line) if value.file else ""
        kind = value.aval.str_short(short_dtypes=True)
        rows.append((name, kind, value.shard_text(), value.spec_text(), source))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
