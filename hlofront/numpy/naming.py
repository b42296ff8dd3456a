"""The names that operations have in errors and in compiled programs."""

from collections.abc import Callable
from typing import Any


def named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function a name: that of the public function whose work it does."""

    def rename(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        return function

    return rename
