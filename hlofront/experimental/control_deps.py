"""jax.experimental.control_deps: the order in which XLA computes independent arrays."""

from hlofront.lowering import ffi as _lowering
from hlofront.primitives.ffi import control_dep as control_dep
from hlofront.primitives.ffi import schedule as schedule

# Imported for what it does: foreign calls get their lowering rule.
del _lowering

__all__ = ["control_dep", "schedule"]
