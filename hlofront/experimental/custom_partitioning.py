"""jax.experimental.custom_partitioning: functions with user-defined shardings."""

from hlofront.higher_order.shard_map.custom_partitioning import (
    custom_partitioning as custom_partitioning,
)
from hlofront.higher_order.shard_map.custom_partitioning import (
    custom_partitioning_p as custom_partitioning_p,
)
from hlofront.higher_order.shard_map.sharding_rule import BATCHING as BATCHING
from hlofront.higher_order.shard_map.sharding_rule import ArrayMapping as ArrayMapping
from hlofront.higher_order.shard_map.sharding_rule import CompoundFactor as CompoundFactor
from hlofront.higher_order.shard_map.sharding_rule import SdyShardingRule as SdyShardingRule
