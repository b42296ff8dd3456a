"""Caches, weak and bounded, and `clear_caches()`, which empties every one of them."""

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
    """An object with results that `cache_clear` forgets."""

    def cache_clear(self) -> None: ...


class Memoized(Protocol[Inputs, Result_co]):
    """A function that remembers its results by its arguments."""

    def __call__(self, *args: Inputs.args, **kwargs: Inputs.kwargs) -> Result_co: ...
    def cache_clear(self) -> None: ...
    def cache_info(self) -> object: ...


AnyCache = TypeVar("AnyCache", bound=Cache)

# A cache lives as long as the function that it is wrapped around; what clears others, for ever.
_caches: weakref.WeakSet[Cache] = weakref.WeakSet()
_clearers: list[Callable[[], object]] = []
_lock = threading.Lock()


def clear_caches() -> None:
    """Empty every cache of the process: traced, lowered and compiled programs among them."""
    with _lock:
        clearers = [cache.cache_clear for cache in _caches] + _clearers
    # Outside the lock: a cleared cache may drop the last reference to something that has caches.
    for clear in clearers:
        clear()


def on_clear(clear: Callable[[], object]) -> Callable[[], object]:
    """Have `clear_caches()` call `clear` too, for a cache of another kind; returns it."""
    with _lock:
        _clearers.append(clear)
    return clear


class CacheTable(dict[Any, Any]):
    """A dictionary that is one of the caches: `clear_caches()` empties it while it lives."""

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
    """Remember a function's results by its arguments, which must be hashable; for decorating.

    The least recently used of more than `maxsize` results is forgotten; None keeps all. The cache
    has `cache_clear()` and `cache_info()`. Calls from several threads are safe; two at once with
    equal new arguments may both compute. Arguments that differ in type alone, 1, 1.0 and True,
    are told apart, but not where they are inside of a tuple; `typed=False` tells none apart.

    Args:
      maxsize: how many results to keep.
      in_context: also key by the options that a traced program depends on, such as x64 mode.
      typed: see above.
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
    """Remember a function's results as `memoize` does, but hold the first argument weakly.

    The results go when the first argument goes, which must be weakly referable and is passed by
    position. It is told apart by its `==` and hash, so that functions and jaxprs go by identity. A
    result that refers to the first argument keeps it alive, and the entry with it. `typed=False`
    saves half of the call's 0.8 us. A function that asks for its own unfinished result gets a
    RecursionError.
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
    memoized = cast(Memoized[..., object], function)  # once the next lines have run
    memoized.cache_clear = cache.cache_clear
    memoized.cache_info = cache.cache_info
    _registered(cache)
    return memoized
