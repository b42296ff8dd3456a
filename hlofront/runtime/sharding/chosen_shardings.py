"""The shardings of a compiled program: the requested ones, and those that XLA chose."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofront.bridge.client import (
    HloSharding,
    LoadedExecutable,
    NamedSharding,
    OpSharding,
    Sharding,
)
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, spec_of
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.sharding.requested_shardings import spec_of_rank
from hlofront.pjrt.named_shardings import from_hlo, means, replicated
from hlofront.pjrt.shardings import over_mesh
from hlofront.primitives.random.keys import is_key
from hlofront.runtime.sharding.device_assignment import CompiledShardings, DeviceAssignment
from hlofront.runtime.sharding.storage import stored, stored_sharding
from hlofront.runtime.sharding.typed import in_memory_of

if TYPE_CHECKING:
    from hlofront.bridge.compile_process import SubprocessExecutable


@dataclasses.dataclass(frozen=True, slots=True)
class InputSharding:
    """The sharding and the number of axes of a program's input."""

    sharding: NamedSharding
    ndim: int


def chosen_shardings(
    described: Sequence[OpSharding] | None,
    requested: Sequence[Sharding | None],
    avals: Avals,
    device_assignment: DeviceAssignment,
    first: InputSharding | None = None,
) -> list[Sharding]:
    """Return the sharding of each value: the requested one, else the one that XLA chose.

    Args:
      described: XLA's sharding of each; None if the program has one device.
      requested: the sharding requested for each, or None.
      avals: the type of each on its devices.
      device_assignment: the devices of the program.
      first: the first NamedSharding of an input: values with an equivalent sharding have this one,
        with names of axes of size 1 and trailing None.
    """
    like = device_assignment.like or replicated(device_assignment.devices)
    shardings: list[Sharding] = []
    for i, (sharding, aval) in enumerate(zip(requested, avals, strict=True)):
        if sharding is None:
            if described is not None:
                chosen = HloSharding.from_proto(described[i])
                is_first = first is not None and first.ndim == aval.ndim
                typed = _sharding_of_type(like, aval)
                if typed is not None and means(chosen, typed, aval.ndim):
                    sharding = typed
                elif is_first and means(chosen, first.sharding, first.ndim):
                    sharding = first.sharding
                else:
                    sharding = from_hlo(chosen, like, aval.ndim)
            elif len(getattr(like, "spec", ())) <= aval.ndim:
                sharding = like
            else:
                sharding = from_hlo(HloSharding.replicate(), like, aval.ndim)
            sharding = in_memory_of(aval, sharding)
        shardings.append(sharding)
    return shardings


def _sharding_of_type(like: Sharding, aval: ShapedArray) -> NamedSharding | None:
    """Return the sharding of a type, over a mesh with other axes that XLA splits along."""
    if type(like) is not NamedSharding or not (like.mesh.explicit_axes and like.mesh.auto_axes):
        return None
    if aval.mesh is not None and aval.mesh is not like.mesh.abstract_mesh:
        return None
    return over_mesh(like.mesh, spec_of_rank(spec_of(aval), aval.ndim))


def compiled_shardings(
    program: ClosedJaxpr,
    kept_inputs: Sequence[int],
    const_args: Sequence[tuple[object, AbstractValue]],
    loaded: "LoadedExecutable | SubprocessExecutable",
    device_assignment: DeviceAssignment,
) -> CompiledShardings:
    """Return the shardings of a compiled program: the requested ones, or XLA's choice.

    Args:
      program: the program.
      kept_inputs: the positions of the inputs that the executable takes.
      const_args: the constants that it takes, with their types.
      loaded: jaxlib's executable.
      device_assignment: the devices of the program, and the requested shardings.
    """
    constants = [stored(aval) for _, aval in const_args]
    taken_avals = [program.in_avals[i] for i in kept_inputs]
    count = len(constants)
    requested = [device_assignment.inputs[i] for i in kept_inputs]
    taken = chosen_shardings(
        loaded.get_parameter_shardings(),
        [*[None] * count, *requested],
        [*constants, *map(stored, taken_avals)],
        device_assignment,
    )
    first = next(
        (
            InputSharding(sharding, aval.ndim)
            for sharding, aval in zip(requested, taken_avals, strict=True)
            if type(sharding) is NamedSharding and not is_key(aval)
        ),
        None,
    )
    outputs = chosen_shardings(
        loaded.get_output_shardings(),
        device_assignment.outputs or [None] * len(program.out_avals),
        list(map(stored, program.out_avals)),
        device_assignment,
        first,
    )
    return CompiledShardings(
        taken[:count],
        taken[count:],
        outputs,
        list(map(_as_stored, taken[count:], taken_avals)),
        list(map(_as_stored, outputs, program.out_avals)),
    )


def _as_stored(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """Return the sharding of a value's buffer, which for random keys is an array of integers."""
    return stored_sharding(sharding, aval) if is_key(aval) else sharding
