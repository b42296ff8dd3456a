"""Attention masks, which compute where a query may look without storing an array of all pairs."""

# pyright: strict

from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import NumPyArray

Positions = int | slice
Index = tuple[Positions, ...]


class Mask:
    """A boolean array by shape and index; subclasses define `shape` and `__getitem__`.

    Masks of equal shape combine by `&` and `|`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask: queries and keys, after heads if there are any."""
        raise TypeError(f"{type(self).__name__} must define shape")

    def __getitem__(self, index: Index) -> NumPyArray:
        """Return a part of the mask as a boolean NumPy array; `index` has a slice per axis."""
        raise TypeError(f"{type(self).__name__} must define __getitem__(index)")

    def __bool__(self) -> bool:
        raise NotImplementedError(  # JAX raises this class.
            "A mask has no truth value: combine masks by & and |, which `and` and `or` do not do."
        )

    def __or__(self, other: "Mask") -> "Mask":
        self._check_shape(other)
        return LogicalOr(self, other)

    def __and__(self, other: "Mask") -> "Mask":
        self._check_shape(other)
        return LogicalAnd(self, other)

    def _check_shape(self, other: "Mask") -> None:
        if self.shape != other.shape:
            raise ValueError(f"Invalid shape for other: {other.shape}, expected: {self.shape}")

    def _meaning(self) -> tuple[object, ...]:
        """Return the key by which masks are compared and hashed: equal masks have equal keys."""
        return (id(self),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mask) and self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())


class _Combined(Mask):
    """The combination of two masks of equal shape."""

    def __init__(self, left: Mask, right: Mask):
        if left.shape != right.shape:
            raise ValueError(
                f"Masks must have the same shape, got shapes {left.shape} and {right.shape}"
            )
        self.left = left
        self.right = right

    @property
    def shape(self) -> tuple[int, ...]:
        return self.left.shape

    def _meaning(self) -> tuple[object, ...]:
        return type(self), self.left, self.right


class LogicalOr(_Combined):
    """The mask that is true where one of two masks is."""

    def __getitem__(self, index: Index) -> NumPyArray:
        return self.left[index] | self.right[index]


class LogicalAnd(_Combined):
    """The mask that is true where both of two masks are."""

    def __getitem__(self, index: Index) -> NumPyArray:
        return self.left[index] & self.right[index]


