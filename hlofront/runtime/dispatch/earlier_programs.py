"""The protocol with which a jitted function starts from the programs of an earlier process."""

from collections.abc import Callable, Sequence
from typing import Protocol

from hlofront.runtime.compilation.traced_program import TracedKey, TracedProgram
from hlofront.runtime.dispatch.executable import CallAnswer


class EarlierPrograms(Protocol):
    """The protocol of a function's programs that an earlier process has traced and compiled."""

    def call(
        self,
        key: TracedKey,
        leaves: Sequence[object],
        names: Callable[[], tuple[str, ...]],
        run: Callable[[TracedProgram, Sequence[object]], CallAnswer],
    ) -> CallAnswer | None:
        """Run a call of the function and return its result; None if there is no program for it.

        Args:
          key: the kind of the arguments, which selects the program.
          leaves: the flat arguments.
          names: returns the name of each flat argument.
          run: runs a program on its flat arguments.
        """
        ...
