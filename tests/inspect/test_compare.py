"""compare: one function under several jaxlibs, devices and revisions; and what cannot be done."""

import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.cli import diff_sides, main, progress
from hlofront.inspect import bisection, diff, parse, write
from hlofront.inspect.comparison import columns, compare, environments
from hlofront.pjrt.targets import install_hint
from hlofront.runtime.compilation import disk_cache
from hlotools.matching.flags import flags_of

x = np.ones((4, 8), np.float32)
HERE = importlib.metadata.version("jaxlib")


def f(x):
    return jnp.tanh(x @ x.T).sum(0)


def test_this_jaxlib_in_a_process_of_its_own():
    found = compare.compare(f, x, jaxlib=["current", HERE])
    first, second = found.columns
    assert first.error is None and first.hlo == second.hlo
    assert first.flops > 0 and first.argument_bytes == x.nbytes and first.compile_seconds > 0
    assert first.run_seconds > 0
    assert found.equal and not found.errors
    assert "no difference" in found.text() and f"jaxlib {HERE}" in found.text()
    assert all("fusion" in {each.name for each in column.passes} for column in found.columns)
    assert json.loads(found.json())["equal"] is True


def test_large_constants_fences_and_every_dtype_go_along():
    table = jnp.arange(4096, dtype=jnp.bfloat16)

    def g(x, i, b):
        for _ in range(20):
            x = x + jnp.tanh((x - x.mean()) @ x.T) @ x
        return table[i] + x.astype(jnp.bfloat16).sum() + b

    staged = jax.jit(g)
    args = (x, np.int32(3), np.bool_(True))
    (_, column) = compare.compare(staged, *args, jaxlib=["current"]).columns
    assert column.error is None and column.run_seconds > 0
    assert "opt-barrier" in (column.hlo or "")


def test_without_a_run():
    (_, column) = compare.compare(f, x, jaxlib=["current"], run=False).columns
    assert column.run_seconds is None and column.hlo


def test_targets():
    told = []
    found = compare.compare(f, x, target=["cpu", "cpu"], tell=told.append)
    assert told == ["compiling for cpu (1 of 2)", "compiling for cpu (2 of 2)"]
    assert found.equal and all(column.flops > 0 for column in found.columns)


@pytest.mark.skipif(bool(install_hint("cuda")), reason="a compiler for GPUs is needed")
def test_targets_have_times_by_their_rates():
    found = compare.compare(f, x, target=["cpu", "cuda:h100"])
    row = next(row for row in found.rows() if row.title == "least time by the bounds")
    assert row.values[0] is None and row.values[1] and row.values[1] < 1e-6
    assert re.search(r"least time by the bounds +- +\d+\.\d\d ns", found.text())


def test_what_cannot_be_had_is_a_column_with_its_reason(tmp_path):
    with options["hlofront_environments_dir"](str(tmp_path)):
        found = compare.compare(f, x, jaxlib=["current", "abc"])
    assert found.columns[0].error is None
    assert "'abc' is not a version of jaxlib" in found.errors["jaxlib abc"]
    assert not found.equal and "not compiled" in found.text()
    assert "v9" in compare.compare(f, x, target=["tpu:v9:1x1"]).errors["tpu:v9:1x1"]


def test_a_python_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "_candidates", lambda name: iter(()))
    monkeypatch.setattr(environments, "_pythons_of", lambda jaxlib: ((3, 98), (3, 99)))
    with (
        options["hlofront_environments_dir"](str(tmp_path)),
        pytest.raises(environments.NoEnvironment, match=r"needs Python 3\.98 to 3\.99.*uv python"),
    ):
        environments.python_with("0.0.1")
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_which_pythons_a_jaxlib_has_wheels_for():
    assert environments._pythons_of("0.12.0.1")[0] == (3, 12)
    assert environments._pythons_of("0.10.2")[0] == (3, 11)
    assert environments._pythons_of("0.6.2")[0] == (3, 10)


