"""Checks that kernels make on request: debug_check, and the bounds of blocks and indices.

With the option jax_pallas_enable_debug_checks, kernels that are interpreted as XLA's operations
check where blocks begin, and each computed index of a reference. The models of TPUs always do.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.elements import int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Equation
from hlofront.core.references import NDIndexer, is_known_integer
from hlofront.core.sizes.computed_slices import Slice
from hlofront.higher_order.checkify import checking
from hlofront.higher_order.control_flow.cond import cond
from hlofront.primitives.calls.callbacks import debug_callback
from hlofront.primitives.elementwise.compare import ge, le
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import bitwise_and
from hlofront.primitives.references.references import RefLike, index_check

enable_debug_checks = options["jax_pallas_enable_debug_checks"]
enable_poison_buffers = options["jax_pallas_poison_buffers"]


def makes_checks() -> bool:
    """Return whether kernels make checks."""
    return enable_debug_checks.value


class Complaint(NamedTuple):
    """The function that the host calls with the numbers of a failed check.

    Attributes:
      error: the class of the exception.
      message: a format string of the numbers.
    """

    error: type[Exception]
    message: str

    def __call__(self, *numbers: NumPyArray) -> NoReturn:
        raise self.error(self.message.format(*[np.asarray(x).tolist() for x in numbers]))


def require(condition: ArrayLike, complaint: Complaint, *numbers: ArrayLike) -> None:
    """Make a program raise an exception on the host if a condition is False.

    Args:
      condition: a boolean scalar.
      complaint: the function that raises it.
      *numbers: the numbers of its message.
    """

    def complain() -> None:
        debug_callback(complaint, numbers, {}, ordered=False, partitioned=False)

    cond(condition, lambda: None, complain)


def debug_check(condition: ArrayLike, message: str) -> None:
    """Check a condition in a kernel, if `pl.enable_debug_checks` is set.

    Interpreted kernels raise a RuntimeError with the line. Functions passed to `checkify` always
    check it.

    Args:
      condition: a boolean scalar.
      message: the error's message.

    Example:
      >>> def kernel(x_ref, o_ref):
      ...     pl.debug_check(jnp.all(x_ref[...] > 0), "roots of positive numbers")
      ...     o_ref[...] = jnp.sqrt(x_ref[...])
    """
    if index_check.get() is None:
        checking.debug_check(condition, message)
        return
    text = f"{message}: debug_check failed at {source.summarize(source.current())}"
    require(condition, Complaint(RuntimeError, text.replace("{", "{{").replace("}", "}}")))


def message_of(equation: Equation) -> str:
    """Return the message of the check that an equation makes."""
    _, structure = equation.params["structures"][0]
    error = structure.unflatten(range(structure.num_leaves))
    return getattr(error, "format", type(error).__name__)


@contextmanager
def checking_indices(is_on: bool) -> Iterator[None]:
    """Turn checks of reference indices on or off in the kernel that is being traced."""
    token = index_check.set(_check_index if is_on else None)
    try:
        yield
    finally:
        index_check.reset(token)


def _check_index(ref: RefLike, indexer: NDIndexer) -> None:
    """Check that the computed parts of an index are within the bounds of a reference."""
    line = source.summarize(source.current())
    for axis, (index, size) in enumerate(zip(indexer.indices, indexer.shape, strict=True)):
        start, count = (index.start, index.size) if isinstance(index, Slice) else (index, 1)
        if is_known_integer(start) or not is_known_integer(count) or typeof(start).shape:
            continue
        stride = index.stride or 1 if isinstance(index, Slice) else 1
        last = size - (count - 1) * stride - 1
        # A single negative index counts from the end.
        part, lowest = ("{}", -size) if count == 1 else (f"{{}}:{{}}+{count}", 0)
        text = (
            f"Out-of-bounds index {part} along axis {axis} of a reference of shape "
            f"{indexer.shape}, at {line.replace('{', '(').replace('}', ')')}"
        )
        numbers = [start] * part.count("{}")
        require(within(start, lowest, last), Complaint(IndexError, text), *numbers)


def within(index: ArrayLike, lowest: int, highest: int) -> Array:
    """Return whether an index is in a range that includes its end."""
    index = convert(index, int32, False)
    return bitwise_and(ge(index, np.int32(lowest)), le(index, np.int32(highest)))


def check_block(
    what: str, starts: ArrayLikes, sizes: Sequence[int], shape: Sequence[int], step: ArrayLikes
) -> None:
    """Make a program raise an exception on the host if a block is outside of its array.

    Args:
      what: the operand or result, and the call.
      starts: the first element of the block along each axis.
      sizes: the shape of the block.
      shape: the shape of the array, with the elements around it that blocks may cover.
      step: the indices of the step of the grid.
    """
    for axis, (start, size, length) in enumerate(zip(starts, sizes, shape, strict=True)):
        places = ", ".join(f"{{{i}}}" for i in range(1, len(step) + 1))
        text = (
            f"Out-of-bounds block of {what} at step ({places}{',' if len(step) == 1 else ''}): "
            f"along axis {axis} it begins at element {{0}} and has {size}, and the array has "
            f"{length}"
        )
        inside = within(start, 0, length - size)
        require(inside, Complaint(IndexError, text), start, *step)
