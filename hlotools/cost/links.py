"""The bytes that collectives send over the links between devices, and the least time for them."""

import math

from hlotools.cost.mesh_groups import Groups, groups_of_text
from hlotools.cost.rates import Links
from hlotools.ir.hlo import HloModule, Instruction

COLLECTIVES = frozenset({
    "all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute",
    "collective-broadcast", "ragged-all-to-all", "send", "recv",
})  # fmt: skip


def is_collective(opcode: str) -> bool:
    return opcode.removesuffix("-start") in COLLECTIVES


def identity_of(instruction: Instruction) -> object:
    """Return what identifies a collective.

    Programs for TPUs run a collective in pieces with other work: each of these fusions has a copy
    of it, with the same chain id.
    """
    attributes = instruction.attributes
    if "chain_id" not in attributes.get("frontend_attributes", ""):
        return instruction
    names = ("channel_id", "frontend_attributes", "replica_groups")
    return instruction.opcode, instruction.op_name, *map(attributes.get, names)


def device_count_of(module: HloModule) -> int:
    """Return the number of devices that a program runs on, from the attributes in its header."""
    counts = (module.attributes.get(name, "1") for name in ("num_partitions", "replica_count"))
    return math.prod(int(count) for count in counts)


def groups_of(instruction: Instruction, device_count: int) -> Groups:
    """Return the groups of devices of a collective, or the pairs that send and receive.

    Raises:
      ValueError: if its attributes have no groups.
    """
    attributes = instruction.attributes
    pairs = attributes.get("source_target_pairs")
    text = attributes.get("replica_groups", "{}") if pairs is None else pairs
    if text.startswith("mesh[") and "device_ids" in attributes:
        text += f", device_ids={attributes['device_ids']}"
    return groups_of_text(text, device_count)


def sent_bytes(opcode: str, operand_bytes: int, group_size: int) -> int:
    """Return the bytes that each device of a group sends in one run, on a ring of the devices.

    An all-reduce of b bytes by n devices is a reduce-scatter and an all-gather of b / n bytes each,
    which sends 2 b (n - 1) / n.
    """
    peers = group_size - 1
    match opcode.removesuffix("-start"):
        case "all-reduce":
            return 2 * operand_bytes * peers // group_size
        case "all-gather":
            return operand_bytes * peers
        case "reduce-scatter" | "all-to-all" | "ragged-all-to-all":
            return operand_bytes * peers // group_size
    return operand_bytes


def link_seconds(instruction: Instruction, links: Links, device_count: int) -> float:
    """Return the least time in which the links carry what each device of a collective sends."""
    groups = groups_of(instruction, device_count)
    size = max(map(len, groups), default=1)
    is_permutation = "source_target_pairs" in instruction.attributes
    if is_permutation:
        groups = tuple(pair for pair in groups if len(set(pair)) > 1)
    if size < 2 or not groups:
        return 0.0
    carried = sum(operand.shape.bytes for operand in instruction.operands)
    opcode = instruction.opcode.removesuffix("-start")
    sent = sent_bytes(opcode, carried, size)
    if links.reduces and opcode == "all-reduce":
        sent = min(sent, carried)
    seconds = sent / links.bandwidth
    if links.network is None:
        return seconds
    for group in groups:
        hosts = len({device // links.device_count for device in group})
        if hosts < 2:
            continue
        if is_permutation:
            seconds = max(seconds, carried / links.network)
        else:
            leaving = _leaving_host(opcode, carried, len(group) / hosts, hosts)
            seconds = max(seconds, leaving / (links.network * links.device_count))
    return seconds


def _leaving_host(opcode: str, carried: float, beside: float, hosts: int) -> float:
    """Return the bytes that leave a host, whose `beside` devices first combine their shares.

    As the switches of a network may sum, a host sends an array to be reduced at most once. All
    network adapters of a host may send, including those of devices outside the group.
    """
    away = (hosts - 1) / hosts
    match opcode:
        case "all-reduce":
            return carried * min(2 * away, 1.0)
        case "reduce-scatter":
            return carried * away
        case "all-gather":
            return carried * beside
    return carried * beside * away
