"""Operations on values in NumPy, for kernels that run on the host."""

from collections.abc import Callable, Mapping, Sequence
from types import NotImplementedType
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import bit_width, iinfo, issubdtype
from hlofront.base.elements import bool_
from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.pallas.control import multiple_of_p
from hlofront.pallas.tpu_operations import reciprocal_p, roll_p
from hlofront.primitives.arrays import creation, cumulative, reducing, shaping, slicing
from hlofront.primitives.arrays.tiling import tile_p
from hlofront.primitives.elementwise import compare, converting
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.linalg.dot_general import dot_general_p
from hlofront.primitives.rules.derivatives import add_any_p

# The parameters of an equation.
Params = Mapping[str, Any]
# An array, or NotImplemented.
Result = NumPyArray | NotImplementedType
Function = Callable[..., Result]

_IDENTITIES = (name_p, multiple_of_p, converting.copy_p, converting.stop_gradient_p)
# The functions of NumPy for primitives whose parameters do not matter.
_FUNCTIONS: dict[Primitive, Function] = {
    e.add_p: np.add,
    add_any_p: np.add,
    e.sub_p: np.subtract,
    e.max_p: np.maximum,
    e.min_p: np.minimum,
    e.neg_p: np.negative,
    e.abs_p: np.abs,
    e.sign_p: np.sign,
    e.square_p: np.square,
    e.sqrt_p: np.sqrt,
    e.exp_p: np.exp,
    e.exp2_p: np.exp2,
    e.log2_p: np.log2,
    e.tan_p: np.tan,
    e.atan2_p: np.arctan2,
    e.pow_p: lambda x, y: np.power(x, y.astype(x.dtype)),
    e.log_p: np.log,
    e.log1p_p: np.log1p,
    e.expm1_p: np.expm1,
    e.sin_p: np.sin,
    e.cos_p: np.cos,
    e.tanh_p: np.tanh,
    e.floor_p: np.floor,
    e.ceil_p: np.ceil,
    e.is_finite_p: np.isfinite,
    e.and_p: np.bitwise_and,
    e.or_p: np.bitwise_or,
    e.xor_p: np.bitwise_xor,
    e.not_p: np.bitwise_not,
    compare.eq_p: np.equal,
    compare.ne_p: np.not_equal,
    compare.lt_p: np.less,
    compare.le_p: np.less_equal,
    compare.gt_p: np.greater,
    compare.ge_p: np.greater_equal,
    e.clamp_p: lambda low, x, high: np.minimum(np.maximum(x, low), high),
    e.rsqrt_p: lambda x: 1 / np.sqrt(_wide(x)),
    e.logistic_p: lambda x: 1 / (1 + np.exp(-_wide(x))),
    **dict.fromkeys(_IDENTITIES, lambda x: x),
    compare.select_n_p: lambda which, *cases: (
        np.where(which, *cases[::-1]) if len(cases) == 2 else np.choose(which, cases)
    ),
}


def compute(
    equation: Equation, operands: Sequence[NumPyArray], may_use_xla: bool
) -> list[NumPyArray]:
    """Return the results of an equation without references.

    Args:
      equation: the equation.
      operands: its operands.
      may_use_xla: whether XLA may compute what NumPy cannot. In a program for several CPU devices,
        all of XLA's threads may be waiting for this result.

    Raises:
      ValueError: if only XLA can compute it, but may not be used.
    """
    avals: list[Any] = [var.aval for var in equation.outvars]
    with np.errstate(all="ignore"):
        result = _by_numpy(equation, avals[0], operands)
        if result is NotImplemented and not may_use_xla:
            raise ValueError(
                f"{equation.primitive.name} at {source.summarize(equation.traceback)}: the model "
                "of several TPUs computes in NumPy, which lacks it. Try the kernel on one device, "
                "or compute it outside of the kernel"
            )
        results = _by_xla(equation, operands) if result is NotImplemented else [result]
        return [
            np.asarray(x).astype(aval.dtype, copy=False)
            for x, aval in zip(results, avals, strict=True)
        ]


