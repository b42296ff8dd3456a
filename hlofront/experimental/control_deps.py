"""jax.experimental.control_deps: the order in which XLA computes independent arrays."""

from hlofront.primitives.calls.ffi import control_dep as control_dep
from hlofront.primitives.calls.ffi import schedule as schedule
