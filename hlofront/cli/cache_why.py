"""The output of `cache why`: how entries of one program differ in the fields of their keys."""

import collections
import os
import re
from typing import TextIO

from hlofront.cli.cache_text import ago, cut, shown_folder
from hlofront.inspect.target import UsageError
from hlofront.pjrt.cache_store import Entry, Store, abridged
from hlotools.terminal_text import counted, on_one_line

# Limits on what is printed: functions with the same name, and values of one field.
MAX_GROUPS = 8
_MAX_VALUES = 4
_IS_DIGEST = re.compile(r"(?:module )?[0-9a-f]{32,}")


def to_compare(entries: list[Entry], wanted: str) -> list[Entry]:
    """Return the cache entries to compare, for a program's name or a prefix of a digest.

    A name, or a part of one, selects its entries, latest first; a digest selects its entry and the
    one with the most similar key.

    Raises:
      UsageError: if several digests begin with the prefix, or several names contain the part.
    """
    file, colon, name = wanted.rpartition(":")
    if colon and name:
        of_file = [candidate for candidate in entries if f"/{candidate.file}".endswith(f"/{file}")]
        if of_file:
            entries, wanted = of_file, name
    named = [candidate for candidate in entries if candidate.name in (wanted, f"jit_{wanted}")]
    if named:
        return sorted(named, key=lambda each: -each.last_used)
    chosen = [candidate for candidate in entries if candidate.digest.startswith(wanted)]
    if not chosen:
        named = [
            candidate for candidate in entries if wanted.casefold() in candidate.name.casefold()
        ]
        names = sorted({found.name for found in named})
        if len(names) > 1:
            listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise UsageError(f"{len(names)} names have {wanted!r} in them: {listed}; choose one")
        return sorted(named, key=lambda each: -each.last_used)
    if len(chosen) > 1:
        digests = ", ".join(found.digest[:16] for found in chosen[:5])
        raise UsageError(
            f"{len(chosen)} digests start with {wanted!r}: {digests}; add more characters"
        )
    for entry in chosen:
        same_function = [
            candidate
            for candidate in entries
            if (candidate.name, candidate.file) == (entry.name, entry.file)
            and candidate is not entry
        ]
        nearest = min(same_function, key=lambda each: len(each.differing(entry.key)), default=None)
        return [entry] if nearest is None else [entry, nearest]
    return []


def by_file(entries: list[Entry]) -> list[list[Entry]]:
    """Group the entries of one name by their function's file, in the order of first occurrence."""
    by_file: dict[str, list[Entry]] = {}
    for entry in entries:
        by_file.setdefault(entry.file, []).append(entry)
    return list(by_file.values())


def print_reason(store: Store, entries: list[Entry], out: TextIO) -> None:
    """Print in one sentence how the first entry differs from the most similar of the others."""
    entry, *others = entries
    if not others:
        print_comparison(store, entries, out)
        return
    nearest = min(others, key=lambda each: len(each.differing(entry.key)))
    differing = entry.differing(nearest.key)
    clauses = [
        _change(field, nearest.key.get(field), entry.key.get(field))
        for field in differing
        if not _is_digest(field, [entry, nearest])
    ]
    if not clauses and differing:
        where = [either.about.get("line") for either in (nearest, entry)]
        moved = f", which began at line {where[0]} and begins at {where[1]}"
        code = f"the function's code or the constants in it{moved if where[0] != where[1] else ''}"
        clauses = [code if field == "program" else on_one_line(field) for field in differing]
    reason = f"by {'; '.join(clauses)}" if clauses else "in no field of its key"
    print(
        f"{_function(entry)}, last used {ago(entry.last_used)}, differs from the most similar of "
        f"{counted(len(others), 'other entry')} {reason}.",
        file=out,
    )


def _change(field: str, before: str | None, now: str | None) -> str:
    """Return how the value of a field changed, per element for a list of types."""
    old, new = ((value or "").split(", ") for value in (before, now))
    if field == "arguments" and len(old) == len(new):
        return "; ".join(
            f"argument {i}: {' -> '.join(cut([a, b]))}"
            for i, (a, b) in enumerate(zip(old, new, strict=True), 1)
            if a != b
        )
    values = [
        "(not there)" if side is None else abridged(side) or "(empty)" for side in (before, now)
    ]
    return f"{on_one_line(field)}: {' -> '.join(cut(values))}"


