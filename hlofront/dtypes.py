"""The public names of jax.dtypes."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "ml_dtypes": "finfo iinfo",
        "hlofront.base.dtypes": (
            "bit_width=itemsize_bits canonicalize_dtype issubdtype result_type scalar_type_of"
        ),
        "hlofront.base.elements": "bfloat16 extended float0 prng_key",
        "hlofront.base.errors": "TypePromotionError",
    },
)
