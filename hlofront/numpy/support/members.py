"""The methods of arrays that no other module defines: x.real, x.clip(), round(x), v in x."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.shape import ravel
from hlofront.numpy.elementwise import complex, rounding
from hlofront.numpy.namespace import ARRAY_API_VERSION
from hlofront.numpy.statistics import reductions
from hlofront.numpy.support.annotations import DeviceLike
from hlofront.primitives.arrays import shaping
from hlofront.primitives.elementwise import converting
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.operation import is_operand


def _clip(self: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limit the elements of the array to [min, max]; either may be None."""
    return rounding.clip(self, min, max)


def _round(self: Array, decimals: int = 0, out: None = None) -> Array:
    """Round the elements of the array to a number of decimals, half to even."""
    return rounding.round(self, decimals, out)


@boundary
def _python_round(self: Array, ndigits: int | None = None) -> Array:
    """Round the array as Python's round() does: to integers if `ndigits` is None."""
    rounded = rounding.round(self, ndigits or 0)
    return converting.convert_element_type(rounded, int) if ndigits is None else rounded


@boundary
def _contains(self: Array, element: object) -> bool:
    """Return whether an element of a one-dimensional array equals the value."""
    aval = typeof(self)
    if aval.ndim != 1:
        raise ValueError(
            "`in` searches the elements of one-dimensional arrays, and this one has shape "
            f"{aval.shape}. Use (x == value).any()."
        )
    if not is_operand(element):
        raise TypeError(f"`in` expects a number, got {element!r} of type {type(element).__name__}.")
    return bool(reductions.any(self == element))


def _reversed(self: Array) -> Iterator[Array]:
    """Iterate over the rows of the array from the last to the first."""
    return reversed(list(self))


@boundary
def _byteswap(self: Array) -> Array:
    """Reverse the bytes of each element of the array."""
    itemsize = typeof(self).dtype.itemsize
    if itemsize == 1:
        return self
    byte_rows = converting.bitcast_convert_type(self, np.uint8)
    swapped = shaping.rev(byte_rows, (typeof(byte_rows).ndim - 1,))
    return converting.bitcast_convert_type(swapped, typeof(self).dtype)


def _namespace(self: Array, *, api_version: str | None = None) -> ModuleType:
    """Return the array API namespace of the array: the module of its functions.

    Raises:
      ValueError: for a version of the standard that the namespace does not offer.
    """
    if api_version not in (None, ARRAY_API_VERSION):
        raise ValueError(f"api_version {api_version!r} is not supported; use {ARRAY_API_VERSION!r}")
    return sys.modules["hlofront.numpy"]


def _to_device(self: Array, device: DeviceLike, *, stream: int | None = None) -> Array:
    """Copy the array to another device, or to a sharding.

    Raises ValueError if a stream is passed, or `device` is not a device or sharding.
    """
    if stream is not None:
        raise ValueError(
            f"to_device takes no stream (got {stream!r}): transfers are put in order by themselves"
        )
    return device_put(self, device)


def _numpy_dtype(self: Array) -> object:
    """The dtype of an array that is passed to NumPy as a dtype, which is deprecated."""
    source.warn(
        "an array was given as a dtype, which is deprecated and will be an error: instead of "
        "dtype=x write dtype=x.dtype",
        DeprecationWarning,
    )
    return self.dtype


_flat = property(lambda self: ravel(self), doc="The elements in row order, as a vector.")

for _function, _name in (
    (_clip, "clip"),
    (_round, "round"),
    (_byteswap, "byteswap"),
    (_python_round, "__round__"),
    (_contains, "__contains__"),
    (_namespace, "__array_namespace__"),
    (_to_device, "to_device"),
):
    _function.__name__ = _function.__qualname__ = _name

ARRAY_METHODS: dict[str, Callable[..., object] | property] = {
    "clip": _clip,
    "round": _round,
    "byteswap": _byteswap,
    "conj": complex.conjugate,
    "conjugate": complex.conjugate,
    "real": property(complex.real, doc="The real parts of the elements."),
    "imag": property(complex.imag, doc="The imaginary parts of the elements."),
    "flat": _flat,
    "to_device": _to_device,
    "__numpy_dtype__": property(_numpy_dtype),
    "__round__": _python_round,
    "__reversed__": _reversed,
    "__contains__": _contains,
    "__array_namespace__": _namespace,
}
