"""The shardings of jit, as trees for its arguments and results, and sharding constraints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.bridge.client import Device, NamedSharding, Sharding, SingleDeviceSharding
from hlofront.bridge.members import device_list_of, device_of
from hlofront.core.aval import ShapedArray, spec_of, typeof
from hlofront.core.sharding.mesh import AbstractMesh, Mesh, entered_mesh
from hlofront.core.sharding.mesh_context import context_mesh, get_abstract_mesh
from hlofront.core.sharding.partition import UNCONSTRAINED, PartitionSpec
from hlofront.core.sharding.requested_shardings import named_sharding, over_devices, spec_of_rank
from hlofront.core.trace import is_eager
from hlofront.pjrt.named_shardings import is_abstract
from hlofront.pjrt.shardings import on_device
from hlofront.primitives.sharding.placing import (
    CopySemantics,
    argument_sharding,
    sharding_constraint,
)
from hlofront.runtime.array.transfer import put_leaf
from hlofront.runtime.compilation.traced_program import FlatShardings, TracedProgram
from hlofront.runtime.sharding.device_assignment import check_on_device, check_requested, placed


class JitShardings:
    """The in_shardings and out_shardings of a jitted function, as trees.

    Args:
      inputs: a prefix of the tuple of positional arguments that are not static.
      outputs: a prefix of the result.
      moves_arguments: whether arguments are moved from wherever they are, as for `jit(device=)`.
    """

    __slots__ = (
        "_are_of_single_devices",
        "_has_abstract",
        "_key",
        "inputs",
        "moves_arguments",
        "outputs",
    )

    def __init__(self, inputs: object, outputs: object, moves_arguments: bool = False):
        self.inputs = inputs
        self.outputs = outputs
        self.moves_arguments = moves_arguments
        leaves, structure = tree_flatten((inputs, outputs), is_leaf=is_none)
        self._key = tuple(leaves), structure, moves_arguments
        self._has_abstract = any(isinstance(x, Sharding) and is_abstract(x) for x in leaves)
        self._are_of_single_devices = all(
            leaf is None or type(leaf) is SingleDeviceSharding for leaf in leaves
        )

    @staticmethod
    def of_user(
        inputs: object, outputs: object, device: Device | None = None, backend: str | None = None
    ) -> "JitShardings | None":
        """Return the shardings that a user passed to jit; None if there are none.

        The results of a function with a `device` are on it.

        Raises:
          TypeError: for leaves that are not shardings.
          ValueError: for shardings that leave axes to XLA, or together with a device or backend.
        """
        # A list stands for the tuple of positional arguments too.
        inputs = tuple(inputs) if isinstance(inputs, list) else inputs
        inputs = _checked_shardings(inputs, "in_shardings")
        outputs = _checked_shardings(outputs, "out_shardings")
        leaves = tree_flatten((inputs, outputs))[0]
        for leaf in leaves:
            partitions = leaf.partitions if isinstance(leaf, PartitionSpec) else ()
            if UNCONSTRAINED in partitions or not getattr(leaf, "is_determined", True):
                raise ValueError(
                    "in_shardings and out_shardings say of every axis how it is split, and "
                    f"UNCONSTRAINED is for with_sharding_constraint: got {leaf}"
                )
        if not leaves:
            return None if device is None else JitShardings(None, on_device(device), True)
        if device is not None or backend is not None:
            raise ValueError(
                "If in_shardings or out_shardings are specified on jit, then device and backend "
                "arguments should not be specified: leave them out."
            )
        return JitShardings(inputs, outputs)

    def one_device(self) -> Device | None:
        """Return the one device of the shardings; None if they are over meshes.

        Raises:
          ValueError: if they name several devices, and none is over a mesh.
        """
        if not self._are_of_single_devices:
            return None
        first, *others = [device_of(leaf) for leaf in self._key[0] if leaf is not None]
        for other in others:
            if other != first:
                raise ValueError(f"the shardings of jit name {first} and {other}: name one device")
        return first

    def check_arguments(
        self, traced: TracedProgram, leaves: Sequence[object], device: Device
    ) -> None:
        """Raise a ValueError for arguments that must not be moved to the one device.

        Args:
          traced: the program.
          leaves: its flat arguments.
          device: the device of all shardings.
        """
        if self.moves_arguments:
            return
        requested = self.of(traced).inputs
        names = traced.program.jaxpr.debug_info.arg_names
        check_requested(requested, leaves, lambda i: f"argument {names[i]}")
        check_on_device(device, requested, leaves, lambda i: f"argument {names[i]}")

    def described_arguments(self, traced: TracedProgram, leaves: Sequence[object]) -> list[object]:
        """Return flat arguments with the types that the shardings of jit give them.

        The types of results do not depend on where such arguments are.
        """
        inputs = self.of(traced).inputs
        return [
            leaf if sharding is None else aval
            for leaf, sharding, aval in zip(leaves, inputs, traced.program.in_avals, strict=True)
        ]

    def over_devices(self, traced: TracedProgram, leaves: Sequence[object]) -> FlatShardings:
        """Return the sharding of each input and output, with devices instead of abstract meshes.

        These are the devices of the mesh in context, or else of an argument.

        Raises:
          ValueError: if there are no devices, or not as many as the mesh has.
        """
        flat = self.of(traced)
        if not self._has_abstract:
            return flat
        context = context_mesh()
        if context is not None:
            devices = list(context.devices.flat)
        else:
            known = [*map(placed, leaves), *flat.inputs, *flat.outputs]
            first = next((x for x in known if x is not None and not is_abstract(x)), None)
            devices = [] if first is None else list(device_list_of(first))
        inputs, outputs = (
            [_with_devices(sharding, devices) for sharding in shardings]
            for shardings in (flat.inputs, flat.outputs)
        )
        return FlatShardings(self, inputs, outputs)

    def constrained_arguments(self, traced: TracedProgram, leaves: ArrayLikes) -> list[ArrayLike]:
        """Return the flat arguments of a call that is not eager, with the shardings of jit."""
        inputs = self.of(traced).inputs
        if self.moves_arguments:
            inputs = [self.outputs] * len(leaves)
        names = traced.program.jaxpr.debug_info.arg_names
        return [
            leaf
            if sharding is None
            else argument_sharding(
                leaf, f"argument {name}", sharding, self.moves_arguments, _left_to_xla(sharding)
            )
            for name, leaf, sharding in zip(names, leaves, inputs, strict=True)
        ]

    def constrained_results(self, traced: TracedProgram, results: ArrayLikes) -> list[ArrayLike]:
        """Return the flat results of a call that is not eager, with the shardings of jit."""
        return list(map(constrained, results, self.of(traced).outputs))

    def __eq__(self, other: object) -> bool:
        return type(other) is JitShardings and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def of(self, traced: TracedProgram) -> FlatShardings:
        """Return the sharding of each input and each output of a program, or None.

        Raises:
          ValueError: if the trees are not prefixes of the arguments and the result, an output
            cannot be split this way, or there are keyword arguments.
          RuntimeError: for PartitionSpecs without a mesh in context.
        """
        flat = traced.shardings
        if flat is None or flat.source is not self:
            flat = traced.shardings = self._flat(traced)
        return flat

    def _flat(self, traced: TracedProgram) -> FlatShardings:
        args, kwargs = traced.in_tree.unflatten(traced.program.in_avals)
        inputs: Sequence[Sharding | None] = [None] * len(traced.program.in_avals)
        if tree_flatten(self.inputs)[0]:
            if kwargs:
                raise ValueError(
                    "jit does not take arguments by name together with in_shardings, which are for "
                    f"positional ones: got {', '.join(kwargs)}"
                )
            inputs = _over_devices(
                _flat(self.inputs, tuple(args), "in_shardings", "the positional arguments"),
                "in_shardings",
            )
        result = traced.out_tree.unflatten(traced.program.out_avals)
        outputs = _over_devices(
            _flat(self.outputs, result, "out_shardings", "the result"), "out_shardings"
        )
        for sharding, aval in zip(outputs, traced.program.out_avals, strict=True):
            if sharding is not None:
                sharding.check_compatible_aval(aval.shape)
        return FlatShardings(self, inputs, outputs)


def _over_devices(shardings: Sequence[object], name: str) -> list[Sharding | None]:
    """Return shardings over the mesh in context for PartitionSpecs, and others unchanged.

    Raises:
      RuntimeError: for PartitionSpecs without a mesh in context.
    """
    return [
        _over_context(leaf, name, "jit") if isinstance(leaf, PartitionSpec) else leaf
        for leaf in shardings
    ]


def _with_devices(sharding: Sharding | None, devices: Sequence[Device]) -> Sharding | None:
    """Return a sharding over these devices if it is over an abstract mesh, else unchanged."""
    if sharding is None or not is_abstract(sharding):
        return sharding
    mesh: AbstractMesh = sharding.mesh
    if len(devices) != mesh.size:
        raise ValueError(
            f"{sharding} has no devices, and gets those of the mesh in context or of an argument: "
            f"got {len(devices)} for {mesh.size}. Put a mesh in context by jax.set_mesh, split an "
            "argument by device_put, or make the sharding with a Mesh"
        )
    array = np.array(devices, dtype=object).reshape(mesh.axis_sizes)
    concrete = Mesh(array, mesh.axis_names, axis_types=mesh.axis_types)
    return NamedSharding(concrete, sharding.spec, memory_kind=sharding.memory_kind)


def _over_context(spec: PartitionSpec, name: str, function: str) -> Any:
    sharding = over_devices(spec)
    if sharding is None:
        raise RuntimeError(
            f"{function} requires a non-empty mesh in context if you are passing `PartitionSpec`s "
            f"to {name}: give it NamedSharding(mesh, {spec}), which has its mesh with it, or put a "
            "mesh in context by jax.set_mesh"
        )
    return sharding


def _flat(prefix: object, tree: object, name: str, what: str) -> list[Any]:
    """Expand a prefix to the sharding of each leaf of a tree; `name` and `what` are for errors."""
    try:
        return broadcast_prefix(prefix, tree, is_none)
    except ValueError as error:
        raise ValueError(
            f"{name} is one sharding for all of {what}, or a tree that is a prefix of {what}: "
            f"{error}"
        ) from None


def _checked_shardings(tree: object, name: str) -> object:
    """Return a tree of shardings of jit, PartitionSpecs and None, with the sharding of each device.

    Raises:
      TypeError: for leaves that are not shardings, PartitionSpecs, devices or None.
    """
    leaves, structure = tree_flatten(tree, is_leaf=is_none)
    return structure.unflatten([_checked(leaf, name, "jit", True) for leaf in leaves])


def _checked(leaf: object, name: str, function: str, may_be_abstract: bool = False) -> object:
    if leaf is None or isinstance(leaf, PartitionSpec):
        return leaf
    if isinstance(leaf, Sharding):
        mesh = getattr(leaf, "mesh", None)
        if type(mesh) is AbstractMesh and (mesh.empty or not may_be_abstract):
            raise ValueError(
                f"{name} of {function} takes shardings over devices, and the mesh of {leaf} has "
                "none: make it with a Mesh"
            )
        return leaf
    if isinstance(leaf, Device):
        return on_device(leaf)
    raise TypeError(
        f"{name} of {function} takes Shardings, such as NamedSharding(mesh, PartitionSpec('x')), "
        f"devices and None: got {leaf!r} of type {type(leaf).__name__}"
    )


def constrained(x: ArrayLike, sharding: Sharding | None) -> ArrayLike:
    """Constrain a value inside of a program to a sharding, unless that is None."""
    if sharding is None:
        return x
    return sharding_constraint(x, sharding, _left_to_xla(sharding))


def _left_to_xla(sharding: Sharding) -> frozenset[int]:
    """Return the axes that a sharding leaves to XLA."""
    entries = getattr(getattr(sharding, "spec", None), "partitions", ())
    return frozenset(i for i, entry in enumerate(entries) if entry is UNCONSTRAINED)


def _on_one_device(x: ArrayLike, sharding: SingleDeviceSharding) -> Array:
    """Return a value committed to one device; raise an error if it is committed elsewhere."""
    if not is_eager():
        return sharding_constraint(x, sharding)
    if getattr(x, "committed", False) and x.devices() != sharding.device_set:
        raise ValueError(
            f"Received incompatible devices: an array is committed to {x.sharding}, and "
            f"with_sharding_constraint requests {sharding}. Move it there with device_put."
        )
    return put_leaf(x, sharding, CopySemantics.REUSE_INPUT)


@boundary
def with_sharding_constraint(x: object, shardings: object) -> PyTree:
    """Return values with a sharding constraint, which XLA follows inside of a program.

    Constraints apply to mesh axes of type Auto. If all axes of the mesh in context are of type
    Explicit, this checks that the values are split this way.

    Args:
      x: an array or a pytree of arrays.
      shardings: a Sharding, or a PartitionSpec over the mesh in context, for all; or a tree of them
        that is a prefix of `x`. `PartitionSpec.UNCONSTRAINED` in a specification leaves an axis to
        XLA.

    Returns:
      A tree like `x`. The derivative of the constraint is the constraint of the derivative; under
      vmap the new axis is split along `spmd_axis_name`, or as XLA decides.

    Raises:
      TypeError: for leaves that are not shardings.
      RuntimeError: for PartitionSpecs outside of a mesh context.
      ValueError: if the shardings are not a prefix, an array cannot be split this way, or a
        specification names axes that are not of type Auto.
      AssertionError: if all axes of the mesh in context are of type Explicit, and an array is
        split otherwise.
    """
    leaves, structure = tree_flatten(x)
    flat = _flat(shardings, x, "shardings", "x")
    return structure.unflatten(list(map(_constrained_leaf, leaves, flat)))


def _constrained_leaf(x: ArrayLike, target: object) -> ArrayLike:
    sharding = _constraint(target)
    aval = typeof(x)
    sharding.check_compatible_aval(aval.shape)
    if type(sharding) is SingleDeviceSharding:
        return _on_one_device(x, sharding)
    spec, mesh = getattr(sharding, "spec", None), getattr(sharding, "mesh", None)
    if spec is not None and mesh is not None:
        if get_abstract_mesh().are_all_axes_explicit:
            _assert_split(aval, mesh.spec_in_types(spec))
            return x
        other = [name for name in spec.names() if name not in mesh.auto_axes]
        if other:
            raise ValueError(
                "The spec of NamedSharding passed to with_sharding_constraint can only refer to "
                f"Auto axes of the mesh: {other[0]} of {spec} is none of {mesh}. Along Explicit "
                "axes arrays are split by jax.reshard"
            )
    return constrained(x, sharding)


def _assert_split(aval: ShapedArray, spec: PartitionSpec) -> None:
    """Raise AssertionError unless an array is split by the spec, according to its type."""
    expected = spec_of_rank(spec, aval.ndim)
    actual = spec_of_rank(spec_of(aval), aval.ndim)
    if expected is not actual:
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type "
            f"`Explicit`: the array is split as {actual}, but {expected} was asserted. jax.reshard "
            "splits it so"
        )


def _constraint(leaf: object) -> Any:
    """Return the sharding of a constraint.

    Raises:
      TypeError, ValueError, RuntimeError: see `with_sharding_constraint`.
    """
    if leaf is None:
        raise ValueError(
            "with_sharding_constraint got None for a sharding, which does not constrain anything: "
            "leave that value out, or pass PartitionSpec.UNCONSTRAINED for axes that XLA splits"
        )
    if isinstance(leaf, PartitionSpec):
        mesh = get_abstract_mesh()
        if not mesh.empty:
            return (over_devices(leaf) if is_eager() else None) or named_sharding(mesh, leaf)
        entered = entered_mesh()
        if entered is not None:
            return named_sharding(entered, leaf)
        return _over_context(leaf, "shardings", "with_sharding_constraint")
    if isinstance(leaf, Device):
        raise TypeError(
            f"shardings of with_sharding_constraint are Shardings and PartitionSpecs: got {leaf!r}"
        )
    is_known = not is_eager() or not get_abstract_mesh().empty
    if is_known and type(getattr(leaf, "mesh", None)) is AbstractMesh:
        return leaf
    return _checked(leaf, "shardings", "with_sharding_constraint")


def check_device(device: Device | None, backend: str | None) -> None:
    """Warn if a device or a platform is passed to jit, which is deprecated.

    Raises:
      ValueError: if both are passed.
    """
    if device is not None and backend is not None:
        raise ValueError(
            "can't specify both a device and a backend for jit, got "
            f"device={device} and backend={backend!r}: leave one out"
        )
    if device is not None or backend is not None:
        source.warn(
            "backend and device arguments of jit are deprecated: put the arguments of the jitted "
            "function on the device instead, by jax.device_put(x, device)",
            DeprecationWarning,
        )