def test_programs_that_call_back_are_refused():
    def called(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(ValueError, match="calls back to Python"):
        compare.compare(called, x, jaxlib=["current"])
    with pytest.raises(ValueError, match="requires versions"):
        compare.compare(f, x)
    with pytest.raises(ValueError, match="FILE:FUNCTION"):
        compare.compare(f, x, at=["HEAD"])


def test_compile_times_are_those_of_xla_also_where_an_executable_is_on_disk(tmp_path, monkeypatch):
    loaded = []
    load = disk_cache.CacheEntry.load
    monkeypatch.setattr(
        disk_cache.CacheEntry, "load", lambda *args: loaded.append(args) or load(*args)
    )
    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path)):
        for _ in range(2):
            jax.clear_caches()
            jax.jit(f).lower(x).compile()
        assert len(loaded) == 2 and any(tmp_path.iterdir())
        jax.clear_caches()
        columns = compare.compare(f, x, target=["cpu"]).columns
    assert all(column.compile_seconds > 0 for column in columns) and len(loaded) == 2


# ---- at the shell --------------------------------------------------------------------------------

MODEL = """
import hlofront.numpy as jnp
from neighbor import scale

def step(x):
    return jnp.{operation}(x @ x.T) * scale

def example_args():
    import numpy as np
    return (np.ones((4, 8), np.float32),)
"""


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init", "--quiet")
    for operation in ("tanh", "tanh", "sin"):
        (tmp_path / "model.py").write_text(MODEL.format(operation=operation))
        note = len(list(tmp_path.iterdir()))
        (tmp_path / "neighbor.py").write_text(f"scale = 2.0  # {operation} {note}\n")
        git("add", "-A")
        git("commit", "--quiet", "--allow-empty", "-m", operation)
    return tmp_path / "model.py"


def run(capsys, *arguments):
    code = main.main(list(arguments))
    return code, *capsys.readouterr()


@pytest.mark.long
def test_revisions(repository, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0)
    target = f"{repository}:step"
    code, out, err = run(capsys, "compare", target, "--at", "HEAD~2", "--at", "HEAD~1")
    assert (
        code == 0 and "no difference" in out and "compiling model.py:step at HEAD~2 (1 of 2)" in err
    )
    code, out, _ = run(capsys, "compare", target, "--at", "HEAD~1", "--at", "HEAD", "--json")
    assert code == 1
    found = json.loads(out)
    assert "tanh" in found["columns"][0]["hlo"] and "sine" in found["columns"][1]["hlo"]
    code, out, _ = run(capsys, "compare", target, "--at", "nothing", "--at", "HEAD")
    assert code == 2 and "nothing" in out
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=repository.parent, capture_output=True, text=True
    )
    assert len(listed.stdout.splitlines()) == 1, "checkouts are removed"


@pytest.mark.skipif(bool(install_hint("tpu")), reason="a compiler for TPUs is needed")
def test_revisions_for_a_device_that_is_not_attached(repository, capsys):
    tpu, function = "tpu:v5e:1x1", f"{repository}:step"
    revisions = "--at", "HEAD~1", "--at", "HEAD", "--target", tpu
    code, out, _ = run(capsys, "compare", function, *revisions, "--json")
    found = json.loads(out)["columns"]
    assert code == 1 and [column["label"] for column in found] == [
        f"{tpu} at HEAD~1",
        f"{tpu} at HEAD",
    ]
    assert all("{1,0:T(4,128)}" in column["hlo"] for column in found), "tiles of a TPU"


def test_diff_and_bisect_pass_a_target_to_the_revisions(repository, capsys, monkeypatch):
    targets = []

    def at_revision(path, name, specs, revision, tell, target=None):
        targets.append(target)
        return columns.here(revision, f, (x,))

    monkeypatch.setattr(diff_sides, "at_revision", at_revision)
    monkeypatch.setattr(bisection, "at_revision", at_revision)
    function, options = f"{repository}:step", ("--target", "tpu:v5e:1x1")
    assert run(capsys, "diff", function, function, "--at", "HEAD", *options)[0] == 0
    run(capsys, "bisect", function, "--at", "HEAD~1..HEAD", *options)
    assert targets == ["tpu:v5e:1x1"] * 4


@pytest.mark.parametrize(
    "options, reason",
    [
        (["--at", "HEAD", "--target", "cpu", "--target", "tpu:v5e:1x1"], "takes one target"),
        (["--jaxlib", "current", "--target", "tpu:v5e:1x1"], "--target tpu:v5e:1x1 --stage hlo >"),
    ],
)
def test_targets_that_compare_cannot_combine(repository, capsys, options, reason):
    code, _, err = run(capsys, "compare", f"{repository}:step", *options)
    assert code == 2 and reason in err


