"""The texts of a GPU's kernels: PTX, what ptxas says of it, and the launches that XLA lists."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

# The classes of instructions, in the order of columns; moves and reads of parameters are in none.
CLASSES = (
    "tensor", "float", "special", "integer", "global", "shared", "local", "sync", "control",
)  # fmt: skip
_WARP = 32

_ENTRY = re.compile(r"^\.(?:visible|weak) \.entry ([\w$]+)\(", re.MULTILINE)
_FUNCTION = re.compile(r"^\.(?:visible \.|weak \.|extern \.)?(?:entry|func)\b", re.MULTILINE)
_THREADS = re.compile(r"^\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?", re.MULTILINE)
_VARIABLE = re.compile(
    r"^\s*\.shared (?:\.align \d+ )?\.[bfsu](\d+) ([\w$]+)(?:\[(\d+)\])?;", re.MULTILINE
)
_INSTRUCTION = re.compile(r"\s*\{?\s*(?:@!?%\w+\s+)?([a-z]\w*)((?:[.:]+\w+)*)(?:[\s;]|$)")
_FLOAT = re.compile(r"\.(?:f16|bf16|f32|tf32|f64|e4m3|e5m2|e8m0)")
_BY_OPCODE = {
    opcode: kind
    for kind, opcodes in {
        "tensor": "mma wmma wgmma tcgen05",
        "special": "ex2 lg2 sin cos tanh rcp rsqrt sqrt",
        "global": "atom red prefetch cp",
        "shared": "ldmatrix stmatrix",
        "sync": "bar barrier shfl vote match redux membar fence mbarrier activemask elect "
        "griddepcontrol nanosleep",
        "control": "bra brx call ret exit trap",
        "": "mov ld st isspacep mapa setmaxnreg",
    }.items()
    for opcode in opcodes.split()
}
_SPACE = re.compile(r"\.(global|shared|local|param|const)\b")


class PtxEntry(NamedTuple):
    """A kernel in PTX.

    Attributes:
      name: its name.
      threads: the threads of a block in each direction, None if it does not require a number.
      shared: the bytes of shared memory that it declares.
      instructions: the number of its instructions in each of `CLASSES`.
    """

    name: str
    threads: tuple[int, int, int] | None
    shared: int
    instructions: Mapping[str, int]


def entries_of(text: str) -> list[PtxEntry]:
    """Return the kernels of a text of PTX."""
    found: list[PtxEntry] = []
    function = _FUNCTION.search(text)
    head = text[: function.start()] if function else text
    for name, body in _bodies(text):
        threads = _THREADS.search(body)
        outside = [each for each in _VARIABLE.findall(head) if each[1] in body]
        declared = [*outside, *_VARIABLE.findall(body)]
        counts = Counter(kind for _, kind in _lines(body))
        found.append(
            PtxEntry(
                name,
                (int(threads[1]), int(threads[2] or 1), int(threads[3] or 1)) if threads else None,
                sum(int(bits) // 8 * int(count or 1) for bits, _, count in declared),
                {kind: counts[kind] for kind in CLASSES},
            )
        )
    return found


def code_of(text: str, name: str) -> list[tuple[str, str]]:
    """Return the lines of a kernel's code in PTX, each with the class of its instruction.

    The class is "" for moves, declarations and labels. Empty lines and comments are omitted.
    """
    body = next((body for each, body in _bodies(text) if each == name), "")
    return [(line, kind) for line, kind in _lines(body) if line and not line.startswith("//")]


def _bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each kernel."""
    starts = [match.start() for match in _FUNCTION.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        if entry := _ENTRY.match(text, start):
            yield entry[1], text[start:end]


def _lines(body: str) -> Iterator[tuple[str, str]]:
    """Yield the lines between a kernel's braces, each with the class of its instruction."""
    for line in body.partition("\n{")[2].rpartition("}")[0].splitlines():
        instruction = _INSTRUCTION.match(line)
        yield line.strip(), _class_of(instruction[1], instruction[2]) if instruction else ""


def _class_of(opcode: str, suffixes: str) -> str:
    """Return the class of an instruction, "" for moves and reads of parameters."""
    if opcode in ("ld", "st"):
        space = _SPACE.search(suffixes)
        # Without a space the address is generic, which is global except in rare kernels.
        kind = space[1] if space else "global"
        return kind if kind in CLASSES else ""
    known = _BY_OPCODE.get(opcode)
    if known is not None:
        return known
    return "float" if _FLOAT.search(suffixes) else "integer"


class PtxasReport(NamedTuple):
    """What `ptxas -v` says of a kernel: registers of a thread, and bytes.

    `shared` is the shared memory that the kernel declares, without what its launch adds.
    """

    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int


_COMPILED = re.compile(r"^ptxas info\s*: Compiling entry function '([^']+)'", re.MULTILINE)
_USED = re.compile(r"\bUsed (\d+) registers([^\n]*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLED = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def ptxas_reports(text: str) -> dict[str, PtxasReport]:
    """Return what ptxas says of each kernel, by name, from the text that `ptxas -v` prints."""
    found: dict[str, PtxasReport] = {}
    _, *parts = _COMPILED.split(text)
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        used, spilled = _USED.search(part), _SPILLED.search(part)
        if used is None:
            continue
        shared = _SHARED.search(used[2])
        bytes_ = (int(spilled[1]), int(spilled[2]), int(spilled[3])) if spilled else (0, 0, 0)
        found[name] = PtxasReport(int(used[1]), int(shared[1]) if shared else 0, *bytes_)
    return found


class Launch(NamedTuple):
    """A launch of a kernel: its blocks, the threads of each, and the shared memory it adds."""

    kernel: str
    operation: str
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared: int


# 007: kCustomKernel [prev=006 (1) | sink] fusion_1 grid: [8, 1, 1] threads: [64, 1, 1] ...
_LAUNCH = re.compile(
    r"(\d+): k\w+ +\[[^\]\n]*\] ([\w$.-]+) grid: \[(\d+), (\d+), (\d+)\] "
    r"threads: \[(\d+), (\d+), (\d+)\][^\n]*?shared_memory: (\d+) bytes"
)
_THUNK = re.compile(r'profile_annotation: "([^"\n]*)"(?:\s+thunk_id: (\d+))?')


def launches_of(sequence: str, metadata: str) -> list[Launch]:
    """Return the launches of a program from XLA's dumps `thunk_sequence` and `thunk_metadata`.

    The second names the operation of each; without it, launches have those of their kernels.
    """
    operations = {int(thunk or 0): name for name, thunk in _THUNK.findall(metadata)}
    found: list[Launch] = []
    for thunk, kernel, *numbers in _LAUNCH.findall(sequence):
        x, y, z, tx, ty, tz, shared = map(int, numbers)
        operation = operations.get(int(thunk), kernel)
        found.append(Launch(kernel, operation, (x, y, z), (tx, ty, tz), shared))
    return found


class Multiprocessor(NamedTuple):
    """What a GPU's multiprocessor has for the blocks that are resident at a time.

    Attributes:
      count: the multiprocessors of the GPU.
      threads: the threads of all blocks.
      blocks: the blocks.
      registers: the registers of 32 bits.
      shared: the bytes of shared memory.
      reserved: the bytes of shared memory that CUDA takes of each block.
    """

    count: int
    threads: int
    blocks: int
    registers: int
    shared: int
    reserved: int


# The most blocks that are resident on a multiprocessor, by compute capability: NVIDIA's CUDA C++
# Programming Guide, table "Technical Specifications per Compute Capability".
_MOST_BLOCKS = {
    (7, 0): 32, (7, 5): 16, (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24, (9, 0): 32,
    (10, 0): 32, (10, 3): 32, (11, 0): 24, (12, 0): 24, (12, 1): 24,
}  # fmt: skip
_RESERVED_SINCE, _RESERVED = (8, 0), 1024


def multiprocessor_of(config: str) -> Multiprocessor | None:
    """Return the multiprocessor of the GPU in XLA's dump `gpu_target_config`, None if unknown."""
    numbers: dict[str, int] = {}
    for name, value in re.findall(r"^\s*(\w+): (\d{1,12})\s*$", config, re.MULTILINE):
        numbers.setdefault(name, int(value))
    capability = re.search(r"cuda_compute_capability \{([^}]*)\}", config)
    if capability is None:
        return None
    major, minor = (
        int(found[1]) if (found := re.search(rf"{part}: (\d+)", capability[1])) else 0
        for part in ("major", "minor")
    )
    try:
        return Multiprocessor(
            numbers["core_count"],
            numbers["threads_per_core_limit"],
            _MOST_BLOCKS[major, minor],
            numbers["registers_per_core_limit"],
            numbers["shared_memory_per_core"],
            _RESERVED if (major, minor) >= _RESERVED_SINCE else 0,
        )
    except KeyError:
        return None


class Occupancy(NamedTuple):
    """The blocks of a kernel that are resident on a multiprocessor, and what limits them.

    `share` is that of the threads of the multiprocessor.
    """

    blocks: int
    share: float
    limit: str


# Registers are allocated to warps in steps of 256, and warps to four parts of a multiprocessor;
# shared memory in steps of 128 bytes.
_REGISTER_STEP, _PARTS, _SHARED_STEP = 256, 4, 128


def occupancy_of(has: Multiprocessor, threads: int, registers: int, shared: int) -> Occupancy:
    """Return the occupancy of a multiprocessor by blocks of a kernel.

    Args:
      has: the multiprocessor.
      threads: the threads of a block.
      registers: the registers of a thread.
      shared: the bytes of shared memory of a block.
    """
    warps = max(-(-threads // _WARP), 1)
    of_warp = max(-(-registers * _WARP // _REGISTER_STEP) * _REGISTER_STEP, _REGISTER_STEP)
    resident = has.registers // of_warp // _PARTS * _PARTS
    of_block = -(-(shared + has.reserved) // _SHARED_STEP) * _SHARED_STEP
    limits = {
        "threads": has.threads // (warps * _WARP),
        "registers": resident // warps,
        "shared memory": has.shared // of_block if of_block else math.inf,
        "blocks": has.blocks,
    }
    limit = min(limits, key=lambda each: limits[each])
    blocks = int(limits[limit])
    return Occupancy(blocks, blocks * warps * _WARP / has.threads, limit)
