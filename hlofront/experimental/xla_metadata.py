"""jax.experimental.xla_metadata: attributes of operations for XLA's passes and plugins."""

from hlofront.primitives.calls.metadata import set_xla_metadata as set_xla_metadata
