"""Functions as jitted ones, which can be traced and lowered."""

from collections.abc import Callable

from hlofront.runtime.dispatch.jit import jit
from hlofront.runtime.dispatch.stages import Wrapped


def jitted(function: Callable[..., object]) -> Wrapped:
    """Return a function itself where it is jitted, else jitted with the default options."""
    return function if isinstance(function, Wrapped) else jit(function)
