"""jaxlib's makers of programs for IFRT, the layer between JAX and PJRT."""

from types import ModuleType

from hlofront.bridge import state

ifrt_programs: ModuleType = state.extension.ifrt_programs
