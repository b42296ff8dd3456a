"""`python -m hlofront cache`: what it shows, what it finds, what it removes, how it exits."""

import io
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from hlofront.base.config import config, options
from hlofront.cli import cache
from hlofront.cli.main import main
from hlofront.pjrt.cache_store import Store
from tests.pjrt.cache_tools import digest_of, file_of, posix

ROOT = pathlib.Path(__file__).parents[2]


def run(*argv):
    out = io.StringIO()
    return main(["cache", *map(str, argv)], out), out.getvalue()


def run_json(*argv):
    code, text = run(*argv, "--json")
    return code, json.loads(text)["stores"]


def put(store, i, name, size=100, seconds=0.02, age=0, **key):
    fields = {
        "key": json.dumps({"name": name, **key}).encode(),
        "about": json.dumps({"name": name, "platform": "cpu", "compile_seconds": seconds}).encode(),
        "executable": bytes(size),
    }
    assert store.put(digest_of(i), fields)
    moment = time.time() - age
    os.utime(file_of(store, digest_of(i)), (moment, moment))


@pytest.fixture
def filled(store):
    put(store, 1, "jit_step", x="f32[8,128]", jaxlib="0.10.2", size=5000, age=7300)
    put(store, 2, "jit_step", x="f32[9,128]", jaxlib="0.10.2", age=200)
    put(store, 3, "jit_step", x="f32[9,128]", jaxlib="0.11.0", flags="--a", seconds=75.5)
    put(store, 4, "add", x="f32[]", age=3 * 86400)
    return store


@pytest.fixture(autouse=True)
def no_other_cache(tmp_path_factory):
    before = {
        name: options[name].cell.get_global()
        for name in ("hlofront_cache_dir", "hlofront_cache", "jax_compilation_cache_dir")
    }
    config.update("hlofront_cache", True)
    config.update("hlofront_cache_dir", str(tmp_path_factory.mktemp("none") / "yet"))
    config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        config.update(name, value)


# ---- ls ----------------------------------------------------------------------------------------


def test_ls_is_a_table_with_the_last_used_first(filled):
    code, text = run("ls", "--dir", filled.folder)
    assert code == 0
    sizes = {i: file_of(filled, digest_of(i)).stat().st_size for i in range(1, 5)}
    heading, *rows = text.splitlines()
    assert heading == f"{filled.folder}: 4 entries, {sum(sizes.values()) / 1024:.1f} KiB"
    assert [row.split() for row in rows] == [
        ["name", "size", "last", "used", "saves", "platform", "digest"],
        ["jit_step", str(sizes[3]), "B", "just", "now", "75.5", "s", "cpu", digest_of(3)[:12]],
        ["jit_step", str(sizes[2]), "B", *"3 minutes ago 20 ms cpu".split(), digest_of(2)[:12]],
        ["jit_step", "5.1", "KiB", *"2 hours ago 20 ms cpu".split(), digest_of(1)[:12]],
        ["add", str(sizes[4]), "B", *"3 days ago 20 ms cpu".split(), digest_of(4)[:12]],
    ]
    # Columns end, or begin, under one another.
    assert len({row.index(digest_of(i)[:12]) for row, i in zip(rows[1:], (3, 2, 1, 4))}) == 1
    assert len({row.index("B  ") for row in rows[1:]}) == 1


def test_ls_for_programs(filled):
    code, (store,) = run_json("ls", "--dir", filled.folder)
    assert code == 0
    assert (store["folder"], store["max_bytes"]) == (filled.folder, -1)
    first = store["entries"][0]
    assert first["key"] == {
        "name": "jit_step",
        "x": "f32[9,128]",
        "jaxlib": "0.11.0",
        "flags": "--a",
    }
    assert first["about"]["compile_seconds"] == 75.5
    assert (first["digest"], first["damaged"], first["problem"]) == (digest_of(3), False, None)
    assert first["last_used"].endswith("+00:00")


def test_ls_marks_the_damaged_and_exits_with_1(filled, capsys):
    file_of(filled, digest_of(4)).write_bytes(b"foreign")
    code, text = run("ls", "--dir", filled.folder)
    assert code == 1
    assert "(damaged)" in text
    assert f"{file_of(filled, digest_of(4))} is not an entry" in capsys.readouterr().err
    assert run_json("ls", "--dir", filled.folder)[0] == 1


