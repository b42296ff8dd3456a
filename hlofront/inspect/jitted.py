"""The conversion of functions to jitted ones, which can be traced and lowered."""

from collections.abc import Callable

from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.dispatch.stages import Wrapped


def jitted(function: Callable[..., object]) -> Wrapped:
    """Return a jitted function unchanged, and any other jitted with the default options."""
    return function if isinstance(function, Wrapped) else jit(function)
