"""The cause of a change is the first finding of a diff: twenty planted changes for each target."""

import pytest

import hlofront as jax
from hlofront.pjrt.targets import install_hint
from tests.inspect.scoreboard.planted import PLANTED, TARGETS
from tests.inspect.scoreboard.scoring import MAX_LINES, score_of


def needing(target):
    """A mark that skips a test where the compiler of a target is not installed."""
    missing = install_hint(target.partition(":")[0])
    return pytest.mark.skipif(bool(missing), reason=f"compiling takes `{missing}`")


@pytest.mark.parametrize("target", [pytest.param(each, marks=needing(each)) for each in TARGETS])
@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case.name)
def test_a_planted_change_is_the_first_finding(case, target):
    if target == "cpu" and case.over_mesh and jax.device_count() == 1:
        pytest.skip("tests/many_devices has this case, where there are several CPU devices")
    score = score_of(case, target)
    assert score.is_first, f"the diff says first: {score.first}"
    assert score.is_first_in_text, "the diff of the programs' texts says something else first"
    assert score.causes == 1
    assert score.lines <= MAX_LINES
    assert score.is_counted_once, "effects do not add up to what the programs cost more"
