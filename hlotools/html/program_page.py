"""The `page` function: a program as one HTML page of source lines and operations."""

import os
import re
from collections.abc import Mapping

from hlotools.collection import paused_collection
from hlotools.cost.collectives import Collectives, collectives
from hlotools.cost.memory_use import memory_use
from hlotools.cost.mesh_groups import MeshAxes
from hlotools.cost.peak import memory_of
from hlotools.cost.rates import DeviceRates
from hlotools.cost.traffic import uncounted_text
from hlotools.dumps.gpu_kernels import GpuKernels
from hlotools.dumps.tpu_kernels import TpuKernels
from hlotools.html.hlo_page import add_collectives, add_costs, add_memory, hlo_data
from hlotools.html.kernels_tab import add_kernels, kernel_tab
from hlotools.html.page_file import standing_alone
from hlotools.html.page_model import Files, ProgramData
from hlotools.ir.hlo import HloModule
from hlotools.ir.hlo_parser import parse
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.program_text import is_path, program_of_file, program_of_text
from hlotools.ir.stablehlo_parser import read_stablehlo

_MODULE = re.compile(r"^\s*module @([\w$.\-]+)", re.MULTILINE)
Facts = list[tuple[str, str]]


@paused_collection()
def page(
    program: object,
    rates: DeviceRates | None = None,
    *,
    title: str | None = None,
    histories: Mapping[str, list[str]] | None = None,
    kernels: TpuKernels | GpuKernels | None = None,
) -> str:
    """Return a program as one self-contained HTML page, which needs no network.

    The user's source is on the left; the operations are on the right, as a list and as a graph;
    pointing at one highlights the other. Loops, branches and fusions expand and collapse. Colors
    show time, arithmetic or bytes, as computed by `costs`. For compiled programs the memory over
    time is shown, as computed by `memory_use`, and for several devices the collectives.

    Args:
      program: text of HLO, StableHLO or a jaxpr, or the path of a file of such text; a result
        of `parse`; or an object whose `as_text()` is one of these, such as jax's stages.
      rates: the rates of the device for which times are estimated.
      title: the title of the page; by default the program's name.
      histories: the passes that made each operation, by its name, as `Timeline.histories` of a
        folder of dumps returns them; they are among the details of the operation.
      kernels: the kernels of the program, from `tpu_kernels` or `gpu_kernels`, shown on a
        tab of the page.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      TypeError: if the program is of another type.
      ValueError: if a text is not a program.
    """
    files = Files()
    facts: Facts = []
    data, name = program_data(program, files, rates, facts)
    if histories:
        for number, operation in enumerate(data.names):
            if operation in histories:
                data.histories[number] = histories[operation]
    if kernels is not None:
        add_kernels(data, kernel_tab(kernels))
    return page_of_data(data, files, name, title, facts)


def page_of_data(
    data: ProgramData, files: Files, name: str, title: str | None, facts: Facts
) -> str:
    """Return the HTML page of a program's page data."""
    parts = {"view": "program", "program": data.as_dict(), "name": name, "facts": facts}
    return standing_alone(title or name, parts, files)


def program_data(
    program: object,
    files: Files,
    rates: DeviceRates | None,
    facts: Facts,
    mesh: MeshAxes | None = None,
) -> tuple[ProgramData, str]:
    """Return a program's page data and name; add facts about it to `facts`.

    The mesh is for naming the axes of the program's collectives.
    """
    memory = memory_of(program)
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
            "expected the result of `trace`, `lower` or `compile`, a ClosedJaxpr, text of HLO or "
            f"StableHLO, or a module that `parse` read; got {type(program).__name__}"
        )
    data = hlo_data(program, files)
    report = add_costs(data, program, rates, memory)
    use = memory_use(program, memory)
    if use.is_scheduled and use.moments:
        add_memory(data, use, program)
    links = _collectives_of(program, mesh, rates)
    if links is not None and links.rows:
        add_collectives(data, links, program)
        facts.append(("sent by each device", f"{links.moved_bytes} B"))
    if report.target is not None:
        facts.append(("target", report.target.title))
    if report.total["unknown"]:
        facts.append(("of unknown cost", f"{report.total['unknown']:,}"))
    facts.append(("peak memory", f"{report.peak_bytes} B"))
    if report.uncounted:
        facts.append(("memory", uncounted_text(report.uncounted)))
    return data, program.name


def _collectives_of(
    module: HloModule, mesh: MeshAxes | None, rates: DeviceRates | None
) -> Collectives | None:
    """Return the collectives of a program, None if their groups of devices cannot be read."""
    try:
        return collectives(module, mesh, rates)
    except ValueError:
        return None


def module_name(text: str) -> str:
    """Return the name of a StableHLO module, or "module" if it has none."""
    match = _MODULE.search(text)
    return match[1] if match else "module"
