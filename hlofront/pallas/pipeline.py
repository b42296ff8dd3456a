"""emit_pipeline: a loop inside a kernel that copies blocks while computing with others."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.elements import int32
from hlofront.base.tree import tree_leaves
from hlofront.core.references import NDIndexer, is_known_integer
from hlofront.core.sizes.computed_slices import Slice
from hlofront.higher_order.while_loop import fori_loop
from hlofront.pallas.block_specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Squeezed,
    block_dim,
    block_size,
    ref_shape,
)
from hlofront.pallas.control import when
from hlofront.pallas.copies import AsyncCopyDescriptor, make_async_copy
from hlofront.pallas.grid_indices import tracing_pipeline
from hlofront.pallas.memory import VMEM, MemoryRef, SemaphoreType, buffer_type
from hlofront.pallas.scoped import run_scoped
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, div, rem
from hlofront.primitives.references.references import RefLike, TransformedRef

Indices = Sequence[Any]


class _Window:
    """A reference that the steps of a pipeline see in blocks, through buffers.

    Attributes:
      ref: the reference.
      spec: which block each step sees.
      dims: the mode and size of the block along each axis.
      slots: the number of buffers.
    """

    def __init__(self, ref: RefLike, spec: BlockSpec, slots: int, name: str):
        shape = ref.shape
        entries = shape if spec.block_shape is None else spec.block_shape
        self.ref = ref
        self.spec = spec
        self.dims: tuple[BlockDim, ...] = tuple([block_dim(entry, name, True) for entry in entries])
        if len(self.dims) != len(shape):
            raise ValueError(
                f"Block shape for {name} of the pipeline (= {self.dims}) must have the same number "
                f"of dimensions as the reference, whose shape is {shape}. Give one size per axis."
            )
        for axis, (dim, size) in enumerate(zip(self.dims, shape, strict=True)):
            if isinstance(dim, Blocked) and size % dim.block_size:
                raise ValueError(
                    f"blocks of {dim.block_size} do not divide axis {axis} of {name} of the "
                    f"pipeline, whose shape is {shape}: pad the array, or choose another block size"
                )
        self.slots = (
            slots if spec.pipeline_mode is None else _count(spec.pipeline_mode.buffer_count)
        )

    @property
    def buffers(self) -> tuple[MemoryRef, MemoryRef]:
        """The types of the buffers and of their semaphores."""
        space = VMEM if self.spec.memory_space is None else self.spec.memory_space
        shape = (self.slots, *ref_shape(self.dims))
        return buffer_type(shape, self.ref.dtype, space), SemaphoreType.DMA((self.slots,))

    def _entries(self, indices: Indices) -> list[Any]:
        """Return the index map's entries for a step, with a Slice for a BoundedSlice."""
        if self.spec.index_map is None:
            return [
                Slice(0, dim.block_size) if isinstance(dim, BoundedSlice) else 0
                for dim in self.dims
            ]
        index = self.spec.index_map(*indices)
        entries = list(index) if isinstance(index, tuple | list) else [index]
        for dim, entry in zip(self.dims, entries, strict=True):
            if isinstance(dim, BoundedSlice):
                _check_bounded(dim, entry)
        return entries

    def index(self, indices: Indices) -> list[Any]:
        """Return the index of the block of a step; the start of a BoundedSlice."""
        entries = self._entries(indices)
        return [entry.start if isinstance(entry, Slice) else entry for entry in entries]

    def block(self, indices: Indices) -> TransformedRef:
        """Return a view of the block of a step."""
        parts: list[Any] = []
        for dim, index in zip(self.dims, self._entries(indices), strict=True):
            if isinstance(dim, Squeezed | BoundedSlice):
                parts.append(index)
            else:
                start = index * dim.block_size if isinstance(dim, Blocked) else index
                parts.append(Slice(start, block_size(dim)))
        return TransformedRef(self.ref, [NDIndexer(parts, self.ref.shape, ())])

    def filled(self, buffer: TransformedRef, indices: Indices) -> TransformedRef:
        """Return a view of the part of a buffer that the block of a step fills."""
        sizes = [
            entry.size if isinstance(entry, Slice) else block_size(dim)
            for dim, entry in zip(self.dims, self._entries(indices), strict=True)
            if not isinstance(dim, Squeezed)
        ]
        if tuple(sizes) == buffer.shape:
            return buffer
        return buffer.at[tuple([Slice(0, size) for size in sizes])]

    def differs(self, indices: Indices, others: Indices) -> Any:
        """Return whether two steps see different blocks."""
        result: Any = False
        for index, other in zip(self.index(indices), self.index(others), strict=True):
            if not (is_known_integer(index) and is_known_integer(other)):
                result = (index != other) | result
            elif index != other:
                return True
        return result


