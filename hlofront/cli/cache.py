"""The command `python -m hlofront cache`: list, explain and verify disk cache entries."""

import argparse
import collections
import datetime
import difflib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO, TypeVar

from hlofront.base.named_tuple import NamedTuple
from hlofront.inspect.target import UsageError
from hlofront.pjrt import configured_stores
from hlofront.pjrt.cache_store import Entry, Removed, Store, abridged
from hlotools.terminal_text import on_one_line, visible

if TYPE_CHECKING:
    from hlofront.cli.options import Commands

T = TypeVar("T")
# A subcommand: (parsed options, output stream) -> exit status.
Command = Callable[[argparse.Namespace, TextIO], int]

FINE, DAMAGED, TROUBLE = 0, 1, 2
# What `why` prints at most: functions of one name, and values of one field.
_MOST_GROUPS = 8
_MOST_VALUES = 4
_IS_DIGEST = re.compile(r"(?:module )?[0-9a-f]{32,}")

_CACHE_HELP = """\
Inspects the executables that are cached on disk: by default small ones, and all of them if
JAX_COMPILATION_CACHE_DIR names a folder. Nothing is compiled or run.

exit codes: 0 success, 1 damaged entries were found, 2 the command failed

example:
  python -m hlofront cache ls
  python -m hlofront cache why jit_step
"""
_LS_HELP = """\
Lists the entries, most recently used first: program, size, last use, compile time (which each hit
saves), platform, and the start of the digest.

example:
  python -m hlofront cache ls
  python -m hlofront cache ls --json --dir /data/executables
"""
_WHY_HELP = """\
Compares the entries of one program: the key fields that differ are the reason why it was compiled
more than once. Functions of the same name in different files are compared separately. A unique part
of the name is enough. With a digest, compares that entry with the most similar one of the same
function.

example:
  python -m hlofront cache why jit_step
  python -m hlofront cache why 3f2a91c0
"""
_VERIFY_HELP = """\
Reads every entry and moves damaged ones to the folder `damaged`. Their programs are recompiled when
they are needed.

example:
  python -m hlofront cache verify
"""
_GC_HELP = """\
Evicts the least recently used entries down to the size limit, and removes partial files left by
processes that were killed while writing.

example:
  python -m hlofront cache gc
  python -m hlofront cache gc --max-size 100M
"""
_CLEAR_HELP = """\
Removes all entries, and no other files.

example:
  python -m hlofront cache clear
"""


def add_parser(commands: "Commands") -> None:
    """Add the command `cache` with its subcommands."""
    raw = argparse.RawDescriptionHelpFormatter
    cache = commands.add_parser(
        "cache",
        help="the executables that are cached on disk",
        description=_CACHE_HELP,
        formatter_class=raw,
    )
    actions = cache.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, run: Command, text: str, help_text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help_text, description=text, formatter_class=raw)
        action.add_argument("--json", action="store_true", help="print JSON, for programs")
        action.add_argument("--dir", metavar="DIR", help="use this folder instead")
        action.set_defaults(run=run)
        return action

    add("ls", _list, _LS_HELP, "list what is kept")
    why = add("why", _why, _WHY_HELP, "why a program was compiled more than once")
    why.add_argument("wanted", metavar="NAME_OR_DIGEST", help="as shown by `cache ls`, or a part")
    add("verify", _verify, _VERIFY_HELP, "read everything and set the damaged aside")
    gc = add("gc", _gc, _GC_HELP, "bring the cache within its size")
    gc.add_argument(
        "--max-size",
        type=_size_in_bytes,
        metavar="SIZE",
        help="this size instead of the configured one: bytes, or 100K, 100M, 1G",
    )
    add("clear", _clear, _CLEAR_HELP, "remove every entry")


# ---- the commands ------------------------------------------------------------------------------


def _list(options: argparse.Namespace, out: TextIO) -> int:
    shown = []
    code = FINE
    for store in _stores(options):
        if store.refusal:
            code = _say_refusal(store)
            continue
        entries = sorted(
            _with_progress(store.entries(), "entries read"), key=lambda each: -each.last_used
        )
        shown.append((store, entries))
        if any(each.damaged for each in entries):
            code = max(code, DAMAGED)
    if options.json:
        _print_json(
            {
                "stores": [
                    {**_about_store(store), "entries": [_as_json(each) for each in entries]}
                    for store, entries in shown
                ]
            },
            out,
        )
        return code
    for store, entries in shown:
        total = sum(each.size for each in entries)
        limit = f" of {_size(store.max_bytes)}" if store.max_bytes >= 0 else ""
        print(f"{_shown(store)}: {_count(entries, 'entry')}, {_size(total)}{limit}", file=out)
        if entries:
            heads = ("name", "size", "last used", "saves", "platform", "digest")
            _print_table([heads, *map(_row, entries)], out)
        for each in entries:
            if each.problem:
                print(on_one_line(f"{each.path} {each.problem}"), file=sys.stderr)
    return code


