"""Operations of kernels for TPUs, lowered as XLA's operations."""

from typing import Any

from hlofront.base.dtypes import bit_width
from hlofront.base.elements import int32
from hlofront.base.typing import ArrayLike, DType
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.references import NDIndexer
from hlofront.lowering.core.builder import Builder
from hlofront.pallas.hints import delay_p, trace_value_p
from hlofront.pallas.tpu_operations import bitcast_p, reciprocal_p, roll_p
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.elementwise.elementwise import add, div, mul, rem, sub
from hlofront.primitives.references.updates import read_at


@rules.lower(roll_p)
def _(build: Builder, x: Any, shift: Any, **params: Any) -> Any:
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
def _(build: Builder, x: Any, **params: Any) -> Any:
    return build.by_tracing(_bitcast, (x,), **params)[0]


def _bitcast(x: ArrayLike, ty: DType, dim: int) -> ArrayLike:
    aval: Any = typeof(x)
    shape = list(aval.shape)
    narrow, wide = sorted((bit_width(aval.dtype), bit_width(ty)))
    count = wide // narrow
    if bit_width(ty) < bit_width(aval.dtype):
        # The parts of an element are a new last axis, which moves behind the axis `dim`.
        parts = bitcast_convert_type(x, ty)
        order = [*range(dim + 1), len(shape), *range(dim + 1, len(shape))]
        shape[dim] *= count
        return reshape(transpose(parts, order), shape)
    if count > 1:
        split = reshape(x, [*shape[:dim], shape[dim] // count, count, *shape[dim + 1 :]])
        x = transpose(split, [*range(dim + 1), *range(dim + 2, len(shape) + 1), dim + 1])
    return bitcast_convert_type(x, ty)


@rules.lower(reciprocal_p)
def _(build: Builder, x: Any, **params: Any) -> Any:
    return build.by_tracing(_reciprocal, (x,))[0]


def _reciprocal(x: ArrayLike) -> ArrayLike:
    return div(full_like(x, 1), x)


@rules.lower(delay_p, trace_value_p)
def _(build: Builder, x: Any, **_: object) -> list[Any]:
    return []
