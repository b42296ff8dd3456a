"""GridSpec and PrefetchScalarGridSpec: the grid of a kernel with the specs of all its blocks."""

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.trace import Tracer
from hlofront.higher_order.control_flow.bodies import bullets, different_structures
from hlofront.pallas.block_specs import BlockSpec, NoBlockSpec, no_block_spec

# A size or a tuple of sizes, which may be traced.
Grid = Any
# A pytree of BlockSpecs.
BlockSpecTree = Any
# A sequence, or a dictionary by parameter, of pytrees of buffer types.
ScratchShapeTree = Any


@dataclasses.dataclass(init=False, kw_only=True)
class GridSpec:
    """The grid of a kernel, the specs of its blocks, and its scratch buffers.

    Attributes:
      grid: the sizes of the grid; they may be traced.
      grid_names: a name per axis of the grid, or None.
      in_specs: a pytree of BlockSpecs for the operands.
      out_specs: a pytree of BlockSpecs for the results.
      scratch_shapes: the types of buffers that the kernel takes after its outputs.

    Raises:
      ValueError: if a size of the grid is not an integer.
    """

    grid: tuple[Any, ...]
    grid_names: tuple[Hashable, ...] | None
    in_specs: BlockSpecTree
    out_specs: BlockSpecTree
    scratch_shapes: ScratchShapeTree = ()

    def __init__(
        self,
        grid: Grid = (),
        in_specs: BlockSpecTree = no_block_spec,
        out_specs: BlockSpecTree = no_block_spec,
        scratch_shapes: ScratchShapeTree = (),
    ):
        self.grid, self.grid_names = _grid_and_names(grid)
        self.in_specs = _as_tuple("in_specs", in_specs, only_sequences=True)
        self.out_specs = _as_tuple("out_specs", out_specs, only_sequences=False)
        self.scratch_shapes = _as_tuple("scratch_shapes", scratch_shapes, only_sequences=False)


@dataclasses.dataclass(init=False, kw_only=True)
class PrefetchScalarGridSpec(GridSpec):
    """A GridSpec whose first operands are scalars that index maps can also read.

    They are copied to scalar memory before the kernel starts. Index maps take references to them
    after the indices of the grid, and the kernel takes these references first.

    Attributes:
      num_scalar_prefetch: the number of operands that are prefetched.
    """

    num_scalar_prefetch: int

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Grid = (),
        in_specs: BlockSpecTree = no_block_spec,
        out_specs: BlockSpecTree = no_block_spec,
        scratch_shapes: ScratchShapeTree = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch
        self.scratch_shapes = _as_tuple("scratch_shapes", scratch_shapes, only_sequences=False)


def _as_tuple(name: str, specs: Any, only_sequences: bool) -> Any:
    if isinstance(specs, list):
        return tuple(specs)
    if only_sequences and not isinstance(specs, tuple | NoBlockSpec):
        raise ValueError(
            f"`{name}` must be a tuple or a list. Found: {specs!r}. Give one spec per operand, as "
            f"in {name}=[spec]"
        )
    return specs


def _is_named(entry: object) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2  # pyright: ignore[reportUnknownArgumentType]


def _grid_and_names(grid: Grid) -> tuple[tuple[Any, ...], tuple[Hashable, ...] | None]:
    """Return the sizes of a grid, and the names of its axes if it is a tuple of (name, size)."""
    entries: tuple[Any, ...] = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    names = None
    if entries and all(map(_is_named, entries)):
        names, entries = zip(*entries, strict=True)
    for size in entries:
        if not is_static(size) and not _is_integer_scalar(size):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid!r}")
    return tuple([int(size) if is_static(size) else size for size in entries]), names


def is_static(size: object) -> bool:
    """Return whether a size of a grid is known while the kernel is traced."""
    return isinstance(size, int | np.integer) and not isinstance(size, bool)


def _is_integer_scalar(size: Any) -> bool:
    aval = typeof(size) if isinstance(size, Tracer) or hasattr(size, "dtype") else None
    return (
        isinstance(aval, ShapedArray)
        and not aval.shape
        and bool(np.issubdtype(aval.dtype, np.integer))
    )


def specs_for(
    name: str, specs: BlockSpecTree, values: Any, values_name: str
) -> list[BlockSpec | NoBlockSpec]:
    """Return a BlockSpec per leaf of a pytree of operands or results.

    Args:
      name: the name of the parameter, for messages.
      specs: the user's pytree of BlockSpecs.
      values: the pytree of operands or results.
      values_name: a word for them, for messages.

    Raises:
      ValueError: if the pytrees differ, or a leaf is not a BlockSpec.
    """
    leaves, structure = tree.tree_flatten(values)
    if isinstance(specs, NoBlockSpec):
        return [no_block_spec] * len(leaves)
    spec_leaves, spec_structure = tree.tree_flatten(specs)
    # Nones among the operands need no spec.
    if spec_structure != structure:
        differences = different_structures(
            spec_structure, f"`{name}`", structure, f"`{values_name}`"
        )
        raise ValueError(
            f"Pytree for `{name}` and `{values_name}` do not match. There are {len(differences)} "
            f"mismatches, including:\n{bullets(differences[:3])}\nGive one pl.BlockSpec per array, "
            "in containers like theirs."
        )
    for spec in spec_leaves:
        if not isinstance(spec, BlockSpec | NoBlockSpec):
            raise ValueError(
                f"`{name}` must consist of pl.BlockSpec: found {spec!r} of type "
                f"{type(spec).__name__}"
            )
    return spec_leaves
