"""Compiling in a process of its own, for compilers that end the process on some modules.

libtpu is closed, and checks its own work: where a check fails, it ends the process. So programs for
TPUs that are not there are compiled by a worker, which is started with the first of them and waits
for the next. Should it end, that is an error here, and the next program starts another one.
"""

import atexit
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
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
# Without these variables libtpu asks a metadata server for minutes, fails where another process has
# loaded it, and prints which devices it lacks.
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
# The workers of processes that this one was forked from: it must not talk to them or wait for them.
_of_others: list["_Worker"] = []


class TopologySource(NamedTuple):
    """The arguments by which a topology was made; the worker, a script, gets a plain tuple."""

    platform: str
    library: str
    name: str
    settings: dict[str, Any]


# How a topology was made, by the client that its devices have.
_topologies: weakref.WeakKeyDictionary[Client, TopologySource] = weakref.WeakKeyDictionary()


class WorkerEnded(JaxRuntimeError):
    """The error of a worker that the compiler has ended."""

    __module__ = JaxRuntimeError.__module__


class CannotStart(Exception):
    """The error where no worker can be started: its program is compiled in this process."""


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
    """An HLO module whose text is the worker's, and whose other facts are read from its proto.

    A compiler that is newer than jaxlib may write what jaxlib cannot read. Then there is the text,
    which the compiler itself has written, and no proto.
    """

    def __init__(self, name: str, text: str, proto: bytes | None, unreadable: str):
        self.name = name
        self._text = text
        self._proto = proto
        self._unreadable = unreadable

    def to_string(self, options: object = None) -> str:
        # A proto lacks such facts as the number of partitions, which the worker's text has.
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
    """The numbers of jaxlib's CompiledMemoryStats."""

    def __init__(self, numbers: Mapping[str, int], text: str):
        self.__dict__.update(numbers)
        self._text = text

    def __repr__(self) -> str:
        return self._text


def know(
    devices: Sequence[Device], platform: str, library: str, name: str, settings: Mapping[str, Any]
) -> None:
    """Remember how devices of a topology were made, so that a worker can make the same."""
    if platform in _PLATFORMS and devices:
        source = TopologySource(platform, library, name, dict(settings))
        _topologies[devices[0].client] = source


def can_compile_for(device: Device) -> bool:
    """Return whether programs for a device of a topology are compiled in a process of its own."""
    return device.client in _topologies


def compile_in_subprocess(
    ir_module: "ir.Module", devices: Sequence[Device], options: CompileOptions
) -> SubprocessExecutable:
    """Compile a module for devices of a topology, in the worker.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      WorkerEnded: if the compiler ended its process.
      CannotStart: if there is no way to start one.
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
            # After an interrupt, too, the worker's answer would be that of the next question.
            worker.end()
            _worker = None
            raise
    if "error" in answer:
        kind = JaxRuntimeError if answer["kind"] == "JaxRuntimeError" else ValueError
        raise kind(answer["error"])
    return SubprocessExecutable(answer)


def start() -> None:
    """Start the worker, unless it runs: it loads its libraries beside what is done here.

    Raises:
      CannotStart: if there is no way to start one.
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
    """A worker process, and the messages to it and from it."""

    def __init__(self):
        if not sys.executable:
            raise CannotStart("Python does not know its own path")
        # The compiler's messages are read where it ends its process.
        self._messages = tempfile.TemporaryFile()
        # Isolated and without `site`: it gets the path of this process.
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
                start_new_session=True,  # An interrupt at the terminal is this process's alone.
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
        """Return what the compiler said at its end: the check that failed, else its last lines."""
        self._messages.seek(0)
        text = self._messages.read().decode(errors="replace")
        failed = re.search(r"^F\d+ \S+ +\d+ (.*)$", text, re.MULTILINE)
        words = failed.group(1) if failed else " ".join(text.split("\n")[-4:])
        return words.strip()[:_MOST_WORDS]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self._messages):
            with contextlib.suppress(OSError):  # A request may not have been sent to its end.
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
