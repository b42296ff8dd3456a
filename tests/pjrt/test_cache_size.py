"""All entries of the cache on disk: its size, clocks that go back, listings, where it is."""

import errno
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from hlofront.base.config import config, options
from hlofront.pjrt import configured_stores
from hlofront.pjrt.cache_file import pack
from hlofront.pjrt.cache_store import Store
from tests.pjrt.cache_tools import (
    KEY,
    ONE,
    digest_of,
    fields_for,
    file_of,
    names_in,
    posix,
)

# ---- size, use and clocks ----------------------------------------------------------------------


def set_age(store, digest, seconds):
    moment = time.time() - seconds
    os.utime(file_of(store, digest), (moment, moment))


def age(store, digest):
    return time.time() - file_of(store, digest).stat().st_mtime


@pytest.mark.parametrize("hours", [2, 24 * 365 * 50, -2, -24 * 365 * 50])
def test_a_use_is_marked_once_an_hour_whatever_the_clock_was(store, hours):
    store.put(ONE, fields_for())
    set_age(store, ONE, 1800)
    assert store.get(ONE, KEY) == fields_for()
    assert age(store, ONE) > 1700
    set_age(store, ONE, hours * 3600)
    assert store.get(ONE, KEY) == fields_for()
    assert abs(age(store, ONE)) < 100


def test_a_use_that_cannot_be_marked_is_a_hit(store, monkeypatch):
    store.put(ONE, fields_for())
    set_age(store, ONE, 7200)
    monkeypatch.setattr(os, "utime", lambda *_: (_ for _ in ()).throw(OSError(errno.EROFS, "no")))
    assert store.get(ONE, KEY) == fields_for()


def filled(folder, count, size=10_000):
    unbounded = Store(folder)
    for i in range(count):
        unbounded.put(digest_of(i), fields_for(size=size))
        set_age(unbounded, digest_of(i), (count - i) * 60)
    return unbounded


def size_of(folder):
    return sum(path.stat().st_size for path in folder.glob("*.xla"))


def stored_indices(store, count):
    return [i for i in range(count) if file_of(store, digest_of(i)).exists()]


def test_the_least_recently_used_go_first(folder, heard):
    filled(folder, 10)
    store = Store(folder, 100_000)
    set_age(store, digest_of(0), 7200)
    assert store.get(digest_of(0), KEY)  # Used now, so the next ones go.
    assert store.put(digest_of(10), fields_for(size=10_000))
    assert stored_indices(store, 11) == [0, 5, 6, 7, 8, 9, 10]
    assert size_of(folder) <= 80_000
    assert heard == ["/hlofront/cache/evicted"]


def test_the_size_is_kept_while_it_grows(folder):
    store = Store(folder, 100_000)
    for i in range(60):
        assert store.put(digest_of(i), fields_for(size=3_000))
        assert size_of(folder) <= 100_000
    assert stored_indices(store, 60)[-1] == 59


@pytest.fixture
def scans(monkeypatch):
    found = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (found.append(path), real(path))[1])
    return found


def test_the_folder_is_looked_at_rarely(folder, monkeypatch, scans):
    store = Store(folder, 10_000_000)
    for i in range(50):
        store.put(digest_of(i), fields_for())
    assert len(scans) == 1
    # What other processes write is seen after a share of the limit, or ten minutes.
    for i in range(6):
        store.put(digest_of(i), fields_for(size=100_000))
    assert len(scans) == 2
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic() + 601: now)
    store.put(digest_of(0), fields_for())
    assert len(scans) == 3


