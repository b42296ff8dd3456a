"""The causes of the differences of optimized HLO: the differences of the compiler's input.

A compiler makes one program from one module. The differences of the StableHLO of two compiled
programs, which follows the user's code, are therefore the causes of all differences of their HLO.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.argument_changes import argument_changes, result_change
from hlotools.matching.casts import Cast, casts
from hlotools.matching.cause_text import heading_of, is_minor
from hlotools.matching.changes import Change
from hlotools.matching.hlo_changes import single_changes
from hlotools.matching.kernel_changes import hashes_of
from hlotools.matching.match import Matching

# Subjects of changes that follow from changes of operands.
_FOLLOWING = frozenset({"shape", "dtype", "layout", "operands", "constant", "parameter", "dims",
                        "index", "arguments", "slice", "slice_sizes", "sizes", "dim",
                        "views"})  # fmt: skip
# The maximum distance of a change from its cause, in changes between them.
_FARTHEST = 1000
# The maximum number of operations between a constant that is a size and an operation of that size.
_STEPS_TO_SIZED = 3

# A source file and a line.
Line = tuple[str, int]


class Cause(NamedTuple):
    """A difference of the compiler's input."""

    change: Change
    lines: frozenset[Line]
    """The source lines at which it differs."""
    lines_after: frozenset[Line]
    """The source lines of what follows from it."""


def causes(a: HloModule, b: HloModule) -> list[Cause]:
    """Return the differences of two StableHLO modules, each with the lines that they affect.

    Changes of arguments are causes, as are operations that were added, removed or have other
    attributes; those that are adjacent or from one source line are one cause. Other shapes, dtypes
    and constants follow from the nearest cause, and are causes only if there is none.
    """
    matching = Matching(*hashes_of(a, b))
    graph = OperationGraph(matching)
    groups: list[_Group] = []
    result = result_change(a, b)
    if result is not None:
        groups.append(_Group(graph, result, [a.entry.root, b.entry.root]))
    following: list[Change] = []
    leading: list[Change] = []
    for change in single_changes(matching):
        at = [site.at for site in (*change.a, *change.b) if site.at is not None]
        if change.kind == "module":
            groups.append(_Group(graph, change, []))
        elif at and all(_is_at_an_end(instruction, result is not None) for instruction in at):
            # Such a change is already among those of arguments and results.
            continue
        elif change.kind == "changed" and change.what in _FOLLOWING:
            following.append(change)
        else:
            leading.append(change)
    arguments = list(argument_changes(matching))
    for cast in casts([*leading, *following]):
        if not cast.has_operations:
            # Converts prepare operands of the operations next to them.
            continue
        # These changes follow from arguments of another dtype; otherwise the cast is their cause.
        members = set(map(id, cast.changes))
        prepared = [change for change in leading if cast.prepares(change)]
        members.update(map(id, prepared))
        following = [change for change in following if id(change) not in members]
        leading = [change for change in leading if id(change) not in members]
        if any(_is_cast(change, cast) for change, _ in arguments):
            following += [*cast.changes, *prepared]
        else:
            groups.append(_Group(graph, cast.heading, (), cast.changes))
            groups[-1].following += prepared
    of_operations = graph.groups(leading)
    for change, parameters in arguments:
        user = next((g for g in of_operations if graph.is_used_by(change, parameters, g)), None)
        if user is None:
            groups.append(_Group(graph, change, parameters))
        else:
            names = ", ".join(site.name for site in (*change.a, *change.b))
            user.heading = user.heading._replace(note=f"with the argument {names}")
    groups += [group for group in of_operations if not group.is_minor]
    for group in of_operations:
        # Converts and similar operations, which prepare operands, follow from the changes next to
        # them.
        if group.is_minor:
            other = next((candidate for candidate in groups if candidate.near & group.near), None)
            if other is None:
                groups.append(group)
            else:
                following += group.leading
    following = graph.attach(following, groups)
    groups += graph.groups(following)
    return [group.as_cause() for group in groups]


def _is_cast(argument: Change, cast: Cast) -> bool:
    """Return whether an argument changed by the dtypes of a cast, which then follows from it."""
    dtypes = {argument.before.partition("[")[0], argument.after.partition("[")[0]}
    return argument.what in ("dtype", "type") and dtypes == {cast.before, cast.after}


def _heading(changes: Sequence[Change]) -> Change:
    """Return one change that stands for several with one cause."""
    listed = casts(changes) if all(map(is_minor, changes)) else []
    return listed[0].heading if listed else heading_of(changes)


def _is_at_an_end(at: Instruction, results_differ: bool) -> bool:
    """Return whether an operation is an argument of a program, or the tuple of its results."""
    if not at.computation.is_entry:
        return False
    return at.opcode == "parameter" or (results_differ and at.is_root and at.opcode == "tuple")