def test_both_stores_are_shown_each_with_its_limit(filled, tmp_path):
    small = Store(options["hlofront_cache_dir"].value)
    put(small, 9, "sin")
    config.update("jax_compilation_cache_dir", filled.folder)
    code, text = run("ls")
    assert code == 0
    assert f"{small.folder}: 1 entry, 270 B of 256 MiB" in text
    assert f"{filled.folder}: 4 entries" in text
    # --dir of one that is set up has its limit.
    assert run_json("ls", "--dir", small.folder)[1][0]["max_bytes"] == 1 << 28
    config.update("jax_compilation_cache_dir", small.folder)
    assert len(run_json("ls")[1]) == 1


def test_an_empty_cache_is_fine():
    code, text = run("ls")
    assert code == 0
    assert "0 entries, 0 B of 256 MiB" in text
    assert run("verify")[0] == run("gc")[0] == run("clear")[0] == 0


def test_names_do_not_steer_the_terminal(store):
    put(store, 1, "\x1b[2Jevil\nline \ud800")
    text = run("ls", "--dir", store.folder)[1]
    assert "\x1b" not in text and "[2Jevil line" in text


@pytest.mark.parametrize("moment", [-86400.0, 0.0, 4e9])
def test_times_of_any_clock(store, moment):
    put(store, 1, "f")
    os.utime(file_of(store), (moment, moment))
    assert run("ls", "--dir", store.folder)[0] == 0
    assert run_json("ls", "--dir", store.folder)[0] == 0


# ---- why ---------------------------------------------------------------------------------------


def test_why_says_which_fields_differ_between_the_entries_of_a_name(filled):
    code, text = run("why", "jit_step", "--dir", filled.folder)
    assert code == 0
    d1, d2, d3 = (digest_of(i)[:12] for i in (1, 2, 3))
    assert text.splitlines()[0] == f"jit_step: 3 entries in {filled.folder}"
    assert text.splitlines()[5:] == [
        "They differ in 3 of 4 fields:",
        "  flags",
        f"    --a    {d3}",
        f"    (not there)    {d2} {d1}",
        "  jaxlib",
        f"    0.11.0    {d3}",
        f"    0.10.2    {d2} {d1}",
        "  x",
        f"    f32[9,128]    {d3} {d2}",
        f"    f32[8,128]    {d1}",
    ]
    assert run("why", "step", "--dir", filled.folder)[1] == text


def test_why_finds_a_program_by_a_part_of_its_name(filled, capsys):
    code, text = run("why", "_STE", "--dir", filled.folder)
    assert (code, text) == run("why", "jit_step", "--dir", filled.folder)
    put(filled, 4, "jit_stepper", x="f32[]")
    assert run("why", "_ste", "--dir", filled.folder)[0] == 2
    message = "2 names have '_ste' in them: jit_step, jit_stepper; give one"
    assert message in capsys.readouterr().err
    assert run("why", "step", "--dir", filled.folder)[1] == text, "the whole name comes first"


def test_why_with_a_digest_compares_with_the_nearest(filled):
    code, (store,) = run_json("why", digest_of(1)[:8], "--dir", filled.folder)
    assert code == 0
    assert [each["digest"] for each in store["entries"]] == [digest_of(1), digest_of(2)]
    assert store["differing"] == {"x": {digest_of(1): "f32[8,128]", digest_of(2): "f32[9,128]"}}
    assert store["same"] == {"jaxlib": "0.10.2", "name": "jit_step"}


def test_why_with_one_entry_and_with_equal_ones(filled):
    code, text = run("why", "add", "--dir", filled.folder)
    assert code == 0
    assert text.endswith("no other to compare it with. Its key:\n  name: add\n  x: f32[]\n")
    put(filled, 5, "add", x="f32[]")
    assert "All of their 2 fields agree" in run("why", "add", "--dir", filled.folder)[1]


def test_long_values_are_shown_from_where_they_differ(store):
    long = "x" * 500
    put(store, 1, "f", options=long + "one" + long)
    put(store, 2, "f", options=long + "two")
    text = run("why", "f", "--dir", store.folder)[1]
    assert f"…{'x' * 16}one{'x' * 53}…" in text
    assert f"…{'x' * 16}two  " in text


def test_why_of_what_is_not_there(filled, capsys):
    assert run("why", "jit_stop", "--dir", filled.folder)[0] == 2
    assert "nothing of the name or digest 'jit_stop' is kept: did you mean jit_step?" in (
        capsys.readouterr().err
    )
    for i in range(10, 40):
        put(filled, i, "many", x=str(i))
    assert run("why", "", "--dir", filled.folder)[0] == 2
    assert "digests start with ''" in capsys.readouterr().err


