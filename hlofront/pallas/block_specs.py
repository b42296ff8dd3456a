"""BlockSpec: which block of an array a step of a kernel's grid sees, as users describe it."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis that is divided into blocks of a size; the index map returns the block's number."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """An axis whose blocks begin at any element; the index map returns the first one.

    Attributes:
      block_size: the number of elements of a block.
      padding: the numbers of elements, before and after those of the array, that blocks may cover.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis whose blocks have one element, and which the kernel's reference lacks."""


squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis of a pipeline whose index map returns a `pl.ds(start, size)` of bounded size.

    Attributes:
      block_size: the maximum size, which is that of the buffers.
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """An axis that an array of indices selects from, for kernels of SparseCores.

    Attributes:
      block_size: the number of indices.
    """

    block_size: int


BlockDim = Blocked | Element | Squeezed | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """When the buffer of a block that is visited several times is copied."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """The number of buffers for copying blocks while the kernel computes with others.

    Attributes:
      buffer_count: the number of buffers, or a pair: for reading, and for writing.
      use_lookahead: whether the next block that differs is copied as soon as a buffer is free.
      revisit: when a block that is visited several times is copied.
      prefetched_count: the number of blocks that are already copied when the pipeline starts.
    """

    buffer_count: int | tuple[int, int]
    use_lookahead: bool = False
    revisit: RevisitMode | None = None
    prefetched_count: int = 0


IndexMap = Callable[..., Any]


@dataclasses.dataclass
class BlockSpec:
    """A description of the block of an array that each step of a kernel's grid sees.

    Attributes:
      block_shape: an entry per axis: an integer or `Blocked`, for axes that are divided into
        blocks; `Element(size)` for blocks that begin at any element; None or `squeezed` for one
        element, without an axis in the kernel. None for the whole array.
      index_map: the function from the indices of the grid to the index of the block, with an entry
        per axis; None for zeros.
      pipeline_mode: `Buffered(n)`: the number of buffers of blocks.
      memory_space: the memory of the block, such as `pltpu.SMEM`; `pl.ANY` does not move the
        array.
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: IndexMap | None = None
    pipeline_mode: Buffered | None = None
    _: dataclasses.KW_ONLY
    memory_space: object = None

    def __hash__(self) -> int:
        return hash((self.index_map, self.pipeline_mode, self.memory_space))

    def replace(self, **changes: Any) -> "BlockSpec":
        """Return a copy with some attributes replaced."""
        return dataclasses.replace(self, **changes)


class NoBlockSpec:
    """The class of `no_block_spec`, the default of specs that are not given."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """An estimate of a kernel's cost, for the compiler's scheduling.

    Attributes:
      flops: the number of arithmetic operations.
      transcendentals: the number of evaluations of transcendental functions.
      bytes_accessed: the number of bytes that are read and written.
      remote_bytes_transferred: the number of bytes that are sent to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """Return the estimate as the JSON that XLA reads."""
        fields = ", ".join(f'"{name}": {value}' for name, value in vars(self).items())
        return f"{{{fields}}}".encode("ascii")


def block_dim(entry: object, origin: str, in_pipeline: bool = False) -> BlockDim:
    """Return an entry of a block shape as a BlockDim.

    Args:
      entry: the user's entry.
      origin: the operand or result, for messages.
      in_pipeline: whether it is a block of emit_pipeline, rather than of pallas_call.

    Raises:
      ValueError: if it is neither a size nor a mode.
    """
    if entry is None:
        return squeezed
    if isinstance(entry, BoundedSlice) and not in_pipeline:
        raise ValueError(
            f"Unsupported block dim type: {type(entry)} in the block shape of {origin}: blocks of "
            "pallas_call have one size. Use pl.Element for blocks that begin at any element, or "
            "pltpu.emit_pipeline in the kernel"
        )
    if isinstance(entry, Blocked | Element | Squeezed | BoundedSlice):
        dim = entry
    elif isinstance(entry, int) and not isinstance(entry, bool):
        dim = Blocked(entry)
    else:
        raise ValueError(
            f"Unsupported block dimension type: {type(entry)} in the block shape of {origin}. "
            "Allowed types: `pl.Squeezed`, `pl.Blocked`, `pl.Element`, `int`, `None`; "
            "`pl.Indirect` is for SparseCores, which hlofront has no kernels for."
        )
    if block_size(dim) < 1:
        raise ValueError(
            f"the block shape of {origin} has an axis of size {block_size(dim)}: a block has at "
            "least one element along each axis"
        )
    return dim


def block_size(dim: BlockDim) -> int:
    """Return the number of elements of a block along an axis."""
    return 1 if isinstance(dim, Squeezed) else dim.block_size


def ref_shape(dims: Sequence[BlockDim]) -> tuple[int, ...]:
    """Return the shape of the kernel's reference to a block: without squeezed axes."""
    return tuple([dim.block_size for dim in dims if not isinstance(dim, Squeezed)])
