"""Lowering rules of elementwise primitives that need several operations or attributes."""

import math
from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import iinfo, is_complex, issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.one_to_one import accuracy_attribute, keeping_nans
from hlofront.lowering.ops.reduce import emit_reduce, first_complex, one_op
from hlofront.primitives.elementwise import compare
from hlofront.primitives.elementwise import converting as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.families import real_of

# ---- conversions ---------------------------------------------------------------------------------


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


# ---- arithmetic ------------------------------------------------------------------------------


@lower(e.mul_p)
def _(build: Builder, x: Value, y: Value, *, out_dtype: DType | None) -> Value:
    out = build.avals_out[0]
    x, y = (
        convert(build, operand, aval.update(shape=out.shape), out)
        for operand, aval in zip(build.broadcast_operands(x, y), build.avals_in, strict=True)
    )
    return build.op("stablehlo.multiply", (x, y))


@lower(e.sign_p)
def _(build: Builder, x: Value) -> Value:
    aval = build.avals_in[0]
    if not issubdtype(aval.dtype, np.unsignedinteger):
        return build.op("stablehlo.sign", (x,))
    zero = build.full(0, aval)
    return build.op(
        "stablehlo.select", (build.compare("EQ", x, zero, aval), zero, build.full(1, aval))
    )


@lower(e.square_p)
def _(build: Builder, x: Value) -> Value:
    if is_complex(build.avals_in[0].dtype):
        return build.op("chlo.square", (x,))
    return build.op("stablehlo.multiply", (x, x))


@lower(e.one_minus_square_p)
def _(build: Builder, x: Value) -> Value:
    one = build.full(1, build.avals_in[0])
    factors = build.op("stablehlo.add", (one, x)), build.op("stablehlo.subtract", (one, x))
    return build.op("stablehlo.multiply", factors)


def _extreme(name: str, direction: str) -> Callable[..., Value]:
    def rule(build: Builder, x: Value, y: Value) -> Value:
        aval = build.avals_out[0]
        x, y = build.broadcast_operands(x, y)
        if not is_complex(aval.dtype):
            return build.op(name, (x, y))
        return _first_complex(build, direction, x, y, aval)

    return rule


def _first_complex(build: Builder, direction: str, x: Value, y: Value, aval: ShapedArray) -> Value:
    part = ShapedArray(aval.shape, real_of(aval.dtype))
    real_x, real_y, imag_x, imag_y = (
        build.op(f"stablehlo.{which}", (z,), part) for which in ("real", "imag") for z in (x, y)
    )
    return first_complex(build, direction, (x, y), (real_x, imag_x), (real_y, imag_y), part)


lower(e.max_p)(_extreme("stablehlo.maximum", "GT"))
lower(e.min_p)(_extreme("stablehlo.minimum", "LT"))


@lower(e.clamp_p)
def _(build: Builder, low: Value, x: Value, high: Value) -> Value:
    return build.op("stablehlo.clamp", (low, x, high))


@lower(e.clamp_p, platform="tpu")
def _(build: Builder, low: Value, x: Value, high: Value) -> Value:
    aval = build.avals_in[1]
    if aval.dtype != np.bool_ and not is_complex(aval.dtype):
        return build.op("stablehlo.clamp", (low, x, high))
    # XLA's TPU compiler supports this operation only for real numbers.
    low, x, high = build.broadcast_operands(low, x, high)
    if aval.dtype == np.bool_:
        return build.op("stablehlo.and", (build.op("stablehlo.or", (low, x)), high))
    # Compare real parts; if they are equal, choose the first.
    part = aval.update(dtype=real_of(aval.dtype), weak_type=False)

    def first_if(direction: str, one: Value, other: Value) -> Value:
        real_one, real_other = (build.op("stablehlo.real", (x,), part) for x in (one, other))
        is_first = build.compare(direction, real_one, real_other, part)
        return build.op("stablehlo.select", (is_first, one, other))

    return first_if("LE", first_if("GE", low, x), high)


@lower(e.round_p)
def _(build: Builder, x: Value, *, rounding_method: e.RoundingMethod) -> Value:
    if rounding_method == e.RoundingMethod.TO_NEAREST_EVEN:
        return build.op("stablehlo.round_nearest_even", (x,))
    return build.op("stablehlo.round_nearest_afz", (x,))


# ---- exponentials and powers -----------------------------------------------------------------


@lower(e.exp2_p)
def _(build: Builder, x: Value, *, accuracy: object) -> Value:
    """Lower exp2 to a power, or to an exponential if it is complex or has an explicit accuracy."""
    aval = build.avals_in[0]
    attributes = accuracy_attribute(accuracy)
    if not attributes and not is_complex(aval.dtype):
        # Use a power, which is more accurate than exp(x log 2) for large x.
        return build.op("stablehlo.power", (build.full(2, aval), x))
    scaled = build.op("stablehlo.multiply", (x, build.full(math.log(2), aval)))
    result = build.op("stablehlo.exponential", (scaled,), **attributes)
    return keeping_nans(build, x, result, aval)


