"""Operations of kernels for TPUs, lowered as XLA's operations."""

from hlofront.base.elements import int32
from hlofront.base.typing import ArrayLike, DType
from hlofront.bridge.mlir import Value
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.references import NDIndexer
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.formulas import by_tracing
from hlofront.pallas.control import multiple_of_p
from hlofront.pallas.hints import delay_p, trace_value_p
from hlofront.pallas.memory_hints import with_memory_space_constraint_p
from hlofront.pallas.tpu_operations import bitcast_p, reciprocal_p, roll_p
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, div, mul, rem, sub
from hlofront.primitives.references.updates import read_at, with_bits_as


@by_tracing(roll_p)
def _rolled(
    x: ArrayLike, shift: ArrayLike, axis: int, stride: int | None, stride_axis: int | None
) -> ArrayLike:
    shape = typeof(x).shape
    size = full_like(shift, shape[axis], int32, shape=shape)
    places = broadcast_in_dim(convert(shift, int32, False), shape, ())
    if stride is not None and stride_axis is not None:
        row = broadcasted_iota(int32, shape, stride_axis)
        places = add(places, mul(row, full_like(row, stride)))
    indices: list[ArrayLike] = [broadcasted_iota(int32, shape, each) for each in range(len(shape))]
    # The remainder of a sum that is not negative.
    indices[axis] = rem(add(sub(indices[axis], rem(places, size)), size), size)
    return read_at(x, [NDIndexer(indices, shape, shape)])


@by_tracing(bitcast_p)
def _bitcast(x: ArrayLike, ty: DType, dim: int) -> ArrayLike:
    return with_bits_as(x, ty, dim)


@by_tracing(reciprocal_p)
def _reciprocal(x: ArrayLike, **_: bool) -> ArrayLike:
    return div(full_like(x, 1), x)


@rules.lower(multiple_of_p, with_memory_space_constraint_p)
def _(build: Builder, x: Value, **_: object) -> Value:
    return x


@rules.lower(delay_p, trace_value_p)
def _(build: Builder, x: Value, **_: object) -> list[Value]:
    return []
