"""The class of arrays as the stub of hlofront declares it; jaxlib's C++ class has no types."""

from hlofront import Array as Array
