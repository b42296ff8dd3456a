"""The contents of a folder of XLA's dumps: programs, and the file or command for each question."""

import json
import os
import pathlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hlotools.cost.memory_use import size_text
from hlotools.dumps.dump_files import STAMP, dumped_modules
from hlotools.dumps.snapshots import snapshot
from hlotools.dumps.tpu_kernels import kernel_counts
from hlotools.terminal_text import counted, is_visible

# The content of each kind of file, and its name after the module's; programs come first.
_AFTER = r"(?:\w[\w.]*?_)?after_optimizations"
_KINDS = {
    "the optimized program": rf"{_AFTER}\.(?:txt|hlo\.pb)",
    "the program before optimizations": r"before_optimizations\.(?:txt|hlo\.pb)",
    "the program and its inputs": r"(?:snapshot\.-?\d+|execution_\d+\.\w+_snapshot)\.pb",
    "memory by buffer": rf"{_AFTER}-buffer-assignment\.txt",
    "memory in total": rf"{_AFTER}-memory-usage-report\.txt",
    "the compiler's flags": r"debug_options",
    "code of kernels": r"(?:.*\.)?(?:ir-with-opt\.ll|ptx)",
}
_FILE = re.compile(
    rf"{STAMP}(?P<module>module_\d+\..+?)\.(?:"
    + "|".join(rf"(?P<k{number}>{pattern})" for number, pattern in enumerate(_KINDS.values()))
    + ")"
)
_PROGRAMS = tuple(_KINDS)[:3]
_KERNELS = tuple(_KINDS)[-1]
_TOTAL = re.compile(r"^Total bytes: (\d{1,18})\b", re.MULTILINE)
_LISTED = 40


@dataclass(frozen=True)
class DumpedProgram:
    """A program whose files are in a folder of dumps.

    Attributes:
      name: the name that its files begin with, such as `module_0001.jit_step`.
      files: its files by their content.
      program: the file of the program itself: the optimized one, if it was dumped.
      operations: the number of operations of its text, None without a text.
      bytes: the size of the file of the program.
      passes: the number of passes that were dumped.
      kernels: the number of files with code of kernels, LLVM IR or PTX.
      memory: the bytes of its buffers, by XLA's report, None without one.
    """

    name: str
    files: dict[str, pathlib.Path]
    program: pathlib.Path | None
    operations: int | None
    bytes: int
    passes: int
    kernels: int
    memory: int | None


@dataclass(frozen=True)
class DumpFolder:
    """The programs in a folder of dumps, in the order in which they were compiled.

    Attributes:
      path: the folder.
      programs: the programs that XLA dumped.
      tpu_kernels: the number of kernels that libtpu dumped, by the name of their program.
    """

    path: str
    programs: list[DumpedProgram]
    tpu_kernels: dict[str, int]

    @property
    def main(self) -> DumpedProgram | None:
        """The program with the most passes, the largest of equals; None without programs."""
        return max(self.programs, key=lambda each: (each.passes, each.bytes), default=None)

    @is_visible
    def text(self) -> str:
        """Return a table of the programs, and a list of what can be read about the main one."""
        rows = [("program", "operations", "size", "passes", "kernels", "memory")]
        rows += [
            (
                each.name,
                "?" if each.operations is None else f"{each.operations:,}",
                size_text(each.bytes),
                str(each.passes),
                str(each.kernels),
                "?" if each.memory is None else size_text(each.memory),
            )
            for each in self.programs[:_LISTED]
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        lines = [
            f"{row[0]:<{widths[0]}}  "
            + "  ".join(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))
            for row in (rows if self.programs else ())
        ]
        if len(self.programs) > _LISTED:
            lines.append(f"and {len(self.programs) - _LISTED} more")
        for name, count in self.tpu_kernels.items():
            lines.append(f"{counted(count, 'kernel')} of a TPU in {name}")
        what = [(f"  {title}", how) for title, how in self._reading()]
        width = max((len(title) for title, _ in what), default=0)
        of = f" of {self.main.name}" if self.main else ""
        lines += ["", f"to read{of}:", *(f"{title:<{width}}  {how}" for title, how in what)]
        return "\n".join(lines).lstrip("\n")

    def _reading(self) -> list[tuple[str, str]]:
        """Return the subjects that can be read about, with the command or file for each."""
        show = "python -m hlofront show"
        main, listed = self.main, []
        if main is not None:
            for kind in _KINDS:
                if kind in main.files and kind != _KERNELS:
                    path = main.files[kind]
                    listed.append((kind, f"{show} {path}" if kind in _PROGRAMS else str(path)))
            if main.program is not None and main.program.name.endswith("after_optimizations.txt"):
                listed.append(("memory over time", f"{show} {main.program} --stage memory"))
            if main.passes:
                listed.append(("what each pass changed", f"{show} {self.path} --passes"))
        if self.tpu_kernels or (main is not None and main.kernels and main.passes):
            listed.append(("kernels", f"{show} {self.path} --kernels"))
        elif main is not None and main.kernels:
            code = main.files[_KERNELS]
            listed.append((_KERNELS, str(code.with_name(f"{main.name}.*{code.suffix}"))))
        return listed

    def json(self) -> str:
        """Return the folder as JSON: its programs and their files."""
        return json.dumps(self.as_dict(), indent=1)

    def as_dict(self) -> dict[str, Any]:
        """Return the folder as a dictionary for `json.dumps`."""
        programs = [
            {
                "name": each.name,
                "operations": each.operations,
                "bytes": each.bytes,
                "passes": each.passes,
                "kernels": each.kernels,
                "memory": each.memory,
                "files": {kind: str(path) for kind, path in each.files.items()},
            }
            for each in self.programs
        ]
        return {"folder": self.path, "programs": programs, "tpu_kernels": self.tpu_kernels}

    def __repr__(self) -> str:
        return self.text()


