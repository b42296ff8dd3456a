"""jax.experimental.array_serialization.serialization: arrays of checkpoints, in files."""

from hlofront.runtime.processes.checkpoint_files import (
    get_tensorstore_spec as get_tensorstore_spec,
)
from hlofront.runtime.processes.checkpoint_managers import (
    BarrierTimeoutError as BarrierTimeoutError,
)
from hlofront.runtime.processes.checkpoint_managers import (
    GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
)
from hlofront.runtime.processes.checkpoint_managers import (
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
)
