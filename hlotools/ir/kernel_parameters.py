"""The parameters of a kernel, from its MLIR: block sizes, memory spaces, grid; and its text."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlotools.ir.attribute_text import closing, dictionary, parts_of
from hlotools.ir.custom_kernels import CustomKernel, has_kernels
from hlotools.ir.hlo import HloModule, HloSyntaxError, Instruction
from hlotools.ir.hlo_parser import parse
from hlotools.ir.mlir_lines import canonical_stablehlo, stablehlo_lines
from hlotools.ir.program_text import kind_of
from hlotools.ir.stablehlo_parser import read_stablehlo
from hlotools.ir.styles import styled

# By subject, such as "block sizes", and by object, such as "operand 0": the value as text.
Parameters = dict[str, dict[str, str]]

_SIZES = re.compile(r"^(?:(?:\d+|\?)x)+")
_SPACE = re.compile(r"(?:memory|address)_space<(\w+)>")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_LONGEST_INDEX = 100
_NUMBERS = re.compile(r"\d+")
_WORD = re.compile(r"#[\w.]+<(\w+)>")
_CONSTANT = re.compile(r"(%[\w.\-]+) = arith\.constant (\d+) :")
_SHARED = re.compile(r"= memref\.view .* to memref<((?:\d+x)+(?!i8)\w+),")
_LOADED = re.compile(r"\btt\.(load|store) .*: tensor<([^<>]*?)x!tt")
# The version of the form that the kernel was read from.
_VERSION = "stable_mosaic.version"
_READ_AS_PARAMETERS = ("iteration_bounds", "dimension_semantics", "scalar_prefetch",
                       "scratch_operands", "window_params")  # fmt: skip


def parameters_of(kernel: CustomKernel) -> Parameters:
    """Return the parameters of a decoded kernel, the subjects that determine others first."""
    lines = [line.written for line in stablehlo_lines(kernel.mlir, renamed=False)]
    found: Parameters = {}
    for subject, of, value in _READERS[kernel.kind](kernel, lines):
        found.setdefault(subject, {})[of] = value
    head = next((line for line in lines if line.startswith("module")), "")
    attributes = head.partition(" attributes {")[2].rstrip("{ ").removesuffix("}")
    for key, value in dictionary(attributes).items():
        if key != _VERSION:
            found[key] = {"": value}
    return found


class MosaicFunction(NamedTuple):
    """The function of a Mosaic kernel for TPUs.

    Attributes:
      head: its first line, "" if there is no function.
      attributes: its attributes.
      grid: the sizes of its grid.
      references: the types of its arguments after the indices of the grid: prefetched scalars,
          operands, results, scratch buffers.
      windows: the attributes of the blocks of operands and results.
      prefetched: the number of prefetched scalars.
      scratch: the number of scratch buffers.
    """

    head: str
    attributes: dict[str, str]
    grid: list[str]
    references: list[str]
    windows: list[dict[str, str]]
    prefetched: int
    scratch: int


def mosaic_function(lines: Sequence[str]) -> MosaicFunction:
    """Return the function of a Mosaic kernel for TPUs, from the lines of its MLIR."""
    functions = [line for line in lines if line.startswith("func.func")]
    head = next((line for line in functions if "iteration_bounds" in line), (functions or [""])[0])
    start = head.find("(")
    end = closing(head, start)
    attributes = dictionary(head[end:].partition(" attributes {")[2].rstrip("{ ").removesuffix("}"))
    windows = [
        dictionary(window.strip()[1:-1])
        for window in parts_of(attributes.get("window_params", "[]")[1:-1])
    ]
    grid = _NUMBERS.findall(attributes.get("iteration_bounds", ""))
    references = [
        part.partition(": ")[2].partition(" {")[0] for part in parts_of(head[start + 1 : end])
    ][len(grid) :]
    prefetched = _number(attributes.get("scalar_prefetch", ""))
    scratch = _number(attributes.get("scratch_operands", ""))
    return MosaicFunction(head, attributes, grid, references, windows, prefetched, scratch)


def _of_mosaic_tpu(kernel: CustomKernel, lines: list[str]) -> Iterator[tuple[str, str, str]]:
    function = mosaic_function(lines)
    attributes, grid, references = function.attributes, function.grid, function.references
    windows, prefetched = function.windows, function.prefetched
    scratch = len(references) - function.scratch
    inputs = kernel.operands - prefetched
    spaces: list[tuple[str, str]] = []
    maps: list[tuple[str, str]] = []
    for n, reference in enumerate(references):
        window = n - prefetched
        if n < prefetched or n >= scratch:
            name = f"prefetched scalars {n}" if n < prefetched else f"scratch {n - scratch}"
        else:
            name = f"operand {window}" if window < inputs else f"result {window - inputs}"
        sizes, dtype, space = _memory(reference)
        yield "block sizes", name, sizes
        yield "dtypes", name, dtype
        spaces.append((name, space))
        given = windows[window] if 0 <= window < len(windows) and n < scratch else {}
        for key, value in given.items():
            if key == "window_bounds" and "x".join(_NUMBERS.findall(value)) != sizes:
                yield "windows", name, "x".join(_NUMBERS.findall(value))
            elif key == "transform_indices":
                maps.append((name, _index_map(lines, value)))
            elif key != "window_bounds":
                yield key, name, value
    for name, space in spaces:
        yield "memory spaces", name, space
    if grid:
        yield "grid", "", "x".join(grid)
    for name, index_map in maps:
        yield "index maps", name, index_map
    if "dimension_semantics" in attributes:
        words = _WORD.findall(attributes["dimension_semantics"])
        yield "dimension semantics", "", ", ".join(words)
    for key, value in attributes.items():
        if key not in _READ_AS_PARAMETERS:
            yield key, "", _word(value)


def _index_map(lines: list[str], symbol: str) -> str:
    """Return the function that chooses a block by the indices of the grid: (i, k) or (i, 0)."""
    start = next((n for n, line in enumerate(lines) if line.startswith(f"func.func {symbol}(")), -1)
    if start < 0:
        return symbol
    arguments = _VALUE.findall(lines[start])
    values = dict(zip(arguments, "ijklmnopq", strict=False))
    for line in lines[start + 1 :]:
        words = line.split()
        if words[0] in ("return", "}"):
            break
        if len(words) > 3 and words[1] == "=":
            of = [values.get(value, value) for value in _VALUE.findall(" ".join(words[3:]))]
            text = f"{words[2]}({', '.join(of)})"
            if words[2] == "arith.constant":
                text = words[3]
            # Those of longer texts are compared by their lines.
            values[words[0]] = text if len(text) < _LONGEST_INDEX else "..."
    else:
        return symbol
    return "(" + ", ".join(values.get(value, value) for value in _VALUE.findall(line)) + ")"


def _memory(reference: str) -> tuple[str, str, str]:
    """Return the sizes, the element type and the memory space of a memref's type."""
    if not reference.startswith("memref<"):
        return "scalar", reference, "smem"
    element, *rest = parts_of(reference[len("memref<") : -1])
    element = element.strip()
    dtype = _SIZES.sub("", element)
    sizes = element[: len(element) - len(dtype)]
    spaces = [_SPACE.search(part) for part in rest]
    space = next((found[1] for found in spaces if found), "")
    return sizes.rstrip("x") or "scalar", dtype, space or ", ".join(rest).strip() or "default"