def _by_numpy(equation: Equation, aval: ShapedArray, operands: Sequence[NumPyArray]) -> Result:
    """Return the result of an equation that NumPy computes, else NotImplemented."""
    primitive, params = equation.primitive, equation.params
    if len(equation.outvars) == 1 and not aval.size:
        return np.empty(aval.shape, aval.dtype)
    if any(not x.size for x in operands):
        return NotImplemented
    if primitive in _FUNCTIONS:
        return _FUNCTIONS[primitive](*operands)
    if primitive in _WITH_PARAMS:
        return _WITH_PARAMS[primitive](params, aval, *operands)
    return NotImplemented


def _by_xla(equation: Equation, operands: Sequence[NumPyArray]) -> list[NumPyArray]:
    """Return the results of an equation that XLA computes, on the CPU."""
    inputs = tuple([Var(atom.aval) for atom in equation.invars])
    program = Jaxpr((), inputs, equation.outvars, (equation.replace(invars=inputs),))
    return [np.asarray(x) for x in eval_jaxpr(program, (), *operands)]


def _wide(x: NumPyArray) -> NumPyArray:
    """Return numbers in the dtype in which they are summed."""
    if issubdtype(x.dtype, np.floating) and bit_width(x.dtype) < 32:
        return x.astype(np.float32)
    return x


def _accumulated(function: np.ufunc, params: Params, x: NumPyArray) -> NumPyArray:
    axis = params["axis"]
    if params["reverse"]:
        x = np.flip(x, axis)
    result = function.accumulate(x, axis=axis, dtype=x.dtype)
    return np.flip(result, axis) if params["reverse"] else result


# ---- operations whose result depends on its type -------------------------------------------------


def _div(params: Params, aval: ShapedArray, x: NumPyArray, y: NumPyArray) -> NumPyArray:
    if not issubdtype(aval.dtype, np.integer):
        return np.divide(x, y)
    # As XLA does: towards 0, and -1 or the maximum for a division by 0.
    safe = np.where(y == 0, 1, y).astype(aval.dtype)
    quotient = (x - np.fmod(x, safe)) // safe
    return np.where(y == 0, np.array(-1).astype(aval.dtype), quotient)


def _rem(params: Params, aval: ShapedArray, x: NumPyArray, y: NumPyArray) -> NumPyArray:
    if not issubdtype(aval.dtype, np.integer):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y).astype(aval.dtype)))


def _integer_pow(params: Params, aval: ShapedArray, x: NumPyArray) -> NumPyArray:
    y = params["y"]
    power = np.ones_like(x)
    for bit in f"{abs(y):b}":
        power = power * power
        power = power * x if bit == "1" else power
    return 1 / power if y < 0 else power


def _converted(params: Params, aval: ShapedArray, x: NumPyArray) -> NumPyArray:
    old, new = x.dtype, aval.dtype
    if new == bool_:
        return x != 0
    if bit_width(old) < 8:
        # NumPy does not convert these to one another.
        x = x.astype(np.float32 if issubdtype(old, np.floating) else np.int8)
    if not (issubdtype(old, np.floating) and issubdtype(new, np.integer)):
        return x.astype(new)
    info = iinfo(new)
    x = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = float(info.min), float(info.max)
    inside = np.where((x > low) & (x < high), x, 0).astype(new)
    return np.where(x >= high, new.type(info.max), np.where(x <= low, new.type(info.min), inside))


def _broadcast(params: Params, aval: ShapedArray, x: NumPyArray) -> NumPyArray:
    shape = [1] * len(aval.shape)
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), aval.shape)


def _iota(params: Params, aval: ShapedArray) -> NumPyArray:
    shape = [1] * len(aval.shape)
    axis = params["dimension"]
    shape[axis] = aval.shape[axis]
    column = np.arange(aval.shape[axis]).astype(aval.dtype).reshape(shape)
    return np.broadcast_to(column, aval.shape)


def _slice(params: Params, aval: ShapedArray, x: NumPyArray) -> NumPyArray:
    strides = params["strides"] or (1,) * x.ndim
    limits = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return x[tuple([slice(*each) for each in limits])]


