"""One entry of the cache on disk: it heals, and no trouble of a disk reaches the user."""

import errno
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

from hlofront.base.config import options
from hlofront.pjrt import cache_folder
from hlofront.pjrt.cache_file import pack
from hlofront.pjrt.cache_store import Store
from hlofront.pjrt.configured_stores import small_store
from tests.pjrt.cache_tools import (
    KEY,
    ONE,
    digest_of,
    fields_for,
    file_of,
    names_in,
    posix,
    warnings_in,
)

WRITERS = pathlib.Path(__file__).with_name("cache_writers.py")


# ---- one entry ---------------------------------------------------------------------------------


def test_what_is_put_is_got_by_this_store_and_another(store):
    assert store.get(ONE, KEY) is None
    assert not os.path.exists(store.folder)  # Looking makes nothing.
    fields = fields_for()
    assert store.put(ONE, fields)
    assert store.get(ONE, KEY) == fields
    assert Store(store.folder).get(ONE, KEY) == fields
    assert names_in(store) == [f"{ONE}.xla"]
    newer = fields_for(size=300_000)
    assert store.put(ONE, newer)
    assert store.get(ONE, KEY) == newer


def test_one_of_several_claims_an_entry_until_it_is_written(store):
    other = Store(store.folder)
    with store.claimed(ONE) as first, other.claimed(ONE) as second:
        assert (first, second) == (True, False)
        with other.claimed(digest_of("other")) as third:
            assert third
    with other.claimed(ONE) as again:  # The first has not written.
        assert again
        other.put(ONE, fields_for())
    with store.claimed(ONE) as late:
        assert not late
    assert names_in(store) == [f"{ONE}.xla"]


def test_a_claim_of_a_killed_process_ends(store):
    os.makedirs(store.folder, mode=0o700)
    claim = pathlib.Path(store.folder, cache_folder.TEMPORARY + ONE)
    claim.touch()
    with store.claimed(ONE) as may_write:
        assert not may_write
    os.utime(claim, (time.time() - 100,) * 2)
    with store.claimed(ONE) as may_write:
        assert may_write
    assert not claim.exists()


def test_a_claim_does_not_hide_errors_of_what_it_is_for(store):
    with pytest.raises(OSError, match="mine"), store.claimed(ONE):
        raise OSError("mine")
    with store.claimed(ONE) as may_write:
        assert may_write


def test_another_key_is_a_miss_and_no_damage(store, caplog):
    store.put(ONE, fields_for())
    assert store.get(ONE, b"{}") is None
    assert store.get(ONE, KEY) is not None
    store.put(ONE, {"about": b"{}"})
    assert store.get(ONE, KEY) is None
    assert names_in(store) == [f"{ONE}.xla"]
    assert not caplog.records


@pytest.mark.parametrize(
    "digest", ["", "x", "../../etc/passwd", ONE.upper(), ONE + "/a", "a" * 200]
)
def test_a_digest_is_no_path(store, digest):
    with pytest.raises(ValueError, match="a digest is 32 to 128 hexadecimal digits"):
        store.get(digest, KEY)
    with pytest.raises(ValueError, match="a digest is"):
        store.put(digest, fields_for())


@posix
def test_folders_and_files_are_for_their_owner_alone(tmp_path):
    store = Store(tmp_path / "a" / "b" / "c")
    before = os.umask(0)
    try:
        store.put(ONE, fields_for())
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/c"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
    assert file_of(store).stat().st_mode & 0o777 == 0o600


def test_threads_share_a_store(store):
    wrong = []

    def work(seed):
        for i in range(20):
            digest = digest_of((seed + i) % 3)
            store.put(digest, fields_for(size=seed * 1000))
            found = store.get(digest, KEY)
            if found is None or set(found) != {"key", "about", "executable"}:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(names_in(store)) == 3


# ---- damage ------------------------------------------------------------------------------------


