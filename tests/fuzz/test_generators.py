"""The generators of tests/fuzz run, find faults that are planted, and leave rows in the ledger."""

import pathlib
import re

import pytest

import hlofront as jax
from hlofront.core import rules
from hlofront.primitives.elementwise.elementwise import sin_p
from tests.against_jax.fuzz import machine
from tests.fuzz import files, ledger, programs, ways

# Which leaves, steps and way of results: sin and nothing else.
SINE = {
    "seed": 0,
    "x64": False,
    "args": [{"leaves": [["float32", [3], "array", 1]], "tree": 0}],
    "steps": [["sine", 0, []]],
    "layers": [],
    "out": 0,
    "modes": ["value"],
}


@pytest.fixture
def sine(monkeypatch):
    def step(m, d, values):
        return m.call("jnp.sin", values[0])

    monkeypatch.setitem(machine.OPERATIONS, "sine", step)
    monkeypatch.setitem(machine.BODIES, "sine", 0)
    jax.clear_caches()
    yield SINE
    jax.clear_caches()


@pytest.mark.long
def test_drawn_programs_give_the_same_in_every_way():
    seeds = range(2)
    assert {seed: programs.find(seed) for seed in seeds} == dict.fromkeys(seeds, "")


@pytest.mark.parametrize("name", [name for name in ways.WAYS if name != "split"])
def test_a_program_is_run_in_every_way(name, sine):
    found, wanted = ways.WAYS[name][2](ways.Trial(sine))
    assert len(found) == len(wanted) > 0
    assert not ways.compared(found, wanted)


def test_a_wrong_batch_rule_is_found(sine, monkeypatch):
    monkeypatch.setitem(
        rules.batch, sin_p, lambda values, axes, **_: (jax.lax.cos(values[0]), axes[0])
    )
    assert ways.difference(sine, "vmapped").startswith("vmapped: \nNot equal to tolerance")


def test_a_wrong_tangent_is_found(sine, monkeypatch):
    wrong = lambda primals, tangents, **_: (jax.lax.sin(primals[0]), tangents[0] * 2)
    monkeypatch.setitem(rules.jvp, sin_p, wrong)
    assert ways.difference(sine, only="sloped").startswith("sloped: \nNot equal to tolerance")


def test_an_error_that_is_no_refusal_is_found(sine, monkeypatch):
    monkeypatch.setitem(rules.batch, sin_p, lambda values, axes, **_: values[7])
    assert ways.difference(sine, "vmapped").startswith("vmapped: IndexError")


@pytest.mark.parametrize("target", files.TARGETS)
def test_mutants_are_read_or_refused(target):
    numbers = range(2 if target == "exports" else 8)
    assert {number: files.find(number, target) for number in numbers} == dict.fromkeys(numbers, "")


def test_an_error_of_a_reader_that_is_no_refusal_is_found(monkeypatch):
    monkeypatch.setattr(files, "read_log", lambda folder: {}["records"])
    assert files.find(0, "logs") == "logs, host-1.jsonl: KeyError: 'records'"


def test_a_hang_of_a_reader_is_found(monkeypatch):
    def read(folder):
        while True:
            pass

    monkeypatch.setattr(files, "read_log", read)
    monkeypatch.setattr(files, "SECONDS", 1)
    assert files.find(0, "logs") == "logs, host-1.jsonl: Hang: takes longer than 1 s"


def test_a_run_adds_its_row(tmp_path):
    path = tmp_path / "LEDGER.md"
    path.write_text(ledger.PATH.read_text().partition("| 2")[0])
    ledger.add("itself", 5, 1004, 1000, 2, path)
    (row,) = ledger.rows(path)
    assert (row.generator, row.seeds, row.programs) == ("itself", "5..1004", "1,000")
    assert row.finds == "2 (to be kept)" and "jaxlib" in row.versions


def test_each_find_of_the_ledger_has_a_test():
    root = pathlib.Path(__file__).parents[2]
    for row in ledger.rows():
        assert ledger.TO_BE_KEPT not in row.finds, row
        # What is in parentheses is a remark.
        count, *kept = re.sub(r"\(.*?\)", "", row.finds).split()
        assert bool(int(count)) == bool(kept), row
        for name in kept:
            file, _, test = name.partition("::")
            assert f"def {test}(" in (root / file).read_text(), name
