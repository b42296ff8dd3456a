"""The state of tracing, for packages that write interpreters or caches of their own."""

import weakref
from collections.abc import Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager

from hlofront.base.config import check_tracer_leaks
from hlofront.core.axes import current_axes
from hlofront.core.trace import Trace, current_trace, engine, interpreting_with
from hlofront.transforms.batch import BatchTrace
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.stage import StagingTrace


class OpaqueTraceState:
    """A snapshot of the current trace: two are equal while the same trace is current.

    Libraries store one in an object that is created in a traced function, and refuse to change the
    object under another trace.
    """

    __slots__ = ("_axes", "_trace")

    def __init__(self) -> None:
        self._trace = weakref.ref(current_trace())
        self._axes = current_axes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueTraceState):
            return NotImplemented
        trace = self._trace()
        return trace is not None and trace is other._trace() and self._axes == other._axes

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class TraceTag:
    """A mark by which an interpreter of another package knows its own traces; all are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return a snapshot of the trace that is current, to compare with later ones.

    Args:
      convention: the library that asks; the answer is the same for all.
    """
    return OpaqueTraceState()


def find_top_trace(_: Iterable[object]) -> Trace:
    """Return the trace that the next operation goes to, whatever its operands."""
    return current_trace()


@contextmanager
def take_current_trace() -> Generator[Trace, None, None]:
    """Yield the current trace, and run what is inside of the block outside of it, eagerly.

    Interpreters of other packages begin with this, and hand the trace what they do not handle.
    """
    taken = current_trace()
    with interpreting_with(engine()):
        yield taken


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Generator[None, None, None]:
    """Send the operations of the block to a trace.

    Args:
      trace: an interpreter of operations.
      check_leaks: whether to look, at the end of the block, for tracers of the trace that are still
        referred to, where `jax_check_tracer_leaks` is set. The caller has let go of them by then.

    Raises:
      TracerLeakError: if there are some.
    """
    with interpreting_with(trace):
        yield
    if check_leaks and check_tracer_leaks.value:
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)


def _enclosing_traces() -> Iterator[Trace]:
    """Yield the current trace and those around it, the innermost first."""
    trace: Trace | None = current_trace()
    while trace is not None:
        yield trace
        # The engine has none, and a trace of another package need not say.
        trace = getattr(trace, "parent", None)


def unsafe_am_i_under_a_jit() -> bool:
    """Return whether a program is being written down around the caller.

    Code that asks behaves differently when it is traced, which surprises its users: JAX calls this
    `unsafe_am_i_under_a_jit_DO_NOT_USE`.
    """
    return any(isinstance(trace, StagingTrace) for trace in _enclosing_traces())


def unsafe_am_i_under_a_vmap() -> bool:
    """Return whether the caller is inside of a function that vmap maps."""
    return any(isinstance(trace, BatchTrace) for trace in _enclosing_traces())


def unsafe_get_axis_names() -> list[Hashable]:
    """Return the names of the axes in scope, the outermost first."""
    return [name for name, _ in current_axes()]


def nonempty_axis_env() -> bool:
    """Return whether a named axis is in scope."""
    return bool(current_axes())
