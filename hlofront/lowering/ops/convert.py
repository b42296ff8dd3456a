"""Lowering rules of conversions between dtypes."""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.elementwise import converting as c
from hlofront.primitives.elementwise.families import real_of


@lower(c.convert_element_type_p)
def _(build: Builder, x: Value, *, new_dtype: DType, weak_type: bool, sharding: object) -> Value:
    return convert(build, x, build.avals_in[0], build.avals_out[0])


def convert(build: Builder, x: Value, aval: ShapedArray, result: ShapedArray) -> Value:
    """Convert x of `aval` to the dtype of `result`, dropping fractions and imaginary parts."""
    if aval.dtype == result.dtype or isinstance(aval.dtype, ExtendedDType):
        return x
    if issubdtype(aval.dtype, np.complexfloating) and not issubdtype(
        result.dtype, np.complexfloating
    ):
        aval = aval.update(dtype=real_of(aval.dtype))
        x = build.op("stablehlo.real", (x,), aval)
    if result.dtype == np.bool_:
        return build.compare("NE", x, build.full(0, aval), aval)
    return x if aval.dtype == result.dtype else build.convert(x, result)


@lower(c.to_edtype_p)
def _(build: Builder, x: Value, *, edtype: DType) -> Value:
    return x


@lower(c.from_edtype_p)
def _(build: Builder, x: Value, *, dtype: DType) -> Value:
    return x


@lower(c.bitcast_convert_type_p)
def _(build: Builder, x: Value, *, new_dtype: DType) -> Value:
    return build.op("stablehlo.bitcast_convert", (x,))


@lower(c.reduce_precision_p)
def _(build: Builder, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    # Beyond the bits of all dtypes, more are the same; StableHLO counts up to 2**31.
    return build.op(
        "stablehlo.reduce_precision",
        (x,),
        exponent_bits=types.i32(min(exponent_bits, 64)),
        mantissa_bits=types.i32(min(mantissa_bits, 64)),
    )


@lower(c.copy_p, c.stage_p, c.stop_gradient_p)
def _(build: Builder, x: Value) -> Value:
    return x