def a_folder_of_that_name(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "scanned"),
    [
        (lambda path: None, False),
        (lambda path: os.utime(path, (time.time() - 700,) * 2), True),
        (lambda path: os.utime(path, (time.time() + 700,) * 2), True),
        (lambda path: path.write_bytes(b"many"), True),
        (lambda path: path.write_bytes(b""), True),
        (lambda path: path.write_bytes(b"100001"), True),
        (lambda path: path.unlink(), True),
        (a_folder_of_that_name, True),
    ],
)
def test_a_process_believes_what_another_has_just_found(folder, scans, spoil, scanned):
    filled(folder, 3)
    scans.clear()
    Store(folder, 100_000).put(ONE, fields_for())
    assert len(scans) == 1
    spoil(folder / ".scanned")
    store = Store(folder, 100_000)
    assert store.put(ONE, fields_for())
    assert len(scans) == 1 + scanned
    # It counts on from there.
    for i in range(9):
        assert store.put(digest_of(100 + i), fields_for(size=10_000))
    assert size_of(folder) <= 100_000
    store.clear()
    assert [name for name in os.listdir(folder) if name != ".scanned"] == []


def test_an_entry_larger_than_the_cache_is_not_kept(folder):
    filled(folder, 3)
    store = Store(folder, 50_000)
    assert not store.put(ONE[::-1], fields_for(size=60_000))
    assert stored_indices(store, 3) == [0, 1, 2]
    assert not Store(folder, 0).put(ONE, fields_for())


def test_after_the_clock_was_put_back_what_is_new_stays(folder):
    filled(folder, 10)
    for i in range(8):
        set_age(Store(folder), digest_of(i), -86400 * (10 - i))  # From before the clock went back.
    store = Store(folder, 100_000)
    assert store.put(digest_of(10), fields_for(size=10_000))
    kept = stored_indices(store, 11)
    assert {8, 9, 10} <= set(kept) and len(kept) == 7
    assert all(store.get(digest_of(i), KEY) for i in kept)


def test_what_was_just_written_is_not_evicted_even_if_its_time_is_old(folder, monkeypatch):
    filled(folder, 10)
    store = Store(folder, 100_000)
    real = os.replace

    def replace_and_age(source, target):
        real(source, target)
        os.utime(target, (0, 0))

    monkeypatch.setattr(os, "replace", replace_and_age)
    assert store.put(digest_of(10), fields_for(size=10_000))
    assert 10 in stored_indices(store, 11)


