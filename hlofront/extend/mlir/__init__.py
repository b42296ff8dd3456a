"""jax.extend.mlir: MLIR with its dialects, and StableHLO as bytes."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="dialects ir passmanager",
    later={
        "hlofront.bridge.mlir_bytes": (
            "deserialize_portable_artifact hlo_to_stablehlo refine_polymorphic_shapes "
            "serialize_portable_artifact"
        ),
        "hlofront.lowering.extension.rules": "lower_with_sharding_in_types",
    },
)
