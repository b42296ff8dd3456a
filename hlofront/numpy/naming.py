"""The names that operations have in errors and in compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def named(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function the name of the public function that it implements."""

    def rename(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        return function

    return rename
