"""Ref: a mutable reference to an array, outside of traced functions."""

from typing import TYPE_CHECKING

from hlofront.base.typing import DType
from hlofront.bridge.client import Sharding
from hlofront.bridge.fast_parts import Array
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, is_value, register_value_type, typeof
from hlofront.core.references import AbstractRef, RefMeta
from hlofront.core.trace import engine
from hlofront.primitives.arrays.creation import empty
from hlofront.primitives.elementwise.converting import convert, copy_p
from hlofront.primitives.references.references import (
    Indexable,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    new_ref_p,
)

if TYPE_CHECKING:
    from hlofront.pjrt.layouts import Format


class Ref(Indexable, metaclass=RefMeta):
    """A mutable reference to an array, as `new_ref` makes it; tracers of references are instances.

    Examples:
      >>> ref = jax.new_ref(jnp.arange(3.0))
      >>> ref[0] = 5.0
      >>> ref[1:] += 1.0
      >>> ref[...]
      Array([5., 2., 3.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_array", "_aval")

    _array: Array | None
    _aval: AbstractRef

    def __init__(self, aval: AbstractRef, array: Array):
        self._aval = aval
        self._array = array

    @property
    def has_ended(self) -> bool:
        """Return whether the reference was frozen or freed."""
        return self._array is None

    @property
    def array(self) -> Array:
        """The array that the reference holds; programs that write to it delete and replace it.

        Raises:
          RuntimeError: if the reference was frozen or freed.
        """
        if self._array is None:
            raise RuntimeError(
                f"the reference of type {self._aval} was frozen or freed: use the array that "
                "freeze returned, or make a new reference"
            )
        return self._array

    @array.setter
    def array(self, array: Array | None) -> None:
        self._array = array

    @property
    def aval(self) -> AbstractRef:
        """The type of the reference."""
        return self._aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes of the array."""
        return self._aval.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the array."""
        return self._aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._aval.size

    @property
    def sharding(self) -> Sharding:
        """The devices that hold the array, and how it is split over them."""
        return self.array.sharding

    @property
    def format(self) -> "Format":
        """The layout of the array in memory, and its sharding."""
        return self.array.format

    @property
    def committed(self) -> bool:
        """True if computations follow the array to its devices."""
        return self.array.committed

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the array in the memory of its device."""
        return self.array.unsafe_buffer_pointer()

    def __len__(self) -> int:
        return len(self._aval)

    def __repr__(self) -> str:
        if self._array is None:
            return f"Ref(<frozen or freed>, {self._aval})"
        return repr(self.array).replace("Array", "Ref", 1)


register_value_type(Ref, lambda ref: ref.aval)


@rules.run(new_ref_p)
def _(init_val: object, *, memory_space: object, kind: str | None) -> Ref:
    if not is_value(init_val):
        raise TypeError(
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of "
            f"type {type(init_val)}: give an array or a scalar. A pytree becomes one of references "
            "with jax.tree.map(jax.new_ref, tree)."
        )
    aval = rules.infer[new_ref_p](typeof(init_val), memory_space=memory_space, kind=kind)
    array = init_val if isinstance(init_val, Array) else engine().lift(init_val)
    return Ref(aval, copy_p.bind(array))


@rules.run(empty_ref_p)
def _(*, ty: ShapedArray, memory_space: object) -> Ref:
    aval = rules.infer[empty_ref_p](ty=ty, memory_space=memory_space)
    return Ref(aval, empty(ty.shape, ty.dtype))


@rules.run(freeze_p)
def _(ref: Ref) -> Array:
    array, ref.array = ref.array, None
    return convert(array, array.dtype, ref.aval.weak_type)


@rules.run(free_ref_p)
def _(ref: Ref) -> list[Array]:
    ref.array.delete()
    ref.array = None
    return []
