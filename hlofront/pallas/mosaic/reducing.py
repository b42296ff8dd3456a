"""Mosaic rules of reductions over axes."""

from collections.abc import Callable, Sequence

from hlofront.base.elements import float32, int32, uint32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.types import attribute, i32
from hlofront.pallas.mosaic.builder import KernelBuilder, Number, Shape
from hlofront.pallas.mosaic.elementwise import converted, kind_of
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.primitives.arrays import reducing

# Mosaic's kinds of reductions, of floats, signed and unsigned integers.
_KINDS: dict[Primitive, tuple[str, str, str]] = {
    reducing.reduce_sum_p: ("add", "add", "add"),
    reducing.reduce_max_p: ("maximumf", "maxsi", "maxui"),
    reducing.reduce_min_p: ("minimumf", "minsi", "minui"),
}
# The results of reductions over no elements, by dtype.
_START: dict[Primitive, Callable[[DType], Number]] = {
    reducing.reduce_sum_p: lambda _: 0,
    reducing.reduce_max_p: lambda dtype: reducing.least_value(dtype).item(),
    reducing.reduce_min_p: lambda dtype: reducing.greatest_value(dtype).item(),
}
# Booleans are reduced as the numbers 0 and 1.
_OF_BOOLEANS: dict[Primitive, Primitive] = {
    reducing.reduce_or_p: reducing.reduce_max_p,
    reducing.reduce_and_p: reducing.reduce_min_p,
    reducing.reduce_max_p: reducing.reduce_max_p,
    reducing.reduce_min_p: reducing.reduce_min_p,
}


def reduced(
    build: KernelBuilder,
    primitive: Primitive,
    x: Value,
    shape: Shape,
    dtype: DType,
    axes: Sequence[int],
) -> Value:
    """Return the sum, maximum or minimum of an array over some of its axes, in its dtype."""
    kept = tuple([size for axis, size in enumerate(shape) if axis not in axes])
    if not kept:
        # Mosaic does not reduce all elements to a scalar: keep an axis, and take its only element.
        x = build.reshape(x, dtype, shape, (1, *shape))
        shape, axes, kept = (1, *shape), [axis + 1 for axis in axes], (1,)
        total = reduced(build, primitive, x, shape, dtype, axes)
        ones = (1,) * len(shape)
        return build.reshape(build.reshape(total, dtype, kept, ones), dtype, ones, ())
    kind = _KINDS[primitive][kind_of(dtype)]
    return build.op(
        "vector.multi_reduction",
        (x, build.constant(_START[primitive](dtype), dtype, kept)),
        value_type(kept, dtype),
        kind=attribute(f"#vector.kind<{kind}>"),
        reduction_dims=attribute(f"array<i64: {', '.join(map(str, axes))}>"),
    )


def _computed_in(primitive: Primitive, dtype: DType) -> DType:
    """Return the dtype in which an array is reduced: one of 32 bits, or its own."""
    kind = kind_of(dtype)
    if kind:
        return uint32 if kind == 2 else int32
    return float32 if primitive is reducing.reduce_sum_p or dtype.itemsize < 2 else dtype


def _other_sign(build: KernelBuilder, x: Value, shape: Shape) -> Value:
    """Map unsigned integers to signed ones in the same order, or back.

    Vector units have no maximum of unsigned integers along an axis.
    """
    sign = build.constant(1 << 31, uint32, shape)
    return build.op("arith.xori", (x, sign), value_type(shape, uint32))


def _reduction(primitive: Primitive) -> Callable[..., Value]:
    def rule(build: KernelBuilder, x: Value, *, axes: Sequence[int], **_: object) -> Value:
        aval, out = build.avals_in[0], build.avals_out[0]
        if not axes:
            return x
        of, within = primitive, _computed_in(primitive, aval.dtype)
        if kind_of(aval.dtype) == 3:
            of, within = _OF_BOOLEANS[primitive], float32
        if of not in _KINDS:
            build.refuse(
                f"{primitive.name} of {aval.dtype.name}: kernels of TPUs reduce booleans by it. "
                "Compare first, as in (x != 0).any(axis)",
                NotImplementedError,
            )
        x = converted(build, x, aval.shape, aval.dtype, within)
        if within != uint32 or of is reducing.reduce_sum_p:
            total = reduced(build, of, x, aval.shape, within, tuple(axes))
        else:
            x = _other_sign(build, x, aval.shape)
            total = reduced(build, of, x, aval.shape, int32, tuple(axes))
            total = _other_sign(build, total, out.shape)
        return converted(build, total, out.shape, within, out.dtype)

    return rule


for _primitive in {**_KINDS, **_OF_BOOLEANS}:
    mosaic(_primitive)(_reduction(_primitive))


def _index_of(kind: str) -> Callable[..., Value]:
    def rule(
        build: KernelBuilder, x: Value, *, axes: Sequence[int], index_dtype: DType, **_: object
    ) -> Value:
        aval, out = build.avals_in[0], build.avals_out[0]
        (axis,) = axes
        x = converted(build, x, aval.shape, aval.dtype, float32)
        kept = out.shape
        if aval.ndim == 1:
            axis, kept = 1, (1,)
            x = build.reshape(x, float32, aval.shape, (1, *aval.shape))
        index = build.op(
            "tpu.reduce_index",
            (x,),
            value_type(kept, int32),
            axis=i32(axis),
            kind=attribute(f"#tpu.reduction_kind<{kind}>"),
        )
        index = build.reshape(index, int32, kept, out.shape)
        return converted(build, index, out.shape, int32, index_dtype)

    return rule


mosaic(reducing.argmax_p)(_index_of("arg_max"))
mosaic(reducing.argmin_p)(_index_of("arg_min"))
