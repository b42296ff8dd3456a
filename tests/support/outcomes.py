"""What came out of a case as plain data, which hlofront's process and jax's describe alike.

The namespace of either is handed in as `jax`: this module names neither.
"""

import re
from typing import Any

import numpy as np

# (kind, type, value): the kind is array, numpy, python, dtype, struct or object.
Leaf = tuple[str, str, Any]

_ADDRESSES = re.compile(r" at 0x[0-9a-f]+")


class Raised:
    """An error, as plain data: its classes and its message."""

    def __init__(self, classes: list[str], message: str):
        self.classes = classes
        self.message = message

    @classmethod
    def of(cls, error: Exception) -> "Raised":
        return cls(classes_of(error), str(error))

    def __repr__(self):
        return f"{self.classes[0]}: {self.message[:300]}"

    def __str__(self):
        return f"{self.classes[0]}: {self.message}"


def classes_of(error: Exception) -> list[str]:
    """Return the names of an error's class and of those that it inherits from."""
    return [class_.__name__ for class_ in type(error).__mro__]


def own_name(text: str) -> str:
    """Return a text without addresses in memory, in which hlofront is called jax."""
    return without_addresses(text).replace("hlofront", "jax")


def without_addresses(text: str) -> str:
    """Return a text without the addresses in memory that the reprs of objects have."""
    return _ADDRESSES.sub("", text)


def describe_leaf(leaf: Any, jax: Any) -> Leaf:
    """Return the kind, the type and the value of a leaf of a result."""
    if isinstance(leaf, jax.Array):
        return ("array", f"{leaf.dtype}{list(leaf.shape)} weak={leaf.weak_type}", np.asarray(leaf))
    if isinstance(leaf, np.ndarray | np.generic):
        return ("numpy", f"{leaf.dtype}{list(leaf.shape)}", np.asarray(leaf))
    if isinstance(leaf, bool | int | float | complex | str | bytes):
        return ("python", type(leaf).__name__, leaf)
    if isinstance(leaf, np.dtype):
        return ("dtype", str(leaf), None)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return ("struct", f"{leaf.dtype}{list(leaf.shape)} weak={leaf.weak_type}", None)
    return ("object", type(leaf).__name__, own_name(str(leaf)))