def test_diff_and_cost(repository, capsys, tmp_path):
    target = f"{repository}:step"
    code, out, _ = run(capsys, "diff", target, target)
    assert code == 0
    text = tmp_path / "a.hlo"
    text.write_text(jax.jit(f).lower(x).compile().as_text())
    page = tmp_path / "page.html"
    code, out, err = run(capsys, "diff", str(text), target, "--html", str(page))
    assert code == 1 and "<html" in page.read_text() and "wrote" in err
    code, out, _ = run(capsys, "diff", target, target, "--stage", "jaxpr", "--json")
    assert code == 0 and json.loads(out)
    code, _, err = run(capsys, "diff", "nowhere", target)
    assert code == 2 and "nowhere" in err
    code, out, _ = run(capsys, "cost", target)
    assert code == 0 and "model.py:6" in out
    code, out, _ = run(capsys, "cost", target, "--json", "--by", "instruction")
    assert code == 0 and json.loads(out)["total"]["flops"] > 0


@pytest.mark.long
def test_diff_of_one_function_at_two_revisions_and_under_two_jaxlibs(repository, capsys):
    target = f"{repository}:step"
    both = "diff", target, target
    code, out, _ = run(capsys, *both, "--at", "HEAD~1", "--at", "HEAD")
    assert code == 1 and "tanh -> sine" in out and f"{target}, at HEAD~1" in out
    code, out, _ = run(capsys, *both, "--at", "HEAD~2", "--at", "HEAD~1")
    assert code == 0 and "the same program" in out
    code, out, _ = run(capsys, *both, "--at", "HEAD~1")
    assert code == 0 and f"b: {target}, at HEAD~1" in out
    code, out, _ = run(capsys, *both, "--jaxlib", "current", "--jaxlib", HERE)
    assert code == 0 and f"{target}, jaxlib {HERE}" in out


@pytest.mark.skipif(bool(install_hint("tpu")), reason="a compiler for TPUs is needed")
def test_diff_of_one_function_for_two_targets(repository, capsys):
    target = f"{repository}:step"
    both = "diff", target, target
    code, out, _ = run(capsys, *both, "--target", "cpu", "--target", "tpu:v5e:1x1", "--json")
    labels = [json.loads(out)[side]["label"] for side in "ab"]
    assert code == 1 and labels == [f"{target}, cpu", f"{target}, tpu:v5e:1x1"]


def test_what_diff_cannot_compile_is_an_error(repository, capsys, tmp_path):
    target = f"{repository}:step"
    text = tmp_path / "a.hlo"
    text.write_text(jax.jit(f).lower(x).compile().as_text())
    for arguments, reason in (
        (("--at", "nothing"), "has no 'nothing'"),
        (("--at", "HEAD", "--jaxlib", "current"), "do not go together"),
        (("--at", "HEAD", "--target", "cpu", "--target", "cpu"), "do not go together"),
        (("--jaxlib", "current", "--target", "tpu:v5e:1x1"), "--target tpu:v5e:1x1 --stage hlo >"),
        (("--at", "HEAD", "--at", "HEAD", "--at", "HEAD"), "is given 3 times"),
        (("--at", "HEAD", "--stage", "jaxpr"), "compares optimized HLO"),
    ):
        code, _, err = run(capsys, "diff", target, target, *arguments)
        assert code == 2 and reason in err, (arguments, err)
    code, _, err = run(capsys, "diff", str(text), target, "--at", "HEAD", "--at", "HEAD")
    assert code == 2 and "is a file" in err
    code, _, err = run(capsys, "diff", str(text), str(text), "--jaxlib", "current")
    assert code == 2 and "is for functions" in err


