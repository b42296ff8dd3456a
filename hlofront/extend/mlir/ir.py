"""jax.extend.mlir.ir: MLIR's classes of modules, operations, types and attributes."""

from hlofront.base.lazy import exports as _exports
from hlofront.bridge.mlir_names import names_of as _names_of

__getattr__, __dir__ = _exports(__name__, later=_names_of("jaxlib.mlir.ir"))
