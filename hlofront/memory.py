"""The kinds of memory that arrays can be in."""

from hlofront.primitives.placing import MemorySpace as Space

__all__ = ["Space"]
