"""Planted changes of programs over several CPU devices; the others are in tests/inspect."""

import pytest

from tests.inspect.scoreboard.planted import PLANTED
from tests.inspect.test_scoreboard import test_a_planted_change_is_the_first_finding as hold

OVER_A_MESH = [case for case in PLANTED if case.over_mesh]


@pytest.mark.parametrize("case", OVER_A_MESH, ids=lambda case: case.name)
def test_a_planted_change_is_the_first_finding(case):
    hold(case, "cpu")
