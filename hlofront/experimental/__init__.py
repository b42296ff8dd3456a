"""jax.experimental: what may change."""

from hlofront.runtime.callbacks import io_callback as io_callback
