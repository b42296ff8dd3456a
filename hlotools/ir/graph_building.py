"""The builder of modules from StableHLO and jaxprs, which are compared like HLO."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from hlotools.ir.digests import is_commutative
from hlotools.ir.hlo import Computation, HloModule, Instruction, Shape

# The maximum depth of nested subprograms.
DEEPEST = 100


def array(dtype: str, dimensions: Sequence[int]) -> Shape:
    """Return the shape of an array; a size of -1 is unknown."""
    sizes = tuple(dimensions)
    text = f"{dtype}[{','.join('?' if n < 0 else str(n) for n in sizes)}]"
    return Shape(text, dtype, sizes, tuple(n < 0 for n in sizes))


def captures(instruction: Instruction) -> int:
    """Return the number of trailing operands that an operation's regions capture from outside."""
    counts = [
        c.attributes.get("captured")
        for computations in instruction.called.values()
        for c in computations
    ]
    return max((int(count) for count in counts if count), default=0)


def parameters_of_regions(
    a: Instruction,
    b: Instruction,
    first: Computation,
    second: Computation,
    same: Callable[[Instruction, Instruction], bool],
) -> list[tuple[int, int]]:
    """Return pairs of the numbers of matching parameters of two regions.

    Block arguments match in order; captured values match where the values outside do.
    """
    captured = captures(a), captures(b)
    own = [len(c.parameters) - n for c, n in zip((first, second), captured, strict=True)]
    pairs = [(n, n) for n in range(min(own))]
    mine = a.operands[len(a.operands) - captured[0] :]
    free = dict(enumerate(b.operands[len(b.operands) - captured[1] :]))
    left = list(enumerate(mine))
    for fits in (same, lambda x, y: x.shape == y.shape):
        rest: list[tuple[int, Instruction]] = []
        for n, x in left:
            m = next((m for m, y in free.items() if fits(x, y)), None)
            if m is None:
                rest.append((n, x))
            else:
                pairs.append((own[0] + n, own[1] + m))
                del free[m]
        left = rest
    return pairs


_MAX_PAIRS = 64


def operands_of_regions(
    a: Instruction, b: Instruction, free: Callable[[Instruction, Instruction], bool]
) -> list[tuple[Instruction, Instruction]]:
    """Return pairs of operands of two operations with regions that may match.

    Captured values have no order: they may match if their shapes are equal.
    """
    ends = len(a.operands) - captures(a), len(b.operands) - captures(b)
    pairs = [
        (x, y)
        for x in a.operands[ends[0] :]
        for y in b.operands[ends[1] :]
        if x.shape == y.shape and free(x, y)
    ]
    own = zip(a.operands[: ends[0]], b.operands[: ends[1]], strict=False)
    return [*own, *pairs[:_MAX_PAIRS]]


def several(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of several results: a tuple, or the only result's own shape."""
    if len(shapes) == 1:
        return shapes[0]
    return Shape(f"({', '.join(s.text for s in shapes)})", "tuple", elements=tuple(shapes))


def metadata(file: str, line: int, stack: str = "") -> str:
    """Return the text of a metadata attribute with a name stack, source file and line."""
    fields = [f"op_name={_quoted(stack)}"] if stack else []
    fields += [f"source_file={_quoted(file)} source_line={line}"] if file else []
    return "{" + " ".join(fields) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class GraphBuilder:
    """The builder of an HloModule, one computation and operation at a time."""

    def __init__(self, name: str):
        self.module = HloModule(name)
        # By id of an operation: its digest, as far as the text before it determines it.
        self.digests: dict[int, bytes] = {}

    def computation(self, name: str) -> Computation:
        made = Computation(name)
        made.module = self.module
        self.module.computations.append(made)
        return made

    def add(
        self,
        computation: Computation,
        name: str,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        attributes: dict[str, str] | None = None,
        literal: str = "",
        number: int = -1,
        source: tuple[str, int] = ("", 0),
        identity: Iterable[bytes] = (),
        stack: str = "",
    ) -> Instruction:
        """Add an operation to a computation, compute its digest, and return it.

        Args:
          source: the user's file and line, "" and 0 if unknown.
          stack: the name stack, "" if unknown.
          identity: more bytes for the digest, such as the digests of its regions.
        """
        attributes = attributes or {}
        made = Instruction(name, shape, opcode, attributes, literal, number)
        made.computation = computation
        made.operands = list(operands)
        digester = hashlib.blake2b(digest_size=12)
        texts = [opcode, shape.text, literal, str(number), *map(str, sorted(attributes.items()))]
        digester.update("\0".join(texts).encode("utf-8", "replace"))
        digests = [self.digests[id(operand)] for operand in operands]
        for part in (*(sorted(digests) if is_commutative(made) else digests), *identity):
            digester.update(part)
        self.digests[id(made)] = digester.digest()
        if source[0] or stack:
            attributes["metadata"] = metadata(*source, stack)
        computation.instructions.append(made)
        return made

    def returned(self, computation: Computation, values: Sequence[Instruction]) -> None:
        """Set the values that a computation returns."""
        if len(values) == 1:
            root = values[0]
        else:
            root = self.add(
                computation, "results", "tuple", several([v.shape for v in values]), values
            )
        root.is_root = True
        computation.root = root

    def finished(self, entry: Computation, others: Sequence[Computation] = ()) -> HloModule:
        """Return the finished module with its entry computation, and its other roots."""
        entry.is_entry = True
        self.module.entry = entry
        self.module.other_roots = list(others)
        for instruction in self.module.instructions():
            for operand in dict.fromkeys(instruction.operands):
                operand.users.append(instruction)
        return self.module
