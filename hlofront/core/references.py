"""Mutable references: their avals, the effects of reading and writing, and their indexers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.aval import AbstractHolder, ShapedArray, Split
from hlofront.core.effects import Effect, OwnEffect
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sizes.computed_slices import Slice
from hlofront.core.trace import Tracer


class AbstractRef(AbstractHolder):
    """The type of a mutable reference: the aval of the array that it holds.

    Attributes:
      inner_aval: the aval of the array.
      memory_space: the memory that holds the array, or None for the device's own.
      kind: a name that extensions give a reference, or None.
    """

    __slots__ = ("kind", "memory_space")

    def __init__(
        self, inner_aval: ShapedArray, memory_space: object = None, kind: str | None = None
    ):
        super().__init__(inner_aval)
        self.memory_space = memory_space
        self.kind = kind

    @property
    def size(self) -> int:
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        return self.inner_aval.weak_type

    @property
    def sharding(self) -> Any:
        return self.inner_aval.sharding

    @property
    def mesh(self) -> AbstractMesh | None:
        """The mesh whose explicit axes split the array, or None."""
        return self.inner_aval.mesh

    @property
    def spec(self) -> PartitionSpec | None:
        """The explicit mesh axes that split each axis of the array, or None."""
        return self.inner_aval.spec

    @property
    def split(self) -> Split | None:
        """The mesh and the spec by which Explicit axes split the array, or None."""
        return self.inner_aval.split

    def update(
        self,
        inner_aval: ShapedArray | None = None,
        memory_space: object = None,
        kind: str | None = None,
        **changes: Any,
    ) -> "AbstractRef":
        """Return an aval with some of its own fields, or of its array's aval, replaced."""
        inner = self.inner_aval if inner_aval is None else inner_aval
        return AbstractRef(
            inner.update(**changes) if changes else inner,
            self.memory_space if memory_space is None else memory_space,
            self.kind if kind is None else kind,
        )

    def strip_weak_type(self) -> "AbstractRef":
        return self.update(inner_aval=self.inner_aval.strip_weak_type())

    def to_tangent_aval(self) -> "AbstractRef":
        """Return the aval of a reference to the tangent of the array."""
        return self.update(inner_aval=self.inner_aval.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AbstractRef)
            and self.inner_aval == other.inner_aval
            and self.memory_space == other.memory_space
            and self.kind == other.kind
        )

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.memory_space, self.kind))

    def __len__(self) -> int:
        return len(self.inner_aval)


def is_reference(aval: object) -> bool:
    """Return whether an aval is the type of a mutable reference."""
    return type(aval) is AbstractRef


class RefMeta(type):
    """The class of `Ref`, for which tracers of references are instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        # Other values may have an attribute of this name, such as objects that wrap a reference.
        return super().__instancecheck__(instance) or (
            isinstance(instance, Tracer) and is_reference(instance.aval)
        )


# ---- effects -------------------------------------------------------------------------------------


class RefEffect(OwnEffect):
    """The effect of an operation on a mutable reference: it is neither reordered nor removed.

    Programs with such effects are discharged before they are lowered: references become values.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


read_effect = RefEffect("Read")
write_effect = RefEffect("Write")
accumulate_effect = RefEffect("Accum")
# Allocating or freeing a reference, which happens inside a program.
allocation_effect = RefEffect("InternalMutableArrayEffect")


def touches_references(effects: frozenset[Effect]) -> bool:
    """Return whether effects include one on references."""
    return any(isinstance(effect, RefEffect) for effect in effects)


# ---- indexers ------------------------------------------------------------------------------------


# The index of one axis, in the canonical form of what the user wrote.
AxisIndex = ArrayLike | Slice


