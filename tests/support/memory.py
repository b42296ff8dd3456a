"""What a process holds of the machine's memory, as Linux counts it."""

import pathlib

MAPS = pathlib.Path("/proc/self/maps")
STATUS = pathlib.Path("/proc/self/status")


def mapped_regions() -> int:
    """Return how many regions of memory this process has mapped; 0 without Linux's /proc."""
    try:
        return MAPS.read_bytes().count(b"\n")
    except OSError:
        return 0


def usage() -> str:
    """Return the mapped regions and the resident memory of this process in words."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return "nothing was counted"
    kilobytes = {
        key: value.split()[0]
        for key, _, value in (line.partition(":") for line in lines)
        if key in ("VmRSS", "VmHWM", "Threads")
    }
    return (
        f"{mapped_regions()} mapped regions, {int(kilobytes['VmRSS']) // 1024} MB resident, "
        f"{int(kilobytes['VmHWM']) // 1024} MB at most, {kilobytes['Threads']} threads"
    )
