"""The report on processes that wait for each other, from what each says of itself."""

import dataclasses
import json

from hlofront.base.python_stacks import ThreadStack
from hlofront.pjrt.process_states import GONE, RUNS, STOPPED
from hlofront.pjrt.stuck_report import Answer, Launched, Sign, Waited, from_json, listed, report

ALL = [0, 1, 2, 3]


def stack(place, error="", is_callback=False, thread="MainThread"):
    lines = [place] if place else []
    return ThreadStack(thread, place, lines, error, is_callback)


def answer(process, names, waits=False, place="train at train.py:20", over=None, **fields):
    """The answer of a process that has launched these programs over all processes, or some."""
    processes = ALL if over is None else over
    launches = [
        Launched(number, 0, name, f"train.py:{10 + number}", "", "")
        for number, name in enumerate(names, 1)
    ]
    waited = Waited(processes, len(names), 3.0, ["all-reduce at model.py:5"]) if waits else None
    values = {"is_cut_off": False, "stacks": [stack(place)], "seconds": 2.5, "ended": ""}
    return Answer(process, [(processes, launches)], waited, **values | fields)


def text(*answers, signs=(), gone=()):
    by_process = {each.process: each for each in answers}
    return report(2, by_process, dict(signs), dict(gone), 4)


WAITING = [answer(n, ["init", "step"], waits=True) for n in (0, 1, 3)]


def test_a_process_that_has_not_come_is_first_with_its_line():
    lines = text(*WAITING, answer(2, ["init"], place="load at data.py:7 (in Queue.get)"))
    assert lines.splitlines() == [
        "hlofront: processes 0, 1, 3 of 4 have waited for 3.0 s (watchdog_seconds=2).",
        "process 2 has not launched step, launch 2:",
        "    it is in load at data.py:7 (in Queue.get) for 2.5 s",
        "      load at data.py:7 (in Queue.get)",
        "    others call it at train.py:12",
        "    its latest launch was init, launch 1, at train.py:11",
        "processes 0, 1, 3 wait in step, launch 2 for 3.0 s:",
        "    called at train.py:12",
        "    now at train at train.py:20",
        "    in all-reduce at model.py:5",
    ]


def test_an_answer_is_the_same_after_it_was_sent():
    sent = answer(2, ["init"], waits=True, peers={1: STOPPED})
    assert from_json(json.loads(json.dumps(dataclasses.asdict(sent)))) == sent


def test_those_that_died_come_before_those_that_are_stopped_and_those_that_are_late():
    signs = {n: Sign(4.0, "train at train.py:9", "init, launch 1", 70 + n, "a") for n in (0, 2)}
    waiting = dataclasses.replace(WAITING[1], peers={0: STOPPED, 2: GONE})
    lines = text(waiting, answer(3, ["init"], place="load at data.py:7"), signs=signs).splitlines()
    assert [line for line in lines if not line.startswith(" ")][1:] == [
        "process 2 has died (process 72 of a): it was killed, or ended without leaving the group",
        "process 0 is stopped (process 70 of a), by SIGSTOP or a debugger: `kill -CONT` lets it go "
        "on",
        "process 3 has not launched step, launch 2:",
        "process 1 waits in step, launch 2 for 3.0 s:",
    ]
    assert lines[2] == (
        "    its last sign was 4.0 s ago: it was in train at train.py:9; its latest launch was "
        "init, launch 1"
    )


def test_what_is_known_of_a_process_that_does_not_answer():
    sign = {2: Sign(4.0, "", "", 72, "a")}
    assert "process 2 does not answer (process 72 of a): it was killed" in text(
        *WAITING, signs=sign
    )
    running = [dataclasses.replace(WAITING[0], peers={2: RUNS}), *WAITING[1:]]
    assert "process 2 runs (process 72 of a), and does not answer: C code holds the GIL" in text(
        *running, signs=sign
    )
    assert "process 2 has failed: it ended with OSError" in text(
        *WAITING, signs=sign, gone={2: "it ended with OSError"}
    )
    assert "process 2 has left the group in order" in text(*WAITING, gone={2: ""})
    assert "process 2 has no watchdog: turn it on in all processes." in text(*WAITING)


def test_the_first_launch_that_differs_is_told_with_both_lines():
    others = [answer(n, ["init", "step", "norm"], waits=True) for n in (0, 2, 3)]
    lines = text(*others, answer(1, ["init", "norm", "step"], waits=True)).splitlines()
    assert lines[1:5] == [
        "process 1 has launched norm as launch 2, and others another program:",
        "    process 1: norm at train.py:12",
        "    processes 0, 2, 3: step at train.py:12",
        "    process 1 is in train at train.py:20",
    ]


