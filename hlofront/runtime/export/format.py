"""The file format of exported programs: named fields with a checksum, and no pickle.

The container is that of `pjrt/cache_file.py`: a magic number, a version, a table of fields, their
values, and a SHA-256 over all of it. Its fields are

    header   a JSON object: what `_header` writes, with "kind": "export" and "version"
    module   the program's module, a StableHLO portable artifact
    vjp      its derivative in this same format; absent if it is not included

Reading runs no code of the program. A module is pure StableHLO, which later versions of jaxlib read
for five years and older ones for the four weeks that `compatible_stablehlo_version` is behind;
custom calls among STABLE_TARGETS of `checks.py` are as stable as JAX's.

A symbolic size in a shape is a text, and "constraints" has those of its variables, which are the
same in all shapes of a program.

In the header, a structure is a list: ["leaf"], ["none"], ["tuple", children], ["list", children],
["dict", keys, children] or ["custom", registered name, static data in base64, children]. A type is
{"shape", "dtype", "weak_type", "memory"}, with "keys", a generator's name, in place of the dtype of
random keys, and "split", a sharding, where it says how explicit mesh axes split it. A sharding is
{"axes": [[name, size, type]], "device": [kind, cores, platform] or null, "spec": [[mesh axis]],
"reduced", "unreduced", "memory"}; an axis of a spec is null where XLA decides.
"""

import base64
import json
from typing import Any

from hlofront.base.dtypes import float0
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTreeDef
from hlofront.base.version import __version__
from hlofront.bridge.client import NamedSharding
from hlofront.bridge.mlir import compatible_stablehlo_version
from hlofront.bridge.plugins import jaxlib_version
from hlofront.core.aval import ShapedArray
from hlofront.core.mesh import AbstractMesh
from hlofront.core.partition import UNCONSTRAINED, PartitionSpec, axes_of
from hlofront.core.symbolic_sizes import is_symbolic_dim
from hlofront.pjrt import cache_file
from hlofront.primitives.keys import KeyDType
from hlofront.runtime.export.containers import Node, node_of
from hlofront.runtime.export.effect_names import effect_name
from hlofront.runtime.export.fields import ExportedFields

# The version of the header. Versions that only add keys with defaults keep it.
VERSION = 2
# The version that has the same keys, but no symbolic sizes.
_WITHOUT_SYMBOLIC_SIZES = 1
# A record of a header, as the module json reads it.
JSONObject = dict[str, Any]


def serialized(exported: ExportedFields, vjp_order: int) -> bytes:
    """Return an exported program, with `vjp_order` derivatives of it, in this format.

    Raises:
      ValueError: if it has no derivative, or something that has no serialized form.
      TypeError: if a dictionary has keys that are not strings.
    """
    fields = {
        "header": json.dumps(_header(exported)).encode(),
        "module": exported.mlir_module_serialized,
    }
    if vjp_order > 0:
        fields["vjp"] = serialized(exported.vjp(), vjp_order - 1)
    return cache_file.pack(fields)


def _header(exported: ExportedFields) -> JSONObject:
    solution = exported.unknown_sizes
    return {
        "kind": "export",
        "version": VERSION if solution else _WITHOUT_SYMBOLIC_SIZES,
        "constraints": solution.constraints if solution else [],
        "hlofront": __version__,
        "jaxlib": jaxlib_version(),
        "stablehlo": compatible_stablehlo_version(),
        "name": exported.fun_name,
        "in_tree": _structure_as_json(exported.in_tree),
        "out_tree": _structure_as_json(exported.out_tree),
        "inputs": list(map(_aval_as_json, exported.in_avals)),
        "outputs": list(map(_aval_as_json, exported.out_avals)),
        "input_shardings": list(map(_sharding_as_json, exported.in_splits)),
        "output_shardings": list(map(_sharding_as_json, exported.out_splits)),
        "devices": exported.nr_devices,
        "platforms": list(exported.platforms),
        "ordered_effects": list(map(effect_name, exported.ordered_effects)),
        "unordered_effects": list(map(effect_name, exported.unordered_effects)),
        "disabled_checks": list(map(str, exported.disabled_safety_checks)),
        "calling_convention": exported.calling_convention_version,
        "taken": list(exported.module_kept_var_idx),
        "global_constants": exported.uses_global_constants,
    }


def _structure_as_json(structure: PyTreeDef) -> list[Any]:
    node = node_of(structure)
    children = [_structure_as_json(child) for child in node.children if not isinstance(child, Node)]
    if node.kind == "dict":
        return ["dict", list(node.keys), children]
    if node.kind == "custom":
        return ["custom", node.name, base64.b64encode(node.data).decode(), children]
    return [node.kind, children] if node.kind in ("tuple", "list") else [node.kind]


def _aval_as_json(aval: ShapedArray) -> JSONObject:
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


def _sharding_as_json(sharding: NamedSharding | None) -> JSONObject | None:
    if sharding is None:
        return None
    return _split_as_json(sharding.mesh.abstract_mesh, sharding.spec, sharding.memory_kind)


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
        "unreduced": sorted(map(str, spec.unreduced)),
        "memory": memory,
    }
