"""Structures, types and shardings as JSON records, as files of programs have them, and back.

A structure is a list: ["leaf"], ["none"], ["tuple", children], ["list", children],
["dict", keys, children] or ["custom", registered name, static data in base64, children]. A type is
{"shape", "dtype", "weak_type", "memory"}, with "keys", a generator's name, instead of the dtype of
random keys, and "split", a sharding, if explicit mesh axes split it. A sharding is {"axes": [[name,
size, type]], "device": [kind, cores, platform] or null, "spec": [[mesh axis]], "reduced",
"unreduced", "memory"}; an axis of a spec is null where XLA decides.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import dtype_of, float0
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTreeDef
from hlofront.bridge.client import Device
from hlofront.core.aval import MemorySpace, ShapedArray, Split
from hlofront.core.sharding.mesh import AbstractDevice, AbstractMesh, AxisType, Mesh
from hlofront.core.sharding.partition import UNCONSTRAINED, PartitionSpec, UnreducedKind, axes_of
from hlofront.core.sizes.scopes import SymbolicScope, symbolic_shape
from hlofront.core.sizes.symbolic import is_symbolic_dim
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.random.keys import KeyDType, generator_named, key_dtype_of
from hlofront.runtime.export.containers import Node, node_of, structure_of

# A record of a header, as the module json reads it.
JSONObject = dict[str, Any]

# ---- written -------------------------------------------------------------------------------------


def structure_as_json(structure: PyTreeDef) -> list[Any]:
    node = node_of(structure)
    children = [structure_as_json(child) for child in node.children if not isinstance(child, Node)]
    if node.kind == "dict":
        return ["dict", list(node.keys), children]
    if node.kind == "custom":
        return ["custom", node.name, base64.b64encode(node.data).decode(), children]
    return [node.kind, children] if node.kind in ("tuple", "list") else [node.kind]


def aval_as_json(aval: ShapedArray) -> JSONObject:
    """Return the record of a type.

    Raises:
      ValueError: if it has a dtype without a serialized form.
    """
    record: JSONObject = {
        "shape": [str(size) if is_symbolic_dim(size) else size for size in aval.shape],
        "weak_type": aval.weak_type,
        "memory": aval.memory_space.name,
    }
    dtype = aval.dtype
    if isinstance(dtype, KeyDType):
        record["keys"] = dtype.generator.name
    elif isinstance(dtype, ExtendedDType):
        raise ValueError(f"values of dtype {dtype} cannot be serialized: {aval.str_short()}")
    else:
        record["dtype"] = "float0" if dtype == float0 else dtype.name
    if aval.spec is not None:
        record["split"] = _split_as_json(aval.sharding.mesh, aval.spec, None)
    return record


def sharding_as_json(sharding: NamedSharding | None) -> JSONObject | None:
    """Return the record of a sharding without its devices; None where XLA decides."""
    if sharding is None:
        return None
    return _split_as_json(sharding.mesh.abstract_mesh, sharding.spec, sharding.memory_kind)


def placed_sharding_as_json(sharding: NamedSharding, devices: Sequence[Device]) -> JSONObject:
    """Return the record of a sharding with the numbers of its mesh's devices in a program.

    Args:
      sharding: a sharding over some of the devices.
      devices: the devices of the program, in the order of their numbers.
    """
    numbers = {device: number for number, device in enumerate(devices)}
    mesh = sharding.mesh
    record = _split_as_json(mesh.abstract_mesh, sharding.spec, sharding.memory_kind)
    return {**record, "devices": [numbers[device] for device in mesh.devices.flat]}


def _split_as_json(mesh: AbstractMesh, spec: PartitionSpec, memory: str | None) -> JSONObject:
    device = mesh.abstract_device
    return {
        "device": device and [device.device_kind, device.num_cores, device.platform],
        "axes": [
            [name, size, kind.name]
            for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types, strict=True)
        ],
        "spec": [
            None if entry is UNCONSTRAINED else list(axes_of(entry)) for entry in spec.partitions
        ],
        "reduced": sorted(map(str, spec.reduced)),
        "unreduced": _unreduced_as_json(spec),
        "memory": memory,
    }


def _unreduced_as_json(spec: PartitionSpec) -> Any:
    """Return the names of the unreduced axes, under their kind if it is not the sum."""
    names = sorted(map(str, spec.unreduced))
    kind = spec.unreduced_kind
    return names if kind in (None, UnreducedKind.sum) else {kind.name: names}


# ---- read ----------------------------------------------------------------------------------------


def structure_of_record(record: Sequence[Any]) -> PyTreeDef:
    """Return the structure of a record.

    Raises:
      ValueError: if a container's class is not registered for serialization here.
    """
    kind, *rest = record
    children = [structure_of_record(child) for child in rest[-1]] if rest else []
    if kind == "dict":
        return structure_of(Node("dict", tuple(rest[0]), children=children))
    if kind == "custom":
        try:
            data = base64.b64decode(rest[1], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the static data of {rest[0]} is not base64: {error}") from None
        return structure_of(Node("custom", name=rest[0], data=data, children=children))
    return structure_of(Node(kind, children=children))


def aval_of_record(record: JSONObject, scope: SymbolicScope | None = None) -> ShapedArray:
    """Return the type of a record; `scope` is that of the variables in its sizes, if it has any."""
    memory = MemorySpace[record["memory"]]
    if "keys" in record:
        dtype: Any = key_dtype_of(generator_named(record["keys"]))
    else:
        dtype = float0 if record["dtype"] == "float0" else dtype_of(record["dtype"])
    split = record.get("split")
    sizes = record["shape"]
    known = all(type(size) is int for size in sizes)
    shape = tuple(sizes) if known else symbolic_shape(", ".join(map(str, sizes)), scope=scope)
    if len(shape) != len(sizes) or any(type(size) is int and size < 0 for size in shape):
        raise ValueError(f"{sizes} is not a shape")
    return ShapedArray(
        shape,
        dtype,
        record["weak_type"],
        sharding=None if split is None else Split(*_mesh_and_spec(split)),
        memory_space=memory,
    )


def sharding_of_record(record: JSONObject | None) -> NamedSharding | None:
    """Return the sharding of a record over a mesh without devices; None where XLA decides."""
    if record is None:
        return None
    mesh, spec = _mesh_and_spec(record)
    return NamedSharding(mesh, spec, memory_kind=record["memory"])


def sharding_over(
    record: JSONObject, devices: Sequence[Device], numbers: Sequence[int] | None = None
) -> NamedSharding:
    """Return the sharding of a record over devices.

    Args:
      record: the record.
      devices: the devices of the program, in the order of their numbers.
      numbers: the numbers of the mesh's devices; by default the first ones, in order.
    """
    described, spec = _mesh_and_spec(record)
    numbers = range(described.size) if numbers is None else numbers
    grid = np.empty(described.size, object)
    grid[:] = [devices[number] for number in numbers]
    mesh = Mesh(
        grid.reshape(described.axis_sizes),
        described.axis_names,
        axis_types=described.axis_types,
    )
    return NamedSharding(mesh, spec, memory_kind=record["memory"])


def _mesh_and_spec(record: JSONObject) -> tuple[AbstractMesh, PartitionSpec]:
    names, sizes, kinds = zip(*record["axes"], strict=True) if record["axes"] else ((), (), ())
    mesh = AbstractMesh(
        tuple(sizes),
        tuple(names),
        tuple(AxisType[kind] for kind in kinds),
        abstract_device=record["device"] and AbstractDevice(*record["device"]),
    )
    entries = [UNCONSTRAINED if axes is None else _entry(axes) for axes in record["spec"]]
    unreduced, kind = record["unreduced"], None
    if isinstance(unreduced, dict):
        ((name, unreduced),) = unreduced.items()
        kind = UnreducedKind[name]
    return mesh, PartitionSpec(
        *entries,
        reduced=frozenset(record["reduced"]),
        unreduced=frozenset(unreduced),
        unreduced_kind=kind,
    )


def _entry(axes: Sequence[str]) -> str | tuple[str, ...] | None:
    if len(axes) > 1:
        return tuple(axes)
    return axes[0] if axes else None
