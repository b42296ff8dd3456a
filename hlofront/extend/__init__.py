"""jax.extend: interfaces for packages that extend the system."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules=(
        "backend core ifrt_programs linear_util lowering mlir random sharding source_info_util xla"
    ),
)
