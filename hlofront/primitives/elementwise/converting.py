"""Primitives that convert elements to another dtype, reinterpret their bits, or copy them."""

import operator
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import (
    array_dtype,
    bit_width,
    check_user_dtype_supported,
    dtype_and_weakness,
    float0,
    issubdtype,
    python_scalar_dtype,
    short_name,
)
from hlofront.base.elements import ExtendedDType, PrimalTangentDType, exact_dtype
from hlofront.base.tree import tree_map
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, NumPyArray
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.compile_time import eval_context
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer, jvp, run, transpose
from hlofront.core.sharding.requested_shardings import cotangent_sharding, with_batch_axis
from hlofront.core.symbolic_zeros import (
    Batched,
    Cotangents,
    Dual,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import Tracer, current_trace, is_eager, process
from hlofront.core.typed_scalars import typed
from hlofront.primitives.elementwise.families import FLOAT, check_dtype
from hlofront.primitives.rules.batching import batch_elementwise, move_axis
from hlofront.primitives.rules.derivatives import linear, no_derivative
from hlofront.primitives.sharding.families import split_as_first_operand
from hlofront.primitives.sharding.resharding import bind_reshard

_T = TypeVar("_T")

convert_element_type_p = Primitive("convert_element_type")
bitcast_convert_type_p = Primitive("bitcast_convert_type")
reduce_precision_p = Primitive("reduce_precision")
copy_p = Primitive("copy")
stage_p = Primitive("stage")
stop_gradient_p = Primitive("stop_gradient")


@boundary
def dtype(x: DTypeLike) -> DType:
    """Return the dtype of an array, or the one that a name or a Python type stands for.

    64-bit dtypes are narrowed unless x64 is on, as they are for arrays.

    Args:
      x: an array, a scalar, anything else that has a dtype, a dtype, its name, or a Python type.

    Raises:
      TypeError: if `x` has no dtype, or one that arrays do not have.
      ValueError: if `x` is None.

    Example:
      >>> lax.dtype(2.0)
      dtype('float32')
    """
    if x is None:  # pyright: ignore[reportUnnecessaryComparison]  # Callers may be untyped.
        raise ValueError("Invalid argument to dtype: None. Wanted an array, a scalar or a dtype.")
    if isinstance(x, np.dtype | type | str):
        return check_user_dtype_supported(x, "dtype")
    own = dtype_and_weakness(x)[0]
    return own if isinstance(own, ExtendedDType) else array_dtype(own)


# ---- convert_element_type --------------------------------------------------------------------


@boundary
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert the elements of an array to another dtype.

    Floats are truncated and clamped to the range of an integer dtype, where NaN becomes 0; integers
    wrap around. Numbers become booleans by `x != 0`. Complex numbers lose their imaginary part in
    all other dtypes, with NumPy's ComplexWarning.

    Args:
      operand: an array, or a Python scalar.
      new_dtype: a dtype, its name, or a Python type; 64-bit ones are narrowed unless x64 is on.

    Raises:
      TypeError: if the operand is not an array, or new_dtype is not a dtype that arrays have.
      ValueError: if new_dtype is None, or one dtype is extended and the other one differs.

    Example:
      >>> lax.convert_element_type(jnp.array([1.9, -1.9]), jnp.int32)
      Array([ 1, -1], dtype=int32)
    """
    if new_dtype is None:  # pyright: ignore[reportUnnecessaryComparison]  # Callers may be untyped.
        raise ValueError("dtype must be specified: got None.")
    requested = check_user_dtype_supported(new_dtype, "convert_element_type")
    if type(operand) is int and not -(1 << 31) <= operand < 1 << 31:
        # The default integer dtype may not hold the operand, but `requested` may.
        with np.errstate(all="ignore"):
            operand = exact_dtype(as_numpy(operand, requested).astype(requested)[()])
    return as_array_of_trace(convert(operand, requested, False))


def as_array_of_trace(x: ArrayLike) -> Array:
    """Return a NumPy array as a constant of the traced program, and other values unchanged.

    Constants have the methods of arrays, such as `at`, which NumPy arrays lack.
    """
    if isinstance(x, np.ndarray) and not is_eager():
        lift = getattr(current_trace(), "lift", None)
        if lift is not None:
            return lift(x)
    return x  # pyright: ignore[reportReturnType]  # A literal is an array of its trace.


def as_numpy(value: ArrayLike, dtype: DType) -> NumPyArray:
    """Return a Python or NumPy scalar as a NumPy array that `astype(dtype)` can convert.

    Raises:
      OverflowError: for a Python integer of more than 64 bits if `dtype` is an integer dtype, or
        one beyond all floats.
    """
    array: NumPyArray = np.asarray(value)
    if array.dtype != object:
        return array
    if issubdtype(dtype, np.integer):
        raise OverflowError(
            f"Python int {value} is too large to convert to {dtype}: only integers of up to 64 "
            "bits wrap around. Give its lowest bits, or a dtype of floats."
        )
    if dtype == np.bool_:
        return array != 0
    return np.asarray(float(array.item()))


def convert(operand: ArrayLike, new_dtype: DType, weak_type: bool) -> Array:
    """Return the operand as an array of a canonical dtype, weak or not; unchanged if it is one.

    While tracing, scalars of Python and NumPy are converted immediately and stay literals.
    """
    aval = typeof(operand)
    dtype = aval.dtype
    if dtype == new_dtype and aval.weak_type == weak_type:
        if not isinstance(operand, np.ndarray | np.generic) or not is_eager():
            return operand  # pyright: ignore[reportReturnType]  # A literal is an array of its trace.
    elif isinstance(dtype, ExtendedDType) or isinstance(new_dtype, ExtendedDType):
        if dtype != new_dtype:
            return _convert_extended(operand, dtype, new_dtype)
    elif dtype.kind == "c" and not issubdtype(new_dtype, np.complexfloating):
        warnings.warn(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=3,
        )
    return _convert(operand, aval, new_dtype, weak_type)


def strong(operand: ArrayLike) -> Array:
    """Return the operand with a strong type; its cotangent has the operand's own weak type.

    Rules use it where one of two operands is strongly typed, so that the other's cotangent is as
    weakly typed as the other, which is what the promotions of hlofront.numpy lead to.
    """
    return convert(operand, typeof(operand).dtype, False)


def _convert(operand: ArrayLike, aval: ShapedArray, new_dtype: DType, weak_type: bool) -> Any:
    if not aval.shape and not is_eager():
        traced = isinstance(operand, Tracer)
        scalar = operand._known_scalar() if traced else operand  # pyright: ignore[reportPrivateUsage]
        literal = _converted_scalar(scalar, new_dtype, weak_type)
        if literal is not None:
            return literal
        if type(scalar) in (bool, np.bool_):
            # No host scalar is a weakly typed bool, so it becomes a constant of the program.
            with eval_context():
                return _convert(scalar, aval, new_dtype, weak_type)
    return process(
        convert_element_type_p,
        (operand,),
        {"new_dtype": new_dtype, "weak_type": weak_type, "sharding": None},
    )


# Conversions to and from a dtype that NumPy lacks, whose elements another dtype represents.
to_edtype_p = Primitive("to_edtype")
from_edtype_p = Primitive("from_edtype")


def _convert_extended(operand: ArrayLike, dtype: DType, new_dtype: DType) -> Array:
    """Convert an operand from or to an extended dtype.

    Raises:
      ValueError: if the other dtype is not the one that represents the extended one's elements.
    """
    ways = (
        (to_edtype_p, "edtype", "to extended dtype from", new_dtype, dtype),
        (from_edtype_p, "dtype", "from extended dtype to", dtype, new_dtype),
    )
    for primitive, name, way, extended_dtype, other in ways:
        if isinstance(extended_dtype, ExtendedDType) and (
            extended_dtype.converts_from(other)
            if primitive is to_edtype_p
            else extended_dtype.converts_to(other)
        ):
            if extended_dtype.physical(())[1] == other:
                return process(primitive, (operand,), {name: new_dtype})
            raise ValueError(
                f"can only convert {way} its representation dtype, but tried to convert from "
                f"{dtype} to {new_dtype}: convert to {extended_dtype.physical(())[1]} in between"
            )
    raise ValueError(f"Cannot convert_element_type from {dtype} to {new_dtype}")


@infer(to_edtype_p)
def _(x: ShapedArray, *, edtype: ExtendedDType) -> ShapedArray:
    element, _ = edtype.physical(())
    rank = x.ndim - len(element)
    if rank < 0 or x.shape[rank:] != element:
        raise ValueError(
            f"an element of {edtype} is an array of shape {element}, with which the shape "
            f"{x.shape} of the array that is converted does not end"
        )
    return ShapedArray(x.shape[:rank], edtype)


@infer(from_edtype_p)
def _(x: ShapedArray, *, dtype: DType) -> ShapedArray:
    extended = x.dtype
    assert isinstance(extended, ExtendedDType)
    return ShapedArray(extended.physical(x.shape)[0], dtype)


@jvp(to_edtype_p)
def _(primals: ArrayLikes, tangents: Tangents, *, edtype: DType) -> Dual:
    result = process(to_edtype_p, tuple(primals), {"edtype": edtype})
    return result, _converted_tangent(tangents[0], result)


@jvp(from_edtype_p)
def _(primals: ArrayLikes, tangents: Tangents, *, dtype: DType) -> Dual:
    result = process(from_edtype_p, tuple(primals), {"dtype": dtype})
    return result, _converted_tangent(tangents[0], result)


def _converted_tangent(tangent: Tangent, result: ArrayLike) -> Tangent:
    """Convert a tangent to the dtype of a result's tangents."""
    zero = Zero.of(result)
    if type(tangent) is Zero or zero.aval.dtype == float0:
        return zero
    return convert(tangent, zero.aval.dtype, False)


@batch(to_edtype_p)
def _(values: ArrayLikes, axes: Sequence[int], *, edtype: DType) -> Batched:
    # The last axes may be those of an element.
    in_front = move_axis(values[0], axes[0], 0)
    return process(to_edtype_p, (in_front,), {"edtype": edtype}), 0


@batch(from_edtype_p)
def _(values: ArrayLikes, axes: Sequence[int], *, dtype: DType) -> Batched:
    return process(from_edtype_p, tuple(values), {"dtype": dtype}), axes[0]


@transpose(to_edtype_p)
def _(cotangent: ArrayLike, x: UndefinedPrimal, *, edtype: DType) -> list[ArrayLike]:
    return [process(from_edtype_p, (cotangent,), {"dtype": x.aval.dtype})]


@transpose(from_edtype_p)
def _(cotangent: ArrayLike, x: UndefinedPrimal, *, dtype: DType) -> list[ArrayLike]:
    return [process(to_edtype_p, (cotangent,), {"edtype": x.aval.dtype})]


split_as_first_operand(to_edtype_p)
split_as_first_operand(from_edtype_p)


def primal_tangent_dtype(
    primal_dtype: DTypeLike, tangent_dtype: DTypeLike, name: str | None = None
) -> ExtendedDType:
    """Return a dtype whose elements are stored as one dtype and whose tangents have another.

    Inside programs, `lax.convert_element_type` converts to and from the dtype that stores the
    elements; its derivative converts tangents. No other arithmetic accepts the dtype.

    Args:
      primal_dtype: the dtype that stores the elements.
      tangent_dtype: the dtype of tangents and cotangents.
      name: the name of the dtype, by default PrimalTangentDType{i8/bf16}.

    Raises:
      TypeError: if one is an extended dtype itself.

    Example:
      >>> quantized = primal_tangent_dtype("int8", "bfloat16")
      >>> jax.core.ShapedArray((3,), quantized).to_tangent_aval()
      ShapedArray(bfloat16[3])
    """
    primal, tangent = dtype(primal_dtype), dtype(tangent_dtype)
    if isinstance(primal, ExtendedDType) or isinstance(tangent, ExtendedDType):
        raise TypeError(f"primal_tangent_dtype requires NumPy dtypes: got {primal} and {tangent}")
    if name is None:
        name = f"PrimalTangentDType{{{short_name(primal)}/{short_name(tangent)}}}"
    return PrimalTangentDType(primal, tangent, name)


def convert_split(operand: ArrayLike, sharding: NamedSharding) -> Array:
    """Return an array of equal elements with a sharding over an AbstractMesh."""
    aval = typeof(operand)
    if isinstance(aval.dtype, ExtendedDType):
        return bind_reshard(operand, sharding)
    params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type, "sharding": sharding}
    return process(convert_element_type_p, (operand,), params)


