"""jaxlib's functions on serialized modules: portable StableHLO, shapes and HLO."""

from typing import Any

from hlofront.bridge import state

_functions: Any = state.extension.mlir
deserialize_portable_artifact = _functions.deserialize_portable_artifact
serialize_portable_artifact = _functions.serialize_portable_artifact
refine_polymorphic_shapes = _functions.refine_polymorphic_shapes
hlo_to_stablehlo = _functions.hlo_to_stablehlo
