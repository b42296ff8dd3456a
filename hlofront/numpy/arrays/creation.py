"""Creation of arrays from host values, other arrays, bytes and text."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.config import follows_jax_0_12
from hlofront.base.dtypes import (
    check_integer,
    check_user_dtype_supported,
    lattice_result,
    python_scalar_dtype,
)
from hlofront.base.elements import exact_dtype
from hlofront.base.tree import tree_map
from hlofront.base.typing import ArrayLike, DType, DTypeLike, Shape
from hlofront.bridge import state
from hlofront.bridge.client import ArrayImpl, Device, NamedSharding, Sharding
from hlofront.bridge.fast_parts import Array, registry
from hlofront.bridge.members import is_committed, sharding_of
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.sharding.requested_shardings import (
    is_unspecified,
    of_full_rank,
    over_devices,
    requested,
)
from hlofront.core.trace import Tracer, current_trace, is_eager
from hlofront.core.typed_scalars import typed_classes
from hlofront.numpy.support.annotations import DeviceLike, OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import as_operand, check_arraylike, with_shape
from hlofront.primitives.arrays import shaping, slicing
from hlofront.primitives.elementwise import converting
from hlofront.runtime.array import exchange
from hlofront.runtime.array.transfer import copied, device_put
from hlofront.runtime.dispatch.operation import operation
from hlofront.runtime.sharding.placement import default_placement, host_put, placement_on
from hlofront.transforms.flatten import ShapeDtypeStruct

_flatten = registry.flatten
_ndarray = np.ndarray
_x64 = state.enable_x64
_SCALARS = frozenset({bool, int, float, complex})

# Up to this many elements are built on the host, which is faster than compiling a program.
MAX_ON_HOST = 1 << 16


# ---- values of the host ------------------------------------------------------------------------


def from_host(x: ArrayLike, copy: bool = False, dtype: np.dtype | None = None) -> Array:
    """Return a NumPy array or a scalar as a device array.

    While a function is traced, the array is a constant of its program.

    `dtype` is the requested dtype, if any; it has 64 bits only if the options allow that.
    """
    if type(x) is int:
        check_integer(x)
    if not is_eager():
        # Interpreters that build programs turn constants into tracers, so that they have methods.
        trace = current_trace()
        lift = getattr(trace, "lift", None)
        if lift is not None:
            made = lift(trace.snapshot(x) if copy and type(x) is _ndarray else x)
            return made if dtype is None or made.dtype == dtype else _astype(made, dtype)
    aval = typeof(x)
    if dtype is not None and aval.dtype != dtype:
        aval = ShapedArray(aval.shape, dtype)
    return host_put(x, aval, default_placement(), False, copy)


def sequence_of_arrays(arrays: Sequence[Array]) -> Sequence[Array]:
    """Return arrays as functions with several results do: a list, or a tuple in JAX 0.12."""
    return tuple(arrays) if follows_jax_0_12() else list(arrays)


def _exact(x: int) -> int | np.uint64:
    """Return a Python integer, as a uint64 where no other integer dtype in use holds it."""
    return np.uint64(x) if 1 << 63 <= x < 1 << 64 and _x64.value else x


def _host_array(name: str, object: object, dtype: np.dtype | None) -> np.ndarray:
    """Return lists and other objects as a NumPy array of `dtype`, or of their common dtype."""
    leaves, _ = _flatten(object) if isinstance(object, list | tuple) else ([object], None)
    kinds = set(map(type, leaves))
    if dtype is None:
        dtype = _common_dtype(name, leaves, kinds)
    try:
        values = np.array(object, dtype)
    except TypeError:
        _check_no_none(name, object)
        raise
    # None is not a pytree leaf, and NumPy reads it as NaN.
    may_hide_none = values.size != len(leaves) or not kinds <= _SCALARS
    if may_hide_none and isinstance(object, list | tuple):
        _check_no_none(name, object)
    return values


def _check_no_none(name: str, object: object) -> None:
    if any(leaf is None for leaf in _flatten(object, lambda x: x is None)[0]):
        raise ValueError(f"None is not a valid value for jnp.{name}: got {_short(object)}")


def _common_dtype(name: str, leaves: Sequence[object], kinds: set[type]) -> np.dtype:
    if not leaves:
        return python_scalar_dtype(float)
    if len(kinds) == 1 and kinds <= _SCALARS:
        # pyrefly: ignore[bad-specialization]
        if kinds == {int} and type(_exact(max(leaves))) is np.uint64 and min(leaves) >= 0:
            return np.dtype(np.uint64)
        return python_scalar_dtype(*kinds)
    types = {(aval.dtype, aval.weak_type) for aval in map(_leaf_type, leaves)}
    return lattice_result(tuple(sorted(types, key=str)))[0]


def _leaf_type(leaf: object) -> ShapedArray:
    plain = not isinstance(leaf, ShapeDtypeStruct) and not hasattr(leaf, "mask")
    if is_value(leaf) and plain:
        return typeof(leaf)
    value = np.asarray(leaf)
    if value.dtype == object or value.dtype.kind in "SUMm":
        raise TypeError(
            f"{_short(leaf)} of type {type(leaf).__name__} is not a valid element of an array: "
            "expected numbers, booleans, and arrays and lists of them."
        )
    return typeof(value)


def _short(x: object) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


# ---- array -------------------------------------------------------------------------------------


@like(np.array)
def array(
    object: object,
    dtype: DTypeLike | None = None,
    *args: bool | str | int,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array of a number, of lists of numbers or arrays, or of an array.

    Args:
      object: a number, nested lists of numbers or arrays, or an array. Python scalars become weakly
        typed without a dtype.
      dtype: the dtype of the elements; by default their common dtype.
      copy: whether the result has memory of its own; if not, it may share that of an array or NumPy
        array.
      order: None or "K".
      ndmin: the least number of axes of the result; new axes come first.
      device: a Device or Sharding that the result is put on; by default the default one.
      out_sharding: how the result is split over a mesh.

    Raises:
      TypeError: if elements are not numbers, such as strings, and no dtype is given.
      ValueError: if lists have different lengths or hold None, or NaN would become an integer.
      OverflowError: if an integer does not fit the dtype.

    Example:
      >>> jnp.array([[1, 2], [3, 4]])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    if args:
        # NumPy once accepted these options as positional arguments.
        if len(args) > 3:
            raise TypeError(
                f"array() takes at most 5 positional arguments but {len(args) + 2} were given"
            )
        warnings.warn(
            "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated: "
            "give them by their names.",
            DeprecationWarning,
            stacklevel=2,
        )
        options: Any = (*args, *(copy, order, ndmin)[len(args) :])
        copy, order, ndmin = options
    if dtype is None and not ndmin and device is None and out_sharding is None and order == "K":
        type_ = type(object)
        if type_ is _ndarray:
            return from_host(object, copy)
        if type_ in _SCALARS:
            return from_host(_exact(object) if type_ is int else object)
    return _array("array", object, dtype, copy, order, ndmin, device, out_sharding)


@like(np.asarray)
def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Make an array of numbers, lists or arrays, without a copy where none is needed.

    Args:
      a: a number, nested lists of numbers or arrays, or an array. Python scalars become weakly
        typed without a dtype.
      dtype: the dtype of the elements; by default their common dtype.
      order: None or "K".
      copy: whether the result has memory of its own; if not, it may share that of an array or NumPy
        array.
      device: a Device or Sharding that the result is put on; by default the default one.
      out_sharding: how the result is split over a mesh.

    Raises:
      TypeError: if elements are not numbers, such as strings, and no dtype is given.
      ValueError: if lists have different lengths or hold None, or NaN would become an integer.
      OverflowError: if an integer does not fit the dtype.

    Example:
      >>> jnp.asarray([1, 2.5])
      Array([1. , 2.5], dtype=float32)
    """
    if dtype is None and not copy and device is None and out_sharding is None and order is None:
        type_ = type(a)
        if type_ is ArrayImpl:
            return a
        if type_ is _ndarray or type_ in _SCALARS:
            return from_host(_exact(a) if type_ is int else a)
    return _array("asarray", a, dtype, bool(copy), order or "K", 0, device, out_sharding)


