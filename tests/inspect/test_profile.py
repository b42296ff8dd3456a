"""`python -m hlofront profile` and `hlotools.profile`: measured time by source line."""

import io
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront import inspect
from hlofront.cli.main import main
from hlofront.inspect import profiling
from hlotools.ir.hlo_parser import parse
from hlotools.profiles.operations import Interval, own_times, program_times
from hlotools.profiles.profile import joined, operations_inside
from hlotools.profiles.xplane import ProfileError, parse_xplane, read_xplane
from tests.inspect.xplanes import PlaneWriter, xspace

ROOT = pathlib.Path(__file__).parents[2]
# What jax 0.10.2 wrote of PROGRAM_OF_JAX.
RECORDED = pathlib.Path(__file__).parent / "texts" / "jax.xplane.pb"
PROGRAM = """
import hlofront as jax
import hlofront.numpy as jnp


@jax.jit
def step(x, w):
    small = jnp.sin(x[0]).sum()
    slow = jnp.linalg.matrix_power(x @ w, 3)
    return jnp.tanh(small) + slow[0, 0]


def example_args():
    return jax.ShapeDtypeStruct((512, 512), "float32"), jax.ShapeDtypeStruct((512, 512), "float32")
"""
PROGRAM_OF_JAX = """
import sys

import jax
import jax.numpy as jnp


@jax.jit
def step(x, w):
    small = jnp.sin(x[0]).sum()

    def body(carry, _):
        return jnp.tanh(carry @ w), carry[0, 0]

    return jax.lax.scan(body, x, None, length=4), small


x = jnp.ones((256, 256))
step(x, x)[0][0].block_until_ready()
with jax.profiler.trace(sys.argv[1]):
    step(x, x)[0][0].block_until_ready()
"""


def run(*argv):
    out = io.StringIO()
    return main(argv, out), out.getvalue()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    return str(path)


# ---- running ------------------------------------------------------------------------------------


def test_the_slow_line_is_the_first_row(file):
    code, text = run("profile", f"{file}:step", "--runs", "3", "--warm-up", "1")
    assert code == 0
    title, head, first, *_ = text.splitlines()
    assert title == "jit_step, mean of 3 runs"
    assert head.split() == ["measured", "share", "GFLOP/s", "GB/s", "runs"]
    assert "model.py:9  slow = jnp.linalg.matrix_power(x @ w, 3)" in first
    assert re.search(r"^wall time: .*, including$", text, re.MULTILINE)
    for title in ("in operations", "between operations", "before and after them"):
        assert title in text


def test_it_tells_how_far_it_is_where_runs_are_long(monkeypatch):
    # Each run takes two seconds by this clock.
    monkeypatch.setattr(profiling.time, "perf_counter", itertools.count(0, 2).__next__)
    told = []
    profiling.profile(jnp.sin, runs=3, warm_ups=1, tell=told.append)(jnp.ones(3))
    assert told == [
        "running sin: warm-up 1 of 1",
        "running sin 3 times",
        "running sin: run 2 of 3",
        "running sin: run 3 of 3",
    ]


def test_figures_as_json(file):
    code, text = run("profile", f"{file}:step", "--runs", "2", "--json")
    assert code == 0
    read = json.loads(text)
    assert read["format"] == "hlofront.profile/1" and read["runs"] == 2
    assert sum(row["share"] for row in read["lines"]) == pytest.approx(1)
    assert sum(row["seconds"] for row in read["operations"]) == pytest.approx(read["seconds"])
    assert read["seconds"] <= read["span"] * (1 + 1e-9) and read["seconds"] < read["wall"]
    slow = read["lines"][0]
    assert slow["line"] == 9 and slow["flops"] > 3 * 2 * 512**3 * 0.99 and slow["count"] >= 1


def test_operations_are_listed_by_name(file):
    code, text = run("profile", f"{file}:step", "--runs", "1", "--by", "operation", "--most", "1")
    assert code == 0
    assert re.search(r"\w+ \([\w-]+\)  model\.py:9$", text.splitlines()[2])
    assert re.search(r"^and \d+ more, ", text, re.MULTILINE)


