"""jax.extend.mlir.dialects: the operations of MLIR's dialects."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    (
        "arith",
        "builtin",
        "chlo",
        "func",
        "math",
        "memref",
        "mpmd",
        "scf",
        "sdy",
        "sparse_tensor",
        "stablehlo",
        "vector",
    ),
)
