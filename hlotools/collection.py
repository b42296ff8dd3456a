"""The garbage collector, paused while many objects are made that all stay in use."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Pause the garbage collector, which would often visit all of a module's many objects.

    The result is a context manager and a decorator.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                # The next collection need not visit the new objects: they count as old ones.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
