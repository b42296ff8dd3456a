"""bisect: the first version of jaxlib or git revision at which a program changes."""

import json
import subprocess
import sys

import pytest

from hlofront.cli.main import main
from hlofront.inspect import bisection
from hlofront.inspect.bisection import bisect, revisions_between, versions_between
from hlofront.inspect.comparison.columns import Column, failed
from hlofront.inspect.comparison.environments import NoEnvironment

MODEL = """
import hlofront.numpy as jnp

def step(x):
    return {body}

def example_args():
    import numpy as np
    return (np.ones((8, 8), np.float32),)
"""
# The third one does not compile; the comments of the second and the last change no program.
BODIES = ("x + 1", "x + 1  # one more", "missing(x)", "jnp.sin(x) + 1", "jnp.sin(x) + 1  # again")
HLO = "HloModule m\n\nENTRY main {\n  ROOT x = f32[] parameter(0)\n}\n"


def git(folder, *arguments):
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    done = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with a commit of model.py for each body."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    for body in BODIES:
        (folder / "model.py").write_text(MODEL.format(body=body))
        git(folder, "add", "model.py")
        git(folder, "commit", "-qm", body)
    return folder


@pytest.mark.long
def test_the_first_revision_at_which_the_program_changes(repository, capsys):
    target = f"{repository}/model.py:step"
    assert main(["bisect", target, "--at", "HEAD~4..HEAD", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    commits = git(repository, "log", "--reverse", "--format=%h").split()
    assert (report["before"], report["after"]) == (f"at {commits[1]}", f"at {commits[3]}")
    assert report["skipped"] == [commits[2]]
    assert not report["difference"]["equal"]
    assert main(["bisect", target, "--at", "HEAD~4..HEAD~3"]) == 1
    assert "nothing changes from " in capsys.readouterr().out


def columns(*flops):
    """Return a compiler of versions 0.1.N with these numbers of operations; None fails."""

    def under(artifact, name, *, run, tell):
        tell(f"compiling {name}")
        number = flops[int(name.rpartition(".")[2])]
        if number is None:
            return failed(f"jaxlib {name}", "no such luck")
        return Column(f"jaxlib {name}", HLO, number, *[None] * 7)

    return under


@pytest.mark.parametrize(
    ("flops", "before", "after", "most"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 5], 6, 7, 5),
        ([1, 5, 5, 5, 5, 5, 5, 5], 0, 1, 5),
        ([1, 1, None, 5, 5, 5, 5, 5], 1, 3, 6),
        ([1, None, None, 5], 0, 3, 4),
    ],
)
def test_a_condition_splits_the_versions(monkeypatch, flops, before, after, most):
    monkeypatch.setattr(bisection, "under_jaxlib", columns(*flops))
    names = [f"0.1.{i}" for i in range(len(flops))]
    report = bisect(lambda x: x, 1.0, jaxlib=",".join(names), when="flops > 2")
    assert report.before.label == f"jaxlib {names[before]}"
    assert report.after.label == f"jaxlib {names[after]}"
    assert report.skipped == tuple(names[before + 1 : after])
    assert len(report.tried) <= most
    assert f"first changed: jaxlib {names[after]} (not yet: jaxlib {names[before]})" in (
        report.text()
    )


def test_it_tells_which_version_of_about_how_many_it_compiles(monkeypatch):
    monkeypatch.setattr(bisection, "under_jaxlib", columns(1, 1, 1, 1, 1, 1, 1, 5))
    names = ",".join(f"0.1.{i}" for i in range(8))
    told = []
    bisect(lambda x: x, 1.0, jaxlib=names, when="flops > 2", tell=told.append)
    assert told == [
        "compiling 0.1.0 (1 of about 5)",
        "compiling 0.1.7 (2 of about 5)",
        "compiling 0.1.3 (3 of about 5)",
        "compiling 0.1.5 (4 of about 5)",
        "compiling 0.1.6 (5 of about 5)",
    ]


def test_both_ends_must_differ(monkeypatch):
    monkeypatch.setattr(bisection, "under_jaxlib", columns(5, 1, None))
    report = bisect(lambda x: x, 1.0, jaxlib="0.1.0,0.1.1", when="flops>2")
    assert report.after is None and "0.1.0, the first version, has it already" in report.text()
    report = bisect(lambda x: x, 1.0, jaxlib="0.1.1,0.1.2", when="flops>2")
    assert "0.1.2 cannot be judged" in report.text() and "no such luck" in report.text()


def test_a_command_reads_the_program(monkeypatch):
    monkeypatch.setattr(bisection, "under_jaxlib", columns(1, 1))

    def reason(status):
        command = f"{sys.executable} -c 'import sys; sys.exit({status})'"
        return bisect(lambda x: x, 1.0, jaxlib="0.1.0,0.1.1", command=command).reason

    assert reason('"ENTRY" not in sys.stdin.read()') == "nothing changes from 0.1.0 to 0.1.1"
    assert "has it already" in reason("3")
    assert "cannot be judged" in reason("125")


def test_ranges(monkeypatch, repository):
    monkeypatch.setattr(bisection, "published_versions", lambda: ["0.9.2", "0.10.0", "0.12.0.1"])
    assert versions_between("0.9.2..0.10.0") == ["0.9.2", "0.10.0"]
    assert versions_between("0.10.0..0.12.0.1") == ["0.10.0", "0.12.0.1"]
    with pytest.raises(
        NoEnvironment, match=r"does not find jaxlib 0\.13\.0; the newest is 0\.12\.0\.1"
    ):
        versions_between("0.9.2..0.13.0")
    with pytest.raises(ValueError, match="not a range of versions"):
        versions_between("new..old")
    assert len(revisions_between(repository / "model.py", "HEAD~2..HEAD")) == 3
    with pytest.raises(NoEnvironment, match="git rev-parse"):
        revisions_between(repository / "model.py", "v9..HEAD")
    with pytest.raises(ValueError, match="not a range of revisions"):
        revisions_between(repository / "model.py", "HEAD")


def test_errors():
    with pytest.raises(ValueError, match="one range"):
        bisect(lambda x: x, 1.0)
    with pytest.raises(ValueError, match=r"'speed>3' is not a condition.*flops, bytes"):
        bisect(lambda x: x, 1.0, at="a..b", when="speed>3")
    with pytest.raises(ValueError, match="not both"):
        bisect(lambda x: x, 1.0, at="a..b", when="flops>3", command="true")
    with pytest.raises(ValueError, match="file='FILE:FUNCTION'"):
        bisect(lambda x: x, 1.0, at="a..b")
