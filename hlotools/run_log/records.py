"""The reading of logs of runs: one file of JSON lines per process."""

import json
import math
import os
import pathlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_FORMAT = "hlofront.log/1"
# The names of program files, to which a page links: they must be in the log's folder.
_STEM = re.compile(r"[\w.-]+")


class LogError(ValueError):
    """The error of a folder that has no log, or one of a newer version."""


class Record(NamedTuple):
    """One event of a run.

    `time` is when it was recorded, in seconds since the epoch, and `seconds` how long it took until
    then. `process` is the name of the process's file; `name`, `line` and `thread` are "" if they
    are unknown.
    """

    event: str
    time: float
    process: str
    name: str
    line: str
    thread: str
    seconds: float
    facts: Mapping[str, object]

    def text(self, fact: str) -> str:
        """Return a fact as text, "" if it is unknown."""
        value = self.facts.get(fact)
        return "" if value is None else str(value)

    def number(self, fact: str) -> float:
        """Return a fact as a finite number, 0 if it is unknown or not a number."""
        return _number(self.facts.get(fact))


@dataclass(frozen=True, slots=True)
class RunRecords:
    """The events of all processes of a run, in order of time."""

    folder: pathlib.Path
    records: list[Record]
    unreadable: dict[str, int] = field(default_factory=dict[str, int])
    """The number of lines that could not be read, by file: of a process that died, its last one."""

    def program_file(self, record: Record, suffix: str) -> pathlib.Path | None:
        """Return the file of the program of a record, None if it does not exist.

        Args:
          record: the record of a compilation, or of an executable that was loaded.
          suffix: "mlir" for StableHLO, "hlo" for optimized HLO, "html" for its page.
        """
        stem = record.text("program")
        if not _STEM.fullmatch(stem):
            return None
        path = self.folder / "programs" / f"{stem}.{suffix}"
        return path if path.is_file() else None


def read_log(folder: str | os.PathLike[str]) -> RunRecords:
    """Read the log that processes wrote to a folder with HLOFRONT_LOG=FOLDER.

    Raises:
      LogError: if the folder has no log, or one of a newer version.
      OSError: if a file cannot be read.
    """
    path = pathlib.Path(folder)
    files = sorted(path.glob("*.jsonl"))
    if not files:
        what = "has no log" if path.is_dir() else "is not a folder"
        raise LogError(f"{folder} {what}: run a program with HLOFRONT_LOG={folder}")
    records: list[Record] = []
    unreadable: dict[str, int] = {}
    for file in files:
        for line in file.read_bytes().splitlines():
            record = _record_of(line, file.stem)
            if record is None:
                unreadable[file.name] = unreadable.get(file.name, 0) + 1
                continue
            written = record.text("format")
            if record.event == "process" and written != _FORMAT:
                raise LogError(f"{file} has the format {written!r}: this version reads {_FORMAT!r}")
            records.append(record)
    if not records:
        raise LogError(f"{folder} has no log that can be read")
    records.sort(key=lambda record: record.time)
    return RunRecords(path, records, unreadable)


def _record_of(line: bytes, process: str) -> Record | None:
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or not isinstance(facts.get("event"), str):
        return None
    time = _number(facts.get("time"))
    if not time:
        return None
    name, source, thread = (str(facts.get(key) or "") for key in ("name", "line", "thread"))
    seconds = max(_number(facts.get("seconds")), 0.0)
    return Record(facts["event"], time, process, name, source, thread, seconds, facts)


def _number(value: object) -> float:
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return 0.0
        return number if math.isfinite(number) else 0.0
    return 0.0
