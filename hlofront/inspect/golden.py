"""Golden files: a program's canonical text in a file, compared with its current text."""

import pathlib
from typing import NamedTuple

import numpy as np

from hlofront.base.version import __version__
from hlofront.bridge import state
from hlofront.inspect.difference import diff
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlotools.ir.canonical_form import canonical

_MARK = "// golden of hlofront: "


class GoldenMismatch(AssertionError):
    """The error that a program differs from its golden file; the message lists the differences."""


class GoldenCheck(NamedTuple):
    """The result of a golden check that passed."""

    path: pathlib.Path
    written: bool
    """Whether the golden was written, as it was new or an update was asked for."""
    other_versions: str | None
    """The versions that the golden came from, if others than today's; the program is the same."""


def versions(platform: str) -> dict[str, str]:
    """Return the versions that a golden file records for a platform."""
    return {
        "hlofront": __version__,
        "jaxlib": ".".join(map(str, state.jaxlib_version)),
        "numpy": np.__version__,
        "platform": platform,
    }


def text_of(program: object) -> tuple[str, str, str]:
    """Return the stage, the platform and the canonical text of a program, in this order.

    Raises:
      TypeError: if the program is neither Lowered, Compiled nor text.
    """
    if isinstance(program, Lowered):
        return "stablehlo", ", ".join(program._platforms), canonical(program.as_text())
    if isinstance(program, Compiled):
        return "hlo", program._first_device.platform, canonical(program.as_text() or "")
    if isinstance(program, str):
        return ("hlo" if program.startswith("HloModule") else "stablehlo"), "", canonical(program)
    raise TypeError(
        "a golden is made of a Lowered, as jit(f).lower(x), a Compiled or the text of either; got "
        f"{type(program).__name__}: lower the function first"
    )


def check(
    program: Lowered | Compiled | str, path: pathlib.Path, update: bool = False
) -> GoldenCheck:
    """Compare a program with its golden file, and write the file if it does not exist.

    Args:
      program: a Lowered, for its StableHLO, or a Compiled, for its optimized HLO.
      path: the path of the golden file.
      update: whether to overwrite the golden file with the program's current text.

    Raises:
      GoldenMismatch: if the program differs from its golden file.
    """
    stage, platform, text = text_of(program)
    today = versions(platform)
    if update or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_header(stage, today) + text.rstrip() + "\n")
        return GoldenCheck(path, True, None)
    then, golden_stage, golden_text = _read(path)
    changed = ", ".join(
        f"{name} {then.get(name, 'unknown')} -> {value}"
        for name, value in today.items()
        if then.get(name) != value
    )
    if golden_stage == stage and golden_text.strip() == text.strip():
        return GoldenCheck(path, False, changed or None)
    difference = diff(golden_text, text)
    if difference.equal and golden_stage == stage:
        return GoldenCheck(path, False, changed or None)
    because = f"The versions differ too: {changed}.\n" if changed else ""
    raise GoldenMismatch(
        f"the program differs from its golden {path}.\n{because}{difference.text()}\n"
        "If it is meant to be so, run pytest with --hlo-update."
    )


def _header(stage: str, today: dict[str, str]) -> str:
    named = "; ".join(f"{name} {value}" for name, value in today.items())
    return f"{_MARK}{stage}; {named}\n"


def _read(path: pathlib.Path) -> tuple[dict[str, str], str, str]:
    first, _, text = path.read_text().partition("\n")
    if not first.startswith(_MARK):
        raise GoldenMismatch(
            f"{path} is not a golden: its first line is {first[:60]!r}. Remove it, or run pytest "
            "with --hlo-update to write it anew."
        )
    stage, *named = first.removeprefix(_MARK).split("; ")
    return dict(part.split(" ", 1) for part in named if " " in part), stage, text
