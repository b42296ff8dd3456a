"""jax.interpreters: interfaces for packages that define primitives and interpreters."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(__name__, submodules="ad batching mlir partial_eval pxla xla")
