"""What a process notes of its launches, and which of them it waits in."""

import pytest

from hlofront.pjrt import launches
from hlofront.pjrt.launches import Launches, noted

ALL, SOME = (0, 1, 2), (0, 2)


class Result:
    """An array that is ready when it is told so."""

    ready = False

    def is_ready(self):
        return self.ready


class Deleted:
    def is_ready(self):
        raise RuntimeError("Array has been deleted.")


@pytest.fixture
def own():
    own = Launches()
    launches.record_launches(own)
    yield own
    launches.record_launches(None)


def test_launches_are_numbered_over_each_set_of_processes_and_know_the_line(own):
    found = [own.begin(processes, "f") for processes in (ALL, SOME, ALL)]
    assert [launch.number for launch in found] == [1, 1, 2]
    assert "own.begin(processes" in found[0].line()


def test_equal_names_have_equal_checksums(own):
    for processes, names in ((ALL, "abc"), (SOME, "abc"), ((1, 2), "bac")):
        for name in names:
            own.begin(processes, name)
    first, second, third = (own.kept[key][-1] for key in (ALL, SOME, (1, 2)))
    assert first.before == second.before != third.before
    assert first.after == second.after


def test_a_process_waits_in_the_first_launch_whose_result_is_not_ready(own):
    results = [Result(), Result()]
    for result in results:
        own.begin(ALL, "f").returned([object(), result])
    assert own.unfinished().number == 1
    results[0].ready = True
    assert own.unfinished().number == 2
    results[1].ready = True
    assert own.unfinished() is None


def test_results_that_were_deleted_or_dropped_are_not_waited_for(own):
    deleted = Deleted()
    own.begin(ALL, "f").returned([deleted])
    own.begin(ALL, "f").returned([Result()])
    own.begin(ALL, "f").returned([])
    own.begin(ALL, "f").failed(ValueError("odd\nmore"))
    assert own.unfinished() is None
    assert own.latest.error == "ValueError: odd"


def test_a_launch_in_the_queue_waits_for_the_one_that_runs(own):
    first = own.begin(ALL, "f")
    first.waits_in_queue()
    assert own.unfinished() is first
    first.runs()
    first.returned([])
    second = own.begin(ALL, "g")
    assert own.unfinished() is second  # It compares its program with those of the others.
    second.waits_in_queue()
    assert own.unfinished() is first
    second.runs()
    assert own.unfinished() is second


def test_a_launch_of_arguments_is_waited_for_before_that_of_the_program(own):
    own.begin(ALL, "f")
    seen = []
    noted(SOME, "device_put", lambda: seen.append(own.unfinished().name) or [])
    assert seen == ["device_put"]
    assert own.unfinished().name == "f"


def test_calls_without_other_processes_are_not_noted(own):
    assert noted((0,), "device_put", lambda: [5]) == [5]
    assert own.latest is None
    with pytest.raises(ValueError, match="odd"):
        noted(ALL, "device_put", lambda: [int("odd")])
    assert own.latest.error.startswith("ValueError: invalid literal")
