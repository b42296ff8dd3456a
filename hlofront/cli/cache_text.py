"""Parts of the output of the command `cache`: sizes, times, counts and shortened texts."""

import datetime
import time

from hlofront.pjrt.cache_store import Store
from hlotools.terminal_text import on_one_line


def cut(values: list[str], width: int = 72) -> list[str]:
    """Truncate differing texts to `width` characters; long ones start near the first difference."""
    shared = 0
    if len(values) > 1:
        while len({value[shared : shared + 1] or "end" for value in values}) == 1:
            shared += 1
    start = max(0, shared - 16) if any(len(value) > width for value in values) else 0
    return [
        ("…" if start else "")
        + on_one_line(value[start : start + width])
        + ("…" if len(value) > start + width else "")
        for value in values
    ]


def shown_folder(store: Store) -> str:
    return on_one_line(store.folder)


def shown_size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def shown_seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def as_date(moment: float) -> datetime.datetime:
    # A corrupt file may contain a year that `datetime` cannot represent.
    within = min(max(moment, 0.0), 253402214400.0)
    return datetime.datetime.fromtimestamp(within, datetime.UTC)


def ago(moment: float) -> str:
    seconds = time.time() - moment
    if seconds < -60:
        # The file is dated in the future: the clock was set back.
        return as_date(moment).strftime("%Y-%m-%d")
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(max(seconds, 0.0) // size)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
