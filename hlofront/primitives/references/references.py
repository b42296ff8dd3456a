"""Primitives on mutable references: new_ref, empty_ref, freeze, free_ref, get, swap, addupdate."""

import math
import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from hlofront.base import tree
from hlofront.base.dtypes import bit_width, canonicalize_dtype, dtype_of
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import (
    AbstractRef,
    AxisIndex,
    NDIndexer,
    RefView,
    accumulate_effect,
    allocation_effect,
    dtype_after,
    indexers_text,
    is_reference,
    read_effect,
    shape_after,
    write_effect,
)
from hlofront.core.sizes.computed_slices import Slice
from hlofront.core.trace import is_eager
from hlofront.primitives.arrays.tiling import broadcast_to
from hlofront.primitives.elementwise.converting import convert

if TYPE_CHECKING:
    from hlofront.core.programs.print import Printing

# The operand is an array, the result a reference that holds a copy of it.
new_ref_p = Primitive("new_ref")
# This makes a reference with undefined elements; it has no operands.
empty_ref_p = Primitive("empty_ref")
# The operand is a reference, the result its array; the reference must not be used afterwards.
freeze_p = Primitive("freeze")
free_ref_p = Primitive("free_ref", multiple_results=True)
# Operands: a reference and the leaves of indexers, whose structure is the parameter `tree`.
get_p = Primitive("get")
# Operands: a reference, the new value, and the leaves of indexers. The result is the old value.
swap_p = Primitive("swap")
# The operands are those of swap; there are no results.
addupdate_p = Primitive("addupdate", multiple_results=True)

for _primitive in (new_ref_p, empty_ref_p, freeze_p, free_ref_p, get_p, swap_p, addupdate_p):
    _primitive.ref_primitive = True
for _primitive in (new_ref_p, empty_ref_p):
    _primitive.ref_allocating = True

# Without indexers, the whole array is selected.
_WHOLE: tuple[NDIndexer, ...] = ()


# ---- indices -------------------------------------------------------------------------------------


