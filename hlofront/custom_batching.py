"""Functions whose batching is the user's."""

from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap as custom_vmap
from hlofront.higher_order.custom_rules.custom_vmap import sequential_vmap as sequential_vmap