def test_programs_of_one_name_differ_by_their_digests_where_both_are_known():
    def of(process, digest):
        kept = [(ALL, [Launched(1, 0, "f", "a.py:1", digest, "")])]
        return Answer(process, kept, Waited(ALL, 1, 3.0, []), False, [stack("a.py:1")], 1.0, "")

    assert "another program" in text(of(0, "x"), of(1, "x"), of(2, "x"), of(3, "y"))
    assert "another program" not in text(of(0, "x"), of(1, ""), of(2, "x"), of(3, ""))


def test_launches_that_differed_before_those_that_are_kept_are_told():
    def of(process, before):
        kept = [(ALL, [Launched(70, before, "f", "a.py:1", "x", "")])]
        return Answer(process, kept, Waited(ALL, 70, 3.0, []), False, [stack("a.py:1")], 1.0, "")

    assert (
        "process 3 has launched other programs than others before launch 70, the first that is "
        "known of all." in text(of(0, 8), of(1, 8), of(2, 8), of(3, 9))
    )


def test_processes_that_wait_in_several_programs_are_told_with_the_processes_of_each():
    first = answer(0, ["f"], waits=True, over=[0, 1])
    second = answer(1, ["g"], waits=True, over=[1, 2])
    third = answer(2, [], place="load at data.py:7")
    lines = text(first, second, third, answer(3, []))
    assert "process 2 has not launched g, launch 1:" in lines
    assert "process 1 waits in g, launch 1 over processes 1, 2 for 3.0 s:" in lines
    assert lines.index("process 2 has not") < lines.index("process 0 waits in f, launch 1 over")
    assert "process 3 waits for no other:" in lines


def test_processes_at_one_line_that_wait_for_no_other_are_told_together():
    waiting = answer(1, ["f"], waits=True)
    lines = text(waiting, *(answer(n, ["f"], place="save at a.py:7") for n in (0, 2, 3)))
    assert "processes 0, 2, 3 wait for no other:\n    it is in save at a.py:7 for 2.5 s" in lines


def test_errors_ended_programs_and_callbacks_are_told():
    late = answer(2, ["init"], stacks=[stack("save at a.py:1", error="ValueError: odd at b.py:2")])
    assert "save at a.py:1 for 2.5 s, and handles ValueError: odd at b.py:2" in text(*WAITING, late)
    thread = stack("read at a.py:3", thread="reader")
    ended = answer(2, ["init"], stacks=[stack(""), thread], ended="ValueError: odd at b.py:2")
    found = text(*WAITING, ended)
    assert "its main program has ended with ValueError: odd at b.py:2, and its process has" in found
    assert "    its thread reader is in read at a.py:3" in found
    callback = stack("log at a.py:4", is_callback=True, thread="of XLA")
    inside = answer(2, ["init", "step"], waits=True, stacks=[stack("train.py:9"), callback])
    lines = text(*WAITING, inside).splitlines()
    assert lines[1:3] == [
        "process 2 runs a callback of step, launch 2 for 3.0 s:",
        "    in log at a.py:4",
    ]


def test_nobody_is_blamed_if_all_have_come():
    inside = answer(2, ["init", "step"], waits=True)
    assert text(*WAITING, inside).endswith(
        "All have launched it: the program takes long, or a device or the network between devices "
        "hangs."
    )


def test_some_of_many_collectives_are_listed():
    waited = Waited(ALL, 1, 3.0, [f"all-reduce at a.py:{n}" for n in range(8)])
    answers = [dataclasses.replace(answer(n, ["f"]), waited=waited) for n in ALL]
    assert "in one of all-reduce at a.py:0; all-reduce at a.py:1; " in text(*answers)
    assert "; all-reduce at a.py:5; and 2 more" in text(*answers)


def test_lost_connections_are_the_reason_of_the_report():
    assert text(*WAITING[1:], dataclasses.replace(WAITING[0], is_cut_off=True)).startswith(
        "hlofront: process 0 of 4 has lost the connection to another process."
    )


def test_numbers_of_processes_are_listed_as_ranges():
    assert listed([3]) == "process 3"
    assert listed([5, 0, 1]) == "processes 0, 1, 5"
    assert listed([*range(7), 9]) == "processes 0-6, 9"
