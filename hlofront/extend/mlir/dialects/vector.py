"""jax.extend.mlir.dialects.vector: the operations of MLIR's dialect vector."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.bridge.mlir_names import homes_of as _homes_of

__getattr__, __dir__ = _lazy(__name__, (), _homes_of("jaxlib.mlir.dialects.vector"))