def test_the_page_has_measured_times(file, tmp_path):
    page = tmp_path / "page.html"
    assert run("profile", f"{file}:step", "--runs", "2", "--html", str(page)) == (0, "")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text())[1])
    program = data["program"]
    metric = program["metrics"][0]
    assert (metric["key"], metric["label"]) == ("measured", "measured time")
    known = [value for value in metric["values"] if value is not None]
    assert sum(known) == pytest.approx(metric["total"], rel=1e-2)
    assert all(len(figures) == len(program["metrics"]) for _, _, figures in program["lines"])
    (slow,) = (figures[0] for _, line, figures in program["lines"] if line == 9)
    assert slow > 0.5 * metric["total"]
    assert ["measured", "mean of 2 runs"] in data["facts"]


def test_a_loop_has_what_its_body_leaves_over():
    def loop(x):
        return jax.lax.fori_loop(0, 7, lambda _, x: jnp.tanh(x @ x), x)

    measured = inspect.profile(loop, runs=2)(jnp.ones((64, 64)))
    by_name = {row.name: row for row in measured.operations}
    ((name, body),) = (
        (name, [by_name[inner] for inner in names if inner in by_name])
        for name, names in operations_inside(measured.module).items()
        if name in by_name and by_name[name].opcode == "while"
    )
    assert by_name[name].count == 1 and {row.count for row in body} >= {7}
    assert by_name[name].seconds < sum(row.seconds for row in body)


def test_donated_arguments_are_copied_for_each_run():
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros((300, 300))
    measured = inspect.profile(step, runs=4)(x)
    assert measured.runs == 4 and not x.is_deleted()


def test_shapes_stand_for_arrays():
    key = jax.random.key(0)
    shapes = (
        jax.ShapeDtypeStruct((4, 4), "bfloat16"),
        jax.ShapeDtypeStruct((3,), "int32"),
        jax.ShapeDtypeStruct((2,), key.dtype),
    )

    def f(x, indices, keys):
        return x[indices] + jax.random.uniform(keys[0], (3, 4))

    assert inspect.profile(f, runs=1)(*shapes).runs == 1


def test_keyword_and_static_arguments():
    scaled = jax.jit(lambda x, n, *, by: (x * by) ** n, static_argnums=1)
    assert inspect.profile(scaled, runs=2)(jnp.ones(1000), 3, by=jnp.ones(1000)).runs == 2


def test_wrong_numbers_of_runs(file, capsys):
    with pytest.raises(ValueError, match="runs is 1 or more"):
        inspect.profile(jnp.sin, runs=0)
    assert run("profile", f"{file}:step", "--runs", "0")[0] == 2
    assert "--runs is 1 or more" in capsys.readouterr().err


def test_bounds_are_refused_for_another_platform(file, capsys):
    assert run("profile", f"{file}:step", "--target", "cuda:h100")[0] == 2
    assert "cuda:h100" in capsys.readouterr().err


# ---- files --------------------------------------------------------------------------------------


def test_a_kept_profile_is_read_again(file, tmp_path):
    kept = tmp_path / "kept"
    code, first = run("profile", f"{file}:step", "--runs", "2", "--keep", str(kept), "--json")
    assert code == 0
    (written,) = kept.glob("plugins/profile/*/*.xplane.pb")
    for path in (kept, written.parent, written):
        code, again = run("profile", "--xplane", str(path), "--json")
        assert code == 0
        for key in ("program", "runs", "seconds"):
            assert json.loads(again)[key] == json.loads(first)[key]


def test_a_profile_of_jax():
    (measured,) = inspect.profiles_in(RECORDED)
    assert (measured.program, measured.runs, measured.wall) == ("jit_step", 1, None)
    first, *_ = measured.lines
    assert (pathlib.Path(first.file).name, first.line, first.count) == ("program.py", 13, 4)
    assert sum(row.seconds for row in measured.lines) == pytest.approx(measured.seconds)
    code, text = run("profile", "--xplane", str(RECORDED), "--target", "cuda:h100")
    assert code == 0
    assert text.startswith("jit_step on NVIDIA H100") and "at least" in text
    assert "from the first operation to the last" in text


def test_a_profile_of_jax_beside_its_program(tmp_path):
    # hlotools takes the program from whoever has it: it reads no HLO protos.
    (measured,) = inspect.profiles_in(RECORDED)
    beside = hlotools.profile(RECORDED, hlotools.write(measured.module))
    assert beside.lines == measured.lines
    text = tmp_path / "step.hlo"
    text.write_text(hlotools.write(measured.module))
    code, shown = run("profile", str(text), "--xplane", str(RECORDED))
    assert code == 0 and "program.py:13" in shown


