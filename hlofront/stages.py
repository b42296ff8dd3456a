"""The stages of a jitted function, as types: the door to runtime/stages.py."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from hlofront.runtime.stages import ArgInfo as ArgInfo
from hlofront.runtime.stages import Compiled as Compiled
from hlofront.runtime.stages import Lowered as Lowered
from hlofront.runtime.stages import Traced as Traced

CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """A function that was made by jit: it can be called, traced and lowered."""

    __call__: Callable[..., Any]

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments."""
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower the function for these arguments."""
        ...
