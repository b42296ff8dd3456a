"""emit_pipeline: a loop inside a kernel that copies blocks while computing with others."""

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast

from hlofront.base import tree
from hlofront.base.elements import int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.tree_nodes import register_dataclass
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.axes import axis_size
from hlofront.core.references import NDIndexer, is_known_integer
from hlofront.core.sizes.computed_slices import Slice
from hlofront.higher_order.control_flow.while_loop import fori_loop
from hlofront.pallas.block_specs import (
    BlockDim,
    Blocked,
    BoundedSlice,
    Squeezed,
    block_dim,
    block_size,
)
from hlofront.pallas.buffered_refs import BufferedRef, BufferType, buffers_for
from hlofront.pallas.compiler_params import PARALLEL, GridDimensionSemantics
from hlofront.pallas.control import when
from hlofront.pallas.copies import AsyncCopyDescriptor, make_async_copy
from hlofront.pallas.grid_indices import (
    indices_of_step,
    num_programs,
    program_id,
    tracing_pipeline,
)
from hlofront.pallas.grid_specs import BlockSpecTree
from hlofront.pallas.scoped import run_scoped
from hlofront.pallas.tpu_info import Tiling
from hlofront.primitives.collectives.collectives import axis_index
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, div, rem
from hlofront.primitives.references.references import RefLike, TransformedRef

# The sizes of a grid, and the indices of a step.
Grid = tuple[ArrayLike, ...]
Indices = Sequence[ArrayLike]
# An entry of the result of an index map.
Entry = Any
Other = TypeVar("Other")
Semantics = Sequence[GridDimensionSemantics | str]


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class PipelineStep:
    """The step of a pipeline that its body computes.

    Attributes:
      index: the indices of the step, one per axis of the grid.
      local_index: the number of the step among those of the core.
    """

    index: tuple[Array, ...]
    local_index: Array


