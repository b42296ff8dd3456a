"""ensure_compile_time_eval: run what can be run while a function is being traced."""

from collections.abc import Generator
from contextlib import contextmanager

from hlofront.core.trace import engine, interpreting_with


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """Run the operations inside now, on concrete values, while a function is being traced.

    What is computed from NumPy arrays, Python scalars and concrete arrays is concrete and may
    steer Python. A traced value inside is an error: its value is not known yet.
    """
    with interpreting_with(engine()):
        yield


eval_context = ensure_compile_time_eval
