"""The protocol by which a jitted function starts from the programs of an earlier process."""

from collections.abc import Callable, Sequence
from typing import Protocol

from hlofront.runtime.compilation.traced_program import TracedProgram
from hlofront.runtime.dispatch.executable import CallAnswer


class EarlierPrograms(Protocol):
    """A protocol of programs that an earlier process has traced and compiled of a function."""

    def call(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        run: Callable[[TracedProgram, Sequence[object]], CallAnswer],
    ) -> CallAnswer | None:
        """Answer a call of the function; None if there is no program for it.

        Args:
          args, kwargs: the arguments of the call.
          run: runs a program on its flat arguments.
        """
        ...
