"""The `page` function: a traced, lowered or compiled program as an HTML page."""

from collections.abc import Iterator, Sequence

from hlofront.base.source import user_frames
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr
from hlofront.core.names import path_of
from hlofront.core.programs.print import Printing
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.cost import costs, description_for, description_of
from hlofront.inspect.program_mesh import mesh_of
from hlofront.pjrt.targets import Description, Target
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced
from hlotools.dumps.gpu_kernels import GpuKernels
from hlotools.dumps.tpu_kernels import TpuKernels
from hlotools.html.hlo_page import add_line_costs, hlo_data
from hlotools.html.kernels_tab import add_kernels, kernel_tab
from hlotools.html.page_model import Files, ProgramData
from hlotools.html.program_page import Facts, module_name, page_of_data, program_data
from hlotools.ir.source_frames import Source
from hlotools.ir.stablehlo_parser import read_stablehlo


def page(
    program: object,
    target: Target | Description | str | None = None,
    *,
    title: str | None = None,
    kernels: TpuKernels | GpuKernels | None = None,
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
      kernels: the kernels of the compiled program, from `tpu_kernels` or `gpu_kernels`, shown on a
        tab of the page.

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


# ---- pages of jaxprs -----------------------------------------------------------------------------


def jaxpr_data(program: Jaxpr | ClosedJaxpr, files: Files, name: str = "main") -> ProgramData:
    """Return the equations of a jaxpr and of its subprograms as the data of an HTML page.

    Args:
      program: a Jaxpr or ClosedJaxpr.
    """
    return _Reading(files).read(_opened(program), name)


class _Reading:
    """The conversion of one jaxpr: the names in use, and the subprograms still to be converted."""

    def __init__(self, files: Files):
        self.data = ProgramData("jaxpr", files)
        self.printing = Printing(print_shapes=False)
        self.makers: dict[Atom, int] = {}
        self.waiting: list[tuple[Jaxpr, str]] = []
        self.numbers: dict[int, int] = {}

    def read(self, program: Jaxpr, name: str) -> ProgramData:
        self.waiting = [(program, name)]
        self.numbers = {id(program): 0}
        done = 0
        while done < len(self.waiting):
            jaxpr, called = self.waiting[done]
            self._computation(jaxpr, called, entry=done == 0)
            done += 1
        return self.data

    def _computation(self, jaxpr: Jaxpr, name: str, entry: bool) -> None:
        data = self.data
        data.computation(name, entry)
        for variable in (*jaxpr.constvars, *jaxpr.invars):
            self.makers[variable] = data.operation(
                self.printing.name(variable), "argument", variable.aval.str_short(True)
            )
        for equation in jaxpr.eqns:
            self._equation(equation)
        number = data.operation("", "return", "", self._operands(jaxpr.outvars))
        self._mix(number, jaxpr.outvars)
        data.roots.append(number)

    def _operands(self, atoms: Sequence[Atom]) -> list[int]:
        return [
            self.makers[atom]
            for atom in atoms
            if not hasattr(type(atom), "val") and atom in self.makers
        ]

    def _mix(self, number: int, atoms: Sequence[Atom]) -> None:
        """Record an operation's operands and literals, if literals are among them."""
        if any(hasattr(type(atom), "val") for atom in atoms):
            self.data.mixed[number] = [
                self.printing.used(atom) if hasattr(type(atom), "val") else self.makers[atom]
                for atom in atoms
            ]

    def _equation(self, equation: Equation) -> None:
        programs = [(key, jaxpr) for key, value in equation.params.items()
                    for jaxpr in _programs(value)]  # fmt: skip
        extra = ", ".join(
            f"{key}={self.printing.value(value)}"
            for key, value in equation.params.items()
            if value is not None and not callable(value) and not any(True for _ in _programs(value))
        )
        frames = user_frames(equation.traceback)
        printing = self.printing
        number = self.data.operation(
            ", ".join(map(printing.name, equation.outvars)),
            equation.primitive.name,
            ", ".join(v.aval.str_short(True) for v in equation.outvars),
            self._operands(equation.invars),
            stack=[Source(frame.file, frame.line, frame.function) for frame in frames],
            path=path_of(equation.name_stack),
            extra=" ".join(extra.split()),
        )
        self._mix(number, equation.invars)
        for variable in equation.outvars:
            self.makers[variable] = number
        if programs:
            name = str(equation.params.get("name", equation.primitive.name))
            self.data.called[number] = [
                (key, self._number_of(jaxpr, name if len(programs) == 1 else f"{name} {key}"))
                for key, jaxpr in programs
            ]

    def _number_of(self, jaxpr: Jaxpr, name: str) -> int:
        number = self.numbers.get(id(jaxpr))
        if number is None:
            number = self.numbers[id(jaxpr)] = len(self.waiting)
            self.waiting.append((jaxpr, name))
        return number


def _opened(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return getattr(program, "jaxpr", program)


def _programs(value: object) -> Iterator[Jaxpr]:
    """Yield the jaxprs that an equation's parameter is or contains."""
    if hasattr(type(value), "eqns"):
        yield _opened(value)
    elif isinstance(value, tuple | list):
        for member in value:
            yield from _programs(member)
