"""jax.experimental.overlap: in which order operations run, and which of them overlap."""

from hlofront.higher_order.calls.program_order import program_order as program_order
