"""Mosaic rules of elementwise operations: a table by kinds of elements, and a few formulas."""

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bfloat16, bool_, float32, int32, uint32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.types import attribute
from hlofront.pallas.mosaic.builder import KernelBuilder, Shape
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.primitives.calls.barriers import optimization_barrier_p
from hlofront.primitives.collectives.varying import pvary_p
from hlofront.primitives.elementwise import compare, converting
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.rules.derivatives import add_any_p
from hlofront.primitives.sharding.placing import argument_sharding_p, sharding_constraint_p
from hlofront.primitives.sharding.resharding import reshard_p

# The operations on floats, signed integers, unsigned integers and booleans; "" where missing.
_OPERATIONS: dict[Primitive, tuple[str, str, str, str]] = {
    e.add_p: ("arith.addf", "arith.addi", "arith.addi", "arith.ori"),
    add_any_p: ("arith.addf", "arith.addi", "arith.addi", ""),
    e.sub_p: ("arith.subf", "arith.subi", "arith.subi", ""),
    e.mul_p: ("arith.mulf", "arith.muli", "arith.muli", "arith.andi"),
    e.div_p: ("arith.divf", "arith.divsi", "arith.divui", ""),
    e.rem_p: ("arith.remf", "arith.remsi", "arith.remui", ""),
    e.max_p: ("arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"),
    e.min_p: ("arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"),
    e.and_p: ("", "arith.andi", "arith.andi", "arith.andi"),
    e.or_p: ("", "arith.ori", "arith.ori", "arith.ori"),
    e.xor_p: ("", "arith.xori", "arith.xori", "arith.xori"),
    e.shift_left_p: ("", "arith.shli", "arith.shli", ""),
    e.shift_right_logical_p: ("", "arith.shrui", "arith.shrui", ""),
    e.shift_right_arithmetic_p: ("", "arith.shrsi", "arith.shrsi", ""),
    e.abs_p: ("math.absf", "math.absi", "", ""),
    e.atan2_p: ("math.atan2", "", "", ""),
    e.ceil_p: ("math.ceil", "", "", ""),
    e.clz_p: ("", "math.ctlz", "math.ctlz", ""),
    e.cos_p: ("math.cos", "", "", ""),
    s.erf_p: ("math.erf", "", "", ""),
    e.exp2_p: ("math.exp2", "", "", ""),
    e.exp_p: ("math.exp", "", "", ""),
    e.floor_p: ("math.floor", "", "", ""),
    e.log1p_p: ("math.log1p", "", "", ""),
    e.log_p: ("math.log", "", "", ""),
    e.population_count_p: ("", "math.ctpop", "math.ctpop", ""),
    e.rsqrt_p: ("math.rsqrt", "", "", ""),
    e.sin_p: ("math.sin", "", "", ""),
    e.sqrt_p: ("math.sqrt", "", "", ""),
    e.tan_p: ("math.tan", "", "", ""),
    e.tanh_p: ("math.tanh", "", "", ""),
}
EQUAL, DIFFERENT = (1, 0, 0), (6, 1, 1)
# The numbers of MLIR's predicates for floats, signed and unsigned integers. For `!=` of floats
# libtpu has only the predicate `one`, by which NaN differs from all numbers.
_PREDICATES: dict[Primitive, tuple[int, int, int]] = {
    compare.eq_p: EQUAL,
    compare.ne_p: DIFFERENT,
    compare.lt_p: (4, 2, 6),
    compare.le_p: (5, 3, 7),
    compare.gt_p: (2, 4, 8),
    compare.ge_p: (3, 5, 9),
}


def kind_of(dtype: DType) -> int:
    """Return the column of a dtype in tables: float 0, signed 1, unsigned 2, boolean 3."""
    if dtype == bool_:
        return 3
    if issubdtype(dtype, np.unsignedinteger):
        return 2
    return 1 if issubdtype(dtype, np.integer) else 0