class RefLike(Protocol):
    """A protocol of references, tracers of references, and views of parts of references."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> DType: ...


# A function of each indexed reference and the index, by which kernels check bounds.
index_check: ContextVar[Callable[[RefLike, NDIndexer], None] | None] = ContextVar(
    "index_check", default=None
)

# An entry of an index, for one axis or, if it is an ellipsis, several.
RefIndexEntry = ArrayLike | Slice | slice | EllipsisType
# An index of a reference; None selects all elements.
RefIndex = RefIndexEntry | tuple[RefIndexEntry, ...] | None


class Indexable:
    """The base class of references and of views of their parts, which are indexed alike."""

    __slots__ = ()

    # NumPy arrays leave operators to the other operand.
    __array_priority__ = 1000

    @property
    def at(self: RefLike) -> "RefIndexer":
        """Views of parts: `ref.at[index]`."""
        return RefIndexer(self)

    def reshape(self: RefLike, *shape: int | tuple[int, ...]) -> "TransformedRef":
        """Return a view in another shape: see `reshaped`."""
        return reshaped(self, *shape)

    def bitcast(self: RefLike, dtype: DTypeLike) -> "TransformedRef":
        """Return a view of the bits as elements of another dtype: see `bitcasted`."""
        return bitcasted(self, dtype)

    def addupdate(self: RefLike, value: ArrayLike, index: RefIndex = None) -> None:
        """Add a value to the elements at an index; None is all of them."""
        addupdate(self, index, value)

    def __getitem__(self: RefLike, index: RefIndex) -> Array:
        return get(self, index)

    def __setitem__(self: RefLike, index: RefIndex, value: ArrayLike) -> None:
        set(self, index, value)


class TransformedRef(Indexable):
    """A view of a part of a reference, `ref.at[index]`, which is indexed like a reference.

    Attributes:
      ref: the reference.
      transforms: the indexers that lead from the reference to the part, in order.
    """

    __slots__ = ("ref", "transforms")

    def __init__(self, ref: RefLike, transforms: Sequence[NDIndexer]):
        self.ref = ref
        self.transforms = tuple(transforms)

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_after(self.ref.shape, self.transforms)

    @property
    def dtype(self) -> DType:
        return dtype_after(self.ref.dtype, self.transforms)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, self.dtype).size

    def get(self, index: RefIndex = None) -> Array:
        """Return the elements at an index of the part."""
        return get(self, index)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"TransformedRef({self.ref}{indexers_text(self.transforms, str)})"


class RefIndexer:
    """The value of `ref.at`, which is indexed to get a view of a part of the reference."""

    __slots__ = ("ref",)

    def __init__(self, ref: RefLike):
        self.ref = ref

    def __getitem__(self, index: RefIndex) -> TransformedRef:
        return TransformedRef(*indexed(self.ref, index, "at"))


def indexed(ref: RefLike, index: RefIndex, function: str) -> tuple[RefLike, tuple[NDIndexer, ...]]:
    """Return the reference behind a reference or view, and its indexers with `index` appended.

    Args:
      ref: a reference, a tracer of one, or a TransformedRef.
      index: the contents of the brackets: integers, slices, arrays of integers, `ds(...)`, an
        ellipsis; None for all elements.
      function: the name of the called function, for messages.

    Raises:
      ValueError: if `ref` is not a reference, or the index is too long or out of bounds.
      TypeError: if an index is not an integer.
    """
    transforms = _WHOLE
    if isinstance(ref, TransformedRef):
        ref, transforms = ref.ref, ref.transforms
    if not is_reference(getattr(ref, "aval", None)):
        raise ValueError(f"Can only call `{function}` on a `Ref`: {ref}.")
    if index is None or index is Ellipsis or (type(index) is tuple and not index):
        return ref, transforms
    indexer = _indexer(index, shape_after(ref.shape, transforms))
    check = index_check.get()
    if check is not None:
        check(ref, indexer)
    return ref, (*transforms, indexer)


def reshaped(ref: RefLike, *shape: int | tuple[int, ...]) -> TransformedRef:
    """Return a view of a reference in another shape, with its elements in row-major order.

    Args:
      ref: a reference, or a view of a part.
      *shape: the sizes, or a tuple of them; one may be -1, for the remaining elements.

    Raises:
      ValueError: if the shape has another number of elements.
    """
    ref, transforms = indexed(ref, None, "reshape")
    first = shape[0] if len(shape) == 1 else shape
    sizes = [operator.index(size) for size in (first if isinstance(first, tuple) else (first,))]  # pyright: ignore[reportArgumentType]
    old = shape_after(ref.shape, transforms)
    count = math.prod(old)
    if sizes.count(-1) == 1:
        rest = math.prod([size for size in sizes if size != -1])
        sizes[sizes.index(-1)] = count // rest if rest else 0
    if math.prod(sizes) != count or min(sizes, default=0) < 0:
        raise ValueError(
            f"cannot reshape ref of shape {old} into shape {shape}: it has {count} elements"
        )
    return TransformedRef(ref, (*transforms, RefView(old, tuple(sizes))))


def bitcasted(ref: RefLike, dtype: DTypeLike) -> TransformedRef:
    """Return a view of the bits of a reference as elements of another dtype.

    With a narrower dtype, each row becomes several, which hold its lowest bits first: the
    second-to-last axis grows by that factor. With a wider dtype it shrinks.

    Args:
      ref: a reference, or a view of a part.
      dtype: the dtype.

    Raises:
      ValueError: if the reference has fewer than two axes, or its rows cannot be packed evenly.
    """
    ref, transforms = indexed(ref, None, "bitcast")
    new = canonicalize_dtype(dtype)
    old_shape, old = shape_after(ref.shape, transforms), dtype_after(ref.dtype, transforms)
    shape = list(old_shape)
    if bit_width(old) != bit_width(new):
        if len(shape) < 2 or shape[-2] * bit_width(old) % bit_width(new):
            raise ValueError(
                f"cannot bitcast ref of shape {old_shape} from {old} to {new}: rows are packed or "
                "unpacked along the last axis but one, whose size must be a multiple of "
                f"{max(bit_width(new) // bit_width(old), 1)}"
            )
        shape[-2] = shape[-2] * bit_width(old) // bit_width(new)
    return TransformedRef(ref, (*transforms, RefView(old_shape, tuple(shape), new)))


def _indexer(index: RefIndex, shape: tuple[int, ...]) -> NDIndexer:
    entries = list(cast(tuple[RefIndexEntry, ...], index if type(index) is tuple else (index,)))
    ellipses = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(ellipses) > 1:
        raise ValueError("an index of a reference may have only one ellipsis")
    if len(entries) - len(ellipses) > len(shape):
        raise ValueError(
            f"`indices` must not be longer than `shape`: indices={index!r}, shape={shape}"
        )
    missing = len(shape) - (len(entries) - len(ellipses))
    at = ellipses[0] if ellipses else len(entries)
    entries[at : at + len(ellipses)] = [slice(None)] * missing
    indices = [_index_of_axis(entry, size) for entry, size in zip(entries, shape, strict=True)]
    arrays = [i for i in indices if not isinstance(i, Slice)]
    shapes = [np.shape(i) if isinstance(i, int) else cast(Array, i).shape for i in arrays]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"the arrays of an index do not broadcast: got shapes {shapes}") from None
    if common:
        indices = [i if isinstance(i, Slice) else broadcast_to(i, common) for i in indices]
    return NDIndexer(indices, shape, common)


def _index_of_axis(index: RefIndexEntry, size: int) -> AxisIndex:
    """Return the index of an axis as a Slice, an integer or an array of integers."""
    if isinstance(index, Slice):
        return index
    if isinstance(index, slice):
        if index.step is not None and index.step < 1:
            raise ValueError(f"slice must have a step >= 1 (found: {index.step})")
        return Slice.from_slice(index, size)
    if isinstance(index, (int, np.integer)) and not isinstance(index, (bool, np.bool_)):
        return _in_bounds(int(index), size)
    array = cast(Array, index)
    aval = typeof(array)
    if is_reference(aval) or not np.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            "an index of a reference is made of integers, slices, arrays of integers and "
            f"ellipses: got {index!r} of type {type(index).__name__}. For a mask, write "
            "jnp.where(mask, new, ref[...]) to the whole reference."
        )
    if not aval.shape and is_eager():
        return _in_bounds(int(array), size)
    return array


def _in_bounds(index: int, size: int) -> int:
    if not -size <= index < size:
        raise ValueError(f"Out of bound indexer: idx={index}, dim={size}.")
    return index


# ---- functions -----------------------------------------------------------------------------------


def new_ref(
    init_val: ArrayLike, *, memory_space: object = None, kind: str | None = None, pin: bool = False
) -> Any:
    """Return a mutable reference that holds a copy of an array.

    `ref[...]` reads it, `ref[i] = x` writes to it, `ref[i] += x` does both, inside and outside
    jitted functions. A function may take references, close over them and make them, but not return
    them. A reference must not be passed twice to a function, nor both passed and closed over.

    Args:
      init_val: the initial value, an array or scalar.
      memory_space: the memory of the reference, which extensions interpret.
      kind: the name of a kind of reference, which extensions interpret.
      pin: must be False: references are values in compiled programs, not pinned buffers.

    Raises:
      NotImplementedError: if `pin` is true.
      TypeError: if `init_val` is not an array, or is a reference.

    Examples:
      >>> ref = jax.new_ref(jnp.zeros(3))
      >>> ref[1] += 2.0
      >>> ref
      Ref([0., 2., 0.], dtype=float32)
    """
    _refuse_pin("new_ref", pin)
    return new_ref_p.bind(init_val, memory_space=memory_space, kind=kind)


def _refuse_pin(name: str, pin: bool) -> None:
    if pin:
        raise NotImplementedError(  # JAX raises this class.
            f"{name}(pin=True): a compiled program has the values of its references and no pinned "
            "buffers. Leave pin out; an argument whose memory a result shall reuse can be donated, "
            "by jax.jit(..., donate_argnums=...)."
        )


def empty_ref(ty: Any, memory_space: object = None, pin: bool = False) -> Any:
    """Return a mutable reference whose elements are undefined until they are written.

    Args:
      ty: the type of the array: an aval, or any value with a shape and dtype.
      memory_space: the memory of the reference, which extensions interpret.
      pin: must be False: references are values in compiled programs, not pinned buffers.

    Raises:
      NotImplementedError: if `pin` is true.
    """
    _refuse_pin("empty_ref", pin)
    if not isinstance(ty, ShapedArray):
        ty = ShapedArray(tuple(ty.shape), dtype_of(ty.dtype))
    return empty_ref_p.bind(ty=ty, memory_space=memory_space)


def freeze(ref: RefLike) -> Array:
    """Return the array that a reference holds; the reference must not be used afterwards.

    Args:
      ref: a reference, as `jax.new_ref` makes it.

    Raises:
      ValueError: if `ref` is not a reference.
    """
    ref, _ = indexed(ref, None, "freeze")
    return freeze_p.bind(ref)


def free_ref(ref: RefLike) -> None:
    """Free a reference, so that its memory can be reused; it must not be used afterwards.

    Args:
      ref: a reference, as `jax.new_ref` makes it.

    Raises:
      ValueError: if `ref` is not a reference.
    """
    ref, _ = indexed(ref, None, "free_ref")
    free_ref_p.bind(ref)


def get(ref: RefLike, idx: RefIndex = None) -> Array:
    """Return the elements of a reference at an index: `ref[idx]`.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      idx: integers, slices, arrays of integers, `jax.ds(start, size)` or an ellipsis; None for all
        elements. Arrays of integers index as in NumPy.

    Raises:
      ValueError: if the index is too long or out of bounds.
    """
    ref, transforms = indexed(ref, idx, "ref_get")
    leaves, structure = tree.tree_flatten(transforms)
    return get_p.bind(ref, *leaves, tree=structure)


def swap(ref: RefLike, idx: RefIndex, value: ArrayLike, _function_name: str = "ref_swap") -> Array:
    """Write a value to the elements of a reference at an index, and return the old elements.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      idx: integers, slices, arrays of integers, `jax.ds(start, size)` or an ellipsis; None for all
        elements. Arrays of integers index as in NumPy.
      value: an array of the shape and dtype of the elements; it is not broadcast.

    Raises:
      ValueError: if the shape or dtype of the value differs from that of the elements.
    """
    ref, transforms = indexed(ref, idx, _function_name)
    leaves, structure = tree.tree_flatten(transforms)
    return swap_p.bind(ref, _written(value), *leaves, tree=structure)


def set(ref: RefLike, idx: RefIndex, value: ArrayLike) -> None:
    """Write a value to the elements of a reference at an index: `ref[idx] = value`.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      idx: integers, slices, arrays of integers, `jax.ds(start, size)` or an ellipsis; None for all
        elements. Arrays of integers index as in NumPy.
      value: an array of the shape and dtype of the elements; it is not broadcast.

    Raises:
      ValueError: if the shape or dtype of the value differs from that of the elements.
    """
    swap(ref, idx, value, "ref_set")


def addupdate(ref: RefLike, idx: RefIndex, x: ArrayLike) -> None:
    """Add a value to the elements of a reference at an index, without reading them.

    Sums commute, so cotangents can be accumulated in any order. Elements that an array of integers
    selects twice are added to twice, unlike with `ref[idx] += x`.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      idx: integers, slices, arrays of integers, `jax.ds(start, size)` or an ellipsis; None for all
        elements. Arrays of integers index as in NumPy.
      x: an array of the shape and dtype of the elements; it is not broadcast.

    Raises:
      ValueError: if the shape or dtype of the value differs from that of the elements.
    """
    ref, transforms = indexed(ref, idx, "ref_addupdate")
    leaves, structure = tree.tree_flatten(transforms)
    addupdate_p.bind(ref, _written(x), *leaves, tree=structure)


def _written(value: ArrayLike) -> ArrayLike:
    """Return a value with a strong type, which references require."""
    aval = typeof(value)
    if is_reference(aval):
        raise TypeError(f"a reference holds arrays, and no references: read {value} with [...]")
    return convert(value, aval.dtype, False) if aval.weak_type else value


# ---- types and effects ---------------------------------------------------------------------------


@rules.infer(new_ref_p)
def _(init_val: ShapedArray, *, memory_space: object, kind: str | None) -> AbstractRef:
    if is_reference(init_val):
        raise TypeError(
            f"new_ref requires an array, got the reference {init_val}. Read its value first: "
            "ref[...]"
        )
    return AbstractRef(init_val, memory_space, kind)


@rules.infer(empty_ref_p)
def _(*, ty: ShapedArray, memory_space: object) -> AbstractRef:
    return AbstractRef(ty, memory_space)


@rules.infer(freeze_p)
def _(ref: AbstractRef) -> ShapedArray:
    return ref.inner_aval


@rules.infer(free_ref_p)
def _(ref: AbstractRef) -> list[ShapedArray]:
    return []


def _selected(ref: AbstractRef, indices: Avals, structure: PyTreeDef) -> ShapedArray:
    """Return the aval of the elements that indexers select."""
    transforms = tree.tree_unflatten(structure, indices)
    dtype = dtype_after(ref.dtype, transforms)
    return ref.inner_aval.update(shape=shape_after(ref.shape, transforms), dtype=dtype)


@rules.infer(get_p)
def _(ref: AbstractRef, *indices: ShapedArray, tree: PyTreeDef) -> ShapedArray:
    return _selected(ref, indices, tree)


@rules.infer(swap_p)
def _(ref: AbstractRef, value: ShapedArray, *indices: ShapedArray, tree: PyTreeDef) -> ShapedArray:
    return _checked("swap", ref, value, indices, tree)


@rules.infer(addupdate_p)
def _(
    ref: AbstractRef, value: ShapedArray, *indices: ShapedArray, tree: PyTreeDef
) -> list[ShapedArray]:
    _checked("addupdate", ref, value, indices, tree)
    return []


def _checked(
    name: str, ref: AbstractRef, value: ShapedArray, indices: Avals, structure: PyTreeDef
) -> ShapedArray:
    selected = _selected(ref, indices, structure)
    if value.shape != selected.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {ref.shape}. Expected shape: "
            f"{selected.shape}. Value shape: {value.shape}. Values are not broadcast: use "
            f"jnp.broadcast_to(value, {selected.shape})."
        )
    if value.dtype != selected.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {selected.dtype.name}. Value dtype: "
            f"{value.dtype.name}. Values are not converted: use "
            f"value.astype({selected.dtype.name!r})."
        )
    return selected


def _effect(primitive: Primitive, effects: Effects) -> None:
    rules.effects(primitive)(lambda *_, **__: effects)


_effect(new_ref_p, frozenset((allocation_effect,)))
_effect(empty_ref_p, frozenset((allocation_effect,)))
_effect(freeze_p, frozenset((allocation_effect,)))
_effect(free_ref_p, frozenset((allocation_effect,)))
_effect(get_p, frozenset((read_effect,)))
_effect(swap_p, frozenset((write_effect,)))
_effect(addupdate_p, frozenset((accumulate_effect,)))


# ---- as text -------------------------------------------------------------------------------------


def _shown(equation: Equation, printing: "Printing", indices: Sequence[object]) -> str:
    """Return the text of a reference and its indexers, such as `a[0,:]`."""
    transforms = tree.tree_unflatten(equation.params["tree"], indices)
    return printing.used(equation.invars[0]) + indexers_text(
        transforms, lambda index: printing.used(index).partition(":")[0]
    )


@rules.show(get_p)
def _(equation: Equation, printing: "Printing") -> str:
    (result,) = equation.outvars
    return f"{printing.bound(result)} <- {_shown(equation, printing, equation.invars[1:])}"


@rules.show(swap_p)
def _(equation: Equation, printing: "Printing") -> str:
    (result,) = equation.outvars
    _, value, *indices = equation.invars
    part, new = _shown(equation, printing, indices), printing.used(value)
    if printing.is_dropped(result):
        return f"{part} <- {new}"
    return f"{printing.bound(result)}, {part} <- {part}, {new}"


@rules.show(addupdate_p)
def _(equation: Equation, printing: "Printing") -> str:
    _, value, *indices = equation.invars
    return f"{_shown(equation, printing, indices)} += {printing.used(value)}"