def test_a_damaged_entry_is_set_aside_once_and_replaced(store, caplog, heard):
    store.put(ONE, fields_for())
    file_of(store).write_bytes(file_of(store).read_bytes()[:-1])
    assert store.get(ONE, KEY) is None
    assert heard == ["/hlofront/cache/damaged"]
    (kept,) = os.listdir(store.damaged_folder)
    assert kept.startswith(ONE)
    (message,) = warnings_in(caplog)
    assert str(file_of(store)) in message and "cut off or changed" in message
    assert f"set aside as {store.damaged_folder}" in message
    # It is gone, without another word; and then it is whole again.
    assert store.get(ONE, KEY) is None
    assert store.put(ONE, fields_for())
    assert store.get(ONE, KEY) == fields_for()
    # The second damage in a process is told to the debug log only.
    file_of(store).write_bytes(b"")
    assert store.get(ONE, KEY) is None
    assert len(warnings_in(caplog)) == 1
    assert len(heard) == 2


def test_every_truncation_heals(store):
    whole = pack(fields_for(size=10))
    store.put(ONE, fields_for(size=10))
    for length in range(0, len(whole), 7):
        file_of(store).write_bytes(whole[:length])
        assert store.get(ONE, KEY) is None
        assert store.put(ONE, fields_for(size=10))
        assert store.get(ONE, KEY) == fields_for(size=10)


def a_folder(path):
    path.mkdir()
    (path / "inside").write_text("something")


def a_pipe(path):
    os.mkfifo(path)


def a_link(path):
    aim = path.with_suffix(".aim")
    aim.write_bytes(pack(fields_for()))
    path.symlink_to(aim)


def a_link_to_nothing(path):
    path.symlink_to(path.with_suffix(".nothing"))


def a_large_foreign_file(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)  # It takes no room, and must not be read.


def one_that_others_can_write(path):
    path.write_bytes(pack(fields_for()))
    path.chmod(0o666)


def one_with_a_long_tail(path):
    path.write_bytes(pack(fields_for()) + bytes(100_000))


@posix
@pytest.mark.parametrize(
    "make",
    [
        a_folder,
        a_pipe,
        a_link,
        a_link_to_nothing,
        a_large_foreign_file,
        one_that_others_can_write,
        one_with_a_long_tail,
    ],
)
def test_what_else_may_lie_in_the_place_of_an_entry(store, make):
    store.put(digest_of(2), fields_for())
    make(file_of(store))
    assert store.get(ONE, KEY) is None
    assert not os.path.lexists(file_of(store))
    assert store.put(ONE, fields_for())
    assert store.get(ONE, KEY) == fields_for()
    # Without a look before the write, too.
    os.unlink(file_of(store))
    for aim in pathlib.Path(store.folder).glob("*.aim"):
        aim.unlink()
    make(file_of(store))
    assert store.put(ONE, fields_for())
    assert store.get(ONE, KEY) == fields_for()


@posix
@pytest.mark.parametrize("make", [a_folder, a_pipe, a_link_to_nothing, a_large_foreign_file])
def test_a_listing_copes_with_anything(store, make):
    store.put(digest_of(2), fields_for())
    make(file_of(store))
    assert [each.damaged for each in sorted(store.entries(), key=lambda e: e.digest != ONE)] == [
        True,
        False,
    ]
    assert [each.problem for each in store.verify() if each.damaged]
    assert [each.damaged for each in store.verify()] == [False]


def test_an_entry_of_a_newer_version_is_a_miss_and_stays(store, caplog):
    store.put(ONE, fields_for())
    body = bytearray(file_of(store).read_bytes()[:-32])
    body[8] = 2
    file_of(store).write_bytes(bytes(body) + hashlib.sha256(body).digest())
    assert store.get(ONE, KEY) is None
    assert [(each.damaged, "newer" in each.problem) for each in store.verify()] == [(False, True)]
    assert names_in(store) == [f"{ONE}.xla"]
    assert not warnings_in(caplog)


def test_only_the_newest_20_damaged_ones_are_kept(store):
    for i in range(25):
        store.put(digest_of(i), fields_for())
        file_of(store, digest_of(i)).write_bytes(b"damaged")
        store.get(digest_of(i), KEY)
    kept = os.listdir(store.damaged_folder)
    assert len(kept) == 20
    assert {name[:64] for name in kept} == {digest_of(i) for i in range(5, 25)}


