"""`python -m hlofront log`: a page and sums over what the processes of a run wrote."""

import html
import io
import json
import re

import pytest

from hlofront.cli.main import main
from hlotools.run_log.log_page import log_page
from hlotools.run_log.records import LogError, read_log
from hlotools.run_log.summary import RunSummary

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
HLO = """HloModule jit_step

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %sine = f32[4]{0} sine(%x)
}
"""


def run(*argv):
    out = io.StringIO()
    return main(argv, out), out.getvalue()


def event(kind, time, name="step", **facts):
    return {"event": kind, "time": time, "name": name, "thread": "MainThread",
            "line": "/home/me/train.py:7", **facts}  # fmt: skip


PROCESS = {"event": "process", "time": 100.0, "format": "hlofront.log/1", "pid": 1}
EVENTS = [
    PROCESS,
    event("first", 100.0),
    event("trace", 100.5, seconds=0.5, arguments="f32[4]"),
    event("disk_miss", 100.5, why="step is not in the cache on disk: the nearest entry differs"),
    event("lower", 100.6, seconds=0.1),
    event("compile_begin", 100.6, devices=1),
    event("compile", 102.6, seconds=2.0, program="host-1-00000-step"),
    event("recompile", 103.0, why="x: f32[4] -> f32[5]"),
    event("trace", 103.2, seconds=0.2, arguments="f32[5]"),
    event("disk_hit", 103.3, seconds=0.1, saved=1.6),
    event("recompile", 104.0, why="x: f32[5] -> f32[6]"),
    # One that is traced inside of another counts once.
    event("trace", 104.3, "inner", seconds=0.1),
    event("trace", 104.4, seconds=0.4),
    event("memory_hits", 104.5, count=4),
    event("memory_hits", 104.9, count=6),
    event("trace", 105.0, "add", seconds=0.01, eager=True),
    {"event": "end", "time": 106.0},
]


def write(folder, events=EVENTS, name="host-1.jsonl"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in events))
    return folder


@pytest.fixture
def folder(tmp_path):
    folder = write(tmp_path / "run")
    (folder / "programs").mkdir()
    (folder / "programs" / "host-1-00000-step.hlo").write_text(HLO)
    (folder / "programs" / "host-1-00000-step.mlir").write_text("module {}")
    return folder


def test_sums_in_the_terminal(folder, capsys):
    code, text = run("log", str(folder))
    assert code == 0
    for line in (
        "1 process, 6.00 s from first to last event",
        "1.11 s  tracing, 5 times",
        "2.00 s  XLA's compilation, 1 time",
        "caches: disk 1 hits, 1 misses, 1.50 s saved; memory 6 hits besides those of C++",
        "recompilations: 2 of 1 function",
        "step  2 times, 700.00 ms  train.py:7",
        "1x  x: f32[4] -> f32[5]",
    ):
        assert line in text
    assert re.search(r"2\.00 s  step, compiled  train\.py:7  .*host-1-00000-step\.hlo", text)
    assert f"wrote {folder / 'log.html'}" in capsys.readouterr().err


def test_long_reasons_are_cut_in_the_terminal(tmp_path):
    long = event("recompile", 105.0, why="sharding: " + "P('data',), " * 90)
    summary = RunSummary(read_log(write(tmp_path / "run", [PROCESS, long])))
    assert max(map(len, summary.text().splitlines())) < 220
    assert "more characters" in summary.text()
    assert long["why"] in html.unescape(log_page(summary.run, tmp_path / "log.html"))


def test_the_page_links_to_programs(folder, tmp_path):
    run("log", str(folder))
    page = (folder / "log.html").read_text()
    for suffix in ("html", "hlo", "mlir"):
        assert f'href="programs/host-1-00000-step.{suffix}"' in page
    assert "sine" in (folder / "programs" / "host-1-00000-step.html").read_text()
    assert "x: f32[4] -&gt; f32[5]" in page and "train.py:7" in page
    for heading in ("Stages", "Recompilations", "Slowest compilations", "Caches", "Timeline"):
        assert f"<h2>{heading}</h2>" in page
    assert '<tr class="eager">' in page
    elsewhere = tmp_path / "pages" / "log.html"
    elsewhere.parent.mkdir()
    assert run("log", str(folder), "--html", str(elsewhere), "--pages", "0")[0] == 0
    assert 'href="../run/programs/host-1-00000-step.hlo"' in elsewhere.read_text()


