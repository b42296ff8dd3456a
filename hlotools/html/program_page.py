"""`page`: a program as one file to look at, its source on one side and operations on the other."""

import os
import re

from hlotools.cost.costs import DeviceRates
from hlotools.html.hlo_page import add_costs, hlo_data
from hlotools.html.page_file import standing_alone
from hlotools.html.page_model import Files, ProgramData
from hlotools.ir.hlo import HloModule
from hlotools.ir.hlo_parser import parse
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.program_text import is_path, program_of_file, program_of_text
from hlotools.ir.stablehlo_parser import read_stablehlo

_MODULE = re.compile(r"^\s*module @([\w$.\-]+)", re.MULTILINE)
Facts = list[tuple[str, str]]


def page(program: object, rates: DeviceRates | None = None, *, title: str | None = None) -> str:
    """Return a program as one page of HTML that needs nothing else, not even a network.

    The user's source is on its left, the operations on its right, as a list and as a graph;
    pointing at one lights the other. Loops, branches and fusions open and fold. Colour says where
    time, arithmetic or bytes go; those are the figures of `costs`.

    Args:
      program: text of HLO, StableHLO or a jaxpr, or the path of a file of it; a module that
        `parse` read; or an object whose `as_text()` is one of these, such as jax's stages.
      rates: the numbers of the device that times are reckoned for.
      title: the title of the page; by default the program's name.

    Raises:
      HloSyntaxError: if a text of HLO cannot be read.
      TypeError: if the program is nothing of these.
      ValueError: if a text is of no program.
    """
    files = Files()
    facts: Facts = []
    data, name = program_data(program, files, rates, facts)
    return page_of_data(data, files, name, title, facts)


def page_of_data(
    data: ProgramData, files: Files, name: str, title: str | None, facts: Facts
) -> str:
    """Return the page of a program that was read."""
    parts = {"view": "program", "program": data.as_dict(), "name": name, "facts": facts}
    return standing_alone(title or name, parts, files)


def program_data(
    program: object, files: Files, rates: DeviceRates | None, facts: Facts
) -> tuple[ProgramData, str]:
    """Return what a page shows of a program, and its name; what is known of it goes to `facts`."""
    as_text = getattr(program, "as_text", None)
    if callable(as_text) and not isinstance(program, HloModule):
        program = as_text()
    if isinstance(program, os.PathLike | str):
        path = os.fspath(program)
        read = program_of_file(path) if is_path(path) else program_of_text(path, "the text")
        if read.kind == "stablehlo":
            return hlo_data(read_stablehlo(read.text), files, "stablehlo"), module_name(read.text)
        if read.kind == "jaxpr":
            return hlo_data(read_jaxpr(read.text), files, "jaxpr"), "jaxpr"
        program = parse(read.text)
    if not isinstance(program, HloModule):
        raise TypeError(
            "wanted what `trace`, `lower` or `compile` returned, a ClosedJaxpr, text of HLO or "
            f"StableHLO, or a module that `parse` read; got {type(program).__name__}"
        )
    data = hlo_data(program, files)
    report = add_costs(data, program, rates)
    if report.target is not None:
        facts.append(("target", report.target.title))
    if report.total["unknown"]:
        facts.append(("of unknown cost", f"{report.total['unknown']:,}"))
    facts.append(("peak memory", f"{report.peak_bytes} B"))
    return data, program.name


def module_name(text: str) -> str:
    """Return the name of a module of StableHLO, "module" where it has none."""
    match = _MODULE.search(text)
    return match[1] if match else "module"
