"""The regrouping of fusions: split, merged or regrouped ones are recognized by their work.

Operations inside unmatched fusions have digests of their computation from matched values. Fusions
of both sides that share work form a group: of one to many, many to one, or many to many.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hlotools.ir.digests import Hashes, clean_attributes, digest, is_commutative
from hlotools.ir.hlo import Computation, Instruction

# Opcodes that do not identify a fusion, as they are freely moved, copied and removed.
TRIVIAL = frozenset({
    "parameter", "constant", "broadcast", "bitcast", "reshape", "tuple", "get-tuple-element",
    "copy", "iota", "convert",
})  # fmt: skip
# Opcodes whose result has the operand's elements, whatever the layout.
_SAME_VALUE = frozenset({"bitcast", "copy", "reshape"})
_DEEPEST = 3
# The minimum shares of common work: of the smaller of two fusions, and of a whole group.
_SHARED = 0.4
_WHOLE = 0.5
_MANY = 50


def content(instruction: Instruction) -> list[Instruction]:
    """Return the operations inside a fusion and its nested fusions; else the operation itself."""
    fused = instruction.fused
    if fused is None:
        return [instruction]
    operations: list[Instruction] = []
    waiting = [fused]
    seen: set[int] = set()
    while waiting:
        computation = waiting.pop()
        if id(computation) in seen:
            continue
        seen.add(id(computation))
        for inner in computation.instructions:
            if inner.fused is not None:
                waiting.append(inner.fused)
            elif inner.opcode != "parameter":
                operations.append(inner)
    return operations


class Regrouped(NamedTuple):
    """A group of operations on one side that became other operations on the other side."""

    a: list[Instruction]
    b: list[Instruction]

    @property
    def kind(self) -> str:
        if len(self.a) == 1 and self.a[0].opcode == "fusion":
            return "split"
        if len(self.b) == 1 and self.b[0].opcode == "fusion":
            return "merged"
        return "regrouped"


class WorkDigests:
    """The digests of the work inside a computation's operations, from known values."""

    def __init__(self, hashes: Hashes, computation: Computation, known: Mapping[int, bytes]):
        self._hashes = hashes
        self._own: dict[int, bytes] = {}
        self._computations: dict[int, bytes] = {}
        # By id of an operation that is not known: the count of each piece of work in it; and its
        # trivial work.
        self.inside: dict[int, Counter[bytes]] = {}
        self.little: dict[int, set[bytes]] = {}
        self.values: dict[int, list[bytes]] = {}
        self._run(computation, known, None, None, 0)

    def _run(
        self,
        computation: Computation,
        known: Mapping[int, bytes],
        arguments: Sequence[list[bytes]] | None,
        into: "tuple[Counter[bytes], set[bytes]] | None",
        depth: int,
    ) -> list[bytes]:
        """Return the digests of each result of a computation, and count the work on the way."""
        digests: dict[int, list[bytes]] = {}
        for instruction in computation.in_order():
            key = id(instruction)
            counted = into
            if into is None:
                counted = self.inside[key], self.little[key] = Counter(), set()
            seed = known.get(key)
            if seed is not None:
                digests[key] = [seed]
                continue
            operands = [digests[id(operand)] for operand in instruction.operands]
            digests[key] = self._value(
                instruction, operands, arguments, counted or (Counter(), set()), depth
            )
        if into is None:
            self.values = digests
        return digests[id(computation.root)]

    def _value(
        self,
        instruction: Instruction,
        operands: list[list[bytes]],
        arguments: Sequence[list[bytes]] | None,
        counted: "tuple[Counter[bytes], set[bytes]]",
        depth: int,
    ) -> list[bytes]:
        opcode = instruction.opcode
        if opcode == "parameter":
            number = instruction.number
            if arguments is not None and number < len(arguments):
                return arguments[number]
            return [b"%d" % number]
        if opcode in _SAME_VALUE and len(operands) == 1:
            return operands[0]
        if opcode == "tuple":
            return [part[0] if len(part) == 1 else digest(part) for part in operands]
        if opcode == "get-tuple-element" and operands:
            index = instruction.attributes.get("index", "")
            position = int(index) if index.isdecimal() and len(index) < 9 else 0
            parts = operands[0]
            return (
                [parts[position]]
                if position < len(parts) > 1
                else [digest([*parts, b"%d" % position])]
            )
        fused = instruction.fused
        if fused is not None and depth < _DEEPEST:
            return self._run(fused, {}, operands, counted, depth + 1)
        operand_digests = [part for parts in operands for part in parts]
        if is_commutative(instruction):
            operand_digests.sort()
        value = digest([self._what(instruction), *operand_digests])
        if opcode not in TRIVIAL:
            counted[0][value] += 1
        elif opcode != "constant":
            counted[1].add(value)
        return [value]

    def _what(self, instruction: Instruction) -> bytes:
        """Return the digest of an operation's own work, regardless of layouts."""
        known = self._own.get(id(instruction))
        if known is None:
            parts = [instruction.opcode, instruction.shape.without_layout(), instruction.literal]
            for name, value in clean_attributes(instruction).items():
                if name != "backend_config":
                    parts += [name, value]
            called = [
                self._computation(callee)
                for name in sorted(instruction.called)
                for callee in instruction.called[name]
            ]
            known = digest(["\0".join(parts).encode("utf-8", "replace"), *called])
            self._own[id(instruction)] = known
        return known

    def _computation(self, computation: Computation) -> bytes:
        """Return the digest of a computation's work on its parameters, regardless of fusions."""
        known = self._computations.get(id(computation))
        if known is None:
            known = digest(self._run(computation, {}, (), (Counter(), set()), 0))
            self._computations[id(computation)] = known
        return known


