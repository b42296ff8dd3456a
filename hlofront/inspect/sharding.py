"""The description of how a program is split over devices: shardings of values, and collectives."""

from collections.abc import Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.source import user_frame
from hlofront.core.jaxpr import Equation, Var
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Program, called_by, inputs_among, opened
from hlofront.inspect.cost import description_for
from hlofront.inspect.program_mesh import mesh_of
from hlofront.inspect.resharding.reshards import reshards_of
from hlofront.pjrt.targets import Target
from hlofront.runtime.debugging.value_shardings import end_shardings, table_of, value_shardings
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlotools.cost.collectives import Collectives
from hlotools.cost.collectives import collectives as text_collectives
from hlotools.cost.mesh_groups import MeshAxes


def collectives(program: object, mesh: MeshAxes | str | None = None) -> Collectives:
    """Return the operations of a compiled program by which its devices communicate.

    Each operation has its mesh axes, the bytes that each device sends, the operations that run
    next to it, and the user's source line; if the program is compiled for a known device, also the
    minimum times of both.

    Args:
      program: a result of `compile`, HLO text, the path of an HLO file, or a result of `parse`.
      mesh: the mesh as text, such as "data=4,model=2"; by default that of a compiled program's
        shardings.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
      ValueError: if the text is not that of a mesh.
    """
    if not isinstance(program, Compiled):
        return text_collectives(program, mesh)
    rates = description_for(program, None)
    result = text_collectives(program.as_text() or "", mesh or mesh_of(program), rates)
    lines = _lines_of_arguments(program)
    rows = [
        row._replace(**lines[row.op_name]._asdict())
        if row.file is None and row.op_name in lines
        else row
        for row in result.rows
    ]
    return Collectives(result.program, result.mesh, rows)


class _Line(NamedTuple):
    """A line of the user's source."""

    file: str
    line: int
    function: str


def _lines_of_arguments(compiled: Compiled) -> dict[str, _Line]:
    """Return the source line that first uses each argument, by the argument's name.

    XLA relates some collectives only to an argument; they are attributed to this line.
    """
    program = compiled._traced.program
    info = program.debug_info
    names = (info and info.arg_names) or ()
    lines: dict[str, _Line] = {}
    for name, equation in zip(names, _first_uses(program), strict=False):
        frame = user_frame(equation.traceback) if equation else None
        if frame is not None:
            lines[name] = _Line(frame.file, frame.line, frame.function)
    return lines


@once_per_program
def _first_uses(program: Program) -> list[Equation | None]:
    """Return for each input of a program the first equation that uses it, or its callee's."""
    uses: dict[object, Equation] = {}
    for equation in program.eqns:
        call = called_by(equation)
        if call is None:
            inner = [equation] * len(equation.invars)
            operands: Sequence[object] = equation.invars
        else:
            inner = _first_uses(call.program)
            operands = inputs_among(call, equation.invars)
        for operand, use in zip(operands, inner, strict=True):
            if use is not None and isinstance(operand, Var):
                uses.setdefault(operand, use)
    return [uses.get(var) for var in opened(program).invars]


def is_split(stage: Compiled | Lowered) -> bool:
    """Return whether a program is for several devices."""
    return type(stage._where) is DeviceAssignment


_SHARDED_ARGUMENTS = """\
one device: nothing is split. {name} has {count}: arguments with shardings over them, which
example_args of the file may return, split the program. From hlofront.sharding:

  mesh = Mesh(hlofront.target("{name}").devices, ("x",))
  hlofront.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec("x")))"""


def sharding_text(
    lowered: Lowered, compiled: Compiled, target: Target | None = None, tries_specs: bool = True
) -> str:
    """Return how a program is split over devices, as text.

    That is its mesh, its values, its collectives, and which values XLA reshards.

    Args:
      lowered, compiled: the program.
      target: the target that it is compiled for; the program may use only one of its devices.
      tries_specs: whether to compile with other specs, to find those by which devices send less.
    """
    mesh = mesh_of(lowered)
    where = lowered._where
    if type(where) is not DeviceAssignment:
        count = 1 if target is None else len(target.devices)
        if target is None or count == 1:
            return "one device: nothing is split"
        return _SHARDED_ARGUMENTS.format(count=count, name=target.name)
    count = f"{where.device_count} devices"
    head = f"{count} without a mesh" if mesh is None else f"{count}, as a mesh of {mesh}"
    values = [*end_shardings(compiled), *value_shardings(lowered)]
    try:
        resharded = reshards_of(lowered, tries_specs).text()
    except ValueError as error:
        resharded = str(error)
    return f"{head}\n\n{table_of(values)}\n\n{collectives(compiled).text()}\n\n{resharded}"