def test_two_that_evict_at_once(folder, monkeypatch):
    filled(folder, 12)
    first, second = Store(folder, 100_000), Store(folder, 100_000)
    real = os.unlink

    def unlink_and_let_the_other(path, **kwargs):
        monkeypatch.setattr(os, "unlink", real)
        second.gc()
        real(path, **kwargs)

    monkeypatch.setattr(os, "unlink", unlink_and_let_the_other)
    first.gc()
    # The other was in the middle of the first, and neither took more than the limit asks for.
    assert stored_indices(first, 12) == [5, 6, 7, 8, 9, 10, 11]
    barrier = threading.Barrier(4)

    def at_once(store):
        barrier.wait()
        store.gc()

    filled(folder, 12)
    threads = [threading.Thread(target=at_once, args=(Store(folder, 100_000),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 5 <= len(stored_indices(first, 12)) <= 7
    assert all(first.get(digest_of(i), KEY) for i in stored_indices(first, 12))


def test_gc_removes_what_killed_writers_left_and_nothing_of_others(folder):
    store = filled(folder, 2)
    for name, seconds in (("old", 7200), ("young", 60), ("ahead", -7200)):
        path = folder / f".writing-{name}"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - seconds,) * 2)
    (folder / "notes.txt").write_text("mine")
    (folder / "model.xla").write_text("mine")
    (folder / "jit_f-abc-cache").write_text("of jax")
    assert store.gc() == (0, 0, 2, 0)
    assert (folder / ".writing-young").exists()
    assert store.clear() == (2, 2 * len(pack(fields_for(size=10_000))), 1, 0)
    assert names_in(store) == ["jit_f-abc-cache", "model.xla", "notes.txt"]


def test_clear_empties_and_writing_goes_on(store):
    for i in range(3):
        store.put(digest_of(i), fields_for())
    file_of(store, digest_of(0)).write_bytes(b"damaged")
    store.get(digest_of(0), KEY)
    removed = store.clear()
    assert (removed.entries, removed.damaged) == (2, 1)
    assert removed.bytes == 2 * len(pack(fields_for()))
    assert list(store.entries()) == []
    assert store.put(ONE, fields_for())
    assert store.get(ONE, KEY) == fields_for()


# ---- all entries -------------------------------------------------------------------------------


def test_entries_say_what_they_are(store):
    store.put(ONE, fields_for(platform="cpu", compile_seconds=0.25))
    (entry,) = store.entries()
    assert (entry.digest, entry.name, entry.size) == (ONE, "f", file_of(store).stat().st_size)
    assert entry.key == {"name": "f", "x": "f32[2]"}
    assert entry.about == {"name": "f", "platform": "cpu", "compile_seconds": 0.25}
    assert abs(entry.last_used - time.time()) < 60
    assert entry.problem is None and not entry.damaged


def test_fields_far_into_a_file_are_found(store):
    fields = {"executable": bytes(200_000), "key": KEY, "about": b'{"name": "f"}'}
    store.put(ONE, fields)
    (entry,) = store.entries()
    assert entry.name == "f" and entry.key["x"] == "f32[2]"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"key": b"[1]"}, "has a field 'key' that is no JSON object"),
        ({"key": b"{"}, "has a field 'key' that is no JSON object"),
        ({"key": b"\xff"}, "has a field 'key' that is no JSON object"),
        ({"key": b'{"a": 1}'}, "has a field 'key' with values other than strings"),
        ({"key": b"{}", "about": b"3"}, "has a field 'about' that is no JSON object"),
        ({"key": b"[" * 100_000}, "has a field 'key' that is no JSON object"),
    ],
)
def test_fields_that_are_not_what_they_should_be(store, fields, problem):
    store.put(ONE, fields)
    assert [each.problem for each in store.entries()] == [problem]
    assert [each.damaged for each in store.verify()] == [True]
    assert names_in(store) == ["damaged"]


def test_verify_finds_what_a_listing_does_not(store, heard):
    for i in range(5):
        store.put(digest_of(i), fields_for(size=1000))
    damaged = bytearray(file_of(store, digest_of(3)).read_bytes())
    damaged[-500] ^= 1
    file_of(store, digest_of(3)).write_bytes(damaged)
    assert not any(each.damaged for each in store.entries())
    (found,) = [each for each in store.verify() if each.damaged]
    assert found.digest == digest_of(3) and "cut off or changed" in found.problem
    assert not any(each.damaged for each in store.verify())
    assert stored_indices(store, 5) == [0, 1, 2, 4]
    assert len(os.listdir(store.damaged_folder)) == 1
    assert heard == ["/hlofront/cache/damaged"]


def keyed(store, i, **key):
    store.put(digest_of(i), fields_for(json.dumps({"name": "f", **key}).encode()))


def test_the_nearest_entry_differs_in_the_fewest_fields(store):
    assert store.nearest({"name": "f"}) is None
    keyed(store, 1, x="f32[2]", y="f32[3]", jaxlib="1")
    keyed(store, 2, x="f32[2]", y="f32[4]", jaxlib="1")
    store.put(digest_of(3), fields_for(b'{"name":"g","x":"f32[9]","y":"f32[4]","jaxlib":"1"}'))
    store.put(digest_of(4), {"key": b"not json"})
    file_of(store, digest_of(5)).write_bytes(b"foreign")
    entry, fields = store.nearest({"name": "f", "x": "f32[9]", "y": "f32[4]", "jaxlib": "1"})
    assert (entry.digest, fields) == (digest_of(2), ["x"])
    entry, fields = store.nearest({"name": "f", "x": "f32[2]", "y": "f32[3]", "flags": "a"})
    assert (entry.digest, fields) == (digest_of(1), ["flags", "jaxlib"])
    assert store.nearest({"name": "h"}) is None
    assert store.nearest({"x": "f32[2]"}, name="f") is not None
    of_file = fields_for(b'{"name":"f","x":"f32[8]","y":"f32[8]","jaxlib":"2"}', file="/a.py")
    store.put(digest_of(6), of_file)
    key = {"name": "f", "x": "f32[2]", "y": "f32[3]", "jaxlib": "1"}
    assert store.nearest(key, file="/a.py").entry.digest == digest_of(6)
    assert store.nearest(key, file="/b.py").entry.digest == digest_of(1)


