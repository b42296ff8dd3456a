"""The text of arrays: NumPy's rules, with the dtype."""

import numpy as np

from hlofront.base.typing import Array
from hlofront.bridge.members import sharding_of
from hlofront.pjrt.host_value import host_value
from hlofront.pjrt.named_shardings import has_summands

_PREFIX = "Array("


def array_repr(array: Array) -> str:
    """Return the text of `repr(array)`: `Array([1., 2.], dtype=float32)`."""
    aval = array.aval
    ending = f"dtype={aval.dtype.name}" + (", weak_type=True)" if aval.weak_type else ")")
    if not _has_value(array):
        sharding = sharding_of(array)
        if has_summands(sharding):
            ending = f"{ending[:-1]}, sharding={sharding})"
        return f"{_PREFIX}shape={aval.shape}, {ending}"
    value = host_value(array)
    if aval.size == 0:
        return f"{_PREFIX}[], shape={aval.shape}, {ending}"
    text = f"{_PREFIX}{np.array2string(value, prefix=_PREFIX, suffix=',', separator=', ')},"
    # Past the width of a line, the reference starts no new line but leaves the indent of one. The
    # width of a single line does not include the opening.
    last_line = text[text.rfind("\n") + 1 :].removeprefix(_PREFIX)
    width = len(last_line) + 1 + len(ending)
    fits = width <= np.get_printoptions()["linewidth"]
    return text + (" " if fits else " " * len(_PREFIX)) + ending


def array_str(array: Array) -> str:
    """Return the text of `str(array)`, which is NumPy's."""
    return str(host_value(array)) if _has_value(array) else array_repr(array)


def array_format(array: Array, spec: str) -> str:
    """Return the text of `format(array, spec)`: a scalar is formatted as a number."""
    if not spec and not _has_value(array):
        return array_repr(array)
    value = host_value(array)
    return format(value[()] if value.ndim == 0 else value, spec)


def _has_value(array: Array) -> bool:
    sharding = sharding_of(array)
    if has_summands(sharding):
        return False
    if sharding.is_fully_replicated:
        return bool(sharding.addressable_devices)
    return sharding.is_fully_addressable
