"""How devices store values of dtypes that XLA lacks: keys as integers, float0 as booleans."""

import functools
from typing import Any

import numpy as np

from hlofront.base.dtypes import float0
from hlofront.base.elements import ExtendedDType
from hlofront.bridge.client import NamedSharding, Sharding
from hlofront.core.aval import AbstractValue, ShapedArray


def holds_keys(aval: AbstractValue) -> bool:
    """Return whether values of a type are random keys, or of another extended dtype."""
    return isinstance(getattr(aval, "dtype", None), ExtendedDType)


def is_float0(x: object) -> bool:
    """Return whether a value or aval is of the dtype float0, which no device has."""
    return getattr(x, "dtype", None) == float0


def stored(aval: object) -> Any:
    """Return the aval of a value's storage: integers for keys, booleans for float0."""
    if is_float0(aval):
        return ShapedArray(aval.shape, np.dtype(bool))
    return ShapedArray(*aval.dtype.physical(aval.shape)) if holds_keys(aval) else aval


def element_rank(dtype: ExtendedDType) -> int:
    """Return how many axes the representation of one element has."""
    return len(dtype.physical(())[0])


def stored_sharding(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """Return the sharding of the integers behind keys from that of the keys: no key is split."""
    if type(sharding) is not NamedSharding:
        return sharding
    entries = sharding.spec.partitions
    if any(entries[aval.ndim :]):  # XLA chose to split within the keys as well.
        return sharding
    count = min(len(entries), aval.ndim) + element_rank(aval.dtype)
    return _with_entries(sharding, count)


def sharding_of_keys(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """Return the sharding of keys from that of their integers, with an entry for each axis."""
    return _with_entries(sharding, aval.ndim) if type(sharding) is NamedSharding else sharding


@functools.lru_cache(maxsize=256)
def _with_entries(sharding: NamedSharding, count: int) -> NamedSharding:
    """Return a NamedSharding with `count` entries in its spec: truncated, or padded with None."""
    spec = sharding.spec
    entries = spec.partitions
    if len(entries) == count:
        return sharding
    padded = (*entries, *(None,) * (count - len(entries)))
    return sharding.update(spec=spec.update(partitions=padded[:count]))