def test_events_as_json(folder):
    code, text = run("log", str(folder), "--json")
    assert code == 0
    assert [each["event"] for each in json.loads(text)] == [each["event"] for each in EVENTS]
    assert not (folder / "log.html").exists()


def test_hostile_texts_are_shown_as_text(tmp_path):
    folder = tmp_path / 'run"><script>'
    events = [{**each, "name": HOSTILE, "line": HOSTILE} for each in EVENTS]
    events += [event("recompile", 105.0, HOSTILE, why=HOSTILE)]
    events += [event("disk_miss", 105.0, why=HOSTILE), event("compile_error", 105, error=HOSTILE)]
    for stem in ("../../etc/passwd", "javascript:alert(1)", HOSTILE, ["list"]):
        events.append(event("compile", 105.5, seconds=1, program=stem))
    page = log_page(read_log(write(folder, [PROCESS, *events], "<b>.jsonl")), folder / "log.html")
    assert "<script" not in page and "<img" not in page and "<b>" not in page
    assert "href" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src 'none'" in page


def test_values_of_other_types_do_no_harm(tmp_path):
    strange = [None, True, "text", -1, 1e400, [1], {"a": 1}, 10**400]
    events = [PROCESS]
    for value in strange:
        for key in ("seconds", "saved", "count", "why", "line", "thread", "program", "arguments"):
            for kind in ("trace", "recompile", "compile", "disk_hit", "disk_miss", "memory_hits"):
                events.append({**event(kind, 101.0), key: value})
    events += [{**event("trace", 1), "time": value} for value in strange]
    events += [{**event("trace", 101.0), "name": value} for value in strange]
    run_records = read_log(write(tmp_path / "run", events))
    assert RunSummary(run_records).text() and log_page(run_records, tmp_path / "log.html")


def test_a_log_that_was_cut_off_loses_one_line(tmp_path):
    folder = write(tmp_path / "run")
    whole = (folder / "host-1.jsonl").read_bytes()
    first = whole.index(b"\n")
    for size in range(first + 1, len(whole)):
        (folder / "host-1.jsonl").write_bytes(whole[:size])
        read = read_log(folder)
        complete = whole[:size].count(b"\n")
        assert len(read.records) in (complete, complete + 1)
        assert sum(read.unreadable.values()) <= 1
        assert RunSummary(read).text()


def test_a_process_that_died_while_it_compiled(tmp_path):
    folder = write(tmp_path / "run", EVENTS[:6])
    log = folder / "host-1.jsonl"
    log.write_text(log.read_text() + '{"event": "compi')
    write(folder, [PROCESS, {"event": "end", "time": 107.0}], "host-2.jsonl")
    code, text = run("log", str(folder))
    assert code == 0
    assert "2 processes" in text
    assert "did not end: the compilation of step  train.py:7" in text
    assert "note: host-1 did not end, or still runs" in text
    assert "note: 1 line of host-1.jsonl cannot be read" in text
    assert "did not end" in (folder / "log.html").read_text()


def test_threads_compile_at_the_same_time(tmp_path):
    events = [
        PROCESS,
        event("recompile", 100.0, "a", why="x"),
        {**event("recompile", 100.1, "b", why="y"), "thread": "other"},
        event("compile", 102.0, "a", seconds=1.5),
        {**event("compile", 102.5, "b", seconds=2.0), "thread": "other"},
    ]
    summary = RunSummary(read_log(write(tmp_path / "run", events)))
    assert {each.name: each.seconds for each in summary.recompiled} == {"a": 1.5, "b": 2.0}
    assert summary.stages["compile"] == pytest.approx(3.5)


def test_errors(tmp_path, capsys):
    assert run("log", str(tmp_path / "absent"))[0] == 2
    assert "is not a folder: run a program with HLOFRONT_LOG=" in capsys.readouterr().err
    assert run("log", str(tmp_path))[0] == 2
    assert "has no log" in capsys.readouterr().err
    newer = write(tmp_path / "newer", [{**PROCESS, "format": "hlofront.log/9"}])
    with pytest.raises(LogError, match=r"has the format 'hlofront\.log/9'"):
        read_log(newer)
    (newer / "host-1.jsonl").write_text("not JSON\n[]\n")
    with pytest.raises(LogError, match="no log that can be read"):
        read_log(newer)
    damaged = write(tmp_path / "damaged")
    (damaged / "programs").mkdir()
    (damaged / "programs" / "host-1-00000-step.hlo").write_text("HloModule x\n\n ENTRY {")
    assert run("log", str(damaged))[0] == 2
    assert "host-1-00000-step.hlo" in capsys.readouterr().err