def _converted_scalar(operand: ArrayLike, dtype: Any, weak_type: bool) -> ArrayLike | None:
    """Return a Python or NumPy scalar in another dtype, or None if a device must convert it."""
    if not isinstance(operand, np.ndarray | np.generic | bool | int | float | complex):
        return None
    if issubdtype(dtype, np.integer):
        # NumPy's results for values out of bounds depend on the processor.
        if isinstance(operand, bool | np.bool_):
            operand = int(operand)
        elif not issubdtype(typeof(operand).dtype, np.integer):
            return None
    value: NumPyArray = np.asarray(operand)
    if value.dtype.kind == "c" and not issubdtype(dtype, np.complexfloating):
        value = np.real(value)
    value = value.astype(dtype)
    if not weak_type:
        return exact_dtype(value[()])
    scalar: complex = value.item()
    if type(scalar) is bool or python_scalar_dtype(type(scalar)) != dtype:
        return None
    return scalar


@infer(convert_element_type_p)
def _(x: ShapedArray, *, new_dtype: DType, weak_type: bool, sharding: object) -> ShapedArray:
    return ShapedArray(x.shape, new_dtype, weak_type)


@jvp(convert_element_type_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Dual:
    result = process(convert_element_type_p, tuple(primals), params)
    (tangent,) = tangents
    zero = Zero.of(result)
    if type(tangent) is Zero or zero.aval.dtype == float0:
        return result, zero
    if params["sharding"] is not None:
        return result, process(convert_element_type_p, (tangent,), params)
    return result, _convert(tangent, typeof(tangent), params["new_dtype"], params["weak_type"])


@transpose(convert_element_type_p)
def _(
    cotangent: ArrayLike, x: UndefinedPrimal, *, sharding: NamedSharding | None, **_: object
) -> Cotangents:
    aval, expected = typeof(cotangent), x.aval.to_cotangent_aval()
    if aval == expected:
        return [cotangent]
    if sharding is not None:
        back = cotangent_sharding(x.aval, cotangent)
        params = {"new_dtype": expected.dtype, "weak_type": expected.weak_type, "sharding": back}
        return [process(convert_element_type_p, (cotangent,), params)]
    return [_convert(cotangent, aval, expected.dtype, expected.weak_type)]


@batch(convert_element_type_p)
def _(
    values: ArrayLikes,
    axes: Sequence[int],
    *,
    new_dtype: DType,
    weak_type: bool,
    sharding: NamedSharding | None,
) -> Batched:
    (x,), (axis,) = values, axes
    batched_sharding = with_batch_axis(sharding, axis, x, axis)
    params = {"new_dtype": new_dtype, "weak_type": weak_type, "sharding": batched_sharding}
    return process(convert_element_type_p, (x,), params), axis


# ---- bitcast_convert_type --------------------------------------------------------------------


@boundary
def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reinterpret the bits of an array as another dtype.

    A dtype with 1/n of the bits adds a last axis of size n, the lowest bits first; one with n times
    the bits removes a last axis of size n.

    Args:
      operand: an array or scalar.
      new_dtype: the dtype of the result, with as many bits, n times as many, or 1/n of them.

    Raises:
      ValueError: if new_dtype is None or does not fit the last axis.
      TypeError: for bool and complex operands or dtypes, unless both are equal.

    Example:
      >>> lax.bitcast_convert_type(jnp.float32(1.0), "uint32")
      Array(1065353216, dtype=uint32)
    """
    if new_dtype is None:  # pyright: ignore[reportUnnecessaryComparison]  # Callers may be untyped.
        raise ValueError("dtype must be specified: got None.")
    requested = check_user_dtype_supported(new_dtype, "bitcast_convert_type")
    return process(bitcast_convert_type_p, (operand,), {"new_dtype": requested})


@infer(bitcast_convert_type_p)
def _(x: ShapedArray, *, new_dtype: DType) -> ShapedArray:
    if isinstance(x.dtype, ExtendedDType):
        raise ValueError(f"bitcast_convert_type does not accept dtype {x.dtype}: it has no bits.")
    if x.dtype != new_dtype and any(
        issubdtype(dtype, kind)
        for dtype in (x.dtype, new_dtype)
        for kind in (np.bool_, np.complexfloating)
    ):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand "
            f"and destination types match. Got operand dtype={x.dtype}, new_dtype={new_dtype}. "
            "Consider using the arr.view() method instead."
        )
    old_bits, new_bits = bit_width(x.dtype), bit_width(new_dtype)
    if old_bits == new_bits:
        return ShapedArray(x.shape, new_dtype)
    if old_bits > new_bits:
        return ShapedArray((*x.shape, old_bits // new_bits), new_dtype)
    last = x.shape[-1] if x.shape else 1
    if not x.shape or last * old_bits != new_bits:
        raise ValueError(
            f"Attempting to convert array of shape {x.shape} from {x.dtype} of size {old_bits} "
            f"bits to {new_dtype} of size {new_bits} bits, but {last} * {old_bits} != {new_bits}: "
            f"expected a last axis of size {new_bits // old_bits}."
        )
    return ShapedArray(x.shape[:-1], new_dtype)


no_derivative(bitcast_convert_type_p)


@batch(bitcast_convert_type_p)
def _(values: ArrayLikes, axes: Sequence[int], *, new_dtype: DType) -> Batched:
    (x,), (axis,) = values, axes
    aval = typeof(x)
    # The last axis may be merged into elements, so it must not be the batch axis.
    if axis == aval.ndim - 1 and bit_width(aval.dtype) < bit_width(new_dtype):
        x, axis = move_axis(x, axis, 0), 0
    return process(bitcast_convert_type_p, (x,), {"new_dtype": new_dtype}), axis


# ---- reduce_precision ------------------------------------------------------------------------


@boundary
def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round elements to a floating-point format with fewer bits, without changing the dtype.

    Values too large for the format become infinite, and those that are subnormal in it zero.

    Args:
      operand: an array or scalar of floating-point dtype.
      exponent_bits: the number of bits of the exponent, positive.
      mantissa_bits: the number of bits of the mantissa, not negative.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if the numbers of bits are not integers, or the operand is not floating.
      ValueError: if exponent_bits is not positive or mantissa_bits negative.

    Example:
      >>> lax.reduce_precision(jnp.float32(3.14159), exponent_bits=5, mantissa_bits=2)
      Array(3., dtype=float32)
    """
    exponent_bits = operator.index(exponent_bits)
    mantissa_bits = operator.index(mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    return process(
        reduce_precision_p,
        (operand,),
        {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits},
    )


@infer(reduce_precision_p)
def _(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    check_dtype("reduce_precision", x.dtype, FLOAT)
    return x


# Tangents are rounded too, to the format of the primals.
linear(
    reduce_precision_p,
    lambda cotangent, x, **params: [process(reduce_precision_p, (cotangent,), params)],
)
batch_elementwise(reduce_precision_p)


# ---- copies ----------------------------------------------------------------------------------


def copy(x: ArrayLike) -> Array:
    """Return a new array of equal elements."""
    return process(copy_p, (x,), {})


@boundary
def stage(x: ArrayLike, /) -> Array:
    """Return the value as an array on a device; while tracing, return it unchanged.

    Args:
      x: an array or scalar.

    Raises:
      TypeError: if x is not an array or scalar.
    """
    typeof(x)
    return process(stage_p, (x,), {}) if is_eager() else as_array_of_trace(x)


@boundary
def stop_gradient(x: _T) -> _T:
    """Return an array, or a pytree of arrays, that differentiation treats as a constant.

    Args:
      x: an array or a pytree of arrays.

    Returns:
      A value equal to x whose derivative is zero.

    Raises:
      TypeError: if a leaf is not an array.

    Example:
      >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)
      Array(3., dtype=float32, weak_type=True)
    """
    return tree_map(_stop_gradient, x)


def _stop_gradient(x: ArrayLike) -> ArrayLike:
    dtype = typeof(x).dtype
    x = typed(x)
    if isinstance(x, np.ndarray | np.generic) and x.dtype != dtype:
        x = x.astype(dtype)
    return x if is_eager() else process(stop_gradient_p, (x,), {})


@infer(copy_p, stage_p, stop_gradient_p)
def _(x: ShapedArray) -> ShapedArray:
    return x


linear(copy_p, lambda cotangent, x: [copy(cotangent)])
linear(stage_p, lambda cotangent, x: [cotangent])
no_derivative(stop_gradient_p)


@run(stop_gradient_p)
def _(x: ArrayLike) -> ArrayLike:
    return typed(x)


batch_elementwise(copy_p, stage_p, stop_gradient_p)
