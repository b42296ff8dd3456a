"""Collectives over two processes are those over one; over_processes.py compares more, by hand."""

import pytest

from tests.processes.over_processes import compared


@pytest.mark.long
def test_collectives_over_two_processes_are_those_over_one(tmp_path):
    known, _ = compared(1, ("float32",), tmp_path)
    assert [name for name, value in known.items() if value.dtype.kind == "U"] == []
    _, differing = compared(2, ("float32",), tmp_path, known)
    assert len(known) == 20 and differing == []
