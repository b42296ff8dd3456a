"""Named axes in scope, whose names `psum(x, "i")` may use, and their sizes."""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType
from typing import Any, cast

from hlofront.bridge import state
from hlofront.core.aval import AbstractValue, ShapedArray, Split
from hlofront.core.futures import AbstractFuture
from hlofront.core.references import AbstractRef
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.mesh_context import get_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec

_cell = state.named_axes
_swap = _cell.swap_local
_set = _cell.set_local


class BatchTag:
    """The identity of a vmap call.

    Attributes:
      closed_over: whether a function with a custom rule that was called in a program closed over a
          batched value; its rule, which runs later, may then do so as well.
    """

    __slots__ = ("closed_over",)

    def __init__(self):
        self.closed_over = False


class AxisData:
    """The axis that vmap maps.

    Attributes:
      name: its name, or None.
      size: its size.
      spmd_name: the mesh axes over which the user asked to split it.
      explicit_mesh_axis: the mesh axes of type Explicit that split the arrays along this axis.
      mesh: the mesh of `explicit_mesh_axis`, or None.
      tag: the identity of the vmap call that maps it, which comparisons ignore. Functions and rules
        that run later recognize the batched values of that call by it; see `BatchTrace.tag`. It is
        a BatchTag, or an object of another package.
    """

    __slots__ = ("explicit_mesh_axis", "mesh", "name", "size", "spmd_name", "tag")

    def __init__(
        self,
        name: Hashable,
        size: int,
        spmd_name: tuple[Hashable, ...] = (),
        explicit_mesh_axis: tuple[Hashable, ...] = (),
        mesh: AbstractMesh | None = None,
        tag: object = None,
    ):
        self.tag = BatchTag() if tag is None else tag
        self.name = name
        self.size = size
        self.spmd_name = spmd_name
        self.explicit_mesh_axis = explicit_mesh_axis
        self.mesh = mesh

    def tagged(self, tag: object) -> "AxisData":
        """Return the same axis with another tag, which is a new BatchTag if `tag` is None."""
        return AxisData(
            self.name, self.size, self.spmd_name, self.explicit_mesh_axis, self.mesh, tag
        )

    def _key(self) -> tuple[object, ...]:
        return self.name, self.size, self.spmd_name, self.explicit_mesh_axis, self.mesh

    def __eq__(self, other: object) -> bool:
        return type(other) is AxisData and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"AxisData(name={self.name!r}, size={self.size}, spmd_name={self.spmd_name!r})"


# The axis whose batch rule is running, if explicit mesh axes split it.
_split_axis: ContextVar[AxisData | None] = ContextVar("split_batch_axis", default=None)


class splitting_batches:
    """A context manager in which new batch axes are split like the axis that vmap maps."""

    __slots__ = ("_token", "axis")

    _token: Token[AxisData | None]

    def __init__(self, axis: AxisData):
        self.axis = axis

    def __enter__(self) -> None:
        self._token = _split_axis.set(self.axis if self.axis.explicit_mesh_axis else None)

    def __exit__(self, *_: object) -> None:
        _split_axis.reset(self._token)


def split_batch_axis() -> AxisData | None:
    """Return the axis whose batch rule is running if explicit mesh axes split it, else None."""
    return _split_axis.get()


class axes_in_scope:
    """A context manager that adds named axes, as (name, size) pairs, to those in scope."""

    __slots__ = ("axes", "before")

    def __init__(self, axes: Sequence[tuple[Hashable, Any]]):
        self.axes = tuple(axes)

    def __enter__(self) -> None:
        self.before: Any = _swap(current_axes() + self.axes)

    def __exit__(self, *_: object) -> None:
        _set(self.before)


# Functions that return the index along named axes, where no operation of its own computes it.
_index_functions: ContextVar[Mapping[Hashable, Callable[[], Any]]] = ContextVar(
    "index_functions", default=MappingProxyType({})
)