def print_others(groups: list[list[Entry]], out: TextIO) -> None:
    """Print which other files have functions of the same name."""
    if not groups:
        return
    listed = [f"{_function(entries[0])} ({counted(len(entries), 'entry')})" for entries in groups]
    more = f" and {len(listed) - MAX_GROUPS} more" if len(listed) > MAX_GROUPS else ""
    file = on_one_line(os.path.basename(groups[0][0].file)) or "FILE"
    print(
        f"Others have the name, too: {', '.join(listed[:MAX_GROUPS])}{more}. To choose one: "
        f"cache why {file}:{on_one_line(groups[0][0].name)}",
        file=out,
    )


def _function(entry: Entry) -> str:
    name = on_one_line(entry.name) or "(no name)"
    return f"{name} of {on_one_line(entry.file)}" if entry.file else name


def _is_digest(field: str, entries: list[Entry]) -> bool:
    return all(_IS_DIGEST.fullmatch(entry.key.get(field, "")) for entry in entries)


def fields_of(entries: list[Entry]) -> tuple[list[str], list[str]]:
    """Return the names of the key fields that differ between cache entries, and of the others."""
    names = sorted({name for entry in entries for name in entry.key})
    differing = [name for name in names if len({entry.key.get(name) for entry in entries}) > 1]
    return differing, [name for name in names if name not in differing]


def print_comparison(store: Store, entries: list[Entry], out: TextIO) -> None:
    differing, same = fields_of(entries)
    used = ago(max(entry.last_used for entry in entries))
    count = counted(len(entries), "entry")
    print(f"{_function(entries[0])}: {count} in {shown_folder(store)}, last used {used}", file=out)
    if len(entries) == 1:
        print("There is no other to compare it with. Its key:", file=out)
        for field in same:
            print(f"  {on_one_line(field)}: {cut([abridged(entries[0].key[field])])[0]}", file=out)
        return
    if not differing:
        print(f"All of their {len(same)} fields agree: the entries are of the same key.", file=out)
        return
    print(f"They differ in {len(differing)} of {len(differing) + len(same)} fields:", file=out)
    digests = [field for field in differing if _is_digest(field, entries)]
    readable = [field for field in differing if field not in digests]
    for field in readable:
        _print_values(field, [entry.key.get(field) for entry in entries], out)
    for field in digests:
        if _follows(field, readable, entries):
            print(f"  {on_one_line(field)}: differs with them", file=out)
            continue
        count = len({entry.key[field] for entry in entries})
        why = ", by the function's code or the constants in it" if field == "program" else ""
        print(f"  {on_one_line(field)}: {count} different ones{why}", file=out)
    lines = {entry.about.get("line") for entry in entries if entry.about.get("line")}
    if len(lines) > 1:
        listed = ", ".join(on_one_line(str(line)) for line in sorted(lines, key=str))
        print(f"Their functions begin at {len(lines)} lines of the file: {listed}", file=out)


def _follows(field: str, others: list[str], entries: list[Entry]) -> bool:
    """Return whether entries that agree in the other fields also agree in this one."""
    seen: dict[tuple[str | None, ...], str] = {}
    return all(
        seen.setdefault(tuple(map(entry.key.get, others)), entry.key[field]) == entry.key[field]
        for entry in entries
    )


def _print_values(field: str, values: list[str | None], out: TextIO) -> None:
    """Print the values of a field, the most frequent first, and how many entries have each."""
    counts = collections.Counter(values).most_common()
    print(f"  {on_one_line(field)}", file=out)
    full = [value for value, _ in counts[:_MAX_VALUES] if value is not None]
    short = [abridged(value) for value in full]
    texts = iter(cut(short if len(set(short)) == len(full) else full))
    for value, count in counts[:_MAX_VALUES]:
        text = "(not there)" if value is None else next(texts) or "(empty)"
        print(f"    {text}    {counted(count, 'entry')}", file=out)
    if len(counts) > _MAX_VALUES:
        print(f"    and {len(counts) - _MAX_VALUES} more values", file=out)
