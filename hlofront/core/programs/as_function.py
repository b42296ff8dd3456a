"""jaxpr_as_fun: a closed jaxpr as a Python function."""

from collections.abc import Callable
from typing import Any

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.evaluate import eval_jaxpr


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: object) -> Callable[..., list[Any]]:
    """Return a function that takes a closed jaxpr's inputs and returns the list of its outputs.

    The function raises ValueError for a wrong number of inputs.

    Args:
      closed_jaxpr: the closed jaxpr.
      args: its first inputs, if they are known; the function takes the remaining ones.
    """

    def run(*others: object) -> list[Any]:
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args, *others)

    return run
