"""The kinds of memory that arrays can be in."""

from hlofront.core.aval import MemorySpace as Space

__all__ = ["Space"]
