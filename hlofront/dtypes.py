"""The public names of jax.dtypes."""

from ml_dtypes import finfo, iinfo

from hlofront.base.dtypes import bit_width as itemsize_bits
from hlofront.base.dtypes import canonicalize_dtype, issubdtype, result_type, scalar_type_of
from hlofront.base.elements import bfloat16, extended, float0, prng_key
from hlofront.base.errors import TypePromotionError

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
