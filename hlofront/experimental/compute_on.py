"""jax.experimental.compute_on: operations on the host, a sparse core, or a stream of the GPU."""

from hlofront.higher_order.calls.metadata_calls import compute_on as compute_on
from hlofront.higher_order.calls.metadata_calls import compute_on2 as compute_on2
