"""Custom calls that the host partitions while XLA compiles, in the thread that started it.

XLA calls from its own thread. The thread that compiles holds the locks that a partition may need to
trace and compile programs, and the user's thread-local options, so that thread answers.
"""

import queue
import threading
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from hlofront.bridge.client import HloSharding, JaxRuntimeError
from hlofront.bridge.partitioning import Partitioned, register_partitioner

T = TypeVar("T")
# (number of the custom call in its module, shardings of its operands, those of its results)
PartitionCall = Callable[[int, list[HloSharding], list[HloSharding]], Partitioned]


class _Answer(Generic[T]):
    """The result of a function that another thread calls, for which this one waits."""

    def __init__(self, call: Callable[[], T]):
        self._call = call
        self._ready = threading.Event()
        self._result: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function, and wake the thread that waits."""
        try:
            self._result.append(self._call())
        except BaseException as error:
            self.error = error
        self._ready.set()

    def wait(self) -> T:
        """Return the result, or raise the function's exception."""
        self._ready.wait()
        if self.error is not None:
            raise self.error
        return self._result[0]


class _Compilation:
    """A compilation in progress, whose custom calls `partition` partitions."""

    def __init__(self, partition: PartitionCall):
        self._partition = partition
        # The questions of XLA's thread; None when the compilation has ended.
        self.questions: queue.SimpleQueue[_Answer[Partitioned] | None] = queue.SimpleQueue()
        self.error: BaseException | None = None

    def ask(
        self, number: int, operands: list[HloSharding], results: list[HloSharding]
    ) -> Partitioned:
        """Return how the compiling thread partitions a custom call, in any other thread."""
        question = _Answer(lambda: self._partition(number, operands, results))
        self.questions.put(question)
        try:
            return question.wait()
        except BaseException as error:
            self.error = error
            raise

    def run(self, compile_program: Callable[[], T]) -> T:
        """Compile in another thread, and answer its questions in this one until it has ended."""

        def compile_and_end() -> T:
            try:
                return compile_program()
            finally:
                self.questions.put(None)

        compiled = _Answer(compile_and_end)
        worker = threading.Thread(target=compiled.run, name="hlofront-compile", daemon=True)
        worker.start()
        while (question := self.questions.get()) is not None:
            question.run()
        worker.join()
        if self.error is not None:
            _raise_failure(self.error)
        return compiled.wait()


def _raise_failure(error: BaseException) -> NoReturn:
    if not isinstance(error, Exception):
        raise error
    raise JaxRuntimeError(
        f"INTERNAL: {type(error).__name__}: {error}\n"
        "It was raised while XLA partitioned an operation over devices, and is the cause of this "
        "error, with its own traceback."
    ) from error


# The compilations in progress, each but the first started by a partition of the one before it. The
# lock of MLIR admits one thread at a time.
_compilations: list[_Compilation] = []
_registered: list[bool] = []


def compile_partitioned(compile_program: Callable[[], T], partition: PartitionCall) -> T:
    """Compile a module with custom calls that the host partitions; the caller holds `mlir_lock`.

    Args:
      compile_program: compiles the module, in another thread.
      partition: called in this thread, for each custom call of the module that the host
        partitions. The attribute `backend_config` of a call is its number in the module.

    Raises:
      JaxRuntimeError: if XLA refuses the module, or `partition` raises, whose exception is the
        cause.
    """
    if not _registered:
        _registered.append(True)
        register_partitioner(_partition)
    _compilations.append(_Compilation(partition))
    try:
        return _compilations[-1].run(compile_program)
    finally:
        _compilations.pop()


def _partition(number: str, operands: list[HloSharding], results: list[HloSharding]) -> Partitioned:
    if not _compilations:
        raise RuntimeError(
            "a program with custom partitioning is compiled from its text, without the function "
            "that partitions it: compile what `jit` lowers"
        )
    return _compilations[-1].ask(int(number), operands, results)
