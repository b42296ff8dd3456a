"""Primitives that create arrays without operands: iota, full, empty."""

import functools
from typing import Any, cast

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import (
    check_user_dtype_supported,
    dtype_and_weakness,
    iinfo,
    issubdtype,
    python_scalar_dtype,
)
from hlofront.base.elements import ExtendedDType, exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, Shape, ShapeLike
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.aval import MemorySpace, ShapedArray, SymbolicSize, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import is_unspecified, requested
from hlofront.core.sizes.dimensions import canonical_shape, check_nonnegative
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import is_eager, process
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p
from hlofront.primitives.collectives.varying import varying_as
from hlofront.primitives.elementwise.converting import as_numpy, convert
from hlofront.primitives.elementwise.families import check_dtype
from hlofront.primitives.rules.derivatives import no_derivative
from hlofront.primitives.sharding.placing import CopySemantics, device_put
from hlofront.primitives.sharding.resharding import bind_reshard

# ---- iota ----------------------------------------------------------------------------------------

iota_p = Primitive("iota")


@boundary
def iota(dtype: DTypeLike, size: int) -> Array:
    """Return the numbers 0, 1, ..., size - 1; those that an integer dtype cannot hold wrap around.

    Args:
      dtype: the dtype of the elements, a numeric one.
      size: the number of elements.

    Returns:
      An array of shape (size,).

    Raises:
      TypeError: if the dtype is not numeric, or the size is negative or not an integer.

    Example:
      >>> lax.iota(jnp.int32, 4)
      Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


@boundary
def broadcasted_iota(
    dtype: DTypeLike, shape: ShapeLike, dimension: int, *, out_sharding: object = None
) -> Array:
    """Return an array in which each element is its own index along axis `dimension`.

    Args:
      dtype: the dtype of the elements, a numeric one.
      shape: the shape of the result.
      dimension: the axis along which the elements count, not negative.
      out_sharding: the sharding of the result over axes of type Explicit.

    Raises:
      TypeError: if the dtype is not numeric, or a size is negative or not an integer.
      ValueError: if the dtype is None, or `dimension` is negative or out of range.

    Example:
      >>> lax.broadcasted_iota("int32", (2, 3), 1)
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    if dtype is None:  # pyright: ignore[reportUnnecessaryComparison]  # Callers may be untyped.
        raise ValueError("dtype must be specified: iota was given None. Give a dtype, as int32.")
    dtype = check_user_dtype_supported(dtype, "broadcasted_iota")
    shape = canonical_shape(shape)
    if out_sharding is not None:
        out_sharding = requested("broadcasted_iota", out_sharding)
    params = {
        "dtype": dtype,
        "shape": shape,
        "dimension": int(dimension),
        "sharding": out_sharding,
    }
    return process(iota_p, (), params)


def index_like(x: ArrayLike, dimension: int, dtype: DType = np.dtype(np.int32)) -> Array:
    """Return each element's index along an axis of `x`, with the shape and split of `x`."""
    aval = typeof(x)
    sharding = None if aval.spec is None else aval.sharding
    params = {"dtype": dtype, "shape": aval.shape, "dimension": dimension, "sharding": sharding}
    return process(iota_p, (), params)


_NUMBERS = (np.integer, np.floating, np.complexfloating)


@infer(iota_p)
def _(*, dtype: DType, shape: Shape, dimension: int, sharding: object) -> ShapedArray:
    check_dtype("iota", dtype, _NUMBERS)
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(
            "iota dimension must be between 0 and len(shape), got "
            f"dimension={dimension} for shape={shape}"
        )
    return ShapedArray(shape, dtype)


# ---- full ----------------------------------------------------------------------------------------


@boundary
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: object = None,
) -> Array:
    """Return an array of a shape with every element equal to `fill_value`.

    Args:
      shape: the shape of the result.
      fill_value: a scalar.
      dtype: the dtype of the result; by default that of the scalar, weak if the scalar's is, unless
        `sharding` puts the result on devices outside traced functions.
      sharding: the device or the Sharding of the result.

    Raises:
      TypeError: if the value is not a scalar, or a size is negative or not an integer.

    Example:
      >>> lax.full((2,), 7)
      Array([7, 7], dtype=int32, weak_type=True)
    """
    shape = canonical_shape(shape)
    fill_dtype = None if dtype is None else check_user_dtype_supported(dtype, "full")
    if fill_dtype is None and _is_put_on_devices(sharding):
        fill_dtype = typeof(fill_value).dtype
    return placed(_full(shape, fill_value, fill_dtype), sharding)


def _is_put_on_devices(sharding: object) -> bool:
    """Return whether an array is put on devices that the caller names: its type is then strong."""
    return is_eager() and not is_unspecified(sharding)


