"""What those use who write primitives and interpreters of their own."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("ad", "batching", "mlir", "partial_eval", "pxla", "xla"))
