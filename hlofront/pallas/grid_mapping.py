"""GridMapping: the grid of a traced kernel, and which block of each array a step sees."""

import inspect
from collections.abc import Hashable, Sequence
from types import FunctionType

import numpy as np

from hlofront.base import source, tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import DebugInfo, Jaxpr, Value
from hlofront.core.references import AbstractRef, is_known_integer
from hlofront.pallas.block_specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    Buffered,
    Element,
    block_dim,
    ref_shape,
)
from hlofront.pallas.memory import KernelMemorySpace
from hlofront.transforms.stage import stage


class DynamicGridDim:
    """The class of `dynamic_grid_dim`, the placeholder of a grid's size that is an operand."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DynamicGridDim"

    def __reduce__(self) -> str:
        return "dynamic_grid_dim"


dynamic_grid_dim = DynamicGridDim()

# The sizes of a grid in a program.
GridSizes = tuple[int | DynamicGridDim, ...]


class BlockMapping(NamedTuple):
    """Which block of an operand or result each step of the grid sees.

    Attributes:
      block_shape: per axis of the array, the mode and size of the block.
      block_aval: the type of the kernel's reference to the block, without squeezed axes.
      index_map_jaxpr: the program from the indices of the grid, and references to the prefetched
        scalars, to an index per axis of the array.
      array_aval: the type of the whole array.
      origin: the operand or result, for messages: `args[0]`.
      pipeline_mode: the number of buffers; None for the compiler's choice.
    """

    block_shape: tuple[BlockDim, ...]
    block_aval: AbstractRef
    index_map_jaxpr: Jaxpr
    array_aval: ShapedArray
    origin: str
    pipeline_mode: Buffered | None = None

    def has_trivial_window(self) -> bool:
        """Return whether every step sees the whole array."""
        if any(
            not isinstance(dim, Blocked) or dim.block_size != size
            for dim, size in zip(self.block_shape, self.array_aval.shape, strict=True)
        ):
            return False
        outvars = self.index_map_jaxpr.outvars
        return all(getattr(atom, "val", None) == 0 for atom in outvars)

    def __repr__(self) -> str:
        return f"BlockMapping(block_shape={self.block_shape})"


class GridMapping(NamedTuple):
    """The grid of a traced kernel, and the blocks of its operands and results.

    The operands of the call are dynamic sizes of the grid, prefetched scalars, and inputs. The
    kernel's references are to prefetched scalars, inputs, outputs and scratch buffers.

    Attributes:
      grid: the sizes, each an integer or `dynamic_grid_dim`.
      grid_names: a name per axis, or None.
      block_mappings: one per input, then one per output.
      index_map_tree: the structure of (the arguments of index maps, {}).
      index_map_avals: the types of the arguments of index maps, flat.
      vmapped_dims: the axes of the grid that vmap added, which kernels do not see.
      num_index_operands: the number of prefetched scalars.
      num_inputs: the number of inputs.
      num_outputs: the number of outputs.
      scratch_avals: the types of the references to scratch buffers.
    """

    grid: GridSizes
    grid_names: tuple[Hashable, ...] | None
    block_mappings: tuple[BlockMapping, ...]
    index_map_tree: PyTreeDef
    index_map_avals: tuple[AbstractValue, ...]
    vmapped_dims: tuple[int, ...]
    num_index_operands: int
    num_inputs: int
    num_outputs: int
    scratch_avals: tuple[AbstractRef, ...] = ()

    @property
    def num_dynamic_grid_bounds(self) -> int:
        """The number of sizes of the grid that are operands."""
        return sum(size is dynamic_grid_dim for size in self.grid)

    @property
    def kernel_axes(self) -> tuple[int, ...]:
        """The axes of the grid that kernels see: `program_id(i)` is the index along the i-th."""
        return tuple([i for i in range(len(self.grid)) if i not in self.vmapped_dims])

    def __repr__(self) -> str:
        return f"GridMapping(grid={self.grid}, block_mappings={self.block_mappings})"


def block_mapping(
    spec: BlockSpec,
    origin: str,
    array_aval: ShapedArray,
    index_map_tree: PyTreeDef,
    index_map_avals: Sequence[AbstractValue],
) -> BlockMapping:
    """Return the block mapping that a BlockSpec describes for an array.

    Args:
      spec: the BlockSpec.
      origin: the operand or result, for messages.
      array_aval: the type of the array.
      index_map_tree: the structure of (the arguments of index maps, {}).
      index_map_avals: their types.

    Raises:
      ValueError: if the spec does not fit the array, or its index map does not fit the spec.
    """
    shape = array_aval.shape
    if spec.block_shape is None:
        dims: tuple[BlockDim, ...] = tuple(map(Blocked, shape))
    else:
        dims = tuple([block_dim(entry, origin) for entry in spec.block_shape])
    if len(dims) != len(shape):
        raise ValueError(
            f"Block shape for {origin} (= {dims}) must have the same number of dimensions as the "
            f"array shape {shape}. Give one size per axis; None for an axis along which "
            "the block has one element."
        )
    space = KernelMemorySpace.DEFAULT if spec.memory_space is None else spec.memory_space
    inner = ShapedArray(ref_shape(dims), array_aval.dtype)
    index_map_jaxpr = _index_map_jaxpr(spec, dims, origin, index_map_tree, index_map_avals)
    return BlockMapping(
        dims, AbstractRef(inner, space), index_map_jaxpr, array_aval, origin, spec.pipeline_mode
    )


def _index_map_jaxpr(
    spec: BlockSpec,
    dims: tuple[BlockDim, ...],
    origin: str,
    index_map_tree: PyTreeDef,
    index_map_avals: Sequence[AbstractValue],
) -> Jaxpr:
    index_map = spec.index_map

    def zeros(*_: object) -> tuple[int, ...]:
        return (0,) * len(dims)

    function = zeros if index_map is None else index_map
    shown = source.describe_callable(function)
    where = f"Index map function {shown} for {origin}"

    args, _ = tree.tree_unflatten(index_map_tree, index_map_avals)
    if isinstance(function, FunctionType):
        try:
            inspect.signature(function).bind(*args)
        except TypeError as error:
            raise TypeError(
                f"{where} is called with {len(args)} arguments, an index for each axis of the grid "
                f"and a reference for each prefetched array: {error}"
            ) from None

    def flat(*leaves: Value) -> list[Value]:
        args, kwargs = tree.tree_unflatten(index_map_tree, leaves)
        indices = function(*args, **kwargs)
        # The index of a block of one axis need not be in a tuple.
        entries = list(indices) if isinstance(indices, tuple | list) else [indices]
        if len(entries) != len(dims):
            raise ValueError(
                f"{where} must return {len(dims)} values to match block_shape={dims}. Currently "
                f"returning {len(entries)} values: {indices}"
            )
        # Python's and NumPy's integers are int32, even if 64-bit dtypes are on.
        return [np.int32(entry) if is_known_integer(entry) else entry for entry in entries]

    info = DebugInfo("pallas_call index_map", shown)
    program = stage(flat, index_map_avals, info)
    for position, aval in enumerate(program.out_avals):
        if aval.shape or not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(
                f"{where} must return integer scalars. Output[{position}] has type "
                f"{aval.str_short()}."
            )
    if program.consts:
        raise ValueError(
            f"{where} must not capture constants: {program.consts}. What it reads must be an "
            "argument: a prefetched scalar of a pltpu.PrefetchScalarGridSpec"
        )
    return program.jaxpr


def padding_of(dim: BlockDim) -> tuple[int, int]:
    """Return the numbers of elements before and after an axis that blocks may cover."""
    return dim.padding if isinstance(dim, Element) else (0, 0)
