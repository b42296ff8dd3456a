"""Blocks of arrays: padding of arrays to whole blocks, and reads and writes of a step's block."""

from hlofront.base.elements import int32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray, typeof
from hlofront.pallas.block_specs import Blocked, Squeezed, block_size
from hlofront.pallas.grid_mapping import BlockMapping, padding_of
from hlofront.pallas.memory import uninitialized
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import pad
from hlofront.primitives.arrays.slicing import slice as static_slice
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import mul


class Blocks:
    """An array that steps of a grid see in blocks.

    Attributes:
      mapping: which block each step sees.
      shape: the shape of the array.
      sizes: the shape of a block, with an axis of size 1 for each squeezed one.
      before: per axis, the number of elements that are added before the array.
      after: per axis, the number of elements that are added after it.
      is_whole: whether every step sees the whole array.
    """

    def __init__(self, mapping: BlockMapping):
        self.mapping = mapping
        self.shape: tuple[int, ...] = mapping.array_aval.shape
        self.sizes = tuple(map(block_size, mapping.block_shape))
        paddings = [padding_of(dim) for dim in mapping.block_shape]
        self.before = tuple([before for before, _ in paddings])
        # The last block may reach past the end of the array.
        self.after = tuple(
            [
                after + (-(before + n + after) % size if size else 0)
                for (before, after), n, size in zip(paddings, self.shape, self.sizes, strict=True)
            ]
        )
        self.is_whole = mapping.has_trivial_window()

    @property
    def padded_aval(self) -> ShapedArray:
        """The type of the array with all elements that blocks cover."""
        parts = zip(self.before, self.shape, self.after, strict=True)
        return self.mapping.array_aval.update(shape=tuple(map(sum, parts)))

    def padded(self, array: ArrayLike) -> Array:
        """Return the array padded with undefined elements where blocks reach past its ends."""
        if not any((*self.before, *self.after)):
            return array  # pyright: ignore[reportReturnType]
        undefined = uninitialized(ShapedArray((), typeof(array).dtype))
        config = [(before, after, 0) for before, after in zip(self.before, self.after, strict=True)]
        return pad(array, undefined, config)

    def unpadded(self, array: ArrayLike) -> Array:
        """Return the array without the elements that `padded` adds."""
        if not any((*self.before, *self.after)):
            return array  # pyright: ignore[reportReturnType]
        limits = [start + size for start, size in zip(self.before, self.shape, strict=True)]
        return static_slice(array, self.before, limits)

    def starts(self, indices: ArrayLikes) -> list[ArrayLike]:
        """Return the first element of a block along each axis, from what the index map returned."""
        starts: list[ArrayLike] = []
        for index, dim, size in zip(indices, self.mapping.block_shape, self.sizes, strict=True):
            start = convert(index, int32, False)
            if isinstance(dim, Blocked) and size != 1:
                start = mul(start, convert(size, int32, False))
            starts.append(start)
        return starts

    def read(self, array: ArrayLike, starts: ArrayLikes) -> ArrayLike:
        """Return the block that begins at some elements, without squeezed axes."""
        if self.is_whole:
            return array
        block = dynamic_slice(array, starts, self.sizes)
        if not any(isinstance(dim, Squeezed) for dim in self.mapping.block_shape):
            return block
        return reshape(block, self.mapping.block_aval.shape)

    def written(self, array: ArrayLike, block: ArrayLike, starts: ArrayLikes) -> ArrayLike:
        """Return a padded array with a new block, which begins at some elements."""
        if self.is_whole:
            return block
        return dynamic_update_slice(array, reshape(block, self.sizes), starts)
