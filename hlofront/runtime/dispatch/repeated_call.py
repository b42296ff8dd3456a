# pyright: strict
"""Repeated calls of programs that C++ does not start, without looking up the program."""

import weakref
from collections.abc import Sequence
from typing import Any

from hlofront.base.tree import PyTree
from hlofront.bridge import fast_parts, state
from hlofront.bridge.client import ArrayImpl, Sharding
from hlofront.bridge.members import is_committed, sharding_of
from hlofront.core.trace import is_eager
from hlofront.runtime.compilation import run_log
from hlofront.runtime.compilation.traced_program import TracedProgram
from hlofront.runtime.dispatch.executable import Executable

_flatten = fast_parts.registry.flatten
_trace_context = state.trace_context


class RepeatedCall:
    """The kind of a jitted function's last call, and the executable for calls of this kind.

    C++ keeps these itself, except for programs that it must not start: those whose CPU devices
    exchange values have to wait for one another, and a watchdog notes those of several processes.
    The caches, not this object, keep the executable
    alive.

    Args:
      traced: the program of the call, without static arguments.
      executable: its executable.
      leaves: the flat arguments, arrays that are committed to devices.
    """

    __slots__ = ("_context", "_executable", "_kinds", "_traced")

    # The aval and the sharding of each argument.
    _kinds: list[tuple[Any, Sharding]]

    def __init__(self, traced: TracedProgram, executable: Executable, leaves: Sequence[Any]):
        self._traced = weakref.ref(traced)
        self._executable = weakref.ref(executable)
        self._kinds = [(x.aval, sharding_of(x)) for x in leaves]
        self._context = _trace_context()

    @staticmethod
    def of(
        traced: TracedProgram, executable: Executable, leaves: Sequence[object]
    ) -> "RepeatedCall | None":
        """Return the kind of a call without static arguments; None if C++ makes such calls."""
        if not (executable.meets_on_cpu or executable.notes_launches) or not leaves:
            return None
        arrays = [x for x in leaves if type(x) is ArrayImpl and is_committed(x)]
        return RepeatedCall(traced, executable, arrays) if len(arrays) == len(leaves) else None

    def result(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[PyTree] | None:
        """Return the result of a call, in a tuple; None if the call is of another kind."""
        traced, executable = self._traced(), self._executable()
        if traced is None or executable is None or not is_eager():
            return None
        if run_log.current is not None:  # The log has a line for each program that is looked for.
            return None
        leaves, in_tree = _flatten((args, kwargs))
        if in_tree != traced.in_tree or _trace_context() != self._context:
            return None
        for x, (aval, sharding) in zip(leaves, self._kinds, strict=True):
            if type(x) is not ArrayImpl or x.aval is not aval or not is_committed(x):
                return None
            if sharding_of(x) != sharding:
                return None
        return (traced.out_tree.unflatten(executable.run(leaves)),)
