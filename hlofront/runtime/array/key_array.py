"""KeyArray: an array of random keys, around the array of integers that they are stored as."""

from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType
from typing import Any, NoReturn

import numpy as np

from hlofront.base.config import debug_key_reuse
from hlofront.base.elements import ExtendedDType
from hlofront.base.errors import KeyReuseError
from hlofront.base.module_names import home_of
from hlofront.base.typing import Array, NumPyArray
from hlofront.bridge import fast_parts
from hlofront.bridge.client import Device, NamedSharding, Sharding
from hlofront.core.aval import ShapedArray, Split, register_value_type
from hlofront.core.operators import await_operators, plug_in_operators
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.layouts import Format, Layout
from hlofront.primitives.random.keys import Generator, KeyDType
from hlofront.primitives.sharding.placing import CopySemantics
from hlofront.runtime.array import shards, transfer
from hlofront.runtime.sharding.storage import element_rank, sharding_of_keys, stored_sharding


class KeyArray(fast_parts.Array):
    """An array of random keys.

    Args:
      aval: the shape and dtype of the keys; the dtype is a KeyDType.
      base: the array of integers, with the axes of a key last.
    """

    __slots__ = ("__weakref__", "_base", "_used", "aval")

    aval: ShapedArray
    # A mask of the used keys, for jax_debug_key_reuse; None until it is first read.
    _used: NumPyArray | None

    # NumPy's operators must defer to ours.
    __array_priority__ = 100

    def __init__(self, aval: ShapedArray, base: Array):
        self.aval = _split_as(base, aval)
        self._base = base
        self._used = None

    @property
    def used(self) -> NumPyArray:
        """The mask of the keys that were used up, a boolean array that is written to in place."""
        if self._used is None:
            self._used = np.zeros(self.aval.shape, np.bool_)
        return self._used

    @property
    def _consumed(self) -> NumPyArray | np.bool_:
        """The mask of the keys that were used up, by JAX's name for `used`."""
        return self.used if self.aval.shape else self.used[()]

    def remember(self, used: NumPyArray) -> None:
        """Set the mask of the keys that were used up before."""
        self._used = np.array(used)

    # ---- type and devices

    @property
    def _base_array(self) -> Array:
        """The array of integers behind the keys, which may have been deleted."""
        return self._base

    def _live_base(self) -> Array:
        """Return the array of integers behind the keys; raise a RuntimeError if it was deleted."""
        check_not_deleted(self._base)
        return self._base

    @property
    def _impl(self) -> Generator:
        return self.aval.dtype.generator

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of keys, without the axes of a key."""
        return self.aval.shape

    @property
    def dtype(self) -> KeyDType:
        """The dtype of the keys."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array of keys."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """The number of bytes of one key."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all keys."""
        return self.aval.nbytes

    @property
    def sharding(self) -> Sharding:
        """The sharding of the array of keys."""
        return sharding_of_keys(self._base.sharding, self.aval)

    # The accessors in bridge/members.py read this name of C++ arrays and key arrays.
    _sharding = sharding

    @property
    def committed(self) -> bool:
        """Return whether computations with the keys must run on the keys' devices."""
        return self._base.committed

    _committed = committed

    @property
    def device(self) -> Device | Sharding:
        """The device of the keys, or their sharding if they are on several devices."""
        return self._base.device

    def devices(self) -> set[Device]:
        """Return the set of devices that the keys are on."""
        return self._base.devices()

    @property
    def is_fully_addressable(self) -> bool:
        """Return whether all devices of the keys are attached to this process."""
        return self._base.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Return whether each device of the array holds all keys."""
        return self._base.is_fully_replicated

    def _wrapped(self, piece: Array) -> "KeyArray":
        """Wrap a part of the integers, with the axes of a key last, as keys."""
        rank = self.aval.ndim
        return KeyArray(ShapedArray(piece.shape[:rank], self.aval.dtype), piece)

    @property
    def addressable_shards(self) -> list[shards.Shard]:
        """Return the shards of the keys on this process's devices."""
        return list(map(self._wrapped_shard, self._base.addressable_shards))

    @property
    def global_shards(self) -> list[shards.Shard]:
        """Return the shards of the keys on all devices."""
        return list(map(self._wrapped_shard, self._base.global_shards))

    def _wrapped_shard(self, shard: shards.Shard) -> shards.Shard:
        data = None if shard.data is None else self._wrapped(shard.data)
        return shards.Shard(shard.device, self._base.sharding, self._base.shape, data)

    def addressable_data(self, index: int) -> "KeyArray":
        """Return the shard of the keys on the `index`-th of this process's devices."""
        return self._wrapped(self._base.addressable_data(index))

    # ---- memory

    def block_until_ready(self) -> "KeyArray":
        """Wait until the keys are computed, and return them."""
        self._base.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        """Start to copy the integers behind the keys to the host."""
        self._base.copy_to_host_async()

    def delete(self) -> None:
        """Free the memory of the keys, which must not be used afterwards."""
        self._base.delete()

    def is_deleted(self) -> bool:
        """Return whether the memory of the keys was freed, or donated to a call."""
        return self._base.is_deleted()

    def on_device_size_in_bytes(self) -> int:
        """Return the total number of bytes that the keys take on their devices."""
        return self._base.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the keys in the memory of their only device."""
        return self._base.unsafe_buffer_pointer()

    def __copy__(self) -> "KeyArray":
        return KeyArray(self.aval, self._live_base().__copy__())

    def __deepcopy__(self, memo: object) -> "KeyArray":
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[[Array, KeyDType], Array], tuple[Array, KeyDType]]:
        return _unpickled, (self._live_base(), self.aval.dtype)

    # ---- value

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. The integers that "
            "the keys are stored as are jax.random.key_data(keys)."
        )

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def _picked(self, index: object) -> Array:
        """Return the keys at a concrete index; with reuse checks on, that uses them up."""
        used_here = np.asarray(self.used)
        try:
            used = used_here[index]
        except (IndexError, TypeError, ValueError):
            return _getitem(self, index)  # Raises an error that explains the invalid index.
        if used.any():
            raise KeyReuseError("Previously-consumed key passed to slice at index 0")
        with debug_key_reuse(False):
            element = _getitem(self, index)
        used_here[index] = True
        return element

    def __iter__(self) -> Iterator[Array]:
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d key array")
        check_not_deleted(self._base)
        return self._rows(range(self.aval.shape[0]))

    def __reversed__(self) -> Iterator[Array]:
        if not self.aval.shape:
            raise TypeError("reversed() of a 0-d key array")
        return self._rows(range(self.aval.shape[0] - 1, -1, -1))

    def _rows(self, indices: range) -> Iterator[Array]:
        base = self._live_base()
        if debug_key_reuse.value or not base.is_fully_addressable:
            # Each row has its own mask of used keys.
            return (self[i] for i in indices)
        aval = ShapedArray(self.aval.shape[1:], self.aval.dtype)
        return (KeyArray(aval, row) for row in (base if indices.step > 0 else reversed(base)))

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._live_base()}"

    __str__ = __repr__

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r}")


def _split_as(base: Array, aval: ShapedArray) -> ShapedArray:
    """Return the type of keys, split along Explicit mesh axes like the integers behind them."""
    split = getattr(getattr(base, "aval", None), "split", None)
    if split is None:
        return aval
    entries = split.spec.partitions[: aval.ndim]
    return aval.update(sharding=Split(split.mesh, split.spec.update(partitions=entries)))


def _unpickled(base: Array, dtype: ExtendedDType) -> Array:
    return of_base(dtype, (base,))


register_value_type(KeyArray, lambda keys: keys.aval)


def of_base(dtype: ExtendedDType, children: Iterable[Array]) -> KeyArray:
    """Return the array of an extended dtype that one array of plain elements represents."""
    (base,) = children
    shape = base.shape
    return KeyArray(ShapedArray(shape[: len(shape) - element_rank(dtype)], dtype), base)


fast_parts.call_registry.register_node(
    KeyArray, lambda keys: ((keys._base,), keys.aval.dtype), of_base
)


def put_keys(keys: KeyArray, target: object, semantics: CopySemantics) -> KeyArray:
    """Return keys on a device, or with a sharding or Format."""
    if isinstance(target, Format):
        target = _stored_format(target, keys.aval)
    if type(target) is NamedSharding:
        target.check_compatible_aval(keys.shape)
        target = stored_sharding(target, keys.aval)
    base = transfer.put_leaf(keys._live_base(), target, semantics)
    if base is keys._base:
        return keys
    moved = KeyArray(keys.aval, base)
    moved._used = keys._used
    return moved


transfer.register_putter(KeyArray, put_keys)


def _stored_format(target: Format, aval: ShapedArray) -> Format:
    """Return the Format of the integers behind keys, whose own axes are the last."""
    layout, sharding = target.layout, target.sharding
    if isinstance(layout, Layout):
        layout.mode(aval, f"the value of device_put, {aval.str_short()},")
        count = aval.ndim + element_rank(aval.dtype)
        layout = Layout((*layout.major_to_minor, *range(aval.ndim, count)), layout.tiling)
    return Format(layout, sharding and stored_sharding(sharding, aval))


def base_of(x: object) -> Any:
    """Return the array of integers behind random keys; any other value unchanged."""
    return x._live_base() if isinstance(x, KeyArray) else x


def key_handler(
    aval: ShapedArray, handler: Callable[[object], Array]
) -> Callable[[object], KeyArray]:
    """Return a result handler for keys; `handler` turns the raw output into the integers."""

    def handle(outputs: object) -> KeyArray:
        return KeyArray(aval, handler(outputs))

    return handle


def array_of(aval: ShapedArray, put: Callable[[ShapedArray], Array]) -> Array:
    """Return an array or a key array of an aval; `put(aval)` creates the array on the device."""
    if not isinstance(aval.dtype, ExtendedDType):
        return put(aval)
    return KeyArray(aval, put(ShapedArray(*aval.dtype.physical(aval.shape))))


# ---- operators -----------------------------------------------------------------------------------

await_operators(KeyArray)

# Methods of arrays that only rearrange elements.
_METHODS = frozenset("T at copy flatten ravel reshape squeeze swapaxes take transpose".split())


def plug_in_key_operators(
    tracers: dict[str, Callable[..., object]], arrays: dict[str, Callable[..., Any]]
) -> None:
    """Set the operators and methods of key arrays; those that compute with numbers raise.

    Args:
      tracers: the functions set on tracers, by name.
      arrays: the functions set on arrays of numbers, by name.
    """
    own = vars(KeyArray)
    global _getitem
    _getitem = arrays["__getitem__"]
    members: dict[str, Any] = {"item": _refused("item")} | {
        name: member if name in _METHODS or name.startswith("__") else _refused(name)
        for name, member in arrays.items()
        if not (name.startswith("__") and _defined_here(own.get(name)))
    }
    members["__getitem__"] = _get
    plug_in_operators(tracers, (KeyArray,), members)


def _get(self: KeyArray, index: object) -> Array:
    """Return the keys at an index."""
    if debug_key_reuse.value and _is_basic(index):
        return self._picked(index)
    return _getitem(self, index)


# The indexing function of arrays, which `plug_in_key_operators` sets.
_getitem: Callable[[Array, object], Array]


def _is_basic(index: object) -> bool:
    """Return whether an index consists only of integers, slices, None and ...."""
    parts: tuple[object, ...] = index if isinstance(index, tuple) else (index,)
    return all(part is None or isinstance(part, int | slice | EllipsisType) for part in parts)


def _defined_here(member: object) -> bool:
    return home_of(member) == __name__


def _refused(name: str) -> property:
    def get(self: KeyArray) -> NoReturn:
        raise NotImplementedError(  # JAX raises this class.
            f"random keys do not support {name!r}: use jax.random.key_data(keys) for the integers "
            "that store them."
        )

    return property(get)
