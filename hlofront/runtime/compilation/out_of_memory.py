"""The error of a program that needs more memory than its device has: which values need it."""

import importlib
import re
from collections.abc import Callable

from hlofront.base.errors import JaxRuntimeError
from hlofront.bridge import kernel_payloads
from hlofront.runtime.array.owners import WAYS_OUT, owners_text
from hlotools.ir.custom_kernels import set_kernel_decoder

# The module that computes what is live when; only an error needs it.
_MEMORY = "hlotools.cost.memory_use"
_VMEM = "hlotools.cost.kernel_vmem"
_IN_VMEM = re.compile(r"space=vmem|memory space vmem")
_CODE = "RESOURCE_EXHAUSTED"
_MAX_BUFFERS = 6


def explained(
    error: JaxRuntimeError, name: str, hlo: Callable[[], str], is_running: bool = False
) -> JaxRuntimeError:
    """Return an error of XLA or a device; if memory ran out, with the values that fill it.

    The class and the code at the beginning of the message stay, and XLA's own message follows.

    Args:
      error: the error.
      name: the name of the program.
      hlo: a function that returns the program's HLO, optimized or as passed to XLA.
      is_running: whether the program was about to run, so that other arrays need memory as well.
    """
    message = str(error)
    if not message.startswith(_CODE):
        return error
    if _IN_VMEM.search(message):
        return _of_kernel(error, name, hlo())
    memory_use = importlib.import_module(_MEMORY).memory_use
    try:
        use = memory_use(hlo())
    except ValueError:
        # HLO of a newer XLA may have unknown syntax.
        return error
    optimized = "" if use.is_scheduled else ", before XLA's optimizations"
    largest = "\n".join(use.peak_lines(_MAX_BUFFERS))
    owners = owners_text(_MAX_BUFFERS) if is_running else ""
    alive = f"\nWhen it was to run, {owners}" if owners else ""
    return JaxRuntimeError(
        f"{_CODE}: {name} needs more memory than its device has. By the order of its "
        f"operations{optimized}, {largest}{alive}\nhlofront.inspect.memory_use(lowered) has the "
        f"full list. {WAYS_OUT} XLA says:\n{message}"
    )


def _of_kernel(error: JaxRuntimeError, name: str, hlo: str) -> JaxRuntimeError:
    """Return an error about insufficient VMEM with the buffers of the kernel that fill it."""
    set_kernel_decoder(kernel_payloads.decoded)
    lines = importlib.import_module(_VMEM).vmem_lines(hlo, _MAX_BUFFERS)
    if not lines:
        return error
    listed = "\n".join(lines)
    return JaxRuntimeError(
        f"{_CODE}: {name} has a kernel that needs more VMEM than it may use. {listed}\n"
        "To use less, take smaller blocks, or pipeline_mode=pl.Buffered(1) for blocks that seldom "
        "change; compiler_params=pltpu.CompilerParams(vmem_limit_bytes=...) raises the limit, at "
        f"most to the VMEM of the chip. libtpu says:\n{error}"
    )
