"""The roots of two modules: their entries, and in StableHLO further functions, matched by name."""

from typing import NamedTuple

from hlotools.ir.hlo import Computation, HloModule


class RootPairs(NamedTuple):
    """The roots of two modules: those that match, entries first, and those of only one module."""

    pairs: list[tuple[Computation, Computation]]
    removed: list[Computation]
    added: list[Computation]


def root_pairs(a: HloModule, b: HloModule) -> RootPairs:
    """Return the roots of two modules in pairs of equal name; entries match whatever their names.

    A root of one module may match a function that is called in the other.
    """
    roots = [{root.name: root for root in module.roots} for module in (a, b)]
    pairs: list[tuple[Computation, Computation]] = []
    if a.entry.name not in roots[1] and b.entry.name not in roots[0]:
        pairs.append((a.entry, b.entry))
    functions = [{c.name: c for c in module.computations} for module in (a, b)]
    for name in dict.fromkeys([*roots[0], *roots[1]]):
        if name in functions[0] and name in functions[1]:
            pair = functions[0][name], functions[1][name]
            if not any(pair[0] is first or pair[1] is second for first, second in pairs):
                pairs.append(pair)
    matched = {id(root) for pair in pairs for root in pair}
    removed, added = (
        [root for root in module.roots if id(root) not in matched] for module in (a, b)
    )
    return RootPairs(pairs, removed, added)
