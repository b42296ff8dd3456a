"""Mosaic rules of reads and writes of references, and views of parts of them."""

from collections.abc import Sequence

import numpy as np

from hlofront.base import tree as trees
from hlofront.base.elements import bool_, int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef
from hlofront.bridge.mlir import Value, Values
from hlofront.core.jaxpr import Literal
from hlofront.core.references import AbstractRef, NDIndexer, RefView
from hlofront.core.sizes.computed_slices import Slice
from hlofront.lowering.core.types import attribute, boolean
from hlofront.pallas.memory import is_semaphore
from hlofront.pallas.memory_hints import AccessAssumptions
from hlofront.pallas.mosaic.builder import KernelBuilder, KernelRef, Shape
from hlofront.pallas.mosaic.elementwise import converted
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.shaping import array_attribute
from hlofront.pallas.mosaic.types import memory_of, memref_type, value_type
from hlofront.primitives.elementwise.elementwise import add_p
from hlofront.primitives.references.references import (
    addupdate_p,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
)

# An index that is known, or a value of MLIR.
Index = Value | int


class RefPart(NamedTuple):
    """A part of the memref of a reference: per axis of the memref a start, a size and a stride.

    Attributes:
      ref: the reference.
      starts, sizes, strides: those of the part.
      kept: whether the part has the axis: the others have one element.
    """

    ref: KernelRef
    starts: tuple[Index, ...]
    sizes: Shape
    strides: Shape
    kept: tuple[bool, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the part without the axes that are not kept."""
        return tuple([n for n, kept in zip(self.sizes, self.kept, strict=True) if kept])

    @property
    def is_whole(self) -> bool:
        """Whether the part is the whole memref, with all its axes."""
        return self.sizes == self.ref.shape and all(self.kept)


def leaves_of(build: KernelBuilder, leaves: Values, first: int) -> list[Index]:
    """Return the operands from the `first` on: integers that are literals as integers of Python."""
    atoms = build.equation.invars[first:]
    return [
        int(atom.val) if type(atom) is Literal and _is_integer(atom.val) else leaf
        for atom, leaf in zip(atoms, leaves, strict=True)
    ]


def _is_integer(value: object) -> bool:
    return not np.shape(value) and np.issubdtype(np.result_type(value), np.integer)


def part_of(build: KernelBuilder, ref: KernelRef, transforms: Sequence[object]) -> RefPart:
    """Return the part of a reference that indexers, applied in order, select."""
    for transform in transforms[:-1]:
        ref = view(build, ref, transform)
    last = transforms[-1] if transforms else None
    if last is not None and (isinstance(last, RefView) or not isinstance(last, NDIndexer)):
        ref, last = view(build, ref, last), None
    return _indexed(build, ref, last)


def _indexed(build: KernelBuilder, ref: KernelRef, indexer: NDIndexer | None) -> RefPart:
    if indexer is not None and indexer.int_indexer_shape:
        build.refuse(
            "an index of a reference that is an array of integers: kernels of TPUs read slices and "
            "elements; read a slice, and choose from it by jnp.take_along_axis or a product",
            NotImplementedError,
        )
    own = [size for axis, size in enumerate(ref.shape) if axis not in ref.squeezed]
    indices = iter([Slice(0, size) for size in own] if indexer is None else indexer.indices)
    starts: list[Index] = []
    sizes: list[int] = []
    strides: list[int] = []
    kept: list[bool] = []
    for axis, size in enumerate(ref.shape):
        index = 0 if axis in ref.squeezed else next(indices)
        is_slice = isinstance(index, Slice)
        start = index.start if is_slice else index
        if is_slice and index.is_dynamic_size:
            build.refuse(
                "a slice of a reference whose size is not known: give pl.ds a size that is an int",
                NotImplementedError,
            )
        if isinstance(start, int | np.integer):
            start = int(start) + (size if start < 0 else 0)
        starts.append(start)
        sizes.append(index.size if is_slice else 1)
        strides.append(index.stride if is_slice else 1)
        kept.append(is_slice)
    return RefPart(ref, tuple(starts), tuple(sizes), tuple(strides), tuple(kept))


def view(build: KernelBuilder, ref: KernelRef, transform: object) -> KernelRef:
    """Return a reference to the part of another that a transform selects."""
    if not isinstance(transform, NDIndexer):
        build.refuse(
            f"{type(transform).__name__} of a reference: kernels of TPUs have views by indices, as "
            "in ref.at[0:8]. Read the elements, and change the value",
            NotImplementedError,
        )
    if isinstance(transform, RefView):
        return _seen(build, view_of_part(build, _indexed(build, ref, None)), transform)
    return view_of_part(build, _indexed(build, ref, transform))


def _seen(build: KernelBuilder, ref: KernelRef, seen: RefView) -> KernelRef:
    """Return a reference to the same memory with another shape or dtype, or with assumptions."""
    if isinstance(seen, AccessAssumptions):
        build.require("tpu.annotate", "leave pltpu.annotate out")
        flags = {name: boolean(True) for name in seen.names}
        type_ = memref_type(ref.shape, ref.dtype, ref.memory)
        return ref._replace(value=build.op("tpu.annotate", (ref.value,), type_, **flags))
    dtype = ref.dtype if seen.dtype is None else seen.dtype
    if len(ref.shape) < 2 and ref.shape != seen.new_shape:
        build.refuse(
            f"a view {seen} of a reference of shape {ref.shape}: TPUs see references of two or "
            "more axes in another shape",
            NotImplementedError,
        )
    name = "tpu.memref_reshape" if seen.dtype is None else "tpu.memref_bitcast"
    value = build.op(name, (ref.value,), memref_type(seen.new_shape, dtype, ref.memory))
    inner = ref.aval.inner_aval.update(shape=seen.new_shape, dtype=dtype)
    return KernelRef(value, ref.aval.update(inner_aval=inner), seen.new_shape)


def view_of_part(build: KernelBuilder, part: RefPart) -> KernelRef:
    """Return a reference to a part of another, without the axes that are not kept."""
    ref = part.ref
    if part.is_whole:
        return ref
    if any(stride != 1 for stride in part.strides):
        build.refuse(
            f"a view of a reference with strides {part.strides}: only reads and writes have them. "
            "Take a view without strides, and read or write ref[::2, :]",
            NotImplementedError,
        )
    value = ref.value
    if part.sizes != ref.shape:
        value = build.op(
            "tpu.memref_slice",
            (value, *map(build.to_int32, part.starts)),
            memref_type(part.sizes, ref.dtype, ref.memory),
            operandSegmentSizes=array_attribute((1, len(part.starts), 0), 32),
        )
    if not all(part.kept):
        value = build.op(
            "tpu.memref_squeeze", (value,), memref_type(part.shape, ref.dtype, ref.memory)
        )
    inner = ref.aval.inner_aval.update(shape=part.shape)
    return KernelRef(value, ref.aval.update(inner_aval=inner), part.shape)


# ---- buffers -------------------------------------------------------------------------------------


def allocated(build: KernelBuilder, aval: AbstractRef) -> KernelRef:
    """Return a reference to a new buffer, or to new semaphores."""
    type_ = memref_type(aval.shape, aval.dtype, memory_of(aval))
    if is_semaphore(aval.dtype):
        value = build.op("tpu.sem_alloc", (), type_)
    else:
        value = build.op(
            "memref.alloca", (), type_, operandSegmentSizes=array_attribute((0, 0), 32)
        )
    return KernelRef(value, aval, aval.shape)


@mosaic(empty_ref_p)
def _(build: KernelBuilder, **_: object) -> KernelRef:
    return allocated(build, build.avals_out[0])


@mosaic(new_ref_p)
def _(build: KernelBuilder, x: Value, **_: object) -> KernelRef:
    ref = allocated(build, build.avals_out[0])
    store(build, part_of(build, ref, ()), x)
    return ref


@mosaic(freeze_p)
def _(build: KernelBuilder, ref: KernelRef) -> Value:
    return load(build, part_of(build, ref, ()))


@mosaic(free_ref_p)
def _(build: KernelBuilder, ref: KernelRef) -> list[Value]:
    return []


# ---- reads and writes ----------------------------------------------------------------------------


@mosaic(get_p)
def _(build: KernelBuilder, ref: KernelRef, *leaves: Value, tree: PyTreeDef) -> Value:
    transforms = trees.tree_unflatten(tree, leaves_of(build, leaves, 1))
    return load(build, part_of(build, ref, transforms))


@mosaic(swap_p)
def _(
    build: KernelBuilder, ref: KernelRef, new: Value, *leaves: Value, tree: PyTreeDef
) -> Value | None:
    transforms = trees.tree_unflatten(tree, leaves_of(build, leaves, 2))
    part = part_of(build, ref, transforms)
    old = load(build, part) if build.is_read else None
    store(build, part, new)
    return old


@mosaic(addupdate_p)
def _(
    build: KernelBuilder, ref: KernelRef, x: Value, *leaves: Value, tree: PyTreeDef
) -> list[Value]:
    part = part_of(build, ref, trees.tree_unflatten(tree, leaves_of(build, leaves, 2)))
    old = load(build, part)
    aval = build.avals_in[1]
    build.avals_in = build.avals_out = [aval, aval]
    store(build, part, mosaic[add_p](build, old, x))
    return []


def _check(build: KernelBuilder, part: RefPart, what: str) -> None:
    """Raise an error for a read or write of a memory that kernels can only copy from and to."""
    if part.ref.memory not in ("vmem", "smem"):
        build.refuse(
            f"Loads are only allowed on VMEM and SMEM references: a {what} of a reference in "
            f"{part.ref.memory.upper()}, {part.ref.aval.str_short()}. Copy it to a buffer in VMEM "
            "by pltpu.sync_copy or pltpu.make_async_copy, or give its BlockSpec a block shape"
        )
    if part.ref.memory == "smem" and part.shape:
        build.refuse(
            f"a {what} of a slice of shape {part.shape} of a reference in SMEM, "
            f"{part.ref.aval.str_short()}: SMEM holds scalars, which are read and written one at "
            "a time, as ref[i]. Give arrays a BlockSpec in VMEM"
        )


def load(build: KernelBuilder, part: RefPart) -> Value:
    """Return the elements of a part of a reference."""
    _check(build, part, "read")
    ref = part.ref
    stored = int32 if ref.dtype == bool_ else ref.dtype
    indices = [build.to_index(start) for start in part.starts]
    if ref.memory == "smem":
        x = build.op("memref.load", (ref.value, *indices), value_type((), stored))
        return converted(build, x, (), stored, ref.dtype)
    type_ = value_type(part.sizes, stored)
    if any(stride != 1 for stride in part.strides):
        strides = array_attribute(part.strides, 32)
        x = build.op("tpu.strided_load", (ref.value, *indices), type_, strides=strides)
    else:
        x = build.op("vector.load", (ref.value, *indices), type_)
    x = build.reshape(x, stored, part.sizes, part.shape)
    return converted(build, x, part.shape, stored, ref.dtype)


def store(build: KernelBuilder, part: RefPart, x: Value, mask: Value | None = None) -> None:
    """Write an array to a part of a reference, or only where a mask is true."""
    _check(build, part, "write")
    ref = part.ref
    stored = int32 if ref.dtype == bool_ else ref.dtype
    x = converted(build, x, part.shape, ref.dtype, stored)
    indices = [build.to_index(start) for start in part.starts]
    if ref.memory == "smem":
        if mask is not None:
            build.refuse("a write to SMEM with a mask: write in pl.when(mask) instead")
        build.effect("memref.store", (x, ref.value, *indices))
        return
    if not part.shape:
        build.refuse(
            f"Cannot store scalars to VMEM: ref[...] = x of {ref.aval.str_short()}. Write a vector "
            "of one element, as in ref[i, 0:1] = x[None], or keep scalars in SMEM"
        )
    x = build.reshape(x, stored, part.shape, part.sizes)
    if any(stride != 1 for stride in part.strides):
        if mask is not None:
            build.refuse(
                "a write with a mask and strides: read the elements, select, and write them all",
                NotImplementedError,
            )
        strides = array_attribute(part.strides, 32)
        build.effect("tpu.strided_store", (x, ref.value, *indices), strides=strides)
        return
    masks = () if mask is None else (build.reshape(mask, bool_, part.shape, part.sizes),)
    build.effect(
        "tpu.vector_store",
        (x, ref.value, *indices, *masks),
        strides=attribute("array<i32>"),
        operandSegmentSizes=array_attribute((1, 1, len(indices), len(masks)), 32),
    )
