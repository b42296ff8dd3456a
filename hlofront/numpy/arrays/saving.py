"""The storage of arrays in NumPy's file formats: save, savez, load."""

from __future__ import annotations

import os
from typing import IO

import numpy as np

from hlofront.base.elements import bfloat16
from hlofront.base.typing import Array, ArrayLike
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.like import like

_BFLOAT16 = np.dtype(bfloat16)
# NumPy's file format has no name for bfloat16, and stores it as opaque two-byte elements.
_TWO_BYTES = np.dtype("V2")


@like(np.save)
def save(
    file: IO[bytes] | str | os.PathLike[str], arr: ArrayLike, allow_pickle: bool = True
) -> None:
    """Write an array to a file in NumPy's format, `.npy`.

    Args:
      file: an open file, or the path of one, to which `.npy` is added if it is missing.
      arr: an array, or an object that NumPy converts to one.
      allow_pickle: whether arrays of Python's objects may be written.
    """
    np.save(file, arr, allow_pickle=allow_pickle)


@like(np.savez)
def savez(
    file: IO[bytes] | str | os.PathLike[str],
    *args: ArrayLike,
    allow_pickle: bool = True,
    **kwds: ArrayLike,
) -> None:
    """Write several arrays to a file in NumPy's format, `.npz`.

    Args:
      file: an open file, or the path of one, to which `.npz` is added if it is missing.
      args: arrays; they are called `arr_0`, `arr_1` and so on.
      allow_pickle: whether arrays of Python's objects may be written.
      kwds: arrays by their names in the file.
    """
    np.savez(file, *args, allow_pickle=allow_pickle, **kwds)


@like(np.load)
def load(file: IO[bytes] | str | os.PathLike[str], *args: ArrayLike, **kwargs: object) -> Array:
    """Read an array from a file in NumPy's format.

    Args:
      file: an open file, or the path of one.
      args, kwargs: further arguments of `numpy.load`.

    Returns:
      An array on the default device; elements of two bytes that the file has no dtype for are read
      as bfloat16, which `save` writes as such. Contents other than an array of numbers are returned
      as NumPy reads them: an array of strings or objects, or for an `.npz` file the mapping from
      names to NumPy arrays.
    """
    loaded = np.load(file, *args, **kwargs)
    if not isinstance(loaded, np.ndarray):
        return loaded
    if loaded.dtype == _TWO_BYTES:
        loaded = loaded.view(_BFLOAT16)
    return asarray(loaded) if loaded.dtype == _BFLOAT16 or loaded.dtype.kind in "biufc" else loaded
