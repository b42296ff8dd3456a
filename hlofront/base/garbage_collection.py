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
    walk them either. If the program has disabled the collector or frozen objects, the block changes
    nothing.
    """
    if not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Frozen objects that are thawed belong to the oldest generation, without a walk.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
