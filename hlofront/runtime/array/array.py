"""Array: jaxlib's class of arrays with our methods."""

import importlib
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from hlofront.base.advice import no_item_assignment
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, DTypeLike, NumPyArray
from hlofront.bridge import jax_shims
from hlofront.bridge.arrays import JaxRuntimeError, prime
from hlofront.bridge.client import ArrayImpl, Device, Sharding, SingleDeviceSharding
from hlofront.bridge.members import (
    device_of,
    get_committed,
    get_sharding,
    pjrt_layout_of,
    sharding_of,
)
from hlofront.core.aval import ShapedArray, register_value_type
from hlofront.core.operators import await_class_members, await_operators
from hlofront.core.trace import ambiguous_truth
from hlofront.pjrt import clients
from hlofront.pjrt.deletion import check_not_deleted, deleted
from hlofront.pjrt.host_value import fetched, host_value, prefetch
from hlofront.pjrt.layouts import Format, Layout
from hlofront.pjrt.shardings import on_device
from hlofront.runtime.array import exchange, printing, shards
from hlofront.runtime.array.transfer import copied

jax_shims.provide("jax.core", "ShapedArray", ShapedArray)
_scalar_aval = ShapedArray((), np.dtype("float32"))
clients.on_made(lambda client: prime(client, _scalar_aval, on_device))
register_value_type(ArrayImpl, lambda array: array.aval)


Method = TypeVar("Method", bound=Callable[..., object])


def member(function: Method) -> Method:
    """Set a function as a method of arrays, under its own name.

    Modules of higher layers set those that run programs.
    """
    function.__qualname__ = f"ArrayImpl.{function.__name__}"
    setattr(ArrayImpl, function.__name__, function)
    if not function.__name__.startswith("__"):
        setattr(Array, function.__name__, function)
    return function


def _property(name: str, get: Callable[[Array], object], doc: str) -> None:
    """Define a property of arrays by a getter."""
    # Libraries read the members of the public class, even at import: `jax.Array.at`.
    for type_ in (Array, ArrayImpl):
        setattr(type_, name, property(get, doc=doc))


_of_cpp = {name: value for name, value in vars(ArrayImpl).items() if not name.startswith("__")}

# ---- type and devices --------------------------------------------------------------------------

_property("shape", lambda self: self.aval.shape, "The sizes of the axes.")
_property("dtype", lambda self: self.aval.dtype, "The dtype of the elements.")
_property("ndim", lambda self: self.aval.ndim, "The number of axes.")
_property("size", lambda self: self.aval.size, "The number of elements.")
_property("weak_type", lambda self: self.aval.weak_type, "Whether its dtype gives way to others.")
_property("itemsize", lambda self: self.aval.dtype.itemsize, "The bytes of one element.")
_property("nbytes", lambda self: self.aval.nbytes, "The bytes of all elements.")
# The getters of the sharding and of the commitment are pure C++.
_property("sharding", get_sharding, "How the array is spread over devices.")
_property(
    "committed",
    get_committed,
    "Whether computations with it must run where it is, rather than where others are.",
)
_property("_value", host_value, "The array as a NumPy array.")


def _device(self: Array) -> Device | Sharding:
    check_not_deleted(self)
    sharding = sharding_of(self)
    return device_of(sharding) if type(sharding) is SingleDeviceSharding else sharding


_property("device", _device, "The device it is on, or its sharding if it is on several.")
_property(
    "is_fully_addressable",
    lambda self: sharding_of(self).is_fully_addressable,
    "Whether this process drives all of the array's devices.",
)
_property(
    "is_fully_replicated",
    lambda self: sharding_of(self).is_fully_replicated,
    "Whether each of its devices holds the whole array.",
)


@member
def devices(self: Array) -> set[Device]:
    """Return the set of devices that the array is on."""
    check_not_deleted(self)
    return sharding_of(self).device_set


def _format(self: Array) -> Format:
    check_not_deleted(self)
    return Format(Layout.of_buffer(pjrt_layout_of(self)), sharding_of(self))


_property("format", _format, "The order of its elements in memory, and its sharding.")
_property("addressable_shards", shards.addressable_shards, "Its parts on this process's devices.")
_property("global_shards", shards.global_shards, "Its parts on all of its devices.")


@member
def addressable_data(self: Array, index: int) -> Array:
    """Return the shard on the `index`-th of this process's devices, as an array.

    Raises IndexError if there are fewer devices.
    """
    return shards.addressable_data(self, index)


def _gone(name: str, instead: str) -> property:
    def get(self: Array) -> NoReturn:
        raise AttributeError(f"arrays have no {name}: use {instead}")

    return property(get)


ArrayImpl.device_buffer = _gone("device_buffer", "arr.addressable_data(0)")
ArrayImpl.device_buffers = _gone("device_buffers", "[s.data for s in arr.addressable_shards]")


