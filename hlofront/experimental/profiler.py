"""jax.experimental.profiler: profiles that guide XLA's optimization of later compilations."""

from hlofront.runtime.debugging.profiler import (
    get_profiled_instructions_proto as get_profiled_instructions_proto,
)