def _check_bounded(dim: BoundedSlice, entry: object) -> None:
    if not isinstance(entry, Slice):
        raise ValueError(
            f"Must return a ds from the index_map for a BoundedSlice dimension, {dim}: got "
            f"{entry!r}. Return pl.ds(start, size)"
        )
    if not is_known_integer(entry.size) or entry.size > dim.block_size:
        raise ValueError(
            f"the index map of a {dim} returned a slice of size {entry.size}: the size must be an "
            f"int of at most {dim.block_size}"
        )


def _count(buffers: int | tuple[int, int]) -> int:
    return buffers if isinstance(buffers, int) else max(buffers)


class _Buffers:
    """The buffers of a window, and the copies between them and the reference."""

    def __init__(self, window: _Window, buffer: Any, semaphores: Any):
        self.window = window
        self.buffer = buffer
        self.semaphores = semaphores

    def at(self, slot: Any) -> Any:
        """Return a view of the buffer with this number."""
        return self.buffer.at[slot]

    def read(self, indices: Indices, slot: Any) -> AsyncCopyDescriptor:
        """Return the copy from the block of a step to a buffer."""
        buffer = self.window.filled(self.at(slot), indices)
        return make_async_copy(self.window.block(indices), buffer, self.semaphores.at[slot])

    def write(self, indices: Indices, slot: Any) -> AsyncCopyDescriptor:
        """Return the copy from a buffer to the block of a step."""
        buffer = self.window.filled(self.at(slot), indices)
        return make_async_copy(buffer, self.window.block(indices), self.semaphores.at[slot])


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: None = None,
    core_axis: None = None,
    core_axis_name: None = None,
    dimension_semantics: Sequence[Any] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    output_wait_read_only: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Return a function of references that runs a body at each step of a grid, inside a kernel.

    The blocks of the next step are copied to buffers while the body computes. A block that the next
    step also sees is not copied again.

    Args:
      body: a function of references to the buffers of inputs and outputs. Within it, `program_id`
        returns the index of the step.
      grid: the sizes of the grid, which may be traced.
      in_specs: a BlockSpec per input; blocks divide arrays.
      out_specs: a BlockSpec per output.
      tiling: must be None: the compiler chooses the layout of buffers.
      core_axis: must be None: all steps run on the kernel's core.
      core_axis_name: must be None.
      dimension_semantics: accepted; the steps run in order.
      trace_scopes: accepted; profiles have no scopes of the pipeline.
      no_pipelining: whether copies are waited for immediately.
      output_wait_read_only: accepted; the pipeline waits until outputs are written.

    Returns:
      A function of references to inputs and outputs, and of `scratches`, which are passed to the
      body last.

    Raises:
      ValueError: if blocks do not divide an array, the grid is empty, or an option that must be
        None is not.
    """
    options = {
        "tiling": tiling,
        "core_axis": core_axis,
        "core_axis_name": core_axis_name,
        "_explicit_indices": _explicit_indices or None,
    }
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"emit_pipeline runs on one core and has no {name}: got {value!r}")
    if not isinstance(grid, tuple | list):
        grid = (grid,)
    if any(isinstance(size, int) and size < 1 for size in grid):
        raise ValueError(
            f"All elements in the grid must be strictly positive, but got grid={grid}: run the "
            "pipeline under pl.when if a size may be 0"
        )
    specs: list[BlockSpec] = [*tree_leaves(in_specs), *tree_leaves(out_specs)]
    inputs = len(tree_leaves(in_specs))
    slots = 1 if no_pipelining else 2

    def pipeline(*refs: RefLike, scratches: Sequence[Any] = ()) -> None:
        if len(refs) != len(specs):
            raise ValueError(
                f"the pipeline has {inputs} in_specs and {len(specs) - inputs} out_specs, and was "
                f"called with {len(refs)} references: give one spec per reference"
            )
        windows = [
            _Window(ref, spec, slots, f"reference {number}")
            for number, (ref, spec) in enumerate(zip(refs, specs, strict=True))
        ]

        def run(*flat: Any) -> None:
            buffers = [
                _Buffers(window, *flat[2 * number : 2 * number + 2])
                for number, window in enumerate(windows)
            ]
            _run(body, tuple(grid), buffers[:inputs], buffers[inputs:], scratches)

        run_scoped(run, *[each for window in windows for each in window.buffers])

    return pipeline


def _run(
    body: Callable[..., None],
    grid: tuple[Any, ...],
    inputs: Sequence[_Buffers],
    outputs: Sequence[_Buffers],
    scratches: Sequence[Any],
) -> None:
    steps: Any = math.prod(grid)
    ahead = [each for each in inputs if each.window.slots > 1]

    def step(number: Any, carry: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
        slots, started = carry
        number = _int32(number)
        indices = _indices(number, grid)
        before, after = _indices(number - 1, grid), _indices(number + 1, grid)
        is_last = number + 1 == steps
        new_slots: list[Any] = []
        for each, slot in zip(inputs, slots, strict=True):
            is_new = each.window.differs(indices, before) | (number == 0)
            next_is_new = each.window.differs(after, indices) & ~is_last
            next_slot = rem(add(slot, _int32(next_is_new)), _int32(each.window.slots))
            if each.window.slots > 1:
                when(next_is_new)(lambda e=each, s=next_slot: e.read(after, s).start())
            else:
                when(is_new)(lambda e=each, s=slot: e.read(indices, s).start())
            when(is_new)(lambda e=each, s=slot: e.read(indices, s).wait())
            new_slots.append(next_slot)
        out_slots = [
            rem(count, _int32(each.window.slots))
            for each, count in zip(outputs, started, strict=True)
        ]
        for each, slot, count in zip(outputs, out_slots, started, strict=True):
            is_new = each.window.differs(indices, before) | (number == 0)
            # The buffer is free when the copy of its previous contents has ended.
            is_used = is_new & (count >= each.window.slots)
            when(is_used)(lambda e=each, s=slot: e.write(indices, s).wait())
        views = [
            *[each.at(slot) for each, slot in zip(inputs, slots, strict=True)],
            *[each.at(slot) for each, slot in zip(outputs, out_slots, strict=True)],
        ]
        with tracing_pipeline(grid, tuple(indices)):
            body(*views, *scratches)
        new_started: list[Any] = []
        for each, slot, count in zip(outputs, out_slots, started, strict=True):
            is_done = each.window.differs(after, indices) | is_last
            when(is_done)(lambda e=each, s=slot: e.write(indices, s).start())
            new_started.append(add(count, _int32(is_done)))
        return new_slots, new_started

    first = _indices(_int32(0), grid)

    def start() -> None:
        for each in ahead:
            each.read(first, 0).start()

    when(steps > 0)(start)
    zero = _int32(0)
    _, started = fori_loop(0, steps, step, ([zero] * len(inputs), [zero] * len(outputs)))
    for each, count in zip(outputs, started, strict=True):
        for behind in range(1, each.window.slots + 1):
            slot = rem(add(count, _int32(each.window.slots - behind)), _int32(each.window.slots))
            when(count >= behind)(lambda e=each, s=slot: e.write(first, s).wait())


def _indices(number: Any, grid: tuple[Any, ...]) -> list[Any]:
    """Return the indices of a step by its number: the last axis of the grid varies fastest."""
    indices: list[Any] = []
    for size in reversed(grid):
        size = _int32(size)
        indices.append(rem(number, size))
        number = div(number, size)
    return indices[::-1]


def _int32(number: Any) -> Any:
    """Return an integer or boolean as int32, even if 64-bit dtypes are on."""
    return convert(number, int32, False)
