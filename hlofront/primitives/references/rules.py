"""Rules of the primitives on references: derivatives, transposes, batching and discharge."""

from collections.abc import Sequence
from typing import NoReturn, cast

from hlofront.base import tree
from hlofront.base.dtypes import float0
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import Equation
from hlofront.core.references import AbstractRef, AxisIndex, NDIndexer, RefView, full_slice
from hlofront.core.rules import BatchResult, JvpResult, Results
from hlofront.core.sizes.computed_slices import Slice
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    BatchAxis,
    Cotangent,
    Cotangents,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import current_trace
from hlofront.primitives.arrays.creation import broadcasted_iota, empty
from hlofront.primitives.arrays.shaping import broadcast_in_dim, transpose
from hlofront.primitives.elementwise.elementwise import add, mul
from hlofront.primitives.references.references import (
    RefLike,
    addupdate_p,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
)
from hlofront.primitives.references.updates import add_at, read_at, write_at
from hlofront.primitives.rules.batching import move_axis, to_front, with_new_axis
from hlofront.primitives.rules.derivatives import add_tangents, instantiate, is_linear

Axes = BatchAxes


# ---- discharge: operations on the arrays that references hold ------------------------------------


# The new array of each operand that is a written reference, or None; and the results.
Discharged = tuple[Sequence[ArrayLike | None], Results]