@pytest.mark.skipif("HLOFRONT_ORACLE_PYTHON" not in os.environ, reason="no Python that has jax")
def test_what_jax_writes_now(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM_OF_JAX)
    subprocess.run(
        [os.environ["HLOFRONT_ORACLE_PYTHON"], str(program), str(tmp_path / "profile")], check=True
    )
    (measured,) = inspect.profiles_in(tmp_path / "profile")
    assert (measured.program, measured.runs) == ("jit_step", 1)
    # Which line takes longest depends on what else the machine does.
    assert 13 in {each.line for each in measured.lines}


def test_one_program_of_several(tmp_path, capsys):
    with jax.profiler.trace(tmp_path):
        for function in (jnp.sin, jnp.cos):
            x = jnp.ones((200, 200))
            jax.jit(lambda x, f=function: f(x) + 1).lower(x).compile()(x).block_until_ready()
        jax.jit(lambda x: x @ x)(x).block_until_ready()

        @jax.jit
        def other(x):
            return x * 2

        other(x).block_until_ready()
    code, text = run("profile", "--xplane", str(tmp_path), "--program", "oth")
    assert code == 0 and text.startswith("jit_other, ") and "other programs" in text
    assert run("profile", "--xplane", str(tmp_path), "--program", "absent")[0] == 2
    assert "has no program 'absent': it has" in capsys.readouterr().err


def test_errors_name_the_file(tmp_path, capsys):
    def refused(*argv):
        assert run("profile", *argv)[0] == 2
        return capsys.readouterr().err

    assert "No such file" in refused("--xplane", str(tmp_path / "absent.xplane.pb"))
    assert "has no file of XLA's profiler" in refused("--xplane", str(tmp_path))
    text = tmp_path / "text.xplane.pb"
    text.write_text("This is not a profile.")
    assert "is not a file of XLA's profiler" in refused("--xplane", str(text))
    text.write_bytes(b"")
    assert "has no timeline" in refused("--xplane", str(text))
    (tmp_path / "second.xplane.pb").write_bytes(b"")
    assert "profiles of 2 hosts: name one of second" in refused("--xplane", str(tmp_path))
    assert "expected FILE:FUNCTION to run" in refused()
    assert "goes with FILE:FUNCTION" in refused("--xplane", str(RECORDED), "--runs", "3")
    assert "--program goes with --xplane" in refused("x.py:f", "--program", "step")
    other = tmp_path / "other.hlo"
    other.write_text(
        "HloModule jit_other\n\nENTRY %m () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}"
    )
    assert "does not run here" in refused(str(other))
    assert "no operation of jit_other. It has those of jit_step." in refused(
        str(other), "--xplane", str(RECORDED)
    )
    with pytest.raises(ProfileError, match="no operation of any program"):
        hlotools.profile(parse_xplane(xspace(PlaneWriter("/host:CPU"))), str(other))


def test_a_profile_that_was_cut_off_is_refused():
    plane = PlaneWriter("/host:CPU").line("thread", ("dot", 0, 10, operation("dot")))
    whole = xspace(plane)
    complete = parse_xplane(whole)
    # At the end of a field of the file itself what is before it is a file, too.
    for size in range(1, len(whole)):
        try:
            read = parse_xplane(whole[:size])
        except ProfileError as error:
            assert "was cut off" in str(error)
        else:
            assert read == complete and size == len(whole) - len(b"\x22\x04host")


def test_damaged_profiles_are_read_or_refused():
    generator = random.Random(0)
    record = RECORDED.read_bytes()
    refused = 0
    for _ in range(200):
        damaged = bytearray(record)
        for _ in range(generator.choice((1, 3, 10))):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        try:
            program_times(parse_xplane(bytes(damaged)), {})
        except ProfileError:
            refused += 1
    assert 0 < refused < 200


# ---- which operation a moment belongs to --------------------------------------------------------


def operation(name, **more):
    stats = {"hlo_op": name, "hlo_module": "jit_f", "program_id": 3, "run_id": -7}
    return {**stats, "device_ordinal": 0, **more}


