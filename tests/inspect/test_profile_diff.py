"""Two profiles of a program: which source lines take longer than their repeats explain."""

import dataclasses
import io
import json
import pathlib
import shutil

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront import inspect
from hlofront.cli.main import main
from hlotools.profiles.comparison import compare_profiles, student_t_exceeded
from hlotools.profiles.profile import LineRow, OperationRow

RECORDED = pathlib.Path(__file__).parent / "texts" / "jax.xplane.pb"
RUNS = 10


@pytest.fixture(scope="module")
def measured():
    return inspect.profile(lambda x: jnp.sort(jnp.sin(x @ x).reshape(-1)).sum(), runs=RUNS)(
        jnp.ones((32, 32))
    )


def profile_of(measured, lines, seed=0):
    """A profile of lines, as {(file, number, code): seconds}, whose runs vary by two percent."""
    random = np.random.default_rng(seed)
    names = {place: f"op{i}" for i, place in enumerate(lines)}
    runs = [
        {names[place]: seconds * random.normal(1, 0.02) for place, seconds in lines.items()}
        for _ in range(RUNS)
    ]
    means = {place: float(np.mean([run[names[place]] for run in runs])) for place in lines}
    rest = (0.0, 1.0, None, None, None)
    return dataclasses.replace(
        measured,
        runs=RUNS,
        operations=[
            OperationRow(names[place], "", seconds, *rest, *place[:2])
            for place, seconds in means.items()
        ],
        lines=[LineRow(*place, seconds, 0.0, 1, None, 0, 0, 1) for place, seconds in means.items()],
        each_run=runs,
    )


PLACES = {("a.py", 10 + i, f"x{i} = f(x{i})"): 0.001 * (i + 1) for i in range(100)}


def test_the_line_that_got_slower_is_named_and_no_other(measured):
    slowed = {place: s * (1.1 if place[1] == 40 else 1.0) for place, s in PLACES.items()}
    difference = compare_profiles(
        profile_of(measured, PLACES), profile_of(measured, slowed, seed=1)
    )
    (row,) = difference.slower
    assert (row.file, row.line, row.verdict) == ("a.py", 40, "slower")
    assert row.change == pytest.approx(0.0031, rel=0.2) and row.noise < row.change
    assert not difference.faster and not difference.equal
    assert "99 lines differ by no more than their repeats do" in difference.text()


def test_profiles_of_one_program_are_equal(measured):
    wrong = 0
    for seed in range(20):
        pair = profile_of(measured, PLACES, seed), profile_of(measured, PLACES, seed + 100)
        wrong += not compare_profiles(*pair).equal
    assert wrong <= 1


def test_lines_are_known_by_their_text_and_repeated_ones_by_their_numbers(measured):
    def moved(place):
        return ("other/a.py", place[1] + 7, place[2])

    lines = {**PLACES, ("a.py", 3, "same"): 0.1, ("a.py", 5, "same"): 0.2}
    after = {moved(place): seconds for place, seconds in PLACES.items()}
    after |= {("other/a.py", 3, "same"): 0.1, ("other/a.py", 9, "same"): 0.2}
    difference = compare_profiles(profile_of(measured, lines), profile_of(measured, after, 1))
    verdicts = {(row.line, row.verdict) for row in difference.lines if row.verdict != "same"}
    assert verdicts == {(5, "gone"), (9, "new")}


def test_the_expansion_of_students_t():
    # Two-sided, from tables.
    for level, freedom, expected in [(0.01, 8, 3.355), (0.001, 18, 3.922), (1e-4, 18, 4.966)]:
        assert student_t_exceeded(level, freedom) == pytest.approx(expected, rel=0.01)


def test_without_repeats_nothing_is_said_to_be_slower(measured):
    before, after = profile_of(measured, PLACES), profile_of(measured, PLACES, 1)
    after = dataclasses.replace(after, each_run=after.each_run[:4])
    difference = inspect.diff(before, after)
    assert {row.verdict for row in difference.lines} == {"unknown"} and difference.equal


def test_real_profiles_at_a_shell(measured, tmp_path, capsys):
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        shutil.copy(RECORDED, tmp_path / name / "host.xplane.pb")
    out = io.StringIO()
    assert main(["diff", str(tmp_path / "before"), str(tmp_path / "after")], out) == 0
    # It has one run, which says nothing about noise.
    assert "medians" not in out.getvalue() and " unknown  program.py:" in out.getvalue()
    out = io.StringIO()
    assert main(["diff", str(RECORDED), str(RECORDED), "--json"], out) == 0
    found = json.loads(out.getvalue())
    assert found["format"] == "hlofront.profile_diff/1" and found["lines"]
    assert main(["diff", str(RECORDED), str(RECORDED), "--html", "x.html"], io.StringIO()) == 2
    assert "profiles are compared as text or --json" in capsys.readouterr().err
    assert len(measured.each_run) == RUNS
    assert hlotools.compare_profiles(measured, measured).equal


def test_programs_that_are_not_in_both(tmp_path, capsys):
    folder = tmp_path / "other"
    inspect.profile(jax.jit(lambda x: x * 2), runs=3, log_dir=folder)(jnp.ones(8))
    assert main(["diff", str(RECORDED), str(folder)], io.StringIO()) == 2
    assert "the profiles have no program in common: " in capsys.readouterr().err
