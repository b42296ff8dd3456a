"""jax.extend.sharding: shardings as XLA describes them, and their bytes."""

from hlofront.bridge.client import GSPMDSharding as GSPMDSharding
from hlofront.bridge.sharding_bytes import (
    get_hlo_sharding_from_serialized_proto as get_hlo_sharding_from_serialized_proto,
)
from hlofront.bridge.sharding_bytes import (
    get_op_sharding_from_serialized_proto as get_op_sharding_from_serialized_proto,
)
from hlofront.bridge.sharding_bytes import (
    get_serialized_proto_from_hlo_sharding as get_serialized_proto_from_hlo_sharding,
)