def test_why_leaves_out_the_damaged_and_exits_with_1(filled):
    file_of(filled, digest_of(3)).write_bytes(b"")
    code, text = run("why", "jit_step", "--dir", filled.folder)
    assert code == 1
    assert "2 entries" in text and "They differ in 1 of 3 fields" in text


# ---- verify, gc, clear -------------------------------------------------------------------------


def flip(path):
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)


def test_verify_sets_the_damaged_aside_and_says_so_once(filled):
    assert run("verify", "--dir", filled.folder) == (
        0,
        f"{filled.folder}: 4 entries read, all whole\n",
    )
    flip(file_of(filled))
    code, text = run("verify", "--dir", filled.folder)
    assert code == 1
    first, second = text.splitlines()
    assert first.startswith(f"{file_of(filled)} was cut off or changed")
    assert second == (
        f"{filled.folder}: 4 entries read, 1 damaged, set aside in {filled.damaged_folder}"
    )
    assert run("verify", "--dir", filled.folder)[0] == 0
    flip(file_of(filled, digest_of(2)))
    code, (store,) = run_json("verify", "--dir", filled.folder)
    assert code == 1 and store["checked"] == 3
    assert [each["digest"] for each in store["damaged"]] == [digest_of(2)]


def test_gc_keeps_to_the_size(filled):
    (pathlib.Path(filled.folder) / ".writing-1").write_bytes(b"half")
    os.utime(pathlib.Path(filled.folder) / ".writing-1", (0, 0))
    code, text = run("gc", "--dir", filled.folder)
    assert code == 0
    assert text == f"{filled.folder}: removed 0 entries (0 B), 1 file of interrupted writes\n"
    code, (store,) = run_json("gc", "--max-size", "1K", "--dir", filled.folder)
    assert code == 0
    assert store["max_bytes"] == 1024
    assert store["removed"]["entries"] == 2  # The two that were used least recently.
    assert {each.digest for each in filled.entries()} == {digest_of(2), digest_of(3)}


def test_clear_removes_entries_only(filled):
    notes = pathlib.Path(filled.folder) / "notes.txt"
    notes.write_text("mine")
    code, text = run("clear", "--dir", filled.folder)
    assert code == 0 and "removed 4 entries (6.0 KiB)" in text
    assert os.listdir(filled.folder) == ["notes.txt"]


@pytest.mark.parametrize(
    ("text", "size"),
    [("10", 10), ("2k", 2048), ("1.5M", 3 << 19), ("1GiB", 1 << 30), ("3MB", 3 << 20)],
)
def test_sizes(text, size):
    assert cache._size_in_bytes(text) == size


# ---- trouble -----------------------------------------------------------------------------------


def test_trouble_is_said_and_exits_with_2(tmp_path, capsys):
    assert run("ls", "--dir", tmp_path / "nowhere")[0] == 2
    assert "hlofront cache: there is no folder" in capsys.readouterr().err
    config.update("hlofront_cache", False)
    assert run("ls")[0] == 2
    assert "HLOFRONT_CACHE is off" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        run("gc", "--max-size", "lots")
    assert caught.value.code == 2
    assert "a size is a number of bytes" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("action", [["ls"], ["why", "f"], ["verify"], ["gc"], ["clear"]])
def test_a_refused_folder_is_trouble(filled, action, capsys):
    os.chmod(filled.folder, 0o777)
    assert run(*action, "--dir", filled.folder)[0] == 2
    assert f"`chmod go-w {filled.folder}`" in capsys.readouterr().err
    assert file_of(filled).exists()


@pytest.mark.parametrize("action", ["ls", "why", "verify", "gc", "clear"])
def test_each_has_help_with_an_example(action, capsys):
    with pytest.raises(SystemExit) as caught:
        run(action, "--help")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert f"  python -m hlofront cache {action}" in text
    assert "--json" in text and "--dir DIR" in text


def test_what_takes_long_says_how_far_it_is(filled, monkeypatch, capsys):
    clock = iter(range(0, 1000, 3))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert run("verify", "--dir", filled.folder)[0] == 0
    assert "1 entries verified" in capsys.readouterr().err


def test_it_needs_neither_mlir_nor_a_client(filled):
    code = f"""
import sys
from hlofront.cli.main import main
assert main(["cache", "verify", "--dir", {filled.folder!r}]) == 0
assert main(["cache", "why", "add", "--dir", {filled.folder!r}]) == 0
from hlofront.pjrt.clients import clients
assert not clients()
compilers = ("jaxlib.mlir", "hlofront.lowering", "hlofront.bridge.mlir")
loaded = [name for name in sys.modules if name.startswith(compilers)]
assert not loaded, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "4 entries read, all whole" in done.stdout
