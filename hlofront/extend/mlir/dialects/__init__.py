"""jax.extend.mlir.dialects: the operations of MLIR's dialects."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="arith builtin chlo func math memref mpmd scf sdy sparse_tensor stablehlo vector",
)
