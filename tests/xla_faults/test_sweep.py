"""The sweep of extreme parameters names its programs, and tells those that end their process."""

import pytest

from tests.xla_faults import sweep
from tests.xla_faults.extremes import catalog

DIES = "concatenate(dtype='int2')"


def test_programs_are_named_by_their_text():
    names = list(catalog.names())
    assert len(names) > 5000 and DIES in names
    assert "reduce_window(window=2**62)" in names and "pad(low=-(2**31 + 1))" in names
    function, (x, _) = catalog.program("pad(size=2**40)")
    assert callable(function) and x.shape == (2, 2**40)


def test_pairs_are_the_same_each_time():
    assert len(list(catalog.names(3))) > len(list(catalog.names()))
    assert list(catalog.names(3)) == list(catalog.names(3))


@pytest.mark.slow
def test_a_program_that_ends_the_process_is_told_and_the_next_ones_are_tried(monkeypatch):
    names = ["iota()", DIES, "iota(shape=(2**31, 2**31))", "iota(shape=(2**31,))"]
    monkeypatch.setenv("HLOFRONT_XLA_GUARDS", "0")
    found = [verdict.kind for verdict in sweep.verdicts(names, "cpu")]
    assert found == [sweep.RUNS, sweep.DEAD, sweep.REFUSED, sweep.COMPILES]


@pytest.mark.slow
def test_with_guards_they_are_not():
    (verdict,) = sweep.verdicts([DIES], "cpu")
    assert verdict.kind == sweep.RUNS
