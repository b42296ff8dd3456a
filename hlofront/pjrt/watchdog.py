# pyright: strict
"""The watchdog of a group of processes: when they wait for each other, it says who is where.

Each process notes its launches of programs over several processes (launches.py), which costs a
microsecond. A thread looks at them several times within the limit: it publishes where this process
is, a few hundred bytes, and reads whether another process has raised the alarm. When this process
has waited in a launch for longer than the limit, it raises the alarm. Every process then publishes
its answer: its latest launches, what it waits in, the collectives of that program, and the Python
stacks of its threads. One process, number 0 if it can, prints the report on all of them.
"""

import dataclasses
import json
import os
import platform
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, Protocol

from hlofront.base import source
from hlofront.base.python_stacks import current_place, error_text, shown_place, thread_stacks
from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.coordination import CoordinationClient, write_first
from hlofront.pjrt import launches, process_states, stuck_report
from hlofront.pjrt.launches import Launch, Launches
from hlofront.pjrt.stuck_report import Answer, Launched, Sign, Waited

_ROOT = "hlofront/watchdog"
_ALARMS, _ANSWERS, _CLAIMS = f"{_ROOT}/alarms", f"{_ROOT}/answers", f"{_ROOT}/claims"
_SIGNS, _HOSTS = f"{_ROOT}/signs", f"{_ROOT}/hosts"
# The number of looks within the limit; the bounds of the seconds between looks; and how many looks
# all processes of a group take in a second at most.
_LOOKS, _MIN_PERIOD, _MAX_PERIOD, _MAX_LOOKS = 8, 0.2, 5.0, 256
# Seconds beyond two periods that the process with the report waits for answers.
_GRACE = 2.0
# How long the end of the thread may take, which may wait for the coordination service.
_END_SECONDS = 10.0


class WatchedGroup(Protocol):
    """A group of processes as the watchdog uses it."""

    process_id: int
    process_count: int
    client: CoordinationClient
    cut_off_since: float | None

    def gone(self) -> dict[int, str]: ...


