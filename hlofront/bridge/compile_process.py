"""Compiling in a worker process, for compilers that abort the process on some modules.

libtpu is closed-source and aborts the process if one of its internal checks fails. So programs for
compile-only TPUs are compiled by a worker, which the first such program starts. If the worker dies,
compiling that program raises an error, and the next one starts another worker.
"""

import contextlib
import io
import os
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from hlofront.bridge import state
from hlofront.bridge.client import Client, CompileOptions, Device, OpSharding, hlo
from hlofront.bridge.worker_process import Worker

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from hlofront.bridge.jaxlib_types import HloModule, PjRtLayout

JaxRuntimeError = state.JaxRuntimeError
# Without these variables libtpu queries a metadata server for minutes, fails where another process
# has loaded it, and prints which devices it lacks.
WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}
# The platforms whose compilers abort the process.
_PLATFORMS = ("tpu",)
# This worker does not touch attached TPUs.
worker = Worker(WITHOUT_TPU)
# The worker whose libtpu has additional flags, inside `with_flags`.
_flagged: ContextVar[Worker | None] = ContextVar("flagged", default=None)


@contextlib.contextmanager
def with_flags(flags: Sequence[str]) -> Generator[None, None, None]:
    """Compile for compile-only devices in a separate worker whose libtpu also has these flags.

    libtpu reads them only when it is loaded.
    """
    set_by_user = os.environ.get("LIBTPU_INIT_ARGS", "")
    flagged = Worker({**WITHOUT_TPU, "LIBTPU_INIT_ARGS": " ".join([set_by_user, *flags])})
    token = _flagged.set(flagged)
    try:
        yield
    finally:
        _flagged.reset(token)
        flagged.close()


def current_worker() -> Worker:
    """Return the worker that currently compiles for compile-only devices."""
    return _flagged.get() or worker


class TopologySource(NamedTuple):
    """The arguments that created a topology; they are sent to the worker as a plain tuple."""

    platform: str
    library: str
    name: str
    settings: dict[str, Any]
    kernel_package: str
    """The package with the kernels of a GPU's plugin; empty for others."""


# Topology sources, by the client of the topology's devices.
_topologies: weakref.WeakKeyDictionary[Client, TopologySource] = weakref.WeakKeyDictionary()


class SubprocessExecutable:
    """A compiled program with the interface of jaxlib's executables, which cannot be run here.

    Its methods return what the worker process reported after compilation.
    """

    def __init__(self, answer: dict[str, Any]):
        self._answer = answer

    def hlo_modules(self) -> list["WorkerHloModule"]:
        return [WorkerHloModule(*module) for module in self._answer["modules"]]

    def get_compiled_memory_stats(self) -> "WorkerMemoryStats":
        return WorkerMemoryStats(self._answer["memory"], self._answer["memory_text"])

    def cost_analysis(self) -> dict[str, float]:
        return self._answered("cost")

    def serialize(self) -> bytes:
        return self._answered("serialized")

    def get_parameter_layouts(self) -> "list[PjRtLayout]":
        return self._answered("parameter_layouts")

    def get_output_layouts(self) -> "list[PjRtLayout]":
        return self._answered("output_layouts")

    def get_parameter_shardings(self) -> list[OpSharding] | None:
        return self._answered("parameter_shardings")

    def get_output_shardings(self) -> list[OpSharding] | None:
        return self._answered("output_shardings")

    def get_output_memory_kinds(self) -> list[list[str]]:
        return self._answered("output_memory_kinds")

    def _answered(self, name: str) -> Any:
        known, value = self._answer[name]
        if not known:
            raise JaxRuntimeError(value)
        return value


class WorkerHloModule:
    """An HLO module with the worker's text; other properties are parsed from its proto.

    A compiler newer than jaxlib may write a proto that jaxlib cannot read. Then only the compiler's
    own text is available.
    """

    def __init__(self, name: str, text: str, proto: bytes | None, unreadable: str):
        self.name = name
        self._text = text
        self._proto = proto
        self._unreadable = unreadable

    def to_string(self, options: object = None) -> str:
        # The worker's text has details that the proto lacks, such as the number of partitions.
        return self._text if options is None else self._module().to_string(options)

    def as_serialized_hlo_module_proto(self) -> bytes:
        if self._proto is None:
            raise JaxRuntimeError(f"{self._unreadable} (a newer jaxlib may read it)")
        return self._proto

    def _module(self) -> "HloModule":
        proto = self.as_serialized_hlo_module_proto()
        return hlo.HloModule.from_serialized_hlo_module_proto(proto)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._module(), name)


class WorkerMemoryStats:
    """The fields of jaxlib's CompiledMemoryStats, as the worker reported them."""

    def __init__(self, numbers: Mapping[str, int], text: str):
        self.__dict__.update(numbers)
        self._text = text

    def __repr__(self) -> str:
        return self._text


def know(devices: Sequence[Device], source: TopologySource) -> None:
    """Record the arguments that created a topology, so that a worker can recreate its devices."""
    if devices:
        _topologies[devices[0].client] = source


def needs_subprocess(device: Device) -> bool:
    """Return whether programs for a compile-only device must be compiled in a worker process."""
    source = _topologies.get(device.client)
    return source is not None and source.platform in _PLATFORMS


def compile_in_subprocess(
    module: "ir.Module | str", devices: Sequence[Device], options: CompileOptions
) -> SubprocessExecutable:
    """Compile a module for compile-only devices in the worker process.

    Args:
      module: the module, or its text of StableHLO or HLO, which only the worker parses.
      devices: the devices, all of one topology; those of any platform.
      options: XLA's compile options.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      WorkerEnded: if the compiler ended its process.
      CannotStart: if no worker can be started.
    """
    bytecode = io.BytesIO()
    if not isinstance(module, str):
        module.operation.write_bytecode(bytecode)
    answer = current_worker().ask(
        {
            "do": "compile for a topology",
            "topology": tuple(_topologies[devices[0].client]),
            "devices": [device.id for device in devices],
            "module": module if isinstance(module, str) else bytecode.getvalue(),
            "options": options.SerializeAsString(),
        }
    )
    return SubprocessExecutable(answered(answer))


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a worker's answer, or raise the error that it reports."""
    if "error" in answer:
        kind = JaxRuntimeError if answer["kind"] == "JaxRuntimeError" else ValueError
        raise kind(answer["error"])
    return answer
