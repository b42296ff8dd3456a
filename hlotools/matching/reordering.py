"""The reordering of sums: trees of additions, or other commutative operations, of equal leaves."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hlotools.ir.digests import COMMUTATIVE
from hlotools.ir.hlo import Instruction
from hlotools.matching.changes import Change, operand_name, site_of
from hlotools.matching.match import Compared, Matching

_SIGNS = {"add": "+", "multiply": "*", "and": "&", "or": "|", "xor": "^"}
_DONE = {"add": "additions", "multiply": "multiplications"}


class _Tree(NamedTuple):
    """A tree of additions or of another commutative operation: its operations and its leaves."""

    root: Instruction
    nodes: list[Instruction]
    leaves: list[Instruction]

    def text(self, names: dict[int, str]) -> str:
        """Return the tree with the leaves' names as text, each sum in parentheses."""
        inner = {id(node) for node in self.nodes}
        sign = f" {_SIGNS.get(self.root.opcode, self.root.opcode)} "
        texts: dict[int, str] = {}
        # Nodes are in order from users to operands.
        for node in reversed(self.nodes):
            parts = [f"({texts[id(o)]})" if id(o) in inner else names[id(o)] for o in node.operands]
            texts[id(node)] = sign.join(parts)
        return texts[id(self.root)]

    def structure(self, names: dict[int, Any]) -> Any:
        """Return the nesting of the tree, equal for trees that differ only in operand order."""
        inner = {id(node) for node in self.nodes}
        structures: dict[int, Any] = {}
        for node in reversed(self.nodes):
            parts = [structures[id(o)] if id(o) in inner else names[id(o)] for o in node.operands]
            structures[id(node)] = "(" + ",".join(sorted(map(str, parts))) + ")"
        return structures[id(self.root)]


_LARGEST_TREE = 64


def _trees(instructions: Iterable[Instruction]) -> Iterator[_Tree]:
    """Yield the trees of commutative operations with three leaves or more."""
    for root in instructions:
        if root.opcode not in COMMUTATIVE or _is_inner(root):
            continue
        nodes, leaves = [root], []
        for node in nodes:
            for operand in node.operands:
                if operand.opcode == root.opcode and _is_inner(operand):
                    nodes.append(operand)
                else:
                    leaves.append(operand)
            if len(nodes) > _LARGEST_TREE:
                break
        if 2 < len(leaves) <= _LARGEST_TREE:
            yield _Tree(root, nodes, leaves)


def _is_inner(node: Instruction) -> bool:
    """Return whether an operation is an inner node of the tree of its only user."""
    if len(node.users) != 1 or node.is_root:
        return False
    user = node.users[0]
    return (
        user.opcode == node.opcode
        and user.operands.count(node) == 1
        and user.shape.without_layout() == node.shape.without_layout()
    )


def reordered(
    compared: Compared, matching: Matching, path: str, path_b: str
) -> Iterator[tuple[Change, set[int]]]:
    """Yield changes for trees of equal leaves in another order, with their operations' ids."""
    changed = [a for a, b in compared.pairs if not _equal(a, b, matching)] + compared.removed
    candidates = {id(i) for i in changed if i.opcode in COMMUTATIVE}
    if not candidates:
        return
    caller = compared.callers[0] if compared.callers else None
    others: dict[Any, list[_Tree]] = {}
    for tree in _trees(compared.b.instructions):
        leaves = sorted(id(matching.back.get(id(i), i)) for i in tree.leaves)
        others.setdefault((tree.root.opcode, tuple(leaves)), []).append(tree)
    for tree in _trees(compared.a.instructions):
        fitting = others.get((tree.root.opcode, tuple(sorted(map(id, tree.leaves)))), [])
        if not fitting or not any(id(i) in candidates for i in tree.nodes):
            continue
        other = fitting.pop(0)
        same = {id(matching.to[id(i)]): id(i) for i in tree.leaves if id(i) in matching.to}
        if other.structure(same) == tree.structure({id(i): id(i) for i in tree.leaves}):
            continue
        names = {id(i): operand_name(i, caller) for i in tree.leaves}
        # Names often differ between the sides: this side's names show the movement.
        before = tree.text(names)
        after = other.text({key: names[mine] for key, mine in same.items()})
        what = f"order of {_DONE.get(tree.root.opcode, tree.root.opcode)}"
        sites = (site_of(tree.root, path),), (site_of(other.root, path_b),)
        nodes = {id(i) for i in (*tree.nodes, *other.nodes)}
        yield Change("reordered", what, before, after, *sites), nodes


def _equal(a: Instruction, b: Instruction, matching: Matching) -> bool:
    known = matching.digests.get(id(a))
    return known is not None and known == matching.digests.get(id(b))
