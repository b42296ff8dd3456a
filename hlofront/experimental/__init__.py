"""jax.experimental: features whose interfaces may change."""

from hlofront.core.high_types import cur_qdd as cur_qdd
from hlofront.runtime.dispatch.callbacks import io_callback as io_callback
