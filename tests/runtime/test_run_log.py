"""HLOFRONT_LOG: what each process of a run writes of its traces, compilations and cache lookups."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.runtime.compilation import run_log

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "run"
    jax.config.update("hlofront_log", str(folder))
    yield folder
    jax.config.update("hlofront_log", None)


def records(folder, *events):
    read = [
        json.loads(line)
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    return [record for record in read if not events or record["event"] in events]


def run(program, folder, check=True):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HLOFRONT_LOG": str(folder)},
        capture_output=True,
        text=True,
        check=check,
    )


def test_a_compilation_and_why_it_was_repeated(folder):
    @jax.jit
    def logged_step(x):
        return jnp.sin(x) * 3.25

    for size in (3, 4, 4):
        logged_step(jnp.ones(size))
    mine = [record for record in records(folder) if record.get("name") == "logged_step"]
    events = [record["event"] for record in mine]
    assert events.count("first") == events.count("recompile") == 1
    assert events.count("trace") == events.count("lower") == 2
    (again,) = (record for record in mine if record["event"] == "recompile")
    assert again["why"] == "x: f32[3] -> f32[4]"
    line = logged_step.__wrapped__.__code__.co_firstlineno + 5
    assert {record["line"] for record in mine} == {f"{__file__}:{line}"}
    traces = [record for record in mine if record["event"] == "trace"]
    assert [record["arguments"] for record in traces] == ["f32[3]", "f32[4]"]
    assert all(record["seconds"] > 0 and "eager" not in record for record in traces)


def test_programs_are_in_files(folder):
    with options["hlofront_cache"](False):
        jax.jit(lambda x: jnp.cos(x) - 7.125)(jnp.ones(3))
    (compiled,) = (r for r in records(folder, "compile") if r["name"] == "<lambda>")
    programs = folder / "programs"
    assert "stablehlo.cosine" in (programs / f"{compiled['program']}.mlir").read_text()
    hlo = (programs / f"{compiled['program']}.hlo").read_text()
    assert hlo.startswith("HloModule jit__lambda")
    (begin,) = (r for r in records(folder, "compile_begin") if r["name"] == "<lambda>")
    assert begin["time"] <= compiled["time"] and begin["devices"] == 1


def test_lookups_on_disk(folder, tmp_path):
    x = jnp.ones(3)
    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path / "cache")):
        for _ in range(2):
            jax.jit(lambda x: jnp.tan(x) - 7.5)(x)
    mine = [r for r in records(folder, "disk_miss", "disk_hit") if r["name"] == "<lambda>"]
    assert [record["event"] for record in mine] == ["disk_miss", "disk_hit"]
    assert "it has no entry of this name" in mine[0]["why"]
    assert mine[1]["saved"] > 0 and mine[1]["seconds"] > 0
    assert (folder / "programs" / f"{mine[1]['program']}.hlo").is_file()


def test_later_calls_write_nothing(folder):
    step = jax.jit(lambda x: x * 5.5)
    x = jnp.ones(3)
    for _ in range(2):
        step(x)
    before = records(folder)
    for _ in range(100):
        step(x)
    assert records(folder) == before


def test_calls_that_python_answers_are_counted_at_powers_of_two(folder):
    def plain(x):
        return x - 6.5

    x = jnp.ones(3)
    for _ in range(7):
        # Another jitted function of the same one: C++ has no call of it, Python has the program.
        jax.jit(plain, keep_unused=True).lower(x).compile()(x)
        jax.jit(plain)(x)
    log = run_log.current
    counts = [r["count"] for r in records(folder, "memory_hits") if r["name"] == "plain"]
    assert counts and counts == [2**n for n in range(len(counts))]
    log.finish()
    last = [r["count"] for r in records(folder, "memory_hits") if r["name"] == "plain"][-1]
    assert last >= counts[-1] and records(folder)[-1]["event"] == "end"


def test_eager_operations_are_marked(folder):
    _ = jnp.ones((3, 1, 1, 1)) + jnp.ones((1, 1, 1, 5))
    traces = records(folder, "trace")
    assert traces and all(record["eager"] for record in traces)


def test_a_failed_compilation(folder):
    broken = jax.jit(lambda x: x + 8.25, compiler_options={"no_such_flag": 1})
    with pytest.raises(Exception, match="no_such_flag"):
        broken(jnp.ones(3))
    (failed,) = records(folder, "compile_error")
    assert failed["name"] == "<lambda>" and "no_such_flag" in failed["error"]


def test_without_the_option_there_is_no_log():
    assert run_log.current is None
    out = subprocess.run(
        [sys.executable, "-c", "import hlofront, sys; from hlofront.runtime.compilation import "
         "run_log; print(run_log.current)"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    assert out.stdout == "None\n"


def test_a_folder_that_cannot_be_written_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    jax.config.update("hlofront_log", str(tmp_path / "file" / "run"))
    try:
        with pytest.warns(UserWarning, match="cannot be written.*The log ends here"):
            assert jax.jit(lambda x: x + 9.25)(1.0) == 10.25
        assert jax.jit(lambda x: x + 9.5)(1.0) == 10.5
    finally:
        jax.config.update("hlofront_log", None)


def test_a_finalizer_may_compile_while_a_line_is_written(folder, monkeypatch):
    write = os.write
    results = []

    def write_and_compile(file, line):
        monkeypatch.setattr(os, "write", write)
        results.append(jax.jit(lambda x: x + 9.75)(1.0))
        return write(file, line)

    monkeypatch.setattr(os, "write", write_and_compile)
    compiling = threading.Thread(target=lambda: jax.jit(lambda x: x + 9.5)(1.0), daemon=True)
    compiling.start()
    compiling.join(30)
    assert results == [10.75] and len(records(folder, "process")) == 1


STEP = """
import os, signal, sys
import hlofront as jax
step = jax.jit(lambda x: x * 4.75)
step(1.0)
"""


def test_processes_have_files_of_their_own(tmp_path):
    run(STEP, tmp_path)
    forks = """
if os.fork() == 0:
    from hlofront.runtime.compilation import run_log
    run_log.current.record("trace", "in_the_child")
    os._exit(0)
os.wait()
step(2)
"""
    run(STEP + forks, tmp_path)
    files = list(tmp_path.glob("*.jsonl"))
    assert len(files) == 3
    firsts = [json.loads(file.read_text().splitlines()[0]) for file in files]
    assert {first["event"] for first in firsts} == {"process"}
    assert len({first["pid"] for first in firsts}) == 3
    (child,) = (file for file in files if "in_the_child" in file.read_text())
    assert len(child.read_text().splitlines()) == 2
    for file in files:
        ended = json.loads(file.read_text().splitlines()[-1])["event"] == "end"
        assert ended == (file != child)


def test_a_killed_process_leaves_what_it_wrote(tmp_path):
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    killed = run(STEP + kill, tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    events = [record["event"] for record in records(tmp_path)]
    assert {"process", "first", "trace"} <= set(events) and "end" not in events