def dump_folder(folder: str | os.PathLike[str]) -> DumpFolder:
    """Return the contents of a folder of XLA's or libtpu's dumps.

    Args:
      folder: the folder of `XLA_FLAGS=--xla_dump_to=FOLDER`, or of `--xla_jf_dump_to` in
        LIBTPU_INIT_ARGS.

    Raises:
      FileNotFoundError: if there is no such folder.
      ValueError: if the folder has no dumps.
    """
    path = os.fspath(folder)
    files: dict[str, dict[str, pathlib.Path]] = {}
    code: dict[str, set[str]] = {}
    for file in sorted(pathlib.Path(path).iterdir()):
        match = _FILE.fullmatch(file.name)
        if match is None or not file.is_file():
            continue
        kind = next(kind for n, kind in enumerate(_KINDS) if match[f"k{n}"] is not None)
        listed = files.setdefault(match["module"], {})
        # A text is read rather than the same program as a protocol buffer.
        if kind not in listed or file.suffix == ".txt":
            listed[kind] = file
        if kind == _KERNELS:
            code.setdefault(match["module"], set()).add(file.name)
    passes = {module.name: len(module.passes) for module in dumped_modules(path)}
    programs = [
        _program(name, listed, passes.get(name, 0), _kernels(code.get(name, ())))
        for name, listed in sorted(files.items())
        if any(kind in listed for kind in _PROGRAMS) or name in passes
    ]
    counts = kernel_counts(path)
    if not programs and not counts:
        raise ValueError(
            f"{path} has no dumps of XLA: expected files such as "
            "module_0001.jit_f.cpu_after_optimizations.txt, which XLA writes with "
            "--xla_dump_to=FOLDER in XLA_FLAGS (and with --xla_dump_hlo_pass_re=.* each pass), or "
            f"such as 1-TLP-hlo.txt, which libtpu writes with --xla_jf_dump_to=FOLDER "
            "--xla_jf_dump_llo_text=true in LIBTPU_INIT_ARGS"
        )
    return DumpFolder(path, programs, counts)


def _kernels(files: Collection[str]) -> int:
    """Return the number of files with code; a GPU's kernels have LLVM IR and PTX."""
    return sum(name.endswith(".ptx") for name in files) or len(files)


def _program(name: str, files: dict[str, pathlib.Path], passes: int, kernels: int) -> DumpedProgram:
    operations, size, memory = None, 0, None
    program = next((files[kind] for kind in _PROGRAMS if kind in files), None)
    if program is not None:
        size = program.stat().st_size
        if program.suffix == ".txt":
            text = program.read_text(encoding="utf-8", errors="replace")
            operations = snapshot(text).operation_count
    if "memory in total" in files:
        report = files["memory in total"].read_text(encoding="utf-8", errors="replace")
        totals = [int(total) for total in _TOTAL.findall(report)]
        memory = sum(totals) if totals else None
    return DumpedProgram(name, files, program, operations, size, passes, kernels, memory)