def _row(entry: Entry) -> tuple[str, ...]:
    if entry.problem:
        name = "(damaged)" if entry.damaged else "(not readable)"
    else:
        name = on_one_line(entry.name) or "(no name)"
    seconds = entry.about.get("compile_seconds")
    return (
        name,
        _size(entry.size),
        _ago(entry.last_used),
        _seconds(seconds) if isinstance(seconds, int | float) else "",
        on_one_line(str(entry.about.get("platform", entry.key.get("platform", "")))),
        entry.digest[:12],
    )


def _why(options: argparse.Namespace, out: TextIO) -> int:
    code = FINE
    groups: list[tuple[Store, list[Entry]]] = []
    names: set[str] = set()
    for store in _stores(options):
        if store.refusal:
            code = _say_refusal(store)
            continue
        entries = list(_with_progress(store.entries(), "entries read"))
        if any(each.damaged for each in entries):
            code = max(code, DAMAGED)
        entries = [each for each in entries if each.problem is None]
        names.update(each.name for each in entries)
        groups += [(store, each) for each in _by_file(_to_compare(entries, options.wanted))]
    if not groups:
        near = difflib.get_close_matches(options.wanted, names, n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else ". `cache ls` lists what is kept"
        raise UsageError(f"no entry has the name or digest {options.wanted!r}{hint}")
    if options.json:
        _print_json({"stores": [_comparison_as_json(*each) for each in groups]}, out)
        return code
    for i, (store, entries) in enumerate(groups[:_MOST_GROUPS]):
        if i:
            print(file=out)
        _print_comparison(store, entries, out)
    if len(groups) > _MOST_GROUPS:
        more = len(groups) - _MOST_GROUPS
        print(f"\nand of {more} more files, which --json lists", file=out)
    return code


def _to_compare(entries: list[Entry], wanted: str) -> list[Entry]:
    """Return the cache entries to compare, for a program's name or a prefix of a digest.

    A name, or a part of one, selects its entries, latest first; a digest, its entry and the one
    with the most similar key.

    Raises:
      UsageError: if several digests have the prefix, or several names the part.
    """
    named = [each for each in entries if each.name in (wanted, f"jit_{wanted}")]
    if named:
        return sorted(named, key=lambda each: -each.last_used)
    chosen = [each for each in entries if each.digest.startswith(wanted)]
    if not chosen:
        named = [each for each in entries if wanted.casefold() in each.name.casefold()]
        names = sorted({each.name for each in named})
        if len(names) > 1:
            listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise UsageError(f"{len(names)} names have {wanted!r} in them: {listed}; choose one")
        return sorted(named, key=lambda each: -each.last_used)
    if len(chosen) > 1:
        digests = ", ".join(each.digest[:16] for each in chosen[:5])
        raise UsageError(
            f"{len(chosen)} digests start with {wanted!r}: {digests}; add more characters"
        )
    for entry in chosen:
        others = [
            each
            for each in entries
            if (each.name, each.file) == (entry.name, entry.file) and each is not entry
        ]
        nearest = min(others, key=lambda each: len(each.differing(entry.key)), default=None)
        return [entry] if nearest is None else [entry, nearest]
    return []


def _by_file(entries: list[Entry]) -> list[list[Entry]]:
    """Return the entries of one name by the file of their function, in the order of the first."""
    by_file: dict[str, list[Entry]] = {}
    for each in entries:
        by_file.setdefault(each.file, []).append(each)
    return list(by_file.values())


def _fields(entries: list[Entry]) -> tuple[list[str], list[str]]:
    """Return the names of key fields that differ between cache entries, and of equal fields."""
    names = sorted({name for each in entries for name in each.key})
    differing = [name for name in names if len({each.key.get(name) for each in entries}) > 1]
    return differing, [name for name in names if name not in differing]


def _print_comparison(store: Store, entries: list[Entry], out: TextIO) -> None:
    differing, same = _fields(entries)
    name = on_one_line(entries[0].name) or "(no name)"
    file = f" of {on_one_line(entries[0].file)}" if entries[0].file else ""
    used = _ago(max(each.last_used for each in entries))
    count = _count(entries, "entry")
    print(f"{name}{file}: {count} in {_shown(store)}, last used {used}", file=out)
    if len(entries) == 1:
        print("There is no other to compare it with. Its key:", file=out)
        for field in same:
            print(f"  {on_one_line(field)}: {_cut([abridged(entries[0].key[field])])[0]}", file=out)
        return
    if not differing:
        print(f"All of their {len(same)} fields agree: the entries are of the same key.", file=out)
        return
    print(f"They differ in {len(differing)} of {len(differing) + len(same)} fields:", file=out)
    digests = [
        field
        for field in differing
        if all(_IS_DIGEST.fullmatch(each.key.get(field, "")) for each in entries)
    ]
    readable = [field for field in differing if field not in digests]
    for field in readable:
        _print_values(field, [each.key.get(field) for each in entries], out)
    for field in digests:
        if _follows(field, readable, entries):
            print(f"  {on_one_line(field)}: differs with them", file=out)
            continue
        count = len({each.key[field] for each in entries})
        why = ", by the function's code or the constants in it" if field == "program" else ""
        print(f"  {on_one_line(field)}: {count} different ones{why}", file=out)
    lines = {each.about.get("line") for each in entries if each.about.get("line")}
    if len(lines) > 1:
        listed = ", ".join(on_one_line(str(line)) for line in sorted(lines, key=str))
        print(f"Their functions begin at {len(lines)} lines of the file: {listed}", file=out)


def _follows(field: str, others: list[str], entries: list[Entry]) -> bool:
    """Return whether entries that agree in the other fields agree in this one, too."""
    seen: dict[tuple[str | None, ...], str] = {}
    return all(
        seen.setdefault(tuple(map(each.key.get, others)), each.key[field]) == each.key[field]
        for each in entries
    )


def _print_values(field: str, values: list[str | None], out: TextIO) -> None:
    """Print the values of a field, the most frequent first, and how many entries have each."""
    counts = collections.Counter(values).most_common()
    print(f"  {on_one_line(field)}", file=out)
    full = [value for value, _ in counts[:_MOST_VALUES] if value is not None]
    short = [abridged(value) for value in full]
    texts = iter(_cut(short if len(set(short)) == len(full) else full))
    for value, count in counts[:_MOST_VALUES]:
        text = "(not there)" if value is None else next(texts) or "(empty)"
        print(f"    {text}    {count} {'entry' if count == 1 else 'entries'}", file=out)
    if len(counts) > _MOST_VALUES:
        print(f"    and {len(counts) - _MOST_VALUES} more values", file=out)


def _comparison_as_json(store: Store, entries: list[Entry]) -> dict[str, object]:
    differing, same = _fields(entries)
    return {
        **_about_store(store),
        "name": entries[0].name,
        "file": entries[0].file,
        "entries": [_as_json(each) for each in entries],
        "differing": {
            field: {each.digest: each.key.get(field) for each in entries} for field in differing
        },
        "same": {field: entries[0].key.get(field) for field in same},
    }


def _verify(options: argparse.Namespace, out: TextIO) -> int:
    code = FINE
    reports = []
    for store in _stores(options):
        if store.refusal:
            code = _say_refusal(store)
            continue
        entries = list(_with_progress(store.verify(), "entries verified"))
        damaged = [each for each in entries if each.damaged]
        unread = [each for each in entries if each.problem and not each.damaged]
        if damaged:
            code = max(code, DAMAGED)
        reports.append((store, entries, damaged, unread))
    if options.json:
        stores = [
            {
                **_about_store(store),
                "checked": len(entries),
                "damaged": [_as_json(each) for each in damaged],
                "unread": [_as_json(each) for each in unread],
            }
            for store, entries, damaged, unread in reports
        ]
        _print_json({"stores": stores}, out)
        return code
    for store, entries, damaged, unread in reports:
        for each in (*damaged, *unread):
            print(on_one_line(f"{each.path} {each.problem}"), file=out)
        verdict = "all whole" if not damaged else f"{len(damaged)} damaged"
        if damaged:
            verdict += f", set aside in {on_one_line(store.damaged_folder)}"
        if unread:
            verdict += f", {len(unread)} not read"
        print(f"{_shown(store)}: {_count(entries, 'entry')} read, {verdict}", file=out)
    return code


def _gc(options: argparse.Namespace, out: TextIO) -> int:
    stores = _stores(options)
    if options.max_size is not None:
        stores = [Store(store.folder, options.max_size) for store in stores]
    return _remove(stores, Store.gc, options, out)


def _clear(options: argparse.Namespace, out: TextIO) -> int:
    return _remove(_stores(options), Store.clear, options, out)


def _remove(
    stores: Sequence[Store],
    action: Callable[[Store], Removed],
    options: argparse.Namespace,
    out: TextIO,
) -> int:
    code = FINE
    reports: list[tuple[Store, Removed]] = []
    for store in stores:
        if store.refusal:
            code = _say_refusal(store)
        else:
            reports.append((store, action(store)))
    if options.json:
        removals = [
            {**_about_store(store), "removed": removed._asdict()} for store, removed in reports
        ]
        _print_json({"stores": removals}, out)
        return code
    for store, removed in reports:
        entries = f"{removed.entries} {'entry' if removed.entries == 1 else 'entries'}"
        files = "file" if removed.temporaries == 1 else "files"
        extra = ""
        if removed.temporaries:
            extra += f", {removed.temporaries} {files} of interrupted writes"
        if removed.damaged:
            extra += f", {removed.damaged} damaged ones"
        print(f"{_shown(store)}: removed {entries} ({_size(removed.bytes)}){extra}", file=out)
    return code


# ---- which folders -----------------------------------------------------------------------------


def _stores(options: argparse.Namespace) -> list[Store]:
    configured = [each for each in _configured() if each is not None]
    if options.dir is not None:
        folder = os.path.abspath(os.path.expanduser(options.dir))
        for store in configured:
            if store.folder == folder:
                return [store]
        if not os.path.isdir(folder):
            raise UsageError(f"there is no folder {options.dir}")
        return [Store(folder)]
    if not configured:
        raise UsageError(
            "there is no cache: HLOFRONT_CACHE is off or there is no home folder, and "
            "JAX_COMPILATION_CACHE_DIR is not set. Name a folder with --dir"
        )
    return configured


def _configured() -> Iterator[Store | None]:
    small, whole = configured_stores.small_store(), configured_stores.whole_store()
    yield small
    if small is None or whole is None or small.folder != whole.folder:
        yield whole


def _say_refusal(store: Store) -> int:
    print(visible(f"hlofront cache: {store.refusal}"), file=sys.stderr)
    return TROUBLE


# ---- formatting --------------------------------------------------------------------------------


class _Progress(NamedTuple):
    every_seconds: float
    start: str
    end: str


def _with_progress(items: Iterable[T], doing: str) -> Iterator[T]:
    """Yield each item; after a second, print on stderr how many were yielded."""
    terminal = sys.stderr.isatty()
    style = _Progress(0.2, "\r", "") if terminal else _Progress(5.0, "", "\n")
    due = time.monotonic() + 1.0
    said = False
    for count, item in enumerate(items, 1):
        yield item
        if time.monotonic() >= due:
            print(f"{style.start}{count} {doing}", end=style.end, file=sys.stderr, flush=True)
            due = time.monotonic() + style.every_seconds
            said = True
    if said and terminal:
        print(file=sys.stderr)


def _print_table(rows: list[tuple[str, ...]], out: TextIO) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [
            # Numbers are aligned to the right.
            cell.rjust(width) if head in ("size", "saves") else cell.ljust(width)
            for cell, width, head in zip(row, widths, rows[0])
        ]
        print("  " + "  ".join(cells).rstrip(), file=out)


def _print_json(value: object, out: TextIO) -> None:
    json.dump(value, out, indent=2)
    print(file=out)


def _about_store(store: Store) -> dict[str, object]:
    return {"folder": store.folder, "max_bytes": store.max_bytes}


def _as_json(entry: Entry) -> dict[str, object]:
    used = _date(entry.last_used)
    return {
        "digest": entry.digest,
        "name": entry.name,
        "path": entry.path,
        "bytes": entry.size,
        "last_used": used.isoformat(timespec="seconds"),
        "damaged": entry.damaged,
        "problem": entry.problem,
        "key": entry.key,
        "about": entry.about,
    }


def _cut(values: list[str], width: int = 72) -> list[str]:
    """Truncate different texts to `width` characters, from near their first difference if long."""
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


def _shown(store: Store) -> str:
    return on_one_line(store.folder)


def _count(items: Sequence[object], name: str) -> str:
    return f"{len(items)} {name if len(items) == 1 else name[:-1] + 'ies'}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _date(moment: float) -> datetime.datetime:
    # A corrupt file may contain a year that `datetime` cannot represent.
    within = min(max(moment, 0.0), 253402214400.0)
    return datetime.datetime.fromtimestamp(within, datetime.UTC)


def _ago(moment: float) -> str:
    seconds = time.time() - moment
    if seconds < -60:
        # The file is dated in the future: the clock was set back.
        return _date(moment).strftime("%Y-%m-%d")
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(max(seconds, 0.0) // size)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def _size_in_bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = text.upper().removesuffix("IB").removesuffix("B")
    unit = units.get(number[-1:], 1)
    try:
        return int(float(number.rstrip("KMG")) * unit)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"a size is a number of bytes, or 100K, 100M, 1G: got {text!r}"
        ) from None