@boundary
def _array(
    name: str,
    object: object,
    dtype: DTypeLike | None,
    copy: bool,
    order: str | None,
    ndmin: int,
    device: DeviceLike,
    out_sharding: OutSharding,
) -> Array:
    if order not in (None, "K"):
        raise NotImplementedError(  # JAX raises this class.
            f"jnp.{name} has only order='K', got {order!r}: the compiler chooses the memory layout."
        )
    device, requested_sharding = check_placement(name, device, out_sharding)
    if dtype is not None:
        dtype = check_user_dtype_supported(dtype, name)
    if object is None:
        raise ValueError(f"None is not a valid value for jnp.{name}: expected numbers or arrays")
    result = _converted(name, object, dtype, copy)
    missing = ndmin - typeof(result).ndim
    if missing > 0:
        shape = typeof(result).shape
        result = _with_leading_axes(result, (1,) * missing + shape)
    if device is None:
        return (
            result
            if requested_sharding is None
            else converting.convert_split(result, requested_sharding)
        )
    if type(result) is ArrayImpl and is_committed(result) and out_sharding is None:
        devices = device.device_set if isinstance(device, Sharding) else {device}
        if sharding_of(result).device_set != devices:
            raise ValueError(
                f"jnp.{name}: the array is committed to {result.sharding}, and device={device} is "
                "elsewhere. Move it there with device_put."
            )
    if out_sharding is not None and type(device) is NamedSharding:
        device = of_full_rank(device, typeof(result).ndim)
    # If the target is a sharding, an array that already has it is returned itself.
    return device_put(result, placement_on(device).sharding if type(device) is Device else device)


