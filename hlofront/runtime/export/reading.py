"""Reading exported programs; `format.py` describes the format that they are in."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import dtype_of, float0
from hlofront.base.tree import PyTreeDef
from hlofront.core.aval import MemorySpace, ShapedArray, Split
from hlofront.core.mesh import AbstractDevice, AbstractMesh, AxisType
from hlofront.core.partition import UNCONSTRAINED, PartitionSpec
from hlofront.core.size_scopes import SymbolicScope, symbolic_shape
from hlofront.pjrt import cache_file
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.keys import generator_named, key_dtype_of
from hlofront.runtime.export import jax_format
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.containers import Node, structure_of
from hlofront.runtime.export.effect_names import effect_named
from hlofront.runtime.export.exported import Exported
from hlofront.runtime.export.fields import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from hlofront.runtime.export.flatbuffers import DamagedBuffer
from hlofront.runtime.export.format import VERSION, JSONObject


@boundary
def deserialize(blob: bytes | bytearray) -> Exported:
    """Read a program that `Exported.serialize` has written, here or in JAX.

    No code of the user runs. JAX's format has no checksum: read it from trusted sources alone.

    Args:
      blob: the bytes, in hlofront's format or in JAX's.

    Returns:
      The program, for the same types, platforms and number of devices.

    Raises:
      ValueError: if the bytes are damaged, or of a newer format, or have a container of a class
        that is not registered for serialization here.

    Example:
      >>> spec = jax.ShapeDtypeStruct((3,), "float32")
      >>> blob = jax.export.export(jax.jit(jnp.sin))(spec).serialize()
      >>> jax.export.deserialize(blob).call(jnp.zeros(3))
      Array([0., 0., 0.], dtype=float32)
    """
    data = bytes(blob)
    # Few bytes may be a part of either format.
    if data.startswith(cache_file.MAGIC[:4]) or len(data) < _LEAST_OF_JAX:
        return _deserialized(data)
    try:
        fields = jax_format.read_fields(data)
    except DamagedBuffer as error:
        raise ValueError(
            "the serialized program is not in the format of hlofront, whose first bytes are "
            f"others, and is damaged if it is in JAX's: it {error}"
        ) from None
    return _from_jax(fields)


# A FlatBuffer with fewer bytes has no table with the fields of a program.
_LEAST_OF_JAX = 64


def _from_jax(fields: JSONObject) -> Exported:
    derivative = fields.pop("vjp")
    check_calling_convention(fields["fun_name"], fields["calling_convention_version"])
    return Exported(**fields, _get_vjp=derivative and (lambda _: _from_jax(dict(derivative))))


def _deserialized(data: bytes) -> Exported:
    """Read an exported program in this format.

    Raises:
      ValueError: if the bytes are damaged or of a newer version, with the reason.
    """
    try:
        fields = cache_file.unpack(data)
    except cache_file.DamagedEntry as error:
        raise ValueError(f"the serialized program {_as_program(error.reason)}") from None
    header = json.loads(fields["header"])
    if header.get("kind") != "export":
        raise ValueError("the bytes are a serialized executable, or another thing, and no export")
    if header["version"] > VERSION:
        raise ValueError(
            f"{header['name']} was exported by hlofront {header['hlofront']} in version "
            f"{header['version']} of the format, and this one reads up to {VERSION}: take a newer "
            "hlofront"
        )
    check_calling_convention(header["name"], header["calling_convention"])
    derivative = fields.get("vjp")
    scope = SymbolicScope(header.get("constraints", ()))
    in_avals = tuple(_aval(record, scope) for record in header["inputs"])
    out_avals = tuple(_aval(record, scope) for record in header["outputs"])
    count_in, count_out = len(header["inputs"]), len(header["outputs"])
    return Exported(
        fun_name=header["name"],
        in_tree=_structure(header["in_tree"]),
        in_avals=in_avals,
        out_tree=_structure(header["out_tree"]),
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=tuple(map(_sharding, header["input_shardings"])),
        _out_named_shardings=tuple(map(_sharding, header["output_shardings"])),
        in_shardings_hlo=(None,) * count_in,
        out_shardings_hlo=(None,) * count_out,
        nr_devices=header["devices"],
        platforms=tuple(header["platforms"]),
        ordered_effects=tuple(map(effect_named, header["ordered_effects"])),
        unordered_effects=tuple(map(effect_named, header["unordered_effects"])),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, header["disabled_checks"])),
        mlir_module_serialized=fields["module"],
        calling_convention_version=header["calling_convention"],
        module_kept_var_idx=tuple(header["taken"]),
        uses_global_constants=header["global_constants"],
        _get_vjp=None if derivative is None else lambda _: _deserialized(derivative),
    )


def _as_program(reason: str) -> str:
    return reason.replace("an entry of this cache", "an exported program")


def check_calling_convention(name: str, version: int) -> None:
    """Raise a ValueError if a module's arguments follow a convention that calls do not know."""
    low = minimum_supported_calling_convention_version
    high = maximum_supported_calling_convention_version
    if not low <= version <= high:
        raise ValueError(
            f"The export calling convention version {version} of {name} is outside the range of "
            f"supported versions [{low}..{high}]: export it again, or take a newer hlofront"
        )


def _structure(record: Sequence[Any]) -> PyTreeDef:
    kind, *rest = record
    children = [_structure(child) for child in rest[-1]] if rest else []
    if kind == "dict":
        return structure_of(Node("dict", tuple(rest[0]), children=children))
    if kind == "custom":
        try:
            data = base64.b64decode(rest[1], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the static data of {rest[0]} is no base64: {error}") from None
        return structure_of(Node("custom", name=rest[0], data=data, children=children))
    return structure_of(Node(kind, children=children))


def _aval(record: JSONObject, scope: SymbolicScope) -> ShapedArray:
    memory = MemorySpace[record["memory"]]
    if "keys" in record:
        dtype: Any = key_dtype_of(generator_named(record["keys"]))
    else:
        dtype = float0 if record["dtype"] == "float0" else dtype_of(record["dtype"])
    split = record.get("split")
    return ShapedArray(
        symbolic_shape(", ".join(map(str, record["shape"])), scope=scope),
        dtype,
        record["weak_type"],
        sharding=None if split is None else Split(*_mesh_and_spec(split)),
        memory_space=memory,
    )


def _sharding(record: JSONObject | None) -> NamedSharding | None:
    if record is None:
        return None
    mesh, spec = _mesh_and_spec(record)
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
    reduced, unreduced = frozenset(record["reduced"]), frozenset(record["unreduced"])
    return mesh, PartitionSpec(*entries, reduced=reduced, unreduced=unreduced)


def _entry(axes: Sequence[str]) -> str | tuple[str, ...] | None:
    if len(axes) > 1:
        return tuple(axes)
    return axes[0] if axes else None