@rules.discharge(new_ref_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    return (None,), operands[0]


@rules.discharge(empty_ref_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    ty = equation.params["ty"]
    return (), empty(ty.shape, ty.dtype)


@rules.discharge(freeze_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    return (None,), operands[0]


@rules.discharge(free_ref_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    return (None,), []


@rules.discharge(get_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, *indices = operands
    value = read_at(array, equation.params["tree"].unflatten(indices))
    return [None] * len(operands), value


@rules.discharge(swap_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, value, *indices = operands
    transforms = equation.params["tree"].unflatten(indices)
    new = write_at(array, transforms, value)
    return [new, *[None] * len(operands[1:])], read_at(array, transforms)


@rules.discharge(addupdate_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, value, *indices = operands
    new = add_at(array, equation.params["tree"].unflatten(indices), value)
    return [new, *[None] * len(operands[1:])], []


# ---- tangents ------------------------------------------------------------------------------------


def not_differentiated(operation: str, ref: ArrayLike) -> NoReturn:
    """Raise the error for writing a value with a tangent to a reference without one."""
    raise Exception(  # JAX raises this class.
        f"performing {operation} operation with a differentiated value on a non-differentiated "
        f"array reference of type {typeof(ref)}. Move the array reference to be an argument of the "
        "differentiated function?"
    )


@rules.jvp(new_ref_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
    (value,), (tangent,) = primals, tangents
    ref = new_ref_p.bind(value, **params)
    aval = typeof(ref).to_tangent_aval()
    if aval.dtype == float0:
        return ref, Zero(aval)
    # The tangent of a constant is zero, and values with other tangents may be written later.
    moving = current_trace().lift_tangent(instantiate(tangent))
    return ref, new_ref_p.bind(moving, **params)


@rules.jvp(empty_ref_p)
def _(_: object, __: object, *, ty: ShapedArray, **params: object) -> JvpResult:
    ref = empty_ref_p.bind(ty=ty, **params)
    tangent = ty.to_tangent_aval()
    if tangent.dtype == float0:
        return ref, Zero(typeof(ref).to_tangent_aval())
    moving = current_trace().lift_tangent(instantiate(Zero(tangent)))
    return ref, new_ref_p.bind(moving, kind=None, **params)


@rules.jvp(freeze_p)
def _(primals: ArrayLikes, tangents: Tangents) -> JvpResult:
    (ref,), (tangent,) = primals, tangents
    value = freeze_p.bind(ref)
    return value, Zero.of(value) if type(tangent) is Zero else freeze_p.bind(tangent)


@rules.jvp(free_ref_p)
def _(primals: ArrayLikes, tangents: Tangents) -> JvpResult:
    for ref in (*primals, *tangents):
        if type(ref) is not Zero:
            free_ref_p.bind(ref)
    return [], []


@rules.jvp(get_p)
def _(primals: ArrayLikes, tangents: Tangents, *, tree: PyTreeDef) -> JvpResult:
    value = get_p.bind(*primals, tree=tree)
    tangent = tangents[0]
    # A view that reinterprets bits as integers has no tangent.
    if type(tangent) is Zero or typeof(value).to_tangent_aval().dtype == float0:
        return value, Zero.of(value)
    return value, get_p.bind(tangent, *primals[1:], tree=tree)


@rules.jvp(swap_p)
def _(primals: ArrayLikes, tangents: Tangents, *, tree: PyTreeDef) -> JvpResult:
    ref_tangent, tangent = tangents[:2]
    if type(ref_tangent) is Zero:
        if is_nonzero(tangent):
            not_differentiated("a set/swap", primals[0])
        old = swap_p.bind(*primals, tree=tree)
        return old, Zero.of(old)
    old = swap_p.bind(*primals, tree=tree)
    return old, swap_p.bind(ref_tangent, instantiate(tangent), *primals[2:], tree=tree)


@rules.jvp(addupdate_p)
def _(primals: ArrayLikes, tangents: Tangents, *, tree: PyTreeDef) -> JvpResult:
    ref_tangent, tangent = tangents[:2]
    if type(ref_tangent) is Zero and is_nonzero(tangent):
        not_differentiated("an addupdate", primals[0])
    addupdate_p.bind(*primals, tree=tree)
    if type(ref_tangent) is not Zero and type(tangent) is not Zero:
        addupdate_p.bind(ref_tangent, tangent, *primals[2:], tree=tree)
    return [], []


def is_nonzero(tangent: Tangent) -> bool:
    """Return whether a tangent may be other than zero."""
    return type(tangent) is not Zero and typeof(tangent).dtype != float0


# ---- cotangents: they accumulate in references ---------------------------------------------------


_WHOLE = tree.tree_structure(())


class RefAccumulator:
    """The cotangent of a linear reference: a reference created for the first cotangent.

    Attributes:
      aval: the type of the reference.
      ref: the reference; None while the cotangent is zero.
    """

    __slots__ = ("aval", "ref")

    def __init__(self, aval: AbstractRef, ref: RefLike | None = None):
        self.aval = aval
        self.ref = ref

    def instantiated(self) -> RefLike:
        """Return the reference, creating one of zeros if there is none."""
        if self.ref is None:
            return self._make(instantiate(Zero(self.aval.inner_aval)))
        return self.ref

    def add(
        self, cotangent: ArrayLike, indices: ArrayLikes = (), structure: PyTreeDef = _WHOLE
    ) -> None:
        """Add a cotangent to the part that indexers select."""
        if self.ref is None and structure == _WHOLE:
            self._make(cotangent)
        elif isinstance(self.aval.inner_aval.dtype, ExtendedDType):
            # The extended dtype defines how its values are added.
            ref = self.instantiated()
            before = get_p.bind(ref, *indices, tree=structure)
            swap_p.bind(ref, add_tangents(before, cotangent), *indices, tree=structure)
        else:
            addupdate_p.bind(self.instantiated(), cotangent, *indices, tree=structure)

    def _make(self, init_val: ArrayLike) -> RefLike:
        ref: RefLike = new_ref_p.bind(init_val, memory_space=None, kind=None)
        self.ref = ref
        return ref


@rules.transpose(new_ref_p)
def _(ref: RefLike, init_val: Operand, **_: object) -> Sequence[Cotangent]:
    return [freeze_p.bind(ref)]


@rules.transpose(empty_ref_p)
def _(ref: RefLike, **_: object) -> Sequence[Cotangent]:
    free_ref_p.bind(ref)
    return []


@rules.transpose(freeze_p)
def _(cotangent: Cotangent, ref: Operand) -> Cotangents:
    if type(cotangent) is not Zero:
        _accumulator(ref).add(cotangent)
    return [None]


@rules.transpose(free_ref_p)
def _(_: object, ref: Operand) -> Cotangents:
    return [None]


@rules.transpose(get_p)
def _(cotangent: Cotangent, ref: Operand, *indices: ArrayLike, tree: PyTreeDef) -> Cotangents:
    if type(cotangent) is not Zero:
        _accumulator(ref).add(cotangent, indices, tree)
    return [None] * (1 + len(indices))


@rules.transpose(swap_p)
def _(
    cotangent: Cotangent, ref: Operand, value: Operand, *indices: ArrayLike, tree: PyTreeDef
) -> Cotangents:
    accumulator = _accumulator(ref)
    arrived = None
    if type(cotangent) is not Zero or accumulator.ref is not None:
        is_read = accumulator.ref is not None
        # The cotangent of the reference's old contents is that of the result of the swap.
        before = swap_p.bind(
            accumulator.instantiated(), instantiate(cotangent), *indices, tree=tree
        )
        arrived = before if is_read else None
    return [None, arrived if is_linear(value) else None, *[None] * len(indices)]


@rules.transpose(addupdate_p)
def _(_: object, ref: Operand, value: Operand, *indices: ArrayLike, tree: PyTreeDef) -> Cotangents:
    accumulator = _accumulator(ref)
    arrived = None
    if is_linear(value) and accumulator.ref is not None:
        arrived = get_p.bind(accumulator.ref, *indices, tree=tree)
    return [None, arrived, *[None] * len(indices)]


def _accumulator(ref: Operand) -> RefAccumulator:
    # Transposing a program passes each linear reference together with its accumulator.
    return cast(UndefinedPrimal, ref).accumulator


# ---- batching ------------------------------------------------------------------------------------


def _not_batched(operation: str, ref: ArrayLike) -> NoReturn:
    raise Exception(  # JAX raises this class.
        f"performing {operation} operation with vmapped value on an unbatched array reference of "
        f"type {typeof(ref)}. Move the array reference to be an argument to the vmapped function?"
    )


@rules.batch_with_axis(new_ref_p)
def _(axis: AxisData, values: ArrayLikes, axes: Axes, **params: object) -> BatchResult:
    (value,), (batch_axis,) = values, axes
    # Batched values may be written to it later, even if its first value is not batched.
    return new_ref_p.bind(to_front(value, batch_axis, axis.size), **params), 0


@rules.batch_with_axis(empty_ref_p)
def _(
    axis: AxisData, values: ArrayLikes, axes: Axes, *, ty: ShapedArray, **params: object
) -> BatchResult:
    return empty_ref_p.bind(ty=ty.update(shape=(axis.size, *ty.shape)), **params), 0


@rules.batch(freeze_p)
def _(values: ArrayLikes, axes: Axes) -> BatchResult:
    return freeze_p.bind(*values), axes[0]


@rules.batch(free_ref_p)
def _(values: ArrayLikes, axes: Axes) -> BatchResult:
    return free_ref_p.bind(*values), []


@rules.batch_with_axis(get_p)
def _(axis: AxisData, values: ArrayLikes, axes: Axes, *, tree: PyTreeDef) -> BatchResult:
    if all(a is None for a in axes):
        return get_p.bind(*values, tree=tree), None
    part = _BatchedPart(values[0], axes[0], values[1:], axes[1:], tree, axis.size)
    result = get_p.bind(values[0], *part.leaves, tree=part.structure)
    return part.result(result)


@rules.batch_with_axis(swap_p)
def _(axis: AxisData, values: ArrayLikes, axes: Axes, *, tree: PyTreeDef) -> BatchResult:
    if axes[0] is None:
        _not_batched("a set/swap", values[0])
    part = _BatchedPart(values[0], axes[0], values[2:], axes[2:], tree, axis.size)
    old = swap_p.bind(values[0], part.value(values[1], axes[1]), *part.leaves, tree=part.structure)
    return part.result(old)


@rules.batch_with_axis(addupdate_p)
def _(axis: AxisData, values: ArrayLikes, axes: Axes, *, tree: PyTreeDef) -> BatchResult:
    if axes[0] is None:
        _not_batched("an addupdate", values[0])
    part = _BatchedPart(values[0], axes[0], values[2:], axes[2:], tree, axis.size)
    value = part.value(values[1], axes[1])
    return addupdate_p.bind(values[0], value, *part.leaves, tree=part.structure), []


# The label of the batch axis among an example's axis numbers.
BATCH = -1


class _BatchedPart:
    """The part of a batch of arrays that indexers select, which may differ per example.

    Attributes:
      leaves, structure: the indexers of the batch, flattened.
      order: per axis of the selected part, the axis of an example's part, or BATCH.
    """

    __slots__ = ("leaves", "order", "size", "structure")

    def __init__(
        self,
        ref: ArrayLike,
        ref_axis: BatchAxis,
        indices: ArrayLikes,
        axes: Axes,
        structure: PyTreeDef,
        size: int,
    ):
        self.size = size
        order = list(range(typeof(ref).ndim - (ref_axis is not None)))
        if ref_axis is not None:
            order.insert(ref_axis, BATCH)
        transforms = structure.unflatten(indices)
        batch_axes = iter(axes)
        batched: list[NDIndexer] = []

        def next_axis(_: object) -> _Axis:
            return _Axis(next(batch_axes))

        for indexer in transforms:
            if isinstance(indexer, RefView):
                indexer, order = self._batched_view(indexer, order)
                batched.append(indexer)
                continue
            # Leaves (indices and starts of slices) are in the order of the axes.
            batched_indices = [tree.tree_map(next_axis, index) for index in indexer.indices]
            indexer, order = self._batched(indexer, batched_indices, order)
            batched.append(indexer)
        self.leaves, self.structure = tree.tree_flatten(tuple(batched))
        self.order = order

    def _batched(
        self, indexer: NDIndexer, axes: Sequence[PyTree], order: list[int]
    ) -> tuple[NDIndexer, list[int]]:
        """Return an indexer for a batch of arrays with axes in `order`, and its result's order."""
        shape = tuple(self.size if axis == BATCH else indexer.shape[axis] for axis in order)
        # Per axis of an example's result, the axis of the array, or an axis of the index arrays.
        slices = [("slice", i) for i, is_slice in enumerate(indexer.is_slice) if is_slice]
        arrays = [("array", i) for i in range(len(indexer.int_indexer_shape))]
        at = indexer.first_array_axis
        example = [*slices[:at], *arrays, *slices[at:]]
        if all(axis.batch_axis is None for axis in tree.tree_leaves(axes)):
            indices = [
                full_slice(self.size) if axis == BATCH else indexer.indices[axis] for axis in order
            ]
            batched = NDIndexer(indices, shape, indexer.int_indexer_shape)
        else:
            batched, arrays = self._with_batched_indices(indexer, axes, order, shape, arrays)
        new_slices = [
            ("slice", axis)
            for axis, is_slice in zip(order, batched.is_slice, strict=True)
            if is_slice
        ]
        at = batched.first_array_axis
        labels = [*new_slices[:at], *arrays, *new_slices[at:]]
        return batched, [BATCH if n == ("slice", BATCH) else example.index(n) for n in labels]

    def _batched_view(self, view: RefView, order: list[int]) -> tuple[RefView, list[int]]:
        """Return a view of a batch of arrays with axes in `order`, and its result's order."""
        new_order = list(range(len(view.new_shape)))
        if BATCH not in order:
            return view, new_order
        if order[0] != BATCH:
            raise ValueError(
                f"vmap of a reference of shape {view.shape} that is viewed in the shape "
                f"{view.new_shape}, with the batch along axis {order.index(BATCH)}: a view needs "
                "it along axis 0. Read the elements, and reshape or bitcast the array"
            )
        whole, new = (self.size, *view.shape), (self.size, *view.new_shape)
        return RefView(whole, new, view.dtype), [BATCH, *new_order]

    def _with_batched_indices(
        self,
        indexer: NDIndexer,
        axes: Sequence[PyTree],
        order: list[int],
        shape: tuple[int, ...],
        arrays: list[tuple[str, int]],
    ) -> tuple[NDIndexer, list[tuple[str, int]]]:
        """Return an indexer whose index arrays have a leading batch axis, and the axes' labels.

        Slices with a batched start become arrays of integers too.
        """
        moving = {
            i: index
            for i, index in enumerate(indexer.indices)
            if isinstance(index, Slice) and _batch_axis_of(axes[i]) is not None
        }
        ends = [("slice", i) for i in moving]
        common = (self.size, *indexer.int_indexer_shape, *[s.size for s in moving.values()])
        indices: list[AxisIndex] = []
        for axis in order:
            if axis == BATCH:
                indices.append(broadcasted_iota("int32", common, 0))
                continue
            index = indexer.indices[axis]
            batch_axis = _batch_axis_of(axes[axis])
            if isinstance(index, Slice) and axis in moving:
                number = len(common) - len(ends) + ends.index(("slice", axis))
                starts = broadcast_in_dim(index.start, common, (0,))
                steps = broadcasted_iota(typeof(starts).dtype, common, number)
                if index.stride != 1:
                    steps = mul(steps, broadcast_in_dim(index.stride, common, ()))
                index = add(starts, steps)
            elif not isinstance(index, Slice):
                index = self._array_of(index, batch_axis, common)
            indices.append(index)
        label = ("slice", BATCH)
        return NDIndexer(indices, shape, common), [label, *arrays, *ends]

    def _array_of(
        self, index: ArrayLike, batch_axis: BatchAxis, common: tuple[int, ...]
    ) -> ArrayLike:
        ndim = typeof(index).ndim
        if batch_axis is None:
            return broadcast_in_dim(index, common, tuple(range(1, 1 + ndim)))
        index = move_axis(index, batch_axis, 0)
        shape = typeof(index).shape
        return index if shape == common else broadcast_in_dim(index, common, tuple(range(ndim)))

    def value(self, value: ArrayLike, batch_axis: BatchAxis) -> ArrayLike:
        """Return the value to write, as a batch with its axes in the order of the part."""
        if batch_axis is None:
            value, batch_axis = with_new_axis(value, self.size), 0
        value_axes = list(range(typeof(value).ndim - 1))
        value_axes.insert(batch_axis, BATCH)
        if value_axes == self.order:
            return value
        return transpose(value, [value_axes.index(axis) for axis in self.order])

    def result(self, part: ArrayLike) -> tuple[ArrayLike, int]:
        """Return an array read from this part, with examples' axes in order, and its batch axis."""
        batch_axis = self.order.index(BATCH)
        order = [axis for axis in self.order if axis != BATCH]
        if order == sorted(order):
            return part, batch_axis
        wanted = [BATCH, *sorted(order)]
        return transpose(part, [self.order.index(axis) for axis in wanted]), 0


class _Axis:
    """The batch axis of an index, as a leaf of a pytree; None would not be a leaf."""

    __slots__ = ("batch_axis",)

    def __init__(self, batch_axis: BatchAxis):
        self.batch_axis = batch_axis


def _batch_axis_of(axes: PyTree) -> BatchAxis:
    leaves = tree.tree_leaves(axes)
    return leaves[0].batch_axis if leaves else None
