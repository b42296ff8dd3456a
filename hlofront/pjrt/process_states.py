# pyright: strict
"""What the system says of processes on this machine: whether they run, are stopped, or are gone."""

import contextlib
import os
import pathlib
import platform

_PROC = pathlib.Path("/proc")

# The states of a process; "" if nobody says it.
GONE, STOPPED, RUNS = "gone", "stopped", "runs"


def machine() -> str:
    """Return a name of this machine, and of the container that numbers its processes."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8])
        parts.append(os.readlink(_PROC / "self/ns/pid").strip("pid:[]"))
    return "-".join(parts)


def started_at(pid: int) -> str:
    """Return when a process was started, in ticks since this machine was, "" if nobody says it.

    Another process that has the same number later has another time.
    """
    fields = _fields(pid)
    return fields[19] if fields else ""


def state(pid: int, started: str) -> str:
    """Return the state of a process.

    Args:
      pid: the number of the process.
      started: what `started_at` returned for it.
    """
    if not started or not _fields(os.getpid()):
        return ""
    fields = _fields(pid)
    if not fields or fields[19] != started or fields[0] in "ZX":
        return GONE
    return STOPPED if fields[0] in "Tt" else RUNS


def _fields(pid: int) -> list[str]:
    """Return the fields of a process in /proc from its state on; none if there is no such file."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # The name, in parentheses, may have spaces.
