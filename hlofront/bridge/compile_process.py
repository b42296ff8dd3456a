"""Compiling in a worker process, for compilers that abort the process on some modules.

libtpu is closed-source and aborts the process where one of its internal checks fails. So programs
for compile-only TPUs are compiled by a worker, which the first of them starts and later ones use.
If the worker dies, that program raises an error, and the next one starts another worker.
"""

import atexit
import contextlib
import io
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlofront.bridge import compile_process_worker, state
from hlofront.bridge.client import Client, CompileOptions, Device, OpSharding, hlo

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
_PLATFORMS = ("tpu",)
_MOST_WORDS = 300
_lock = threading.Lock()
_worker: "_Worker | None" = None
# The workers of the parent processes of a fork, which this process must not use or wait for.
_of_others: list["_Worker"] = []


class TopologySource(NamedTuple):
    """The arguments that created a topology; they are sent to the worker as a plain tuple."""

    platform: str
    library: str
    name: str
    settings: dict[str, Any]


# Topology sources, by the client of the topology's devices.
_topologies: weakref.WeakKeyDictionary[Client, TopologySource] = weakref.WeakKeyDictionary()


class WorkerEnded(JaxRuntimeError):
    """The error raised when the compiler has ended its worker process."""

    __module__ = JaxRuntimeError.__module__


class CannotStart(Exception):
    """The error raised when no worker can start; the program is then compiled in this process."""


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

    A compiler that is newer than jaxlib may write a proto that jaxlib cannot read. Then only the
    compiler's own text is available.
    """

    def __init__(self, name: str, text: str, proto: bytes | None, unreadable: str):
        self.name = name
        self._text = text
        self._proto = proto
        self._unreadable = unreadable

    def to_string(self, options: object = None) -> str:
        # The worker's text has facts that a proto lacks, such as the number of partitions.
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


def know(
    devices: Sequence[Device],
    platform: str,
    library: str,
    name: str,
    settings: Mapping[str, object],
) -> None:
    """Record the arguments that created a topology, so that a worker can recreate its devices."""
    if platform in _PLATFORMS and devices:
        source = TopologySource(platform, library, name, dict(settings))
        _topologies[devices[0].client] = source


def can_compile_for(device: Device) -> bool:
    """Return whether programs for a compile-only device are compiled in a worker process."""
    return device.client in _topologies


def compile_in_subprocess(
    ir_module: "ir.Module", devices: Sequence[Device], options: CompileOptions
) -> SubprocessExecutable:
    """Compile a module for compile-only devices in the worker process.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      WorkerEnded: if the compiler ended its process.
      CannotStart: if no worker can be started.
    """
    bytecode = io.BytesIO()
    ir_module.operation.write_bytecode(bytecode)
    request = {
        "topology": tuple(_topologies[devices[0].client]),
        "devices": [device.id for device in devices],
        "module": bytecode.getvalue(),
        "options": options.SerializeAsString(),
    }
    global _worker
    with _lock:
        worker = _running()
        try:
            answer = worker.ask(request)
        except BaseException:
            # After an interrupt, too: the pending answer would be read as that of the next request.
            worker.end()
            _worker = None
            raise
    if "error" in answer:
        kind = JaxRuntimeError if answer["kind"] == "JaxRuntimeError" else ValueError
        raise kind(answer["error"])
    return SubprocessExecutable(answer)


def start() -> None:
    """Start the worker, unless it runs; it loads its libraries in parallel to this process.

    Raises:
      CannotStart: if no worker can be started.
    """
    with _lock:
        _running()


def _running() -> "_Worker":
    global _worker
    if _worker is not None and not _worker.is_alive():
        _worker.end()
        _worker = None
    if _worker is None:
        _worker = _Worker()
    return _worker


class _Worker:
    """A worker process, with its message streams."""

    def __init__(self):
        if not sys.executable:
            raise CannotStart("Python does not know its own path")
        # It imports much, and few processes have a worker.
        import tempfile

        # The compiler's messages on stderr, which are read if it ends the process.
        self._messages = tempfile.TemporaryFile()
        # The worker runs isolated and without `site`: this process sends it `sys.path`.
        command = [sys.executable, "-I", "-S", compile_process_worker.__file__]
        if sys.dont_write_bytecode:
            command.insert(1, "-B")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                # The worker leaves attached TPUs alone.
                env={**os.environ, **WITHOUT_TPU},
                start_new_session=True,  # Ctrl-C at the terminal interrupts only this process.
            )
        except OSError as error:
            raise CannotStart(str(error)) from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        try:
            compile_process_worker.write(self._requests, {"path": sys.path})
        except OSError as error:
            self.end()
            raise CannotStart(str(error)) from error
        self._has_started = False

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self._has_started:
            if compile_process_worker.read(self._answers) is None:
                raise CannotStart(self._last_words())
            self._has_started = True
        try:
            compile_process_worker.write(self._requests, request)
            answer = compile_process_worker.read(self._answers)
        except OSError:
            answer = None
        if answer is None:
            code = self._process.wait()
            raise WorkerEnded(self._last_words() or f"it ended with {code}, and said nothing")
        return answer

    def _last_words(self) -> str:
        """Return the compiler's last messages: the check that failed, else its last lines."""
        self._messages.seek(0)
        text = self._messages.read().decode(errors="replace")
        failed = re.search(r"^F\d+ \S+ +\d+ (.*)$", text, re.MULTILINE)
        words = failed.group(1) if failed else " ".join(text.split("\n")[-4:])
        return words.strip()[:_MOST_WORDS]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self._messages):
            with contextlib.suppress(OSError):  # A request may have been written only in part.
                stream.close()


def _end() -> None:
    global _worker
    if _worker is not None:
        _worker.end()
        _worker = None


def _in_child() -> None:
    global _worker, _lock
    if _worker is not None:
        _of_others.append(_worker)
        _worker = None
    _lock = threading.Lock()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
