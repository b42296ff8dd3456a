"""The error of a program that needs more memory than its device has: which values take it."""

import importlib
from collections.abc import Callable

from hlofront.base.errors import JaxRuntimeError

# The module that computes what is live when; only an error needs it.
_MEMORY = "hlotools.cost.memory_use"
_CODE = "RESOURCE_EXHAUSTED"
_MAX_BUFFERS = 6


def explained(error: JaxRuntimeError, name: str, hlo: Callable[[], str]) -> JaxRuntimeError:
    """Return an error of XLA or a device; one of too little memory with the values that take it.

    The class and the code at the beginning of the message stay, and XLA's own message follows.

    Args:
      error: the error.
      name: the name of the program.
      hlo: a function that returns the program's HLO: optimized, or as XLA was given it.
    """
    message = str(error)
    if not message.startswith(_CODE):
        return error
    memory_use = importlib.import_module(_MEMORY).memory_use
    try:
        use = memory_use(hlo())
    except ValueError:
        # HLO of a newer XLA may have syntax that is not known.
        return error
    optimized = "" if use.is_scheduled else ", before XLA's optimizations"
    largest = "\n".join(use.peak_lines(_MAX_BUFFERS))
    return JaxRuntimeError(
        f"{_CODE}: {name} needs more memory than its device has. By the order of its "
        f"operations{optimized}, {largest}\nhlofront.inspect.memory_use(lowered) has the full "
        "list; to use less memory, try jax.checkpoint, donated arguments, smaller batches or "
        f"shardings. XLA says:\n{message}"
    )
