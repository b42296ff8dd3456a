"""Managers that write arrays over all processes to files in the background, and read them."""

import abc
import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence

from hlofront.base.typing import Array, DTypeLike
from hlofront.bridge.client import JaxRuntimeError, Sharding
from hlofront.pjrt.layouts import Format
from hlofront.pjrt.process_group import current_group
from hlofront.runtime.processes import checkpoint_files
from hlofront.runtime.processes.checkpoint_files import get_tensorstore_spec

# The number of each checkpoint, which is the same in all processes.
_numbers = itertools.count()


class BarrierTimeoutError(Exception):
    """The error of a wait for other processes, to write a checkpoint, that took too long."""


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of managers that write arrays over all processes to files in the background.

    Libraries implement it, and GlobalAsyncCheckpointManager does.
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error with which writing in the background has failed, if it has."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until everything is written; raise the error with which it has failed, if so."""

    @abc.abstractmethod
    def serialize(
        self,
        arrays: Sequence[Array],
        tensorstore_specs: Sequence[Mapping[str, object]],
        *,
        on_commit_callback: Callable[[], None],
    ) -> None:
        """Start to write arrays.

        Args:
          arrays: the arrays; each process writes its parts of them.
          tensorstore_specs: where each is written, as tensorstore says it.
          on_commit_callback: a function that is called when everything is written.
        """

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Sharding],
        tensorstore_specs: Sequence[Mapping[str, object]],
        global_shapes: Sequence[Sequence[int]] | None = None,
        dtypes: Sequence[DTypeLike] | None = None,
    ) -> Sequence[Array]:
        """Return arrays that were written.

        Args:
          shardings: how each is split over devices; each process reads its parts.
          tensorstore_specs: where each was written, as tensorstore says it.
          global_shapes: the shapes of the results; by default those of what was written.
          dtypes: the dtypes of the results; by default those of what was written.
        """


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """A manager that writes arrays to files by tensorstore, which must be installed.

    Args:
      timeout_secs: the seconds that processes wait for each other.

    Example:
      manager = GlobalAsyncCheckpointManager()
      manager.serialize_with_paths([weights, bias], ["/data/weights", "/data/bias"])
      ...  # Training continues while the files are written.
      manager.wait_until_finished()
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout = 1000 * timeout_secs
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._key = ""

    def check_for_errors(self) -> None:
        error, self._error = self._error, None
        if isinstance(error, JaxRuntimeError) and "DEADLINE_EXCEEDED" in str(error):
            raise BarrierTimeoutError(
                f"not all processes have written their part of the checkpoint within "
                f"{self._timeout // 1000} s: {error}. Look for one that has failed, or pass a "
                "longer timeout_secs to GlobalAsyncCheckpointManager."
            ) from error
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join()
        self.check_for_errors()
        group = current_group()
        if group is not None:
            # Process 0 sets the key after the function on_commit_callback.
            group.client.blocking_key_value_get(self._key, self._timeout)

    def serialize(
        self,
        arrays: Sequence[Array],
        tensorstore_specs: Sequence[Mapping[str, object]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: object = None,
    ) -> None:
        """Start to write arrays, after what was started before is written.

        Args:
          arrays: the arrays; each process writes its parts of them.
          tensorstore_specs: where each is written, as tensorstore says it.
          on_commit_callback: a function that process 0 calls when all have written everything.
          transaction: the transaction of tensorstore that the writes belong to.

        Raises:
          ImportError: if tensorstore is not installed.
          ValueError: if there are several processes, and an array belongs to only one.
        """
        self.wait_until_finished()
        commits = checkpoint_files.completed(
            [
                checkpoint_files.write(array, spec, transaction)
                for array, spec in zip(arrays, tensorstore_specs, strict=True)
            ]
        )
        self._key = f"hlofront/checkpoint/{next(_numbers)}"
        self._thread = threading.Thread(
            target=self._commit,
            args=([commit for row in commits for commit in row], on_commit_callback),
            name="hlofront: a checkpoint is written",
        )
        self._thread.start()

    def _commit(
        self, commits: Sequence[object], on_commit_callback: Callable[[], None] | None
    ) -> None:
        """Wait until all processes have written everything, in a thread of its own."""
        try:
            for commit in commits:
                commit.result()
            group = current_group()
            if group is not None:
                group.client.wait_at_barrier(f"{self._key}/written", self._timeout)
            if group is None or group.process_id == 0:
                if on_commit_callback is not None:
                    on_commit_callback()
                if group is not None:
                    group.client.key_value_set(self._key, "")
        except Exception as error:
            # The next call of the thread that started the writing raises it.
            self._error = error

    def serialize_with_paths(
        self,
        arrays: Sequence[Array],
        paths: Sequence[str | os.PathLike[str]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: object = None,
    ) -> None:
        """Start to write arrays, each to a path; otherwise as `serialize`."""
        self.serialize(
            arrays,
            [get_tensorstore_spec(path) for path in paths],
            on_commit_callback=on_commit_callback,
            transaction=transaction,
        )

    def deserialize(
        self,
        shardings: Sequence[Sharding | Format],
        tensorstore_specs: Sequence[Mapping[str, object]],
        global_shapes: Sequence[Sequence[int]] | None = None,
        dtypes: Sequence[DTypeLike] | None = None,
        concurrent_gb: int = 32,
    ) -> Sequence[Array]:
        """Return arrays that were written, after what was started before is written.

        Args:
          shardings: how each is split over devices, where each process reads its parts; a Format
              also gives its layout.
          tensorstore_specs: where each was written, as tensorstore says it.
          global_shapes: the shapes of the results; by default those of what was written. Where one
            is larger, the rest is zeros.
          dtypes: the dtypes of the results; by default those of what was written.
          concurrent_gb: the gigabytes that reads hold at once in this process.

        Raises:
          ImportError: if tensorstore is not installed.
          TypeError: if one of `shardings` is none.
        """
        self.wait_until_finished()
        budget = checkpoint_files.ByteBudget(concurrent_gb * 10**9)
        count = len(tensorstore_specs)
        return checkpoint_files.completed(
            [
                checkpoint_files.read(sharding, spec, shape, dtype, budget)
                for sharding, spec, shape, dtype in zip(
                    shardings,
                    tensorstore_specs,
                    global_shapes or [None] * count,
                    dtypes or [None] * count,
                    strict=True,
                )
            ]
        )

    def deserialize_with_paths(
        self,
        shardings: Sequence[Sharding | Format],
        paths: Sequence[str | os.PathLike[str]],
        global_shapes: Sequence[Sequence[int]] | None = None,
        dtypes: Sequence[DTypeLike] | None = None,
        concurrent_gb: int = 32,
    ) -> Sequence[Array]:
        """Return arrays that were written to paths; otherwise as `deserialize`."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
