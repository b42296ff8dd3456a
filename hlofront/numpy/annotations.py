"""The types that annotations name on this floor, beside those of base/typing.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hlofront.bridge.client import Device, NamedSharding, Sharding
    from hlofront.core.partition import PartitionSpec

# Where to put a result: a device, several by a sharding, or None for the default device.
DeviceLike: TypeAlias = "Device | Sharding | None"
# The parameter `out_sharding`: the layout of a result over devices, None for the compiler's choice.
OutSharding: TypeAlias = "NamedSharding | PartitionSpec | None"
