"""Re-exports: groups of processes that run one program, as `jax.distributed`."""

from hlofront.pjrt.process_group import initialize as initialize
from hlofront.pjrt.process_group import is_initialized as is_initialized
from hlofront.pjrt.process_group import shutdown as shutdown
