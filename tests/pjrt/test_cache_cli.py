"""`python -m hlofront cache`: what it shows, what it finds, what it removes, how it exits."""

import hashlib
import io
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import time

import numpy as np
import pytest

import hlofront as jax
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


def put(store, i, name, size=100, seconds=0.02, age=0, file="", line=0, **key):
    about = {"name": name, "platform": "cpu", "compile_seconds": seconds}
    if file:
        about.update(file=file, line=line)
    fields = {
        "key": json.dumps({"name": name, **key}).encode(),
        "about": json.dumps(about).encode(),
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
    assert "  \\x1b[2Jevil\\x0aline \\ud800  " in text


def test_no_file_steers_the_terminal(store, capsys):
    hostile = "\x1b]0;owned\x07\x9b2J\u202e\n"
    shown = "\\x1b]0;owned\\x07\\x9b2J\\u202e\\x0a"
    for i, value in ((1, "a"), (2, "b")):
        put(store, i, hostile, file=hostile, **{hostile: hostile + value, "age": 3})
    code, text = run("why", digest_of(1), "--dir", store.folder)
    assert code == 0
    assert text.count(shown) == 5, "the name, the file, the field and its two values"
    file_of(store, digest_of(1)).write_bytes(b"")
    renamed = Store(f"{store.folder}{hostile}")
    os.rename(store.folder, renamed.folder)
    for action in ("ls", "why", "verify", "gc", "clear"):
        wanted = [hostile, "--all"] if action == "why" else []
        text += run(action, *wanted, "--dir", renamed.folder)[1]
    text += capsys.readouterr().err
    assert not set("\x1b\x07\x9b\u202e") & set(text)


@pytest.mark.parametrize("moment", [-86400.0, 0.0, 4e9])
def test_times_of_any_clock(store, moment):
    put(store, 1, "f")
    os.utime(file_of(store), (moment, moment))
    assert run("ls", "--dir", store.folder)[0] == 0
    assert run_json("ls", "--dir", store.folder)[0] == 0


# ---- why ---------------------------------------------------------------------------------------


def test_why_says_which_fields_differ_between_the_entries_of_a_name(filled):
    code, text = run("why", "jit_step", "--all", "--dir", filled.folder)
    assert code == 0
    assert text.splitlines() == [
        f"jit_step: 3 entries in {filled.folder}, last used just now",
        "They differ in 3 of 4 fields:",
        "  flags",
        "    (not there)    2 entries",
        "    --a    1 entry",
        "  jaxlib",
        "    0.10.2    2 entries",
        "    0.11.0    1 entry",
        "  x",
        "    f32[9,128]    2 entries",
        "    f32[8,128]    1 entry",
    ]
    assert run("why", "step", "--all", "--dir", filled.folder)[1] == text


def test_why_compares_the_functions_of_one_name_by_their_files(store):
    for i, size in enumerate((3, 4, 5)):
        for file in ("a.py", "b.py"):
            program = f"{i}{ord(file[0])}" * 32
            put(store, f"{i}{file}", "step", file=f"/{file}", x=f"f32[{size}]", program=program)
    put(store, "c", "step", x="f32[]", program="c" * 64)
    put(store, "d", "step", x="f32[5]", program="d" * 64, file="/b.py", line=7, age=-5)
    put(store, "e", "step", x="f32[5]", program="e" * 64, file="/b.py", line=9, age=-3)
    text = run("why", "step", "--all", "--dir", store.folder)[1]
    of_b, *others = text.split("\n\n")
    assert of_b.splitlines() == [
        f"step of /b.py: 5 entries in {store.folder}, last used just now",
        "They differ in 2 of 3 fields:",
        "  x",
        "    f32[5]    3 entries",
        "    f32[4]    1 entry",
        "    f32[3]    1 entry",
        "  program: 5 different ones, by the function's code or the constants in it",
        "Their functions begin at 2 lines of the file: 7, 9",
    ]
    of_a, of_none = sorted(others)
    assert of_a.startswith(f"step of /a.py: 3 entries in {store.folder}")
    assert "  program: differs with them" in of_a
    assert of_none.startswith(f"step: 1 entry in {store.folder}")
    assert not re.search("[0-9a-f]{12}", text.replace(store.folder, "")), "no digests are shown"
    stores = run_json("why", "step", "--dir", store.folder)[1]
    assert {each["file"]: len(each["entries"]) for each in stores} == {
        "/b.py": 5,
        "/a.py": 3,
        "": 1,
    }
    digest = hashlib.sha256(b"0a.py").hexdigest()
    (compared,) = run_json("why", digest, "--dir", store.folder)[1]
    assert {each["about"]["file"] for each in compared["entries"]} == {"/a.py"}


def test_why_prints_a_few_lines_of_many_entries(store):
    for i in range(30):
        put(store, i, "f", x=f"f32[{i}]", program=f"{i:064x}", hlofront=f"0.1 {i % 2}{7:031x}")
    lines = run("why", "f", "--all", "--dir", store.folder)[1].splitlines()
    assert len(lines) == 12
    assert "    0.1 00000000    15 entries" in lines
    assert "    and 26 more values" in lines
    for i in range(2):
        put(store, 50 + i, "alike", x=f"{i:032x}", y=f"y {i:032x}")
    assert f"    y {1:032x}    1 entry" in run("why", "alike", "--all", "--dir", store.folder)[1]
    for i in range(30):
        put(store, 100 + i, "f", file=f"/{i}.py")
    text = run("why", "f", "--all", "--dir", store.folder)[1]
    assert text.endswith("and of 23 more files, which --json lists\n")
    assert len(run_json("why", "f", "--dir", store.folder)[1]) == 31


def test_why_of_functions_that_were_compiled(tmp_path):
    folder = tmp_path / "cache"
    (tmp_path / "a.py").write_text("def step(x):\n    return x + 17.25\n")
    (tmp_path / "b.py").write_text("\ndef step(x):\n    return x - 17.25\n")
    with options["hlofront_cache_dir"](str(folder)):
        for name in ("a", "b"):
            step = jax.jit(runpy.run_path(str(tmp_path / f"{name}.py"))["step"])
            for size in (2, 3):
                step(np.ones(size, np.float32))
    stores = run_json("why", "step", "--dir", folder)[1]
    found = {each["file"]: [entry["about"]["line"] for entry in each["entries"]] for each in stores}
    assert found == {str(tmp_path / "a.py"): [1, 1], str(tmp_path / "b.py"): [2, 2]}
    assert all(set(each["differing"]) == {"arguments", "program"} for each in stores)


def test_why_says_in_one_sentence_what_is_new_in_the_last_program(store):
    for i, sizes in enumerate(("3", "4"), 1):
        types = f"float32[{sizes},2], float32[], int32[7]"
        put(store, i, "step", file="/a.py", line=3, arguments=types, program=str(i) * 64, age=-i)
    put(store, 3, "step", file="/b.py", arguments="float32[9]", flags="--b", age=500)
    folder = ["--dir", store.folder]
    assert run("why", "step", *folder)[1].splitlines() == [
        "step of /a.py, last used just now, differs from the most similar of 1 other entry by "
        "argument 1: float32[3,2] -> float32[4,2].",
        "Others have the name, too: step of /b.py (1 entry). To choose one: cache why b.py:step",
    ]
    assert run("why", "b.py:step", *folder)[1].startswith("step of /b.py: 1 entry in")
    put(store, 4, "step", file="/b.py", arguments="float32[9], float32[]", flags="--c", age=-4)
    assert run("why", "b.py:step", *folder)[1].strip() == (
        "step of /b.py, last used just now, differs from the most similar of 1 other entry by "
        "arguments: float32[9] -> float32[9], float32[]; flags: --b -> --c."
    )


def test_why_says_that_the_code_has_changed(store):
    for i, line in enumerate((3, 8), 1):
        put(store, i, "step", file="/a.py", line=line, program=str(i) * 64, age=-i)
    text = run("why", "step", "--dir", store.folder)[1]
    assert text.endswith(
        "by the function's code or the constants in it, which began at line 3 and begins at 8.\n"
    )


def test_why_finds_a_program_by_a_part_of_its_name(filled, capsys):
    code, text = run("why", "_STE", "--all", "--dir", filled.folder)
    assert (code, text) == run("why", "jit_step", "--all", "--dir", filled.folder)
    put(filled, 4, "jit_stepper", x="f32[]")
    assert run("why", "_ste", "--all", "--dir", filled.folder)[0] == 2
    message = "2 names have '_ste' in them: jit_step, jit_stepper; choose one"
    assert message in capsys.readouterr().err
    assert run("why", "step", "--all", "--dir", filled.folder)[1] == text, (
        "the whole name comes first"
    )


def test_why_with_a_digest_compares_with_the_nearest(filled):
    code, (store,) = run_json("why", digest_of(1)[:8], "--dir", filled.folder)
    assert code == 0
    assert [each["digest"] for each in store["entries"]] == [digest_of(1), digest_of(2)]
    assert store["differing"] == {"x": {digest_of(1): "f32[8,128]", digest_of(2): "f32[9,128]"}}
    assert store["same"] == {"jaxlib": "0.10.2", "name": "jit_step"}


def test_why_with_one_entry_and_with_equal_ones(filled):
    code, text = run("why", "add", "--all", "--dir", filled.folder)
    assert code == 0
    assert text.endswith("no other to compare it with. Its key:\n  name: add\n  x: f32[]\n")
    put(filled, 5, "add", x="f32[]")
    assert "All of their 2 fields agree" in run("why", "add", "--all", "--dir", filled.folder)[1]


def test_long_values_are_shown_from_where_they_differ(store):
    long = "x" * 500
    put(store, 1, "f", options=long + "one" + long)
    put(store, 2, "f", options=long + "two")
    text = run("why", "f", "--all", "--dir", store.folder)[1]
    assert f"…{'x' * 16}one{'x' * 53}…" in text
    assert f"…{'x' * 16}two  " in text


def test_why_of_what_is_not_there(filled, capsys):
    assert run("why", "jit_stop", "--all", "--dir", filled.folder)[0] == 2
    assert "no entry has the name or digest 'jit_stop': did you mean jit_step?" in (
        capsys.readouterr().err
    )
    for i in range(10, 40):
        put(filled, i, "many", x=str(i))
    assert run("why", "", "--all", "--dir", filled.folder)[0] == 2
    assert "digests start with ''" in capsys.readouterr().err


def test_why_leaves_out_the_damaged_and_exits_with_1(filled):
    file_of(filled, digest_of(3)).write_bytes(b"")
    code, text = run("why", "jit_step", "--all", "--dir", filled.folder)
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
    assert "1 entry verified" in capsys.readouterr().err


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
