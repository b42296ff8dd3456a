"""GridSpec and PrefetchScalarGridSpec: the grid of a kernel with the specs of all its blocks."""

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.references import is_known_integer
from hlofront.core.trace import Tracer
from hlofront.higher_order.control_flow.bodies import bullets, different_structures
from hlofront.pallas.block_specs import BlockSpec, NoBlockSpec, no_block_spec
from hlofront.pallas.memory import ANY

# A size or a tuple of sizes, which may be traced.
Grid = Any
# A pytree of BlockSpecs.
BlockSpecTree = Any
# A sequence, or a dictionary by parameter, of pytrees of buffer types.
ScratchShapeTree = Any


@dataclasses.dataclass
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

    grid: Grid = ()
    in_specs: BlockSpecTree = no_block_spec
    out_specs: BlockSpecTree = no_block_spec
    scratch_shapes: ScratchShapeTree = ()
    grid_names: tuple[Hashable, ...] | None = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        self.grid, self.grid_names = _grid_and_names(self.grid)
        if not isinstance(self.in_specs, tuple | list | NoBlockSpec):
            raise ValueError(
                f"`in_specs` must be a tuple or a list. Found: {self.in_specs!r}. Give one spec "
                "per operand, as in in_specs=[spec]"
            )
        for name in ("in_specs", "out_specs", "scratch_shapes"):
            if isinstance(given := getattr(self, name), list):
                setattr(self, name, tuple(given))


@dataclasses.dataclass(init=False)
class PrefetchScalarGridSpec(GridSpec):
    """A GridSpec whose first operands are scalars that index maps can also read.

    They are copied to scalar memory before the kernel starts. Index maps take references to them
    after the indices of the grid, and the kernel takes these references first.

    Attributes:
      num_scalar_prefetch: the number of operands that are prefetched.
    """

    num_scalar_prefetch: int = 0

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


def _is_named(entry: object) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2  # pyright: ignore[reportUnknownArgumentType]


def _grid_and_names(grid: Grid) -> tuple[tuple[Any, ...], tuple[Hashable, ...] | None]:
    """Return the sizes of a grid, and the names of its axes if it is a tuple of (name, size)."""
    entries: tuple[Any, ...] = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    names = None
    if entries and all(map(_is_named, entries)):
        names, entries = zip(*entries, strict=True)
    for size in entries:
        if not is_known_integer(size) and not _is_integer_scalar(size):
            raise ValueError(f"Grid must be a tuple of integers or jax.Array, got {grid!r}")
    return tuple([int(size) if is_known_integer(size) else size for size in entries]), names


def _is_integer_scalar(size: Any) -> bool:
    aval = typeof(size) if isinstance(size, Tracer) or hasattr(size, "dtype") else None
    return (
        isinstance(aval, ShapedArray)
        and not aval.shape
        and bool(np.issubdtype(aval.dtype, np.integer))
    )


def specs_for(name: str, specs: BlockSpecTree, values: PyTree, values_name: str) -> list[BlockSpec]:
    """Return a BlockSpec per leaf of a pytree of operands or results.

    Without specs each step sees whole arrays. An array whose spec alone is left out is not moved.

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
        return [BlockSpec()] * len(leaves)
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
    return [BlockSpec(memory_space=ANY) if s is no_block_spec else s for s in spec_leaves]
