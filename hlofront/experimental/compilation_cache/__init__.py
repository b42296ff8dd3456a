"""jax.experimental.compilation_cache: where executables are kept on the disk."""

from hlofront.experimental.compilation_cache import compilation_cache as compilation_cache
