"""The checks of the arguments of linear algebra functions."""

from __future__ import annotations

from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.promotion import operands, promote_dtypes_inexact


def inexact(name: str, *args: ArrayLike) -> list[Array]:
    """Return the arguments as arrays of their common floating or complex dtype."""
    values, _ = operands(name, args)
    return [asarray(x) for x in promote_dtypes_inexact(*values)]


def matrices(name: str, x: ArrayLike) -> Array:
    """Return the argument as matrices (..., m, n) of floating or complex numbers.

    Raises ValueError for fewer than two axes.
    """
    (x,) = inexact(name, x)
    if typeof(x).ndim < 2:
        raise ValueError(
            f"{name} requires matrices of shape (..., m, n), got shape {typeof(x).shape}"
        )
    return x


def square_matrices(name: str, x: ArrayLike) -> Array:
    """Return the argument as square matrices of floating or complex numbers."""
    (x,) = inexact(name, x)
    shape = typeof(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {shape}")
    return x
