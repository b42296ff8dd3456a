"""The rates of a device, which bound the time of a program on it from below."""

from collections.abc import Mapping
from typing import Protocol


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
