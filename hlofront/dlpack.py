"""Re-exports: arrays that other libraries share through DLPack, without copies."""

from hlofront.runtime.array.exchange import from_dlpack as from_dlpack
from hlofront.runtime.array.exchange import is_supported_dtype as is_supported_dtype
