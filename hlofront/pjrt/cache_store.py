"""The disk store of executables: a folder of entries that is bounded and tolerates disk errors.

It depends only on bytes and the fields of an entry, so that it can be read, listed, verified and
emptied without a compiler or a device. Two fields have a meaning here: "key", a JSON object of
strings that two compilations must agree on; and "about", a JSON object for users.
"""

import contextlib
import errno
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, cast

from hlofront.base.events import record_event
from hlofront.base.named_tuple import NamedTuple
from hlofront.pjrt import cache_folder
from hlofront.pjrt.cache_file import DamagedEntry, NewerEntry, pack
from hlofront.pjrt.cache_folder import DAMAGED, ENDING, SCANNED, TEMPORARY, Unfit

logger = logging.getLogger(__name__)

_HOUR = 3600.0
_RETRY_SECONDS = 60.0
_RESCAN_SECONDS = 600.0
_EVICT_TO = 0.8
# Other processes write, too: rescan after writing this share of the limit.
_RESCAN_SHARE = 0.05
# A strict pattern, so that no unrelated file is removed.
_DIGEST = re.compile(r"[0-9a-f]{32,128}")
_LONG_DIGEST = re.compile(r"\b[0-9a-f]{16,}\b")
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)

# (folder, warning) pairs that this process has already printed.
_said: set[tuple[str, str]] = set()


def abridged(value: str) -> str:
    """Return the value of a key's field with the first eight digits of each digest in it."""
    return _LONG_DIGEST.sub(lambda match: match[0][:8], value)


def _warn_once(folder: str, about: str, message: str, *args: object) -> None:
    said = (folder, about) in _said
    _said.add((folder, about))
    logger.log(logging.DEBUG if said else logging.WARNING, message, *args)


class Entry(NamedTuple):
    """A cache entry without its executable."""

    digest: str
    path: str
    size: int
    last_used: float
    """The time of the last use in seconds since the epoch, to within an hour."""
    key: dict[str, str]
    about: dict[str, Any]
    problem: str | None = None
    """The fault of a damaged entry, in words that follow "it"."""
    damaged: bool = False
    """Whether the entry is damaged; one of a newer hlofront has a problem and is not damaged."""

    @property
    def name(self) -> str:
        """The program's name."""
        return str(self.key.get("name") or self.about.get("name") or "")

    @property
    def file(self) -> str:
        """The file that defines the program's function; empty if the entry does not record it."""
        return str(self.about.get("file") or "")

    def differing(self, key_fields: Mapping[str, str]) -> list[str]:
        """Return the names of the key's fields that differ from those of another key."""
        names = self.key.keys() | key_fields.keys()
        return sorted(name for name in names if self.key.get(name) != key_fields.get(name))


class NearestEntry(NamedTuple):
    """The entry with the key most similar to a missed one, and the fields that differ."""

    entry: Entry
    differing: list[str]

    def distance(self, file: str) -> tuple[bool, int]:
        """Return a key that sorts entries by their similarity to a function of a file."""
        return self.entry.file != file, len(self.differing)


class Removed(NamedTuple):
    """The number of files and bytes that a clean-up removed."""

    entries: int
    bytes: int
    temporaries: int
    damaged: int


class _EntryFile(NamedTuple):
    digest: str
    path: str
    size: int
    modified: float
    inode: int | None


