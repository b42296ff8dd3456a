"""The rates of a device, which bound the time of a program on it from below."""

from collections.abc import Mapping
from typing import Protocol


class Links(Protocol):
    """The links by which a device sends to others, in bytes per second in one direction."""

    @property
    def bandwidth(self) -> float:
        """The bandwidth of all links of one device to its neighbors."""
        ...

    @property
    def device_count(self) -> int:
        """The number of devices that these links reach: those of a host, or of a slice."""
        ...

    @property
    def network(self) -> float | None:
        """The bandwidth of one device to those of other hosts; None if unknown."""
        ...

    @property
    def reduces(self) -> bool:
        """True if the switches between the devices sum, so that a device sends an array once."""
        ...


class DeviceRates(Protocol):
    """The published rates of a device, which bound from below the time of a program on it."""

    @property
    def name(self) -> str:
        """The target name of the device, such as "cuda:h100"."""
        ...

    @property
    def title(self) -> str:
        """The manufacturer's name of the device."""
        ...

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth of the device's memory in bytes per second, None if unknown."""
        ...

    @property
    def peak_flops(self) -> Mapping[str, float]:
        """The dense peak operations per second by dtype; empty if unknown."""
        ...

    @property
    def vector_flops(self) -> float | None:
        """The peak rate of elementwise operations of any dtype, per second; None if unknown."""
        ...

    @property
    def cache_bytes(self) -> int:
        """The size of the cache before the memory, 0 if it is absent or managed by programs."""
        ...

    @property
    def cache_bandwidth(self) -> float | None:
        """The bandwidth of that cache in bytes per second, None if unknown."""
        ...

    @property
    def clock(self) -> float | None:
        """The cycles per second in which the compiler estimates times, None if unknown."""
        ...

    @property
    def links(self) -> Links | None:
        """The links to other devices, None if unknown."""
        ...
