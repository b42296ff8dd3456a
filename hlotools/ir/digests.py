"""The digests of HLO operations, which do not depend on names and source lines.

Two operations have equal digests if their opcodes, shapes with layouts, attributes and operands
are equal; the operands of commutative operations may be in any order. The digest of a fusion is
that of its body applied to its operands, in any order of its parameters.
"""

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hlotools.ir.hlo import CALLING, Computation, HloModule, Instruction
from hlotools.ir.payloads import clean_config, sorted_map, without_paths

COMMUTATIVE = frozenset(
    # Commutative operations, by their names in HLO and in jaxprs.
    ("add", "multiply", "and", "or", "xor", "maximum", "minimum", "mul", "max", "min", "add_any")
)
# Attributes that record an operation's source or name other operations.
_PLACES = frozenset({"metadata", "origin", "original_value", "control-predecessors", "channel_id",
                     "mhlo.backend_config.kernel_hash"})  # fmt: skip
_LEFT_OUT = _PLACES | frozenset(CALLING)
_PAYLOAD = re.compile(r"<payload [0-9a-f]+>")
_METADATA = re.compile(r'\s*,?\s*metadata=\{(?:[^{}"]++|"(?:[^"\\]++|\\.)*+"|\{[^{}]*+\})*+\}')
# The maximum depth of nested fusions that are digested with their operands.
DEEPEST_FUSION = 3


def is_commutative(instruction: Instruction) -> bool:
    if instruction.opcode == "compare":
        return instruction.attributes.get("direction") in ("EQ", "NE")
    return instruction.opcode in COMMUTATIVE


@functools.lru_cache(maxsize=8192)
def clean_value(key: str, text: str) -> str:
    """Return an attribute's text without paths and with sorted maps."""
    if key == "backend_config":
        return clean_config(text)
    if key == "frontend_attributes":
        return without_paths(sorted_map(text))
    if key == "sharding":
        return _METADATA.sub("", text) if "metadata" in text else text
    return without_paths(text) if '"' in text else re.sub(r"\s+", " ", text)


def clean_attributes(instruction: Instruction) -> dict[str, str]:
    """Return the attributes that affect an operation's computation, sorted, without its callees."""
    attributes = instruction.attributes
    clean = {
        key: clean_value(key, attributes[key]) for key in sorted(attributes) if key not in _LEFT_OUT
    }
    if instruction.opcode == "reduce" and "dimensions" in clean:
        # A reduction removes these dimensions, in any order.
        clean["dimensions"] = "{" + ",".join(map(str, sorted(instruction.dimensions))) + "}"
    return clean


# Module attributes that record how the module was made.
_HISTORY = frozenset({"frontend_attributes"})
# A module attribute without effect on a program of one partition.
_OF_PARTITIONS = "allow_spmd_sharding_propagation"


def module_attributes(module: HloModule) -> dict[str, str]:
    """Return the attributes that determine a module's behavior, sorted."""
    attributes = module.attributes
    alone = attributes.get("num_partitions", "1") == "1"
    return {
        key: clean_value(key, attributes[key])
        for key in sorted(attributes)
        if key not in _HISTORY and not (alone and key.startswith(_OF_PARTITIONS))
    }


def digest(parts: Sequence[bytes]) -> bytes:
    joined = b"".join([b"%d:%b" % (len(part), part) for part in parts])
    return hashlib.blake2b(joined, digest_size=12).digest()


