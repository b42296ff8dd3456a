"""Reading exported programs; `format.py` describes the format that they are in."""

from collections.abc import Mapping, Sequence

from hlofront.base.boundary import boundary
from hlofront.bridge import foreign
from hlofront.core.sizes.scopes import SymbolicScope
from hlofront.core.sizes.symbolic import SizeExpression
from hlofront.pjrt import cache_file
from hlofront.runtime.export import header_checks, jax_format
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.effect_names import effect_named
from hlofront.runtime.export.exported import Exported, is_own
from hlofront.runtime.export.fields import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from hlofront.runtime.export.flatbuffers import DamagedBuffer
from hlofront.runtime.export.format import VERSION
from hlofront.runtime.export.header_checks import HeaderError, reading_of
from hlofront.runtime.export.records import (
    JSONObject,
    aval_of_record,
    sharding_of_record,
    structure_of_record,
)


@boundary
def deserialize(blob: bytes | bytearray, *, trust: bool = False) -> Exported:
    """Read a program that `Exported.serialize` has written, here or in JAX.

    Nothing of the program runs before it is called, and its module is not read before it is used:
    then another process reads and checks it, unless it is trusted or was serialized by this one.

    Args:
      blob: the bytes, in hlofront's format or in JAX's.
      trust: whether the program is your own. Then this process reads its module, which saves the
        start of another one, and its custom calls may be any.

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
    exported = read(bytes(blob), trust)
    if exported.is_foreign:
        # It is ready when the module is used. If none starts, that use says so.
        foreign.start()
    return exported


def read(data: bytes, trust: bool) -> Exported:
    """Read a program as `deserialize` does, and start no process."""
    # Few bytes may be a part of either format.
    if data.startswith(cache_file.MAGIC[:4]) or len(data) < _MIN_JAX_BYTES:
        return _deserialized(data, trust)
    try:
        fields = jax_format.read_fields(data)
    except DamagedBuffer as error:
        raise ValueError(
            "the serialized program is not in the format of hlofront, whose first bytes are "
            f"others, and is damaged if it is in JAX's: it {error}"
        ) from None
    return _from_jax(fields, trust)


# A FlatBuffer with fewer bytes has no table with the fields of a program.
_MIN_JAX_BYTES = 64


def _from_jax(fields: JSONObject, trust: bool) -> Exported:
    derivative = fields.pop("vjp")
    check_calling_convention(fields["fun_name"], fields["calling_convention_version"])
    with reading_of("the serialized program"):
        return _checked(
            Exported(
                **fields,
                _get_vjp=derivative and (lambda _: _from_jax(dict(derivative), trust)),
                is_foreign=not (trust or is_own(fields["mlir_module_serialized"])),
            )
        )


def _deserialized(data: bytes, trust: bool) -> Exported:
    """Read an exported program in this format.

    Raises:
      ValueError: if the bytes are damaged or of a newer version, with the reason.
    """
    try:
        fields = cache_file.unpack(data)
    except cache_file.DamagedEntry as error:
        raise ValueError(f"the serialized program {_as_program(error.reason)}") from None
    what = "the header of the serialized program"
    with reading_of(what):
        for name in ("header", "module"):
            if name not in fields:
                raise HeaderError(f"the file has no field {name}")
        header = header_checks.json_of(fields["header"])
    if header.get("kind") != "export":
        raise ValueError("the bytes are a serialized executable, or another thing, and no export")
    with reading_of(what):
        header_checks.VERSIONED(header, "it")
    if header["version"] > VERSION:
        raise ValueError(
            f"{header['name']} was exported by hlofront {header['hlofront']} in version "
            f"{header['version']} of the format, and this one reads up to {VERSION}: take a newer "
            "hlofront"
        )
    with reading_of(what):
        header_checks.EXPORT(header, "it")
    check_calling_convention(header["name"], header["calling_convention"])
    with reading_of(what):
        return _checked(_of_header(header, fields, trust))


def _of_header(header: JSONObject, fields: Mapping[str, bytes], trust: bool) -> Exported:
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
        _get_vjp=None if derivative is None else lambda _: _deserialized(derivative, trust),
        is_foreign=not (trust or is_own(fields["module"])),
    )


def _checked(exported: Exported) -> Exported:
    """Return an exported program whose fields fit each other.

    Raises:
      ValueError: if they do not.
    """
    for what, structure, avals, shardings in (
        ("arguments", exported.in_tree, exported.in_avals, exported.in_splits),
        ("results", exported.out_tree, exported.out_avals, exported.out_splits),
    ):
        if not structure.num_leaves == len(avals) == len(shardings):
            raise HeaderError(
                f"it has {len(avals)} types and {len(shardings)} shardings for a structure of "
                f"{structure.num_leaves} {what}"
            )
        for aval, sharding in zip(avals, shardings, strict=True):
            if sharding is not None and len(sharding.spec) > aval.ndim:
                raise HeaderError(f"it splits {aval.str_short()} by {sharding.spec}")
    roots = [child.node_data() for child in exported.in_tree.children()]
    if [root and root[0] for root in roots] != [tuple, dict]:
        raise HeaderError(f"{exported.in_tree} is not the structure of (args, kwargs)")
    taken = exported.module_kept_var_idx
    if any(not 0 <= position < len(exported.in_avals) for position in taken):
        raise HeaderError(f"its module takes the arguments {taken} of {len(exported.in_avals)}")
    if not exported.platforms or not 1 <= exported.nr_devices < _MAX_DEVICES:
        raise HeaderError(f"it is for {exported.nr_devices} devices of {exported.platforms}")
    solution = exported.unknown_sizes
    known = set() if solution is None else set(solution.values)
    for aval in exported.out_avals:
        missing = variables_of(aval.shape) - known
        if missing:
            raise HeaderError(f"its arguments do not determine the sizes {sorted(missing)}")
    return exported


def variables_of(shape: Sequence[int | SizeExpression]) -> set[str]:
    """Return the names of the variables in the sizes of a shape."""
    return {name for size in shape if isinstance(size, SizeExpression) for name in size.variables()}


_MAX_DEVICES = 1 << 24


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
