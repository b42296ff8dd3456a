"""The class of arrays; type checkers read its members from the stub beside this file."""

from hlofront.bridge import state

# Of jaxlib's C++, where isinstance also holds for tracers.
Array = state.Array
