"""The code of the kernels in a folder that XLA dumped: LLVM IR, assembly, PTX and SASS."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlotools.dumps.dump_files import DumpedModule, parsed_file
from hlotools.ir.hlo import Instruction, nearest_source
from hlotools.source_lines import short_line
from hlotools.terminal_text import is_visible

CODES = ("llvm", "assembly", "ptx", "sass")
_LLVM = ".ir-with-opt.ll"
# `define` lines of kernels; helpers that a module keeps to itself are internal or private.
_DEFINED = re.compile(r"^define (?!internal|private)[^@\n]*@\"?([\w.\-$]+)\"?\(", re.MULTILINE)
_ENTRY = re.compile(r"^\.visible \.entry ([\w$]+)\(", re.MULTILINE)
_ARCHITECTURE = re.compile(r"^\.target (\w+)", re.MULTILINE)


class MissingToolError(RuntimeError):
    """The error that a disassembler is not installed, with the way to install it."""


class Kernel(NamedTuple):
    """A kernel: its name, the operation that it computes, and files of "llvm", "object", "ptx"."""

    name: str
    operation: Instruction | None
    files: Mapping[str, pathlib.Path]

    @property
    def codes(self) -> tuple[str, ...]:
        """The kinds of code in `CODES` that `code` can show if the disassemblers are installed."""
        has = {
            "llvm": "llvm" in self.files,
            "assembly": "object" in self.files,
            "ptx": "ptx" in self.files,
            "sass": "ptx" in self.files,
        }
        return tuple(code for code in CODES if has[code])

    def code(self, kind: str) -> str:
        """Return the kernel's code as text.

        Args:
          kind: "llvm" for the optimized LLVM IR; "assembly" for a CPU's instructions, by objdump;
            "ptx"; or "sass" for a GPU's instructions, by ptxas and nvdisasm.

        Raises:
          MissingToolError: if the disassembler is not installed.
          ValueError: if the kernel has no code of this kind.
        """
        if kind not in self.codes:
            has = ", ".join(self.codes) or "none"
            raise ValueError(f"kernel {self.name} has no code of kind {kind!r}: it has {has}")
        if kind == "assembly":
            objdump = find_tool(("objdump", "llvm-objdump"), "install binutils")
            return output_of([objdump, "-d", "--no-show-raw-insn", str(self.files["object"])])
        if kind == "sass":
            return _sass(self.files["ptx"])
        return self.files[kind].read_text(encoding="utf-8", errors="replace")


def kernels(module: DumpedModule) -> list[Kernel]:
    """Return the kernels of a module, in the order of the operations that they compute.

    Kernels of no operation of the optimized program, such as shared helpers, are the last.
    Operations that libraries compute (convolutions, products, sorts) may have no kernel. Kernels of
    TPUs are not listed: `tpu_kernels` reads them.
    """
    by_name: dict[str, dict[str, pathlib.Path]] = {}
    prefix = module.name + "."
    for path in sorted(module.stages[0].path.parent.iterdir()):
        # A time may be before the module's name.
        before, found, part = path.name.partition(prefix)
        if not found:
            continue
        if path.name.endswith(_LLVM):
            compiled = path.with_name(f"{before}{prefix}obj-file.{part.removesuffix(_LLVM)}.o")
            for name in _DEFINED.findall(path.read_text(encoding="utf-8", errors="replace")):
                files = by_name.setdefault(name, {})
                files["llvm"] = path
                if compiled.exists():
                    files["object"] = compiled
        elif path.suffix == ".ptx":
            for name in _ENTRY.findall(path.read_text(encoding="utf-8", errors="replace")):
                by_name.setdefault(name, {})["ptx"] = path
    computed = _operations(module)
    positions = {name: position for position, name in enumerate(computed)}
    ordered = sorted(
        by_name, key=lambda name: (positions.get(kernel_word(name), len(positions)), name)
    )
    return [Kernel(name, computed.get(kernel_word(name)), by_name[name]) for name in ordered]


def _operations(module: DumpedModule) -> dict[str, Instruction]:
    """Return the operations of the optimized program by the names that their kernels have."""
    if module.optimized is None:
        return {}
    program = parsed_file(module.optimized)
    return {kernel_word(instruction.name): instruction for instruction in program.instructions()}


def kernel_word(name: str) -> str:
    """Return the name of a GPU's kernel for an operation's name."""
    return re.sub(r"\W", "_", name)


@is_visible
def kernel_table(listed: Sequence[Kernel]) -> str:
    """Return a table of kernels: name, operation, line of the user's source, kinds of code."""
    rows = [("kernel", "operation", "line", "code")]
    for kernel in listed:
        operation, line = "", ""
        if kernel.operation is not None:
            operation = f"{kernel.operation.opcode} {kernel.operation.name}"
            source = nearest_source(kernel.operation)
            line = short_line(source.file, source.line) if source else ""
        rows.append((kernel.name, operation, line, ", ".join(kernel.codes)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(
            [*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[3]]
        ).rstrip()
        for row in rows
    )


def _sass(ptx: pathlib.Path) -> str:
    """Return the instructions that ptxas compiles PTX to, disassembled by nvdisasm."""
    architecture = _ARCHITECTURE.search(ptx.read_text(encoding="utf-8", errors="replace"))
    assembler = find_tool(("ptxas",), "pip install nvidia-cuda-nvcc")
    disassembler = find_tool(("nvdisasm",), "pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernel.cubin")
        target = [f"-arch={architecture[1]}"] if architecture else []
        output_of([assembler, *target, str(ptx), "-o", cubin])
        return output_of([disassembler, "--print-code", cubin])


def find_tool(names: Sequence[str], advice: str) -> str:
    """Return the path of the first of some tools on PATH or in the wheels of NVIDIA's toolkit.

    Raises:
      MissingToolError: if none is installed, with advice on how to install one.
    """
    spec = importlib.util.find_spec("nvidia")
    wheels = (spec.submodule_search_locations or ()) if spec else ()
    for name in names:
        if path := shutil.which(name):
            return path
        for folder in wheels:
            for path in sorted(pathlib.Path(folder).glob(f"*/bin/{name}")):
                return str(path)
    raise MissingToolError(f"{names[0]} is not installed here: {advice}")


def output_of(command: Sequence[str]) -> str:
    """Return what a tool prints: its output, or if that is empty, its messages.

    Raises:
      RuntimeError: if it fails; the lines after the first are its messages.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout or done.stderr