def _converted(name: str, object: object, dtype: np.dtype | None, copy: bool) -> Array:
    if copy and isinstance(object, _ndarray) and hasattr(object, "mask"):
        # A copy of a masked array is a copy of its data, as in NumPy.
        object = np.array(object)
    if hasattr(object, "__jax_array__"):
        object = object.__jax_array__()
    if isinstance(object, Array):
        return _of_array(object, dtype, copy)
    if isinstance(object, list | tuple):
        leaves, structure = _flatten(object)
        if any(map(_is_array, leaves)):
            leaves = list(map(as_operand, leaves))
            return _stacked(name, structure.unflatten(leaves), dtype, leaves)
        return from_host(_host_array(name, object, dtype), dtype=dtype)
    if dtype is None and (type(object) in _SCALARS or type(object) in typed_classes):
        return from_host(_exact(object) if type(object) is int else object)
    if not is_value(object) or isinstance(object, ShapeDtypeStruct):
        if exchange.is_on_gpu(object):
            return _of_array(exchange.from_gpu(object), dtype, copy)
        object = _host_array(name, object, dtype)
    elif isinstance(object, bool | int | float | complex) and not isinstance(object, np.generic):
        object = np.array(object, dtype)  # The conversion checks that the value fits.
    if dtype is not None and object.dtype != dtype and object.dtype.kind != "T":
        # NumPy converts arrays of objects, texts, dates, and of numbers in another byte order.
        object, copy = np.asarray(object).astype(dtype), False
    typeof(object)
    return from_host(object, copy, dtype)


def _is_array(x: object) -> bool:
    return isinstance(x, Array) or hasattr(x, "__jax_array__")


def _of_array(x: Array, dtype: np.dtype | None, copy: bool) -> Array:
    aval = typeof(x)
    if dtype is not None and (aval.dtype != dtype or aval.weak_type):
        if copy and isinstance(x, Tracer):
            x = converting.copy(x)
        return _astype(x, dtype)
    if not copy:
        return x
    if type(x) is not ArrayImpl or not is_eager():
        return converting.copy(x)
    sharding = sharding_of(x)
    if type(sharding) is NamedSharding and typeof(x).spec is not None:
        # Types have an entry for each axis.
        x = device_put(x, of_full_rank(sharding, x.ndim))
    return copied(x)


@operation(static_argnames=("dtype",))
def _astype(x: ArrayLike, dtype: np.dtype) -> Array:
    return converting.convert(x, dtype, False)


@operation(static_argnames=("shape",))
def _with_leading_axes(x: ArrayLike, shape: Shape) -> Array:
    return with_shape(x, typeof(x).shape, shape)


# ---- lists of arrays ---------------------------------------------------------------------------

# Lists of more arrays are joined on the host.
_MAX_STACKED = 32


def _stacked(name: str, object: object, dtype: DType, leaves: Sequence[object]) -> Array:
    if dtype is None:
        dtype = _common_dtype(name, leaves, set(map(type, leaves)))
    if not is_eager() or any(isinstance(leaf, Tracer) for leaf in leaves):
        return _stack(name, object, dtype)
    if len(leaves) > _MAX_STACKED or not all(map(is_value, leaves)):
        return from_host(_host_array(name, object, dtype), dtype=dtype)
    if any(type(leaf) is int for leaf in leaves):
        # The dtype must hold the host's integers, which may exceed the default integer dtype.
        object = tree_map(
            lambda x: exact_dtype(np.array(x, dtype)) if type(x) is int else x, object
        )
    return _stack_operation(name, object, dtype)


