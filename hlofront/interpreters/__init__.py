"""jax.interpreters: interfaces for packages that define primitives and interpreters."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("ad", "batching", "mlir", "partial_eval", "pxla", "xla"))
