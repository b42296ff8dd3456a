"""jax.debug: printing values while a program runs, and how they are split over devices."""

from hlofront.primitives.calls.callbacks import DebugEffect as DebugEffect
from hlofront.primitives.calls.callbacks import OrderedDebugEffect as OrderedDebugEffect
from hlofront.runtime.debugging.breakpoints import debug_breakpoint as breakpoint
from hlofront.runtime.debugging.printing import debug_callback as callback
from hlofront.runtime.debugging.printing import debug_log as log
from hlofront.runtime.debugging.printing import debug_print as print
from hlofront.runtime.debugging.sharding_pictures import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]
