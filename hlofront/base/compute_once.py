"""Computing a shared value once when several threads need it at the same time."""

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_lock = threading.Lock()
# The values that are being computed, each with a lock that is held until it is available, and the
# thread that holds it.
_under_way: dict[tuple[int, Hashable], tuple[threading.Lock, int]] = {}
_of_thread = threading.local()

# A thread that is computing a value never waits. Others wait at most this long, and then compute
# the value a second time, in case the computing thread waits for them.
_PATIENCE_SECONDS = 60.0


def compute_once(table: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Return `table[key]`, computing it in the first thread that needs it while others wait.

    Args:
      table: the values computed so far, which is read without a lock.
      key: the key of the value.
      make: computes the value; called without a lock. An error propagates to the caller, and the
        next thread computes the value again.
    """
    value = table.get(key)
    if value is not None:
        return value
    name = (id(table), key)
    thread = threading.get_ident()
    making = getattr(_of_thread, "making", 0)
    held = threading.Lock()
    held.acquire()
    # An interrupt may come between any two lines, and even while its cleaning up is under way. What
    # that leaves is replaced, at once by the same thread, by others when they have waited for it.
    try:
        while True:
            with _lock:
                value = table.get(key)
                if value is not None:
                    return value
                other, owner = _under_way.get(name, (held, thread))
                if other is held or (owner == thread and not making):
                    _under_way[name] = held, thread
                    break
            if making or not other.acquire(timeout=_PATIENCE_SECONDS):
                break
            other.release()
        _of_thread.making = making + 1
        value = table[key] = make()
    finally:
        _of_thread.making = making
        with _lock:
            if not making or _under_way.get(name, (held, thread))[1] == thread:
                _under_way.pop(name, None)
        held.release()
    return value
