"""The function `reshards`, which reports the values that XLA reshards."""

import contextlib
import sys
import textwrap
from collections.abc import Callable

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.inspect.jitted import jitted
from hlofront.inspect.program_mesh import mesh_over
from hlofront.inspect.resharding.cures import cures_of
from hlofront.inspect.resharding.places import Places
from hlofront.inspect.resharding.propagation import MarkedProgram
from hlofront.inspect.resharding.report import Reshards, rows_of
from hlofront.pjrt.targets import Target
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlotools.cost.collectives import collectives


def reshards(
    function: Callable[..., object], target: Target | str | None = None
) -> Callable[..., Reshards]:
    """Return a function that reports which values of `function` XLA reshards, and why.

    Where an operation needs a value split differently from how it was produced, the devices
    exchange parts of it, or each of them gathers all of it. The report lists each such place: the
    value, both PartitionSpecs, the bytes that each device receives, the line of the operation, and
    the argument or sharding constraint that causes it. It also lists other specs that avoid it,
    and the bytes that devices then send, as the program is compiled with each of these specs.

    Args:
      function: the function, jitted or not.
      target: the devices to compile for; by default those of the arguments' shardings.

    Raises:
      ValueError: if the arguments are on one device, or XLA's compiler does not report its splits.

    Example:
      >>> import numpy as np
      >>> from hlofront.inspect import reshards
      >>> from hlofront.sharding import Mesh, NamedSharding, PartitionSpec as P
      >>> mesh = Mesh(np.array(jax.devices("cpu")), ("x",))  # as many as there are
      >>> def rows(*shape):
      ...     return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P("x")))
      >>> if mesh.size > 1:  # The rows of the second matrix are columns of what they multiply.
      ...     print(reshards(jnp.dot)(rows(128, 128), rows(128, 128)))
    """

    def found(*args: object, **kwargs: object) -> Reshards:
        device = find_target(target) if isinstance(target, str) else target
        with device or contextlib.nullcontext():
            return reshards_of(jitted(function).lower(*args, **kwargs))

    return found


def reshards_of(lowered: Lowered, tries_specs: bool = True) -> Reshards:
    """Return which values of a lowered program XLA reshards, and why.

    Args:
      lowered: the program.
      tries_specs: whether to try other specs, with one more compilation each.

    Raises:
      ValueError: if the program is for one device, or XLA's compiler does not report its splits.
    """
    where = lowered._where
    if type(where) is not DeviceAssignment:
        raise ValueError(
            "the program is for one device: reshards() needs arguments with shardings over several"
        )
    return _found(lowered._traced.program, lowered._jitted.name, where, tries_specs)


def _found(program: ClosedJaxpr, name: str, where: DeviceAssignment, tries_specs: bool) -> Reshards:
    marked = MarkedProgram(program, name, where)
    propagated, hlo = marked.propagated()
    places = Places(propagated).found()
    mesh = mesh_over(where)
    sent = collectives(hlo, mesh)
    cures = cures_of(marked, places, mesh, sent.moved_bytes) if tries_specs else []
    return Reshards(rows_of(places, sent), cures)


def warn_of_reshards(program: ClosedJaxpr, name: str, where: DeviceAssignment) -> None:
    """Print on stderr which values of a compiled program XLA reshards, if any."""
    try:
        rows = _found(program, name, where, tries_specs=False).rows
    except ValueError as error:
        print(f"hlofront: what {name} reshards is not known: {error}", file=sys.stderr)
        return
    if rows:
        info = program.debug_info
        lines = "\n".join(row.text() for row in rows)
        print(
            f"hlofront: in {info.func_src_info if info else name}, XLA reshards:\n"
            f"{textwrap.indent(lines, '  ')}",
            file=sys.stderr,
        )