def groups(
    work_a: WorkDigests,
    work_b: WorkDigests,
    left_a: Iterable[Instruction],
    left_b: Iterable[Instruction],
) -> list[Regrouped]:
    """Return the groups of operations of both sides with common work, in the order of the first."""
    mine = {id(i): i for i in left_a if work_a.inside.get(id(i))}
    others = {id(i): i for i in left_b if work_b.inside.get(id(i))}
    regrouped = list(_exact(work_a, work_b, mine, others))
    makers = Counter(piece for key in mine for piece in work_a.inside[key])
    holders: dict[bytes, list[int]] = defaultdict(list)
    for key in others:
        for piece in work_b.inside[key]:
            holders[piece].append(key)
    leader: dict[int, int] = {key: key for key in (*mine, *others)}

    def lead(key: int) -> int:
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    for key in mine:
        pieces = work_a.inside[key]
        shared: Counter[int] = Counter()
        for piece in pieces:
            shared.update(holders.get(piece, ()))
        for piece in pieces:
            # Work that only one operation on each side has must have moved.
            if makers[piece] == len(holders.get(piece, ())) == 1:
                leader[lead(holders[piece][0])] = lead(key)
        for other, count in shared.items():
            if count >= _SHARED * min(len(pieces), len(work_b.inside[other])):
                leader[lead(other)] = lead(key)
    led: dict[int, Regrouped] = {}
    for key, instruction in mine.items():
        led.setdefault(lead(key), Regrouped([], [])).a.append(instruction)
    for key, instruction in others.items():
        led.setdefault(lead(key), Regrouped([], [])).b.append(instruction)
    for group in led.values():
        if _is_whole(group, work_a, work_b):
            regrouped += _one_by_one(group, work_a, work_b)
    return regrouped


def _exact(
    work_a: WorkDigests,
    work_b: WorkDigests,
    mine: dict[int, Instruction],
    others: dict[int, Instruction],
) -> Iterator[Regrouped]:
    """Yield pairs of operations with equal work on equal values; remove them from the inputs."""

    def key(instruction: Instruction, work: WorkDigests) -> Any:
        inside = frozenset(work.inside[id(instruction)].items())
        return instruction.opcode, inside, tuple(work.values[id(instruction)])

    index: dict[Any, list[Instruction]] = defaultdict(list)
    for instruction in others.values():
        index[key(instruction, work_b)].append(instruction)
    for instruction in list(mine.values()):
        fitting = index.get(key(instruction, work_a))
        if fitting:
            partner = fitting.pop(0)
            del mine[id(instruction)], others[id(partner)]
            yield Regrouped([instruction], [partner])


def join(
    joined: Sequence[Regrouped],
    work_a: WorkDigests,
    work_b: WorkDigests,
    left_a: Iterable[Instruction],
    left_b: Iterable[Instruction],
) -> None:
    """Add remaining operations to neighboring groups whose other side has their work."""
    groups_of = {id(i): group for group in joined for i in (*group.a, *group.b)}
    for left, work, other, second in (
        (left_a, work_a, work_b, False),
        (left_b, work_b, work_a, True),
    ):

        def is_there(group: Regrouped, instruction: Instruction) -> bool:
            """Return whether the group's other side has all work of an instruction."""
            inside, little = work.inside[id(instruction)], work.little[id(instruction)]  # noqa: B023
            known = other.inside if inside else other.little  # noqa: B023
            rest = set(inside or little)
            for one in group.a if second else group.b:  # noqa: B023
                rest -= set(known[id(one)])
            return not rest

        waiting = [i for i in left if work.inside[id(i)] or work.little[id(i)]]
        for instruction in (*waiting, *reversed(waiting)):
            if id(instruction) in groups_of:
                continue
            for neighbor in (*instruction.users, *instruction.operands):
                group = groups_of.get(id(neighbor))
                if group is not None and is_there(group, instruction):
                    (group.b if second else group.a).append(instruction)
                    groups_of[id(instruction)] = group
                    break


def _one_by_one(group: Regrouped, work_a: WorkDigests, work_b: WorkDigests) -> list[Regrouped]:
    """Return a group as pairs, if each operation has about the work of one on the other side."""
    if len(group.a) != len(group.b) or len(group.a) > _MANY:
        return [group]
    scored: list[tuple[float, int, int]] = []
    for n, first in enumerate(group.a):
        for m, second in enumerate(group.b):
            pieces, others = work_a.inside[id(first)], work_b.inside[id(second)]
            share = len(pieces & others) / len(pieces | others)
            if share >= _WHOLE:
                scored.append((-share, n, m))
    taken: dict[int, int] = {}
    for _, n, m in sorted(scored):
        if n not in taken and m not in taken.values():
            taken[n] = m
    if len(taken) < len(group.a):
        return [group]
    return [Regrouped([group.a[n]], [group.b[taken[n]]]) for n in sorted(taken)]


def _is_whole(group: Regrouped, work_a: WorkDigests, work_b: WorkDigests) -> bool:
    """Return whether both sides of a group have about the same work."""
    if not (group.a and group.b):
        return False
    if all(i.opcode != "fusion" for i in (*group.a, *group.b)):
        return False
    first = {piece for i in group.a for piece in work_a.inside[id(i)]}
    second = {piece for i in group.b for piece in work_b.inside[id(i)]}
    return len(first & second) >= _WHOLE * len(first | second)
