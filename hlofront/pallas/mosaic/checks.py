"""Checks of a kernel's blocks before libtpu sees them: shapes that do not fit its tiles."""

from hlofront.base.dtypes import full_name
from hlofront.base.source import user_frame
from hlofront.core.jaxpr import Equation
from hlofront.pallas.block_specs import block_size
from hlofront.pallas.grid_mapping import BlockMapping, GridMapping, padding_of
from hlofront.pallas.mosaic.types import memory_of

# The numbers of rows and columns of a tile of 32-bit elements.
_ROWS, _COLUMNS = 8, 128


def check_call(equation: Equation, mapping: GridMapping, name: str) -> None:
    """Raise an error if a block does not fit the tiles of a TPU's vectors.

    Raises:
      ValueError: with the block, its operand, and the sizes that it may have.
    """
    for block in mapping.block_mappings:
        if memory_of(block.block_aval) not in ("vmem", "smem"):
            continue
        frame = user_frame(equation.traceback)
        at = f" at {frame.file}:{frame.line}" if frame is not None else ""
        if any(padding_of(dim)[0] for dim in block.block_shape):
            raise ValueError(
                f"the block of {block.origin} of the kernel {name}{at} has padding before the "
                "array: libtpu supports only padding after it. Pad the array by jnp.pad instead"
            )
        problem = _problem(block)
        if problem:
            raise ValueError(
                "The Pallas TPU lowering currently requires that the last two dimensions of your "
                f"block shape are divisible by {_ROWS} and {_COLUMNS} respectively, or be equal to "
                f"the respective dimensions of the overall array. The block of {block.origin} of "
                f"the kernel {name}{at} is {_shown(block)}: {problem}"
            )


def _shown(block: BlockMapping) -> str:
    sizes = "x".join(map(str, map(block_size, block.block_shape)))
    of = "x".join(map(str, block.array_aval.shape))
    return f"{sizes} of {full_name(block.array_aval.dtype)}[{of}]"


def _problem(block: BlockMapping) -> str:
    """Return what is wrong with a block and how to change it; "" if nothing is."""
    sizes = tuple(map(block_size, block.block_shape))
    shape = block.array_aval.shape
    if not sizes or sizes == shape:
        return ""
    if len(sizes) == 1:
        unit = _COLUMNS * (4 // max(block.array_aval.dtype.itemsize, 1) or 1)
        if not sizes[0] % unit:
            return ""
        return (
            f"its {sizes[0]} elements of an array of one axis are neither a multiple of {unit} nor "
            f"all {shape[0]}. Give the array two axes, or take {-(-sizes[0] // unit) * unit}"
        )
    for axis, unit, what in ((-1, _COLUMNS, "columns"), (-2, _ROWS, "rows")):
        if sizes[axis] % unit and sizes[axis] != shape[axis]:
            above = -(-sizes[axis] // unit) * unit
            return (
                f"its {sizes[axis]} {what} are neither a multiple of {unit} nor all "
                f"{shape[axis]}. Take {above}, or {shape[axis]}"
            )
    return ""
