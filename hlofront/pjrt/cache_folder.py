"""Files in the disk cache's folder: permission checks, reading, writing and removal."""

import contextlib
import errno
import os
import stat
import threading
import time

from hlofront.base.named_tuple import NamedTuple
from hlofront.pjrt import cache_file
from hlofront.pjrt.cache_file import DamagedEntry

ENDING = ".xla"
TEMPORARY = ".writing-"
SCANNED = ".scanned"  # Its text is the entries' total size when it was written.
DAMAGED = "damaged"
_KEPT_DAMAGED = 20
_WINDOWS = os.name == "nt"
# Do not follow links, nor block on a pipe that has replaced an entry.
_SAFE: int = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
_READ: int = os.O_RDONLY | _SAFE | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def refusal(folder: str) -> str | None:
    """Return why a folder must not be used as a cache, in a sentence with the remedy, or None.

    Raises:
      FileNotFoundError: if the folder does not exist.
    """
    if "://" in folder:
        return f"{folder} is an address: executables are kept in folders only, so name a folder"
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        return f"{folder} cannot be looked at ({error.strerror}): name another folder"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder: name another one, or move it away"
    if _WINDOWS:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return (
            f"{folder} belongs to user {status.st_uid} and this process is user {os.geteuid()}: "
            "what is kept there runs as native code with your rights, so name a folder of your own"
        )
    if status.st_mode & _OTHERS_WRITE:
        return (
            f"others can write to {folder} (mode {stat.S_IMODE(status.st_mode):04o}), and what is "
            f"kept there runs as native code with your rights: run `chmod go-w {folder}`"
        )
    return None


def create(folder: str) -> None:
    """Create a folder and its parents, accessible only to the owner."""
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    for parent in reversed(missing):
        # Another process may create it concurrently.
        with contextlib.suppress(FileExistsError):
            os.mkdir(parent, 0o700)


# ---- reading -----------------------------------------------------------------------------------


class Status(NamedTuple):
    """The size, modification time and inode of an entry's file."""

    inode: int
    size: int
    modified: float


class Unfit(DamagedEntry):
    """A DamagedEntry with the inode of its file, so that only that file is set aside."""

    def __init__(self, reason: str, inode: int | None):
        super().__init__(reason)
        self.inode = inode


def read(path: str) -> tuple[dict[str, bytes], Status]:
    """Read a file of the cache; return the verified fields of its entry and the file's status.

    Raises:
      FileNotFoundError: if there is no file.
      Unfit: if the file is not a complete entry, or was not written by hlofront.
      NewerEntry: if a newer hlofront has written it.
      OSError: if the file cannot be read.
    """
    descriptor, status = _open(path)
    try:
        data = os.read(descriptor, min(status.size, cache_file.HEAD))
        if len(data) < status.size:
            # A large file that is not an entry is not read to its end.
            cache_file.locate(data, status.size)
            parts = [data]
            remaining = status.size - len(data)
            while remaining > 0 and (part := os.read(descriptor, remaining)):
                parts.append(part)
                remaining -= len(part)
            data = b"".join(parts)
        return cache_file.unpack(data), status
    except cache_file.NewerEntry:
        raise
    except DamagedEntry as error:
        raise Unfit(error.reason, status.inode) from None
    finally:
        os.close(descriptor)


