"""Where programs that are spread over several devices run, and how their values are split."""

from collections.abc import Iterator, Sequence
from typing import Any

from hlofront.bridge.client import (
    ArrayImpl,
    GSPMDSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from hlofront.bridge.members import device_list_of, hlo_sharding_of, is_committed, sharding_of
from hlofront.core.derived import once_per_program
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.subprograms import subprograms_of
from hlofront.primitives.placing import device_put_p, sharding_constraint_p
from hlofront.primitives.shaping import asks_nothing
from hlofront.transforms.flatten import ShapeDtypeStruct


class DeviceAssignment:
    """The devices that a program is spread over, and how its inputs and outputs are split.

    It stands where the one device of other programs does. Equal ones are spread alike.

    Args:
      devices: in the order of their numbers in the program.
      inputs, outputs: the sharding of each, or None where XLA decides.
      like: a sharding, on whose mesh those that XLA chooses are described; None for on none.
    """

    __slots__ = ("_hash", "device", "device_count", "devices", "inputs", "like", "outputs")

    def __init__(
        self,
        devices: Sequence[Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        like: Any = None,
    ):
        self.devices = tuple(devices)
        self.device = self.devices[0]
        self.device_count = len(self.devices)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.like = like
        self._hash = hash((self.devices, self.inputs, self.outputs, like))

    def __eq__(self, other: Any) -> bool:
        return type(other) is DeviceAssignment and (
            self.devices == other.devices
            and self.inputs == other.inputs
            and self.outputs == other.outputs
            and self.like == other.like
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        shown = ", ".join("?" if each is None else _short(each) for each in self.inputs)
        return f"{self.device_count} devices from {self.device} on, inputs split as ({shown})"

    def chosen_outputs(self, program: ClosedJaxpr) -> list[bool]:
        """Per output of the program, whether XLA decides how it is split."""
        outputs = self.outputs or (None,) * len(program.out_avals)
        return [sharding is None for sharding in outputs]

    def text(self) -> str:
        """All that it says, as what is stored on disk is found by."""
        ids = [device.id for device in self.devices]
        return f"{ids} {self.inputs} {self.outputs}"


def _short(sharding: Any) -> str:
    return str(getattr(sharding, "spec", sharding))


def first_device(where: Any) -> Any:
    """The device, or the first of those that a program is spread over."""
    return where.device if type(where) is DeviceAssignment else where


def spans_devices(sharding: Any) -> bool:
    """Return whether a value is a sharding other than that of a single device."""
    return isinstance(sharding, Sharding) and type(sharding) is not SingleDeviceSharding


def placed(x: Any) -> Any:
    """The sharding that an argument must keep; None where it may be moved."""
    if type(x) is ShapeDtypeStruct:
        # That of a type says nothing of devices.
        known = isinstance(x.sharding, Sharding) and not asks_nothing(x.sharding)
        return x.sharding if known else None
    if type(x) is not ArrayImpl:
        x = getattr(x, "_base", None)  # what random keys are stored as
    return sharding_of(x) if type(x) is ArrayImpl and is_committed(x) else None


def device_assignment_of(
    leaves: Sequence[Any],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    inside: Sequence[Any] = (),
    describe: Any = None,
) -> DeviceAssignment | None:
    """How a program with these arguments is spread; None where it runs on one device.

    Args:
      leaves: the arguments: arrays, values of the host, descriptions.
      inputs, outputs: what jit was asked for, for each: a sharding, or None. Empty where of none.
      inside: the shardings that the program itself speaks of.
      describe: from the position of an argument to what it is called in messages.

    Raises:
      ValueError: if they are of different devices, or an argument is split otherwise than jit was
        asked to split it, or cannot be split so.
    """
    requested = list(inputs) or [None] * len(leaves)
    # What is on one device is copied to all where jit was asked for it on all.
    actual_shardings = [
        None if type(actual) is SingleDeviceSharding and _is_for_all(wanted) else actual
        for wanted, actual in zip(requested, map(placed, leaves), strict=True)
    ]
    if not any(map(spans_devices, (*requested, *outputs, *inside, *actual_shardings))):
        return None
    name = describe or (lambda i: f"argument {i}")
    first_name = ""
    first: Sharding | None = None
    like: Any = None
    for what, sharding in _all(requested, outputs, inside, actual_shardings, name):
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
    for i, (wanted, actual) in enumerate(zip(requested, actual_shardings, strict=True)):
        leaf = leaves[i]
        if wanted is None:
            requested[i] = actual if spans_devices(actual) and not _on_one(actual) else None
        else:
            wanted.check_compatible_aval(leaf.shape if hasattr(leaf, "shape") else ())
            if actual is not None and not wanted.is_equivalent_to(actual, leaf.ndim):
                raise ValueError(
                    "Sharding passed to jit does not match the sharding on the respective arg. Got "
                    f"jit sharding: {wanted}, arg sharding: {actual} for {name(i)}. Leave it out "
                    "of in_shardings, or move the argument with device_put."
                )
    return DeviceAssignment(tuple(device_list_of(first)), requested, outputs, like)


def _is_for_all(sharding: Any) -> bool:
    return sharding is not None and spans_devices(sharding) and sharding.is_fully_replicated


def _on_one(sharding: Any) -> bool:
    """Return whether one of several devices alone has the value, as what callbacks return."""
    if type(sharding) is not GSPMDSharding:
        return False
    described = hlo_sharding_of(sharding)
    return described.is_maximal() and not described.is_replicated()


def _all(
    requested: Any, outputs: Any, inside: Any, given: Any, name: Any
) -> Iterator[tuple[str, Any]]:
    for i, sharding in enumerate(requested):
        if sharding is not None:
            yield f"in_shardings of {name(i)}", sharding
    for sharding in outputs:
        if sharding is not None:
            yield "a sharding of out_shardings", sharding
    for sharding in inside:
        yield "a sharding inside of the function", sharding
    for i, sharding in enumerate(given):
        if sharding is not None:
            yield name(i), sharding


def _devices(sharding: Any) -> str:
    devices = list(device_list_of(sharding))
    ids = [device.id for device in devices]
    shown = f"{ids[:8]}"[:-1] + ", ...]" if len(ids) > 8 else f"{ids}"
    return f"devices {shown} of {devices[0].platform.upper()}"


@once_per_program
def shardings_inside(program: ClosedJaxpr) -> list[Any]:
    """Return the shardings in the parameters of a program's equations, and of programs inside."""
    return list(dict.fromkeys(_inside(program.jaxpr)))


def _inside(jaxpr: Jaxpr) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        if primitive is sharding_constraint_p:
            yield equation.params["sharding"]
        elif primitive is device_put_p:
            yield from filter(spans_devices, equation.params["devices"])
        else:
            for part in subprograms_of(equation):
                if isinstance(part.program, ClosedJaxpr):
                    yield from shardings_inside(part.program)
                else:
                    yield from _inside(part.program)
