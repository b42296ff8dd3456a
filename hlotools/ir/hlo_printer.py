"""The printer of HLO modules, in XLA's format."""

import re

from hlotools.ir.hlo import Computation, HloModule, Instruction, indexed


def write(module: HloModule) -> str:
    """Return a module as text in XLA's format, which `parse` reads as an equal module.

    Args:
      module: a module, as `parse` returns it.
    """
    head = f"HloModule {module.name}" + _attributes_text(module.attributes)
    lines = [head, ""]
    frames = module.frames
    if frames:
        lines += ["FileNames", *(f"{n} {quoted(v)}" for n, v in frames.files.items()), ""]
        lines += ["FunctionNames", *(f"{n} {quoted(v)}" for n, v in frames.functions.items()), ""]
        lines.append("FileLocations")
        for number, location in frames.locations.items():
            lines.append(
                f"{number} {{file_name_id={location.file} function_name_id={location.function} "
                f"line={location.line} end_line={location.end_line} column={location.column} "
                f"end_column={location.end_column}}}"
            )
        lines += ["", "StackFrames"]
        for number, frame in frames.stack.items():
            lines.append(
                f"{number} {{file_location_id={frame.location} parent_frame_id={frame.parent}}}"
            )
        lines += ["", ""]
    for computation in module.computations:
        lines += [*computation_lines(computation), ""]
    return "\n".join(lines)


def computation_lines(computation: Computation) -> list[str]:
    """Return the lines of a computation's text."""
    lines = [head_text(computation)]
    lines += ["  " + instruction_text(i) for i in computation.instructions]
    return [*lines, "}" + _attributes_text(computation.attributes)]


def head_text(computation: Computation) -> str:
    percent = "%" if computation.module.percent else ""
    parameters = [f"{p.name}: {p.shape.without_layout()}" for p in computation.parameters]
    result = computation.root.shape.without_layout()
    entry = "ENTRY " if computation.is_entry else ""
    return f"{entry}{percent}{computation.name} ({', '.join(parameters)}) -> {result} {{"


def instruction_text(instruction: Instruction) -> str:
    """Return the line of an instruction's text."""
    module = instruction.computation.module
    percent = "%" if module.percent else ""
    root = "ROOT " if instruction.is_root else ""
    start = f"{root}{percent}{instruction.name} = {instruction.shape.text} {instruction.opcode}("
    return start + operands_text(instruction) + ")" + _attributes_text(instruction.attributes)


def operands_text(instruction: Instruction) -> str:
    if instruction.opcode == "constant":
        return instruction.literal
    if instruction.opcode == "parameter":
        return str(instruction.number)
    module = instruction.computation.module
    percent = "%" if module.percent else ""
    names = [percent + operand.name for operand in instruction.operands]
    if module.operand_shapes:
        pairs = zip(instruction.operands, names, strict=True)
        names = [f"{operand.shape.text} {name}" for operand, name in pairs]
    return indexed(names)


def _attributes_text(attributes: dict[str, str]) -> str:
    return "".join(f", {key}={value}" for key, value in attributes.items())


def quoted(text: str) -> str:
    """Return a string quoted and escaped for HLO."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + re.sub(r'["\\\n\t\r]', lambda special: escapes[special[0]], text) + '"'
