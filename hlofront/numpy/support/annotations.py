"""The types of annotations that name devices and shardings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hlofront.bridge.client import Device, NamedSharding, Sharding
    from hlofront.core.sharding.partition import PartitionSpec

# The destination of a result: a device, a sharding, or None for the default device.
DeviceLike: TypeAlias = "Device | Sharding | None"
# The parameter `out_sharding`: the sharding of a result, or None for the compiler's choice.
OutSharding: TypeAlias = "NamedSharding | PartitionSpec | None"
