"""Mosaic rules of packing, unpacking and stochastic rounding."""

import numpy as np

from hlofront.base.dtypes import bit_width, issubdtype
from hlofront.base.elements import float32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, ir
from hlofront.lowering.core.types import i32
from hlofront.pallas.mosaic.builder import KernelBuilder
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.pallas.packing import pack_elementwise_p, stochastic_round_p, unpack_elementwise_p

# The dtypes to which TPUs can round stochastically.
_ROUNDED = "bfloat16 float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz float4_e2m1fn int4".split()


def _type(dtype: DType) -> ir.Attribute:
    return ir.TypeAttr.get(value_type((), dtype))


@mosaic(pack_elementwise_p)
def _(build: KernelBuilder, *xs: Value, packed_dtype: DType) -> Value:
    return build.op("tpu.pack_elementwise", xs, target_type=_type(packed_dtype))


@mosaic(unpack_elementwise_p)
def _(
    build: KernelBuilder, x: Value, *, index: int, packed_dtype: DType, unpacked_dtype: DType
) -> Value:
    part = build.op(
        "tpu.unpack_elementwise", (x,), source_type=_type(packed_dtype), index=i32(index)
    )
    if not issubdtype(packed_dtype, np.unsignedinteger):
        return part
    # Mosaic's integers are signless: the operation extends the highest bit.
    mask = (1 << bit_width(packed_dtype)) - 1
    shape = build.avals_in[0].shape
    return build.op("arith.andi", (part, build.constant(mask, unpacked_dtype, shape)))


@mosaic(stochastic_round_p)
def _(build: KernelBuilder, x: Value, random_bits: Value, *, target_dtype: DType) -> Value:
    if build.avals_in[0].dtype != float32:
        build.refuse(
            f"stochastic_round of {build.avals_in[0].dtype}: Only float32 input is supported. "
            "Convert to float32 first"
        )
    if target_dtype.name not in _ROUNDED:
        build.refuse(
            f"stochastic_round: Unsupported target dtype: {target_dtype}. TPUs round to "
            f"{', '.join(_ROUNDED)}"
        )
    return build.op("tpu.stochastic_convert", (x, random_bits))
