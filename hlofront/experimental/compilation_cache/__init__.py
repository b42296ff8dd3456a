"""jax.experimental.compilation_cache: the disk cache of executables."""

from hlofront.experimental.compilation_cache import compilation_cache as compilation_cache
