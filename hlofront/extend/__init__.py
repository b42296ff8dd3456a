"""jax.extend: interfaces for packages that extend the system."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__, ("backend", "core", "linear_util", "lowering", "random", "source_info_util")
)
