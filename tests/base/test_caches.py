"""Caches: keyed, bounded, weak, emptied all at once."""

import gc
import threading
import weakref

import pytest

from hlofront.base import caches
from hlofront.base.caches import clear_caches, memoize, weak_keyed
from hlofront.base.config import enable_x64


class Key:
    """Hashable by identity and weakly referable, like a function."""


class Equal:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)


def counted(decorate):
    """A decorated function, and the list of the arguments that it was really called with."""
    calls = []

    def function(*args, **kwargs):
        """Doc."""
        calls.append((*args[1:], *kwargs.items()))
        return [len(calls)]

    return decorate(function), calls


BOTH = pytest.mark.parametrize("decorate", [memoize, weak_keyed])
ALL = pytest.mark.parametrize(
    "decorate",
    [
        memoize,
        memoize(in_context=True),
        weak_keyed,
        weak_keyed(in_context=True),
        weak_keyed(typed=False),
    ],
    ids=["memoize", "memoize in context", "weak", "weak in context", "weak untyped"],
)


@pytest.mark.smoke
@ALL
def test_computes_once_per_arguments(decorate):
    cached, calls = counted(decorate)
    key, other = Key(), Key()
    assert cached(key, 1) is cached(key, 1)
    assert cached(key, 2) is not cached(key, 1)
    assert cached(other, 1) is not cached(key, 1)
    assert cached(key, 1, axis=3) is cached(key, 1, axis=3)
    assert cached(key, 1, axis=3) is not cached(key, 1, axis=4)
    assert calls == [(1,), (2,), (1,), (1, ("axis", 3)), (1, ("axis", 4))]
    assert cached.cache_info().currsize == 5
    cached.cache_clear()
    cached(key, 1)
    assert len(calls) == 6


@ALL
def test_clear_caches_empties_every_cache(decorate):
    cached, calls = counted(decorate)
    key = Key()
    cached(key)
    clear_caches()
    cached(key)
    assert len(calls) == 2


@BOTH
def test_types_are_told_apart(decorate):
    cached, calls = counted(decorate)
    key = Key()
    for value in (1, 1.0, True, 1):
        cached(key, value)
        cached(key, name=value)
    assert [str(call[0]) for call in calls if len(call) == 1 and type(call[0]) is not tuple] == [
        "1",
        "1.0",
        "True",
    ]
    assert len(calls) == 6


@BOTH
def test_untyped_is_by_equality_alone(decorate):
    cached, calls = counted(decorate(typed=False))
    key = Key()
    for value in (1, 1.0, True):
        cached(key, value)
    assert calls == [(1,)]


@BOTH
def test_context_is_part_of_the_key_where_asked(decorate):
    for in_context, expected in ((True, 2), (False, 1)):
        cached, calls = counted(decorate(in_context=in_context))
        key = Key()
        for wide in (False, True, False):
            with enable_x64(wide):
                cached(key)
        assert len(calls) == expected


@BOTH
def test_the_least_recently_used_is_forgotten(decorate):
    cached, calls = counted(decorate(maxsize=2))
    key = Key()
    for number in (1, 2, 1, 3, 1, 2):
        cached(key, number)
    assert calls == [(1,), (2,), (3,), (2,)]


@ALL
def test_a_failure_is_not_remembered(decorate):
    attempts = []

    def function(key):
        attempts.append(key)
        if len(attempts) == 1:
            raise ValueError("first")
        return 5

    cached = decorate(function)
    key = Key()
    with pytest.raises(ValueError, match="first"):
        cached(key)
    assert cached(key) == 5


@BOTH
def test_recursion_on_other_arguments(decorate):
    @decorate
    def factorial(key, number):
        return number * factorial(key, number - 1) if number else 1

    assert factorial(Key(), 10) == 3628800


@ALL
def test_unhashable_arguments_are_refused(decorate):
    cached, calls = counted(decorate)
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        cached(Key(), [])
    assert calls == []


@pytest.mark.smoke
@pytest.mark.parametrize("decorate", [weak_keyed, weak_keyed(typed=False)])
def test_weak_entries_go_with_their_key(decorate):
    class Result:
        pass

    cached = decorate(lambda key, number: Result())
    key = Key()
    results = [weakref.ref(cached(key, number)) for number in range(3)]
    assert all(result() is not None for result in results)
    del key
    gc.collect()
    assert all(result() is None for result in results)
    assert cached.cache_info().currsize == 0


def test_weak_keys_go_by_equality():
    cached, calls = counted(weak_keyed)
    first, second = Equal(1), Equal(1)
    assert cached(first) is cached(second)
    assert len(calls) == 1


def test_weak_key_must_be_weakly_referable():
    cached, _ = counted(weak_keyed)
    with pytest.raises(TypeError, match="cannot create weak reference to 'int' object"):
        cached(3)
    with pytest.raises(TypeError):
        cached()


def test_asking_for_ones_own_unfinished_result():
    @weak_keyed
    def circular(key):
        return circular(key)

    with pytest.raises(RecursionError):
        circular(Key())


def test_decorated_functions_keep_their_names():
    for decorate in (memoize, memoize(in_context=True), weak_keyed):
        cached, _ = counted(decorate)
        assert (cached.__name__, cached.__doc__) == ("function", "Doc.")


def test_a_cache_dies_with_its_function():
    cached, _ = counted(memoize)
    context_cached, _ = counted(weak_keyed)
    before = len(caches._caches)
    del cached, context_cached
    gc.collect()
    assert len(caches._caches) <= before - 2


def test_on_clear():
    kept = {1: 2}
    assert caches.on_clear(kept.clear) == kept.clear
    try:
        clear_caches()
        assert kept == {}
    finally:
        caches._clearers.remove(kept.clear)


def test_clearing_while_others_compute_and_make_caches():
    cached, _ = counted(memoize(maxsize=8))
    weak, _ = counted(weak_keyed)
    keys = [Key() for _ in range(4)]
    failures = []

    def work():
        try:
            for number in range(300):
                cached(keys[number % 4], number % 16)
                weak(keys[number % 4], number % 16)
                memoize(lambda: 1)()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        clear_caches()
    for thread in threads:
        thread.join()
    assert failures == []
