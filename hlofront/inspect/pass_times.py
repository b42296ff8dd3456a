"""The function `compile_times`: a compilation under XLA's profiler, and its times by pass."""

import time
from collections.abc import Callable

from hlofront.base import source
from hlofront.base.config import options
from hlofront.bridge import profiler as bridge
from hlofront.inspect.jitted import jitted
from hlofront.runtime.debugging.profiler import ProfileSession
from hlotools.profiles.compile_times import CompileTimes as CompileTimes
from hlotools.profiles.compile_times import compile_times as times_of
from hlotools.profiles.xplane import parse_xplane

_disk_cache = options["hlofront_cache"]
_whole_disk_cache = options["jax_enable_compilation_cache"]


def compile_times(function: Callable[..., object]) -> Callable[..., CompileTimes]:
    """Return a function that compiles `function`, and returns the time of each of XLA's passes.

    It compiles for the current device and does not run. Executables in caches on disk are not used.
    XLA reports the time of its passes over HLO and, for CPUs, of MLIR's passes over each kernel,
    and of LLVM as a whole.

    Args:
      function: the function to compile, jitted or not.

    Raises:
      ProfileError: if the compiler does not report its passes, as libtpu's does not.

    Example:
      >>> from hlofront.inspect import compile_times
      >>> times = compile_times(lambda x: jnp.tanh(x @ x).sum())(jnp.ones((8, 8)))
      >>> {"fusion", "layout-assignment"} <= {row.name for row in times.passes}
      True
    """

    def compile_under_profiler(*args: object, **kwargs: object) -> CompileTimes:
        lowered = jitted(function).lower(*args, **kwargs)
        recording = bridge.ProfileOptions()
        recording.python_tracer_level = 0
        with (
            _disk_cache(False),
            _whole_disk_cache(False),
            ProfileSession(None, profiler_options=recording) as session,
        ):
            start = time.perf_counter()
            lowered.compile()
            seconds = time.perf_counter() - start
        assert session.record is not None
        space = parse_xplane(session.record.content)
        return times_of(space, source.callable_name(function), seconds)

    return compile_under_profiler