def times_in(*planes, inside=None):
    """Return the nanoseconds and counts of each operation, and the runs, of one program."""
    (times,) = program_times(parse_xplane(xspace(*planes)), {"jit_f": inside or {}})
    by_name = {
        name: (round(time.seconds * 1e9, 3), time.count) for name, time in times.operations.items()
    }
    return by_name, times


def test_each_moment_belongs_to_the_operation_that_started_last():
    nested = [Interval(0, 100, "while"), Interval(10, 40, "dot"), Interval(50, 90, "add")]
    assert own_times(nested) == {"while": 30, "dot": 30, "add": 40}
    beside = [Interval(0, 50, "dot"), Interval(20, 80, "add"), Interval(200, 230, "dot")]
    assert own_times(beside) == {"dot": 50, "add": 60}
    assert own_times([]) == {}


def test_an_operation_goes_on_in_another_thread():
    plane = PlaneWriter("/host:CPU")
    plane.line(
        "first thread",
        ("dot", 10, 12, operation("dot", _pt=0, _p=1)),
        ("copy", 95, 97, operation("copy", _pt=0, _p=3)),
        ("end: copy", 96, 97, {"_ct": 0, "_c": 3}),
    )
    # The second thread completes the product, runs the next operation, and then marks the end.
    plane.line(
        "second thread",
        ("ThreadpoolListener::StartRegion", 15, 15, {}),
        ("add", 60, 80, operation("add", _pt=0, _p=2)),
        ("end: add", 79, 80, {"_ct": 0, "_c": 2}),
        ("end: dot", 90, 91, {"_ct": 0, "_c": 1}),
        ("ThreadpoolListener::StopRegion", 92, 92, {}),
    )
    by_name, times = times_in(plane)
    assert by_name == {"dot": (50, 1), "add": (20, 1), "copy": (2, 1)}
    assert times.runs == 1 and times.span == pytest.approx(87e-9)


def test_the_last_operation_ends_with_its_run():
    plane = PlaneWriter("/host:CPU")
    wait = {"run_id": -7, "device_ordinal": 0}
    plane.line(
        "first thread",
        ("dot", 10, 12, operation("dot", _pt=0, _p=1)),
        ("ThunkExecutor::Execute (wait for completion)", 13, 40, wait),
    )
    plane.line("second thread", ("end: dot", 90, 91, {"_ct": 0, "_c": 1}))
    assert times_in(plane)[0] == {"dot": (30, 1)}


def test_a_loop_ends_with_its_body():
    plane = PlaneWriter("/host:CPU")
    plane.line(
        "first thread",
        ("while", 0, 12, operation("while", _pt=0, _p=1)),
        ("dot", 5, 10, operation("dot", _pt=0, _p=2)),
        ("end: dot", 9, 10, {"_ct": 0, "_c": 2}),
    )
    plane.line(
        "second thread",
        ("dot", 20, 30, operation("dot", _pt=0, _p=3)),
        ("end: dot", 29, 30, {"_ct": 0, "_c": 3}),
        ("end: while", 99, 99, {"_ct": 0, "_c": 1}),
    )
    by_name, times = times_in(plane, inside={"while": frozenset({"dot"})})
    assert by_name == {"while": (15, 1), "dot": (15, 2)}
    assert times.span == pytest.approx(30e-9)


def test_operations_of_a_gpu_are_on_its_streams():
    def kernel(name):
        # Texts that many events share are references to one.
        return {"hlo_op": name.encode(), "hlo_module": b"jit_f", "program_id": 3}

    plane = PlaneWriter("/device:GPU:0")
    plane.line("Stream #1", ("k1", 0, 10, kernel("dot")), ("k2", 20, 30, kernel("add")), begin=5)
    plane.line("Stream #2", ("k3", 4, 14, kernel("copy")), ("k1", 40, 50, kernel("dot")), begin=5)
    plane.line("Stream #3", ("memcpy", 100, 200, {"size": 4}))
    by_name, times = times_in(plane)
    assert by_name == {"dot": (14, 2), "add": (10, 1), "copy": (10, 1)}
    assert times.runs == 1