class NDIndexer:
    """An index of all axes of an array: a pytree whose leaves are the indices that are not slices.

    Attributes:
      indices: per axis an integer, an array of integers or a Slice. If any is an array of one or
        more axes, all but slices are arrays of the shape `int_indexer_shape`.
      shape: the shape of the array that is indexed.
      int_indexer_shape: the shape of the index arrays, or () if there are none.
    """

    __slots__ = ("indices", "int_indexer_shape", "shape")

    def __init__(
        self,
        indices: Sequence[AxisIndex],
        shape: tuple[int, ...],
        int_indexer_shape: tuple[int, ...],
    ):
        self.indices = tuple(indices)
        self.shape = shape
        self.int_indexer_shape = int_indexer_shape

    @property
    def is_slice(self) -> list[bool]:
        """Per axis, whether its index is a slice."""
        return [isinstance(index, Slice) for index in self.indices]

    @property
    def first_array_axis(self) -> int:
        """The position of the first result axis that comes from index arrays.

        As in NumPy, it is the position of the first index array if all are adjacent, else 0.
        """
        arrays = [axis for axis, is_slice in enumerate(self.is_slice) if not is_slice]
        if not self.int_indexer_shape or arrays != list(range(arrays[0], arrays[-1] + 1)):
            return 0
        return arrays[0]

    def get_indexer_shape(self) -> tuple[int, ...]:
        """Return the shape of what the index selects."""
        sizes = [index.size for index in self.indices if isinstance(index, Slice)]
        at = self.first_array_axis
        return (*sizes[:at], *self.int_indexer_shape, *sizes[at:])

    def __repr__(self) -> str:
        return f"NDIndexer(indices={self.indices}, shape={self.shape})"


class RefView(NDIndexer):
    """An indexer that selects all elements and views them with another shape or dtype.

    Attributes:
      new_shape: the shape of the view.
      dtype: the dtype to reinterpret the bits as; None for no change. Elements of another width are
        packed or unpacked along the second-to-last axis.
    """

    __slots__ = ("dtype", "new_shape")

    def __init__(
        self, shape: tuple[int, ...], new_shape: tuple[int, ...], dtype: DType | None = None
    ):
        super().__init__(tuple(map(full_slice, shape)), shape, ())
        self.new_shape = new_shape
        self.dtype = dtype

    @property
    def changes(self) -> bool:
        """Whether the view has another shape or dtype."""
        return self.new_shape != self.shape or self.dtype is not None

    def get_indexer_shape(self) -> tuple[int, ...]:
        return self.new_shape

    def __repr__(self) -> str:
        if self.dtype is not None:
            return f"{{bitcast({self.dtype})}}"
        return f"{{reshape({list(self.new_shape)})}}"


tree.register_pytree_node(
    RefView,
    lambda view: ((), (view.shape, view.new_shape, view.dtype)),
    lambda static, _: RefView(*static),
)
tree.register_pytree_node(
    NDIndexer,
    lambda indexer: ((indexer.indices,), (indexer.shape, indexer.int_indexer_shape)),
    lambda static, children: NDIndexer(*children, *static),
)


def full_slice(size: int) -> Slice:
    """Return the Slice of all elements of an axis."""
    return Slice(0, size, 1)


def shape_after(shape: tuple[int, ...], transforms: Sequence[NDIndexer]) -> tuple[int, ...]:
    """Return the shape of the part of an array that indexers, applied in order, select."""
    return transforms[-1].get_indexer_shape() if transforms else shape


def dtype_after(dtype: DType, transforms: Sequence[NDIndexer]) -> DType:
    """Return the dtype of the part of an array that indexers, applied in order, select."""
    for indexer in transforms:
        if isinstance(indexer, RefView) and indexer.dtype is not None:
            dtype = indexer.dtype
    return dtype


def indexers_text(transforms: Sequence[NDIndexer], text: Callable[[object], str]) -> str:
    """Return indexers as text, to follow a name: `[0,:][1:3]`, or `[...]` if there are none.

    Args:
      transforms: the indexers.
      text: returns the text of an index that is not a slice.
    """
    if not transforms:
        return "[...]"
    return "".join(
        str(indexer)
        if isinstance(indexer, RefView)
        else f"[{','.join(_index_texts(indexer, text))}]"
        for indexer in transforms
    )


def _index_texts(indexer: NDIndexer, text: Callable[[object], str]) -> Iterator[str]:
    for index, size in zip(indexer.indices, indexer.shape, strict=True):
        if not isinstance(index, Slice):
            yield text(index)
        elif index.is_dynamic_start or index.is_dynamic_size:
            start = text(index.start) if index.is_dynamic_start else str(index.start)
            length = text(index.size) if index.is_dynamic_size else str(index.size)
            yield f"{start}:{start}+{length}"
        else:
            stop = index.start + index.size
            yield f"{index.start or ''}:{'' if stop == size else stop}"


def is_known_integer(index: object) -> bool:
    """Return whether an index is an integer of Python or NumPy."""
    return isinstance(index, (int, np.integer)) and not isinstance(index, (bool, np.bool_))
