"""The decorator `@like(np.sin)`, which appends to a docstring what differs from NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from hlofront.runtime.dispatch.operation import operation

F = TypeVar("F", bound=Callable[..., object])

_DIFFERENCES = """\
It follows numpy.{name}, except that arrays are immutable: there is no `out`, and nothing is done in
place. Dtypes are promoted by JAX's rules, 64-bit ones are narrowed unless x64 is on, lists must be
converted by `jnp.array`, and results are arrays, even where NumPy returns scalars."""


def like(reference: object) -> Callable[[F], F]:
    """Return a decorator that appends what differs from NumPy's function to a docstring.

    Args:
      reference: the function of NumPy that this one follows.
    """

    def append(fun: F) -> F:
        # Under `python -OO` there are no docstrings.
        if fun.__doc__ is not None:
            differences = _DIFFERENCES.format(name=getattr(reference, "__name__", ""))
            fun.__doc__ = f"{inspect.cleandoc(fun.__doc__)}\n\n{differences}"
        return fun

    return append


def operation_like(reference: object, **options: object) -> Callable[[Callable[..., object]], Any]:
    """Return a decorator that makes a function an operation that follows one of NumPy.

    Args:
      reference: the function of NumPy that this one follows.
      options: the options of `operation`, such as `static_argnames`.
    """

    def make(fun: Callable[..., object]) -> Any:
        return operation(like(reference)(fun), **options)

    return make
