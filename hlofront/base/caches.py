"""Caches, weak and bounded, and `clear_caches()`, which empties all of them."""

import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from hlofront.bridge import fast_parts, state

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Cache(Protocol):
    """A protocol of objects whose results `cache_clear` drops."""

    def cache_clear(self) -> None: ...


class Memoized(Protocol[Inputs, Result_co]):
    """A protocol of functions that cache their results by their arguments."""

    def __call__(self, *args: Inputs.args, **kwargs: Inputs.kwargs) -> Result_co: ...
    def cache_clear(self) -> None: ...
    def cache_info(self) -> object: ...

    @property
    def __wrapped__(self) -> Callable[Inputs, Result_co]: ...


AnyCache = TypeVar("AnyCache", bound=Cache)

# A cache lives as long as the function it wraps; functions in `_clearers` live forever.
_caches: weakref.WeakSet[Cache] = weakref.WeakSet()
_clearers: list[Callable[[], object]] = []
_lock = threading.Lock()


def clear_caches() -> None:
    """Empty all caches of the process, including traced, lowered and compiled programs."""
    with _lock:
        clearers = [cache.cache_clear for cache in _caches] + _clearers
    # Outside the lock: clearing a cache may drop the last reference to an object with caches.
    for clear in clearers:
        clear()


def on_clear(clear: Callable[[], object]) -> Callable[[], object]:
    """Register a function for `clear_caches()` to call, and return it; a decorator."""
    with _lock:
        _clearers.append(clear)
    return clear


class CacheTable(dict[Any, Any]):
    """A dictionary that `clear_caches()` empties, hashed by identity."""

    __slots__ = ("__weakref__",)

    def __init__(self):
        super().__init__()
        _registered(self)

    cache_clear = dict[Any, Any].clear
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


@overload
def memoize(function: Callable[Inputs, Result]) -> Memoized[Inputs, Result]: ...
@overload
def memoize(
    *, maxsize: int | None = 4096, in_context: bool = False, typed: bool = True
) -> Callable[[Callable[Inputs, Result]], Memoized[Inputs, Result]]: ...
def memoize(
    function: Callable[..., object] | None = None,
    *,
    maxsize: int | None = 4096,
    in_context: bool = False,
    typed: bool = True,
) -> object:
    """Return a function that caches its results by its arguments, which must be hashable.

    A decorator. The cached function has `cache_clear()` and `cache_info()`, and is thread-safe; two
    simultaneous calls with equal new arguments may both compute.

    Args:
      function: the function; without it, memoize returns a decorator.
      maxsize: the maximum number of results; the least recently used ones are evicted. None means
          no limit.
      in_context: whether the key includes the options that tracing depends on, such as x64.
      typed: whether equal arguments of different types, such as 1, 1.0 and True, have separate
        results. Elements of tuple arguments never do.
    """
    if function is None:
        return functools.partial(memoize, maxsize=maxsize, in_context=in_context, typed=typed)
    if not in_context:
        return _registered(functools.lru_cache(maxsize, typed)(function))

    @functools.lru_cache(maxsize, typed)
    def remembered(context: object, /, *args: Hashable, **kwargs: Hashable) -> object:
        return function(*args, **kwargs)

    @functools.wraps(function)
    def memoized(*args: Hashable, **kwargs: Hashable) -> object:
        return remembered(_trace_context(), *args, **kwargs)

    return _with_cache(memoized, remembered)


@overload
def weak_keyed(function: Callable[Inputs, Result]) -> Memoized[Inputs, Result]: ...
@overload
def weak_keyed(
    *, maxsize: int | None = 4096, in_context: bool = False, typed: bool = True
) -> Callable[[Callable[Inputs, Result]], Memoized[Inputs, Result]]: ...
def weak_keyed(
    function: Callable[..., object] | None = None,
    *,
    maxsize: int | None = 4096,
    in_context: bool = False,
    typed: bool = True,
) -> object:
    """Return a function that caches its results, holding its first argument weakly.

    It is a decorator with the parameters of `memoize`. The first argument must be weakly referable
    and passed by position; its results are dropped with it. It is compared by `==` and hash, which
    for functions and jaxprs means identity. A result that refers to the first argument keeps it
    alive, and the entry with it. `typed=False` makes calls faster.

    Raises:
      RecursionError: if the function needs the result that it is computing.
    """
    if function is None:
        return functools.partial(weak_keyed, maxsize=maxsize, in_context=in_context, typed=typed)
    context = _trace_context if in_context else tuple
    if not typed:
        return _registered(fast_parts.weakref_lru_cache(context, function, maxsize))

    def computed(first: object, types: object, /, *args: object, **kwargs: object) -> object:
        return function(first, *args, **kwargs)

    remembered = fast_parts.weakref_lru_cache(context, computed, maxsize)

    @functools.wraps(function)
    def memoized(first: object, /, *args: object, **kwargs: object) -> object:
        types = (*map(type, args), *map(type, kwargs.values())) if kwargs else _types(args)
        return remembered(first, types, *args, **kwargs)

    return _with_cache(memoized, remembered)


_trace_context = state.trace_context


def _types(args: tuple[object, ...]) -> tuple[type, ...]:
    return tuple(map(type, args))


def _registered(cache: AnyCache) -> AnyCache:
    with _lock:
        _caches.add(cache)
    return cache


def _with_cache(
    function: Callable[..., object], cache: Memoized[..., object]
) -> Memoized[..., object]:
    memoized = cast(Memoized[..., object], function)  # complete once the next lines have run
    memoized.cache_clear = cache.cache_clear
    memoized.cache_info = cache.cache_info
    _registered(cache)
    return memoized
