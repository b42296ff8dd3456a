"""Arrays as text, and NumPy's printing options, which apply to them."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from hlofront.base.typing import ArrayLike
from hlofront.numpy.support.like import like


@like(np.array_repr)
def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of an array with its class and dtype, as NumPy formats it.

    `repr(arr)` differs: it begins with `Array(`, and says whether the dtype is weak.

    Args:
      arr: an array. Under a transformation its elements are unknown; see `debug.print`.
      max_line_width: the greatest line width; by default that of `set_printoptions`.
      precision: the greatest number of decimals of floats; by default that of `set_printoptions`.
      suppress_small: whether numbers close to zero are written as zeros.
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)


@like(np.array_str)
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of the elements of an array, as NumPy formats it.

    The arguments are those of `array_repr`.

    Example:
      >>> jnp.array_str(jnp.arange(3))
      '[0 1 2]'
    """
    return np.array_str(a, max_line_width, precision, suppress_small)


@like(np.get_printoptions)
def get_printoptions() -> dict[str, object]:
    """Return the options for printing arrays, which are NumPy's."""
    return dict(np.get_printoptions())


@like(np.set_printoptions)
def set_printoptions(*args: object, **kwargs: object) -> None:
    """Set the options for printing arrays, which NumPy shares.

    Raises:
      TypeError: for an option that NumPy does not have.
    """
    np.set_printoptions(*args, **kwargs)


@like(np.printoptions)
def printoptions(*args: object, **kwargs: object) -> AbstractContextManager[dict[str, object]]:
    """Return a context manager that sets the options for printing arrays.

    Args:
      *args, **kwargs: the arguments of `numpy.printoptions`, such as `precision=3`.

    Raises:
      TypeError: as it is entered, for an option that NumPy does not have.

    Example:
      >>> with jnp.printoptions(precision=2):
      ...     print(jnp.array([1 / 3]))
      [0.33]
    """
    return np.printoptions(*args, **kwargs)
