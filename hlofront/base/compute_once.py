"""Computing a shared value once when several threads need it at the same time."""

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_lock = threading.Lock()
# The values that are being computed, each with a lock that is held until it is available.
_under_way: dict[tuple[int, Hashable], threading.Lock] = {}
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
    making = getattr(_of_thread, "making", 0)
    while True:
        with _lock:
            value = table.get(key)
            if value is not None:
                return value
            held = _under_way.get(name)
            ours = held is None
            if held is None:
                held = _under_way[name] = threading.Lock()
                held.acquire()
        if ours or making or not held.acquire(timeout=_PATIENCE_SECONDS):
            break
        held.release()
    _of_thread.making = making + 1
    try:
        value = table[key] = make()
    finally:
        _of_thread.making = making
        if ours:
            with _lock:
                del _under_way[name]
            held.release()
    return value
