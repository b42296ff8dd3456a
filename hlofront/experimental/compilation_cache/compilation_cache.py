"""jax.experimental.compilation_cache.compilation_cache: the folder of executables."""

from hlofront.pjrt.configured_stores import reset_cache as reset_cache
from hlofront.pjrt.configured_stores import set_cache_dir as set_cache_dir