def read_some(path: str, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the named fields of the entry in a file, without verifying the checksum.

    Raises: the errors of `read`.
    """
    descriptor, status = _open(path)
    try:
        head = os.read(descriptor, min(status.size, cache_file.HEAD))
        spans = cache_file.locate(head, status.size)
        fields: dict[str, bytes] = {}
        for name in names:
            if name in spans:
                start, stop = spans[name]
                if stop > len(head):
                    os.lseek(descriptor, start, os.SEEK_SET)
                    fields[name] = os.read(descriptor, stop - start)
                else:
                    fields[name] = head[start:stop]
        return fields
    except cache_file.NewerEntry:
        raise
    except DamagedEntry as error:
        raise Unfit(error.reason, status.inode) from None
    finally:
        os.close(descriptor)


def read_start(path: str, length: int) -> tuple[bytes, Status]:
    """Return the first `length` bytes of a file of the cache, unparsed, and the file's status.

    Raises: the errors of `read`.
    """
    descriptor, status = _open(path)
    try:
        return os.read(descriptor, length), status
    finally:
        os.close(descriptor)


def _open(path: str) -> tuple[int, Status]:
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR) or (
            isinstance(error, PermissionError) and os.path.isdir(path)
        ):
            raise Unfit("is not a regular file", None) from None
        raise
    status = os.fstat(descriptor)
    reason = None
    if not stat.S_ISREG(status.st_mode):
        reason = "is not a regular file"
    elif not _WINDOWS and status.st_uid not in (os.geteuid(), 0):
        reason = f"belongs to another user ({status.st_uid})"
    elif not _WINDOWS and status.st_mode & _OTHERS_WRITE:
        reason = f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    if reason is not None:
        os.close(descriptor)
        raise Unfit(reason, status.st_ino)
    return descriptor, Status(status.st_ino, status.st_size, status.st_mtime)


# ---- writing -----------------------------------------------------------------------------------


def write(path: str, data: bytes) -> None:
    """Write a file atomically: a reader sees either the old content or the new one.

    Raises:
      OSError: if the file cannot be written; no partial file is left.
    """
    unique = f"{os.getpid()}-{threading.get_ident()}-{os.urandom(6).hex()}"
    temporary = os.path.join(os.path.dirname(path), TEMPORARY + unique)
    descriptor = os.open(temporary, _WRITE, 0o600)
    try:
        try:
            remaining = memoryview(data)
            while remaining:
                written = os.write(descriptor, remaining)
                if not written:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temporary)
                remaining = remaining[written:]
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def create_anew(path: str, seconds: float) -> bool:
    """Create an empty file; return whether it did not exist, or is older than some seconds.

    Raises:
      OSError: if the file cannot be created.
    """
    for _ in range(2):
        try:
            os.close(os.open(path, _WRITE, 0o600))
            return True
        except FileExistsError:
            try:
                age = time.time() - os.stat(path).st_mtime
            except FileNotFoundError:
                continue
            if abs(age) <= seconds:
                return False
            remove(path)
    return False


def remove(path: str) -> bool:
    """Remove a file; return whether this call removed it."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def remove_whole(path: str) -> bool:
    """Remove a file, or a folder with its content; return whether nothing is left."""
    if not os.path.isdir(path) or os.path.islink(path):
        return remove(path)
    try:
        with os.scandir(path) as listing:
            inside = [file.path for file in listing]
        for inner in inside:
            remove_whole(inner)
        os.rmdir(path)
    except OSError:
        return False
    return True


def set_aside(folder: str, path: str, inode: int | None) -> str | None:
    """Move a damaged file to the folder of damaged files, for inspection.

    Args:
      folder: the cache's folder.
      path: the path of the damaged file.
      inode: the inode of the damaged file. A file that has replaced it stays.

    Returns:
      The new path; None if it was removed, replaced by another process, or not moved.
    """
    damaged_folder = os.path.join(folder, DAMAGED)
    name = os.path.basename(path).removesuffix(ENDING)
    new_path = os.path.join(damaged_folder, f"{name}.{time.time_ns():020d}{ENDING}")
    try:
        if inode is not None and os.lstat(path).st_ino != inode:
            return None
        create(damaged_folder)
        os.rename(path, new_path)
    except FileNotFoundError:
        return None  # Another process has moved it.
    except OSError:
        # The disk may be full. Remove the file, so that it is not read again.
        remove_whole(path)
        return None
    prune_damaged(folder)
    return new_path


def prune_damaged(folder: str, most: int = _KEPT_DAMAGED) -> int:
    """Remove all but the newest damaged files; return how many were removed."""
    damaged_folder = os.path.join(folder, DAMAGED)
    try:
        names = [name for name in os.listdir(damaged_folder) if name.endswith(ENDING)]
    except OSError:
        return 0
    names.sort(key=_when_set_aside)
    oldest = names[: max(0, len(names) - most)]
    return sum(remove_whole(os.path.join(damaged_folder, name)) for name in oldest)


def _when_set_aside(name: str) -> str:
    return name.removesuffix(ENDING).rpartition(".")[2]
