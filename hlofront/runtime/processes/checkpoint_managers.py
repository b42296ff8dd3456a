"""The interface of managers that write arrays over all processes to files."""

import abc
from collections.abc import Callable, Mapping, Sequence

from hlofront.base.typing import Array, DTypeLike
from hlofront.bridge.client import Sharding


class BarrierTimeoutError(Exception):
    """The error of a wait for other processes, to write a checkpoint, that took too long."""


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of managers that write arrays over all processes to files in the background.

    Libraries implement it. To write checkpoints, use one, such as orbax-checkpoint.
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
          arrays: the arrays, of which each process writes its parts.
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
          shardings: how each is split over devices, of which each process reads its parts.
          tensorstore_specs: where each was written, as tensorstore says it.
          global_shapes: the shapes of the results; by default those of what was written.
          dtypes: the dtypes of the results; by default those of what was written.
        """
