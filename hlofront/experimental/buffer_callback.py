"""jax.experimental.buffer_callback: Python functions that compute in the memory of arrays."""

from hlofront.bridge.ffi import Buffer as Buffer
from hlofront.bridge.ffi import ExecutionContext as ExecutionContext
from hlofront.bridge.ffi import ExecutionStage as ExecutionStage
from hlofront.higher_order.calls import callback_batching as _callback_batching
from hlofront.primitives.calls.buffer_callback import buffer_callback as buffer_callback

# Imported for its side effect: calls get their rule for vmap.
del _callback_batching
