"""The array API's inspection of hlofront.numpy: devices, dtypes and capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.dtypes import default_dtype, python_scalar_dtype
from hlofront.bridge import state
from hlofront.numpy.support.annotations import DeviceLike
from hlofront.pjrt.devices import devices

if TYPE_CHECKING:
    from hlofront.bridge.client import Device

# The only supported version of the standard.
ARRAY_API_VERSION = "2024.12"

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = (*_KINDS["signed integer"], *_KINDS["unsigned integer"])
_KINDS["numeric"] = (*_KINDS["integral"], *_KINDS["real floating"], *_KINDS["complex floating"])
_WIDE = frozenset({"int64", "uint64", "float64", "complex128"})


class ArrayNamespaceInfo:
    """The array API's view of a namespace: its capabilities, dtypes and devices."""

    def capabilities(self) -> dict[str, bool | int]:
        """Return the optional capabilities of the namespace, by name.

        Boolean masks and results whose shape depends on values are not supported under `jit`.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return None: the device of an array depends on options and operands."""
        return None

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, np.dtype]:
        """Return the default dtypes by kind of number; x64 decides their width.

        Args:
          device: has no effect.
        """
        return {
            "real floating": default_dtype("f"),
            "complex floating": default_dtype("c"),
            "integral": python_scalar_dtype(int),
            "indexing": python_scalar_dtype(int),
        }

    def devices(self) -> list[Device | None]:
        """Return None, which stands for no choice, and the devices of the default platform."""
        return [None, *devices()]

    def dtypes(
        self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """Return the standard's dtypes by name; 64-bit ones only where x64 is on.

        Args:
          device: has no effect.
          kind: a kind of dtypes, such as "integral", or a tuple of kinds.

        Raises:
          KeyError: for a kind that the standard does not have.
        """
        if kind is None:
            kind = ("bool", "numeric")
        names = [
            name
            for name_of_kind in ([kind] if isinstance(kind, str) else kind)
            for name in _KINDS[name_of_kind]
        ]
        wide = state.enable_x64.value
        return {name: np.dtype(name) for name in names if wide or name not in _WIDE}


def array_namespace_info() -> ArrayNamespaceInfo:
    """Return the array API's inspection object of hlofront.numpy."""
    return ArrayNamespaceInfo()