def _of_mosaic_gpu(kernel: CustomKernel, lines: list[str]) -> Iterator[tuple[str, str, str]]:
    constants = dict(found.groups() for line in lines if (found := _CONSTANT.search(line)))
    buffers = [found[1] for line in lines if (found := _SHARED.search(line))]
    for n, buffer in enumerate(buffers):
        yield "block sizes", f"shared memory {n}", buffer
    launch = next((line for line in lines if "gpu.launch " in line), "")
    for word, subject in (("clusters", "clusters"), ("blocks", "grid"), ("threads", "threads")):
        sizes = re.search(rf"\b{word}\([^()]*\) in \(([^()]*)\)", launch)
        if sizes is not None:
            values = [part.rpartition("= ")[2] for part in sizes[1].split(", ")]
            yield subject, "", "x".join(constants.get(value, "?") for value in values)
    shared = re.search(r"dynamic_shared_memory_size (%[\w.\-]+)", launch)
    if shared is not None:
        yield "bytes of shared memory", "", constants.get(shared[1], "?")
    for key, value in kernel.options.items():
        yield key, "", value


def _of_triton(kernel: CustomKernel, lines: list[str]) -> Iterator[tuple[str, str, str]]:
    counts = {"load": 0, "store": 0}
    for line in lines:
        if found := _LOADED.search(line):
            yield "block sizes", f"{found[1]} {counts[found[1]]}", found[2]
            counts[found[1]] += 1
    options = dict(kernel.options)
    grid = [options.pop(f"grid_{axis}", "1") for axis in "xyz"]
    yield "grid", "", "x".join(grid)
    for key, value in options.items():
        yield key, "", value


