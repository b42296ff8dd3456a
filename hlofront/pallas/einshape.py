"""pltpu.einshape: reshapes and transposes of an array, written like an einsum."""

import math
import re
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import bit_width
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.pallas.grid_indices import is_tracing_kernel
from hlofront.pallas.tpu_info import get_tpu_info, is_tpu_device
from hlofront.primitives.arrays.shaping import reshape, transpose
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.arrays.slicing import slice as static_slice

# The names of one side of an equation, in groups that are one axis of the array.
Groups = list[str]


def einshape(
    equation: str, x: ArrayLike, assert_is_tile_preserving: bool = False, **sizes: int
) -> Array:
    """Return an array with its axes split, reordered and merged.

    In a kernel for TPUs whose tiles keep their contents, tiles are moved as wholes.

    Args:
      equation: names of axes before and after, such as "a(bc)->b(ac)": an axis in parentheses is
        split, or axes there are merged.
      x: the array.
      assert_is_tile_preserving: whether it is an error if tiles do not keep their contents, in a
        kernel for TPUs.
      **sizes: the sizes of axes that are split, if they do not follow from the array's shape.

    Raises:
      ValueError: for an equation that does not fit the array, and if tiles are to keep their
        contents and do not.
      NotImplementedError: if the sides of the equation have different names.

    Example:
      >>> pltpu.einshape("a(bc)->bac", jnp.zeros((10, 20)), b=4).shape
      (4, 10, 5)
    """
    shape = typeof(x).shape
    before, after = _sides(equation)
    known = _sizes(equation, before, shape, sizes)
    names = "".join(before)
    if sorted(names) != sorted("".join(after)):
        raise NotImplementedError(  # JAX raises this class.
            f"einshape({equation!r}): Only reordering/splitting/merging supported (no broadcast "
            "yet). Both sides have the same names"
        )
    split = [known[name] for name in names]
    order = [names.index(name) for name in "".join(after)]
    merged = [math.prod([known[name] for name in group]) for group in after]
    grouped = sum(len(group) > 1 for group in (*before, *after))
    steps = grouped + (order != sorted(order))
    if steps > 1 and is_tracing_kernel() and is_tpu_device():
        tile = _tile(x)
        numbers = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        moved = numbers.reshape(split).transpose(order).reshape(merged)
        places = _tile_places(moved, shape, tile)
        if places is not None:
            return _of_tiles(x, places, merged, tile)
        if assert_is_tile_preserving:
            raise ValueError(
                f"Tile preserving check failed for einshape kernel with equation: {equation} and "
                f"shape {shape} and tiling {tile}. The last two axes must be multiples of a tile, "
                "before and after, and keep their order within tiles"
            )
    return reshape(transpose(reshape(x, split), order), merged)


def _sides(equation: str) -> tuple[Groups, Groups]:
    """Return the groups of names of both sides of an equation."""
    sides = equation.replace(" ", "").split("->")
    if len(sides) != 2:
        raise ValueError(f"Equation must contain exactly one '->': got {equation!r}")
    for side in sides:
        if not re.fullmatch(r"(\([^()]*\)|[^()])*", side):
            raise ValueError(f"Unmatched parenthesis in {side!r}, of {equation!r}")
    before, after = ([a or b for a, b in re.findall(r"\(([^()]*)\)|(.)", side)] for side in sides)
    return before, after


def _sizes(
    equation: str, groups: Groups, shape: Sequence[int], given: dict[str, int]
) -> dict[str, int]:
    """Return the sizes of the axes by name."""
    if len(groups) != len(shape):
        raise ValueError(
            f"Equation LHS has {len(groups)} groups but input has {len(shape)} dims: einshape of "
            f"{equation!r} and an array of shape {tuple(shape)}"
        )
    known: dict[str, int] = {}
    for group, size in zip(groups, shape, strict=True):
        own = given if len(group) > 1 else {}
        known.update({name: own[name] for name in group if name in own})
        unknown = [name for name in group if name not in known]
        rest = math.prod([known[name] for name in group if name in known])
        if len(unknown) > 1:
            raise ValueError(
                f"Ambiguous split for {group} with size {size}, of {equation!r}. Unknowns: "
                f"{unknown}. Provide sizes via kwargs: {unknown[0]}=..."
            )
        if size % max(rest, 1) or (not unknown and rest != size):
            raise ValueError(
                f"Cannot split size {size} with known sizes {rest}, for {group} of {equation!r}"
            )
        known.update(dict.fromkeys(unknown, size // max(rest, 1)))
    return known


def _tile(x: ArrayLike) -> tuple[int, int]:
    """Return the sizes of the tiles of an array in registers of the TPU."""
    info, aval = get_tpu_info(), typeof(x)
    packing = 32 // bit_width(aval.dtype)
    rows = aval.shape[-2] if aval.ndim > 1 else 1
    tile = packing * (1 + (info.generation < 4))
    while tile < min(rows, info.num_sublanes):
        tile *= 2
    return tile, info.num_lanes


def _tile_places(
    moved: np.ndarray, shape: Sequence[int], tile: tuple[int, int]
) -> np.ndarray | None:
    """Return where each tile of the result comes from, or None if tiles are torn.

    Args:
      moved: per element of the result, its number in the array.
      shape: the shape of the array.
      tile: the sizes of a tile.

    Returns:
      Per tile of the result, the indices of its first element in the array.
    """
    sizes = (*shape[-2:], *moved.shape[-2:])
    if len(shape) < 2 or moved.ndim < 2 or any(n % t for n, t in zip(sizes, tile * 2, strict=True)):
        return None
    rows, columns = tile
    *outer, r, c = moved.shape
    tiles = moved.reshape(*outer, r // rows, rows, c // columns, columns).swapaxes(-3, -2)
    first = tiles[..., :1, :1]
    whole = np.arange(rows)[:, None] * shape[-1] + np.arange(columns)
    indices = np.stack(np.unravel_index(first[..., 0, 0], shape), -1)
    is_kept = np.all(tiles - first == whole) and np.all(indices[..., -2:] % tile == 0)
    return indices if is_kept else None


def _of_tiles(
    x: ArrayLike, places: np.ndarray, shape: Sequence[int], tile: tuple[int, int]
) -> Array:
    """Return the array of a shape whose tiles come from places of another array."""

    def part(place: np.ndarray) -> Array:
        sizes = (*[1] * (len(place) - 2), *tile)
        limits = [start + size for start, size in zip(place, sizes, strict=True)]
        piece = static_slice(x, tuple(map(int, place)), tuple(map(int, limits)))
        return reshape(piece, (*[1] * (len(shape) - 2), *tile))

    def joined(places: np.ndarray, axis: int) -> Array:
        if places.ndim == 1:
            return part(places)
        parts = [joined(each, axis + 1) for each in places]
        return parts[0] if len(parts) == 1 else concatenate(parts, axis)

    return joined(places, 0)
