"""Caches of values derived from a program: its derivative, batched form and executables."""

import functools
from collections.abc import Callable, Hashable
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

from hlofront.bridge import state
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
Program = TypeVar("Program", bound=ClosedJaxpr | Jaxpr)
_trace_context = state.trace_context
# The cached value that stands for the program itself.
_ITSELF = object()


class DerivedCache(Generic[Key, Value]):
    """A cache of one kind of value that is derived from programs.

    Each program holds the values that were derived from it, so they live as long as the program.
    A value must not refer to its program, which would then live until the next garbage collection.

    Args:
      limit: the maximum number of values per program, None for no limit. The oldest value is
          evicted first.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int | None = None):
        self.limit = limit

    def of(self, program: ClosedJaxpr | Jaxpr) -> dict[Key, Value]:
        """Return the values that this cache holds for a program, by key."""
        values = program.derived.get(self)
        if values is None:
            values = program.derived.setdefault(self, {})
        return values

    def get_or_compute(
        self, program: ClosedJaxpr | Jaxpr, key: Key, compute: Callable[[], Value]
    ) -> Value:
        """Return the value cached for a program and key; on first use, call `compute()`.

        Values are cached per setting of the options that tracing depends on, such as
        `no_collectives`.
        """
        values = cast("dict[tuple[Key, object], Value]", self.of(program))
        key_in_context = key, _trace_context()
        try:
            return values[key_in_context]
        except KeyError:
            pass
        value = compute()
        if self.limit is not None and len(values) >= self.limit:
            values.pop(next(iter(values)), None)
        values[key_in_context] = value
        return value


def once_per_program(
    function: Callable[Concatenate[Program, Parameters], Value],
) -> Callable[Concatenate[Program, Parameters], Value]:
    """Decorate a function of a program and hashable positional arguments to cache its results.

    A function that calls itself for the programs inside a program must be decorated: programs that
    call one another twice at each of 60 levels are 60 programs, but 2**60 calls.

    Results are cached per setting of the options that tracing depends on. The function may return
    the program itself, which is not stored: a program that refers to itself lives until the next
    garbage collection.
    """
    cache: DerivedCache[tuple[object, ...], Value | object] = DerivedCache()

    @functools.wraps(function)
    def cached(program: Program, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        values = cache.of(program)
        key = args, _trace_context()
        try:
            value = values[key]
        except KeyError:
            value = function(program, *args, **kwargs)
            values[key] = _ITSELF if value is program else value
        return cast(Value, program if value is _ITSELF else value)

    return cached
