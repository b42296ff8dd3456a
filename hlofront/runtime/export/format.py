"""The file format of exported programs: named fields with a checksum, without pickle.

The container is that of `pjrt/cache_file.py`: a magic number, a version, a table of fields, their
values, and a SHA-256 over all of it. Its fields are

    header   a JSON object: what `_header` writes, with "kind": "export" and "version"
    module   the program's module, a StableHLO portable artifact
    vjp      its derivative in this same format; absent if it is not included

Reading runs no code of the program. A module is pure StableHLO, which later versions of jaxlib read
for five years. Versions of up to two years before read it too, if its types and operations are as
old, and else those of the four weeks before: `lasting_artifact` of `bridge/mlir.py` writes it so.
Custom calls among STABLE_TARGETS of `checks.py` are as stable as JAX's.

A symbolic size in a shape is a text, and "constraints" has those of its variables, which are the
same in all shapes of a program.

`records.py` says how structures, types and shardings are written in the header.
"""

import json

from hlofront.base.version import __version__
from hlofront.bridge.plugins import jaxlib_version
from hlofront.pjrt import cache_file
from hlofront.runtime.export.effect_names import effect_name
from hlofront.runtime.export.fields import ExportedFields
from hlofront.runtime.export.records import (
    JSONObject,
    aval_as_json,
    sharding_as_json,
    structure_as_json,
)

# The version of the header. Versions that only add keys with defaults keep it.
VERSION = 2
# The version that has the same keys, but no symbolic sizes.
_WITHOUT_SYMBOLIC_SIZES = 1


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
    from hlofront.bridge.mlir import version_of_artifact

    solution = exported.unknown_sizes
    return {
        "kind": "export",
        "version": VERSION if solution else _WITHOUT_SYMBOLIC_SIZES,
        "constraints": solution.constraints if solution else [],
        "hlofront": __version__,
        "jaxlib": jaxlib_version(),
        "stablehlo": version_of_artifact(exported.mlir_module_serialized),
        "name": exported.fun_name,
        "in_tree": structure_as_json(exported.in_tree),
        "out_tree": structure_as_json(exported.out_tree),
        "inputs": list(map(aval_as_json, exported.in_avals)),
        "outputs": list(map(aval_as_json, exported.out_avals)),
        "input_shardings": list(map(sharding_as_json, exported.in_splits)),
        "output_shardings": list(map(sharding_as_json, exported.out_splits)),
        "devices": exported.nr_devices,
        "platforms": list(exported.platforms),
        "ordered_effects": list(map(effect_name, exported.ordered_effects)),
        "unordered_effects": list(map(effect_name, exported.unordered_effects)),
        "disabled_checks": list(map(str, exported.disabled_safety_checks)),
        "calling_convention": exported.calling_convention_version,
        "taken": list(exported.module_kept_var_idx),
        "global_constants": exported.uses_global_constants,
    }