@lower(e.log2_p)
def _(build: Builder, x: Value, *, accuracy: object) -> Value:
    aval = build.avals_in[0]
    log = build.op("stablehlo.log", (x,), **accuracy_attribute(accuracy))
    if not is_complex(aval.dtype):
        return build.op("stablehlo.multiply", (log, build.full(1 / math.log(2), aval)))
    # A product of complex numbers would multiply infinite parts by the factor's imaginary 0.
    part = aval.update(dtype=real_of(aval.dtype))
    factor = build.full(1 / math.log(2), part)
    parts = (build.op(f"stablehlo.{which}", (log,), part) for which in ("real", "imag"))
    scaled = [build.op("stablehlo.multiply", (x, factor), part) for x in parts]
    return build.op("stablehlo.complex", scaled)


@lower(e.pow_p)
def _(build: Builder, x: Value, y: Value) -> Value:
    out = build.avals_out[0]
    x, y = build.broadcast_operands(x, y)
    y_aval = build.avals_in[1]
    if y_aval.dtype != out.dtype:
        y = build.convert(y, ShapedArray(out.shape, out.dtype))
    return build.op("stablehlo.power", (x, y))


@lower(e.integer_pow_p)
def _(build: Builder, x: Value, *, y: int) -> Value:
    aval = build.avals_in[0]
    if y == 0:
        return build.full(1, aval)
    power: Value | None = None
    square, left = x, abs(y)
    while True:
        if left % 2:
            power = square if power is None else build.op("stablehlo.multiply", (power, square))
        left //= 2
        if not left and power is not None:
            return power if y > 0 else build.op("stablehlo.divide", (build.full(1, aval), power))
        square = build.op("stablehlo.multiply", (square, square))


# ---- complex numbers -------------------------------------------------------------------------


@lower(e.conj_p)
def _(build: Builder, x: Value, *, input_dtype: DType) -> Value:
    aval = build.avals_in[0]
    if not is_complex(aval.dtype):
        return build.op("stablehlo.complex", (x, build.full(0, aval)))
    part = aval.update(dtype=real_of(aval.dtype))
    real = build.op("stablehlo.real", (x,), part)
    imag = build.op("stablehlo.imag", (x,), part)
    return build.op("stablehlo.complex", (real, build.op("stablehlo.negate", (imag,), part)))


@lower(e.sin_p)
def _(build: Builder, x: Value, *, accuracy: object) -> Value:
    if not is_complex(build.avals_in[0].dtype):
        return build.op("stablehlo.sine", (x,), **accuracy_attribute(accuracy))
    # sin(a + bi) = sin a cosh b + i cos a sinh b
    part, a, sin, cos, sinh, cosh = _parts_of_sine(build, x)
    real = build.op("stablehlo.multiply", (sin, cosh), part)
    imag = build.op("stablehlo.multiply", (cos, sinh), part)
    # 0 times an infinite cosh is 0 here.
    is_zero = build.compare("EQ", a, build.full(0, part), part)
    real = build.select(is_zero, a, real, part)
    return build.op("stablehlo.complex", (real, imag))


@lower(e.cos_p)
def _(build: Builder, x: Value, *, accuracy: object) -> Value:
    if not is_complex(build.avals_in[0].dtype):
        return build.op("stablehlo.cosine", (x,), **accuracy_attribute(accuracy))
    # cos(a + bi) = cos a cosh b - i sin a sinh b
    part, a, sin, cos, sinh, cosh = _parts_of_sine(build, x)
    real = build.op("stablehlo.multiply", (cos, cosh), part)
    imag = build.op("stablehlo.multiply", (sin, sinh), part)
    is_zero = build.compare("EQ", a, build.full(0, part), part)
    # 0 times NaN is 0 here, as in C.
    direction = build.op("stablehlo.sign", (sinh,), part)
    known = build.compare("EQ", sinh, sinh, part)
    direction = build.select(known, direction, build.full(-1, part), part)
    zero = build.op("stablehlo.multiply", (a, direction), part)
    imag = build.select(is_zero, zero, imag, part)
    return build.op("stablehlo.complex", (real, build.op("stablehlo.negate", (imag,), part)))


class _SineParts(NamedTuple):
    """The parts of the sine and cosine of a + bi, all with the aval `part`."""

    part: ShapedArray
    a: Value
    sin: Value
    cos: Value
    sinh: Value
    cosh: Value


def _parts_of_sine(build: Builder, x: Value) -> _SineParts:
    """Return a, sin a, cos a, sinh b and cosh b of a complex array x = a + bi, and their aval."""
    aval = build.avals_in[0]
    part = ShapedArray(aval.shape, real_of(aval.dtype))
    a = build.op("stablehlo.real", (x,), part)
    b = build.op("stablehlo.imag", (x,), part)
    up = build.op("stablehlo.exponential_minus_one", (b,), part)
    down = build.op("stablehlo.negate", (b,), part)
    down = build.op("stablehlo.exponential_minus_one", (down,), part)
    half = build.full(0.5, part)
    difference = build.op("stablehlo.subtract", (up, down), part)
    total = build.op("stablehlo.add", (up, down), part)
    sinh = build.op("stablehlo.multiply", (difference, half), part)
    cosh = build.op("stablehlo.multiply", (total, half), part)
    cosh = build.op("stablehlo.add", (cosh, build.full(1, part)), part)
    sin, cos = build.op("stablehlo.sine", (a,), part), build.op("stablehlo.cosine", (a,), part)
    return _SineParts(part, a, sin, cos, sinh, cosh)


