"""The decorator `@like(np.sin)`, which appends NumPy's documentation to a function's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hlofront.runtime.dispatch.operation import operation

F = TypeVar("F", bound=Callable[..., object])

_DIFFERENCES = (
    "Arrays are immutable: there is no `out`, and nothing is done in place. Dtypes meet by JAX's\n"
    "rules of promotion, 64-bit ones are narrowed unless x64 is on, and results are arrays, also\n"
    "where NumPy gives scalars."
)


def like(reference: object) -> Callable[[F], F]:
    """Return a decorator that appends NumPy's documentation to the function's own.

    Args:
      reference: the function of NumPy that this one follows. Its text is read from the installed
        NumPy, and is not a part of this package.
    """

    def borrow(fun: F) -> F:
        own = fun.__doc__
        borrowed = reference.__doc__
        # Under `python -OO` there are no docstrings.
        if own is not None and borrowed:
            name = getattr(reference, "__name__", "")
            fun.__doc__ = (
                f"{own}\n\n{_DIFFERENCES}\n\nThe documentation of numpy.{name}:\n\n{borrowed}"
            )
        return fun

    return borrow


def operation_like(reference: object, **options: object) -> Callable[[Callable[..., object]], Any]:
    """Return a decorator that makes a function an operation with NumPy's documentation.

    Args:
      reference: the function of NumPy that this one follows.
      options: the options of `operation`, such as `static_argnames`.
    """

    def make(fun: Callable[..., object]) -> Any:
        return operation(like(reference)(fun), **options)

    return make
