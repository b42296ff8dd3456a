"""jax.debug: values of a program, shown while it runs."""

from hlofront.primitives.callbacks import DebugEffect as DebugEffect
from hlofront.primitives.callbacks import OrderedDebugEffect as OrderedDebugEffect
from hlofront.runtime.debugging.breakpoints import debug_breakpoint as breakpoint
from hlofront.runtime.debugging.printing import debug_callback as callback
from hlofront.runtime.debugging.printing import debug_log as log
from hlofront.runtime.debugging.printing import debug_print as print

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "log", "print"]
