"""What a process holds of the machine's memory, as Linux counts it."""

import pathlib
import re
import time

MAPS = pathlib.Path("/proc/self/maps")
STATUS = pathlib.Path("/proc/self/status")


def mapped_regions() -> int:
    """Return how many regions of memory this process has mapped; 0 without Linux's /proc."""
    try:
        return MAPS.read_bytes().count(b"\n")
    except OSError:
        return 0


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 without Linux's /proc."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", STATUS.read_text())
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


# Counting takes up to 0.1 s where a process has many regions; this part of the time goes into it.
MAX_SHARE_COUNTING = 0.02
_last_count, _highest_count, _next_count_at = 0, 0, 0.0


def recently_mapped_regions() -> int:
    """Return the number of mapped regions, as counted a second ago or some seconds ago at most."""
    global _last_count, _highest_count, _next_count_at
    started = time.monotonic()
    if started >= _next_count_at:
        _last_count = mapped_regions()
        _highest_count = max(_highest_count, _last_count)
        ended = time.monotonic()
        _next_count_at = ended + max(1.0, (ended - started) / MAX_SHARE_COUNTING)
    return _last_count


def count_anew() -> None:
    """Let the next call of `recently_mapped_regions` count."""
    global _next_count_at
    _next_count_at = 0.0


def usage() -> str:
    """Return the recently mapped regions and the resident memory of this process in words."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return "nothing was counted"
    kilobytes = {
        key: value.split()[0]
        for key, _, value in (line.partition(":") for line in lines)
        if key in ("VmRSS", "VmHWM", "Threads")
    }
    resident, most = (int(kilobytes[key]) // 1024 for key in ("VmRSS", "VmHWM"))
    regions = recently_mapped_regions()
    return (
        f"{regions} mapped regions ({_highest_count} at most), {resident} MB resident ({most} at "
        f"most), {kilobytes['Threads']} threads"
    )
