"""jax.extend.mlir: MLIR with its dialects, and StableHLO as bytes."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    ("dialects", "ir", "passmanager"),
    {
        **dict.fromkeys(
            (
                "deserialize_portable_artifact",
                "hlo_to_stablehlo",
                "refine_polymorphic_shapes",
                "serialize_portable_artifact",
            ),
            "hlofront.bridge.mlir_bytes",
        ),
        "lower_with_sharding_in_types": "hlofront.lowering.extension.rules",
    },
)