def placed(x: Array, sharding: object) -> Array:
    """Put an array on a device, or shard it by a sharding whose spec may end with None entries."""
    if is_unspecified(sharding):
        return x
    if not (hasattr(sharding, "device_set") or hasattr(sharding, "device_kind")):
        raise TypeError(
            f"`sharding` is None, a Device or a Sharding: got {sharding!r} of type "
            f"{type(sharding).__name__}"
        )
    if not is_eager():
        sharding = of_rank(sharding, typeof(x).ndim)
    return device_put([x], [sharding], [None], [CopySemantics.REUSE_INPUT])[0]


def of_rank(sharding: Any, ndim: int) -> Any:
    """Return a sharding without the spec entries of axes beyond `ndim`, if they are all None."""
    spec = getattr(sharding, "spec", None)
    if spec is None or len(spec) <= ndim or any(axes is not None for axes in spec[ndim:]):
        return sharding
    return sharding.update(spec=PartitionSpec(*spec[:ndim]))


@boundary
def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    sharding: object = None,
) -> Array:
    """Return an array like `x` with every element equal to `fill_value`.

    Args:
      x: an array, a scalar, or anything with `shape` and `dtype`.
      fill_value: a scalar.
      dtype: the dtype of the result; by default that of `x`, with its weak type.
      shape: the shape of the result; by default that of `x`.
      sharding: the device or the Sharding of the result, which is then strongly typed. By default
        it is that of `x`, if `x` is a committed array that has the result's shape or is on one
        device, and the result is not weakly typed.

    Raises:
      TypeError: if the value is not a scalar, or `x` is not like an array.

    Example:
      >>> lax.full_like(jnp.array([1, 2]), 7, shape=(3,))
      Array([7, 7, 7], dtype=int32)
    """
    if dtype is None:
        fill_dtype, weak = dtype_and_weakness(x)
    else:
        fill_dtype, weak = check_user_dtype_supported(dtype, "full_like"), False
    inherits = sharding is None and not weak and is_eager()
    if inherits and getattr(x, "committed", hasattr(x, "sharding")):
        # ShapeDtypeStructs have no `committed`, and pass on their sharding. If the shapes differ,
        # the sharding of an array is only passed on if it is on one device.
        same = shape is None or canonical_shape(shape) == x.shape
        if same or (hasattr(x, "committed") and len(x.sharding.device_set) == 1):
            sharding = x.sharding
    weak = weak and not _is_put_on_devices(sharding)
    split = None
    if shape is None:
        shape = getattr(x, "shape", ())
        aval = getattr(x, "aval", None)
        if sharding is None and isinstance(aval, ShapedArray) and aval.spec is not None:
            split = aval.sharding
    filled = placed(_full(canonical_shape(shape), fill_value, fill_dtype, weak, split), sharding)
    return cast(Array, varying_as(filled, x))


def full_split(
    shape: Shape,
    fill_value: ArrayLike,
    own: DType | None,
    weak: bool,
    sharding: NamedSharding | None,
) -> Array:
    """Return an array filled with a scalar, and split by a sharding over an AbstractMesh.

    Args:
      shape: the shape of the result.
      fill_value: a scalar.
      own: the dtype of the result, or None for that of the scalar.
      weak: whether the dtype is weak.
      sharding: a NamedSharding over an AbstractMesh, or None.
    """
    filled = _full(shape, fill_value, own, weak, sharding)
    return filled if sharding is None or shape else bind_reshard(filled, sharding)


def _full(
    shape: Shape,
    fill_value: ArrayLike,
    fill_dtype: DType | None,
    weak: bool = False,
    split: object = None,
) -> Any:
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {aval.shape}."
        )
    dtype = aval.dtype if fill_dtype is None else fill_dtype
    if fill_dtype is None:
        weak = aval.weak_type
    if isinstance(dtype, ExtendedDType) and aval.dtype != dtype:
        # Each stored number of an element is set to the fill value.
        shape, stored = dtype.physical(shape)
        return dtype.wrap(_full(shape, fill_value, stored))
    if hasattr(fill_value, "aval"):
        if aval.dtype != dtype or aval.weak_type != weak:
            fill_value = convert(fill_value, dtype, weak)
    elif (
        aval.dtype != dtype
        or aval.weak_type != weak
        or isinstance(fill_value, np.ndarray)
        or (type(fill_value) is int and not -(1 << 31) <= fill_value < 1 << 31)
    ):
        if is_eager():
            fill_value = saturated(fill_value, dtype)
        fill_value = convert(scalar_of(fill_value, dtype, weak), dtype, weak)
    if not shape:
        if hasattr(fill_value, "aval"):
            return fill_value
        # While tracing, a scalar is a literal of the program. NumPy scalars cannot be weakly typed.
        if isinstance(fill_value, np.generic) and not is_eager():
            return fill_value
    return process(
        broadcast_in_dim_p,
        (fill_value,),
        {"shape": shape, "broadcast_dimensions": (), "sharding": split},
    )