class _Group:
    """Changes with one cause: the leading ones, and those that follow from them."""

    def __init__(
        self,
        graph: "OperationGraph",
        heading: Change,
        at: Iterable[Instruction],
        leading: Sequence[Change] = (),
    ):
        self.heading = heading
        self.leading = leading
        self.following: list[Change] = []
        self.near = {key for instruction in at for key in graph.around(instruction)}
        for change in leading:
            self.near |= graph.near(change)

    @property
    def is_minor(self) -> bool:
        return all(map(is_minor, self.leading))

    def as_cause(self) -> Cause:
        lines = _lines(self.leading)
        return Cause(self.heading, lines, _lines(self.following) - lines)


def _lines(changes: Iterable[Change]) -> frozenset[Line]:
    sites = (site for change in changes for site in (*change.a, *change.b))
    return frozenset((site.file, site.line) for site in sites if site.file)


class OperationGraph:
    """The operations of two modules as one graph, in which matching operations are one node."""

    def __init__(self, matching: Matching):
        self._matching = matching
        self._callers: dict[int, list[Instruction]] = {}
        for module in (matching.a.module, matching.b.module):
            for instruction in module.instructions():
                for callees in instruction.called.values():
                    for callee in callees:
                        self._callers.setdefault(id(callee), []).append(instruction)

    def node(self, instruction: Instruction) -> int:
        return id(self._matching.back.get(id(instruction), instruction))

    def around(self, instruction: Instruction) -> set[int]:
        """Return the nodes of an operation and of its operands and users, also across calls."""
        beside = [instruction, *instruction.operands, *instruction.users]
        if instruction.opcode == "parameter" or instruction.is_root:
            beside += self._callers.get(id(instruction.computation), ())
        for callees in instruction.called.values():
            for callee in callees:
                beside += [*callee.parameters, callee.root]
        return set(map(self.node, beside))

    def at(self, change: Change) -> set[int]:
        """Return the nodes of a change.

        A constant may be the size of an array, as in a mean: it is attributed to the operations
        that use it, and to those that make their other operands.
        """
        at = {id(site.at): site.at for site in (*change.a, *change.b) if site.at is not None}
        if change.what == "constant":
            for _ in range(_STEPS_TO_SIZED):
                at |= {id(user): user for instruction in at.values() for user in instruction.users}
            for _ in range(_STEPS_TO_SIZED):
                at |= {
                    id(operand): operand
                    for instruction in at.values()
                    for operand in instruction.operands
                }
        return set(map(self.node, at.values()))

    def is_used_by(self, change: Change, parameters: list[Instruction], group: _Group) -> bool:
        """Return whether only the group's operations use an argument of only one program."""
        if change.what not in ("added", "removed"):
            return False
        sites = [site for each in group.leading for site in (*each.a, *each.b)]
        at = {id(site.at) for site in sites}
        users = [user for parameter in parameters for user in parameter.users]
        return bool(users) and all(id(user) in at for user in users)

    def near(self, change: Change) -> set[int]:
        sites = (*change.a, *change.b)
        return {key for site in sites if site.at is not None for key in self.around(site.at)}

    def groups(self, changes: Sequence[Change]) -> list[_Group]:
        """Group changes that share a neighbor or a source line."""
        leader = list(range(len(changes)))

        def lead(n: int) -> int:
            while leader[n] != n:
                leader[n] = leader[leader[n]]
                n = leader[n]
            return n

        owner: dict[object, int] = {}
        for n, change in enumerate(changes):
            for key in (*self.near(change), *_lines([change])):
                if key in owner:
                    leader[lead(n)] = lead(owner[key])
                owner[key] = n
        members: dict[int, list[Change]] = {}
        for n, change in enumerate(changes):
            members.setdefault(lead(n), []).append(change)
        return [_Group(self, _heading(member), (), member) for member in members.values()]

    def attach(self, changes: Sequence[Change], groups: Sequence[_Group]) -> list[Change]:
        """Add each change to the nearest group; return the changes that are not near a group."""
        left = list(changes)
        edges = [set(group.near) for group in groups]
        for _ in range(_FARTHEST):
            reached = [set[int]() for _ in groups]
            rest: list[Change] = []
            for change in left:
                at = self.at(change)
                number = next((n for n, edge in enumerate(edges) if edge & at), None)
                if number is None:
                    rest.append(change)
                else:
                    groups[number].following.append(change)
                    reached[number] |= self.near(change)
            if len(rest) == len(left):
                break
            left, edges = rest, reached
        rest = []
        for change in left:
            lines = _lines([change])
            group = next(
                (candidate for candidate in groups if lines & _lines(candidate.leading)), None
            )
            (rest if group is None else group.following).append(change)
        return rest