class Watchdog:
    """The thread that raises the alarm when this process waits too long, and answers alarms.

    Args:
      group: the group of this process.
      seconds: the limit.
    """

    def __init__(self, group: WatchedGroup, seconds: float):
        self._group = group
        self._client = group.client
        self._limit = seconds
        period = min(max(seconds / _LOOKS, _MIN_PERIOD), _MAX_PERIOD)
        self._period = max(period, group.process_count / _MAX_LOOKS)
        self._launches = Launches()
        self._host = process_states.machine()
        # The launch that this process waits in, since when, and the last one that was reported.
        self._waited: Launch | None = None
        self._since = 0.0
        self._reported: Launch | None = None
        self._cut_off_reported = False
        # The user's line that the launching thread is at, and since when.
        self._place: tuple[types.CodeType, int] | None = None
        self._place_since = time.monotonic()
        # The alarms that this process has answered, and when it may claim their reports.
        self._answered = 0
        self._claims: dict[int, float] = {}
        # The collectives of the program that was waited in last, by what returns its HLO.
        self._collectives: tuple[Callable[[], str], list[str]] | None = None
        self._ends = threading.Event()
        pid = os.getpid()
        self._client.key_value_set(
            f"{_HOSTS}/{self._host}/{group.process_id}",
            f"{pid} {process_states.started_at(pid)}",
            allow_overwrite=True,
        )
        launches.record_launches(self._launches)
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which is to be in no call of C++ when the interpreter ends."""
        launches.record_launches(None)
        self._ends.set()
        self._thread.join(_END_SECONDS)

    def _watch(self) -> None:
        try:
            while not self._ends.wait(self._period):
                self._look()
        except JaxRuntimeError:
            return  # The coordination service is gone, which others tell.

    def _look(self) -> None:
        now = time.monotonic()
        waited = self._launches.unfinished()
        if waited is not self._waited:
            self._since = max(self._since, waited.began) if waited is not None else now
            self._waited = waited
        latest = self._launches.latest
        place = current_place(latest.thread if latest is not None else None)
        if place != self._place:
            self._place, self._place_since = place, now
        self._give_sign()
        if waited is not None and now - self._since > self._limit / 2:
            self._collectives_of(waited)  # The text of a large program takes seconds to read.
        alarms = self._client.key_value_dir_get(_ALARMS)
        for number in range(self._answered, len(alarms)):
            self._answer(number)
        if len(alarms) == self._answered and self._is_late(now):
            write_first(self._client, f"{_ALARMS}/{len(alarms)}", str(self._group.process_id))
        for number, at in list(self._claims.items()):
            if time.monotonic() >= at:
                del self._claims[number]
                me = str(self._group.process_id)
                if write_first(self._client, f"{_CLAIMS}/{number}", me):
                    self._report(number)

    def _is_late(self, now: float) -> bool:
        if self._group.cut_off_since is not None and not self._cut_off_reported:
            return True
        if self._waited is None or self._waited is self._reported:
            return False
        return now - self._since > self._limit

    def _give_sign(self) -> None:
        place, latest = self._place, self._launches.latest
        sign = {
            "time": time.time(),
            "place": "" if place is None else shown_place(*place),
            "launched": "" if latest is None else _launched(latest).what(),
            "pid": os.getpid(),
            "host": platform.node(),
        }
        key = f"{_SIGNS}/{self._group.process_id}"
        self._client.key_value_set(key, json.dumps(sign), allow_overwrite=True)

    # ---- an alarm

    def _answer(self, number: int) -> None:
        """Publish where this process is, for the report on an alarm."""
        me = self._group.process_id
        answer = json.dumps(dataclasses.asdict(self._own_answer()))
        self._client.key_value_set(f"{_ANSWERS}/{number}/{me}", answer, allow_overwrite=True)
        self._answered = number + 1
        self._reported = self._waited
        self._cut_off_reported = self._group.cut_off_since is not None
        # Process 0 reports; if it does not claim that, one of the others does.
        delay = 0.0 if me == 0 else 2 * self._period + 1 + min(0.05 * me, 1)
        self._claims[number] = time.monotonic() + delay

    def _own_answer(self) -> Answer:
        now = time.monotonic()
        latest, waited = self._launches.latest, self._waited
        is_cut_off = self._group.cut_off_since is not None
        if waited is None and is_cut_off:
            waited = latest  # It has ended with an error, which is not raised yet.
        stacks = thread_stacks(latest.thread if latest is not None else None)
        ended = getattr(sys, "last_value", None)  # The interpreter has printed this error.
        return Answer(
            process=self._group.process_id,
            kept=[
                (list(processes), [_launched(launch) for launch in list(kept)])
                for processes, kept in list(self._launches.kept.items())
            ],
            waited=None
            if waited is None
            else Waited(
                list(waited.processes),
                waited.number,
                now - self._since,
                self._collectives_of(waited),
            ),
            is_cut_off=is_cut_off,
            stacks=stacks,
            seconds=now - self._place_since,
            ended=error_text(ended) if isinstance(ended, BaseException) else "",
            peers=self._peers(),
        )

    def _peers(self) -> dict[int, str]:
        """Return the states of the group's processes on this machine, where they are known."""
        states: dict[int, str] = {}
        for key, value in self._client.key_value_dir_get(f"{_HOSTS}/{self._host}"):
            pid, started = value.split(" ")
            state = process_states.state(int(pid), started)
            if state:
                states[int(key.rpartition("/")[2])] = state
        return states

    def _collectives_of(self, launch: Launch) -> list[str]:
        """Return the collectives of a program, each with the user's line that asks for it."""
        if launch.hlo_text is None:
            return []
        if self._collectives is None or self._collectives[0] is not launch.hlo_text:
            self._collectives = launch.hlo_text, _collectives(launch.hlo_text())
        return self._collectives[1]

    def _report(self, number: int) -> None:
        """Wait for the answers to an alarm, print the report on them, and forget them."""
        client, group = self._client, self._group
        end = time.monotonic() + 2 * self._period + _GRACE
        while True:
            answers = {
                process: stuck_report.from_json(json.loads(text))
                for process, text in _by_process(client, f"{_ANSWERS}/{number}").items()
            }
            cannot = {
                process
                for answer in answers.values()
                for process, state in answer.peers.items()
                if state != process_states.RUNS
            }
            if len(answers.keys() | cannot) == group.process_count or time.monotonic() > end:
                break
            if self._ends.wait(_MIN_PERIOD):
                break
        signs: dict[int, Sign] = {}
        if len(answers) < group.process_count:
            for process, text in _by_process(client, _SIGNS).items():
                fields = json.loads(text)
                age = max(0.0, time.time() - fields.pop("time"))
                signs[process] = Sign(age=age, **fields)
        text = stuck_report.report(self._limit, answers, signs, group.gone(), group.process_count)
        client.key_value_delete(f"{_ANSWERS}/{number}")
        print(text, file=sys.stderr, flush=True)
        for listener in launches.on_report:
            listener(text)


def _launched(launch: Launch) -> Launched:
    return Launched(
        launch.number, launch.before, launch.name, launch.line(), launch.digest[:16], launch.error
    )


def _by_process(client: CoordinationClient, prefix: str) -> dict[int, str]:
    """Return the values below a key by the process that wrote them."""
    return {int(key.rpartition("/")[2]): value for key, value in client.key_value_dir_get(prefix)}


def _collectives(hlo: str) -> list[str]:
    # Loads the parser of HLO, which a process needs when it is stuck.
    from hlotools.cost.collectives import collectives
    from hlotools.ir.hlo import HloSyntaxError

    texts: dict[str, None] = {}
    try:
        rows = collectives(hlo).rows
    except HloSyntaxError:
        return []  # The executable is gone, or its text is of another form: the line is known.
    for row in rows:
        line: Any = None
        if row.file is not None and row.line is not None:
            line = source.shown_line(row.file, row.line)
            if row.function:
                line = f"{line} in {row.function.replace('.<locals>', '')}"
        texts[f"{row.opcode} at {line}" if line else row.opcode] = None
    return list(texts)
