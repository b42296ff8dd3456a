"""The changes of a program by each of XLA's passes, and the passes that made each operation."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlotools.dumps.dump_files import DumpedModule, Stage
from hlotools.dumps.snapshots import Operation, Snapshot, snapshot
from hlotools.terminal_text import is_visible


class PassChange(NamedTuple):
    """The difference between two dumps of a module that follow each other.

    `count` is the number of operations afterwards. `moved` pairs an operation with the one that it
    is a copy of, as in fusions; `replaced` pairs one with the removed operations of the same name
    in the user's program; `rewritten` has the operation before and after, under one name.
    """

    stage: Stage
    count: int
    made: tuple[Operation, ...]
    removed: tuple[Operation, ...]
    moved: tuple[tuple[Operation, Operation], ...]
    replaced: tuple[tuple[Operation, tuple[Operation, ...]], ...]
    rewritten: tuple[tuple[Operation, Operation], ...]
    after: Snapshot

    def __bool__(self) -> bool:
        return bool(self.made or self.removed or self.moved or self.rewritten)

    def summary(self) -> str:
        """Return the change as one line, such as `-divide, +multiply; fused: add, tanh`."""
        gone = {original.name for _, original in self.moved}
        parts = [
            _counted("+", (operation for operation in self.made)),
            _counted("-", (operation for operation in self.removed if operation.name not in gone)),
        ]
        fused = [each for each, _ in self.moved if self.after.fusion_of(each)]
        moved = [each for each, _ in self.moved if not self.after.fusion_of(each)]
        for title, operations in (("into fusions: ", fused), ("renamed: ", moved)):
            if operations:
                parts.append(title + _counted("", operations))
        layouts = [new for old, new in self.rewritten if _only_layout(old, new)]
        others = [new for old, new in self.rewritten if not _only_layout(old, new)]
        for title, operations in (("other layouts: ", layouts), ("rewritten: ", others)):
            if operations:
                parts.append(title + _counted("", operations))
        return "; ".join(part for part in parts if part)


class Timeline(NamedTuple):
    """The changes of a module by XLA's passes, in order, with its first and last operations."""

    module: DumpedModule
    first: Snapshot
    changes: tuple[PassChange, ...]

    @is_visible
    def text(self) -> str:
        """Return a table of the passes that changed the module: operations afterwards, changes."""
        changed = [change for change in self.changes if change]
        count = self.first.operation_count
        rows = [(str(count), "", self.module.stages[0].title, "")]
        for change in changed:
            difference = change.count - count
            count = change.count
            rows.append(
                (str(count), f"{difference:+}" if difference else "", change.stage.title,
                 change.summary())
            )  # fmt: skip
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{a:>{widths[0]}} {b:>{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip()
            for a, b, c, d in rows
        ]
        same = len(self.changes) - len(changed)
        title = f"{self.module.name}: operations after each pass that changed them"
        return "\n".join([title, *lines, f"{same} other dumps equal the one before them"])

    def history(self, name: str) -> list[str]:
        """Return the passes that made or changed an operation of the last dump, in order.

        Raises:
          KeyError: if the last dump has no operation of this name.
        """
        if not self.changes or name not in self.changes[-1].after.operations:
            raise KeyError(f"the optimized program has no operation {name!r}")
        return self.histories()[name]

    def histories(self) -> dict[str, list[str]]:
        """Return the history of each operation of the last dump by its name."""
        known: dict[str, list[str]] = {
            name: [f"before optimizations: {operation.opcode} {name}"]
            for name, operation in self.first.operations.items()
        }
        for change in self.changes:
            if not change:
                continue
            by = change.stage.title
            added: dict[str, list[str]] = {}
            sources = {new.name: old for new, old in change.replaced}
            for operation in change.made:
                old = sources.get(operation.name)
                instead = f" instead of {_names(old)}" if old else ""
                added[operation.name] = [f"{by}: made{instead}"]
            for operation, original in change.moved:
                fusion = change.after.fusion_of(operation)
                how = f"fused into {fusion}" if fusion else f"renamed to {operation.name}"
                added[operation.name] = [*known.get(original.name, ()), f"{by}: {how}"]
            for old, new in change.rewritten:
                added[new.name] = [*known.get(old.name, ()), f"{by}: {_rewriting(old, new)}"]
            for operation in change.removed:
                known.pop(operation.name, None)
            known.update(added)
        return known


def timeline(module: DumpedModule) -> Timeline:
    """Read all dumps of a module and return the changes between each and the next."""
    first = before = snapshot(_text(module.stages[0]))
    changes: list[PassChange] = []
    for stage in module.stages[1:]:
        after = snapshot(_text(stage))
        changes.append(_change(stage, before, after))
        before = after
    return Timeline(module, first, tuple(changes))


def _text(stage: Stage) -> str:
    return stage.path.read_text(encoding="utf-8", errors="replace")


def _change(stage: Stage, before: Snapshot, after: Snapshot) -> PassChange:
    old, new = before.operations, after.operations
    removed = [operation for name, operation in old.items() if name not in new]
    rewritten: list[tuple[Operation, Operation]] = []
    for name in old.keys() & new.keys():
        a, b = old[name], new[name]
        # Changed operands alone are not a change: the operands have their own changes.
        if a.text != b.text and a.shape_and_opcode != b.shape_and_opcode:
            rewritten.append((a, b))
    made: list[Operation] = []
    moved: list[tuple[Operation, Operation]] = []
    replaced: list[tuple[Operation, tuple[Operation, ...]]] = []
    added = [operation for name, operation in new.items() if name not in old]
    if added:
        originals = _by_kind(removed)
        # A fusion may take a copy of an operation that others still use.
        all_originals = _by_kind(old.values())
        copies: Counter[tuple[str, str, str]] = Counter()
        gone: dict[str, list[Operation]] = {}
        for operation in removed:
            if operation.op_name:
                gone.setdefault(operation.op_name, []).append(operation)
        for operation in added:
            kind = operation.kind
            alike = originals.get(kind) or (
                all_originals.get(kind) if after.fusion_of(operation) else None
            )
            if alike:
                # Equal operations are paired in order, the first with the first.
                moved.append((operation, alike[copies[kind] % len(alike)]))
                copies[kind] += 1
                continue
            made.append(operation)
            if operation.op_name in gone:
                replaced.append((operation, tuple(gone[operation.op_name])))
    return PassChange(
        stage,
        after.operation_count,
        tuple(made),
        tuple(removed),
        tuple(moved),
        tuple(replaced),
        tuple(sorted(rewritten)),
        after,
    )


def _by_kind(operations: Iterable[Operation]) -> dict[tuple[str, str, str], list[Operation]]:
    kinds: dict[tuple[str, str, str], list[Operation]] = {}
    for operation in operations:
        if operation.op_name:
            kinds.setdefault(operation.kind, []).append(operation)
    return kinds


def _only_layout(a: Operation, b: Operation) -> bool:
    return a.kind[:2] == b.kind[:2]


def _rewriting(a: Operation, b: Operation) -> str:
    (old_shape, old_opcode), (shape, opcode) = a.shape_and_opcode, b.shape_and_opcode
    if opcode != old_opcode:
        return f"{old_opcode} became {opcode}"
    return f"{old_shape} became {shape}"


def _counted(sign: str, operations: Iterable[Operation]) -> str:
    counts = Counter(operation.opcode for operation in operations)
    return ", ".join(_terms(sign, counts))


def _terms(sign: str, counts: Counter[str]) -> Iterator[str]:
    """Yield each operation with its count, the most frequent first, at most eight of them."""
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for opcode, count in listed[:8]:
        yield f"{sign}{count} {opcode}" if count > 1 else f"{sign}{opcode}"
    if len(listed) > 8:
        yield f"and {sum(count for _, count in listed[8:])} others"


def _names(operations: Iterable[Operation]) -> str:
    listed = [f"{operation.opcode} {operation.name}" for operation in operations]
    return ", ".join(listed[:4]) + (" and others" if len(listed) > 4 else "")
