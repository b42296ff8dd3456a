"""ensure_compile_time_eval: evaluation of concrete operands while a function is traced."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from hlofront.base.typing import Params, Value
from hlofront.bridge import state
from hlofront.core.primitive import Primitive
from hlofront.core.trace import (
    RuleTrace,
    Trace,
    Tracer,
    current_trace,
    engine,
    interpreting_with,
)


class CompileTimeTrace(RuleTrace):
    """A trace that runs operations on concrete values and hands those on tracers to its parent."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace):
        self.parent = parent

    @property
    def programs_of(self) -> dict[Any, Any]:
        """The parent trace's table of jaxprs and the values that they captured."""
        return getattr(self.parent, "programs_of", {})

    def lift(self, x: Value) -> Value:
        return engine().lift(x)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        traced = any(isinstance(x, Tracer) for x in args)
        with interpreting_with(self.parent if traced else engine()) as trace:
            return trace.process(primitive, args, params)


def interpreter_of(trace: Trace) -> Trace:
    """Return the interpreter of a function whose operations on tracers are recorded by `trace`."""
    return CompileTimeTrace(trace) if state.folding.value else trace


@contextmanager
def folding_constants(whether: bool) -> Generator[None, None, None]:
    """Set whether functions traced inside the block run their operations on constants."""
    before = state.folding.swap_local(whether)
    try:
        yield
    finally:
        state.folding.set_local(before)


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """Run operations on concrete operands immediately inside the block, also while tracing.

    Results of NumPy arrays, Python scalars and concrete arrays are concrete and may be used in
    Python control flow, also in functions that jit, loops and branches trace inside the block.
    Operations on tracers are traced as they are outside of the block, and transformations around
    it apply to operations inside: an index along a named axis is batched.
    """
    with folding_constants(True), _at_compile_time():
        yield


@contextmanager
def _at_compile_time() -> Generator[None, None, None]:
    """Run operations on the surrounding function's concrete operands immediately in the block."""
    outer: Any = None
    innermost = current_trace()
    while not innermost.stages and isinstance(getattr(innermost, "parent", None), Trace):
        outer, innermost = innermost, cast(Any, innermost).parent
    if innermost is engine():
        yield
    elif outer is None:
        with interpreting_with(CompileTimeTrace(innermost)):
            yield
    else:
        outer.parent = CompileTimeTrace(innermost)  # pyrefly: ignore[missing-attribute]
        try:
            yield
        finally:
            outer.parent = innermost  # pyrefly: ignore[missing-attribute]


@contextmanager
def eval_context() -> Generator[None, None, None]:
    """Run every operation inside the block immediately; operations on tracers raise an error."""
    with interpreting_with(engine()):
        yield
