"""The lowering rule of symbolic sizes as values."""

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import SizeExpression
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.arrays.sizes import dim_as_value_p


@lower(dim_as_value_p)
def _(build: Builder, *, dim: SizeExpression) -> Value:
    return build.size(dim, build.avals_out[0])