_BFLOAT16 = np.dtype(bfloat16)
# Operations on bits, which elements of any size support.
_BITWISE = (e.and_p, e.or_p, e.xor_p)
# Operations whose result differs for a wider element.
_OF_SIZE = (e.clz_p, e.population_count_p)
# Operations that bfloat16 does not support.
_WIDE_ONLY = (e.rem_p, e.atan2_p)
_EXTREMA = (e.max_p, e.min_p)
# Operations that the scalar unit does not have.
_OF_VECTORS = ("math.ctpop", "math.powf")


def _of_32_bits(dtype: DType) -> DType:
    """Return the 32-bit dtype of the same kind as a dtype; bool for bool."""
    return (float32, int32, uint32, dtype)[kind_of(dtype)]


def floats_within(dtype: DType, shape: Shape) -> DType:
    """Return the dtype in which floats are computed: only vectors may be of bfloat16."""
    return dtype if kind_of(dtype) or (shape and _bits(dtype) > 8) else float32


def _computed_in(primitive: Primitive, dtype: DType, shape: Shape) -> DType:
    """Return the dtype in which an operation on elements of a dtype is computed.

    Vector units compute with 32 bits; libtpu also uses them for bfloat16.
    """
    kind, bits = kind_of(dtype), _bits(dtype)
    if kind == 3 or bits == 32 or (shape and kind and primitive in _BITWISE):
        return dtype
    if primitive in _EXTREMA and bits < 16 + kind:
        # libtpu turns a maximum of extended elements into one of short ones, which does not exist.
        return _BFLOAT16 if shape and not kind else float32
    if not shape:
        return _of_32_bits(dtype)
    if not kind:
        return float32 if primitive in _WIDE_ONLY else floats_within(dtype, shape)
    return _of_32_bits(dtype)


def _computed(
    build: KernelBuilder, primitive: Primitive, shape: Shape, dtype: DType, *operands: Value
) -> Value:
    """Emit an operation of the table on arrays of a shape and dtype."""
    within = _computed_in(primitive, dtype, shape)
    name = _OPERATIONS[primitive][kind_of(dtype) and kind_of(within)]
    if not name:
        build.refuse(
            f"kernels of TPUs have no {primitive.name} of {dtype.name}: convert to int32, or to "
            "float32",
            NotImplementedError,
        )
    args = [converted(build, x, shape, dtype, within) for x in operands]
    type_, missing = value_type(shape, within), _bits(within) - _bits(dtype)
    if primitive in _OF_SIZE and missing:
        # The bits that the wider element has in front are zeros.
        mask = build.constant((1 << _bits(dtype)) - 1, within, shape)
        args = [build.op("arith.andi", (*args, mask), type_)]
    result = _operation(build, name, args, shape, within)
    if primitive is e.clz_p and missing:
        result = build.op("arith.subi", (result, build.constant(missing, within, shape)), type_)
    if within == _BFLOAT16 != dtype:
        # libtpu would turn it into an operation on short elements, which does not exist.
        result, within = converted(build, result, shape, within, float32), float32
    return converted(build, result, shape, within, dtype)


def _operation(build: KernelBuilder, name: str, args: Values, shape: Shape, dtype: DType) -> Value:
    """Emit an operation on arrays of a shape and dtype; on scalars some need vectors."""
    if shape or name not in _OF_VECTORS:
        return build.op(name, args, value_type(shape, dtype))
    vectors = [build.broadcast(x, dtype, (), (1, 1)) for x in args]
    result = build.op(name, vectors, value_type((1, 1), dtype))
    return build.reshape(result, dtype, (1, 1), ())


def _row(primitive: Primitive) -> Callable[..., Value]:
    def rule(
        build: KernelBuilder, *operands: Value, out_dtype: DType | None = None, **_: object
    ) -> Value:
        given, shape = build.avals_in[0].dtype, build.avals_out[0].shape
        dtype = given if out_dtype is None else out_dtype
        args = [converted(build, x, shape, given, dtype) for x in alike(build, operands)]
        return _computed(build, primitive, shape, dtype, *args)

    return rule


