"""hlofront.scipy.cluster.vq: assignment of observations to the nearest code vectors."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.runtime.dispatch.operation import operation

__all__ = ["vq"]
__dir__ = dir_of(__name__)


@operation
def _vq(obs: ArrayLike, code_book: ArrayLike) -> tuple[Array, Array]:
    obs, code_book = map(weak_tangents, promote_args_inexact("vq", obs, code_book))
    if typeof(obs).ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    distances = jnp.sum(jnp.square(obs[:, None] - code_book[None]), axis=-1)
    codes = jnp.argmin(distances, axis=1)
    return codes, jnp.sqrt(jnp.min(distances, axis=1))


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the index of the nearest code of each observation, and the distance to it.

    Args:
      obs: an array of shape (M, N), or (M,) of numbers.
      code_book: an array of shape (K, N), or (K,).
      check_finite: has no effect, as elements are not checked.

    Returns:
      The numbers of codes and the distances to them, two arrays of shape (M,).

    Raises:
      ValueError: if the ranks differ or are other than 1 or 2.
      TypeError: if the sizes of observations and codes differ.
    """
    check_arraylike("scipy.cluster.vq.vq", obs, code_book)
    one, other = typeof(obs).shape, typeof(code_book).shape
    if len(one) != len(other):
        raise ValueError(
            f"Observation and code_book should have the same rank, got shapes {one} and {other}"
        )
    if len(one) not in (1, 2):
        raise ValueError(f"ndim different than 1 or 2 are not supported, got shape {one}")
    if one[1:] != other[1:]:
        raise TypeError(
            f"vq got incompatible shapes for broadcasting: observations {one} and codes {other} "
            "must have one size"
        )
    return _vq(obs, code_book)
