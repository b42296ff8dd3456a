"""The stores of executables on disk: of small ones by default, of all on request."""

import functools
import os
import sys

from hlofront.base.config import options
from hlofront.pjrt.cache_store import Store

_on = options["hlofront_cache"]
_folder = options["hlofront_cache_dir"]
_max_bytes = options["hlofront_cache_max_size"]
_raises_errors = options["jax_raise_persistent_cache_errors"]
_whole_on = options["jax_enable_compilation_cache"]
_whole_folder = options["jax_compilation_cache_dir"]
_whole_max_bytes = options["jax_compilation_cache_max_size"]

# One per folder and limit, so that a Store looks at its folder once per process.
_store = functools.lru_cache(maxsize=16)(Store)


def small_store() -> Store | None:
    """Return the store of small executables as the options are now; None if there is none.

    It is in the folder hlofront_cache_dir, by default hlofront/executables in the user's folder for
    caches, and there is none with hlofront_cache off or where the user has no home.
    """
    if not _on.value:
        return None
    folder = _absolute(_folder.value) if _folder.value else default_folder()
    return None if folder is None else _store(folder, _max_bytes.value, _raises_errors.value)


def whole_store() -> Store | None:
    """Return the store of all executables, if jax_compilation_cache_dir names a folder for them."""
    if not _whole_on.value or not _whole_folder.value:
        return None
    return _store(_absolute(_whole_folder.value), _whole_max_bytes.value, _raises_errors.value)


def default_folder() -> str | None:
    """Return the user's folder for small executables, or None if there is no home folder."""
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA", "")
        return os.path.join(caches, "hlofront", "executables") if caches else None
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):  # As that standard says: a relative one does not count.
        home = os.path.expanduser("~")
        # "/" and folders that are not there are the homes of users that have none.
        if home == "/" or not os.path.isabs(home) or not os.path.isdir(home):
            return None
        caches = os.path.join(home, *(("Library", "Caches") if _MACOS else (".cache",)))
    return os.path.join(caches, "hlofront", "executables")


_MACOS = sys.platform == "darwin"


def _absolute(folder: str) -> str:
    # Here, not in Store: a relative folder means another one after a change of directory.
    return folder if "://" in folder else os.path.abspath(os.path.expanduser(folder))
