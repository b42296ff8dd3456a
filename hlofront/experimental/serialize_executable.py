"""jax.experimental.serialize_executable: compiled programs as bytes, for other processes."""

from hlofront.runtime.export.serialization import deserialize_and_load as deserialize_and_load
from hlofront.runtime.export.serialization import serialize as serialize