def _stack(name: str, object: object, dtype: np.dtype) -> Array:
    if object is None:
        raise ValueError(f"None is not a valid value for jnp.{name}: expected numbers or arrays")
    if not isinstance(object, list | tuple):
        return _converted(name, object, dtype, False)
    if not any(map(_is_array, _flatten(object)[0])):
        return _converted(name, object, dtype, False)
    members = [_stack(name, member, dtype) for member in object]
    return slicing.concatenate([shaping.expand_dims(x, (0,)) for x in members], 0)


@operation(static_argnames=("name", "dtype"))
def _stack_operation(name: str, object: object, dtype: DType) -> Array:
    return _stack(name, object, dtype)


def check_placement(
    name: str,
    device: DeviceLike,
    out_sharding: OutSharding = None,
    ndim: int | None = None,
) -> tuple[DeviceLike, Any]:
    """Return where an array is created: the target of device_put, and the sharding in its type.

    Args:
      name: the name of the function, for messages.
      device: a Device, a Sharding or None.
      out_sharding: a PartitionSpec over the mesh in context, a NamedSharding or None.
      ndim: the rank of the array, so that `out_sharding` has an entry for each axis; None if
          unknown.

    Returns:
      A Device, a Sharding or None; and the parameter of equations, which is None except while a
      function is traced with an `out_sharding`.

    Raises:
      TypeError: if `out_sharding` is of another type.
      ValueError: if `device` is of another type, both are passed, there is no mesh in context for
        `out_sharding`, or it names axes that are not of type Explicit.
    """
    if out_sharding is not None:
        if device is not None:
            raise ValueError(
                f"jnp.{name} takes `device` or `out_sharding`, not both: got device={device} and "
                f"out_sharding={out_sharding}"
            )
        requested_sharding = requested(f"jnp.{name}", out_sharding)
        if requested_sharding is None or not is_eager():
            return None, requested_sharding
        device = over_devices(out_sharding)
        if device is None:
            raise ValueError(
                f"jnp.{name} was given {out_sharding}, and no mesh with devices is in context: put "
                "one there by jax.set_mesh"
            )
        device = device if ndim is None else of_full_rank(device, ndim)
    if device is not None and not isinstance(device, Device | Sharding):
        raise ValueError(
            f"jnp.{name}: device must be a Device or a Sharding, got {device!r}. Devices are "
            "listed by devices()."
        )
    return (None if is_unspecified(device) else device), None


@like(np.copy)
def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Copy an array into memory of its own.

    Example:
      >>> x = jnp.arange(3)
      >>> jnp.copy(x) is x, jnp.asarray(x) is x
      (False, True)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order or "K")


# ---- other sources ------------------------------------------------------------------------------


@like(np.from_dlpack)
def from_dlpack(x: object, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """Make an array of another library's array, sharing its memory where possible.

    See `hlofront.dlpack.from_dlpack`.

    Example:
      >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
      Array([0, 1, 2], dtype=int32)
    """
    return exchange.from_dlpack(x, device, copy)


@like(np.frombuffer)
def frombuffer(
    buffer: bytes | bytearray | memoryview,
    dtype: DTypeLike = float,
    count: int = -1,
    offset: int = 0,
) -> Array:
    """Make an array of the numbers in a buffer; 64-bit numbers are narrowed unless x64 is on.

    Example:
      >>> jnp.frombuffer(b"AB", dtype="uint8")
      Array([65, 66], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype=_numpy_dtype(dtype), count=count, offset=offset))


@like(np.fromstring)
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Make an array of the numbers in a text.

    Example:
      >>> jnp.fromstring("1 2 3", dtype=int, sep=" ")
      Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=_numpy_dtype(dtype), count=count, sep=sep))


def _numpy_dtype(dtype: DTypeLike) -> np.dtype:
    return np.dtype(dtype)


def fromfile(*args: object, **kwargs: object) -> Array:
    """Raise NotImplementedError, as JAX does: the contents of a file may change after tracing.

    The message says what to write instead.
    """
    raise NotImplementedError(  # JAX raises this class.
        "jnp.fromfile is not offered: what a file holds may change, and traced programs are kept. "
        "Read it once with jnp.asarray(np.fromfile(...)), outside of jit."
    )


def fromiter(*args: object, **kwargs: object) -> Array:
    """Raise NotImplementedError, as JAX does: an iterator gives its values only once.

    The message says what to write instead.
    """
    raise NotImplementedError(  # JAX raises this class.
        "jnp.fromiter is not offered: an iterator gives its values once, and traced programs are "
        "kept. Read it with jnp.asarray(np.fromiter(...)), outside of jit."
    )