class Hashes:
    """The digests of a module's operations and computations.

    Args:
      module: the module.
      kernels: the digests of decoded kernels, by `id` of their custom calls, which stand for the
        digests of their payloads.
      other: the digests of a module that this one is compared with: equal parts are digested once.
    """

    def __init__(
        self,
        module: HloModule,
        kernels: Mapping[int, str] | None = None,
        other: "Hashes | None" = None,
    ):
        self.module = module
        self._kernels = kernels or {}
        # The digests of operations without operands, by what determines them; and of fusions, by
        # the digests of their computations and operands.
        self._alike: dict[tuple[Any, ...], bytes] = {} if other is None else other._alike
        # By id of an instruction: its digest without operands.
        self._own: dict[int, bytes] = {}
        self._orders: dict[int, list[Instruction]] = {}
        self._bodies: dict[int, dict[int, bytes]] = {}
        self._computations: dict[int, bytes] = {}
        for computation in module.callees_first():
            digests = self.body(computation, None)
            self._bodies[id(computation)] = digests
            # Unused parameters are a part of a computation's signature.
            parameters = [self.own(p) for p in computation.parameters]
            self._computations[id(computation)] = digest(
                [self._result(computation, digests), *parameters]
            )

    def __getitem__(self, instruction: Instruction) -> bytes:
        return self._bodies[id(instruction.computation)][id(instruction)]

    def own(self, instruction: Instruction) -> bytes:
        """Return an instruction's digest without operands: opcode, shape, attributes, callees."""
        known = self._own.get(id(instruction))
        if known is None:
            kernel = self._kernels.get(id(instruction))
            called = [
                self._computations[id(callee)]
                for key in sorted(instruction.called)
                if instruction.opcode != "fusion"
                for callee in instruction.called[key]
            ]
            shape = instruction.shape.canonical_text()
            attributes = [i for i in instruction.attributes.items() if i[0] not in _LEFT_OUT]
            alike = (
                (instruction.opcode, shape, instruction.literal, instruction.number, kernel),
                *attributes,
                *called,
            )
            known = self._alike.get(alike)
            if known is None:
                literal = re.sub(r"\s+", " ", instruction.literal)
                parts = [instruction.opcode, shape, literal, str(instruction.number)]
                for key, value in clean_attributes(instruction).items():
                    parts += [key, value if kernel is None else _PAYLOAD.sub(kernel, value)]
                known = digest(["\0".join(parts).encode("utf-8", "replace"), *called])
                self._alike[alike] = known
            self._own[id(instruction)] = known
        return known

    def computation(self, computation: Computation) -> bytes:
        """Return the digest of a computation as a function of its parameters."""
        return self._computations[id(computation)]

    def body(
        self, computation: Computation, arguments: Sequence[bytes] | None, depth: int = 0
    ) -> dict[int, bytes]:
        """Return the digest of each instruction of a computation, by its id.

        Args:
          arguments: the digests of the callers' operands; None: the parameters' own digests,
            by their numbers.
        """
        digests: dict[int, bytes] = {}
        order = self._orders.get(id(computation))
        if order is None:
            order = self._orders[id(computation)] = computation.in_order()
        for instruction in order:
            number = instruction.number
            if instruction.opcode == "parameter" and arguments is not None:
                argument = arguments[number] if number < len(arguments) else b"%d" % number
                # The digest includes the shape of the parameter, which may have another layout.
                taken = instruction.shape.canonical_text().encode()
                digests[id(instruction)] = digest([argument, taken])
                continue
            operands = [digests[id(operand)] for operand in instruction.operands]
            parts = [self.own(instruction)]
            fused = instruction.fused
            if fused is not None and depth < DEEPEST_FUSION:
                alike = (self._computations[id(fused)], depth, *operands)
                result = self._alike.get(alike)
                if result is None:
                    inner = self.body(fused, operands, depth + 1)
                    result = self._alike[alike] = self._result(fused, inner)
                parts.append(result)
            else:
                if fused is not None:
                    parts.append(self._computations[id(fused)])
                parts += sorted(operands) if is_commutative(instruction) else operands
            if instruction.predecessors:
                parts += [b"after", *sorted(digests[id(i)] for i in instruction.predecessors)]
            digests[id(instruction)] = digest(parts)
        return digests

    def _result(self, computation: Computation, body: dict[int, bytes]) -> bytes:
        """Return the digest of a computation's result and of its side effects."""
        beside = [
            body[id(i)]
            for i in computation.instructions
            if not i.users and not i.is_root and i.opcode != "parameter"
        ]
        return digest([body[id(computation.root)], *sorted(beside)])


def with_users(computation: Computation, body: dict[int, bytes]) -> dict[int, bytes]:
    """Return digests refined by the uses of values, which tell equal operations apart."""
    refined: dict[int, bytes] = {}
    for instruction in reversed(computation.in_order()):
        uses: list[bytes] = [b"result"] if instruction.is_root else []
        for user in instruction.users:
            positions = b"any"
            if not is_commutative(user) and user.opcode != "fusion":
                at = [i for i, operand in enumerate(user.operands) if operand is instruction]
                positions = ",".join(map(str, at)).encode()
            known = refined.get(id(user))
            if known is not None:
                uses.append(digest([known, positions]))
        refined[id(instruction)] = digest([body[id(instruction)], *sorted(uses)])
    return refined
