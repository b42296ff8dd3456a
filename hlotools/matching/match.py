"""The matching of two modules' operations: by structure, then neighbors, then similarity."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hlotools.ir.digests import Hashes, clean_attributes, is_commutative, with_users
from hlotools.ir.graph_building import captures, operands_of_regions, parameters_of_regions
from hlotools.ir.hlo import Computation, Instruction
from hlotools.matching.arguments import numbered_pairs
from hlotools.matching.regrouping import TRIVIAL, Regrouped, WorkDigests, content, groups, join
from hlotools.matching.roots import root_pairs

CONVERTS = frozenset({"convert", "convert_element_type"})
# The minimum shares of work that make an operation a part of, or similar to, another.
_PART = 0.6
_ALIKE = 0.5
# For regrouped fusions: the maximum number of operations, the minimum share of common opcodes.
_FEW = 12
_MOST = 0.7
_MAX_PAIRS = 64


class Compared(NamedTuple):
    """Two compared computations, and their matching operations.

    For the bodies of fusions `callers` are the fusions, and `paths` name the nesting.
    """

    a: Computation
    b: Computation
    paths: tuple[str, str]
    callers: tuple[Instruction, Instruction] | None
    pairs: list[tuple[Instruction, Instruction]]
    removed: list[Instruction]
    added: list[Instruction]


class _Call(NamedTuple):
    """Two computations to compare, and the operations that call them."""

    a: Computation
    b: Computation
    paths: tuple[str, str]
    seeds: list[tuple[int, int]] | None
    callers: tuple[Instruction, Instruction] | None


class Matching:
    """The matching operations of two modules.

    `compared` are the pairs of computations that are not equal, the entries first; `regrouped` are
    the fusions that were split, merged or regrouped; `roots` pairs the modules' roots. Equal
    computations are not compared.
    """

    def __init__(self, a: Hashes, b: Hashes):
        self.a, self.b = a, b
        self.to: dict[int, Instruction] = {}
        self.back: dict[int, Instruction] = {}
        self.compared: list[Compared] = []
        self.regrouped: list[Regrouped] = []
        # By id: the digests of operations in the compared computations.
        self.digests: dict[int, bytes] = {}
        self._seen: set[tuple[int, int]] = set()
        self._tokens: dict[int, Counter[Any]] = {}
        # The ids of operations in the groups of `regrouped`.
        self._taken: set[int] = set()
        self._signatures: dict[int, Counter[Any]] = {}
        self.roots = root_pairs(a.module, b.module)
        waiting: list[_Call] = [
            _Call(*pair, ("", ""), numbered_pairs(*pair), None)
            for n, pair in enumerate(self.roots.pairs)
            if n == 0 or a.computation(pair[0]) != b.computation(pair[1])
        ]
        while waiting:
            call = waiting.pop(0)
            if (id(call.a), id(call.b)) in self._seen:
                continue
            self._seen.add((id(call.a), id(call.b)))
            compared = self._computations(call)
            self.compared.append(compared)
            waiting += self._called(compared)

    def same(self, a: Instruction, b: Instruction) -> bool:
        """Return whether two operations match, or have equal digests."""
        # For a computation that matches several, `to` has only the last match.
        if self.to.get(id(a)) is b or self.back.get(id(b)) is a:
            return True
        known = self.digests.get(id(a))
        return known is not None and known == self.digests.get(id(b))

    def tokens(self, instruction: Instruction) -> Counter[Any]:
        """Return the opcodes and sizes of an operation's work, for a fusion those of its body."""
        known = self._tokens.get(id(instruction))
        if known is None:
            body = content(instruction)
            telling = [i for i in body if i.opcode not in TRIVIAL] or body
            known = Counter((i.opcode, i.shape.dimensions) for i in telling)
            self._tokens[id(instruction)] = known
        return known

    def opcodes(self, instruction: Instruction) -> dict[str, int]:
        """Return the count of each opcode in an operation or in the body of a fusion."""
        counts: dict[str, int] = {}
        for (opcode, _), count in self.tokens(instruction).items():
            counts[opcode] = counts.get(opcode, 0) + count
        return counts

    # ---- pairs of computations ------------------------------------------------------------------

    def _called(self, compared: Compared) -> list["_Call"]:
        """Return the pairs of unequal computations called by matching operations of equal kind."""
        calls: list[_Call] = []
        for a, b in compared.pairs:
            for key in a.called.keys() & b.called.keys() if a.opcode == b.opcode else ():
                for first, second in zip(a.called[key], b.called[key], strict=False):
                    if self.a.computation(first) == self.b.computation(second):
                        continue
                    seeds = None
                    if a.opcode == "fusion" and b.opcode == "fusion":
                        if self.digests[id(a)] == self.digests[id(b)]:
                            continue
                        seeds = self._shared_operands(a, b)
                        if self._equal_inside(first, second, seeds):
                            continue
                    elif "captured" in first.attributes or "captured" in second.attributes:
                        seeds = parameters_of_regions(a, b, first, second, self.same)
                    paths, callers = ("", ""), None
                    if a.opcode == "fusion":
                        before, after = compared.paths
                        paths = f"{before}{a.name}/", f"{after}{b.name}/"
                        callers = a, b
                    calls.append(_Call(first, second, paths, seeds, callers))
        return calls

    def _shared_operands(self, a: Instruction, b: Instruction) -> list[tuple[int, int]]:
        """Return pairs of parameter numbers of two fusions whose operands match."""
        pairs: list[tuple[int, int]] = []
        free = set(range(len(b.operands)))
        for same_place in (True, False):
            for n, operand in enumerate(a.operands):
                if any(n == first for first, _ in pairs):
                    continue
                candidates = [n] if same_place else sorted(free)
                for m in candidates:
                    if m in free and self.same(operand, b.operands[m]):
                        pairs.append((n, m))
                        free.discard(m)
                        break
        # Remaining operands are paired in order, if their shapes are equal.
        for n, operand in enumerate(a.operands):
            if all(n != first for first, _ in pairs):
                shape = operand.shape.without_layout()
                for m in sorted(free):
                    if b.operands[m].shape.without_layout() == shape:
                        pairs.append((n, m))
                        free.discard(m)
                        break
        left = [n for n in range(len(a.operands)) if all(n != first for first, _ in pairs)]
        candidates = zip(left, sorted(free), strict=False)
        return pairs + [
            (n, m)
            for n, m in candidates
            if a.operands[n].shape.dimensions == b.operands[m].shape.dimensions
            or len(a.operands) == len(b.operands)
        ]

    def _arguments(
        self, a: Computation, b: Computation, seeds: list[tuple[int, int]] | None
    ) -> tuple[list[bytes] | None, list[bytes] | None]:
        if seeds is None:
            return None, None
        first = [b"a%d" % n for n in range(len(a.parameters))]
        second = [b"b%d" % n for n in range(len(b.parameters))]
        for n, m in seeds:
            if n < len(first) and m < len(second):
                first[n] = second[m] = b"both%d" % n
        return first, second

    def _equal_inside(self, a: Computation, b: Computation, seeds: list[tuple[int, int]]) -> bool:
        first, second = self._arguments(a, b, seeds)
        found_a = self.a.body(a, first, 1)
        found_b = self.b.body(b, second, 1)
        return found_a[id(a.root)] == found_b[id(b.root)]

    def _pair(self, a: Instruction, b: Instruction) -> None:
        self.to[id(a)] = b
        self.back[id(b)] = a

    def _free(self, a: Instruction, b: Instruction) -> bool:
        return not (
            id(a) in self.to or id(b) in self.back or id(a) in self._taken or id(b) in self._taken
        )

    def _computations(self, call: "_Call") -> Compared:
        a, b, seeds = call.a, call.b, call.seeds
        first, second = self._arguments(a, b, seeds)
        depth = 0 if seeds is None or a.is_entry else 1
        body_a, body_b = self.a.body(a, first, depth), self.b.body(b, second, depth)
        for i in a.instructions:
            self.to.pop(id(i), None)
            self._taken.discard(id(i))
        for i in b.instructions:
            self.back.pop(id(i), None)
            self._taken.discard(id(i))
        self.digests.update(body_a)
        self.digests.update(body_b)
        if seeds is None:
            numbered = zip(a.parameters, b.parameters, strict=False)
            shared = [(p, q) for p, q in numbered if p.number == q.number]
        else:
            given_a = {p.number: p for p in a.parameters}
            given_b = {p.number: p for p in b.parameters}
            shared = [(given_a[n], given_b[m]) for n, m in seeds if n in given_a and m in given_b]
        for p, q in shared:
            self._pair(p, q)
        self._equal(a, b, body_a, body_b)
        self._by_work(a, b)
        for compatible in (self._identical, self._alike_inside, self._same_kind, self._same_opcode):
            self._pair_neighbors(a, b, compatible)
        self._by_origin(a, b)
        self._pair_neighbors(a, b, self._same_opcode)
        self._pair_equal(a, b, body_a, body_b)
        self._by_work(a, b)
        self._regroup(a, b, False)
        self._regroup(a, b, True)
        self._retyped(a, b)
        self._alike(self._left(a), self._left(b))
        self._replaced(a, b)
        self._redistribute(self._left(a), self._left(b))
        pairs = [(i, self.to[id(i)]) for i in a.instructions if id(i) in self.to]
        return Compared(a, b, call.paths, call.callers, pairs, self._left(a), self._left(b))

    def _left(self, computation: Computation) -> list[Instruction]:
        """Return the operations of a computation that have no match yet."""
        return [
            i
            for i in computation.instructions
            if not (id(i) in self.to or id(i) in self.back or id(i) in self._taken)
        ]

    def _take(self, group: Regrouped) -> None:
        self.regrouped.append(group)
        self._taken.update(map(id, (*group.a, *group.b)))

    def _equal(
        self, a: Computation, b: Computation, body_a: dict[int, bytes], body_b: dict[int, bytes]
    ) -> None:
        """Pair operations with equal digests, those with equal users first.

        Where the counts on both sides differ, the neighbors decide later.
        """
        self._pair_equal(a, b, with_users(a, body_a), with_users(b, body_b))
        self._pair_equal(a, b, body_a, body_b, as_many=True)

    def _pair_equal(
        self,
        a: Computation,
        b: Computation,
        keys_a: dict[int, bytes],
        keys_b: dict[int, bytes],
        as_many: bool = False,
    ) -> None:
        groups: dict[bytes, list[Instruction]] = defaultdict(list)
        for i in self._left(b):
            groups[keys_b[id(i)]].append(i)
        left = self._left(a)
        counts = Counter(keys_a[id(i)] for i in left)
        for i in left:
            key = keys_a[id(i)]
            group = groups.get(key)
            if group and (not as_many or counts[key] == len(group)):
                counts[key] -= 1
                self._pair(i, group.pop(0))

    # ---- matching of neighbors ------------------------------------------------------------------

    def _identical(self, a: Instruction, b: Instruction) -> bool:
        return self.a.own(a) == self.b.own(b) and (
            a.fused is None
            or b.fused is None
            or self.a.computation(a.fused) == self.b.computation(b.fused)
        )

    def _alike_inside(self, a: Instruction, b: Instruction) -> bool:
        """Return whether two operations have equal work and attributes, regardless of layouts."""
        if a.opcode != b.opcode or a.opcode in ("parameter", "constant"):
            return False
        return self._signature(a) == self._signature(b)

    def _signature(self, instruction: Instruction) -> Any:
        known = self._signatures.get(id(instruction))
        if known is None:
            known = Counter(
                (i.opcode, i.shape.dimensions, *attributes_of(i)) for i in content(instruction)
            )
            self._signatures[id(instruction)] = known
        return known

    def _same_kind(self, a: Instruction, b: Instruction) -> bool:
        return (
            self._same_opcode(a, b)
            and a.shape.without_layout() == b.shape.without_layout()
            and (a.opcode != "fusion" or self.tokens(a) == self.tokens(b))
        )

    def _same_opcode(self, a: Instruction, b: Instruction) -> bool:
        if a.opcode != b.opcode or a.opcode == "parameter":
            return False
        if a.opcode == "constant":
            return a.shape.dimensions == b.shape.dimensions
        return a.opcode != "fusion" or self.opcodes(a) == self.opcodes(b)

    def _pair_neighbors(
        self,
        a: Computation,
        b: Computation,
        compatible: Callable[[Instruction, Instruction], bool],
    ) -> None:
        """Pair the operands and users of paired operations, where they are compatible."""
        if self._free(a.root, b.root) and compatible(a.root, b.root):
            self._pair(a.root, b.root)
        waiting = [(i, self.to[id(i)]) for i in a.instructions if id(i) in self.to]
        while waiting:
            first, second = waiting.pop()
            are_known = all(id(x) in self.to for x in first.operands)
            for x, y in () if are_known else self._operands(first, second):
                if self._free(x, y) and compatible(x, y):
                    self._pair(x, y)
                    waiting.append((x, y))
            users = [u for u in second.users if id(u) not in self.back]
            mine = [u for u in first.users if id(u) not in self.to] if users else []
            if not 0 < len(mine) * len(users) <= 10_000:
                continue
            for x in mine:
                fitting = [y for y in users if compatible(x, y)]
                if len(fitting) == 1 and sum(compatible(u, fitting[0]) for u in mine) == 1:
                    self._pair(x, fitting[0])
                    waiting.append((x, fitting[0]))
                    users.remove(fitting[0])
                    mine = [u for u in mine if u is not x]

    def _operands(
        self, first: Instruction, second: Instruction
    ) -> Iterable[tuple[Instruction, Instruction]]:
        """Return pairs of operands that may match, the most similar first if order is free."""
        if first.opcode == second.opcode and (captures(first) or captures(second)):
            return operands_of_regions(first, second, self._free)
        free = is_commutative(first) and is_commutative(second)
        if not free and not (first.opcode == second.opcode == "fusion"):
            return zip(first.operands, second.operands, strict=False)
        mine = [x for x in first.operands if id(x) not in self.to]
        others = [y for y in second.operands if id(y) not in self.back]
        if len(mine) < 2 or len(others) < 2 or len(mine) * len(others) > _MAX_PAIRS:
            if free or len(mine) == len(others) == 1:
                return [(x, y) for x in mine for y in others]
            return zip(first.operands, second.operands, strict=False)

        def unlike(pair: tuple[int, int]) -> tuple[int, int]:
            x, y = mine[pair[0]], others[pair[1]]
            if x.opcode != y.opcode:
                return 0, abs(pair[0] - pair[1])
            common = (self._signature(x) & self._signature(y)).total()
            return -common, abs(pair[0] - pair[1])

        index_pairs = sorted(
            ((n, m) for n in range(len(mine)) for m in range(len(others))), key=unlike
        )
        return [(mine[n], others[m]) for n, m in index_pairs]

    def _by_origin(self, a: Computation, b: Computation) -> None:
        """Pair operations that are unique in opcode, name stack and source line."""

        def key(i: Instruction) -> Any:
            tokens = frozenset(self.opcodes(i).items()) if i.opcode == "fusion" else None
            return i.opcode, i.op_name, i.source and i.source.line, tokens

        groups: dict[Any, list[Instruction]] = defaultdict(list)
        for i in self._left(b):
            groups[key(i)].append(i)
        mine: dict[Any, list[Instruction]] = defaultdict(list)
        for i in self._left(a):
            if i.op_name:
                mine[key(i)].append(i)
        for origin, instructions in mine.items():
            others = groups.get(origin, [])
            if len(instructions) == len(others) == 1:
                self._pair(instructions[0], others[0])

    # ---- split, merged and changed fusions ------------------------------------------------------

    def _by_work(self, a: Computation, b: Computation) -> None:
        """Group operations with common work, and pair two that share work only with each other."""
        left_a, left_b = self._left(a), self._left(b)
        if not (left_a and left_b and any(i.opcode == "fusion" for i in (*left_a, *left_b))):
            return
        known_a: dict[int, bytes] = {}
        known_b: dict[int, bytes] = {}
        for n, i in enumerate(i for i in a.instructions if id(i) in self.to):
            known_a[id(i)] = known_b[id(self.to[id(i)])] = b"both%d" % n
        work_a, work_b = WorkDigests(self.a, a, known_a), WorkDigests(self.b, b, known_b)
        regrouped: list[Regrouped] = []
        for group in groups(work_a, work_b, left_a, left_b):
            if len(group.a) == len(group.b) == 1:
                self._pair(group.a[0], group.b[0])
            else:
                regrouped.append(group)
        join(regrouped, work_a, work_b, self._left(a), self._left(b))
        for group in regrouped:
            self._take(group)

    def _regroup(self, a: Computation, b: Computation, merged: bool) -> None:
        """Find fusions on one side that are several operations on the other, by their work."""
        wholes, others = self._left(a), self._left(b)
        if merged:
            wholes, others = others, wholes
        taken = set[int]()
        index: dict[Any, list[Instruction]] = defaultdict(list)
        for other in others:
            if id(other) not in taken and other.opcode not in TRIVIAL:
                for token in self.tokens(other):
                    index[token].append(other)
        for whole in wholes:
            if whole.opcode != "fusion" or id(whole) in taken:
                continue
            left = Counter(self.tokens(whole))
            size = left.total()
            parts: list[Instruction] = []
            # Candidates are near each other, not in all similar layers of a network.
            while left:
                candidates = {
                    id(i): i for token in left for i in index[token] if id(i) not in taken
                }
                best, most = None, 0
                for other in candidates.values():
                    tokens = self.tokens(other)
                    common = (tokens & left).total()
                    if common < _PART * tokens.total() or common <= most:
                        continue
                    if self._connected(whole, other, parts):
                        best, most = other, common
                if best is None:
                    break
                parts.append(best)
                taken.add(id(best))
                left -= self.tokens(best)
            if len(parts) >= 2 and size - left.total() >= _PART * size:
                order = {id(i): n for n, i in enumerate(others)}
                parts.sort(key=lambda i: order[id(i)])
                self._take(Regrouped(parts, [whole]) if merged else Regrouped([whole], parts))
                taken.add(id(whole))
            else:
                taken.difference_update(map(id, parts))

    def _redistribute(self, a: list[Instruction], b: list[Instruction]) -> None:
        """Group the few remaining operations if both sides have about the same opcodes."""
        a = [i for i in a if i.opcode not in TRIVIAL and not i.opcode.startswith("copy")]
        b = [i for i in b if i.opcode not in TRIVIAL and not i.opcode.startswith("copy")]
        fusions = sum(i.opcode == "fusion" for i in a), sum(i.opcode == "fusion" for i in b)
        if not (min(fusions) >= 1 and max(fusions) >= 2 and len(a) + len(b) <= _FEW):
            return
        mine = self._kinds(a)
        others = self._kinds(b)
        # Repeated work counts once.
        if len(mine & others) < _MOST * len(mine | others):
            return
        a = [i for i in a if self._kinds([i]) & others]
        b = [i for i in b if self._kinds([i]) & mine]
        self._take(Regrouped(a, b))

    def _kinds(self, instructions: Iterable[Instruction]) -> set[str]:
        """Return the opcodes inside operations; a convolution counts as a dot."""
        opcodes = {opcode for i in instructions for opcode in self.opcodes(i)}
        return {"dot" if opcode == "convolution" else opcode for opcode in opcodes}

    def _connected(
        self, whole: Instruction, part: Instruction, parts: Sequence[Instruction]
    ) -> bool:
        """Return whether a part is next to the neighbors of a whole, or next to another part."""
        near = {id(i) for known in parts for i in (*known.operands, *known.users)}
        if id(part) in near:
            return True
        around = {id(i) for i in (*whole.operands, *whole.users)}
        for neighbor in (*part.operands, *part.users):
            other = self.to.get(id(neighbor)) or self.back.get(id(neighbor))
            if other is not None and id(other) in around:
                return True
        return bool(part.is_root and whole.is_root)

    def _alike(self, a: Sequence[Instruction], b: Sequence[Instruction]) -> None:
        """Pair the remaining operations by similarity, the most similar first."""
        groups: dict[str, list[Instruction]] = defaultdict(list)
        for i in b:
            groups[i.opcode].append(i)
        scored: list[tuple[float, int, int, Instruction, Instruction]] = []
        for n, x in enumerate(a):
            # If an opcode is very frequent, only operations that are near in the text are compared.
            others = groups[x.opcode]
            if len(others) > 200:
                middle = min(n, len(others))
                others = others[max(0, middle - 100) : middle + 100]
            for m, y in enumerate(others):
                score = self._likeness(x, y)
                if score >= _ALIKE:
                    scored.append((-score, abs(n - m), n, x, y))
        for *_, x, y in sorted(scored, key=lambda candidate: candidate[:3]):
            if self._free(x, y):
                self._pair(x, y)

    def _likeness(self, a: Instruction, b: Instruction) -> float:
        """Return the similarity of two operations of one opcode, from 0 to 1."""
        if a.opcode == "parameter":
            return 0.0
        score = 0.0
        if a.opcode == "fusion":
            mine, others = self.tokens(a), self.tokens(b)
            if not mine & others:
                # All sizes differ.
                mine, others = Counter(self.opcodes(a)), Counter(self.opcodes(b))
            score += 0.5 * (mine & others).total() / max((mine | others).total(), 1)
            score += 0.15 * (a.shape.without_layout() == b.shape.without_layout())
            score += 0.15 * bool(a.op_name and _origin(a) == _origin(b))
            if not mine & others:
                return 0.0
        else:
            score += 0.2 + 0.2 * (a.shape.without_layout() == b.shape.without_layout())
            score += 0.2 * (_origin(a) == _origin(b))
        pairs = zip(a.operands, b.operands, strict=False)
        if a.operands or b.operands:
            longest = max(len(a.operands), len(b.operands))
            score += 0.2 * sum(self.same(x, y) for x, y in pairs) / longest
        else:
            score += 0.2 * (a.literal == b.literal)
        users = [self.to.get(id(u)) for u in a.users]
        theirs = {id(u) for u in b.users}
        return score + 0.2 * any(u is not None and id(u) in theirs for u in users)

    def _retyped(self, a: Computation, b: Computation) -> None:
        """Pair operations that differ in dtypes, with converts between them."""
        if not any(i.opcode in CONVERTS for i in (*self._left(a), *self._left(b))):
            return

        def kind(i: Instruction) -> Any:
            return i.opcode, i.shape.dimensions, len(i.operands)

        def unconverted(i: Instruction) -> Instruction:
            while i.opcode in CONVERTS and len(i.operands) == 1:
                i = i.operands[0]
            return i

        others: dict[Any, list[Instruction]] = defaultdict(list)
        for y in self._left(b):
            others[kind(y)].append(y)
        for x in self._left(a):
            if x.opcode in CONVERTS or not x.operands:
                continue
            for y in others[kind(x)][:_MAX_PAIRS]:
                pairs = zip(x.operands, y.operands, strict=True)
                if self._free(x, y) and all(
                    self.same(unconverted(p), unconverted(q)) for p, q in pairs
                ):
                    self._pair(x, y)
                    break

    def _replaced(self, a: Computation, b: Computation) -> None:
        """Pair operations of different opcodes with matching operands and users."""

        def fits(x: Instruction, y: Instruction) -> bool:
            return (
                self._free(x, y)
                and "parameter" not in (x.opcode, y.opcode)
                and len(x.operands) == len(y.operands) > 0
                and x.shape.dimensions == y.shape.dimensions
                and x.shape.is_tuple == y.shape.is_tuple
                and any(map(self.same, x.operands, y.operands))
            )

        if fits(a.root, b.root):
            self._pair(a.root, b.root)
        waiting = [(i, self.to[id(i)]) for i in a.instructions if id(i) in self.to]
        while waiting:
            first, second = waiting.pop()
            for x, y in zip(first.operands, second.operands, strict=False):
                if fits(x, y):
                    self._pair(x, y)
                    waiting.append((x, y))


def _origin(instruction: Instruction) -> str:
    """Return the name stack of a traced operation, without the function's own name."""
    return instruction.op_name.partition("/")[2]


def attributes_of(instruction: Instruction) -> tuple[str, ...]:
    """Return the attributes of an operation that affect its computation."""
    clean = clean_attributes(instruction)
    return tuple(f"{key}={value}" for key, value in clean.items() if key != "backend_config")
