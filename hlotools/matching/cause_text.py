"""The change that stands for several changes of StableHLO, in a programmer's words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hlotools.cost.links import COLLECTIVES
from hlotools.ir.hlo import Instruction
from hlotools.matching.changes import Change, OperationSite

# Opcodes of operations that prepare the operands of others.
_MINOR = frozenset({
    "constant", "broadcast_in_dim", "broadcast", "reshape", "get-tuple-element", "tuple", "iota",
    "convert", "parameter",
})  # fmt: skip
# The opcodes that are named first, in order.
_FIRST = (
    "custom_call", *(opcode.replace("-", "_") for opcode in sorted(COLLECTIVES)), "call", "while",
    "if", "case", "optimization_barrier", "rng_bit_generator", "dot_general", "convolution",
    "gather", "scatter", "sort", "fft", "reduce", "reduce_window", "transpose",
)  # fmt: skip
_MOST = 4
# The number of iterations, in the backend's configuration of a loop of optimized HLO.
_TRIPS = re.compile(r"known_trip_count\W+n\W+(\d+)")
_REMADE = "rematted_computation"


def heading_of(changes: Sequence[Change]) -> Change:
    """Return one change that stands for several with one cause, without their operations."""
    removed = [site for change in changes if change.kind == "removed" for site in change.a]
    added = [site for change in changes if change.kind == "added" for site in change.b]
    if not removed and not added:
        return _changed(changes)
    texts = counted(removed), counted(added)
    sites = plain(removed), plain(added)
    for kind, remade, others in (("added", added, removed), ("removed", removed, added)):
        if any(map(_is_remade, remade)) and not any(map(_is_remade, others)):
            again = counted([site for site in remade if _is_remade(site)])
            return Change("recomputation", kind, "", again, *sites)
    loops = [site.at for site in removed if site.opcode == "while" and site.at is not None]
    if loops and not any(site.opcode == "while" for site in added) and added:
        return Change("unrolled", "loop", steps_of(loops[0]), texts[1], *sites)
    if not all(site.opcode in _MINOR for site in (*removed, *added)):
        texts = _telling(removed), _telling(added)
    return Change("operations", "operations", *texts, *sites)


def _changed(changes: Sequence[Change]) -> Change:
    """Return the most informative of the changes of operations that both programs have."""
    telling = (change for change in changes if change.kind == "kernel" or change.what == "opcode")
    first = next(telling, changes[0])
    alike = [
        change
        for change in changes
        if (change.kind, change.what, change.before, change.after)
        == (first.kind, first.what, first.before, first.after)
    ]
    if first.kind != "changed":
        return first._replace(a=plain(first.a), b=plain(first.b))
    a, b = (
        tuple(site._replace(name=site.opcode) for change in alike for site in plain(sites(change)))
        for sites in (lambda each: each.a, lambda each: each.b)
    )
    return first._replace(a=a, b=b, key="")


def steps_of(loop: Instruction) -> str:
    """Return the number up to which a loop counts, as text; "" if it is not constant."""
    known = _TRIPS.search(loop.attributes.get("backend_config", ""))
    if known is not None:
        return known[1]
    condition = loop.called.get("condition", [])
    end = condition[0].root.operands[-1:] if condition else []
    return end[0].literal if end and end[0].opcode == "constant" else ""


def is_minor(change: Change) -> bool:
    """Return whether a change is of operations that prepare the operands of others."""
    return all(site.opcode in _MINOR for site in (*change.a, *change.b))


def plain(sites: Iterable[OperationSite]) -> tuple[OperationSite, ...]:
    """Return sites without their operations, which belong to modules other than the diff's."""
    return tuple(site._replace(at=None) for site in sites)


def _is_remade(site: OperationSite) -> bool:
    return site.at is not None and _REMADE in site.at.op_name


def _telling(sites: Sequence[OperationSite]) -> str:
    """Return the operations that do more than prepare operands, as text."""
    return counted([site for site in sites if site.opcode not in _MINOR])


def counted(sites: Sequence[OperationSite]) -> str:
    """Return operations by kind as text, the most informative first."""
    telling = [site for site in sites if site.opcode not in _MINOR] or list(sites)
    counts = Counter(map(_name, telling))
    order = {name: n for n, name in enumerate(_FIRST)}
    opcodes = {_name(site): site.opcode for site in telling}
    names = sorted(counts, key=lambda name: order.get(opcodes[name], len(order)))
    shown = [f"{counts[name]} × {name}" if counts[name] > 1 else name for name in names[:_MOST]]
    more = sum(counts[name] for name in names[_MOST:])
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _name(site: OperationSite) -> str:
    """Return a name for an operation: its opcode, and for calls the callee."""
    at: Instruction | None = site.at
    if at is None:
        return site.opcode
    if site.opcode == "call":
        return f"call of {', '.join(c.name for called in at.called.values() for c in called)}"
    if site.opcode == "custom_call":
        target = at.attributes.get("call_target_name", "").strip('"')
        return f"host callback {target}" if "callback" in target else f"custom_call {target}"
    if at.attributes.get("is_host_transfer") == "true":
        return f"host callback by {site.opcode}"
    return site.opcode