for _primitive in _OPERATIONS:
    mosaic(_primitive)(_row(_primitive))


def alike(build: KernelBuilder, operands: Values) -> list[Value]:
    """Return the operands of the current equation, broadcast to the shape of its result."""
    shape = build.avals_out[0].shape
    return [
        build.broadcast(x, aval.dtype, aval.shape, shape)
        for x, aval in zip(operands, build.avals_in, strict=True)
    ]


# ---- comparisons and selections ------------------------------------------------------------------


def _comparison(predicates: tuple[int, int, int]) -> Callable[..., Value]:
    def rule(build: KernelBuilder, x: Value, y: Value) -> Value:
        x, y = alike(build, (x, y))
        aval = build.avals_in[0]
        return compared(build, predicates, x, y, build.avals_out[0].shape, aval.dtype)

    return rule


for _primitive, _predicates in _PREDICATES.items():
    mosaic(_primitive)(_comparison(_predicates))


def compared(
    build: KernelBuilder,
    predicates: tuple[int, int, int],
    x: Value,
    y: Value,
    shape: Shape,
    dtype: DType,
) -> Value:
    """Compare two arrays of a shape and dtype by the predicate for the dtype's kind."""
    kind = kind_of(dtype)
    result = value_type(shape, bool_)
    if not kind:
        within = floats_within(dtype, shape)
        x, y = (converted(build, z, shape, dtype, within) for z in (x, y))
    if kind == 3:
        if predicates[1] < 2:
            differs = build.op("arith.xori", (x, y), result)
            return differs if predicates[1] else inverted(build, differs, shape)
        kind = 1
    if kind == 1 or (kind and not shape):
        # libtpu turns a selection by short integers into their maximum, which does not exist.
        within = int32 if kind == 1 else uint32
        x, y = (converted(build, z, shape, dtype, within) for z in (x, y))
    name = "arith.cmpi" if kind else "arith.cmpf"
    return build.op(name, (x, y), result, predicate=attribute(f"{predicates[kind]} : i64"))


def inverted(build: KernelBuilder, x: Value, shape: Shape, dtype: DType = bool_) -> Value:
    """Return the integers or booleans with all bits inverted."""
    ones = build.constant(True if dtype == bool_ else -1, dtype, shape)
    return build.op("arith.xori", (x, ones), value_type(shape, dtype))


@mosaic(e.not_p)
def _(build: KernelBuilder, x: Value) -> Value:
    aval = build.avals_in[0]
    within = aval.dtype if aval.shape else _of_32_bits(aval.dtype)
    x = converted(build, x, aval.shape, aval.dtype, within)
    return converted(build, inverted(build, x, aval.shape, within), aval.shape, within, aval.dtype)


@mosaic(compare.select_n_p)
def _(build: KernelBuilder, which: Value, *cases: Value) -> Value:
    of, out = build.avals_in[0], build.avals_out[0]
    within = out.dtype if out.shape else _of_32_bits(out.dtype)
    type_ = value_type(out.shape, within)
    result, *others = [converted(build, x, out.shape, out.dtype, within) for x in cases]
    if of.dtype == bool_ and len(others) == 1:
        result = build.op("arith.select", (which, *others, result), type_)
        return converted(build, result, out.shape, within, out.dtype)
    for number, case in enumerate(others, 1):
        here = build.constant(number, of.dtype, of.shape)
        is_here = compared(build, EQUAL, which, here, of.shape, of.dtype)
        result = build.op("arith.select", (is_here, case, result), type_)
    return converted(build, result, out.shape, within, out.dtype)


@mosaic(e.clamp_p)
def _(build: KernelBuilder, low: Value, x: Value, high: Value) -> Value:
    low, x, high = alike(build, (low, x, high))
    out = build.avals_out[0]
    at_least = _computed(build, e.max_p, out.shape, out.dtype, x, low)
    return _computed(build, e.min_p, out.shape, out.dtype, at_least, high)


# ---- conversions ---------------------------------------------------------------------------------


