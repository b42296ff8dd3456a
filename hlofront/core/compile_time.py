"""ensure_compile_time_eval: run what can be run while a function is being traced."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hlofront.base.typing import Params
from hlofront.core.trace import Trace, Tracer, current_trace, engine, interpreting_with, is_eager


class CompileTimeTrace(Trace):
    """Runs operations on concrete values now; those on tracers go to the trace around it."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace):
        self.alive = True
        self.parent = parent

    @property
    def programs_of(self) -> dict[Any, Any]:
        """The programs that captured values of the function around this one."""
        return getattr(self.parent, "programs_of", {})

    def lift(self, x: Any) -> Any:
        return engine().lift(x)

    def process(self, primitive: Any, args: tuple[Any, ...], params: Params) -> Any:
        traced = any(isinstance(x, Tracer) for x in args)
        with interpreting_with(self.parent if traced else engine()) as trace:
            return trace.process(primitive, args, params)


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """Run the operations inside now where their operands are concrete, while a function is traced.

    What is computed from NumPy arrays, Python scalars and concrete arrays is concrete and may
    steer Python. An operation on a traced value is written down, as it is outside of the block.
    """
    if is_eager():
        yield
        return
    with interpreting_with(CompileTimeTrace(current_trace())):
        yield


@contextmanager
def eval_context() -> Generator[None, None, None]:
    """Run every operation inside now: a traced value inside is an error, as it has no value."""
    with interpreting_with(engine()):
        yield