@contextmanager
def indexed_axes_in_scope(
    axes: Sequence[tuple[Hashable, Any]], functions: Mapping[Hashable, Callable[[], Any]]
) -> Generator[None, None, None]:
    """Add named axes whose index functions return, such as those of a grid, to those in scope."""
    token = _index_functions.set({**_index_functions.get(), **functions})
    try:
        with axes_in_scope(axes):
            yield
    finally:
        _index_functions.reset(token)


def index_function(name: Hashable) -> Callable[[], Any] | None:
    """Return the function that gives the index along a named axis, or None for most axes."""
    return _index_functions.get().get(name)


def current_axes() -> tuple[tuple[Hashable, Any], ...]:
    """Return the named axes in scope as (name, size) pairs, outermost first."""
    return _cell.value


def axis_size(name: Hashable) -> Any:
    """Return the size of the innermost axis with this name.

    Raises:
      NameError: if no axis of that name is in scope.
    """
    for known, size in reversed(current_axes()):
        if known == name:
            return size
    known = ", ".join(repr(known) for known, _ in current_axes()) or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. Axes in scope: {known}. "
        "Give the axis its name where it is made, as in vmap(f, axis_name=...)."
    )


# The functions (size, axis, aval) -> aval of one element, and (size, axis, mesh axis, aval) -> aval
# of a batch, of types of other packages.
aval_mapping_handlers: dict[type[AbstractValue], tuple[Callable[..., Any], Callable[..., Any]]] = {}


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """Return the aval of one element along an axis of an array.

    Args:
      size: the size of the axis.
      axis: its position; None leaves the aval unchanged.
      aval: the aval of the whole array, of a reference to it or a future of it, or of a token,
        which has no axes.

    Raises:
      ValueError: if the axis has another size.
    """
    if isinstance(aval, AbstractRef | AbstractFuture):
        return aval.update(inner_aval=cast(Any, mapped_aval(size, axis, aval.inner_aval)))
    if axis is not None and type(aval) in aval_mapping_handlers:
        return aval_mapping_handlers[type(aval)][0](size, axis, aval)
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} is not of size {size}")
    shape = (*aval.shape[:axis], *aval.shape[axis + 1 :])
    if aval.split is None:
        return aval.update(shape=shape)
    mesh, spec = aval.split
    entries = spec.partitions
    spec = spec.update(partitions=(*entries[:axis], *entries[axis + 1 :]))
    return aval.update(shape=shape, sharding=Split(mesh, spec))


def unmapped_aval(
    size: int,
    axis: int | None,
    aval: AbstractValue,
    explicit_mesh_axis: object = None,
    mesh: AbstractMesh | None = None,
) -> AbstractValue:
    """Return the aval of an array with one more axis.

    Args:
      size: the size of the new axis.
      axis: its position in the result; None leaves the aval unchanged.
      aval: the aval of one element along the axis, of a reference to it or a future of it, or of a
        token, whose aval does not change.
      explicit_mesh_axis: the axis of a mesh, or a tuple of them, that splits the new axis; None
        if none does.
      mesh: that mesh, if the aval has none; by default the mesh in context.
    """
    if isinstance(aval, AbstractRef | AbstractFuture):
        inner = unmapped_aval(size, axis, aval.inner_aval, explicit_mesh_axis, mesh)
        return aval.update(inner_aval=cast(Any, inner))
    if axis is not None and type(aval) in aval_mapping_handlers:
        return aval_mapping_handlers[type(aval)][1](size, axis, explicit_mesh_axis, aval)
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    if aval.split is None and not explicit_mesh_axis:
        return aval.update(shape=shape)
    split = aval.split or Split(mesh or get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))
    entries = split.spec.partitions
    spec = split.spec.update(partitions=(*entries[:axis], explicit_mesh_axis, *entries[axis:]))
    return aval.update(shape=shape, sharding=Split(split.mesh, spec))
