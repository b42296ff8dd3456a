"""JAX's file format of exported programs: a FlatBuffer of the tables that JAX's schema numbers.

The format has no checksum and no weak types: weak types come back as strong ones. The numbers of
fields and kinds are those of versions 2 to 11 of JAX's serialization, which stays readable.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from hlofront.base.dtypes import float0
from hlofront.base.tree import PyTreeDef
from hlofront.core.aval import MemorySpace, ShapedArray, Split
from hlofront.core.sharding.mesh import AbstractDevice, AbstractMesh, AxisType
from hlofront.core.sharding.partition import PartitionSpec, UnreducedKind, axes_of
from hlofront.core.sizes.scopes import SymbolicScope, symbolic_shape
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.random.keys import KeyDType, generator_named, key_dtype_of
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.containers import Node, node_of, structure_of
from hlofront.runtime.export.effect_names import effect_name, effect_named
from hlofront.runtime.export.fields import ExportedFields
from hlofront.runtime.export.flatbuffers import (
    DamagedBuffer,
    Number,
    Numbers,
    Table,
    TableView,
    written,
)

Member = TypeVar("Member")

# The version that JAX writes, whatever newer fields there are: old readers require 2 or 3.
_VERSION = 3
_MAX_ARGUMENTS = 1 << 16

_TREE_KINDS = ["leaf", "none", "tuple", "list", "dict", "custom"]
_PLATFORM_CHECK, _CUSTOM_CALL_CHECK = 0, 1
_MEMORIES = [None, MemorySpace.Device, MemorySpace.Host, MemorySpace.Any]
_AXIS_TYPES = [None, AxisType.Auto, AxisType.Explicit, AxisType.Manual]
# The dtypes in the order of their numbers.
_DTYPES: list[Any] = [
    *map(
        np.dtype,
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
        "complex128".split(),
    ),
    *[
        np.dtype(getattr(ml_dtypes, name))
        for name in "bfloat16 int4 uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
        "float8_e5m2 float8_e5m2fnuz".split()
    ],
    float0,
    *[
        np.dtype(getattr(ml_dtypes, name))
        for name in "float8_e4m3 float8_e3m4 float8_e8m0fnu float4_e2m1fn".split()
    ],
]
_DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}
# The generators of random keys, whose numbers follow.
_GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]
_FIRST_KEY = len(_DTYPES)


# ---- writing -------------------------------------------------------------------------------------


def serialized(exported: ExportedFields, vjp_order: int) -> bytes:
    """Return an exported program, with `vjp_order` derivatives of it, in JAX's format.

    Raises:
      ValueError: if it has no derivative, or something that has no serialized form in JAX.
      TypeError: if a dictionary has keys that are not strings.
    """
    return written(_exported_table(exported, vjp_order))


def _exported_table(exported: ExportedFields, vjp_order: int) -> Table:
    if len(exported.in_avals) > _MAX_ARGUMENTS:
        raise ValueError(
            f"{exported.fun_name} has {len(exported.in_avals)} arguments, and JAX's format numbers "
            f"up to {_MAX_ARGUMENTS}: serialize it in the format 'hlofront'"
        )
    avals = list(dict.fromkeys(map(_unsplit, (*exported.in_avals, *exported.out_avals))))
    splits = [*exported.in_splits, *exported.out_splits]
    shardings = list(dict.fromkeys(split for split in splits if split is not None))
    meshes = list(dict.fromkeys(sharding.mesh.abstract_mesh for sharding in shardings))
    tables = [
        _sharding_table(sharding, meshes.index(sharding.mesh.abstract_mesh))
        for sharding in shardings
    ]

    def each_sharding(of: Sequence[NamedSharding | None]) -> list[str | Table]:
        return [
            {} if sharding is None else {2: tables[shardings.index(sharding)]} for sharding in of
        ]

    def numbers_of(of: Sequence[NamedSharding | None]) -> Numbers:
        return Numbers(
            "I", [0 if sharding is None else 1 + shardings.index(sharding) for sharding in of]
        )

    def types_of(of: Sequence[ShapedArray]) -> tuple[list[str | Table], Numbers]:
        plain = list(map(_unsplit, of))
        return list(map(_aval_table, plain)), Numbers("I", [avals.index(aval) for aval in plain])

    inputs, input_numbers = types_of(exported.in_avals)
    outputs, output_numbers = types_of(exported.out_avals)
    table: dict[int, Any] = {
        0: Number("H", _VERSION),
        1: exported.fun_name,
        2: _tree_table(exported.in_tree),
        3: inputs,
        4: _tree_table(exported.out_tree),
        5: outputs,
        7: each_sharding(exported.in_splits),
        8: each_sharding(exported.out_splits),
        9: list(exported.platforms),
        10: [{0: effect_name(effect)} for effect in exported.ordered_effects],
        11: [{0: effect_name(effect)} for effect in exported.unordered_effects],
        12: list(map(_check_table, exported.disabled_safety_checks)),
        13: exported.mlir_module_serialized,
        14: Number("H", exported.calling_convention_version),
        15: Numbers("H", exported.module_kept_var_idx),
        16: Number("?", exported.uses_global_constants),
        18: Number("I", exported.nr_devices),
        19: list(map(_aval_table, avals)),
        20: list(map(_mesh_table, meshes)),
        21: tables,
        22: input_numbers,
        23: output_numbers,
        24: numbers_of(exported.in_splits),
        25: numbers_of(exported.out_splits),
    }
    if vjp_order > 0:
        table[17] = _exported_table(exported.vjp(), vjp_order - 1)
    return table


def _unsplit(aval: ShapedArray) -> ShapedArray:
    """Return what the format says of a type: its shape, dtype and memory."""
    return ShapedArray(aval.shape, aval.dtype, memory_space=aval.memory_space)


def _tree_table(structure: PyTreeDef) -> Table:
    node = node_of(structure)
    table: dict[int, Any] = {0: Number("b", _TREE_KINDS.index(node.kind))}
    if node.children:
        table[1] = [_tree_table(child) for child in node.children if isinstance(child, PyTreeDef)]
    if node.kind == "dict":
        table[2] = list(node.keys)
    if node.kind == "custom":
        table[3], table[4] = node.name, node.data
    return table


def _aval_table(aval: ShapedArray) -> Table:
    dtype = aval.dtype
    if isinstance(dtype, KeyDType) and dtype.generator.name in _GENERATORS:
        number = _FIRST_KEY + _GENERATORS.index(dtype.generator.name)
    elif dtype in _DTYPE_NUMBERS:
        number = _DTYPE_NUMBERS[dtype]
    else:
        raise ValueError(
            f"JAX's format has no values of dtype {dtype}: serialize in the format 'hlofront'"
        )
    memory = Number("b", _MEMORIES.index(aval.memory_space))
    return {0: Number("b", 0), 1: list(map(str, aval.shape)), 2: Number("b", number), 3: memory}


def _mesh_table(mesh: AbstractMesh) -> Table:
    table: dict[int, Any] = {
        0: Numbers("I", mesh.axis_sizes),
        1: list(map(str, mesh.axis_names)),
        2: Numbers("b", [_AXIS_TYPES.index(kind) for kind in mesh.axis_types]),
    }
    device = mesh.abstract_device
    if device is not None:
        table[3] = {0: device.device_kind, 2: device.platform}
        if device.num_cores is not None:
            table[3][1] = Number("I", device.num_cores)
    return table


def _sharding_table(sharding: NamedSharding, mesh_number: int) -> Table:
    spec = sharding.spec
    if spec.unreduced_kind not in (None, UnreducedKind.sum):
        raise ValueError(
            f"JAX's format has no shardings of another unreduced_kind than sum, and got {spec}: "
            "serialize in the format 'hlofront'"
        )
    table: dict[int, Any] = {
        0: _mesh_table(sharding.mesh.abstract_mesh),
        1: {
            0: [{0: list(map(str, axes_of(entry)))} for entry in spec.partitions],
            1: sorted(map(str, spec.reduced)),
            2: sorted(map(str, spec.unreduced)),
        },
        3: Number("I", mesh_number),
    }
    if sharding.memory_kind is not None:
        table[2] = sharding.memory_kind
    return table


def _check_table(check: DisabledSafetyCheck) -> Table:
    target = check.is_custom_call()
    if target is None:
        return {0: Number("b", _PLATFORM_CHECK)}
    return {0: Number("b", _CUSTOM_CALL_CHECK), 1: target}


# ---- reading -------------------------------------------------------------------------------------


def read_fields(data: bytes) -> "dict[str, Any]":
    """Read the fields of an exported program that JAX has serialized.

    Returns:
      The arguments of `Exported` except `_get_vjp`, and "vjp": the same for its derivative, or
    None.

    Raises:
      ValueError: if the bytes are no such program, or need what is not here.
    """
    try:
        return _fields(TableView.root(data))
    except ValueError:
        raise
    # Its values reach constructors of many classes, and functions of the user's own.
    except Exception as error:
        raise DamagedBuffer(f"has what no program has: {type(error).__name__}: {error}") from error


def _fields(view: TableView) -> "dict[str, Any]":
    meshes = [_mesh(table) for table in view.tables(20)]
    shardings = [None, *(_sharding(table, meshes) for table in view.tables(21))]
    scope = SymbolicScope()
    types = [_aval(table, scope) for table in view.tables(19)]
    parts = types, shardings, meshes, scope
    in_avals, in_splits = _values(view, *parts, (3, 7, 22, 24))
    out_avals, out_splits = _values(view, *parts, (5, 8, 23, 25))
    derivative = view.table(17)
    in_tree, out_tree = view.table(2), view.table(4)
    if in_tree is None or out_tree is None or not view.data(13):
        raise DamagedBuffer("has no structure of arguments, or no module")
    fields = {
        "fun_name": view.text(1),
        "in_tree": _structure(in_tree),
        "in_avals": in_avals,
        "out_tree": _structure(out_tree),
        "out_avals": out_avals,
        "_has_named_shardings": True,
        "_in_named_shardings": in_splits,
        "_out_named_shardings": out_splits,
        "in_shardings_hlo": (None,) * len(in_avals),
        "out_shardings_hlo": (None,) * len(out_avals),
        # Version 5 has replaced the field 6, of two bytes.
        "nr_devices": view.number(18, "I") or view.number(6, "h"),
        "platforms": tuple(view.texts(9)),
        "ordered_effects": tuple(effect_named(table.text(0)) for table in view.tables(10)),
        "unordered_effects": tuple(effect_named(table.text(0)) for table in view.tables(11)),
        "disabled_safety_checks": tuple(map(_check, view.tables(12))),
        "mlir_module_serialized": view.data(13),
        "calling_convention_version": view.number(14, "H"),
        "module_kept_var_idx": view.numbers(15, "H"),
        "uses_global_constants": bool(view.number(16, "?")),
        "vjp": None if derivative is None else _fields(derivative),
    }
    for tree, avals in ((fields["in_tree"], in_avals), (fields["out_tree"], out_avals)):
        if tree.num_leaves != len(avals):
            raise DamagedBuffer(f"has {len(avals)} types for a structure of {tree.num_leaves}")
    return fields


def _values(
    view: TableView,
    types: Sequence[ShapedArray],
    shardings: Sequence[NamedSharding | None],
    meshes: Sequence[AbstractMesh],
    scope: SymbolicScope,
    numbers: tuple[int, int, int, int],
) -> tuple[tuple[ShapedArray, ...], tuple[NamedSharding | None, ...]]:
    """Return the types and shardings of arguments or results.

    Args:
      types, shardings, meshes: the tables of them that version 10 has, with None before shardings.
      scope: the scope of symbolic sizes.
      numbers: the numbers of four fields: all types and all shardings, as versions before 10 have
        them, and the indices into those tables.
    """
    of_types, of_shardings, type_indices, sharding_indices = numbers
    indices = view.numbers(type_indices, "I")
    chosen = view.numbers(sharding_indices, "I")
    if indices:
        avals = [_member(types, index) for index in indices]
        splits = [_member(shardings, index) for index in chosen]
    else:
        avals = [_aval(table, scope) for table in view.tables(of_types)]
        splits = [_old_sharding(table, meshes) for table in view.tables(of_shardings)]
    if len(avals) != len(splits):
        raise DamagedBuffer(f"has {len(avals)} types and {len(splits)} shardings")
    return tuple(map(_typed, avals, splits)), tuple(splits)


def _member(members: Sequence[Member], index: int) -> Member:
    if not 0 <= index < len(members):
        raise DamagedBuffer(f"refers to number {index} of {len(members)}")
    return members[index]


def _old_sharding(view: TableView, meshes: Sequence[AbstractMesh]) -> NamedSharding | None:
    named = view.table(2)
    if named is not None:
        return _sharding(named, meshes)
    if view.data(1):
        raise ValueError(
            "the program was exported by a version of JAX before 2026 for several devices, with "
            "shardings that name no mesh: export it again with a newer one"
        )
    return None


def _typed(aval: ShapedArray, sharding: NamedSharding | None) -> ShapedArray:
    if sharding is None or not sharding.mesh.explicit_axes:
        return aval
    return aval.update(sharding=Split(sharding.mesh, sharding.spec))


def _structure(view: TableView) -> PyTreeDef:
    kind = _member(_TREE_KINDS, view.number(0, "B"))
    children = [_structure(child) for child in view.tables(1)]
    keys = tuple(view.texts(2))
    if kind == "dict" and len(keys) != len(children):
        raise DamagedBuffer(f"has a dictionary with {len(keys)} keys and {len(children)} values")
    return structure_of(Node(kind, keys, view.text(3), view.data(4), children))


def _aval(view: TableView, scope: SymbolicScope) -> ShapedArray:
    shape = symbolic_shape(", ".join(view.texts(1)), scope=scope)
    number = view.number(2, "b")
    if number >= _FIRST_KEY:
        dtype: Any = key_dtype_of(generator_named(_member(_GENERATORS, number - _FIRST_KEY)))
    else:
        dtype = _member(_DTYPES, number)
    memory = _member(_MEMORIES, view.number(3, "b")) or MemorySpace.Device
    return ShapedArray(shape, dtype, memory_space=memory)


def _mesh(view: TableView) -> AbstractMesh:
    device = view.table(3)
    cores = 0 if device is None else device.number(1, "I")
    kinds = [_member(_AXIS_TYPES, number) for number in view.numbers(2, "b")]
    return AbstractMesh(
        view.numbers(0, "I"),
        tuple(view.texts(1)),
        tuple(AxisType.Auto if kind is None else kind for kind in kinds),
        abstract_device=device and AbstractDevice(device.text(0), cores or None, device.text(2)),
    )


def _sharding(view: TableView, meshes: Sequence[AbstractMesh]) -> NamedSharding:
    own, spec = view.table(0), view.table(1)
    if spec is None or (own is None and not meshes):
        raise DamagedBuffer("has a sharding without a mesh or a spec")
    mesh = _member(meshes, view.number(3, "I")) if meshes or own is None else _mesh(own)
    entries = [tuple(axis.texts(0)) for axis in spec.tables(0)]
    return NamedSharding(
        mesh,
        PartitionSpec(
            *[(axes[0] if len(axes) == 1 else axes) if axes else None for axes in entries],
            reduced=frozenset(spec.texts(1)),
            unreduced=frozenset(spec.texts(2)),
        ),
        memory_kind=view.text(2) or None,
    )


def _check(view: TableView) -> DisabledSafetyCheck:
    kind = view.number(0, "b")
    if kind == _CUSTOM_CALL_CHECK:
        return DisabledSafetyCheck.custom_call(view.text(1))
    if kind == _PLATFORM_CHECK:
        return DisabledSafetyCheck.platform()
    raise ValueError(f"Cannot deserialize DisabledSafetyCheck with unknown kind: {kind}")