class NumpyMask(Mask):
    """The mask of a boolean array of shape (queries, keys)."""

    def __init__(self, array: NumPyArray):
        self.array = np.asarray(array)
        if self.array.ndim != 2:
            raise ValueError(f"Expected a 2-dim array, instead got: {self.array.ndim}")
        if self.array.dtype != np.bool_:
            raise ValueError(f"Mask must be a boolean array, instead got: {self.array.dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __getitem__(self, index: Index) -> NumPyArray:
        return self.array[index]

    def _meaning(self) -> tuple[object, ...]:
        return NumpyMask, self.shape, self.array.tobytes()


class _MaskByPosition(Mask):
    """A mask of shape (queries, keys) that is a function of the positions of query and key."""

    def __init__(self, shape: tuple[int, int], shard_count: int = 1):
        if shape[0] % shard_count**2:
            raise ValueError(
                f"Shard count squared ({shard_count**2}) must divide Q seq_len ({shape[0]}) evenly."
            )
        self._shape = tuple(shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __getitem__(self, index: Index) -> NumPyArray:
        if len(index) != 2:
            raise IndexError(
                f"A mask of shape {self.shape} requires an index for each of its two axes: got "
                f"{index}"
            )
        queries, keys = (np.arange(size)[i] for size, i in zip(self.shape, index, strict=True))
        return self._may_look(np.expand_dims(queries, -1), keys)

    def _may_look(self, queries: NumPyArray, keys: NumPyArray) -> NumPyArray:
        """Return for integers that broadcast whether each query may look at the key."""
        raise TypeError(f"{type(self).__name__} must define _may_look(queries, keys)")


class FullMask(_MaskByPosition):
    """The mask of shape (queries, keys) by which every query looks at all keys."""

    def __init__(self, _shape: tuple[int, int]):
        super().__init__(_shape)

    def _may_look(self, queries: NumPyArray, keys: NumPyArray) -> NumPyArray:
        return np.ones(np.broadcast_shapes(queries.shape, keys.shape), np.bool_)

    def _meaning(self) -> tuple[object, ...]:
        return FullMask, self.shape


class CausalMask(_MaskByPosition):
    """The mask of shape (queries, keys) by which a query looks at no key after it.

    `offset` is the number of the key that is aligned with the first query.
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1):
        super().__init__(shape, shard_count)
        self.offset = offset

    def _may_look(self, queries: NumPyArray, keys: NumPyArray) -> NumPyArray:
        return queries + self.offset >= keys

    def _meaning(self) -> tuple[object, ...]:
        return CausalMask, self.shape, self.offset


class ChunkedCausalMask(_MaskByPosition):
    """The mask by which a query looks at no key after it, and at no key of another chunk."""

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1):
        super().__init__(shape, shard_count)
        _check_chunk_size(chunk_size)
        self.chunk_size = chunk_size

    def _may_look(self, queries: NumPyArray, keys: NumPyArray) -> NumPyArray:
        return (queries >= keys) & (queries // self.chunk_size == keys // self.chunk_size)

    def _meaning(self) -> tuple[object, ...]:
        return ChunkedCausalMask, self.shape, self.chunk_size


class LocalMask(_MaskByPosition):
    """The mask by which a query looks at a window of keys: a number before it, a number after it.

    A number of None is unlimited. `offset` is the number of the key that is aligned with the first
    query.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        window_size: tuple[int | None, int | None],
        offset: int,
        shard_count: int = 1,
    ):
        super().__init__(shape, shard_count)
        self.window_size = window_size
        self.offset = offset

    def _may_look(self, queries: NumPyArray, keys: NumPyArray) -> NumPyArray:
        before, after = self.window_size
        distances = keys - (queries + self.offset)
        result = np.ones(distances.shape, np.bool_)
        if before is not None:
            result &= distances >= -before
        if after is not None:
            result &= distances <= after
        return result

    def _meaning(self) -> tuple[object, ...]:
        return LocalMask, self.shape, self.window_size, self.offset


class MultiHeadMask(Mask):
    """The mask of shape (heads, queries, keys) that has one mask (queries, keys) per head."""

    def __init__(self, masks: Sequence[Mask]):
        if not masks:
            raise ValueError("Unsupported empty tuple of masks: give one mask per head")
        for mask in masks:
            if not isinstance(mask, Mask):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ValueError(f"masks should be of type Mask, got one of {type(mask).__name__}")
            if isinstance(mask, MultiHeadMask):
                raise ValueError("Nesting MultiHeadMasks is not supported: give one mask per head")
            if mask.shape != masks[0].shape:
                raise ValueError(
                    f"Unexpected mask shape, got: {mask.shape}, expected: {masks[0].shape}"
                )
        self.masks = masks

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.masks), *self.masks[0].shape)

    def __getitem__(self, index: Index) -> NumPyArray:
        if len(index) != 3:
            raise IndexError(
                f"A mask of shape {self.shape} requires an index for each of its three axes: got "
                f"{index}"
            )
        head, *rest = index
        if isinstance(head, int):
            return self.masks[head][tuple(rest)]
        return np.stack([mask[tuple(rest)] for mask in self.masks[head]])

    def _meaning(self) -> tuple[object, ...]:
        return MultiHeadMask, *self.masks


def _check_chunk_size(chunk_size: int) -> None:
    if chunk_size <= 0:
        raise ValueError(f"chunk_size must be positive: got {chunk_size}")


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> NumPyArray:
    """Return a boolean mask of shape (queries, keys), true for keys that are not after the query.

    `offset` is the number of the key that is aligned with the first query.

    >>> make_causal_mask((2, 3), 1).astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    return CausalMask(shape, offset)[:, :]


def make_local_attention_mask(
    shape: tuple[int, int], window_size: tuple[int | None, int | None], *, offset: int = 0
) -> NumPyArray:
    """Return a boolean mask of shape (queries, keys), true for keys that are near the query.

    Args:
      shape: the numbers of queries and keys.
      window_size: the numbers of keys before and after its own that a query may look at; None for
        all.
      offset: the number of the key that is aligned with the first query.
    """
    return LocalMask(shape, window_size, offset)[:, :]


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> NumPyArray:
    """Return a mask (queries, keys), true for keys of the query's chunk that are not after it.

    A chunk is `chunk_size` consecutive positions.

    Raises:
      ValueError: if the size of chunks is not positive.
    """
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> NumPyArray:
    """Return an array of random booleans that are false with probability `sparsity`.

    NumPy's older generator draws them: the same seed gives the same mask.
    """
    return np.random.RandomState(seed).binomial(1, 1 - sparsity, shape).astype(np.bool_)
