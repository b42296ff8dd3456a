"""The flags of a compiler that differ between two compilations of a program."""

import os
from collections.abc import Iterable, Mapping

from hlotools.matching.changes import Change

# By name: the text of each flag's value.
Flags = Mapping[str, str]


def flags_of(options: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Return the flags of this process's XLA_FLAGS, overridden by the options of one program.

    Args:
      options: XLA's flags or build options by name, as in the `compiler_options` of `jit`.
    """
    flags: dict[str, str] = {}
    for word in os.environ.get("XLA_FLAGS", "").split():
        if not word.startswith("--"):
            # XLA reads such a word as the name of a file with flags.
            flags["XLA_FLAGS"] = word
            continue
        name, _, value = word.removeprefix("--").partition("=")
        flags[name] = value or "true"
    flags.update((name, _text(value)) for name, value in options)
    return flags


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def flag_changes(before: Flags | None, after: Flags | None) -> list[Change]:
    """Return a change for each flag that differs; none if one side's flags are unknown."""
    if before is None or after is None:
        return []
    return [
        Change("flag", name, before.get(name, ""), after.get(name, ""), (), ())
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
