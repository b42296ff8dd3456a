"""Operations of kernels for TPUs, lowered as XLA's operations."""

from typing import Any

from hlofront.base.elements import int32
from hlofront.base.typing import ArrayLike, DType
from hlofront.bridge.mlir import Value
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.references import NDIndexer
from hlofront.lowering.core.builder import Builder
from hlofront.pallas.hints import delay_p, trace_value_p
from hlofront.pallas.tpu_operations import bitcast_p, reciprocal_p, roll_p
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, div, mul, rem, sub
from hlofront.primitives.references.updates import read_at, with_bits_as


@rules.lower(roll_p)
def _(build: Builder, x: Value, shift: Value, **params: Any) -> Value:
    return build.by_tracing(_rolled, (x, shift), **params)[0]


def _rolled(
    x: ArrayLike, shift: ArrayLike, axis: int, stride: int | None, stride_axis: int | None
) -> ArrayLike:
    shape = typeof(x).shape
    size = full_like(shift, shape[axis], int32, shape=shape)
    places = broadcast_in_dim(convert(shift, int32, False), shape, ())
    if stride is not None and stride_axis is not None:
        row = broadcasted_iota(int32, shape, stride_axis)
        places = add(places, mul(row, full_like(row, stride)))
    indices: list[Any] = [broadcasted_iota(int32, shape, each) for each in range(len(shape))]
    # The remainder of a sum that is not negative.
    indices[axis] = rem(add(sub(indices[axis], rem(places, size)), size), size)
    return read_at(x, [NDIndexer(indices, shape, shape)])


@rules.lower(bitcast_p)
def _(build: Builder, x: Value, **params: Any) -> Value:
    return build.by_tracing(_bitcast, (x,), **params)[0]


def _bitcast(x: ArrayLike, ty: DType, dim: int) -> ArrayLike:
    return with_bits_as(x, ty, dim)


@rules.lower(reciprocal_p)
def _(build: Builder, x: Value, **params: Any) -> Value:
    return build.by_tracing(_reciprocal, (x,))[0]


def _reciprocal(x: ArrayLike) -> ArrayLike:
    return div(full_like(x, 1), x)


@rules.lower(delay_p, trace_value_p)
def _(build: Builder, x: Value, **_: object) -> list[Value]:
    return []
