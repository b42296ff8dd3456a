"""The state of tracing, for packages with interpreters or caches outside hlofront."""

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
    """A snapshot of the current trace; two are equal while one trace is current.

    Libraries store one in an object created in a traced function, to refuse mutation under another
    trace.
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
    """A marker by which an interpreter of another package identifies its traces; all are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return a snapshot of the current trace, to compare with later snapshots.

    Args:
      convention: the calling library, which is ignored.
    """
    return OpaqueTraceState()


def find_top_trace(_: Iterable[object]) -> Trace:
    """Return the current trace; the operands do not matter."""
    return current_trace()


@contextmanager
def take_current_trace() -> Generator[Trace, None, None]:
    """Yield the current trace, and run operations inside the block eagerly instead of in it.

    Other packages' interpreters begin with this, and pass operations that they do not handle to the
    trace.
    """
    taken = current_trace()
    with interpreting_with(engine()):
        yield taken


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Generator[None, None, None]:
    """Make a trace interpret the operations of the block.

    Args:
      trace: an interpreter of operations.
      check_leaks: whether to search for leaked tracers of the trace after the block, if
        `jax_check_tracer_leaks` is set. The caller must hold no references to them by then.

    Raises:
      TracerLeakError: if a tracer has leaked.
    """
    with interpreting_with(trace):
        yield
    if check_leaks and check_tracer_leaks.value:
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)


def _enclosing_traces() -> Iterator[Trace]:
    """Yield the current trace and its enclosing traces, the innermost first."""
    trace: Trace | None = current_trace()
    while trace is not None:
        yield trace
        # The engine has no parent, and a trace of another package may lack the attribute.
        trace = getattr(trace, "parent", None)


def unsafe_am_i_under_a_jit() -> bool:
    """Return whether the caller is being staged to a jaxpr, as under jit.

    Code that branches on it behaves differently under tracing, which surprises users: JAX calls
    this `unsafe_am_i_under_a_jit_DO_NOT_USE`.
    """
    return any(isinstance(trace, StagingTrace) for trace in _enclosing_traces())


def unsafe_am_i_under_a_vmap() -> bool:
    """Return whether the caller runs under vmap."""
    return any(isinstance(trace, BatchTrace) for trace in _enclosing_traces())


def unsafe_get_axis_names() -> list[Hashable]:
    """Return the names of the mapped axes in scope, the outermost first."""
    return [name for name, _ in current_axes()]


def nonempty_axis_env() -> bool:
    """Return whether a mapped axis with a name is in scope."""
    return bool(current_axes())
