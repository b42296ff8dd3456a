"""jax.experimental.array_serialization.serialization: the interface of managers of checkpoints."""

from hlofront.runtime.processes.checkpoint_managers import (
    BarrierTimeoutError as BarrierTimeoutError,
)
from hlofront.runtime.processes.checkpoint_managers import (
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
)
