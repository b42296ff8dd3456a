"""Values of arrays on the host, where they decide a shape, and results that were computed there."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import array_dtype, default_dtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.core.trace import Tracer
from hlofront.numpy import creation


def on_host(x: Any, advice: str) -> np.ndarray:
    """The values of an array.

    Raises ConcretizationTypeError, with the advice, if it is traced.
    """
    if isinstance(x, Tracer):
        value = x.to_concrete_value()
        if value is None:
            raise ConcretizationTypeError(x, advice)
        x = value
    return np.asarray(x)


def from_host(x: Any) -> Any:
    """An array of NumPy as one of a device; indices are of the default integer dtype."""
    dtype = default_dtype("i") if x.dtype == np.intp else array_dtype(x.dtype)
    return creation.from_host(x.astype(dtype, copy=False))
