"""Index notation for arrays: r_, c_, s_ and index_exp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import ArrayLike
from hlofront.bridge.fast_parts import Array
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer
from hlofront.numpy.arrays.creation import array
from hlofront.numpy.arrays.joining import concatenate
from hlofront.numpy.arrays.ranges import arange, linspace
from hlofront.numpy.arrays.shape import transpose

# s_ and index_exp return the index itself, and make no arrays.
s_ = np.s_
index_exp = np.index_exp


# An entry in an index of `r_` or `c_`, which join the entries.
JoinItem: TypeAlias = "ArrayLike | str | slice | Sequence[ArrayLike]"


class _Joiner:
    """The base class of the classes of `r_` and `c_`, which join the entries of an index."""

    name: str
    axis: int
    ndmin: int
    trans1d: int

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"hlofront.numpy.{self.name}"

    def __getitem__(self, key: JoinItem | tuple[JoinItem, ...]) -> Array:
        entries = key if isinstance(key, tuple) else (key,)
        if not entries:
            raise IndexError(f"{self.name}[()]: there is nothing to join, give an array or a slice")
        axis, ndmin, trans1d, matrix = self.axis, self.ndmin, self.trans1d, ""
        if isinstance(entries[0], str):
            directive, *entries = entries
            if directive in ("r", "c"):
                matrix = directive
            else:
                numbers = self._numbers(directive)
                axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])[:3]
        joined = concatenate([self._entry(entry, ndmin, trans1d) for entry in entries], axis=axis)
        if matrix and typeof(joined).ndim == 1:
            return joined[None, :] if matrix == "r" else joined[:, None]
        return joined

    def _numbers(self, directive: str) -> tuple[int, ...]:
        """Parse a directive into the axis and, where present, `ndmin` and `trans1d`."""
        try:
            return tuple([int(number) for number in directive.split(",")])
        except ValueError:
            raise ValueError(
                f"{self.name}: could not understand directive {directive!r}: expected 'r', 'c', or "
                "up to three integers, such as '0,2,1'."
            ) from None

    def _entry(self, entry: JoinItem, ndmin: int, trans1d: int) -> Array:
        if isinstance(entry, str):
            raise ValueError(
                f"{self.name}: string directive must be placed at the beginning, and {entry!r} is "
                "after another entry."
            )
        if isinstance(entry, slice):
            entry = self._numbers_of(entry)
        # Arrays are immutable, so only memory of other objects needs a copy.
        result = array(entry, copy=not isinstance(entry, Array))
        ndim = typeof(result).ndim
        if ndim >= ndmin:
            return result
        result = array(result, copy=False, ndmin=ndmin)
        if not ndim:
            return result
        # New axes were inserted in front; all axes are rotated until the last one is at trans1d.
        return transpose(result, tuple(np.roll(range(ndmin), trans1d + 1).tolist()))

    def _numbers_of(self, entry: slice) -> Array:
        for part in ("start", "stop", "step"):
            number = getattr(entry, part)
            if isinstance(number, Tracer):
                raise ConcretizationTypeError(
                    number,
                    f"It is the {part} of a slice in jnp.{self.name}: the size of the result "
                    "depends on it.",
                )
        start, step = entry.start or 0, entry.step or 1
        if isinstance(step, complex | np.complexfloating):
            return linspace(start, entry.stop, int(abs(step)))
        return arange(start, entry.stop, step)


class RClass(_Joiner):
    """Joins slices, numbers and arrays along the first axis: `r_[1:4, 0, x]`.

    A slice stands for `arange`, or for `linspace` where its step is imaginary: `r_[0:1:5j]` is
    five numbers from 0 to 1.

    A leading string changes how they are joined. "r" and "c" make a matrix of one row or one
    column. Up to three integers are the axis to join along, the least number of axes of each entry
    (new axes come first), and the position that the axis of a vector moves to: `r_["0,2,0", x, y]`
    stacks columns.

    Raises:
      ValueError: for any other string, or one that does not come first.
      TypeError: if shapes do not fit.
    """

    name, axis, ndmin, trans1d = "r_", 0, 1, -1


class CClass(_Joiner):
    """Joins slices, numbers and arrays along the last axis, vectors as columns: `c_[x, y]`.

    It is equivalent to `r_["-1,2,0", ...]`; see `r_`.
    """

    name, axis, ndmin, trans1d = "c_", -1, 2, 0


r_ = RClass()
c_ = CClass()