_READERS = {
    "Mosaic TPU": _of_mosaic_tpu,
    "Mosaic GPU": _of_mosaic_gpu,
    "Triton": _of_triton,
}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _word(value: str) -> str:
    """Return an attribute's value without its dialect: fp32 of #tpu.contract_precision<fp32>."""
    word = _WORD.fullmatch(value)
    return word[1] if word else value


# ---- text ----------------------------------------------------------------------------------------


def kernels_of(module: HloModule) -> list[tuple[Instruction, CustomKernel]]:
    """Return the custom calls of a module that have kernels, in the order of its text."""
    return [(i, kernel) for i in module.instructions() if (kernel := i.kernel) is not None]


def title_of(call: Instruction, kernel: CustomKernel) -> str:
    """Return the heading of a kernel: its kind, its name, and the source line of its call."""
    source = call.source
    name = source.file.replace("\\", "/").rpartition("/")[2] if source else ""
    return f"{kernel.kind} kernel {kernel.name}" + (f" at {name}:{source.line}" if source else "")


def kernel_text(kernel: CustomKernel, style: str = "short") -> str:
    """Return the parameters of a kernel and its MLIR as text, or why it is not decoded.

    Args:
      kernel: the kernel.
      style: the style of its MLIR, as in `as_text`; "raw" has locations.
    """
    if not kernel.mlir:
        return f"not decoded: {kernel.problem}"
    given = [
        f"{subject}: " + ", ".join(f"{of} {value}".strip() for of, value in values.items())
        for subject, values in parameters_of(kernel).items()
    ]
    return "\n".join([*given, styled(kernel.mlir, style).rstrip()])


def kernels_in(text: str) -> list[tuple[Instruction, CustomKernel]]:
    """Return the kernels in a program's text with their calls; none if the text cannot be parsed.

    Args:
      text: text of StableHLO or HLO; other text has none.
    """
    kind = kind_of(text) if has_kernels(text) else None
    try:
        if kind == "stablehlo":
            return kernels_of(read_stablehlo(text))
        return kernels_of(parse(text)) if kind == "hlo" else []
    except HloSyntaxError:
        return []


def kernels_text(text: str, style: str = "short") -> str:
    """Return the kernels in a program's text as text, each once; "" if there are none."""
    counts = Counter(f"{title_of(i, k)}\n{kernel_text(k, style)}" for i, k in kernels_in(text))
    return "\n\n".join(
        written if count == 1 else written.replace("\n", f", {count} times\n", 1)
        for written, count in counts.items()
    )


def kernel_comments(text: str) -> str:
    """Return the decoded kernels in a program's text as comments for its canonical text."""
    comments: dict[str, str] = {}
    for _, kernel in kernels_in(text):
        if kernel.mlir:
            head = f"// kernel <payload {kernel.digest}>: {kernel.name}\n"
            lines = canonical_stablehlo(kernel.mlir).splitlines()
            comments[head] = "".join(f"//   {line}\n" for line in lines)
    return "".join(head + lines for head, lines in comments.items())
