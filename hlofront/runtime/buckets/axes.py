"""The axes of arguments whose lengths have buckets, as users write them down."""

import inspect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.runtime.buckets.program import Bucket
from hlofront.transforms.arguments import ArgumentPlan

# The smallest bucket of those that grow by a factor.
_LEAST = 8
_OPERATIONS = "floordiv", "mod", "max", "min"


class Place(NamedTuple):
    """An axis of all leaves of an argument.

    Attributes:
      position: the argument's position, or None if it has none.
      name: the argument's name, or None if it has none.
      axis: the axis; negative ones count from the last.
    """

    position: int | None
    name: str | None
    axis: int

    def argument(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Return the argument of a call; None, a pytree without leaves, if it is not passed."""
        if self.position is not None and self.position < len(args):
            return args[self.position]
        return None if self.name is None else kwargs.get(self.name)

    def axis_of(self, leaf: Any) -> int | None:
        """Return the axis of a leaf, counted from 0; None if the leaf does not have it."""
        ndim = len(getattr(leaf, "shape", ()))
        axis = self.axis + ndim if self.axis < 0 else self.axis
        return axis if 0 <= axis < ndim else None

    def __str__(self) -> str:
        shown = f"argument number {self.position}" if self.name is None else f"{self.name!r}"
        return f"{shown} along axis {self.axis}"


class BucketedLength(NamedTuple):
    """A length that arguments share, and the buckets that it is padded to.

    Attributes:
      name: the name of the length, in types and messages.
      places: the axes that have it.
      sizes: the buckets, ascending; empty if they grow by a factor.
      factor: the ratio of each bucket to the one before.
    """

    name: str
    places: tuple[Place, ...]
    sizes: tuple[int, ...]
    factor: float

    def __str__(self) -> str:
        shown = f"that grow by {self.factor:g}" if self.factor else ", ".join(map(str, self.sizes))
        return f"buckets of {self.name}: {shown}"

    def length(self, args: tuple[object, ...], kwargs: Mapping[str, object], where: str) -> int:
        """Return the length in a call.

        Raises:
          ValueError: if arguments have different lengths, none, or one that no bucket fits.
          TypeError: if a leaf lacks the axis.
        """
        length = None
        for place in self.places:
            for leaf in _leaves(place.argument(args, kwargs)):
                axis = place.axis_of(leaf)
                if axis is None:
                    raise TypeError(
                        f"{place} of {where} has a bucket, and was given "
                        f"{_shown(leaf)}: pass arrays that have the axis"
                    )
                found = cast(Any, leaf).shape[axis]
                if length is None:
                    length, first = found, place
                elif found != length:
                    raise ValueError(
                        f"{place} of {where} has length {found}, and {first} has {length}: axes "  # pyright: ignore[reportPossiblyUnboundVariable]
                        f"of one entry of `buckets` share a length. Give axes of different lengths "
                        "an entry each"
                    )
        if length is None:
            names = " and ".join(map(str, self.places))
            raise ValueError(f"{names} of {where} has a bucket, and no array was given for it")
        if not length:
            raise ValueError(
                f"{self.places[0]} of {where} has length 0: buckets are for lengths from 1"
            )
        if self.sizes and length > self.sizes[-1]:
            raise ValueError(
                f"{self.places[0]} of {where} has length {length}, and its largest bucket is "
                f'{self.sizes[-1]}: give jit a larger one, or "auto" for as many as it takes'
            )
        return length

    def bucket(self, length: int) -> Bucket:
        """Return the smallest bucket that a length fits in."""
        before = 0
        for size in self.sizes or _growing(self.factor):
            if length <= size:
                return Bucket(before + 1, size)
            before = size
        raise AssertionError(length)


def _growing(factor: float) -> Any:
    size = _LEAST
    while True:
        yield size
        size = max(size + 1, math.ceil(size * factor))


def _leaves(argument: object) -> Sequence[object]:
    return (argument,) if hasattr(argument, "shape") else tree.tree_leaves(argument)


def _shown(leaf: Any) -> str:
    shape = getattr(leaf, "shape", None)
    return f"a {type(leaf).__name__}" if shape is None else f"an array of shape {tuple(shape)}"


def bucketed_lengths(
    buckets: Mapping[object, object], plan: ArgumentPlan
) -> tuple[BucketedLength, ...]:
    """Return the lengths that the option `buckets` of jit describes.

    Args:
      buckets: maps a place, or a tuple of places that share a length, to sizes, "auto", or a growth
        factor. A place is the name or the position of a parameter, for its axis 0, or a pair of
        one of these and an axis.
      plan: the plan of the function's arguments.

    Raises:
      TypeError: if a key is not a place or a value is none of these.
      ValueError: if a parameter does not exist or is static, or sizes do not ascend from 1.
    """
    if not isinstance(buckets, Mapping) or not buckets:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            "`buckets` is a dictionary from axes to sizes, such as "
            f'{{"tokens": (128, 256, 512)}}: got {buckets!r}'
        )
    lengths: list[BucketedLength] = []
    for key, value in buckets.items():
        places = tuple(_place(each, plan) for each in _places_in(key))
        sizes, factor = _sizes(key, value)
        lengths.append(BucketedLength(_name(places[0], lengths), places, sizes, factor))
    taken = [(p.name or p.position, p.axis) for length in lengths for p in length.places]
    if len(set(taken)) < len(taken):
        raise ValueError(f"an axis has two entries in `buckets`: {buckets!r}")
    return tuple(lengths)


def _places_in(key: object) -> Sequence[object]:
    if not isinstance(key, tuple) or not key:
        return (key,)
    is_pair = len(key) == 2 and not isinstance(key[0], tuple) and type(key[1]) is int
    return (key,) if is_pair else cast(Sequence[object], key)


def _place(place: object, plan: ArgumentPlan) -> Place:
    parameter, axis = place if isinstance(place, tuple) and len(place) == 2 else (place, 0)
    if not isinstance(parameter, str | int) or type(axis) is not int:
        raise TypeError(
            "a key of `buckets` is the name or position of a parameter, a pair of one and an axis, "
            f"or a tuple of these that share a length: got {place!r}"
        )
    positional = plan.signature.positional_names()
    known = plan.signature.parameters or {}
    kinds = {parameter.kind for parameter in known.values()}
    position: int | None
    name: str | None
    if isinstance(parameter, str):
        position = positional.index(parameter) if parameter in positional else None
        name = parameter
        exists = parameter in known or inspect.Parameter.VAR_KEYWORD in kinds
    else:
        position = parameter
        name = positional[position] if 0 <= position < len(positional) else None
        exists = position >= 0 and (
            name is not None or not known or inspect.Parameter.VAR_POSITIONAL in kinds
        )
    where = plan.signature.where
    if not exists:
        raise ValueError(
            f"`buckets` has {parameter!r}, which is not a parameter of {where}: it has "
            f"{', '.join(known) or 'none'}"
        )
    if position in plan.static_argnums or name in plan.static_argnames:
        raise ValueError(f"`buckets` has {parameter!r}, which is a static argument of {where}")
    return Place(position, name, axis)


def _sizes(key: object, value: object) -> tuple[tuple[int, ...], float]:
    if value == "auto":
        return (), 2.0
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 < value < math.inf:
        return (), float(value)
    if isinstance(value, Sequence | range | np.ndarray) and not isinstance(value, str):
        sizes = tuple(cast(Sequence[Any], value))
        if sizes and all(isinstance(size, int | np.integer) for size in sizes):
            sizes = tuple(map(int, sizes))
            if sizes[0] > 0 and all(a < b for a, b in itertools.pairwise(sizes)):
                return sizes, 0.0
    raise ValueError(
        f'the buckets of {key!r} are ascending sizes from 1, such as (128, 256, 512), "auto" for '
        f"powers of two, or a factor above 1 by which they grow: got {value!r}"
    )


def _name(place: Place, others: Sequence[BucketedLength]) -> str:
    """Return a name for the length at a place that no other length has."""
    name = place.name if place.name is not None else f"argument{place.position}"
    if not name.isascii() or name in _OPERATIONS:
        name = f"length_{name}" if name.isascii() else f"length{place.position}"
    if place.axis:
        name += f"_{place.axis}".replace("-", "last")
    while name in {other.name for other in others}:
        name += "_"
    return name
