"""The conversion of functions to jitted ones, which can be traced and lowered."""

from collections.abc import Callable
from typing import Any

from hlofront.base.tree import PyTree
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.dispatch.stages import Lowered, Traced, Wrapped


def jitted(function: Callable[..., object]) -> Wrapped:
    """Return a jitted function unchanged, and any other jitted with the default options.

    Functions that a library jits, as with equinox's `filter_jit` or flax's `nnx.jit`, take modules
    as arguments, and convert them: the result traces and lowers as they do.
    """
    if isinstance(function, Wrapped) and hasattr(function, "_jitted"):
        return function
    return LibraryJit(function) if hasattr(function, "lower") else jit(function)


class LibraryJit:
    """A function that a library has jitted, with hlofront's stages instead of the library's.

    Args:
      function: the library's function, whose `lower` returns a stage with hlofront's as `lowered`.
    """

    def __init__(self, function: Any):
        self._function = function

    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        return self._function(*args, **kwargs)

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Trace the function for these arguments."""
        lowered = self.lower(*args, **kwargs)
        return Traced(
            lowered._jitted,
            lowered._traced,
            lowered._where,
            lowered._is_committed,
            lowered._layouts,
        )

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Trace and lower the function for these arguments."""
        stage = self._function.lower(*args, **kwargs)
        while not isinstance(stage, Lowered):
            stage = stage.lowered
        return stage