def test_a_whole_entry_that_another_process_put_there_meanwhile_is_not_set_aside(store):
    store.put(ONE, fields_for())
    damaged = file_of(store).stat().st_ino
    file_of(store).rename(file_of(store).with_suffix(".old"))
    store.put(ONE, fields_for())
    assert cache_folder.set_aside(store.folder, str(file_of(store)), damaged) is None
    assert store.get(ONE, KEY) == fields_for()


def test_a_place_for_damaged_ones_that_is_a_file(store):
    store.put(ONE, fields_for())
    pathlib.Path(store.damaged_folder).write_text("in the way")
    file_of(store).write_bytes(b"damaged")
    assert store.get(ONE, KEY) is None
    assert names_in(store) == ["damaged"]


def test_one_that_cannot_be_loaded_is_set_aside_on_request(store, caplog):
    store.put(ONE, fields_for())
    store.set_aside(ONE, "it cannot be loaded: no such thing")
    assert names_in(store) == ["damaged"]
    assert f"{file_of(store)} cannot be loaded: no such thing" in warnings_in(caplog)[0]
    store.set_aside(ONE, "again")
    assert len(os.listdir(store.damaged_folder)) == 1


# ---- disks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["open", "write", "close", "replace", "mkdir"])
@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES"])
def test_no_trouble_of_writing_reaches_the_caller(store, monkeypatch, caplog, call, number):
    if call != "mkdir":
        store.put(ONE, fields_for())
    with monkeypatch.context() as patched:
        real = getattr(os, call)

        def fail(*args, **kwargs):
            if call == "close":
                real(*args)
            if call == "write":
                real(args[0], args[1][:10])
            raise OSError(getattr(errno, number), "trouble")

        patched.setattr(os, call, fail)
        assert not store.put(ONE, fields_for(size=300))
        assert not store.put(digest_of(2), fields_for())
        assert not Store(store.folder).put(digest_of(2), fields_for())
    (message,) = warnings_in(caplog)
    assert f"{store.folder} cannot be written (trouble)" in message
    if call == "mkdir":
        assert not os.path.exists(store.folder)
    else:
        assert names_in(store) == [f"{ONE}.xla"]
        assert Store(store.folder).get(ONE, KEY) == fields_for()
    for_good = number in ("EROFS", "EACCES")
    assert not store.put(ONE, fields_for())  # Within the minute.
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic() + 61: now)
    assert store.put(ONE, fields_for()) is not for_good


def test_trouble_is_raised_where_that_is_wanted(store, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "trouble")

    store.put(ONE, fields_for())
    with (
        options["jax_raise_persistent_cache_errors"](True),
        options["hlofront_cache"](True),
        options["hlofront_cache_dir"](store.folder),
    ):
        store = small_store()
    with monkeypatch.context() as patched, pytest.raises(OSError, match="trouble"):
        patched.setattr(os, "write", fail)
        store.put(ONE, fields_for(size=300))
    with monkeypatch.context() as patched, pytest.raises(OSError, match="trouble"):
        patched.setattr(os, "read", fail)
        store.get(ONE, KEY)
    assert store.get(ONE, KEY) == fields_for()
    assert store.put(ONE, fields_for(size=300))


def test_an_interrupted_write_leaves_nothing(store, monkeypatch):
    store.put(ONE, fields_for())

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.put(ONE, fields_for(size=300))
    assert names_in(store) == [f"{ONE}.xla"]
    assert store.get(ONE, KEY) == fields_for()


def test_reading_that_fails_is_a_miss_and_one_warning(store, monkeypatch, caplog):
    store.put(ONE, fields_for())
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
        assert store.get(ONE, KEY) is None
        assert store.get(ONE, KEY) is None
    assert len(warnings_in(caplog)) == 1
    assert store.get(ONE, KEY) == fields_for()


def test_a_folder_that_goes_away_is_made_again(store, caplog):
    store.put(ONE, fields_for())
    shutil.rmtree(store.folder)
    assert store.get(ONE, KEY) is None
    assert store.put(ONE, fields_for())
    assert store.get(ONE, KEY) == fields_for()
    assert not caplog.records


