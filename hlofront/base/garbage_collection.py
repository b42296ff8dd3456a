"""Blocks without Python's garbage collector, which would visit everything that an import makes."""

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def collection_paused() -> Generator[None]:
    """Pause garbage collection in a block that makes many long-lived objects.

    An import makes classes and functions that are never dropped; visiting them after every 700 new
    objects would make the import of hlofront noticeably slower. At the end all objects count as
    old, as if they had survived the collections, so the next collection of young ones does not
    visit them either. If there are frozen objects, which this would thaw, new ones stay young:
    Python 3.12 starts with some hundred frozen objects of its own. If the program has disabled the
    collector, the block changes nothing.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            # Thawed objects belong to the oldest generation, without a collection.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
