"""Reading exported programs; `format.py` describes the format that they are in."""

import json

from hlofront.base.boundary import boundary
from hlofront.core.size_scopes import SymbolicScope
from hlofront.pjrt import cache_file
from hlofront.runtime.export import jax_format
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.effect_names import effect_named
from hlofront.runtime.export.exported import Exported
from hlofront.runtime.export.fields import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from hlofront.runtime.export.flatbuffers import DamagedBuffer
from hlofront.runtime.export.format import VERSION
from hlofront.runtime.export.records import (
    JSONObject,
    aval_of_record,
    sharding_of_record,
    structure_of_record,
)


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
    in_avals = tuple(aval_of_record(record, scope) for record in header["inputs"])
    out_avals = tuple(aval_of_record(record, scope) for record in header["outputs"])
    count_in, count_out = len(header["inputs"]), len(header["outputs"])
    return Exported(
        fun_name=header["name"],
        in_tree=structure_of_record(header["in_tree"]),
        in_avals=in_avals,
        out_tree=structure_of_record(header["out_tree"]),
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=tuple(map(sharding_of_record, header["input_shardings"])),
        _out_named_shardings=tuple(map(sharding_of_record, header["output_shardings"])),
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
