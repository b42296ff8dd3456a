"""The memories that types of arrays name."""

import enum


class Memories(enum.Enum):
    """The base class of the memories that types of arrays name, here and in kernels."""


class MemorySpace(Memories):
    """The kinds of memory that a device uses: its own, and that of its host."""

    Device = "device"
    Host = "pinned_host"
    Any = "any"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"
