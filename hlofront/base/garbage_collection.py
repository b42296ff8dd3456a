"""Blocks without Python's garbage collector, which would walk all that an import makes."""

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def collection_paused() -> Generator[None]:
    """Pause the collection of garbage in a block that makes many objects that stay.

    An import makes classes and functions that are never dropped; walking them after every 700 new
    objects would make the import of hlofront noticeably slower. At the end all objects count as
    old, as if they had survived the collections, so that the next collection of young ones does not
    walk them either. Where objects are frozen, which they then would no longer be, new ones stay
    young: Python 3.12 starts with some hundred frozen objects of its own. If the program has
    disabled the collector, the block changes nothing.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            # Frozen objects that are thawed belong to the oldest generation, without a walk.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
