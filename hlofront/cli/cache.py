"""The command `python -m hlofront cache`: list, explain and verify disk cache entries."""

import argparse
import difflib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO, TypeVar

from hlofront.base.named_tuple import NamedTuple
from hlofront.cli.cache_text import ago, as_date, shown_folder, shown_seconds, shown_size
from hlofront.cli.cache_why import (
    MAX_GROUPS,
    by_file,
    fields_of,
    print_comparison,
    print_others,
    print_reason,
    to_compare,
)
from hlofront.cli.options import Commands
from hlofront.inspect.target import UsageError
from hlofront.pjrt import configured_stores
from hlofront.pjrt.cache_store import Entry, Removed, Store
from hlotools.terminal_text import counted, on_one_line, visible

T = TypeVar("T")
# A subcommand: (parsed options, output stream) -> exit status.
Command = Callable[[argparse.Namespace, TextIO], int]

FINE, DAMAGED, TROUBLE = 0, 1, 2

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
Says why a program was compiled again: how its last entry, or that of a digest, differs from the
most similar entry of the same function. If functions of several files have the name, it is about
the one that was used last; FILE:NAME chooses one. A unique part of the name is enough.

example:
  python -m hlofront cache why step
  python -m hlofront cache why train.py:step --all
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
Removes all entries, but no other files.

example:
  python -m hlofront cache clear
"""


def add_parser(commands: Commands) -> None:
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
    why.add_argument(
        "wanted", metavar="NAME_OR_DIGEST", help="as shown by `cache ls`, or a part; or FILE:NAME"
    )
    why.add_argument(
        "--all", action="store_true", help="print all values of the fields that differ"
    )
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
        entries = sorted(_with_progress(store.entries(), "read"), key=lambda each: -each.last_used)
        shown.append((store, entries))
        if any(entry.damaged for entry in entries):
            code = max(code, DAMAGED)
    if options.json:
        _print_json(
            {
                "stores": [
                    {**_about_store(store), "entries": [_as_json(entry) for entry in entries]}
                    for store, entries in shown
                ]
            },
            out,
        )
        return code
    for store, entries in shown:
        total = sum(entry.size for entry in entries)
        limit = f" of {shown_size(store.max_bytes)}" if store.max_bytes >= 0 else ""
        print(
            f"{shown_folder(store)}: {counted(len(entries), 'entry')}, {shown_size(total)}{limit}",
            file=out,
        )
        if entries:
            heads = ("name", "size", "last used", "saves", "platform", "digest")
            _print_table([heads, *map(_row, entries)], out)
        for entry in entries:
            if entry.problem:
                print(on_one_line(f"{entry.path} {entry.problem}"), file=sys.stderr)
    return code


def _row(entry: Entry) -> tuple[str, ...]:
    if entry.problem:
        name = "(damaged)" if entry.damaged else "(not readable)"
    else:
        name = on_one_line(entry.name) or "(no name)"
    seconds = entry.about.get("compile_seconds")
    return (
        name,
        shown_size(entry.size),
        ago(entry.last_used),
        shown_seconds(seconds) if isinstance(seconds, int | float) else "",
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
        entries = list(_with_progress(store.entries(), "read"))
        if any(entry.damaged for entry in entries):
            code = max(code, DAMAGED)
        entries = [entry for entry in entries if entry.problem is None]
        names.update(entry.name for entry in entries)
        groups += [(store, group) for group in by_file(to_compare(entries, options.wanted))]
    if not groups:
        near = difflib.get_close_matches(options.wanted, names, n=3)
        hint = f": did you mean {' or '.join(near)}?" if near else ". `cache ls` lists what is kept"
        raise UsageError(f"no entry has the name or digest {options.wanted!r}{hint}")
    if options.json:
        _print_json({"stores": [_comparison_as_json(*group) for group in groups]}, out)
        return code
    if not options.all:
        print_reason(*groups[0], out)
        print_others([entries for _, entries in groups[1:]], out)
        return code
    for i, (store, entries) in enumerate(groups[:MAX_GROUPS]):
        if i:
            print(file=out)
        print_comparison(store, entries, out)
    if len(groups) > MAX_GROUPS:
        more = len(groups) - MAX_GROUPS
        print(f"\nand of {more} more files, which --json lists", file=out)
    return code


def _comparison_as_json(store: Store, entries: list[Entry]) -> dict[str, object]:
    differing, same = fields_of(entries)
    return {
        **_about_store(store),
        "name": entries[0].name,
        "file": entries[0].file,
        "entries": [_as_json(entry) for entry in entries],
        "differing": {
            field: {entry.digest: entry.key.get(field) for entry in entries} for field in differing
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
        entries = list(_with_progress(store.verify(), "verified"))
        damaged = [entry for entry in entries if entry.damaged]
        unread = [entry for entry in entries if entry.problem and not entry.damaged]
        if damaged:
            code = max(code, DAMAGED)
        reports.append((store, entries, damaged, unread))
    if options.json:
        stores = [
            {
                **_about_store(store),
                "checked": len(entries),
                "damaged": [_as_json(entry) for entry in damaged],
                "unread": [_as_json(entry) for entry in unread],
            }
            for store, entries, damaged, unread in reports
        ]
        _print_json({"stores": stores}, out)
        return code
    for store, entries, damaged, unread in reports:
        for entry in (*damaged, *unread):
            print(on_one_line(f"{entry.path} {entry.problem}"), file=out)
        verdict = "all whole" if not damaged else f"{len(damaged)} damaged"
        if damaged:
            verdict += f", set aside in {on_one_line(store.damaged_folder)}"
        if unread:
            verdict += f", {len(unread)} not read"
        print(f"{shown_folder(store)}: {counted(len(entries), 'entry')} read, {verdict}", file=out)
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
        entries = counted(removed.entries, "entry")
        extra = ""
        if removed.temporaries:
            extra += f", {counted(removed.temporaries, 'file')} of interrupted writes"
        if removed.damaged:
            extra += f", {removed.damaged} damaged ones"
        print(
            f"{shown_folder(store)}: removed {entries} ({shown_size(removed.bytes)}){extra}",
            file=out,
        )
    return code


# ---- which folders -----------------------------------------------------------------------------


def _stores(options: argparse.Namespace) -> list[Store]:
    configured = [
        configured_store for configured_store in _configured() if configured_store is not None
    ]
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
            text = f"{style.start}{counted(count, 'entry')} {doing}"
            print(text, end=style.end, file=sys.stderr, flush=True)
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
    used = as_date(entry.last_used)
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
