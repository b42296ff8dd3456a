"""The class of arrays; type checkers read its members from the stub next to this module."""

from hlofront.bridge import state

# A class of jaxlib's C++ for which isinstance also holds for tracers.
Array = state.Array
