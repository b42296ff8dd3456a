"""DeviceAssignment: the devices of a program for several, and the shardings of its values."""

from collections.abc import Callable, Iterator, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import (
    ArrayImpl,
    Device,
    GSPMDSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from hlofront.bridge.members import (
    device_list_of,
    hlo_sharding_of,
    is_committed,
    memory_kind_of,
    sharding_of,
)
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Program, may_hold_programs, opened, subprograms_of
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import is_unspecified
from hlofront.higher_order.shard_map.shard_map import shard_map_p
from hlofront.pjrt.named_shardings import are_split_alike
from hlofront.pjrt.shardings import over_mesh
from hlofront.primitives.sharding.placing import (
    argument_sharding_p,
    device_put_p,
    memory_space_of,
    sharding_constraint_p,
)
from hlofront.primitives.sharding.resharding import reshard_p
from hlofront.transforms.flatten import ShapeDtypeStruct


class DeviceAssignment:
    """The devices of a program for several devices, with the shardings of its inputs and outputs.

    A program for one device has that Device instead of a DeviceAssignment.

    Args:
      devices: the devices, in the order of their numbers in the program.
      inputs, outputs: the sharding of each, or None where XLA decides. No outputs at all mean that
        XLA decides every one.
      like: a sharding, whose mesh describes the shardings that XLA chooses; None for no mesh.
    """

    __slots__ = ("_hash", "device", "device_count", "devices", "inputs", "like", "outputs")

    def __init__(
        self,
        devices: Sequence[Device],
        inputs: Sequence[Sharding | None],
        outputs: Sequence[Sharding | None],
        like: Sharding | None = None,
    ):
        self.devices = tuple(devices)
        self.device = self.devices[0]
        self.device_count = len(self.devices)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.like = like
        self._hash = hash((self.devices, self.inputs, self.outputs, like))

    def __eq__(self, other: object) -> bool:
        return type(other) is DeviceAssignment and (
            self.devices == other.devices
            and self.inputs == other.inputs
            and self.outputs == other.outputs
            and self.like == other.like
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        shown = ", ".join("?" if sharding is None else _short(sharding) for sharding in self.inputs)
        return f"{self.device_count} devices from {self.device} on, inputs split as ({shown})"

    @property
    def typed_mesh(self) -> Mesh | None:
        """The mesh along whose Explicit axes values are split by their types, or None."""
        mesh = getattr(self.like, "mesh", None)
        return mesh if isinstance(mesh, Mesh) and mesh.explicit_axes else None

    def chosen_outputs(self, program: ClosedJaxpr) -> list[bool]:
        """Return, per output of the program, whether XLA chooses its sharding."""
        outputs = self.outputs or (None,) * len(program.out_avals)
        return [sharding is None for sharding in outputs]

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that describes the program's shardings; None if they are over no mesh."""
        return self.like.mesh if type(self.like) is NamedSharding else None

    def text(self) -> str:
        """Return the order of the devices and the shardings as text.

        The devices are counted from the first: equal programs on other devices have the same text.
        """
        ids = [device.id - self.device.id for device in self.devices]
        typed = "" if self.typed_mesh is None else f" {self.typed_mesh}"
        return f"{ids} {self.inputs} {self.outputs}{typed}"


# A program runs on one device, or on those of a DeviceAssignment.
ProgramDevices = Device | DeviceAssignment


class CompiledShardings(NamedTuple):
    """The shardings of a compiled program's constants, inputs and outputs, in their order.

    The stored shardings are those of the arrays on the devices, which for random keys are integers.

    Attributes:
      constants: the sharding of each constant.
      inputs, stored_inputs: the sharding of each input that the executable takes.
      outputs, stored_outputs: the sharding of each output.
    """

    constants: Sequence[Sharding]
    inputs: Sequence[Sharding]
    outputs: Sequence[Sharding]
    stored_inputs: Sequence[Sharding]
    stored_outputs: Sequence[Sharding]


def _short(sharding: Sharding) -> str:
    return str(getattr(sharding, "spec", sharding))


def first_device(where: ProgramDevices) -> Device:
    """Return the device of a program, or the first of several."""
    return where.device if type(where) is DeviceAssignment else where


def spans_devices(sharding: object) -> bool:
    """Return whether a value is a sharding other than that of a single device."""
    return isinstance(sharding, Sharding) and type(sharding) is not SingleDeviceSharding


def placed(x: object) -> Sharding | None:
    """Return the sharding that an argument must keep; None if the argument may be moved."""
    return _sharding_of_argument(x, only_committed=True)


def _sharding_of_argument(x: object, only_committed: bool = False) -> Sharding | None:
    """Return the sharding of an array or a description; None for others."""
    if type(x) is ShapeDtypeStruct:
        # The sharding of an aval is over an abstract mesh, which has no devices.
        known = isinstance(x.sharding, Sharding) and not is_unspecified(x.sharding)
        return x.sharding if known else None
    if type(x) is not ArrayImpl:
        x = getattr(x, "_base", None)  # Random keys are stored as this array.
    if type(x) is not ArrayImpl or (only_committed and not is_committed(x)):
        return None
    return sharding_of(x)


def device_assignment_of(
    leaves: Sequence[object],
    inputs: Sequence[Sharding | None] = (),
    outputs: Sequence[Sharding | None] = (),
    inside: Sequence[Sharding] = (),
    describe: Callable[[int], str] | None = None,
    mesh: Mesh | None = None,
) -> DeviceAssignment | None:
    """Return the DeviceAssignment of a program for its arguments; None if it runs on one device.

    Args:
      leaves: the arguments: arrays, host values, descriptions.
      inputs, outputs: the sharding requested of jit, or None, for each; empty where jit has none.
      inside: the shardings in the program's own equations.
      describe: a function from the position of an argument to its name in messages.
      mesh: the mesh in context, on whose devices the program runs; None if there is none.

    Raises:
      ValueError: if the shardings have different devices, or an argument's sharding differs from
        the requested one, or its shape cannot be split this way.
    """
    requested = list(inputs) or [None] * len(leaves)
    name = describe or (lambda i: f"argument {i}")
    check_requested(requested, leaves, name)
    # Arguments that jit has a sharding for are moved to its devices.
    actual_shardings = [
        placed(leaf) if sharding is None else None
        for sharding, leaf in zip(requested, leaves, strict=True)
    ]
    return assignment_of_shardings(requested, actual_shardings, outputs, inside, name, mesh)


def assignment_of_shardings(
    requested: Sequence[Sharding | None],
    actual_shardings: Sequence[Sharding | None],
    outputs: Sequence[Sharding | None],
    inside: Sequence[Sharding],
    name: Callable[[int], str],
    mesh: Mesh | None,
) -> DeviceAssignment | None:
    """Return the DeviceAssignment of a program; None if it runs on one device.

    Args:
      requested: the sharding requested of jit, or None, for each argument.
      actual_shardings: the sharding that each argument must keep, or None.
      outputs: the sharding requested of jit, or None, for each result.
      inside: the shardings in the program's own equations.
      name: a function from the position of an argument to its name in messages.
      mesh: the mesh in context, on whose devices the program runs; None if there is none.

    Raises:
      ValueError: if the shardings have different devices.
    """
    requested = list(requested)
    if mesh is None and not any(
        map(spans_devices, (*requested, *outputs, *inside, *actual_shardings))
    ):
        return None
    first_name = ""
    first: Sharding | None = None
    like: Sharding | None = None
    for what, sharding in _all(requested, outputs, inside, actual_shardings, name, mesh):
        if like is None or type(like) is not NamedSharding:
            like = sharding
        if first is None:
            first_name, first = what, sharding
        elif device_list_of(sharding) != device_list_of(first):
            raise ValueError(
                f"Received incompatible devices for jitted computation: {first_name} is on "
                f"{_devices(first)}, and {what} is on {_devices(sharding)}. Move them to the "
                "same devices, in the same order, with device_put."
            )
    for i, actual in enumerate(actual_shardings):
        if spans_devices(actual) and not is_on_one_of_several(actual):
            requested[i] = actual
    assert first is not None, "one of the shardings is over several devices"
    return DeviceAssignment(tuple(device_list_of(first)), requested, outputs, like)


def check_requested(
    requested: Sequence[Sharding | None], leaves: Sequence[object], name: Callable[[int], str]
) -> None:
    """Raise an error for arguments that cannot have the shardings that were requested of jit.

    A call copies an argument to other devices, or in another order of them; it does not split it
    differently, nor move it to another memory.

    Args:
      requested: the sharding requested of jit for each argument, or None.
      leaves: the arguments.
      name: a function from the position of an argument to its name in messages.

    Raises:
      ValueError: if a committed argument is not split as requested, an array is in another memory,
        or a shape cannot be split this way.
    """
    for i, (target, leaf) in enumerate(zip(requested, leaves, strict=True)):
        if target is None:
            continue
        target.check_compatible_aval(leaf.shape if hasattr(leaf, "shape") else ())
        actual = _sharding_of_argument(leaf)
        if actual is None:
            continue
        own_kind, kind = memory_kind_of(target), memory_kind_of(actual)
        if memory_space_of(own_kind) is not memory_space_of(kind):
            raise ValueError(
                "Memory kinds passed to jax.jit does not match memory kind on the respective arg. "
                f"Got jit memory kind: {own_kind}, arg memory kind: {kind} for {name(i)}. Leave it "
                "out of in_shardings, or move the argument with device_put."
            )
        actual = placed(leaf)
        if actual is not None and not (
            are_split_alike(target, actual, leaf.ndim) or target.is_equivalent_to(actual, leaf.ndim)
        ):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got "
                f"jit sharding: {target}, arg sharding: {actual} for {name(i)}. Leave it out "
                "of in_shardings, or move the argument with device_put."
            )


def check_on_device(
    device: Device,
    requested: Sequence[Sharding | None],
    leaves: Sequence[object],
    name: Callable[[int], str],
) -> None:
    """Raise a ValueError if an argument for which jit has no sharding is committed elsewhere.

    Args:
      device: the one device of jit's shardings.
      requested: the sharding requested of jit for each argument, or None.
      leaves: the arguments.
      name: a function from the position of an argument to its name in messages.
    """
    for i, (target, leaf) in enumerate(zip(requested, leaves, strict=True)):
        actual = placed(leaf) if target is None else None
        if actual is not None and actual.device_set != {device}:
            raise ValueError(
                "Received incompatible devices for jitted computation: the shardings of jit are "
                f"on {device}, and {name(i)} is on {_devices(actual)}. Move it there with "
                "device_put, or name its sharding in in_shardings."
            )


def is_on_one_of_several(sharding: Sharding) -> bool:
    """Return whether a sharding over several devices is on one of them, as callback results are."""
    if type(sharding) is not GSPMDSharding:
        return False
    described = hlo_sharding_of(sharding)
    return described.is_maximal() and not described.is_replicated()


def _all(
    requested: Sequence[Sharding | None],
    outputs: Sequence[Sharding | None],
    inside: Sequence[Sharding],
    actual_shardings: Sequence[Sharding | None],
    name: Callable[[int], str],
    mesh: Mesh | None,
) -> Iterator[tuple[str, Sharding]]:
    """Yield each sharding of a call, with a phrase that names its origin."""
    if mesh is not None:
        yield "the mesh in context", over_mesh(mesh, PartitionSpec())
    for i, sharding in enumerate(requested):
        if sharding is not None:
            yield f"in_shardings of {name(i)}", sharding
    for sharding in outputs:
        if sharding is not None:
            yield "a sharding of out_shardings", sharding
    for sharding in inside:
        yield "a sharding inside of the function", sharding
    for i, sharding in enumerate(actual_shardings):
        if sharding is not None:
            yield name(i), sharding


def _devices(sharding: Sharding) -> str:
    devices = list(device_list_of(sharding))
    ids = [device.id for device in devices]
    shown = f"{ids[:8]}"[:-1] + ", ...]" if len(ids) > 8 else f"{ids}"
    return f"devices {shown} of {devices[0].platform.upper()}"


@once_per_program
def shardings_inside(program: Program) -> list[Sharding]:
    """Return the shardings in the parameters of the equations of a program and its subprograms."""
    return list(dict.fromkeys(_inside(opened(program))))


# The primitives whose parameters determine on which devices a program runs.
_PLACING = frozenset((sharding_constraint_p, argument_sharding_p, reshard_p, device_put_p))


def _inside(jaxpr: Jaxpr) -> Iterator[Sharding]:
    primitives = {equation.primitive for equation in jaxpr.eqns}
    placing = {p for p in primitives if p in _PLACING or may_hold_programs(p)}
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        if primitive not in placing:
            continue
        if primitive is sharding_constraint_p or primitive is argument_sharding_p:
            # Inside of shard_map a constraint may be over a mesh without devices.
            if type(getattr(equation.params["sharding"], "mesh", None)) is not AbstractMesh:
                yield equation.params["sharding"]
        elif primitive is reshard_p:
            mesh = equation.params["concrete_mesh"]
            if mesh is not None:
                yield over_mesh(mesh, PartitionSpec())
        elif primitive is device_put_p:
            yield from (to for to in equation.params["devices"] if spans_devices(to))
        else:
            if primitive is shard_map_p and type(equation.params["mesh"]) is Mesh:
                yield over_mesh(equation.params["mesh"], PartitionSpec())
            for part in subprograms_of(equation):
                yield from shardings_inside(part.program)