@lower(e.mulhi_p, platform="each")
def _(build: Builder, x: Value, y: Value) -> Value:
    out = build.avals_out[0]
    bits = 8 * out.dtype.itemsize
    args = build.broadcast_operands(x, y)
    if build.module.platform != "cpu" or bits == 64:
        return build.op("chlo.mulhi", args)
    # XLA's CPU backend rejects this operation if it is fused with others.
    signed = out.dtype.kind == "i"
    wide = out.update(dtype=np.dtype(f"{'int' if signed else 'uint'}{2 * bits}"), weak_type=False)
    product = build.op("stablehlo.multiply", [build.convert(v, wide) for v in args], wide)
    shift = f"stablehlo.shift_right_{'arithmetic' if signed else 'logical'}"
    upper = build.op(shift, (product, build.full(bits, wide)), wide)
    return build.convert(upper, out)


# ---- comparisons ---------------------------------------------------------------------------------


def _comparison(direction: str, total_order: bool = False) -> Callable[..., Value]:
    def rule(build: Builder, x: Value, y: Value) -> Value:
        aval_x, aval_y = build.avals_in
        dtype = aval_x.dtype
        aval = ShapedArray(build.avals_out[0].shape, dtype)
        x = build.broadcast_to(x, aval_x, aval)
        y = build.broadcast_to(y, aval_y, aval)
        if isinstance(dtype, ExtendedDType):
            return _compare_extended(build, direction, x, y, aval)
        kind = "TOTALORDER" if total_order and issubdtype(dtype, np.floating) else None
        return build.compare(direction, x, y, aval, kind)

    return rule


def _compare_extended(
    build: Builder, direction: str, x: Value, y: Value, aval: ShapedArray
) -> Value:
    """Compare extended dtypes, whose elements are equal if all parts of their storage are."""
    physical = ShapedArray(*aval.dtype.physical(aval.shape))
    equal = build.compare(direction, x, y, physical)
    init = build.constant(direction == "EQ")
    result = aval.update(dtype=np.dtype(np.bool_))
    fold = one_op("stablehlo.and" if direction == "EQ" else "stablehlo.or")(result)
    axes = range(aval.ndim, physical.ndim)
    return emit_reduce(build, [equal], [init], [result], axes, fold)[0]


lower(compare.eq_p)(_comparison("EQ"))
lower(compare.ne_p)(_comparison("NE"))
lower(compare.ge_p)(_comparison("GE"))
lower(compare.gt_p)(_comparison("GT"))
lower(compare.le_p)(_comparison("LE"))
lower(compare.lt_p)(_comparison("LT"))
lower(compare.eq_to_p)(_comparison("EQ", total_order=True))
lower(compare.le_to_p)(_comparison("LE", total_order=True))
lower(compare.lt_to_p)(_comparison("LT", total_order=True))


@lower(compare.select_n_p)
def _(build: Builder, which: Value, *cases: Value) -> Value:
    which_aval, case_aval = build.avals_in[0], build.avals_out[0]
    if len(cases) == 1:
        return cases[0]
    if isinstance(case_aval.dtype, ExtendedDType):
        which, which_aval = _over_elements(build, which, which_aval, case_aval)
    return _select(build, which, which_aval, cases, 0)


def _select(
    build: Builder, which: Value, which_aval: ShapedArray, cases: Values, offset: int
) -> Value:
    """Select among the cases by binary search; `offset` is the number of the first case."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    if which_aval.dtype == np.bool_:
        return build.op("stablehlo.select", (which, cases[1], cases[0]))
    if offset + middle > iinfo(which_aval.dtype).max:
        return _select(build, which, which_aval, cases[:middle], offset)
    bound = build.full(offset + middle, which_aval)
    is_below = build.compare("LT", which, bound, which_aval)
    return build.op(
        "stablehlo.select",
        (
            is_below,
            _select(build, which, which_aval, cases[:middle], offset),
            _select(build, which, which_aval, cases[middle:], offset + middle),
        ),
    )


def _over_elements(
    build: Builder, which: Value, aval: ShapedArray, case_aval: ShapedArray
) -> tuple[Value, ShapedArray]:
    """Return `which` broadcast to the physical shape of the cases, which have an extended dtype."""
    if not aval.shape:
        return which, aval
    shape, _ = case_aval.dtype.physical(case_aval.shape)
    result = aval.update(shape=shape)
    return build.broadcast(which, result, range(aval.ndim)), result
