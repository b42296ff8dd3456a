"""Concrete values for Python control flow while an outermost shard_map stages its function.

Outside jit the operands of shard_map are arrays, so a value on which a Python branch depends can be
computed: the operations staged so far run as a program, whose results are operands of those that
follow. A function without such branches is one program.
"""

import weakref
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from hlofront.base.caches import CacheTable
from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import ArrayLikes
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Literal
from hlofront.core.names import SourceInfo
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import program_digest
from hlofront.core.sharding.mesh_context import thread_local_cells
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.trace import interpreting_with
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.transforms.simplify import constants_as_inputs
from hlofront.transforms.stage import JitTracer, StagingTrace

# The parameters of shard_map except its program, a ShardMapParams.
MapParams = Any


class EagerStaging(StagingTrace):
    """Staging of a function that shard_map maps over arrays, with concrete values on request.

    Args:
      debug_info: names for messages.
      params: the parameters of the shard_map.
      operands: its operands, which are arrays.
      specs: the spec of each operand.
      table: the programs that ran for other values, by their digests.

    Attributes:
      values: the arrays of the inputs: the operands, then results of operations that have run.
      specs: the spec of each input.
      has_run: whether operations have run, so that the program is only for these operands.
    """

    __slots__ = ("_held", "_outside", "_staged", "has_run", "params", "specs", "table", "values")

    def __init__(
        self,
        debug_info: DebugInfo,
        params: MapParams,
        operands: ArrayLikes,
        specs: Sequence[PartitionSpec],
        table: CacheTable,
    ):
        super().__init__(debug_info)
        self.params = params
        self.values = list(operands)
        self.specs = list(specs)
        self.table = table
        self.has_run = False
        # Once operations have run, the tracer of each input; and the tracers of operations that
        # have not.
        self._held: list[weakref.ref[JitTracer]] = []
        self._staged: list[weakref.ref[JitTracer]] = []
        self._outside = copy_context(), [cell.get_local() for cell in thread_local_cells()]

    def new_arg(self, aval: AbstractValue, source_info: SourceInfo | None = None) -> JitTracer:
        tracer = super().new_arg(aval, source_info)
        self._staged.append(weakref.ref(tracer))
        return tracer

    def write(self, primitive: Primitive, *args: Any, **kwargs: Any) -> Any:
        result = super().write(primitive, *args, **kwargs)
        tracers: list[Any] = result if primitive.multiple_results else [result]
        self._staged += map(weakref.ref, tracers)
        return result

    def value_of(self, tracer: JitTracer) -> Any:
        aval = tracer.aval
        is_scalar = isinstance(aval, ShapedArray) and aval.size == 1
        if not is_scalar or not self.params.check_vma or not aval.mat.empty:
            return None
        array = self._array_of(tracer)
        return None if array is None else np.asarray(array).reshape(())[()]

    def text_of(self, tracer: JitTracer) -> str:
        array = self._array_of(tracer)
        if array is None or isinstance(array.dtype, ExtendedDType):
            return super().text_of(tracer)
        mesh = array.sharding.mesh
        names = "".join([f"{name}, " for name in mesh.axis_names]).rstrip()
        parts = {shard.device: np.asarray(shard.data) for shard in array.addressable_shards}
        return "\n".join(
            [
                f"On {device} at mesh coordinates ({names}) = {coordinates}:\n"
                f"{parts[device].reshape(tracer.aval.shape)}\n"
                for coordinates, device in np.ndenumerate(mesh.devices)
                if device in parts
            ]
        )

    # ---- running what has been staged

    def _array_of(self, tracer: JitTracer) -> Any:
        """Return the array of a tracer's values on all devices; None if it cannot be computed."""
        if not self.alive or isinstance(tracer.val, Literal):
            return None
        for attempt in range(2):
            # At first the values are the operands, which may be on other devices.
            for ref, array in zip(self._held, self.values, strict=False):
                if ref() is tracer:
                    return array
            if attempt or not self._run():
                return None
        return None

    def _run(self) -> bool:
        """Run the staged operations; results that are still in use become inputs."""
        tracers: list[Any] = _alive(self._staged)
        if not all(isinstance(tracer.aval, ShapedArray) for tracer in tracers):
            return False
        specs = [self.params.spec_of_all_values(tracer.aval) for tracer in tracers]
        with interpreting_with(self):
            outputs: list[Any] = [
                broadcast_in_dim(tracer, (1,), ()) if _is_widened(tracer, spec) else tracer
                for tracer, spec in zip(tracers, specs, strict=True)
            ]
        program = self.finish(outputs)
        captured = program.consts
        if captured:
            program = ClosedJaxpr(constants_as_inputs(program))
        program = known_program(self.table, program, True)
        arrays = self._bound_outside(
            program,
            [*captured, *self.values],
            [*[PartitionSpec()] * len(captured), *self.specs],
            specs,
        )
        held = [
            (tracer, spec, value)
            for ref, spec, value in zip(self._held, self.specs, self.values, strict=self.has_run)
            if (tracer := ref()) is not None
        ]
        self.has_run = True
        self.inputs, self.equations = [], []
        self._held, self._staged, self.specs, self.values = [], [], [], []
        for tracer, spec, value in (*held, *zip(tracers, specs, arrays, strict=True)):
            self._make_input(tracer, spec, value)
        return True

    def _make_input(self, tracer: JitTracer, spec: PartitionSpec, value: Any) -> None:
        """Make a tracer stand for an input with a known value."""
        widened = _is_widened(tracer, spec)
        made: Any = super().new_arg(tracer.aval.update(shape=(1,)) if widened else tracer.aval)
        if widened:
            with interpreting_with(self):
                made = squeeze(made, (0,))
        tracer.become(made)
        self._held.append(weakref.ref(tracer))
        self.specs.append(spec)
        self.values.append(value)

    def _bound_outside(self, *args: Any) -> list[Any]:
        """Bind the shard_map outside all functions that are being traced."""
        context, values = self._outside
        cells = thread_local_cells()
        before = [cell.swap_local(value) for cell, value in zip(cells, values, strict=True)]
        try:
            return context.copy().run(self.params.bind, *args)
        finally:
            for cell, value in zip(cells, before, strict=True):
                cell.set_local(value)


# The maximum number of cached programs per function; the next one clears the cache.
_MAX_PROGRAMS = 256


def known_program(table: CacheTable, program: ClosedJaxpr, runs: bool) -> ClosedJaxpr:
    """Return the equal program in a table, or add this one; it must not have constants.

    Args:
      table: the table.
      program: the program.
      runs: whether the program will only run: then programs that differ only in derivative rules
          are equal. Otherwise these rules, and programs without a digest, are compared by their
          text.
    """
    digest = program_digest(program)
    key = digest if runs and digest is not None else (digest, str(program))
    if len(table) >= _MAX_PROGRAMS:
        table.clear()
    return table.setdefault(key, program)


def _alive(references: Sequence[weakref.ref[JitTracer]]) -> list[JitTracer]:
    return [tracer for ref in references if (tracer := ref()) is not None]


def _is_widened(tracer: JitTracer, spec: PartitionSpec) -> bool:
    """Return whether a value is passed in and out with an extra axis, along which it varies."""
    return bool(spec.partitions) and not tracer.aval.shape