def test_flags_that_differ_are_told_also_where_the_program_is_equal(capsys, tmp_path):
    file = tmp_path / "flags.py"
    file.write_text(
        "import hlofront as jax\n"
        "def f(x):\n    return x + 1\n"
        "fast = jax.jit(f, compiler_options={'xla_cpu_enable_fast_math': True})\n"
        "slow = jax.jit(f, compiler_options={'xla_cpu_enable_fast_math': False})\n"
    )
    code, out, _ = run(capsys, "diff", f"{file}:f", f"{file}:fast", "--args", "f32[4]")
    assert code == 0 and "the same program, compiled with other flags" in out
    assert "flag xla_cpu_enable_fast_math: not set -> true" in out
    before, after = (f"{file}:{name}" for name in ("slow", "fast"))
    code, out, _ = run(capsys, "diff", before, after, "--args", "f32[4]", "--jaxlib", "current")
    assert code == 0 and "flag xla_cpu_enable_fast_math: false -> true" in out
    code, out, _ = run(capsys, "diff", after, after, "--args", "f32[4]")
    assert code == 0 and "flag" not in out.splitlines()[0]

    def g(x):
        return x + 1

    lowered = jax.jit(g).lower(x)
    option = {"xla_cpu_enable_fast_math": True}
    found = diff(lowered.compile(), lowered.compile(compiler_options=option))
    assert found.equal and [change.what for change in found.changes] == list(option)
    loaded = compare.Comparison("g", [compare.here(name, jax.jit(g), (x,)) for name in "ab"])
    assert loaded.equal and "no difference" in loaded.text()
    other = loaded.columns[1]._replace(flags={"xla_a": "1"})
    told = compare.Comparison("g", [loaded.columns[0], other])
    assert told.equal and "flag xla_a: not set -> 1" in told.text()
    assert "xla_a" in told.markdown() and "xla_a" in told.html() and "xla_a" in told.json()


def test_flags_of_the_environment_are_overridden_by_those_of_a_function(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_b  flags.txt --xla_c=x=y")
    assert flags_of([("xla_a", False), ("xla_d", 2.5)]) == {
        "xla_a": "false",
        "xla_b": "true",
        "XLA_FLAGS": "flags.txt",
        "xla_c": "x=y",
        "xla_d": "2.5",
    }


@pytest.mark.parametrize("command", "show diff compare cost cache bundle doctor".split())
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([command, "--help"])
    assert ended.value.code == 0
    assert f"python -m hlofront {command}" in capsys.readouterr().out


def test_the_worker_stands_alone():
    """It must run where nothing of hlofront is, under Pythons from 3.9 on."""
    text = environments.WORKER.read_text()
    assert "hlofront." not in text.split('"""')[2]
    done = subprocess.run(
        [sys.executable, "-I", str(environments.WORKER), "--about"], capture_output=True, text=True
    )
    assert json.loads(done.stdout)["jaxlib"] == HERE
    assert pathlib.Path(environments.WORKER).name == "other_jaxlib_worker.py"


def test_what_is_going_on_is_said_when_it_takes_long(repository, capsys, monkeypatch):
    target = f"{repository}:step"
    monkeypatch.setattr(progress, "PATIENCE", 3600)
    for command in (["cost", target], ["diff", target, target], ["show", target, "--stage", "hlo"]):
        code, out, err = run(capsys, *command)
        assert code == 0 and out and "compiling" not in err, command
        assert progress._timer.finished.is_set()
    monkeypatch.setattr(progress, "PATIENCE", 0)
    code, _, err = run(capsys, "cost", target)
    assert code == 0 and f"hlofront: compiling {target}\n" in err
    assert f'importing {repository}: what trains belongs below `if __name__ == "__main__":`' in err


def test_the_schedule_at_the_shell(capsys, tmp_path):
    text = (pathlib.Path(__file__).with_name("texts") / "gpt_block.hlo").read_text()
    module = parse(text)
    order = module.entry.instructions
    place = next(
        i
        for n, i in enumerate(order)
        if i.opcode == "fusion" and not {id(u) for u in i.users} & set(map(id, order[n : n + 4]))
    )
    at = order.index(place)
    order.insert(at + 3, order.pop(at))
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text(text)
    b.write_text(write(module))
    code, out, _ = run(capsys, "diff", str(a), str(b), "--json")
    assert code == 0 and json.loads(out)["same_schedule"] is False
    code, out, _ = run(capsys, "diff", str(a), str(b), "--schedule")
    assert code == 1 and "the schedule of ENTRY" in out and place.name in out
    assert run(capsys, "diff", str(a), str(a), "--schedule")[0] == 0
