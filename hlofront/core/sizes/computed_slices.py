"""Slices whose start may be traced: `x[ds(i, 2)]`."""

import dataclasses
import operator
from typing import Any

from hlofront.base.tree import register_pytree_node_class


def _is_known(number: Any) -> bool:
    try:
        operator.index(number)
    except TypeError:
        return False
    return True


@register_pytree_node_class
@dataclasses.dataclass(slots=True)
class Slice:
    """A slice of `size` elements from a start that may be traced, every `stride`-th element.

    It is a pytree whose leaves are the traced numbers among start and size.

    Attributes:
      start: the index of the first element; negative ones count from the end. It is clamped so
        that the slice lies within the axis.
      size: the number of elements.
      stride: the distance between elements.

    Raises:
      ValueError: if the stride is negative.
    """

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise ValueError(f"`stride` must be >= 0: got {self.stride}")

    @property
    def is_dynamic_start(self) -> bool:
        """True if the start is a traced value."""
        return not _is_known(self.start)

    @property
    def is_dynamic_size(self) -> bool:
        """True if the size is a traced value."""
        return not _is_known(self.size)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> "Slice":
        """Return a Python slice of an axis of `size` elements as a Slice.

        Raises:
          ValueError: if the step is negative.
        """
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"expected a slice with a step of at least 1, got {slc}")
        return cls(start, len(range(start, stop, step)), step)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        dynamic = self.is_dynamic_start, self.is_dynamic_size
        numbers = self.start, self.size
        leaves = tuple(n if d else None for n, d in zip(numbers, dynamic, strict=True))
        known = tuple(None if d else n for n, d in zip(numbers, dynamic, strict=True))
        return leaves, (*known, self.stride)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[Any, ...], children: Any) -> "Slice":
        known, leaves = aux_data[:2], tuple(children)
        start, size = (k if n is None else n for n, k in zip(leaves, known, strict=True))
        return cls(start, size, aux_data[2])


def ds(start: object, size: object = None, stride: object = None) -> Any:
    """Return an index of arrays: a slice of `size` elements from `start`, which may be traced.

    `x[ds(i, n)]` is `x[i:i + n]` for traced `i`; `n` must be an integer, as it is the size of the
    result. The start is clamped, so that the result always has `n` elements.

    Args:
      start: the index of the first element; negative ones count from the end. None selects the
        whole axis.
      size: the number of elements; if it is None, `start` is the size and the slice starts at 0.
      stride: the distance between elements, 1 by default.

    Raises:
      ValueError: if the stride is negative or not an integer.

    Examples:
      >>> x = jax.numpy.arange(10)
      >>> jax.jit(lambda i: x[jax.ds(i, 2)])(4)
      Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    if stride is None:
        stride = 1
    if not isinstance(stride, int):
        raise ValueError(f"the stride of `ds` must be an integer that is known: got {stride!r}")
    return Slice(0, start, stride) if size is None else Slice(start, size, stride)