# ---- memory ------------------------------------------------------------------------------------


@member
def block_until_ready(self: Array) -> Array:
    """Wait until the array is computed, and return it.

    Raises RuntimeError if it was deleted, or its computation failed.
    """
    try:
        return _block(self)
    except JaxRuntimeError as error:
        if self.is_deleted():
            raise deleted(self) from None
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        raise importlib.import_module(_OWNERS).with_owners(error) from error


# Only an error needs to know which variables hold arrays.
_OWNERS = "hlofront.runtime.array.owners"
_block = _of_cpp["block_until_ready"]


@member
def copy_to_host_async(self: Array) -> None:
    """Start to copy the array to the host, which shortens a later read."""
    check_not_deleted(self)
    prefetch(self)


def _unless_deleted(name: str, doc: str) -> None:
    # Before 0.11 C++ crashes, or reports too little, for a deleted array.
    ask = _of_cpp[name]

    def method(self: Array) -> object:
        if self.is_deleted():
            raise deleted(self)
        return ask(self)

    method.__name__, method.__doc__ = name, doc
    member(method)


_unless_deleted("is_ready", "Whether the array is computed, without waiting for it.")
_unless_deleted("on_device_size_in_bytes", "The bytes that it takes on its devices together.")
_unless_deleted("unsafe_buffer_pointer", "Where it is in the memory of its only device.")
_unless_deleted("platform", "The name of the platform it is on, such as 'cpu'.")
_unless_deleted("clone", "Another array that shares this one's memory.")


@member
def __copy__(self: Array) -> Array:
    return copied(self)


@member
def __deepcopy__(self: Array, memo: object) -> Array:
    return copied(self)


# ---- value -------------------------------------------------------------------------------------


@member
def __array__(
    self: Array, dtype: DTypeLike | None = None, context: object = None, copy: bool | None = None
) -> NumPyArray:
    value = fetched(self)
    if dtype is None and not copy:
        return value
    return np.array(value, dtype=dtype, copy=copy)


@member
def item(self: Array, *args: int | tuple[int, ...]) -> bool | int | float | complex:
    """Return the only element as a Python scalar, or the element at a flat index or at indices.

    Raises:
      ValueError: if there is not one element and no index is passed, or too many are.
      IndexError: if an index is out of range.
    """
    return host_value(self).item(*args)


@member
def tolist(self: Array) -> Any:
    """Return the elements as Python scalars in nested lists; of a scalar, the Python scalar."""
    return host_value(self).tolist()


@member
def tobytes(self: Array, order: str = "C") -> bytes:
    """Return the bytes of the elements, in the order "C" or "F".

    Raises ValueError for any other order.
    """
    return host_value(self).tobytes(order)


def _scalar(array: Array) -> Any:
    """Return the element of a zero-dimensional array as a Python scalar."""
    if array.aval.ndim:
        raise TypeError(
            "Only scalar arrays can be converted to Python scalars; got arr.ndim="
            f"{array.aval.ndim}. Take an element, or use arr.item() on an array of one."
        )
    return host_value(array).item()


@member
def __bool__(self: Array) -> bool:
    if self.aval.size != 1:
        raise ambiguous_truth(self.aval)
    return bool(host_value(self))


@member
def __int__(self: Array) -> int:
    return int(_scalar(self))


@member
def __float__(self: Array) -> float:
    return float(_scalar(self))


@member
def __complex__(self: Array) -> complex:
    return complex(_scalar(self))


@member
def __index__(self: Array) -> int:
    aval = self.aval
    if aval.ndim or not issubdtype(aval.dtype, np.integer):
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got "
            f"{aval.str_short()}."
        )
    return host_value(self).item()


@member
def __len__(self: Array) -> int:
    shape = self.aval.shape
    if not shape:
        raise TypeError("len() of unsized object")
    return shape[0]


@member
def __setitem__(self: Array, index: object, value: object) -> NoReturn:
    raise no_item_assignment()


@member
def __delitem__(self: Array, index: object) -> NoReturn:
    raise TypeError(
        "arrays are immutable, so that items cannot be deleted. Instead of del x[idx] make an "
        "array without them: x = jnp.delete(x, idx)."
    )


# Arrays are unhashable, as `==` is elementwise.
ArrayImpl.__hash__ = None
# NumPy's operators defer to ours: `np.ones(3) + x` is an Array.
ArrayImpl.__array_priority__ = 100


# ---- printing, and other libraries -------------------------------------------------------------

ArrayImpl.__repr__ = printing.array_repr
ArrayImpl.__str__ = printing.array_str
ArrayImpl.__format__ = printing.array_format
ArrayImpl.__reduce__ = exchange.reduce_array
ArrayImpl.__dlpack__ = exchange.to_dlpack
ArrayImpl.__dlpack_device__ = exchange.dlpack_device

await_operators(ArrayImpl)
await_class_members(Array)
