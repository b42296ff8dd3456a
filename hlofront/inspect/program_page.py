"""The `page` function: a traced, lowered or compiled program as an HTML page."""

from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.cost import costs, description_for, description_of
from hlofront.inspect.jaxpr_page import jaxpr_data
from hlofront.inspect.program_mesh import mesh_of
from hlofront.pjrt.targets import Description, Target
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced
from hlotools.dumps.tpu_kernels import TpuKernels
from hlotools.html.hlo_page import add_line_costs, hlo_data
from hlotools.html.kernels_tab import add_kernels, kernel_tab
from hlotools.html.page_model import Files, ProgramData
from hlotools.html.program_page import Facts, module_name, page_of_data, program_data
from hlotools.ir.stablehlo_parser import read_stablehlo


def page(
    program: object,
    target: Target | Description | str | None = None,
    *,
    title: str | None = None,
    kernels: TpuKernels | None = None,
) -> str:
    """Return a program as one self-contained HTML page.

    The user's source is on the left; the operations are on the right, as a list and as a graph;
    pointing at one highlights the other. Loops, branches and fusions expand and collapse. Colors
    show time, arithmetic or bytes, as computed by `costs`.

    Args:
      program: a result of `trace`, `lower`, `compile` or `parse`; a ClosedJaxpr; text of HLO,
        StableHLO or a jaxpr, or the path of a file of such text.
      target: for HLO and lowered programs, the device that time is estimated for: a result of
        `hlofront.target`, or its name, such as "cuda:h100".
      title: the title of the page; by default the program's name.
      kernels: the kernels of the compiled program, from `tpu_kernels`, shown on a tab of the page.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      TypeError: if the program is of another type.
      ValueError: if a text is not a program.
    """
    files = Files()
    facts: Facts = []
    data, name = _data(program, files, target, facts)
    if kernels is not None:
        add_kernels(data, kernel_tab(kernels))
    return page_of_data(data, files, name, title, facts)


def _data(
    program: object, files: Files, target: Target | Description | str | None, facts: Facts
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
        return data, module_name(text)
    described = description_of(target)
    if isinstance(program, Compiled):
        described = description_for(program, described)
        return program_data(program, files, described, facts, mesh_of(program))
    return program_data(program, files, described, facts)