@mosaic(converting.convert_element_type_p)
def _(build: KernelBuilder, x: Value, **_: object) -> Value:
    aval, out = build.avals_in[0], build.avals_out[0]
    return converted(build, x, aval.shape, aval.dtype, out.dtype)


def converted(build: KernelBuilder, x: Value, shape: Shape, old: DType, new: DType) -> Value:
    """Return an array with another dtype."""
    type_ = value_type(shape, new)
    if old == new or (x.type == type_ and kind_of(old) * kind_of(new)):
        return x
    before, after = kind_of(old), kind_of(new)
    if after == 3:
        wide = int32 if before else float32
        x = converted(build, x, shape, old, wide)
        zero = build.constant(0, wide, shape)
        return compared(build, DIFFERENT, x, zero, shape, wide)
    if before == 3 and after == 0:
        x = converted(build, x, shape, old, int32)
        x = build.op("arith.sitofp", (x,), value_type(shape, float32))
        return converted(build, x, shape, float32, new)
    bits, new_bits = _bits(old), _bits(new)
    if before == after == 0 and bits == new_bits:
        x = build.op("arith.extf", (x,), value_type(shape, float32))
        return build.op("arith.truncf", (x,), type_)
    if before == 0:
        name = "arith.fptoui" if after == 2 else "arith.fptosi"
        if after == 0:
            name = "arith.extf" if new_bits > bits else "arith.truncf"
    elif after == 0:
        name = "arith.uitofp" if before == 2 else "arith.sitofp"
    elif new_bits > bits:
        name = "arith.extsi" if before == 1 else "arith.extui"
    else:
        name = "arith.trunci"
    return build.op(name, (x,), type_)


def _bits(dtype: DType) -> int:
    return value_type((), dtype).width


@mosaic(converting.bitcast_convert_type_p)
def _(build: KernelBuilder, x: Value, **_: object) -> Value:
    aval, out = build.avals_in[0], build.avals_out[0]
    if aval.shape != out.shape:
        build.refuse(
            f"bitcast_convert_type from {aval.str_short()} to {out.str_short()}: in kernels of "
            "TPUs elements keep their size; pltpu.bitcast changes the number of rows instead",
            NotImplementedError,
        )
    return bitcast(build, x, out)


def bitcast(build: KernelBuilder, x: Value, out: ShapedArray) -> Value:
    """Return the bits of x as an array of an aval."""
    if x.type == build.type_of(out):
        return x
    name = "tpu.bitcast" if out.shape else "arith.bitcast"
    return build.op(name, (x,), build.type_of(out))


# Operations about derivatives, or about an array's place, do not change a block.
@mosaic(
    converting.stop_gradient_p,
    converting.copy_p,
    converting.stage_p,
    argument_sharding_p,
    pvary_p,
    reshard_p,
    sharding_constraint_p,
)
def _(build: KernelBuilder, x: Value, **_: object) -> Value:
    return x


@mosaic(optimization_barrier_p)
def _(build: KernelBuilder, *xs: Value) -> Values:
    return xs


# ---- powers and rounding -------------------------------------------------------------------------


@mosaic(e.pow_p)
def _(build: KernelBuilder, x: Value, y: Value) -> Value:
    return _in_wide(build, "math.powf", (x, y))


@mosaic(e.round_p)
def _(build: KernelBuilder, x: Value, *, rounding_method: e.RoundingMethod) -> Value:
    away = rounding_method is e.RoundingMethod.AWAY_FROM_ZERO
    return _in_wide(build, "math.round" if away else "math.roundeven", (x,))


def _in_wide(build: KernelBuilder, name: str, operands: Values) -> Value:
    """Emit an operation on floats, in the dtype in which these are computed."""
    out = build.avals_out[0]
    within = floats_within(out.dtype, out.shape)
    args = [
        converted(build, x, out.shape, aval.dtype, within)
        for x, aval in zip(alike(build, operands), build.avals_in, strict=True)
    ]
    result = _operation(build, name, args, out.shape, within)
    return converted(build, result, out.shape, within, out.dtype)
