"""The Mosaic rule of products of matrices."""

import numpy as np

from hlofront.base.elements import float32, int32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, ir
from hlofront.lowering.core.types import attribute
from hlofront.pallas.mosaic.builder import KernelBuilder
from hlofront.pallas.mosaic.elementwise import converted, kind_of
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.primitives.linalg.dot_general import Precision, dot_general_p

_WAYS = (
    "the unit of matrix products has one axis that is contracted, and at most one batch axis, the "
    "first of both operands"
)

# The dtypes that the matrix unit multiplies.
_ELEMENTS = frozenset(
    ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz")
    + ("float4_e2m1fn", "int8", "uint8", "int4", "uint4", "int2", "uint2")
)


@mosaic(dot_general_p)
def _(
    build: KernelBuilder,
    lhs: Value,
    rhs: Value,
    *,
    dimension_numbers: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]],
    precision: object,
    preferred_element_type: DType | None,
    **_: object,
) -> Value:
    (contracting, batch), avals, out = dimension_numbers, build.avals_in, build.avals_out[0]
    if (
        len(contracting[0]) != 1
        or len(batch[0]) > 1
        or any(axes[:1] not in ((), (0,)) for axes in batch)
    ):
        build.refuse(
            f"a product with dimension_numbers={dimension_numbers}: {_WAYS}. Reshape or transpose "
            "the operands",
            NotImplementedError,
        )
    if not all(aval.ndim for aval in avals) or not out.shape:
        build.refuse(
            f"a product of {avals[0].str_short()} and {avals[1].str_short()}: {_WAYS}, and its "
            "result has an axis. Use jnp.sum(x * y)",
            NotImplementedError,
        )
    unknown = {aval.dtype.name for aval in avals} - _ELEMENTS
    if unknown:
        build.refuse(
            f"a product of {avals[0].str_short()} and {avals[1].str_short()}: the unit of matrix "
            f"products takes no {' and no '.join(sorted(unknown))}. Convert the operands to int8, "
            "bfloat16 or float32",
            NotImplementedError,
        )
    free = [
        [axis for axis in range(aval.ndim) if axis not in (*c, *b)]
        for aval, c, b in zip(avals, contracting, batch, strict=True)
    ]
    # Per axis of the result: the operand, and the axis there.
    order = [
        *((0, axis) for axis in batch[0]),
        *((0, axis) for axis in free[0]),
        *((1, axis) for axis in free[1]),
    ]
    parts = [*contracting, *free, np.ravel(order).tolist(), *batch]
    listed = ", ".join(f"[{', '.join(map(str, part))}]" for part in parts)
    # Products are accumulated in 32 bits.
    within = int32 if kind_of(out.dtype) else float32
    product = build.op(
        "tpu.matmul",
        (lhs, rhs, build.constant(0, within, out.shape)),
        build.type_of(out.update(dtype=within)),
        dimension_numbers=attribute(f"#tpu.dot_dimension_numbers<{listed}>"),
        transpose_lhs_hint=attribute("false"),
        **_precision(build, precision),
    )
    return converted(build, product, out.shape, within, out.dtype)


def _precision(build: KernelBuilder, precision: object) -> dict[str, ir.Attribute]:
    of = precision if isinstance(precision, tuple) else (precision,)
    if any(p not in (None, Precision.DEFAULT, Precision.HIGHEST) for p in of):
        build.refuse(
            f"a product with precision={precision!r}: kernels of TPUs multiply with "
            "Precision.DEFAULT or Precision.HIGHEST",
            NotImplementedError,
        )
    is_float32 = any(aval.dtype == float32 for aval in build.avals_in)
    if Precision.HIGHEST in of and is_float32:
        return {"precision": attribute("#tpu.contract_precision<fp32>")}
    return {}
