"""Caches of values derived from a closed jaxpr: its derivative, batched form and executables."""

import functools
from collections.abc import Callable, Hashable
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

from hlofront.core.jaxpr import ClosedJaxpr

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
# A cached value that stands for the program that holds the cache.
_ITSELF = object()


class DerivedCache(Generic[Key, Value]):
    """A cache of one kind of value that is derived from programs.

    Each program holds the values that were derived from it, so they live as long as the program.
    A value must not refer to its program, which would then live until the next garbage collection.

    Args:
      limit: the maximum number of values per program, of which the oldest is evicted first; None
        for no limit.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int | None = None):
        self.limit = limit

    def of(self, program: ClosedJaxpr) -> dict[Key, Value]:
        """Return the values that this cache holds for a program, by key."""
        values = program.derived.get(self)
        if values is None:
            values = program.derived.setdefault(self, {})
        return values

    def get_or_compute(self, program: ClosedJaxpr, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value that a program has for a key; call `compute()` on the first use."""
        values = self.of(program)
        try:
            return values[key]
        except KeyError:
            pass
        value = compute()
        if self.limit is not None and len(values) >= self.limit:
            values.pop(next(iter(values)), None)
        values[key] = value
        return value


def once_per_program(
    function: Callable[Concatenate[ClosedJaxpr, Parameters], Value],
) -> Callable[Concatenate[ClosedJaxpr, Parameters], Value]:
    """Decorate a function of a program and hashable positional arguments to cache its results.

    The function may return the program itself, which is not stored: a program that refers to itself
    lives until the next garbage collection.
    """
    cache: DerivedCache[tuple[object, ...], Value | object] = DerivedCache()

    @functools.wraps(function)
    def cached(
        program: ClosedJaxpr, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Value:
        values = cache.of(program)
        try:
            value = values[args]
        except KeyError:
            value = function(program, *args, **kwargs)
            values[args] = _ITSELF if value is program else value
        return cast(Value, program if value is _ITSELF else value)

    return cached
