"""Answers to XLA, while it compiles, about operations whose shardings the host decides or sees."""

# The functions are the user's, with arguments and results of any type.
# pyright: basic

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hlofront.base import tree
from hlofront.base.config import enable_x64
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.bridge.client import Device, HloSharding, NamedSharding, Sharding
from hlofront.bridge.members import device_list_of
from hlofront.bridge.mlir import bytecode_of
from hlofront.bridge.partitioning import Partitioned
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.axes import axes_in_scope
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.sharding.mesh import AxisType, Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.lowering.core.module_state import ManualMesh
from hlofront.lowering.rules import lower_program
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.named_shardings import from_hlo, hlo_sharding, reordered, replicated
from hlofront.pjrt.partitioning import PartitionCall
from hlofront.primitives.random.keys import is_key
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.storage import stored_sharding
from hlofront.transforms.flatten import ShapeDtypeStruct, stage_tree

if TYPE_CHECKING:
    from hlofront.lowering.core.partitioned_call import PartitionedCall
    from hlofront.lowering.module import Module

_NO_MESH = Mesh(np.array(None), ())
_NUMBER = ShapedArray((), np.dtype(np.int32))


def partition_of(module: "Module", devices: DeviceAssignment) -> PartitionCall:
    """Return the function that answers for the custom calls of a module, by their numbers.

    The callbacks of values in bodies of shard_map, which XLA does not split, are called now.

    Args:
      module: the module, with its `partitioned_calls`.
      devices: the devices, with the mesh that shardings are over.
    """

    for call in module.partitioned_calls:
        if call.is_manual and "callback" in call.params:
            like = devices.like or replicated(devices.devices)
            call.params["callback"](from_hlo(HloSharding.replicate(), like, call.avals_in[0].ndim))

    def partition(
        number: int, operands: list[HloSharding], results: list[HloSharding]
    ) -> Partitioned:
        call = module.partitioned_calls[number]
        with enable_x64(call.x64):
            if "callback" in call.params:
                return _inspected(call, devices, operands, results)
            return _Partition(call, devices).partitioned(operands, results)

    return partition


def inspect_on_one_device(module: "Module", device: Device) -> None:
    """Call the callbacks of a module for one device, where all values are whole."""
    for call in module.partitioned_calls:
        call.params["callback"](replicated((device,)))


def _inspected(
    call: "PartitionedCall",
    devices: DeviceAssignment,
    operands: list[HloSharding],
    results: list[HloSharding],
) -> Partitioned:
    """Pass the sharding of a value to the callback of an equation of inspect_sharding."""
    (aval,) = call.avals_in
    sharding = from_hlo(operands[0], devices.like or replicated(devices.devices), aval.ndim)
    call.params["callback"](sharding)
    program, _ = stage_tree(
        lambda _: np.int32(0),
        _ONE_ARGUMENT,
        [_shard(aval, sharding)],
        DebugInfo("inspection", "inspect_array_sharding"),
    )
    return Partitioned(_bytecode(program, devices, "inspect_sharding"), operands, results)


_ONE_ARGUMENT = tree.tree_structure(((0,), {}))


