"""The schedules of two modules, and the operations that run at different times in them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from hlotools.ir.digests import Hashes, with_users
from hlotools.ir.hlo import Computation, HloModule, Instruction
from hlotools.ir.mlir_lines import rising
from hlotools.matching.changes import Change, site_of

# Opcodes that take no time.
_TIMELESS = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast"})
# Opcodes whose computations are scheduled, like the entry.
_RUNNING = frozenset({"while", "conditional", "call", "async-start"})
_SHOWN = 4


def is_scheduled(module: HloModule) -> bool:
    return module.attributes.get("is_scheduled") == "true"


def same_schedule(a: Hashes, b: Hashes) -> bool:
    """Return whether two equal modules have equal schedules."""
    return _orders(a) == _orders(b)


def _orders(hashes: Hashes) -> list[list[bytes]]:
    orders = [
        [hashes[i] for i in computation.instructions if i.opcode not in _TIMELESS]
        for computation in _computations(hashes.module.entry)
    ]
    return [orders[0], *sorted(orders[1:])]


def _computations(entry: Computation) -> list[Computation]:
    computations = [entry]
    seen = {id(entry)}
    for computation in computations:
        for instruction in computation.instructions:
            if instruction.opcode not in _RUNNING:
                continue
            for callees in instruction.called.values():
                for callee in callees:
                    if id(callee) not in seen:
                        seen.add(id(callee))
                        computations.append(callee)
    return computations


def schedule_changes(a: Hashes, b: Hashes) -> Iterator[Change]:
    """Yield a change per computation with the operations that run earlier or later."""
    waiting = [(a.module.entry, b.module.entry)]
    seen: set[tuple[int, int]] = set()
    while waiting:
        first, second = waiting.pop()
        if (id(first), id(second)) in seen:
            continue
        seen.add((id(first), id(second)))
        partners = _partners(a, b, first, second)
        order = {id(i): n for n, i in enumerate(second.instructions)}
        running: list[tuple[Instruction, Instruction]] = []
        for instruction in first.instructions:
            partner = partners.get(id(instruction))
            if partner is None:
                continue
            if instruction.opcode in _RUNNING:
                for key in instruction.called.keys() & partner.called.keys():
                    pairs = zip(instruction.called[key], partner.called[key], strict=False)
                    waiting += pairs
            if instruction.opcode not in _TIMELESS:
                running.append((instruction, partner))
        sites = [order[id(partner)] for _, partner in running]
        in_order = set(rising(sites))
        if len(in_order) < len(running):
            yield _change(first, running, sites, in_order)


def _partners(
    a: Hashes, b: Hashes, first: Computation, second: Computation
) -> dict[int, Instruction]:
    """Return the matching operations of the second computation by the ids of the first's."""
    keys_a = with_users(first, a.body(first, None))
    keys_b = with_users(second, b.body(second, None))
    groups: dict[bytes, list[Instruction]] = defaultdict(list)
    for instruction in reversed(second.instructions):
        groups[keys_b[id(instruction)]].append(instruction)
    partners: dict[int, Instruction] = {}
    for instruction in first.instructions:
        group = groups.get(keys_a[id(instruction)])
        if group:
            partners[id(instruction)] = group.pop()
    return partners


def _change(
    computation: Computation,
    running: Sequence[tuple[Instruction, Instruction]],
    sites: Sequence[int],
    in_order: set[int],
) -> Change:
    ranks = {site: n for n, site in enumerate(sorted(sites))}
    moved = [n for n in range(len(running)) if n not in in_order]
    said: list[str] = []
    for n in moved[:_SHOWN]:
        distance = ranks[sites[n]] - n
        how = "later" if distance > 0 else "earlier"
        said.append(f"{running[n][0].name} ({abs(distance)} {how})")
    more = f" and {len(moved) - _SHOWN} more" if len(moved) > _SHOWN else ""
    name = f"ENTRY {computation.name}" if computation.is_entry else computation.name
    moves = f"{len(moved)} of {len(running)} operations run at another place"
    return Change(
        kind="scheduled",
        what="schedule",
        before=name,
        after=f"{moves}: {', '.join(said)}{more}",
        a=tuple(site_of(running[n][0], "") for n in moved),
        b=tuple(site_of(running[n][1], "") for n in moved),
    )
