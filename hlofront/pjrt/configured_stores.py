"""The disk stores of executables: one of small executables, and an optional one of all."""

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

# One Store per folder and limit, so that it scans its folder once per process.
_store = functools.lru_cache(maxsize=16)(Store)


def small_store() -> Store | None:
    """Return the disk store of small executables that the current options select, or None.

    Its folder is hlofront_cache_dir, by default hlofront/executables in the user's cache folder.
    There is none if hlofront_cache is off or the user has no home.
    """
    if not _on.value:
        return None
    folder = _folder.value
    folder = _absolute(folder) if folder else default_folder()
    return None if folder is None else _store(folder, _max_bytes.value, _raises_errors.value)


def folder_is_named() -> bool:
    """Return whether an option names the folder of a disk store, so that users know about it."""
    return bool(_whole_folder.value or _folder.value)


def whole_store() -> Store | None:
    """Return the disk store of all executables, if jax_compilation_cache_dir names its folder."""
    folder = _whole_folder.value
    if not folder or not _whole_on.value:
        return None
    return _store(_absolute(folder), _whole_max_bytes.value, _raises_errors.value)


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Set the option jax_compilation_cache_dir, which names the folder of all executables.

    Args:
      path: the folder, or its URL.
    """
    _whole_folder.set(os.fspath(path))


def reset_cache() -> None:
    """Forget what is known of the folders of executables: the next use reads them again."""
    _store.cache_clear()
    _folder_in.cache_clear()


def default_folder() -> str | None:
    """Return the user's folder for small executables, or None if there is no home folder."""
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA", "")
        return os.path.join(caches, "hlofront", "executables") if caches else None
    return _folder_in(os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME"))


@functools.lru_cache(maxsize=16)
def _folder_in(caches: str, _: str | None) -> str | None:
    """Return the folder by the values of XDG_CACHE_HOME and HOME."""
    if not os.path.isabs(caches):  # By the XDG standard a relative path is ignored.
        home = os.path.expanduser("~")
        # "/" and missing folders are the homes of users without one.
        if home == "/" or not os.path.isabs(home) or not os.path.isdir(home):
            return None
        caches = os.path.join(home, *(("Library", "Caches") if _MACOS else (".cache",)))
    return os.path.join(caches, "hlofront", "executables")


_MACOS = sys.platform == "darwin"


def _absolute(folder: str) -> str:
    # Resolved here, not in Store, as a relative folder depends on the current directory.
    is_resolved = "://" in folder or os.path.isabs(folder)
    return folder if is_resolved else os.path.abspath(os.path.expanduser(folder))