# ---- where they are ----------------------------------------------------------------------------


@pytest.fixture
def no_environment(monkeypatch):
    before = {name: options[name].cell.get_global() for name in _OPTIONS}
    for name in _OPTIONS:
        config.update(name, options[name].default)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    yield
    for name, value in before.items():
        config.update(name, value)


_OPTIONS = (
    "hlofront_cache hlofront_cache_dir hlofront_cache_max_size jax_enable_compilation_cache "
    "jax_compilation_cache_dir jax_compilation_cache_max_size"
).split()


@posix
def test_where_the_small_store_is(no_environment, tmp_path, monkeypatch):
    monkeypatch.setattr(configured_stores, "_MACOS", False)
    monkeypatch.setenv("HOME", str(tmp_path))
    small = configured_stores.small_store()
    assert small.folder == f"{tmp_path}/.cache/hlofront/executables"
    assert small.max_bytes == 256 * 1024 * 1024
    assert configured_stores.small_store() is small
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert configured_stores.small_store() is small
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert configured_stores.small_store().folder == "/xdg/hlofront/executables"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(configured_stores, "_MACOS", True)
    configured_stores.reset_cache()
    assert (
        configured_stores.small_store().folder == f"{tmp_path}/Library/Caches/hlofront/executables"
    )
    for home in ("", "/", "/nonexistent/home", "relative"):
        monkeypatch.setenv("HOME", home)
        assert configured_stores.small_store() is None


def test_a_changed_option_takes_effect_at_once(no_environment, tmp_path, monkeypatch):
    config.update("hlofront_cache_dir", str(tmp_path / "a"))
    config.update("hlofront_cache_max_size", 5000)
    small = configured_stores.small_store()
    assert (small.folder, small.max_bytes) == (str(tmp_path / "a"), 5000)
    config.update("hlofront_cache", False)
    assert configured_stores.small_store() is None
    config.update("hlofront_cache", True)
    assert configured_stores.small_store() is small
    # A relative one is where the process is now.
    config.update("hlofront_cache_dir", "here")
    monkeypatch.chdir(tmp_path)
    assert configured_stores.small_store().folder == str(tmp_path / "here")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    assert configured_stores.small_store().folder == str(tmp_path / "b" / "here")


def test_the_store_of_everything_is_where_jax_has_it(no_environment, tmp_path):
    assert configured_stores.whole_store() is None
    config.update("jax_compilation_cache_dir", str(tmp_path))
    config.update("hlofront_cache", False)
    whole = configured_stores.whole_store()
    assert (whole.folder, whole.max_bytes) == (str(tmp_path), -1)
    config.update("jax_compilation_cache_max_size", 10)
    assert configured_stores.whole_store().max_bytes == 10
    config.update("jax_enable_compilation_cache", False)
    assert configured_stores.whole_store() is None
    config.update("jax_enable_compilation_cache", True)
    config.update("jax_compilation_cache_dir", "")
    assert configured_stores.whole_store() is None


def test_the_environment_turns_it_off(tmp_path):
    code = "from hlofront.pjrt.configured_stores import *; print(small_store(), whole_store())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "HLOFRONT_CACHE": "off",
            "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
            "JAX_COMPILATION_CACHE_MAX_SIZE": "77",
        },
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"None <Store {tmp_path}, up to 77 bytes>", done.stderr