def _shard(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """Return the aval of each shard of a value."""
    return ShapedArray(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)


def _bytecode(
    program: Any, devices: DeviceAssignment, name: str, mesh: Mesh | None = None
) -> bytes:
    """Return the module of a program that each device runs on its shards, as bytecode.

    Args:
      program: the program.
      devices: the devices.
      name: the name of the function that it was traced from.
      mesh: the mesh that its collectives name axes of.

    Raises:
      ValueError: if the program calls the host.
    """
    module = lower_program(
        program,
        LoweringRequest(name, lowering_platform(devices.device), keep_unused=True),
        embed_constants=True,
        manual=ManualMesh(mesh.shape_tuple, frozenset(mesh.axis_names)) if mesh else None,
    )
    if module.callbacks or module.ordered:
        raise ValueError(
            f"the function of shards of {name} calls Python functions while it runs, which XLA "
            "supports only in whole programs: call them outside of it"
        )
    return bytecode_of(module.ir_module)


class _Partition:
    """The call of the user's `partition` for an equation of custom_partitioning.

    Args:
      call: the equation.
      devices: the devices, with the mesh that shardings are over.
    """

    def __init__(self, call: "PartitionedCall", devices: DeviceAssignment):
        self._call = call
        self._devices = devices
        self._params = call.params
        self._like = devices.like or replicated(devices.devices)
        if type(self._like) is NamedSharding:
            # Within a partition function, types of values are not split along any axis of the mesh.
            mesh = self._like.mesh
            mesh = mesh.update(axis_types=(AxisType.Auto,) * len(mesh.axis_names))
            self._like = NamedSharding(mesh, PartitionSpec())
        function = call.params["partition"]
        self._name = getattr(function, "__name__", type(function).__name__)

    def partitioned(self, operands: list[HloSharding], results: list[HloSharding]) -> Partitioned:
        """Return what replaces the equation's custom call."""
        params, call = self._params, self._call
        mesh = self._like.mesh if type(self._like) is NamedSharding else _NO_MESH
        args = params["in_tree"].unflatten(self._structs(call.avals_in, operands))
        result = params["out_tree"].unflatten(self._structs(call.avals_out, results))
        answer = params["partition"](*params["static_args"], mesh, args, result)
        if not isinstance(answer, tuple) or len(answer) != 4:
            self._refuse(
                "returns a tuple of four, (mesh, function, shardings of results, shardings of "
                f"arguments): got {answer!r}"
            )
        mesh, function, given_results, given_operands = answer
        operand_shardings = self._flat("arguments", params["in_tree"], given_operands)
        result_shardings = self._flat("results", params["out_tree"], given_results)
        shards = list(map(_shard, call.avals_in, operand_shardings))
        expected = list(map(_shard, call.avals_out, result_shardings))
        info = DebugInfo("custom_partitioning", lambda: f"the function that {self._name} returns")
        with axes_in_scope(() if mesh is None else tuple(mesh.shape_tuple)):
            in_tree = tree.tree_structure((args, {}))
            program, _ = stage_tree(function, in_tree, shards, info)
        made = program.out_avals
        if [(x.shape, x.dtype) for x in made] != [(x.shape, x.dtype) for x in expected]:
            self._refuse(
                "returns a function of shards and the shardings of its results, which do not go "
                f"together: the function returns {_listed(made)}, and the shards of the results "
                f"are {_listed(expected)}"
            )
        devices = replicated(self._devices.devices)
        return Partitioned(
            _bytecode(program, self._devices, self._name, mesh),
            [_described(x, s, devices) for x, s in zip(call.avals_in, operand_shardings)],
            [_described(x, s, devices) for x, s in zip(call.avals_out, result_shardings)],
        )

    def _structs(self, avals: Avals, described: Sequence[HloSharding]) -> list[ShapeDtypeStruct]:
        """Return the shapes, dtypes and shardings of values, as `partition` takes them."""
        decoded = self._params["decode_shardings"]
        like = self._like if decoded else replicated(self._devices.devices)
        return [
            ShapeDtypeStruct(aval.shape, aval.dtype, sharding=_per_axis(each, like, aval.ndim))
            for aval, each in zip(avals, described, strict=True)
        ]

    def _flat(self, what: str, structure: PyTreeDef, returned: PyTree) -> list[Sharding]:
        """Return the shardings in a structure that `partition` returned.

        Raises:
          TypeError: if a leaf is not a sharding.
          ValueError: if the structure is not that of the arguments or results.
        """
        shardings = structure.flatten_up_to(returned)
        for sharding in shardings:
            if not isinstance(sharding, Sharding):
                raise TypeError(
                    f"{self._name} returns the shardings of {what}, such as those it was given: "
                    f"got {sharding!r} of type {type(sharding).__name__}"
                )
            if set(device_list_of(sharding)) != set(self._devices.devices):
                self._refuse(f"returns shardings of {what} over other devices: got {sharding}")
        return shardings

    def _refuse(self, reason: str) -> NoReturn:
        raise ValueError(f"{self._name}, the partition function, {reason}")


def _per_axis(described: HloSharding, like: Sharding, ndim: int) -> Sharding:
    """Return the result of `from_hlo`, with `ndim` entries in the spec of a NamedSharding."""
    sharding = from_hlo(described, like, ndim)
    if type(sharding) is not NamedSharding:
        return sharding
    entries = sharding.spec.partitions
    padded = (*entries, *(None,) * (ndim - len(entries)))
    return NamedSharding(sharding.mesh, sharding.spec.update(partitions=padded))


def _described(aval: ShapedArray, sharding: Sharding, devices: Sharding) -> HloSharding:
    """Return XLA's description of a sharding, for the array that stores a value.

    Args:
      aval: the type of the value.
      sharding: its sharding.
      devices: a sharding over the same devices, in the order of the program's.
    """
    ndim = aval.ndim
    if is_key(aval):
        sharding, ndim = stored_sharding(sharding, aval), len(aval.dtype.physical(aval.shape)[0])
    return hlo_sharding(reordered(sharding, devices, ndim), ndim)


def _listed(avals: Avals) -> str:
    return ", ".join(aval.str_short(short_dtypes=True) for aval in avals)
