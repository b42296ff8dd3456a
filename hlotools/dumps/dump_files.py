"""The files of a folder that XLA's flag `--xla_dump_to` names, by module and stage."""

import os
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from hlotools.ir.hlo import HloModule, HloSyntaxError
from hlotools.ir.hlo_parser import parse

# module_0001.jit_step.cl_1014260217.0024.fusion.after_cse.before_dce.txt; some stages of libtpu
# have no pass before them, and those inside a pass have none after them.
# With --xla_dump_include_timestamp a time precedes the name.
STAMP = r"(?:\d+\.)?"
_STAGE = re.compile(
    rf"{STAMP}(?P<module>module_\d+\..+?)\.(?P<number>\d{{4,}})\.(?P<pipeline>.+?)"
    r"(?:\.after_(?P<after>.+?))?(?:\.before_(?P<before>.+))?\.txt"
)
_BEFORE = re.compile(rf"{STAMP}(?P<module>module_\d+\..+)\.before_optimizations\.txt")
_AFTER = re.compile(
    rf"{STAMP}(?P<module>module_\d+\..+?)\.(?:\w[\w.]*?_)?after_optimizations\.(?:txt|hlo\.pb)"
)


_ENDS = ("before optimizations", "after optimizations")


class Stage(NamedTuple):
    """A dump of a module between two of XLA's passes.

    The title names the pipeline and the pass that changed the module last, such as
    `simplification > algsimp`; at the start of a pipeline only the pipeline: `before fusion`.
    """

    title: str
    path: pathlib.Path


class DumpedModule(NamedTuple):
    """The dumps of one module: the stages in order of passes, and the optimized module's path."""

    name: str
    stages: tuple[Stage, ...]
    optimized: pathlib.Path | None

    @property
    def passes(self) -> tuple[Stage, ...]:
        """The stages without the programs before and after all optimizations."""
        return tuple(stage for stage in self.stages if stage.title not in _ENDS)

    @property
    def function(self) -> str:
        """The module's name without its number, such as `jit_step`."""
        return self.name.split(".")[1]


def dumped_modules(folder: str | os.PathLike[str]) -> list[DumpedModule]:
    """Return the modules whose passes were dumped into a folder, by number.

    Modules with only a dump of the final program have no stages and are omitted.

    Args:
      folder: the folder that `--xla_dump_to` named, with `--xla_dump_hlo_pass_re=.*`.

    Raises:
      FileNotFoundError: if there is no such folder.
    """
    stages: dict[str, list[tuple[int, Stage]]] = {}
    before: dict[str, pathlib.Path] = {}
    optimized = optimized_programs(folder)
    for path in _files(folder):
        if match := _STAGE.fullmatch(path.name):
            stage = Stage(_title(match["pipeline"], match["after"]), path)
            stages.setdefault(match["module"], []).append((int(match["number"]), stage))
        elif match := _BEFORE.fullmatch(path.name):
            before[match["module"]] = path
    modules: list[DumpedModule] = []
    for name, numbered in sorted(stages.items()):
        ordered = [stage for _, stage in sorted(numbered, key=lambda each: each[0])]
        if name in before:
            ordered.insert(0, Stage(_ENDS[0], before[name]))
        final = optimized.get(name)
        if final is not None:
            ordered.append(Stage(_ENDS[1], final))
        modules.append(DumpedModule(name, tuple(ordered), final))
    return modules


def optimized_programs(folder: str | os.PathLike[str]) -> dict[str, pathlib.Path]:
    """Return the files with the optimized HLO of the modules in a folder, by the module's name."""
    return {
        match["module"]: path
        for path in _files(folder)
        if (match := _AFTER.fullmatch(path.name)) and path.suffix == ".txt"
    }


def flags_beside(path: str | os.PathLike[str]) -> dict[str, str] | None:
    """Return the compiler's flags that XLA wrote next to an optimized module; None without them.

    These are the flags that differ from their defaults, without those of the dump itself.
    """
    options = file_beside(path, ".debug_options")
    if options is None:
        return None
    flags: dict[str, str] = {}
    for line in options.read_text(encoding="utf-8", errors="replace").splitlines():
        name, colon, value = line.strip().partition(": ")
        if colon and not name.startswith(_OF_DUMPS):
            value = value.strip('"')
            flags[name] = f"{flags[name]},{value}" if name in flags else value
    return flags


def text_before(path: str | os.PathLike[str]) -> str | None:
    """Return the HLO before optimization that XLA dumped next to a module; None if missing."""
    before = file_beside(path, ".before_optimizations.txt")
    return None if before is None else before.read_text(encoding="utf-8", errors="replace")


_OF_DUMPS = ("xla_dump_", "xla_detailed_logging")


def file_beside(path: str | os.PathLike[str], ending: str) -> pathlib.Path | None:
    """Return the file with an ending that XLA dumped next to an optimized module, if it exists."""
    optimized = pathlib.Path(path)
    match = _AFTER.fullmatch(optimized.name)
    if match is None:
        return None
    beside = optimized.with_name(optimized.name[: match.end("module")] + ending)
    return beside if beside.is_file() else None


def _title(pipeline: str, after: str | None) -> str:
    if after is None or after == "pipeline-start":
        return f"before {pipeline}"
    return f"{pipeline} > {after}"


def _files(folder: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield the files of a folder in the order of their names."""
    yield from sorted(path for path in pathlib.Path(folder).iterdir() if path.is_file())


def parsed_file(path: pathlib.Path) -> HloModule:
    """Return the module that a file of HLO text describes.

    Raises:
      HloSyntaxError: if the text is not HLO, for example cut off; the message names the file.
    """
    try:
        return parse(path.read_text(encoding="utf-8", errors="replace"))
    except HloSyntaxError as error:
        raise HloSyntaxError(
            error.message, error.line, error.column, error.text, str(path)
        ) from None


def main_module(modules: list[DumpedModule]) -> DumpedModule:
    """Return the module with the most stages: compilers also dump helper modules of fusions.

    Raises:
      ValueError: if there are no modules.
    """
    if not modules:
        raise ValueError(
            "no module's passes are in this folder. XLA writes them with "
            "--xla_dump_to=FOLDER --xla_dump_hlo_pass_re=.* in XLA_FLAGS"
        )
    return max(modules, key=lambda module: len(module.stages))
