"""jax.experimental: what may change."""

from hlofront.runtime.dispatch.callbacks import io_callback as io_callback
