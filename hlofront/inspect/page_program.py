"""`page`: a program as one file to look at, its source on one side and operations on the other."""

import os
import re
from typing import Any

from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.inspect.cost import costs
from hlofront.inspect.page_hlo import add_costs, add_line_costs, hlo_data
from hlofront.inspect.page_jaxpr import jaxpr_data
from hlofront.pjrt.targets import Description, Target
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced
from hlotools.ir.hlo import HloModule
from hlotools.ir.hlo_parser import parse
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.program_text import is_path, program_of_file, program_of_text
from hlotools.ir.stablehlo_parser import read_stablehlo
from hlotools.page.page_file import standing_alone
from hlotools.page.page_model import Files, ProgramData

_MODULE = re.compile(r"^\s*module @([\w$.\-]+)", re.MULTILINE)


def page(
    program: Any,
    target: Target | Description | str | None = None,
    *,
    title: str | None = None,
) -> str:
    """A program as one page of HTML that needs nothing else, not even a network.

    The user's source is on its left, the operations on its right, as a list and as a graph;
    pointing at one lights the other. Loops, branches and fusions open and fold. Colour says where
    time, arithmetic or bytes go; those are the figures of `costs`.

    Args:
      program: what `trace`, `lower` or `compile` returned; a ClosedJaxpr; text of HLO,
        StableHLO or a jaxpr, or the path of a file of it; a module that `parse` read.
      target: what a time is reckoned for: what `hlofront.target` gives, or its name, such as
        "cuda:h100". For HLO and what `lower` returned.
      title: what the page is called; by default the program's name.

    Returns:
      The text of the file.

    Raises:
      HloSyntaxError: if a text of HLO cannot be read.
      TypeError: if the program is nothing of these.
      ValueError: if a text is of no program.
    """
    files = Files()
    facts: list[tuple[str, str]] = []
    data, name = _data(program, files, target, facts)
    shown = title or name
    parts = {"view": "program", "program": data.as_dict(), "name": name, "facts": facts}
    return standing_alone(shown, parts, files)


def _data(
    program: Any, files: Files, target: Any, facts: list[tuple[str, str]]
) -> tuple[ProgramData, str]:
    if isinstance(program, Traced):
        return jaxpr_data(program.jaxpr, files, program.fun_name), program.fun_name
    if isinstance(program, ClosedJaxpr | Jaxpr):
        origin = getattr(program, "debug_info", None)
        name = origin.func_name if origin is not None else "jaxpr"
        return jaxpr_data(program, files, name), name
    if isinstance(program, Lowered):
        text = program.as_text(debug_info=True)
        data = hlo_data(read_stablehlo(text), files, "stablehlo")
        add_line_costs(data, costs(program, target))
        return data, _module_name(text)
    if isinstance(program, Compiled):
        program = parse(program.as_text() or "")
    elif isinstance(program, os.PathLike | str):
        given = os.fspath(program)
        read = program_of_file(given) if is_path(given) else program_of_text(given, "the text")
        if read.kind == "stablehlo":
            name = _module_name(read.text)
            return hlo_data(read_stablehlo(read.text), files, "stablehlo"), name
        if read.kind == "jaxpr":
            return hlo_data(read_jaxpr(read.text), files, "jaxpr"), "jaxpr"
        program = parse(read.text)
    if not isinstance(program, HloModule):
        raise TypeError(
            "wanted what `trace`, `lower` or `compile` returned, a ClosedJaxpr, text of HLO or "
            f"StableHLO, or a module that `parse` read; got {type(program).__name__}"
        )
    data = hlo_data(program, files)
    report = add_costs(data, program, target)
    if report.target is not None:
        facts.append(("target", report.target.title))
    if report.total["unknown"]:
        facts.append(("of unknown cost", f"{report.total['unknown']:,}"))
    facts.append(("peak memory", f"{report.peak_bytes} B"))
    return data, program.name


def _module_name(text: str) -> str:
    found = _MODULE.search(text)
    return found[1] if found else "module"
