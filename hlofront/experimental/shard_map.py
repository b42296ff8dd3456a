"""jax.experimental.shard_map: shard_map under the name of older versions of JAX."""

from hlofront.higher_order.shard_map.shard_map_older import shard_map as shard_map
