"""Slices whose start may be computed: `x[ds(i, 2)]`."""

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
    """A number of elements from a start on, every `stride`-th; the start may be computed.

    As a pytree it has those numbers as leaves that are traced.

    Attributes:
      start: the index of the first element; negative ones count from the end. Where fewer than
        `size` elements follow, the slice begins as far before it as is needed.
      size: how many elements there are.
      stride: the distance from one to the next.

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
        """Return whether the start is a traced value."""
        return not _is_known(self.start)

    @property
    def is_dynamic_size(self) -> bool:
        """Return whether the size is a traced value."""
        return not _is_known(self.size)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> "Slice":
        """Return what a slice of an axis of this size reads; a ValueError if it goes backwards."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"a slice with a step of at least 1 is wanted: got {slc}")
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


def ds(start: Any, size: Any = None, stride: Any = None) -> Any:
    """The slice of `size` elements from `start` on, which may be computed: an index of arrays.

    `x[ds(i, n)]` is what `x[i:i + n]` would be if slices could be computed; the shape of the result
    must be known, so that `size` is an integer. The result is of `n` elements whatever the start
    is: near the end of the axis it begins before `i`.

    Args:
      start: where it begins; negative ones count from the end. None is all of the axis.
      size: how many elements it has; where it is left out, `start` is the size, and 0 the start.
      stride: the distance from one element to the next, 1 by default.

    Raises:
      ValueError: if the stride is no integer, or negative.

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
