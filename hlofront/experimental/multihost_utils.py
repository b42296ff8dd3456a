"""jax.experimental.multihost_utils: values, meetings and failures of several processes."""

from hlofront.pjrt.live_processes import live_devices as live_devices
from hlofront.pjrt.live_processes import (
    reached_preemption_sync_point as reached_preemption_sync_point,
)
from hlofront.pjrt.process_failures import ProcessFailureError as ProcessFailureError
from hlofront.primitives.collectives.process_parts import (
    global_array_to_host_local_array_p as global_array_to_host_local_array_p,
)
from hlofront.primitives.collectives.process_parts import gtl_abstract_eval as gtl_abstract_eval
from hlofront.primitives.collectives.process_parts import (
    host_local_array_to_global_array_p as host_local_array_to_global_array_p,
)
from hlofront.primitives.collectives.process_parts import ltg_abstract_eval as ltg_abstract_eval
from hlofront.primitives.collectives.process_parts import ltg_batcher as ltg_batcher
from hlofront.runtime.array.host_local import (
    global_array_to_host_local_array as global_array_to_host_local_array,
)
from hlofront.runtime.array.host_local import (
    global_array_to_host_local_array_impl as global_array_to_host_local_array_impl,
)
from hlofront.runtime.array.host_local import (
    host_local_array_to_global_array as host_local_array_to_global_array,
)
from hlofront.runtime.array.host_local import (
    host_local_array_to_global_array_impl as host_local_array_to_global_array_impl,
)
from hlofront.runtime.processes.gathering import assert_equal as assert_equal
from hlofront.runtime.processes.gathering import broadcast_one_to_all as broadcast_one_to_all
from hlofront.runtime.processes.gathering import process_allgather as process_allgather
from hlofront.runtime.processes.gathering import sync_global_devices as sync_global_devices
