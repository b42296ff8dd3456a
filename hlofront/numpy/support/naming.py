"""The names of operations in errors and in compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def named(name: str) -> Callable[[F], F]:
    """Return a decorator that gives a function the name of the public function it implements."""

    def rename(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        return function

    return rename
