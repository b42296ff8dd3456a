"""The search for faults of XLA, over a few programs; tests/README.md says how to run it."""

import pytest

from tests.xla_faults.programs import EXACT, random_program
from tests.xla_faults.search import main


def test_results_of_random_programs_are_exact_in_their_dtypes():
    programs = [random_program(number) for number in range(200)]
    assert all(node.bound <= EXACT[each.dtype] for each in programs for node in each.nodes)
    assert {each.kind for each in programs} == {"call", "grad", "scan", "vmap"}
    assert max(len(node.shape) for each in programs for node in each.nodes) == 8


@pytest.mark.long
def test_random_programs_are_right():
    assert main(["--first", "2", "--count", "38", "--slow-every", "9"]) == 0
