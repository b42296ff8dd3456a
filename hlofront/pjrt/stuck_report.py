# pyright: strict
"""The report on a group of processes that wait for each other: who is where, the culprits first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.python_stacks import ThreadStack
from hlofront.pjrt.process_states import GONE, RUNS, STOPPED

# The maximum number of collectives of a program, and of processes each by itself, that are listed.
_MAX_COLLECTIVES = 6
_MAX_PROCESSES = 16


class Launched(NamedTuple):
    """A launch of a process, as it tells it to the others.

    Attributes:
      number: the number of the launch among those over the same processes.
      before: a checksum of the names of the launches before it.
      name: the name of the function.
      line: the user's line that calls it.
      digest: a digest of the program, or "".
      error: the exception that ended it, or "".
    """

    number: int
    before: int
    name: str
    line: str
    digest: str
    error: str

    def what(self) -> str:
        """Return the name and number as text."""
        return f"{self.name}, launch {self.number}"


class Waited(NamedTuple):
    """The launch that a process waits in.

    Attributes:
      processes: the processes that take part.
      number: its number among the launches over these processes.
      seconds: for how long the process has waited.
      collectives: the collectives of the program, each with its line.
    """

    processes: list[int]
    number: int
    seconds: float
    collectives: list[str]


@dataclass
class Answer:
    """What a process says of itself.

    Attributes:
      process: its number.
      kept: its latest launches over each set of processes, the latest last.
      waited: the launch that it waits in, or None.
      is_cut_off: whether its connection to another process is broken.
      stacks: the stacks of its threads, that of its latest launch first.
      seconds: for how long the first has been at its line.
      ended: the exception that has ended its main program, or "".
      peers: the states of the processes of its machine.
    """

    process: int
    kept: list[tuple[list[int], list[Launched]]]
    waited: Waited | None
    is_cut_off: bool
    stacks: list[ThreadStack]
    seconds: float
    ended: str
    peers: dict[int, str] = field(default_factory=dict[int, str])

    def launches(self, processes: Sequence[int]) -> dict[int, Launched]:
        """Return its latest launches over some processes, by number."""
        for those, launches in self.kept:
            if those == processes:
                return {launch.number: launch for launch in launches}
        return {}

    @property
    def callbacks(self) -> list[str]:
        """Where the threads are that run callbacks of compiled programs."""
        return [stack.place for stack in self.stacks if stack.is_callback]

    @property
    def stack(self) -> ThreadStack:
        """The stack of the thread that launches programs."""
        return self.stacks[0]


class Sign(NamedTuple):
    """What a process said of itself before, regularly.

    Attributes:
      age: how many seconds ago.
      place: the user's innermost line.
      launched: its latest launch, as text, or "".
      pid: its number on its machine.
      host: the name of its machine.
    """

    age: float
    place: str
    launched: str
    pid: int
    host: str


def from_json(value: dict[str, Any]) -> Answer:
    """Return an answer that was sent as JSON."""
    value["kept"] = [(those, [Launched(*each) for each in kept]) for those, kept in value["kept"]]
    if value["waited"] is not None:
        value["waited"] = Waited(*value["waited"])
    value["stacks"] = [ThreadStack(*stack) for stack in value["stacks"]]
    value["peers"] = {int(number): state for number, state in value["peers"].items()}
    return Answer(**value)


def report(
    limit: float,
    answers: Mapping[int, Answer],
    signs: Mapping[int, Sign],
    gone: Mapping[int, str],
    process_count: int,
) -> str:
    """Return the report on a group.

    Args:
      limit: the seconds after which a process that waits raises the alarm.
      answers: what the processes say that answer, by their numbers.
      signs: the last signs of those that do not, where they have given any.
      gone: the processes that are known to have ended, with the reason; "" if in order.
      process_count: the number of processes in the group.
    """
    return _Report(limit, answers, signs, gone, process_count).text()


class _Report:
    def __init__(
        self,
        limit: float,
        answers: Mapping[int, Answer],
        signs: Mapping[int, Sign],
        gone: Mapping[int, str],
        process_count: int,
    ):
        self._limit = limit
        self._answers = dict(sorted(answers.items()))
        self._signs = signs
        self._gone = gone
        self._silent = [n for n in range(process_count) if n not in answers]
        self._count = process_count

    def text(self) -> str:
        waiting = [a for a in self._answers.values() if a.waited is not None]
        missing = self._missing(waiting)
        differing = self._differing()
        sections = [*self._silent_texts(), *differing]
        for number in missing:
            if self._answers[number].waited is None:
                sections.append(self._missing_text(self._answers[number], missing[number]))
        sections += self._waiting_texts(waiting)
        others = [a for n, a in self._answers.items() if a.waited is None and n not in missing]
        sections += self._other_texts(others)
        callbacks = any(answer.callbacks for answer in waiting)
        if waiting and not (self._silent or missing or differing or callbacks):
            sections.append(
                "All have launched it: the program takes long, or a device or the network between "
                "devices hangs."
            )
        return "\n".join([self._head(waiting), *sections])

    def _head(self, waiting: Sequence[Answer]) -> str:
        cut_off = [a.process for a in self._answers.values() if a.is_cut_off]
        if cut_off:
            return (
                f"hlofront: {listed(cut_off)} of {self._count} {_has(cut_off)} lost the connection "
                "to another process."
            )
        longest = max(waiting, key=lambda answer: answer.waited.seconds if answer.waited else 0)
        seconds = longest.waited.seconds if longest.waited else 0
        who = [answer.process for answer in waiting]
        return (
            f"hlofront: {listed(who)} of {self._count} {_has(who)} waited for {seconds:.1f} s "
            f"(watchdog_seconds={self._limit:g})."
        )

    # ---- those that do not answer

    def _silent_texts(self) -> list[str]:
        peers = {n: state for a in self._answers.values() for n, state in a.peers.items()}

        def rank(number: int) -> int:
            if self._gone.get(number) or peers.get(number) == GONE:
                return 0
            return 1 if peers.get(number) == STOPPED else 2

        numbers = sorted(self._silent, key=rank)
        texts = [self._silent_text(n, peers.get(n, "")) for n in numbers[:_MAX_PROCESSES]]
        if len(numbers) > _MAX_PROCESSES:
            rest = numbers[_MAX_PROCESSES:]
            texts.append(f"{listed(rest)} {'does' if len(rest) == 1 else 'do'} not answer either.")
        return texts

    def _silent_text(self, number: int, state: str) -> str:
        sign = self._signs.get(number)
        which = f"(process {sign.pid} of {sign.host})" if sign else ""
        if self._gone.get(number) == "":
            return f"process {number} has left the group in order, and ended its program."
        if state == GONE:
            what = f"has died {which}: it was killed, or ended without leaving the group"
        elif state == STOPPED:
            what = f"is stopped {which}, by SIGSTOP or a debugger: `kill -CONT` lets it go on"
        elif number in self._gone:
            what = f"has failed: {self._gone[number]}"
        elif sign is None:
            return f"process {number} has no watchdog: turn it on in all processes."
        elif state == RUNS:
            what = (
                f"runs {which}, and does not answer: C code holds the GIL of its Python, or its "
                "machine is very busy"
            )
        else:
            what = (
                f"does not answer {which}: it was killed or stopped, its machine is cut off, or C "
                "code holds the GIL of its Python"
            )
        last = ""
        if sign is not None:
            launched = f"; its latest launch was {sign.launched}" if sign.launched else ""
            place = f"it was in {sign.place}" if sign.place else "it ran no line of the user's"
            last = f"\n    its last sign was {sign.age:.1f} s ago: {place}{launched}"
        return f"process {number} {what}{last}"

    # ---- those that have launched something else, or nothing

    def _differing(self) -> list[str]:
        """Return what differs first in the launches over each set of processes."""
        sets = {tuple(those) for answer in self._answers.values() for those, _ in answer.kept}
        texts: list[str] = []
        for processes in sorted(sets):
            histories = {
                n: self._answers[n].launches(list(processes))
                for n in processes
                if n in self._answers
            }
            for number in sorted({n for history in histories.values() for n in history}):
                there = {
                    n: history[number] for n, history in histories.items() if number in history
                }
                by_past: dict[int, list[int]] = {}
                for process, launch in there.items():
                    by_past.setdefault(launch.before, []).append(process)
                if len(by_past) > 1:
                    few = min(by_past.values(), key=len)
                    texts.append(
                        f"{listed(few)} {_has(few)} launched other programs than others before "
                        f"launch {number}, the first that is known of all."
                    )
                    break
                groups = _by_program(there)
                if len(groups) > 1:
                    texts.append(self._differing_text(number, histories, groups))
                    break
        return texts

    def _differing_text(
        self,
        number: int,
        histories: Mapping[int, Mapping[int, Launched]],
        groups: Sequence[Sequence[int]],
    ) -> str:
        first, *rest = sorted(groups, key=len)
        launch = histories[first[0]][number]
        lines = [
            f"{listed(first)} {_has(first)} launched {launch.name} as launch {number}, and others "
            "another program:"
        ]
        for group in (first, *rest):
            launch = histories[group[0]][number]
            lines.append(f"{listed(group)}: {launch.name} at {launch.line}")
        for process in first[:_MAX_PROCESSES]:
            place = self._answers[process].stack.place
            if place:
                lines.append(f"process {process} is in {place}")
        return "\n    ".join(lines)

    def _missing(self, waiting: Iterable[Answer]) -> dict[int, Launched]:
        """Return the processes that have not come to a launch, and the next one of the others'."""
        missing: dict[int, Launched] = {}
        for answer in waiting:
            assert answer.waited is not None
            processes = answer.waited.processes
            for number in processes:
                other = self._answers.get(number)
                if other is None or number == answer.process:
                    continue
                count = max(other.launches(processes), default=0)
                if count < answer.waited.number:
                    own = answer.launches(processes)
                    expected = own.get(count + 1) or own[answer.waited.number]
                    missing.setdefault(number, expected)
        return missing

    def _missing_text(self, answer: Answer, expected: Launched) -> str:
        lines = [
            f"process {answer.process} has not launched {expected.what()}:",
            self._place_text(answer),
            f"others call it at {expected.line}",
        ]
        latest = max(
            (launches[-1] for _, launches in answer.kept if launches),
            key=lambda launch: launch.number,
            default=None,
        )
        if latest is not None:
            error = f", which raised {latest.error}" if latest.error else ""
            lines.append(f"its latest launch was {latest.what()}{error}, at {latest.line}")
        return "\n    ".join(lines)

    def _place_text(self, answer: Answer) -> str:
        stack = answer.stack
        error = ""
        if stack.error and not answer.is_cut_off:
            error = f", and handles {stack.error}"
        if answer.ended:
            place = f"its main program has ended with {answer.ended}"
            place += f", and it is in {stack.place}" if stack.place else ", and its process has not"
            error = ""
        elif stack.place:
            place = f"it is in {stack.place} for {answer.seconds:.1f} s"
        else:
            place = "its main program has ended, and its process has not"
        lines = "".join(f"\n      {line}" for line in stack.lines)
        threads = "".join(
            f"\n    its thread {other.thread} is in {other.place}"
            for other in answer.stacks[1:]
            if answer.ended or not stack.place or other.is_callback
        )
        return f"{place}{error}{lines}{threads}"

    def _other_texts(self, others: Sequence[Answer]) -> list[str]:
        groups: dict[str, list[Answer]] = {}
        for answer in others:
            groups.setdefault(repr((answer.ended, answer.stacks)), []).append(answer)
        return [
            f"{listed([answer.process for answer in group])} "
            f"{'waits' if len(group) == 1 else 'wait'} for no other:\n"
            f"    {self._place_text(group[0])}"
            for group in groups.values()
        ]

    # ---- those that wait

    def _waiting_texts(self, waiting: Sequence[Answer]) -> list[str]:
        groups: dict[object, list[Answer]] = {}
        for answer in waiting:
            assert answer.waited is not None
            processes, number = answer.waited.processes, answer.waited.number
            launch = answer.launches(processes).get(number)
            key = (processes, number, launch, answer.stack.lines, answer.callbacks)
            groups.setdefault(repr(key), []).append(answer)
        ordered = sorted(groups.values(), key=lambda group: not group[0].callbacks)
        return [self._waiting_text(group) for group in ordered]

    def _waiting_text(self, group: Sequence[Answer]) -> str:
        answer = group[0]
        waited = answer.waited
        assert waited is not None
        launch = answer.launches(waited.processes).get(waited.number)
        what = launch.what() if launch else f"launch {waited.number}"
        over = ""
        if len(waited.processes) < self._count:
            over = f" over {listed(waited.processes)}"
        seconds = max(a.waited.seconds for a in group if a.waited is not None)
        who = listed([a.process for a in group])
        if answer.callbacks:
            does = "runs a callback of" if len(group) == 1 else "run callbacks of"
        else:
            does = "waits in" if len(group) == 1 else "wait in"
        lines = [f"{who} {does} {what}{over} for {seconds:.1f} s:"]
        lines += [f"in {place}" for place in answer.callbacks]
        if launch is not None and launch.line:
            lines.append(f"called at {launch.line}")
        now_at = answer.stack.lines[-1:]
        if now_at and not answer.callbacks and (launch is None or now_at[0] != launch.line):
            lines.append(f"now at {now_at[0]}")
        found = waited.collectives
        if found:
            which = "" if len(found) == 1 else "one of "
            more = len(found) - _MAX_COLLECTIVES
            lines.append(
                f"in {which}{'; '.join(found[:_MAX_COLLECTIVES])}"
                + (f"; and {more} more" if more > 0 else "")
            )
        return "\n    ".join(lines)


def _by_program(launches: Mapping[int, Launched]) -> list[list[int]]:
    """Return the processes in groups that have launched one program, as far as is known."""
    groups: list[tuple[Launched, list[int]]] = []
    # A launch without a digest may be of any program of its name.
    for process, launch in sorted(launches.items(), key=lambda item: not item[1].digest):
        for first, group in groups:
            if launch.name == first.name and launch.digest in ("", first.digest):
                group.append(process)
                break
        else:
            groups.append((launch, [process]))
    return [sorted(group) for _, group in groups]


def _has(numbers: Sequence[int]) -> str:
    return "has" if len(numbers) == 1 else "have"


def listed(numbers: Sequence[int]) -> str:
    """Return processes as text, neighbors as ranges: "processes 0, 2-5"."""
    ordered = sorted(numbers)
    ranges: list[list[int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [
        f"{first}"
        if first == last
        else f"{first}, {last}"
        if last == first + 1
        else f"{first}-{last}"
        for first, last in ranges
    ]
    return f"process{'' if len(ordered) == 1 else 'es'} {', '.join(texts)}"