class Store:
    """A folder of cache entries, shared by any number of threads and processes.

    Everything that is read is verified, and disk errors never reach the caller: an unusable folder
    acts as an empty one, with one warning per process.

    Args:
      folder: the folder of the entries, created on the first write, accessible only to its owner.
      max_bytes: the size limit, beyond which the least recently used entries are evicted; -1: none.
      raises_errors: whether an OSError of reading or writing an entry reaches the caller anyway.
    """

    def __init__(
        self, folder: str | os.PathLike[str], max_bytes: int = -1, raises_errors: bool = False
    ):
        folder = os.fspath(folder)
        self.folder = folder if "://" in folder else os.path.abspath(folder)
        self.max_bytes = max_bytes
        self._raises_errors = raises_errors
        self._trusted = False
        self._refused: str | None = None
        self._no_writes_until = 0.0
        self._scanning = threading.Lock()
        self._scanned = os.path.join(self.folder, SCANNED)
        self._scanned_at: float | None = None
        self._total = 0
        self._added = 0

    def __repr__(self) -> str:
        limit = "unbounded" if self.max_bytes < 0 else f"up to {self.max_bytes} bytes"
        return f"<Store {self.folder}, {limit}>"

    @property
    def refusal(self) -> str | None:
        """The reason why the folder is refused, or None; None also if it does not exist yet."""
        self._usable()
        return self._refused

    # ---- one entry -----------------------------------------------------------------------------

    def get(self, digest: str, key: bytes) -> dict[str, bytes] | None:
        """Return the fields of the entry with a digest; None if it is missing or damaged.

        Args:
          digest: the name of the entry's file, derived from its key.
          key: the required value of its field "key"; any other value is a miss.
        """
        path = self._path(digest)
        if not self._usable():
            return None
        try:
            fields, status = cache_folder.read(path)
        except FileNotFoundError:
            return None
        except NewerEntry as error:
            logger.debug("%s %s", path, error.reason)
            return None
        except Unfit as error:
            self._set_aside(path, error)
            return None
        except OSError as error:
            if self._raises_errors:
                raise
            _warn_once(self.folder, "read", "hlofront's cache cannot be read: %s", error)
            return None
        if fields.get("key") != key:
            return None
        # Updating the time of last use hourly suffices. The clock may go back, hence abs.
        if abs(time.time() - status.modified) > _HOUR:
            try:
                os.utime(path)
            except OSError as error:
                logger.debug("cannot mark %s as used: %s", path, error)
        return fields

    def put(self, digest: str, fields: Mapping[str, bytes]) -> bool:
        """Write an entry, replacing any of the same digest; return whether it was written."""
        path = self._path(digest)
        if time.monotonic() < self._no_writes_until:
            return False
        data = pack(fields)
        if 0 <= self.max_bytes < len(data):
            logger.debug("%s has %d bytes, over the limit of %r", path, len(data), self)
            return False
        try:
            if not self._write(path, data):
                return False
        except OSError as error:
            if self._raises_errors:
                raise
            self._cannot_write(error)
            return False
        self._added += len(data)
        self._make_room(digest)
        return True

    @contextlib.contextmanager
    def claimed(self, digest: str) -> Generator[bool]:
        """Enter a context in which only one process writes an entry; yield whether it is this one.

        It may not if another process writes the entry, or has written it. A claim whose process was
        killed ends after a minute.
        """
        claim = os.path.join(self.folder, TEMPORARY + digest)
        is_claimed, may_write = False, True
        try:
            if not self._usable() and self._refused is None:
                cache_folder.create(self.folder)
            if os.path.exists(self._path(digest)):
                may_write = False
            else:
                is_claimed = may_write = cache_folder.create_anew(claim, _RETRY_SECONDS)
        except OSError as error:
            # The write that follows meets the same error, and reports it.
            logger.debug("cannot claim %s: %s", claim, error)
        try:
            yield may_write
        finally:
            if is_claimed:
                cache_folder.remove(claim)

    def set_aside(self, digest: str, reason: str) -> None:
        """Move an unusable entry to the folder of damaged ones; `reason` follows "it"."""
        path = self._path(digest)
        if self._usable():
            self._set_aside(path, Unfit(reason.removeprefix("it "), None))

    def _write(self, path: str, data: bytes) -> bool:
        for again in (False, True):
            if not self._usable():
                if self._refused is not None:
                    return False
                cache_folder.create(self.folder)
                if not self._usable():
                    return False
            try:
                cache_folder.write(path, data)
                return True
            except FileNotFoundError:
                # Another process has cleared the cache: the folder or our temporary file is gone.
                self._trusted = False
                if again:
                    raise
            except OSError:
                if again or not os.path.isdir(path):
                    raise
                self._set_aside(path, Unfit("is not a regular file", None))
        return False

    def _cannot_write(self, error: OSError) -> None:
        if error.errno in _READ_ONLY and os.name == "posix":
            self._no_writes_until = float("inf")
            until = "this process will not write to it again"
        else:
            self._no_writes_until = time.monotonic() + _RETRY_SECONDS
            until = "it will be tried again after a minute"
        _warn_once(
            self.folder,
            "write",
            "hlofront's cache in %s cannot be written (%s): programs are compiled as without it, "
            "and %s",
            self.folder,
            error.strerror or error,
            until,
        )

    def _path(self, digest: str) -> str:
        if _DIGEST.fullmatch(digest) is None:
            raise ValueError(
                f"a digest is 32 to 128 hexadecimal digits in lower case, and becomes the name of "
                f"a file: got {digest!r}"
            )
        return os.path.join(self.folder, digest + ENDING)

    def _usable(self) -> bool:
        if self._trusted:
            return True
        if self._refused is not None:
            return False
        try:
            refused = cache_folder.refusal(self.folder)
        except FileNotFoundError:
            return False
        if refused is None:
            self._trusted = True
            return True
        self._refused = refused
        record_event("/hlofront/cache/refused")
        _warn_once(self.folder, "refused", "hlofront's cache is not used: %s", refused)
        return False

    def _set_aside(self, path: str, error: Unfit) -> None:
        there = cache_folder.set_aside(self.folder, path, error.inode)
        if there:
            outcome = f"set aside as {there}"
        else:
            outcome = "left there" if os.path.lexists(path) else "removed"
        record_event("/hlofront/cache/damaged", path=path, reason=error.reason)
        _warn_once(
            "",
            "damaged",
            "an entry of hlofront's cache is damaged: %s %s. It was %s, and its program is "
            "recompiled. Only the first is reported; `python -m hlofront cache verify` finds the "
            "rest",
            path,
            error.reason,
            outcome,
        )

    # ---- size ----------------------------------------------------------------------------------

    def _make_room(self, new_digest: str) -> None:
        """Evict entries if the folder is over its limit, which is checked only after some writes.

        The entry with the digest `new_digest`, which was just written, stays.
        """
        if not self._scanning.acquire(blocking=False):
            return  # Another thread is already evicting.
        try:
            if self._scanned_at is None and self.max_bytes >= 0:
                self._learn_total()
            if self._scanned_at is not None:
                if self.max_bytes < 0:
                    return
                fresh = time.monotonic() - self._scanned_at < _RESCAN_SECONDS
                if (
                    fresh
                    and self._added <= self.max_bytes * _RESCAN_SHARE
                    and self._total + self._added <= self.max_bytes
                ):
                    return
            self._clean(new_digest)
        finally:
            self._scanning.release()

    def _clean(self, new_digest: str = "") -> Removed:
        now = time.time()
        temporaries = 0
        entry_files: list[_EntryFile] = []
        for file in self._files(entries=self.max_bytes >= 0):
            name = os.path.basename(file.path)
            if not name.startswith(TEMPORARY):
                entry_files.append(file)
            elif abs(now - file.modified) > _HOUR:
                # The process that wrote it was killed.
                temporaries += cache_folder.remove(file.path)
        before = total = sum(entry_file.size for entry_file in entry_files)
        entries = 0
        if 0 <= self.max_bytes < total:
            # A future time means that the clock was set back: such entries are the oldest.
            entry_files.sort(key=lambda each: (each.modified <= now + _HOUR, each.modified))
            for entry_file in entry_files:
                if total <= self.max_bytes * _EVICT_TO:
                    break
                if entry_file.digest == new_digest:
                    continue
                # An entry that another process removed counts as well.
                entries += cache_folder.remove(entry_file.path)
                total -= entry_file.size
            if entries:
                record_event("/hlofront/cache/evicted", entries=entries)
        self._scanned_at = time.monotonic()
        self._total = total
        self._added = 0
        if self.max_bytes >= 0:
            try:
                cache_folder.write(self._scanned, str(total).encode())
            except OSError as error:
                logger.debug("cannot say in %s how large it is: %s", self.folder, error)
        return Removed(entries, before - total, temporaries, 0)

    def _learn_total(self) -> None:
        """Update the total size from the scan of another process, if that is recent."""
        try:
            text, status = cache_folder.read_start(self._scanned, 20)
            total = int(text)
        except (OSError, DamagedEntry, ValueError):
            return
        if abs(time.time() - status.modified) < _RESCAN_SECONDS:
            self._scanned_at = time.monotonic()
            self._total = total

    def _files(self, entries: bool = True, temporaries: bool = True) -> Iterator[_EntryFile]:
        """Yield the files of entries and temporary files, without reading them."""
        try:
            listing = os.scandir(self.folder)
        except OSError:
            return
        with listing:
            for file in listing:
                name = file.name
                digest = name.removesuffix(ENDING)
                if name.startswith(TEMPORARY):
                    if not temporaries:
                        continue
                elif not entries or digest == name or _DIGEST.fullmatch(digest) is None:
                    continue
                try:
                    status = file.stat(follow_symlinks=False)
                except OSError:
                    continue  # Another process has removed it.
                # Windows has no inodes here.
                inode = status.st_ino or None
                yield _EntryFile(digest, file.path, status.st_size, status.st_mtime, inode)

    def gc(self) -> Removed:
        """Evict entries beyond the folder's limit, and remove temporary files of dead processes."""
        if not self._usable():
            return Removed(0, 0, 0, 0)
        with self._scanning:
            removed = self._clean()
        return removed._replace(damaged=cache_folder.prune_damaged(self.folder))

    def clear(self) -> Removed:
        """Remove every entry, whole or damaged, and every temporary file; and nothing else."""
        if not self._usable():
            return Removed(0, 0, 0, 0)
        entries = size = temporaries = 0
        with self._scanning:
            for file in self._files():
                gone = cache_folder.remove_whole(file.path)
                if os.path.basename(file.path).startswith(TEMPORARY):
                    temporaries += gone
                elif gone:
                    entries += 1
                    size += file.size
            cache_folder.remove(self._scanned)
            self._scanned_at = None
            self._total = self._added = 0
        damaged = cache_folder.prune_damaged(self.folder, 0)
        return Removed(entries, size, temporaries, damaged)

    # ---- all entries ---------------------------------------------------------------------------

    def _entry_files(self) -> list[_EntryFile]:
        return list(self._files(temporaries=False)) if self._usable() else []

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in arbitrary order; their checksums are not verified."""
        for entry_file in self._entry_files():
            entry = _summary(
                entry_file, lambda path: cache_folder.read_some(path, ("key", "about"))
            )
            if entry is not None:
                yield entry

    def verify(self) -> Iterator[Entry]:
        """Verify and yield every entry, after setting it aside if it is damaged."""
        for entry_file in self._entry_files():
            entry = _summary(entry_file, lambda path: cache_folder.read(path)[0])
            if entry is None:
                continue
            if entry.damaged:
                cache_folder.set_aside(self.folder, entry.path, entry_file.inode)
                record_event("/hlofront/cache/damaged", path=entry.path, reason=entry.problem or "")
            yield entry

    def nearest(
        self,
        key_fields: Mapping[str, str],
        name: str | None = None,
        limit: int = 2000,
        file: str = "",
    ) -> NearestEntry | None:
        """Return the entry of the same program whose key differs in the fewest fields, or None.

        Args:
          key_fields: the key that was missed.
          name: the program's name; by default the key's field "name".
          limit: the maximum number of entries to read, most recently used first.
          file: the file of the program's function; functions of one name in other files come last.
        """
        expected = key_fields.get("name", "") if name is None else name
        newest_first = sorted(self._entry_files(), key=lambda each: -each.modified)
        nearest: NearestEntry | None = None
        for each in newest_first[:limit]:
            entry = _summary(each, lambda path: cache_folder.read_some(path, ("key", "about")))
            if entry is None or entry.problem is not None or entry.name != expected:
                continue
            differing = entry.differing(key_fields)
            candidate = NearestEntry(entry, differing)
            nearest = min(nearest or candidate, candidate, key=lambda each: each.distance(file))
            if nearest.distance(file) <= (False, 1):
                break  # No entry can be more similar.
        return nearest

    @property
    def damaged_folder(self) -> str:
        """The folder that damaged entries are moved to."""
        return os.path.join(self.folder, DAMAGED)


def _summary(file: _EntryFile, read: Callable[[str], Mapping[str, bytes]]) -> Entry | None:
    """Return the entry in a file without its executable, or None if the file is gone."""
    described = (file.digest, file.path, file.size, file.modified)
    try:
        fields = read(file.path)
        key = _object(fields, "key")
        if not all(isinstance(value, str) for value in key.values()):
            raise DamagedEntry("has a field 'key' with values other than strings")
        about = _object(fields, "about")
    except FileNotFoundError:
        return None
    except NewerEntry as error:
        return Entry(*described, {}, {}, error.reason)
    except DamagedEntry as error:
        return Entry(*described, {}, {}, error.reason, True)
    except OSError as error:
        return Entry(*described, {}, {}, f"cannot be read: {error.strerror}")
    return Entry(*described, key, about)


def _object(fields: Mapping[str, bytes], name: str) -> dict[str, Any]:
    if name not in fields:
        return {}
    try:
        value: object = json.loads(fields[name])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise DamagedEntry(f"has a field {name!r} that is no JSON object")
    return cast("dict[str, Any]", value)
