"""jax.experimental.scheduling_groups: calls whose operations XLA schedules as a group."""

from hlofront.higher_order.calls.metadata_calls import scheduling_group as scheduling_group
from hlofront.higher_order.calls.metadata_calls import xla_metadata_call as xla_metadata_call
from hlofront.higher_order.calls.metadata_calls import xla_metadata_call_p as xla_metadata_call_p
