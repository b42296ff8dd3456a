"""Each stratum has its first cases in the first part, and the parts are all cases."""

import pytest

from tests.support.parts import FOUND_A_FAULT, Share, select, share_of

CASES = [f"{kind}{number}" for number in range(100) for kind in ("sin", "cos")] + ["tan0"]


def selected(part, share=Share(first=2, one_in=10)):
    return select(CASES, share, str, lambda case: [case[:3]], part, half="")


def test_each_stratum_has_its_first_cases():
    assert selected("first", Share(first=1, one_in=10**9)) == ["sin0", "cos0", "tan0"]
    assert {"sin0", "sin1", "cos0", "cos1", "tan0"} < set(selected("first"))


def test_of_the_others_a_digest_decides():
    assert 20 <= len(selected("first")) <= 40
    without_a_case = select(
        [c for c in CASES if c != "sin50"], Share(2, 10), str, lambda c: [c[:3]], "first"
    )
    assert set(selected("first")) - set(without_a_case) <= {"sin50"}


def test_the_parts_are_all_cases():
    assert sorted(selected("first") + selected("rest")) == sorted(CASES)
    assert selected("all") == CASES


def test_a_half_has_the_first_part_and_some_of_the_others():
    halves = [
        select(CASES, Share(2, 10), str, lambda case: [case[:3]], "all", half=commit)
        for commit in ("3f2a", "77c1")
    ]
    for half in halves:
        assert set(selected("first")) < set(half)
        assert 0.35 < (len(half) - len(selected("first"))) / len(selected("rest")) < 0.65
    assert halves[0] != halves[1]


def test_tests_that_found_a_planted_fault_are_in_the_first_part():
    share = Share(first=0, one_in=10**9)
    parts = [
        select(CASES, share, str, lambda case: [case[:3]], part, lambda case: case == "cos7", "")
        for part in ("first", "rest")
    ]
    assert parts == [["cos7"], [case for case in CASES if case != "cos7"]]
    assert len(FOUND_A_FAULT) >= 40


@pytest.mark.parametrize(
    ("path", "all_of_them"),
    [("tests/conventions/test_x.py", True), ("tests/numpy/test_x.py", False)],
)
def test_the_longest_beginning_of_a_path_decides(path, all_of_them):
    assert (share_of(path).one_in == 1) is all_of_them
