"""The styles of HLO and StableHLO text for `as_text(style=...)`."""

import linecache
import re

from hlotools.ir.canonical_form import canonical_hlo
from hlotools.ir.hlo import Computation, HloModule, Instruction, indexed
from hlotools.ir.hlo_parser import parse
from hlotools.ir.mlir_lines import (
    canonical_jaxpr,
    canonical_stablehlo,
    stablehlo_lines,
)
from hlotools.ir.program_text import program_of_text
from hlotools.ir.source_frames import Source
from hlotools.source_lines import short_line

STYLES = ("raw", "source", "short", "canonical")
# Longer literals and configurations are cut in the short style.
_LONGEST = 40
_WIDEST = 100
# The bytecode of a kernel, in base64 or in escapes.
_PAYLOAD = re.compile(
    r'(?<=\\22)[A-Za-z0-9+/=]{100,}(?=\\22)|(?<=")ML\\EFR(?:[^"\\]++|\\.)*+(?=")', re.DOTALL
)
_DENSE = re.compile(r'dense<(?:"[^"]{40,}"|\[[^>]{40,}\])>')


def styled(text: str, style: str = "raw") -> str:
    """Return HLO or StableHLO text in another style.

    Args:
      text: a result of `as_text()`; "source" needs `debug_info=True` for StableHLO.
      style: "raw" is the unchanged text. "source" has each operation next to the user's file,
        line and source text. "short" has no metadata and no default layouts, and cuts long
        constants and configurations. "canonical" has names and orders that depend only on the
        program's structure.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      ValueError: if the style does not exist.
    """
    if style not in STYLES:
        raise ValueError(f"a style is one of {', '.join(STYLES)}: got {style!r}")
    if style == "raw":
        return text
    kind = program_of_text(text, "the text").kind
    if kind == "jaxpr":
        return canonical_jaxpr(text) if style == "canonical" else text
    if kind == "stablehlo":
        return _STABLEHLO[style](text)
    return _HLO[style](parse(text))


# ---- HLO ----------------------------------------------------------------------------------------


def source(module: HloModule) -> str:
    """Return a module's operations as text, each run of one line next to that source line."""
    lines = [f"HloModule {module.name}"]
    for computation in module.computations:
        lines += ["", _head(computation)]
        rows = [
            (("  " + _short_line(instruction)), instruction.source)
            for instruction in computation.instructions
        ]
        lines += _beside(rows)
        lines.append("}")
    return "\n".join(lines) + "\n"


def short(module: HloModule) -> str:
    """Return HLO text without metadata, default layouts and long constants."""
    lines = [f"HloModule {module.name}"]
    for computation in module.computations:
        lines += ["", _head(computation)]
        lines += ["  " + _short_line(instruction) for instruction in computation.instructions]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _head(computation: Computation) -> str:
    parameters = ", ".join(f"{p.name}: {p.shape.short_text()}" for p in computation.parameters)
    entry = "ENTRY " if computation.is_entry else ""
    result = computation.root.shape.short_text()
    return f"{entry}{computation.name} ({parameters}) -> {result} {{"


_HIDDEN = frozenset({"metadata", "origin", "original_value", "frontend_attributes"})


def _short_line(instruction: Instruction) -> str:
    if instruction.opcode == "constant":
        inner = _cut(" ".join(instruction.literal.split()))
    elif instruction.opcode == "parameter":
        inner = str(instruction.number)
    else:
        inner = indexed([operand.name for operand in instruction.operands])
    attributes = "".join(
        f", {key}={_cut(value) if key == 'backend_config' else value.replace('%', '')}"
        for key, value in instruction.attributes.items()
        if key not in _HIDDEN
    )
    root = "ROOT " if instruction.is_root else ""
    shape = instruction.shape.short_text()
    return f"{root}{instruction.name} = {shape} {instruction.opcode}({inner}){attributes}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."


# ---- StableHLO ----------------------------------------------------------------------------------


def _stablehlo_source(text: str) -> str:
    rows: list[tuple[str, Source | None]] = []
    for line in stablehlo_lines(text, renamed=False):
        site = line.site
        known = Source(site.file, site.line) if site.file else None
        rows.append((_elided(line.text), known))
    return "\n".join(_beside(rows)) + "\n"


def _stablehlo_short(text: str) -> str:
    lines = stablehlo_lines(text, renamed=False)
    return "\n".join(_elided(line.text) for line in lines) + "\n"


def _elided(line: str) -> str:
    if "custom_call @" in line:
        line = _PAYLOAD.sub("...", line)
    return _DENSE.sub("dense<...>", line) if "dense<" in line else line


_HLO = {"source": source, "short": short, "canonical": canonical_hlo}
_STABLEHLO = {
    "source": _stablehlo_source,
    "short": _stablehlo_short,
    "canonical": canonical_stablehlo,
}


# ---- source lines -------------------------------------------------------------------------------


def _beside(rows: list[tuple[str, Source | None]]) -> list[str]:
    """Return lines of operations, with the source line at the right of each run from one line."""
    width = min(max((len(text) for text, _ in rows), default=0), _WIDEST)
    lines: list[str] = []
    last: tuple[str, int] | None = None
    for text, site in rows:
        if site is None:
            lines.append(text)
            last = None
            continue
        where = site.file, site.line
        if where == last:
            # The text of a source line is shown once.
            code = ""
        else:
            code = linecache.getline(site.file, site.line).strip() if site.line else ""
        last = where
        line = short_line(site.file, site.line)
        lines.append(f"{text:<{width}}  # {line}" + (f"  {code}" if code else ""))
    return lines
