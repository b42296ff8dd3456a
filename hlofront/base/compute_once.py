"""Making a thing once, though several threads ask for it at the same time."""

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_lock = threading.Lock()
_under_way: dict[tuple[int, Hashable], threading.Event] = {}
_of_thread = threading.local()

# A thread that is making something never waits. Others wait this long at most, and then make the
# thing a second time: it may be that what makes it waits for them.
_PATIENCE_SECONDS = 60.0


def compute_once(table: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Return `table[key]`, which the first thread that needs it computes while others wait.

    Args:
      table: what keeps the things; read without a lock.
      make: called without arguments and without a lock. If it raises, the error goes to its
        caller, and the next thread tries.
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
            event = _under_way.get(name)
            ours = event is None
            if event is None:
                event = _under_way[name] = threading.Event()
        if ours or making or not event.wait(_PATIENCE_SECONDS):
            break
    _of_thread.making = making + 1
    try:
        value = table[key] = make()
    finally:
        _of_thread.making = making
        if ours:
            with _lock:
                del _under_way[name]
            event.set()
    return value
