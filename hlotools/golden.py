"""Golden files: a program's canonical text in a file, compared with its current text."""

import importlib.metadata
import pathlib
import sys
from typing import NamedTuple

from hlotools.ir.canonical_form import canonical
from hlotools.ir.kernel_parameters import kernel_comments
from hlotools.ir.program_text import program_of_text
from hlotools.matching.difference import diff

_MARK = "// golden of hlofront: "


class GoldenMismatch(AssertionError):
    """The error that a program differs from its golden file; the message lists the differences."""


class GoldenCheck(NamedTuple):
    """The result of a golden check that passed."""

    path: pathlib.Path
    written: bool
    """Whether the golden was written, because it was new or an update was requested."""
    other_versions: str | None
    """The versions that the golden came from, if they differ from today's; the program is equal."""


def versions(program: object) -> dict[str, str]:
    """Return the versions, and the platform of a program, that its golden file records.

    They are those of the library that made the program, hlofront or jax, of jaxlib and of NumPy.
    For a text, the library and the platform are not known.
    """
    module = type(program).__module__
    # If `import jax` imports hlofront, the module's name begins with jax and contains its home.
    library = getattr(module, "home", module).partition(".")[0]
    recorded: dict[str, str] = {}
    if library in ("hlofront", "jax"):
        recorded[library] = getattr(sys.modules[library], "__version__", "unknown")
    for package in ("jaxlib", "numpy"):
        try:
            recorded[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    platform = _platform_of(program)
    return {**recorded, "platform": platform} if platform else recorded


def _platform_of(program: object) -> str:
    """Return the platforms that a Lowered or Compiled is for, or "" if they are unknown."""
    lowering = getattr(program, "_lowering", program)
    platforms = getattr(lowering, "_platforms", None)
    if platforms:
        return ", ".join(platforms)
    device = getattr(program, "_first_device", None)
    executable = getattr(program, "runtime_executable", None)
    if device is None and executable is not None:
        device = executable().local_devices()[0]
    return getattr(device, "platform", "")


def text_of(program: object) -> tuple[str, str]:
    """Return the stage of a program, "jaxpr", "stablehlo" or "hlo", and its canonical text.

    Raises:
      TypeError: if the program is not a Lowered, Compiled, jaxpr or text.
      ValueError: if a text is not that of a program.
    """
    if isinstance(program, str):
        text = program
    elif hasattr(program, "as_text"):
        text = program.as_text() or ""
    elif hasattr(program, "pretty_print"):
        text = program.pretty_print(use_color=False)
    else:
        raise TypeError(
            "a golden is made of a Lowered, as jit(f).lower(x), a Compiled, a jaxpr, or the text "
            f"of one; got {type(program).__name__}: lower the function first"
        )
    stage, *_ = program_of_text(text, type(program).__name__)
    kernels = kernel_comments(text)
    return stage, canonical(text) + (f"\n{kernels}" if kernels else "")


def check(
    program: object, path: pathlib.Path, update: bool = False, verbose: bool = False
) -> GoldenCheck:
    """Compare a program with its golden file, and write the file if it does not exist.

    Args:
      program: a Lowered, for its StableHLO, a Compiled, for its optimized HLO, a jaxpr, or a
        program's text; from hlofront or jax.
      path: the path of the golden file.
      update: whether to overwrite the golden file with the program's current text.
      verbose: whether the message lists all changes, including those that follow from others.

    Raises:
      GoldenMismatch: if the program differs from its golden file.
      TypeError: if the program is none of these.
    """
    stage, text = text_of(program)
    today = versions(program)
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
    because = f"The versions differ too: {changed}.\n" if changed else ""
    if golden_stage != stage:
        raise GoldenMismatch(
            f"the golden {path} is {golden_stage}, and the program is {stage}.\n{because}"
            "If it is meant to be so, run pytest with --hlo-update."
        )
    difference = diff(golden_text, text, labels=("golden", "now"))
    if difference.equal:
        return GoldenCheck(path, False, changed or None)
    listed = difference.text(verbose=verbose)
    raise GoldenMismatch(
        f"the program differs from its golden {path}.\n{because}{listed}\n"
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
            "with --hlo-update to rewrite it."
        )
    stage, *named = first.removeprefix(_MARK).split("; ")
    return dict(part.split(" ", 1) for part in named if " " in part), stage, text