def scalar_of(value: Any, dtype: DType, weak: bool = False) -> Any:
    """Return a Python or NumPy scalar as a NumPy scalar of `dtype`, or a Python scalar if `weak`.

    Integers wrap and floats are truncated, as when arrays are converted.

    Raises:
      OverflowError: for a Python integer of more than 64 bits if `dtype` is an integer dtype, or
        one beyond all floats.
      TypeError: if a complex Python number would become real.
    """
    if isinstance(dtype, ExtendedDType):
        return value
    if isinstance(value, SymbolicSize):
        return host_number(value, dtype)
    if not weak and type(value) in (int, float) and 0 <= value < 100 and dtype.kind in "iuf":
        return host_number(value, dtype)
    if issubdtype(dtype, np.complexfloating):
        array = as_numpy(value, dtype)
    elif dtype == np.bool_:
        array = np.asarray(value) != 0
    elif type(value) is complex:
        raise TypeError(
            f"cannot fill an array of dtype {dtype} with the complex number {value}: "
            "give its .real part, or a complex dtype."
        )
    else:
        array = np.real(as_numpy(value, dtype))
    with np.errstate(all="ignore"):
        scalar = exact_dtype(array.astype(dtype)[()])
    if weak:
        number: complex = scalar.item()
        if python_scalar_dtype(type(number)) == dtype:
            return number
    return scalar


def saturated(value: ArrayLike, dtype: DType) -> ArrayLike:
    """Convert a host float for an integer `dtype` as devices do: clamped, NaN as 0.

    Return other values unchanged.
    """
    if not isinstance(value, float | np.floating) or not issubdtype(dtype, np.integer):
        return value
    limits = iinfo(dtype)
    if np.isnan(value):
        return 0
    return int(min(max(value, limits.min), limits.max))


def scalar_like(x: ArrayLike, value: float) -> ArrayLike:
    """Return a scalar with the dtype and weak type of `x`, for elementwise operations with `x`."""
    aval = typeof(x)
    dtype = aval.dtype
    if not aval.weak_type:
        scalar = _scalar_of_dtype(value, dtype)
        return scalar if isinstance(dtype, ExtendedDType) else exact_dtype(scalar)
    for number in (float, complex, int):
        if python_scalar_dtype(number) == dtype:
            return number(value)
    # No Python number type has this dtype.
    return convert(_scalar_of_dtype(value, dtype), dtype, True)


def coefficient_like(x: ArrayLike, value: float) -> ArrayLike:
    """Return a scalar of the dtype of `x`, weakly typed if `x` is a weakly typed scalar.

    If slopes are multiplied by it, tangents are typed as in JAX: those of weakly typed arrays
    strongly, those of Python scalars weakly.
    """
    aval = typeof(x)
    if aval.weak_type and aval.shape:
        return exact_dtype(_scalar_of_dtype(value, aval.dtype))
    return scalar_like(x, value)


_scalar_of_dtype = functools.lru_cache(1024)(scalar_of)


def constant_like(x: ArrayLike, value: float) -> ArrayLike:
    """Return an array of the type of `x`, with every element `value`."""
    scalar = scalar_like(x, value)
    aval = typeof(x)
    if not aval.shape:
        return scalar
    sharding = None if aval.spec is None else aval.sharding
    params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": sharding}
    return process(broadcast_in_dim_p, (scalar,), params)


# ---- empty ---------------------------------------------------------------------------------------

empty_p = Primitive("empty")


@boundary
def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: object = None) -> Array:
    """Return an array of unspecified elements, which are currently zeros.

    Args:
      shape: the shape of the result.
      dtype: the dtype of the elements.
      out_sharding: the sharding of the result over axes of type Explicit.

    Raises:
      TypeError: if a size is negative or no integer, or the dtype is not supported by devices.
    """
    check_user_dtype_supported(dtype, "empty")
    shape = canonical_shape(shape)
    if out_sharding is not None:
        out_sharding = requested("empty", out_sharding)
    return process(empty_p, (), {"shape": shape, "dtype": dtype, "out_sharding": out_sharding})


@infer(empty_p)
def _(*, shape: Shape, dtype: DTypeLike, out_sharding: object) -> ShapedArray:
    check_nonnegative("empty", "shape", shape)
    # The equation holds the dtype as the caller passed it.
    return ShapedArray(shape, check_user_dtype_supported(dtype, "empty"))


# A scalar of unspecified value in some memory, from which programs make uninitialized arrays.
empty2_p = Primitive("empty2")


@infer(empty2_p)
def _(*, dtype: DTypeLike, memory_space: MemorySpace) -> ShapedArray:
    return ShapedArray((), check_user_dtype_supported(dtype, "empty2"), memory_space=memory_space)


# Without operands there is no derivative.
no_derivative(iota_p, empty_p, empty2_p)


@batch(iota_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> Batched:
    return process(iota_p, (), params), None


@batch(empty_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> Batched:
    return process(empty_p, (), params), None


@batch(empty2_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> Batched:
    return process(empty2_p, (), params), None
