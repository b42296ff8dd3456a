# pyright: strict
"""The queue of programs for several CPU devices that exchange values: one runs at a time."""

import re
import threading
from collections.abc import Callable, Sequence
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
    """A queue that runs programs with collectives on CPU devices one after another.

    The devices of a CPU share its threads: where several such programs run concurrently, each
    may hold some of the threads and wait for the rest, until XLA aborts the process.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._latest: ShardedToken | None = None

    def launch(
        self,
        loaded: LoadedExecutable,
        buffers: Sequence[object],
        note_launch: Callable[[], None] | None = None,
    ) -> "tuple[ExecuteResults, ShardedToken]":
        """Start a program when the previous one has ended; return its results and its token.

        Args:
          loaded: the program.
          buffers: its arguments.
          note_launch: called when the previous program has ended.
        """
        with self._lock:
            if self._latest is not None:
                latest, self._latest = self._latest, None
                try:
                    latest.block_until_ready()
                except ProcessFailureError:
                    raise  # This program would wait for the same processes.
                except JaxRuntimeError:
                    pass  # This error reaches the users of its results.
            if note_launch is not None:
                note_launch()
            executed = loaded.execute_sharded(buffers, with_tokens=True)
            self._latest = executed.consume_token()
            return executed, self._latest


on_cpu = OneAtATime()