def _dot_general(params: Params, aval: ShapedArray, x: NumPyArray, y: NumPyArray) -> NumPyArray:
    (x_axes, y_axes), (x_batch, y_batch) = params["dimension_numbers"]
    wide: Any = np.dtype(np.float32) if bit_width(aval.dtype) < 32 else aval.dtype
    if issubdtype(aval.dtype, np.integer):
        wide = aval.dtype

    def flat(a: NumPyArray, batch: Sequence[int], axes: Sequence[int], at_end: bool) -> NumPyArray:
        free = [axis for axis in range(a.ndim) if axis not in batch and axis not in axes]
        order = [*batch, *free, *axes] if at_end else [*batch, *axes, *free]
        sizes = [
            int(np.prod([a.shape[axis] for axis in group], dtype=np.int64))
            for group in (batch, free, axes)
        ]
        shape = sizes if at_end else [sizes[0], sizes[2], sizes[1]]
        return a.astype(wide).transpose(order).reshape(shape)

    product = np.matmul(flat(x, x_batch, x_axes, True), flat(y, y_batch, y_axes, False))
    return product.reshape(aval.shape)


def _shift_left(params: Params, aval: ShapedArray, x: NumPyArray, y: NumPyArray) -> NumPyArray:
    bits = bit_width(aval.dtype)
    inside = (y >= 0) & (y < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0).astype(x.dtype)), 0)


def _shift_right(params: Params, aval: ShapedArray, x: NumPyArray, y: NumPyArray) -> NumPyArray:
    most = bit_width(aval.dtype) - 1
    return np.right_shift(x, np.where((y < 0) | (y > most), most, y).astype(x.dtype))


def _bitcast(params: Params, aval: ShapedArray, x: NumPyArray) -> Result:
    if bit_width(x.dtype) != bit_width(aval.dtype):
        return NotImplemented
    return np.ascontiguousarray(x).view(aval.dtype).reshape(aval.shape)


# Functions of the parameters, the type of the result, and the operands.
_WITH_PARAMS: dict[Primitive, Function] = {
    shaping.reshape_p: lambda p, _, x: x.reshape(p["new_sizes"]),
    shaping.squeeze_p: lambda p, _, x: x.squeeze(tuple(p["dimensions"])),
    shaping.transpose_p: lambda p, _, x: x.transpose(p["permutation"]),
    shaping.rev_p: lambda p, _, x: np.flip(x, p["dimensions"]),
    slicing.concatenate_p: lambda p, _, *xs: np.concatenate(xs, p["dimension"]),
    reducing.reduce_sum_p: lambda p, _, x: np.sum(_wide(x), p["axes"], dtype=_wide(x).dtype),
    reducing.reduce_prod_p: lambda p, _, x: np.prod(_wide(x), p["axes"], dtype=_wide(x).dtype),
    reducing.reduce_max_p: lambda p, _, x: np.max(x, p["axes"]),
    reducing.reduce_min_p: lambda p, _, x: np.min(x, p["axes"]),
    reducing.argmax_p: lambda p, _, x: np.asarray(np.argmax(x, *p["axes"])),
    reducing.argmin_p: lambda p, _, x: np.asarray(np.argmin(x, *p["axes"])),
    cumulative.cumsum_p: lambda p, _, x: _accumulated(np.add, p, _wide(x)),
    cumulative.cumprod_p: lambda p, _, x: _accumulated(np.multiply, p, _wide(x)),
    cumulative.cummax_p: lambda p, _, x: _accumulated(np.maximum, p, x),
    cumulative.cummin_p: lambda p, _, x: _accumulated(np.minimum, p, x),
    tile_p: lambda p, _, x: np.tile(x, p["reps"]),
    reciprocal_p: lambda p, _, x: 1 / x,
    roll_p: lambda p, _, x, shift: (
        np.roll(x, shift, p["axis"]) if p["stride"] is None else NotImplemented
    ),
    reducing.reduce_and_p: lambda p, _, x: np.bitwise_and.reduce(x, axis=tuple(p["axes"])),
    reducing.reduce_or_p: lambda p, _, x: np.bitwise_or.reduce(x, axis=tuple(p["axes"])),
    e.mul_p: lambda params, aval, x, y: x.astype(aval.dtype) * y.astype(aval.dtype),
    e.div_p: _div,
    e.rem_p: _rem,
    e.integer_pow_p: _integer_pow,
    e.shift_left_p: _shift_left,
    e.shift_right_arithmetic_p: _shift_right,
    converting.convert_element_type_p: _converted,
    converting.bitcast_convert_type_p: _bitcast,
    shaping.broadcast_in_dim_p: _broadcast,
    creation.iota_p: _iota,
    slicing.slice_p: _slice,
    dot_general_p: _dot_general,
}


def as_integer(x: ArrayLike) -> int:
    """Return a scalar as a Python int."""
    return int(np.asarray(x).item())
