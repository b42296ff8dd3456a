"""jaxpr_as_fun: a program as a function of its arguments, which is called later."""

from collections.abc import Callable
from typing import Any

from hlofront.core.evaluate import eval_jaxpr
from hlofront.core.jaxpr import ClosedJaxpr


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function of the program's inputs, which returns the list of its results.

    Raises:
      ValueError: when the function is called, if it is given more or fewer values.
    """

    def run(*args: Any) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)

    return run