def script(*arguments, launcher=()):
    done = subprocess.run(
        [*launcher, sys.executable, "-S", "-E", str(WRITERS), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def own_mounts():
    """What starts a process with mounts of its own, where the system lets us."""
    launcher = ("unshare", "--user", "--map-root-user", "--mount")
    try:
        subprocess.run(
            [*launcher, "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounts of one's own are not allowed here")
    return launcher


@posix
def test_a_limit_on_file_sizes(folder):
    found = script("limited", folder)
    assert found["puts"] == [False] * 6
    assert found["names"] == []
    (message,) = found["heard"]
    assert "tried again after a minute" in message


@posix
def test_a_disk_that_is_really_full(folder, own_mounts):
    found = script("full", folder, launcher=own_mounts)
    assert True in found["puts"] and False in found["puts"]
    assert found["reads"] == found["puts"]
    assert found["later"] is True
    assert len(found["heard"]) == 1
    assert not [name for name in found["names"] if name.startswith(".writing-")]


@posix
def test_a_disk_that_is_really_read_only(folder, own_mounts):
    found = script("read-only", folder, launcher=own_mounts)
    assert found["reads"] == [True, False]
    assert found["puts"] == [False] * 6
    assert len(found["heard"]) == 2
    assert "was left there" in found["heard"][0]
    assert "will not write to it again" in found["heard"][1]


@posix
@pytest.mark.parametrize(("kills", "max_bytes"), [(200, -1), (40, 200_000)])
def test_eight_writers_that_are_killed_as_they_go(folder, kills, max_bytes):
    found = script("kill", folder, kills, max_bytes)
    assert found["by_themselves"] == []
    assert found["wrong"] == 0
    assert found["damaged"] == []
    assert not found["aside"]
    assert found["removed"] == found["left_over"]
    if max_bytes < 0:
        assert found["whole"] == 6
        assert found["left_over"] > 0
    assert all(name.endswith(".xla") or name == ".scanned" for name in found["names"])


# ---- folders that are refused ------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(folder, caplog, heard, mode):
    Store(folder).put(ONE, fields_for())
    folder.chmod(mode)
    store = Store(folder)
    assert store.get(ONE, KEY) is None
    assert not store.put(digest_of(2), fields_for())
    assert list(store.entries()) == [] and list(store.verify()) == []
    assert store.gc().entries == store.clear().entries == 0
    assert Store(folder).get(ONE, KEY) is None
    (message,) = warnings_in(caplog)
    assert f"others can write to {folder} (mode {mode:04o})" in message
    assert f"run `chmod go-w {folder}`" in message
    assert "/hlofront/cache/refused" in heard
    assert names_in(store) == [f"{ONE}.xla"]
    subprocess.run(["chmod", "go-w", folder], check=True)
    assert Store(folder).get(ONE, KEY) == fields_for()


@posix
def test_a_folder_of_another_user_is_refused(folder, caplog, monkeypatch):
    owner = os.geteuid()
    Store(folder).put(ONE, fields_for())
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:
        # What belongs to root is as good as the system itself.
        assert Store(folder).get(ONE, KEY) == fields_for()
        os.chown(folder, 12345, -1)
    assert Store(folder).get(ONE, KEY) is None
    assert not Store(folder).put(ONE, fields_for())
    (message,) = warnings_in(caplog)
    assert f"this process is user {owner + 1}" in message


def test_what_is_no_folder_is_refused(tmp_path, caplog):
    path = tmp_path / "file"
    path.write_text("text")
    for place in (path, path / "below", "gs://bucket/cache"):
        store = Store(place)
        assert store.get(ONE, KEY) is None
        assert not store.put(ONE, fields_for())
        assert store.refusal
    messages = warnings_in(caplog)
    assert "is not a folder: name another one" in messages[0]
    assert "Not a directory" in messages[1]
    assert "gs://bucket/cache is an address" in messages[2]
    assert len(messages) == 3


@posix
def test_a_link_to_a_folder_of_ones_own_is_fine(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert Store(link).put(ONE, fields_for())
    assert Store(folder).get(ONE, KEY) == fields_for()
