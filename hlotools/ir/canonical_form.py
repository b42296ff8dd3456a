"""The canonical text of modules, equal for modules that differ only in names and free orders.

Operations and computations are numbered in an order determined by their structure; metadata,
tables of frames, the module's name and paths (in kernels' payloads too) are removed; attributes,
entries of maps, and operands of commutative operations and of fusions are sorted; channels are
renumbered; equal computations are written once.
"""

from hlotools.ir.digests import (
    DEEPEST_FUSION,
    Hashes,
    clean_attributes,
    is_commutative,
    module_attributes,
    with_users,
)
from hlotools.ir.hlo import CALLING, Computation, HloModule, Instruction
from hlotools.ir.hlo_parser import parse
from hlotools.ir.mlir_lines import canonical_jaxpr, canonical_stablehlo
from hlotools.ir.program_text import kind_of


def canonical(program: HloModule | str) -> str:
    """Return the canonical text of a program, equal for all texts of equal programs.

    Args:
      program: text of HLO, StableHLO or a jaxpr, or a result of `parse`.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
    """
    if isinstance(program, HloModule):
        return canonical_hlo(program)
    kind = kind_of(program)
    if kind == "jaxpr":
        return canonical_jaxpr(program)
    if kind == "stablehlo":
        return canonical_stablehlo(program)
    return canonical_hlo(parse(program))


def canonical_hlo(module: HloModule) -> str:
    """Return the canonical text of an HLO module."""
    return _Writer(module).text()


class _Writer:
    def __init__(self, module: HloModule):
        self.module = module
        self.hashes = Hashes(module)
        self.channels: dict[str, int] = {}
        # By text of a computation without its name: the name.
        self.names: dict[str, str] = {}
        self.plain: dict[int, str] = {}
        self.blocks: list[str] = []
        self.seen: set[int] = set()

    def text(self) -> str:
        module = self.module
        self.write(module.entry, None)
        unused = [c for c in module.computations if id(c) not in self.seen]
        for computation in sorted(unused, key=self.hashes.computation):
            if id(computation) not in self.seen:
                self.write(computation, None)
        head = "HloModule module" + "".join(
            f", {key}={value}" for key, value in module_attributes(module).items()
        )
        return "\n\n".join([head, *self.blocks]) + "\n"

    def write(
        self, computation: Computation, arguments: list[bytes] | None, depth: int = 0
    ) -> tuple[str, list[int]]:
        """Write a computation's text, unless it is written already.

        Returns:
          The computation's name, and the old numbers of its parameters in their new order.
        """
        known = self.plain.get(id(computation)) if arguments is None else None
        if known is not None:
            return known, []
        self.seen.add(id(computation))
        body = self.hashes.body(computation, arguments, depth)
        refined = with_users(computation, body)
        order = _order(computation, body, refined, arguments is not None)
        names = {id(i): f"{i.opcode}.{n}" for n, i in enumerate(order)}
        parameters = [i for i in order if i.opcode == "parameter"]
        if arguments is None:
            parameters.sort(key=lambda i: i.number)
        numbers = {id(p): n for n, p in enumerate(parameters)}
        lines: list[str] = []
        for instruction in order:
            operands = instruction.operands
            called = ""
            fused = instruction.fused
            if fused is not None and depth < DEEPEST_FUSION:
                digests = [body[id(operand)] for operand in operands]
                name, numbers_in_order = self.write(fused, digests, depth + 1)
                called = f", calls=%{name}"
                operands = [operands[n] for n in numbers_in_order if n < len(operands)]
            else:
                for key in CALLING:
                    callees = instruction.called.get(key)
                    if callees:
                        written = [f"%{self.write(callee, None)[0]}" for callee in callees]
                        many = key in ("branch_computations", "called_computations")
                        value = "{" + ", ".join(written) + "}" if many else ", ".join(written)
                        called += f", {key}={value}"
                if is_commutative(instruction):
                    operands = sorted(operands, key=lambda i: (body[id(i)], refined[id(i)]))
            if instruction.opcode == "parameter":
                inner = str(numbers[id(instruction)])
            elif instruction.opcode == "constant":
                inner = " ".join(instruction.literal.split())
            else:
                inner = ", ".join("%" + names[id(operand)] for operand in operands)
            before = sorted(names[id(i)] for i in instruction.predecessors)
            after = ", control-predecessors={%" + ", %".join(before) + "}" if before else ""
            root = "ROOT " if instruction.is_root else ""
            lines.append(
                f"  {root}%{names[id(instruction)]} = {instruction.shape.canonical_text()} "
                f"{instruction.opcode}({inner}){self.attributes(instruction)}{called}{after}"
            )
        taken = ", ".join(f"{names[id(p)]}: {p.shape.without_layout()}" for p in parameters)
        signature = f"({taken}) -> {computation.root.shape.without_layout()}"
        text = "\n".join([f"{signature} {{", *lines, "}"])
        name = self.named(computation, text, arguments is not None)
        if arguments is None:
            self.plain[id(computation)] = name
        return name, [p.number for p in parameters]

    def named(self, computation: Computation, text: str, fused: bool) -> str:
        if computation.is_entry:
            self.blocks.append(f"ENTRY %main {text}")
            return "main"
        name = self.names.get(text)
        if name is None:
            kind = "fused_computation" if fused else "computation"
            name = self.names[text] = f"{kind}.{len(self.names)}"
            self.blocks.append(f"%{name} {text}")
        return name

    def attributes(self, instruction: Instruction) -> str:
        text = "".join(f", {k}={v}" for k, v in clean_attributes(instruction).items())
        channel = instruction.attributes.get("channel_id")
        if channel is not None:
            number = self.channels.setdefault(channel, len(self.channels) + 1)
            text += f", channel_id={number}"
        return text


def _order(
    computation: Computation,
    body: dict[int, bytes],
    refined: dict[int, bytes],
    fused: bool,
) -> list[Instruction]:
    """Return the instructions in an order determined only by structure, operands first."""
    order: list[Instruction] = []
    done: set[int] = set()

    def key(instruction: Instruction) -> tuple[bytes, bytes]:
        return body[id(instruction)], refined[id(instruction)]

    def visit(start: Instruction) -> None:
        waiting = [(start, False)]
        while waiting:
            instruction, finished = waiting.pop()
            if id(instruction) in done:
                continue
            if finished:
                done.add(id(instruction))
                order.append(instruction)
                continue
            waiting.append((instruction, True))
            operands = instruction.operands
            if is_commutative(instruction) or instruction.opcode == "fusion":
                operands = sorted(operands, key=key)
            needed = [*operands, *sorted(instruction.predecessors, key=key)]
            waiting.extend((i, False) for i in reversed(needed) if id(i) not in done)

    if not fused:
        for parameter in computation.parameters:
            visit(parameter)
    visit(computation.root)
    beside = [i for i in computation.instructions if not i.users and i.opcode != "parameter"]
    for instruction in sorted(beside, key=key):
        visit(instruction)
    for parameter in computation.parameters:
        visit(parameter)
    for instruction in sorted((i for i in computation.instructions if id(i) not in done), key=key):
        visit(instruction)
    return order
