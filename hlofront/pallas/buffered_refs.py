"""BufferedRef: the buffers through which a pipeline in a kernel sees the blocks of a reference."""

import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import Any

from hlofront.base.tree_nodes import register_dataclass
from hlofront.base.typing import ArrayLike, DTypeLike
from hlofront.core.aval import ShapedArray
from hlofront.core.sizes.computed_slices import Slice
from hlofront.pallas.block_specs import BlockDim, Blocked, BlockSpec, Buffered, block_dim, ref_shape
from hlofront.pallas.memory import ANY, HBM, SMEM, VMEM, MemoryRef, SemaphoreType, space_of
from hlofront.pallas.memory import buffer_type as buffer_type_of
from hlofront.pallas.tpu_info import Tiling
from hlofront.primitives.references.references import RefLike, TransformedRef

# A dtype, or a type of arrays with one.
Elements = DTypeLike | ShapedArray
# The type of a buffer, before it is allocated, or a reference to it.
BufferLike = MemoryRef | RefLike


class BufferType(enum.Enum):
    """How a pipeline uses a reference: blocks are copied in, out, or both."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied from the reference before the body sees them."""
        return self is not BufferType.OUTPUT

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied to the reference after the body has seen them."""
        return self is not BufferType.INPUT


@dataclasses.dataclass(frozen=True)
class BufferedRef:
    """The buffers through which a pipeline sees a reference, as a pytree of their types.

    `pl.run_scoped`, and `scratch_shapes=`, replace the types by references to the buffers. Such an
    object is passed to a pipeline in `allocations=`, and may be used by several pipelines.

    Attributes:
      spec: which block each step sees.
      buffer_type: whether blocks are copied in, out, or both.
      in_buffer_count: how many buffers are filled at a time, including the one in use; 0 if there
        are none.
      out_buffer_count: the same for buffers that are written back.
      window_ref: the buffers, or None if the body sees the reference itself.
      sem_recvs: the semaphores of copies from the reference, or None.
      sem_sends: the semaphores of copies to the reference, or None.
      prefetched_count: the number of first steps whose blocks are already in the buffers.
    """

    spec: BlockSpec
    buffer_type: BufferType
    in_buffer_count: int
    out_buffer_count: int
    window_ref: BufferLike | None = None
    sem_recvs: BufferLike | None = None
    sem_sends: BufferLike | None = None
    prefetched_count: int = 0

    @classmethod
    def create(
        cls,
        spec: BlockSpec,
        dtype_or_type: Elements,
        buffer_type: BufferType,
        buffer_count: int | tuple[int, int],
        grid_rank: int | None = None,
        use_lookahead: bool = False,
        source_memory_space: object = ANY,
        tiling: Tiling | None = None,
        is_trivial_windowing: bool = False,
        prefetched_count: int = 0,
    ) -> "BufferedRef":
        """Return the types of the buffers for a reference.

        Args:
          spec: which block each step sees; its memory is that of the buffers.
          dtype_or_type: the dtype of the reference, or an aval with that dtype.
          buffer_type: whether blocks are copied in, out, or both.
          buffer_count: the number of buffers; for INPUT_OUTPUT a pair, for reading and for writing.
          grid_rank: accepted; the pipeline knows its grid.
          use_lookahead: accepted; blocks are copied `buffer_count - 1` steps ahead.
          source_memory_space: the memory of the reference. Without another memory for the buffers,
            there are none.
          tiling: None or `Tiling.COMPACT`.
          is_trivial_windowing: accepted; a block that all steps see is copied once.
          prefetched_count: the number of first steps whose blocks are already in the buffers.

        Raises:
          ValueError: for another number of buffers, a memory without buffers, and
            `Tiling.SPARSE_CORE`.
        """
        if tiling is Tiling.SPARSE_CORE:
            raise ValueError(
                "BufferedRef was given Tiling.SPARSE_CORE, and hlofront has pipelines on "
                "TensorCores only: leave tiling out"
            )
        space = VMEM if spec.memory_space is None else spec.memory_space
        if space not in (SMEM, VMEM, HBM, ANY):
            raise ValueError(
                f"Unsupported buffer memory space: {space}. Buffers are in pltpu.VMEM or pltpu.SMEM"
            )
        if space in (HBM, ANY) and source_memory_space not in (ANY, HBM):
            raise ValueError(
                "You cannot request HBM block spec for a non-HBM source: the reference is in "
                f"{source_memory_space}, and the spec is {spec}"
            )
        if space in (HBM, ANY) or space is source_memory_space:
            return cls(spec, buffer_type, 0, 0)
        counts = _counts(buffer_count, buffer_type)
        if prefetched_count > counts[0]:
            raise ValueError(
                f"prefetched_count must be at most in_buffer_count: got {prefetched_count}, and "
                f"in_buffer_count={counts[0]}"
            )
        slots = sum(counts) - (buffer_type is BufferType.INPUT_OUTPUT)
        dtype = dtype_or_type.dtype if isinstance(dtype_or_type, ShapedArray) else dtype_or_type
        shape = ref_shape(_dims(spec, "a BufferedRef"))
        # Buffers of vectors are parts of one vector: rows of a matrix have other tiles.
        buffers = (slots * shape[0],) if len(shape) == 1 else (slots, *shape)
        semaphores = SemaphoreType.DMA((slots,))
        return cls(
            spec,
            buffer_type,
            *counts,
            None if prefetched_count else buffer_type_of(buffers, dtype, space),
            semaphores if buffer_type.is_input else None,
            semaphores if buffer_type.is_output else None,
            prefetched_count,
        )

    @classmethod
    def input(
        cls, spec: BlockSpec, dtype_or_type: Elements, buffer_count: int = 2, **options: Any
    ) -> "BufferedRef":
        """Return the types of buffers for blocks that are read: see `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **options)

    @classmethod
    def output(
        cls, spec: BlockSpec, dtype_or_type: Elements, buffer_count: int = 2, **options: Any
    ) -> "BufferedRef":
        """Return the types of buffers for blocks that are written: see `create`."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **options)

    @classmethod
    def input_output(
        cls,
        spec: BlockSpec,
        dtype_or_type: Elements,
        buffer_count: int | tuple[int, int] = (2, 1),
        **options: Any,
    ) -> "BufferedRef":
        """Return the types of buffers for blocks that are read, changed and written back."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **options)

    @property
    def is_input(self) -> bool:
        """Whether blocks are copied from the reference."""
        return self.buffer_type.is_input

    @property
    def is_output(self) -> bool:
        """Whether blocks are copied to the reference."""
        return self.buffer_type.is_output

    @property
    def is_input_output(self) -> bool:
        """Whether blocks are copied from the reference, and back to it."""
        return self.buffer_type is BufferType.INPUT_OUTPUT

    @property
    def is_buffered(self) -> bool:
        """Whether there are buffers: else the body sees the reference itself."""
        return self.buffer_count > 0

    @property
    def buffer_count(self) -> int:
        """The number of buffers; 0 if the body sees the reference itself."""
        return max(self.in_buffer_count + self.out_buffer_count - self.is_input_output, 0)

    @property
    def block_shape(self) -> Sequence[BlockDim | int | None] | None:
        """The shape of blocks, as in the spec."""
        return self.spec.block_shape

    def with_spec(self, spec: BlockSpec) -> "BufferedRef":
        """Return the same buffers for other blocks of the same shape."""
        return dataclasses.replace(self, spec=spec)

    def with_window_ref(self, window_ref: BufferLike | None) -> "BufferedRef":
        """Return the object with other buffers, for blocks that the kernel has already copied."""
        return dataclasses.replace(self, window_ref=window_ref)

    def slot(self, number: ArrayLike) -> TransformedRef:
        """Return a view of the buffer with this number.

        Raises:
          ValueError: without buffers, or if they are not allocated.
        """
        ref = self.window_ref
        if ref is None or isinstance(ref, MemoryRef):
            raise ValueError(
                f"the buffers of {self.spec} are not allocated: pass the BufferedRef through "
                "pl.run_scoped, and give one of prefetched blocks its buffers by with_window_ref"
            )
        if len(ref.shape) > 1:
            return ref.at[number]  # pyright: ignore[reportAttributeAccessIssue]
        size = math.prod(ref.shape) // self.buffer_count
        return ref.at[Slice(number * size, size)]  # pyright: ignore


def _counts(count: int | tuple[int, int], kind: BufferType) -> tuple[int, int]:
    """Return the numbers of buffers for reading and for writing."""
    if isinstance(count, int):
        pair = (count, 1 if kind is BufferType.INPUT_OUTPUT else count)
    elif kind is BufferType.INPUT_OUTPUT and len(count) == 2:
        pair = count
    else:
        raise ValueError(
            "buffer_count must be an int, or a pair of them for input_output: got "
            f"{count!r} for {kind}"
        )
    if min(pair) < 1:
        raise ValueError(f"buffer_count must be at least 1, got {count}")
    return pair[0] if kind.is_input else 0, pair[1] if kind.is_output else 0


def _dims(spec: BlockSpec, name: str) -> list[BlockDim]:
    if spec.block_shape is None:
        raise ValueError(f"Block shape must be specified, for {name}: got {spec}")
    return [block_dim(entry, name, True) for entry in spec.block_shape]


def buffers_for(spec: BlockSpec, ref: RefLike, kind: BufferType, count: int) -> BufferedRef:
    """Return the types of the buffers through which a pipeline sees a reference.

    Args:
      spec: which block each step sees.
      ref: the reference.
      kind: whether blocks are copied in, out, or both.
      count: the number of buffers, unless the spec has a `pipeline_mode`.
    """
    if spec.block_shape is None:
        spec = spec.replace(block_shape=ref.shape)
    mode = spec.pipeline_mode
    if mode is None:
        # A block of the whole array is the same for all steps.
        is_whole = all(
            isinstance(dim, Blocked) and dim.block_size == size
            for dim, size in zip(_dims(spec, "a pipeline"), ref.shape, strict=False)
        )
        mode = Buffered(1 if is_whole else count)
    given = {"source_memory_space": space_of(ref), "prefetched_count": mode.prefetched_count}
    return BufferedRef.create(spec, ref.dtype, kind, mode.buffer_count, **given)


_REFS = ("window_ref", "sem_recvs", "sem_sends")
_OTHERS = ("spec", "buffer_type", "in_buffer_count", "out_buffer_count", "prefetched_count")
register_dataclass(BufferedRef, data_fields=_REFS, meta_fields=_OTHERS)
