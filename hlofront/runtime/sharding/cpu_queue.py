# pyright: strict
"""The queue of programs for several CPU devices that exchange values: one runs at a time."""

import contextlib
import re
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from hlofront.bridge.client import Device, JaxRuntimeError, LoadedExecutable
from hlofront.pjrt.process_failures import ProcessFailureError

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ExecuteResults, ShardedToken

# The operations of optimized HLO that synchronize the devices of a program.
_MEETING = re.compile(
    r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
    r"|ragged-all-to-all|send|recv)(-start)?\("
)


def exchanges_values(loaded: LoadedExecutable) -> bool:
    """Return whether the devices of a program exchange values in it."""
    return any(_MEETING.search(module.to_string()) for module in loaded.hlo_modules())


def meets_on_cpu(loaded: LoadedExecutable, devices: Sequence[Device]) -> bool:
    """Return whether a program is for several CPU devices, which exchange values in it."""
    return len(devices) > 1 and devices[0].platform == "cpu" and exchanges_values(loaded)


class OneAtATime:
    """A queue that runs programs with collectives on CPU devices one at a time.

    The devices of a CPU share its threads: where several such programs run concurrently, each
    may hold some of the threads and wait for the rest, until XLA aborts the process. This also
    happens with programs that a single thread launches without waiting, unless XLA has many more
    threads than devices (`NPROC=64`), which is slower. C++ does not wait for previous programs, so
    Python makes these calls.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._latest: ShardedToken | None = None
        # Where the current thread runs a callback of a program, its attribute `calls` is True.
        self._thread = threading.local()

    @contextlib.contextmanager
    def callback(self) -> Generator[None, None, None]:
        """Return a context for a callback of a program of the queue, in which it launches none."""
        before = getattr(self._thread, "calls", False)
        self._thread.calls = True
        try:
            yield
        finally:
            self._thread.calls = before

    def launch(
        self,
        loaded: LoadedExecutable,
        buffers: Sequence[object],
        note_launch: Callable[[], None] | None = None,
        take_error: Callable[[], RuntimeError | None] | None = None,
    ) -> "tuple[ExecuteResults, ShardedToken]":
        """Start a program when the previous one has ended; return its results and its token.

        Args:
          loaded: the program.
          buffers: its arguments.
          note_launch: called when the previous program has ended.
          take_error: returns the error of the program's callbacks, or None. If it is passed, this
            method waits until the program has ended, and calls it then.

        Raises:
          JaxRuntimeError: if a callback failed; the exception that it raised is the cause.
          RuntimeError: in a callback of a program of the queue, for which this one would wait.
        """
        if getattr(self._thread, "calls", False):
            raise RuntimeError(
                "a callback of a program whose CPU devices exchange values runs another such "
                "program, which would wait for the first to end, and the first for the callback: "
                "compute with NumPy in the callback, or on one device"
            )
        with self._lock:
            if self._latest is not None:
                latest, self._latest = self._latest, None
                _wait(latest)
            if note_launch is not None:
                note_launch()
            executed = loaded.execute_sharded(buffers, with_tokens=True)
            token = self._latest = executed.consume_token()
            if take_error is not None:
                _wait(token)
                error = take_error()
                if error is not None:
                    raise error
            return executed, token


def _wait(token: "ShardedToken") -> None:
    """Wait until a program has ended.

    Raises:
      ProcessFailureError: if a process failed, for which the next program would wait, too.
    """
    try:
        token.block_until_ready()
    except ProcessFailureError:
        raise
    except JaxRuntimeError:
        pass  # This error reaches the users of the program's results.


on_cpu = OneAtATime()