def test_kernels_that_a_gpu_launches_as_a_graph():
    """They have the graph's name for that of their operation, as in a profile of an H100."""

    def kernel(node):
        return {
            "hlo_op": "command_buffer_1",
            "hlo_module": "jit_f",
            "program_id": 3,
            "cuda_graph_id": 2,
            "cuda_graph_node_id": (2 << 32) + node,
        }

    # Two runs; two equal fusions have one kernel.
    listed = ["gemm_fusion_dot_1", "loop_add_fusion", "sm90_xmma_gemm", "loop_add_fusion"] * 2
    events = [(name, 10 * n, 10 * n + 5, kernel(n % 4)) for n, name in enumerate(listed)]
    plane = PlaneWriter("/device:GPU:0").line("Stream #1", *events)
    by_name, times = times_in(plane)
    assert times.runs == 2
    assert by_name["loop_add_fusion"] == (20, 4) and by_name["sm90_xmma_gemm"] == (10, 2)
    hlo = parse(
        "HloModule jit_f\n\n"
        "ENTRY main {\n"
        "  x = f32[8] parameter(0)\n"
        '  gemm_fusion_dot.1 = f32[8] exponential(x), metadata={source_file="a.py" source_line=7}\n'
        "  ROOT loop_add_fusion = f32[8] add(gemm_fusion_dot.1, x)\n"
        "}\n"
    )
    rows = {row.name: row for row in joined(times, hlo, hlo).operations}
    assert rows.keys() == {"gemm_fusion_dot.1", "loop_add_fusion", "sm90_xmma_gemm"}
    assert rows["gemm_fusion_dot.1"].line == 7 and rows["loop_add_fusion"].count == 2
    assert rows["sm90_xmma_gemm"].line is None


def test_runs_are_counted_by_operations_outside_of_loops():
    def kernel(name):
        return {"hlo_op": name, "hlo_module": "jit_f", "program_id": 3}

    # Three runs, in one of which a branch was taken; the loop of each has five steps.
    listed = [*["dot", "add", *["tanh"] * 5] * 3, "branch"]
    events = [(name, 10 * n, 10 * n + 5, kernel(name)) for n, name in enumerate(listed)]
    plane = PlaneWriter("/device:GPU:0").line("Stream #1", *events)
    body = {"while": frozenset({"tanh"}), "conditional": frozenset({"branch"})}
    by_name, times = times_in(plane, inside=body)
    assert times.runs == 3 and by_name["tanh"] == (75, 15)


def test_operations_of_a_tpu_are_in_the_times_of_modules():
    plane = PlaneWriter("/device:TPU:0")
    plane.line("Steps", ("0", 0, 300, {}))
    plane.line(
        "XLA Modules", ("jit_f(42)", 0, 100, {"run_id": 1}), ("jit_f(42)", 150, 260, {"run_id": 2})
    )
    fusion = "%fusion.3 = f32[8]{0} fusion(%while)"
    plane.line(
        "XLA Ops",
        ("%while = (f32[8]) while(%tuple)", 0, 80, {}),
        (fusion, 10, 70, {}),
        (fusion, 160, 200, {}),
    )
    plane.line("Async XLA Ops", ("%copy-start = f32[8] copy-start(%p)", 0, 100, {}))
    by_name, times = times_in(plane)
    assert by_name == {"while": (20, 1), "fusion.3": (100, 2)}
    assert (times.number, times.name, times.runs) == (42, "jit_f", 2)


@pytest.mark.long
def test_executables_from_the_disk_cache_are_found_by_name(file, tmp_path):
    # Their events have the number that they had in the process that compiled them.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HLOFRONT_CACHE": "on"}
    environment["HLOFRONT_CACHE_DIR"] = str(tmp_path / "cache")
    for number in range(2):
        kept = str(tmp_path / f"kept{number}")
        command = [sys.executable, "-m", "hlofront", "profile", f"{file}:step", "--keep", kept]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    (measured,) = inspect.profiles_in(tmp_path / "kept1")
    assert measured.program == "jit_step" and all(row.opcode for row in measured.operations)


def test_a_profile_has_the_layout_that_xprof_reads(tmp_path):
    with jax.profiler.trace(tmp_path, create_perfetto_trace=True):
        jnp.ones(3).block_until_ready()
    (folder,) = (tmp_path / "plugins" / "profile").iterdir()
    names = sorted(path.name for path in folder.iterdir())
    (host,) = (n.removesuffix(".xplane.pb") for n in names if n.endswith(".xplane.pb"))
    assert names == sorted([f"{host}.xplane.pb", f"{host}.trace.json.gz", "perfetto_trace.json.gz"])
    assert read_xplane(tmp_path).planes
