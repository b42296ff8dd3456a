"""The logs of a backward pass: named values that backward rules log for `f_vjp.with_logs`."""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Program, subprograms_in
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.primitives.rules.batching import move_axis
from hlofront.transforms.simplify import inline_calls

Logs = dict[Hashable, PyTree]

# Primitives whose transpose rules may log -> whether one with these parameters does.
may_log: dict[Primitive, Callable[[Mapping[str, Any]], bool]] = {}

# Calls, other than plain ones, that a backward pass with logs inlines: those of checkpoint.
inlined_for_logs: set[Primitive] = set()

# The logs of the current backward pass; None if nobody reads them.
_logs: ContextVar[Logs | None] = ContextVar("logs of the backward pass", default=None)


@contextmanager
def collecting_in(logs: Logs | None) -> Generator[None, None, None]:
    """Collect the logs of backward rules that run in a `with` statement; None drops them."""
    token = _logs.set(logs)
    try:
        yield
    finally:
        _logs.reset(token)


def log(entries: Mapping[Hashable, PyTree], about: str) -> None:
    """Add a backward rule's entries to the logs of the current backward pass, if they are read.

    Args:
      entries: pytrees by name.
      about: the first words of a message about the rule.

    Raises:
      ValueError: if a name was logged before.
    """
    logs = _logs.get()
    if logs is None:
        return
    for key, value in entries.items():
        if key in logs:
            raise ValueError(
                f"Duplicate backward-pass log key {key!r} from {about}. Each key must be unique "
                "within a backward pass: a function that logs can be called once, or needs "
                "another key for each call."
            )
        logs[key] = value


class LogsAsResults:
    """A function of flat values whose logs are additional results, for an interpreter to batch."""

    __slots__ = ("_keys", "_structure", "_wrapped", "is_logged")

    def __init__(self, fun: Callable[..., Sequence[Any]]):
        self._wrapped = fun
        self._keys: list[Hashable] = []
        self._structure: PyTreeDef | None = None
        self.is_logged = _logs.get() is not None

    def __call__(self, *args: ArrayLike) -> list[Any]:
        if not self.is_logged:
            return list(self._wrapped(*args))
        logs: Logs = {}
        with collecting_in(logs):
            results = list(self._wrapped(*args))
        self._keys = list(logs)
        leaves, self._structure = tree.tree_flatten(list(logs.values()))
        return [*results, *leaves]

    def take_logs(
        self, values: Sequence[Any], axes: BatchAxes, about: str
    ) -> tuple[Sequence[Any], BatchAxes]:
        """Log the batched logs, with the batch axis in front; return the other results and axes."""
        if self._structure is None:
            return values, axes
        count = len(values) - self._structure.num_leaves
        pairs = zip(values[count:], axes[count:], strict=True)
        leaves = [x if a is None else move_axis(x, a, 0) for x, a in pairs]
        entries = zip(self._keys, self._structure.unflatten(leaves), strict=True)
        log(dict(entries), about)
        return values[:count], axes[:count]


def program_for_logs(jaxpr: Jaxpr, consts: ArrayLikes) -> ClosedJaxpr:
    """Return a program whose transpose logs: without calls around equations that may log.

    Raises:
      ValueError: if such an equation is in a loop, a branch, or shard_map.
    """
    if not _logs_within(jaxpr):
        return ClosedJaxpr(jaxpr, list(consts))
    program = inline_calls(jaxpr, consts, also=inlined_for_logs)
    for equation in program.eqns:
        if not _may_log(equation) and _holds_logs(equation):
            raise ValueError(
                "with_logs: a backward rule that logs was called inside of "
                f"{equation.primitive.name}, whose logs are not collected. Call the function with "
                "that rule outside of loops, branches and shard_map, or unroll them; a call of the "
                "VJP function itself works and drops the logs."
            )
    return program


def _may_log(equation: Equation) -> bool:
    rule = may_log.get(equation.primitive)
    return rule is not None and rule(cast("Mapping[str, Any]", equation.params))


def _holds_logs(equation: Equation) -> bool:
    return any(_logs_within(part.program) for part in subprograms_in([equation]))


@once_per_program
def _logs_within(program: Program) -> bool:
    """Return whether an equation of a program, or of one that it holds, may log."""
    return any(_may_log(equation) or _holds_logs(equation) for equation in program.eqns)
