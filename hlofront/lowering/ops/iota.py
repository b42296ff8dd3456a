"""Lowering rules of iota and of uninitialized arrays."""

from collections.abc import Sequence

from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value
from hlofront.core.aval import MemorySpace
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.arrays import creation as c


@lower(c.iota_p)
def _(
    build: Builder, *, dtype: DType, shape: Sequence[int], dimension: int, sharding: object
) -> Value:
    return build.iota(build.avals_out[0], dimension)


@lower(c.empty_p)
def _(build: Builder, *, shape: Sequence[int], dtype: DType, out_sharding: object) -> Value:
    return build.full(0, build.avals_out[0])


@lower(c.empty2_p)
def _(build: Builder, *, dtype: DType, memory_space: MemorySpace) -> Value:
    return build.full(0, build.avals_out[0])
