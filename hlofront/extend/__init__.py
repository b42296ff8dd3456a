"""jax.extend: interfaces for packages that extend the system."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    (
        "backend",
        "core",
        "ifrt_programs",
        "linear_util",
        "lowering",
        "mlir",
        "random",
        "sharding",
        "source_info_util",
        "xla",
    ),
)