class _Window:
    """A reference that the steps of a pipeline see in blocks.

    Attributes:
      ref: the reference.
      buffers: its buffers, and which block each step sees.
      dims: the mode and size of the block along each axis.
      slots: the number of buffers; 0 if the body sees the reference itself.
      ahead: how many steps before the one that reads a block its copy is started.
    """

    def __init__(self, ref: RefLike, buffers: BufferedRef, name: str, ahead: bool):
        shape = ref.shape
        entries = shape if buffers.block_shape is None else buffers.block_shape
        self.ref = ref
        self.buffers = buffers
        self.dims: tuple[BlockDim, ...] = tuple([block_dim(entry, name, True) for entry in entries])
        self.slots = buffers.buffer_count
        self.ahead = max(buffers.in_buffer_count - 1, 0) if ahead else 0
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

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied to buffers."""
        return self.buffers.is_input and self.slots > 0

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied from buffers."""
        return self.buffers.is_output and self.slots > 0

    def _entries(self, indices: Indices) -> list[Entry]:
        """Return the index map's entries for a step, with a Slice for a BoundedSlice."""
        index_map = self.buffers.spec.index_map
        if index_map is None:
            return [
                Slice(0, dim.block_size) if isinstance(dim, BoundedSlice) else 0
                for dim in self.dims
            ]
        index = index_map(*indices)
        entries = list(index) if isinstance(index, tuple | list) else [index]
        for dim, entry in zip(self.dims, entries, strict=True):
            if isinstance(dim, BoundedSlice):
                _check_bounded(dim, entry)
        return entries

    def index(self, indices: Indices) -> list[ArrayLike]:
        """Return the index of the block of a step; the start of a BoundedSlice."""
        entries = self._entries(indices)
        return [entry.start if isinstance(entry, Slice) else entry for entry in entries]

    def block(self, indices: Indices) -> TransformedRef:
        """Return a view of the block of a step."""
        parts: list[Entry] = []
        for dim, index in zip(self.dims, self._entries(indices), strict=True):
            if isinstance(dim, Squeezed | BoundedSlice):
                parts.append(index)
            else:
                start = index * dim.block_size if isinstance(dim, Blocked) else index
                parts.append(Slice(start, block_size(dim)))
        if isinstance(self.ref, TransformedRef):
            return self.ref.at[tuple(parts)]
        return TransformedRef(self.ref, [NDIndexer(parts, self.ref.shape, ())])

    def differs(self, indices: Indices, others: Indices) -> ArrayLike:
        """Return whether two steps see different blocks."""
        result: Any = False
        for index, other in zip(self.index(indices), self.index(others), strict=True):
            if not (is_known_integer(index) and is_known_integer(other)):
                result = (index != other) | result
            elif index != other:
                return True
        return result

    # ---- buffers

    def _ends(self, indices: Indices, slot: ArrayLike) -> tuple[TransformedRef, TransformedRef]:
        """Return views of the block of a step, and of the part of a buffer that it fills."""
        sizes = [
            entry.size if isinstance(entry, Slice) else block_size(dim)
            for dim, entry in zip(self.dims, self._entries(indices), strict=True)
            if not isinstance(dim, Squeezed)
        ]
        buffer = self.buffers.slot(slot)
        if tuple(sizes) != buffer.shape:
            buffer = buffer.at[tuple([Slice(0, size) for size in sizes])]
        return self.block(indices), buffer

    def read(self, indices: Indices, slot: ArrayLike) -> AsyncCopyDescriptor:
        """Return the copy from the block of a step to a buffer."""
        block, buffer = self._ends(indices, slot)
        return make_async_copy(block, buffer, self.buffers.sem_recvs.at[slot])  # pyright: ignore

    def write(self, indices: Indices, slot: ArrayLike) -> AsyncCopyDescriptor:
        """Return the copy from a buffer to the block of a step."""
        block, buffer = self._ends(indices, slot)
        return make_async_copy(buffer, block, self.buffers.sem_sends.at[slot])  # pyright: ignore

    def slot(self, count: ArrayLike) -> Array:
        """Return the number of the buffer of the block with this number."""
        return rem(count, _int32(self.slots))

    def start_read(
        self, condition: ArrayLike, number: ArrayLike, indices: Indices, count: ArrayLike
    ) -> Array:
        """Copy the block of a step to its buffer, if a condition is true.

        Args:
          condition: whether the block differs from that of the step before.
          number: the number of the step.
          indices: its indices.
          count: the number of blocks that were copied before.

        Returns:
          The number of blocks that have been copied.
        """
        slot, needed = self.slot(count), condition
        if self.buffers.prefetched_count:
            needed = condition & (number >= self.buffers.prefetched_count)  # pyright: ignore[reportOperatorIssue]
        if self.is_output:
            # The buffer is free when its previous block has been written back.
            is_used = condition & (count >= self.slots)  # pyright: ignore[reportOperatorIssue]
            when(is_used)(lambda: self.write(indices, slot).wait())
        when(needed)(lambda: self.read(indices, slot).start())
        return add(count, _int32(condition))


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


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Grid,
    in_specs: BlockSpecTree = (),
    out_specs: BlockSpecTree = (),
    tiling: Tiling | None = None,
    core_axis: int | None = None,
    core_axis_name: Hashable | None = None,
    dimension_semantics: Semantics | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    output_wait_read_only: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Return a function of references that runs a body at each step of a grid, inside a kernel.

    Blocks of later steps are copied to buffers while the body computes. A block that the next step
    also sees is not copied again. A reference that is in the memory of its spec is not copied: the
    body sees a view of it.

    Args:
      body: a function of references to blocks of inputs and outputs. Within it, `program_id`
        returns the index of the step.
      grid: the sizes of the grid, which may be traced.
      in_specs: a pytree of BlockSpecs for the inputs; blocks divide arrays.
      out_specs: a pytree of BlockSpecs for the outputs.
      tiling: None or `pltpu.Tiling.COMPACT`: the compiler chooses the layout of buffers.
      core_axis: an axis of the kernel's grid that runs on several cores. Each computes a part of
        the steps, along an axis whose semantics are "parallel".
      core_axis_name: instead, the name of an axis of cores of `pl.kernel`.
      dimension_semantics: per axis of the grid, whether its steps are independent.
      trace_scopes: accepted; profiles have no scopes of the pipeline.
      no_pipelining: whether copies are waited for immediately.
      output_wait_read_only: accepted; the pipeline waits until outputs are written.
      _explicit_indices: whether the first argument of the body is a PipelineStep.

    Returns:
      A function of references to inputs and outputs; of `scratches`, which are passed to the body
      last; and of `allocations`, a BufferedRef per reference, whose buffers it uses.

    Raises:
      ValueError: if blocks do not divide an array, the grid is empty, or the cores are given twice.
      NotImplementedError: if no axis of the grid can be divided among cores.
    """
    if tiling is Tiling.SPARSE_CORE:
        raise ValueError(
            "emit_pipeline runs on TensorCores and has no Tiling.SPARSE_CORE: leave tiling out"
        )
    if core_axis is not None and core_axis_name is not None:
        raise ValueError(
            "Only one of `core_axis` or `core_axis_name` can be set: got "
            f"core_axis={core_axis!r} and core_axis_name={core_axis_name!r}"
        )
    sizes: Grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise ValueError(
            f"All elements in the grid must be strictly positive, but got grid={sizes}: run the "
            "pipeline under pl.when if a size may be 0"
        )
    specs = (_as_tuple(in_specs), _as_tuple(out_specs))
    count = 1 if no_pipelining else 2

    def pipeline(
        *refs: PyTree,
        scratches: Sequence[RefLike] = (),
        allocations: Sequence[BufferedRef] | None = None,
    ) -> None:
        if allocations is None:
            buffers = _allocations(specs, refs, count)
            run_scoped(lambda given: run(refs, scratches, given), buffers)
        else:
            run(refs, scratches, allocations)

    def run(refs: PyTree, scratches: Sequence[RefLike], allocations: PyTree) -> None:
        is_leaf = lambda x: isinstance(x, BufferedRef)
        buffers, structure = tree.tree_flatten(allocations, is_leaf=is_leaf)
        windows = [
            _Window(ref, each, f"reference {number}", not no_pipelining)
            for number, (ref, each) in enumerate(_paired(tree.tree_leaves(refs), buffers))
        ]
        part, offsets = _part_of_core(sizes, dimension_semantics, core_axis, core_axis_name)
        _Run(body, part, offsets, windows, structure, scratches, _explicit_indices).run()

    return pipeline


def emit_pipeline_with_allocations(
    body: Callable[..., None],
    *,
    grid: Grid,
    in_specs: BlockSpecTree = (),
    out_specs: BlockSpecTree = (),
) -> tuple[Callable[..., None], Callable[..., PyTree]]:
    """Return a pipeline, and a function that returns the types of its buffers.

    A kernel that runs the pipeline several times may thus allocate the buffers once: by
    `pl.run_scoped(f, make_allocations(*refs))`, whose result is passed as `allocations=`.

    Args:
      body: a function of references to blocks of inputs and outputs.
      grid: the sizes of the grid, which may be traced.
      in_specs: a pytree of BlockSpecs for the inputs.
      out_specs: a pytree of BlockSpecs for the outputs.

    Returns:
      The function that `emit_pipeline` returns, and a function of references to inputs and outputs
      that returns a BufferedRef for each.
    """
    specs = (_as_tuple(in_specs), _as_tuple(out_specs))
    pipeline = emit_pipeline(body, grid=grid, in_specs=in_specs, out_specs=out_specs)
    return pipeline, lambda *refs: _allocations(specs, refs, 2)


def _as_tuple(specs: BlockSpecTree) -> tuple[BlockSpecTree, ...]:
    return tuple(specs) if isinstance(specs, tuple | list) else (specs,)


def _paired(refs: Sequence[RefLike], others: Sequence[Other]) -> "zip[tuple[RefLike, Other]]":
    """Return pairs of references and the specs or buffers for them."""
    if len(refs) != len(others):
        raise ValueError(
            f"the pipeline has {len(others)} in_specs, out_specs or allocations, and was called "
            f"with {len(refs)} references: give one spec per reference"
        )
    return zip(refs, others, strict=True)


def _allocations(
    specs: tuple[BlockSpecTree, BlockSpecTree], refs: PyTree, count: int
) -> tuple[PyTree, ...]:
    """Return the types of the buffers for references: a pytree per spec."""
    leaves, structure = tree.tree_flatten((*specs[0], *specs[1]))
    inputs = len(tree.tree_leaves(specs[0]))
    buffers = [
        buffers_for(spec, ref, BufferType.INPUT if i < inputs else BufferType.OUTPUT, count)
        for i, (ref, spec) in enumerate(_paired(tree.tree_leaves(refs), leaves))
    ]
    return structure.unflatten(buffers)


def _part_of_core(
    grid: Grid,
    semantics: Semantics | None,
    axis: int | None,
    name: Hashable | None,
) -> tuple[Grid, Grid]:
    """Return the sizes of the part of a grid that the core computes, and its first indices."""
    zeros = (0,) * len(grid)
    if axis is None and name is None:
        return grid, zeros
    cores = num_programs(axis) if axis is not None else axis_size(name)
    if not isinstance(cores, int):
        raise NotImplementedError(  # JAX raises this class.
            f"Cannot partition grid over dynamic number of cores: {cores}. Give the kernel a grid "
            "of known size"
        )
    if cores == 1:
        return grid, zeros
    core = program_id(axis) if axis is not None else axis_index(name)
    parallel = [i for i, s in enumerate(semantics or ()) if s in (PARALLEL, PARALLEL.value)]
    if not parallel:
        raise NotImplementedError(  # JAX raises this class.
            "Cannot partition over cores without parallel grid dimensions: "
            f"dimension_semantics={semantics}. Say which axis may be divided: pltpu.PARALLEL"
        )
    known = {i: size for i in parallel if isinstance(size := grid[i], int)}
    even = [i for i, size in known.items() if size % cores == 0]
    # An axis that the cores divide evenly, else the longest one.
    divided = even[0] if even else max(known, key=known.__getitem__, default=parallel[0])
    size = grid[divided]
    share = size // cores if isinstance(size, int) else div(_int32(size), _int32(cores))
    more: ArrayLike = 0
    if divided not in even:
        rest = size - share * cores  # pyright: ignore[reportOperatorIssue]
        more = select_n(core < rest, _int32(0), _int32(1))
        first = core * share + select_n(core < rest, _int32(rest), core)
    else:
        first = core * share
    return (
        (*grid[:divided], share + more, *grid[divided + 1 :]),  # pyright: ignore[reportOperatorIssue]
        (*zeros[:divided], first, *zeros[divided + 1 :]),
    )


class _Run(NamedTuple):
    """The loop of a pipeline: its grid, the first indices there, its windows, and its body."""

    body: Callable[..., None]
    grid: Grid
    offsets: Grid
    windows: Sequence[_Window]
    structure: tree.PyTreeDef
    scratches: Sequence[RefLike]
    is_explicit: bool

    def indices(self, number: ArrayLike) -> list[ArrayLike]:
        """Return the indices of a step of the core by its number."""
        return [
            index if is_known_integer(offset) else add(index, offset)
            for index, offset in zip(indices_of_step(number, self.grid), self.offsets, strict=True)
        ]

    def run(self) -> None:
        steps: Any = math.prod(self.grid)
        zeros = [_int32(0) for _ in self.windows]

        def before_first() -> list[ArrayLike]:
            """Start the copies for the first steps; return how many blocks each window has."""
            counts: list[ArrayLike] = list(zeros)
            for number in range(max((each.ahead for each in self.windows), default=0)):
                here, before = (self.indices(_int32(n)) for n in (number, number - 1))
                for place, each in enumerate(self.windows):
                    if number < each.ahead and each.is_input:
                        is_new = each.differs(here, before) if number else True
                        condition = is_new & (number < steps)
                        counts[place] = each.start_read(condition, number, here, counts[place])
            return counts

        step = functools.partial(self._step, steps)
        _, seen = fori_loop(0, steps, step, (before_first(), zeros))
        first = self.indices(_int32(0))
        for each, count in zip(self.windows, seen, strict=True):
            for behind in range(1, each.slots + 1) if each.is_output else ():
                slot = each.slot(add(count, _int32(each.slots - behind)))
                when(count >= behind)(lambda e=each, s=slot: e.write(first, s).wait())

    def _step(
        self, steps: ArrayLike, number: Array, carry: tuple[list[Array], list[Array]]
    ) -> tuple[list[Array], list[Array]]:
        """Run a step; map how many blocks each window has copied, and shown, to those after it."""
        copied, seen = list(carry[0]), list(carry[1])
        number = _int32(number)
        at = functools.cache(lambda later: self.indices(number + later))
        here, before, after = at(0), at(-1), at(1)
        is_last = number + 1 == steps
        views: list[TransformedRef] = []
        for place, each in enumerate(self.windows):
            if not each.slots:
                views.append(each.block(here))
                continue
            is_new = each.differs(here, before) | (number == 0)
            if each.is_input:
                then, condition = number, is_new
                if each.ahead:
                    then = number + each.ahead
                    differs = each.differs(at(each.ahead), at(each.ahead - 1))
                    condition = differs & (then < steps)
                copied[place] = each.start_read(condition, then, at(each.ahead), copied[place])
            seen[place] = add(seen[place], _int32(is_new))
            slot = each.slot(seen[place] - 1)
            if each.is_input:
                arrives = is_new
                if each.buffers.prefetched_count:
                    arrives = is_new & (number >= each.buffers.prefetched_count)
                when(arrives)(lambda e=each, s=slot: e.read(here, s).wait())
            else:
                is_used = is_new & (seen[place] > each.slots)
                when(is_used)(lambda e=each, s=slot: e.write(here, s).wait())
            views.append(each.buffers.slot(slot))
        arguments = [*self.structure.unflatten(views), *self.scratches]
        if self.is_explicit:
            arguments.insert(0, PipelineStep(tuple(map(_int32, here)), number))
        with tracing_pipeline(self.grid, cast(tuple[Array, ...], tuple(here))):
            self.body(*arguments)
        for place, each in enumerate(self.windows):
            if each.is_output:
                is_done = each.differs(after, here) | is_last
                slot = each.slot(seen[place] - 1)
                when(is_done)(lambda e=each, s=slot: e.write(here, s).start())
        return copied, seen


def _int32(number: ArrayLike) -> Array:
    """Return an integer or boolean as int32, even if 64-bit dtypes are on."""
    return convert(number, int32, False)
