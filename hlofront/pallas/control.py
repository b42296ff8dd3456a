"""Branches and loops of kernels, and arithmetic on sizes: when, loop, cdiv."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.references import is_known_integer
from hlofront.higher_order.control_flow.cond import cond
from hlofront.higher_order.control_flow.while_loop import fori_loop
from hlofront.primitives.rules.batching import batch_elementwise

# The operand; the compiler may assume that `values` divide it.
multiple_of_p = Primitive("multiple_of")
rules.lower.modules[multiple_of_p.name] = ["hlofront.pallas.interpret.operations"]


@rules.infer(multiple_of_p)
def _(x: ShapedArray, *, values: tuple[int, ...]) -> ShapedArray:
    return x


batch_elementwise(multiple_of_p)


def multiple_of(x: ArrayLike, values: Sequence[int] | int) -> Array:
    """Return an integer that the compiler may assume to be a multiple of others.

    Args:
      x: a scalar of integers.
      values: the numbers that divide it.
    """
    values = (values,) if isinstance(values, int) else tuple(map(operator.index, values))
    return multiple_of_p.bind(x, values=values)


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Return a decorator that immediately runs a function of no arguments if a condition is true.

    Args:
      condition: a scalar. The branch is traced whether or not it is true, unless it is known.

    Raises:
      TypeError: if the condition is not a scalar, or the function returns a value.

    Example:
      >>> def kernel(x_ref, o_ref):
      ...     @pl.when(pl.program_id(0) == 0)
      ...     def _():
      ...         o_ref[...] = jnp.zeros_like(o_ref)
      ...     o_ref[...] += x_ref[...]
    """

    def run_when(f: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                f()
            return
        cond(condition, f, lambda: None)

    return run_when


def loop(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    init_carry: PyTree = None,
    step: ArrayLike = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., PyTree]], PyTree]:
    """Return a decorator that immediately runs a function for each index of a range.

    Args:
      lower: the first index.
      upper: the exclusive end of the range.
      init_carry: the initial carry, a pytree of arrays; with it, the function takes the index and
        the carry, and returns the next carry.
      step: the distance between indices.
      unroll: how many iterations the compiled loop runs at a time, or True for all.

    Returns:
      A decorator that returns the final carry.

    Raises:
      TypeError: if the function returns a carry of another structure or other types.
      ValueError: if the step is 0, or `unroll` is given and the range is traced.

    Example:
      >>> def kernel(x_ref, o_ref):
      ...     @pl.loop(0, 8)
      ...     def _(i):
      ...         o_ref[i] = x_ref[i] * 2
    """
    if is_known_integer(step) and not step:
        raise ValueError("pl.loop requires a step that is not 0")
    has_carry = init_carry is not None

    def run(body: Callable[..., PyTree]) -> PyTree:
        def one_step(number: Any, carry: PyTree) -> PyTree:
            index = lower + number * step  # pyright: ignore[reportOperatorIssue]
            if has_carry:
                return body(index, carry)
            result = body(index)
            if result is not None:
                raise TypeError(
                    "a function in pl.loop without init_carry returns None: it returned "
                    f"{tree.tree_structure(result)}. Give pl.loop an init_carry to hand values on."
                )
            return None

        return fori_loop(0, cdiv(upper - lower, step), one_step, init_carry, unroll=unroll)  # pyright: ignore[reportOperatorIssue]

    return run


def cdiv(a: Any, b: Any) -> Any:
    """Return the quotient of two integers, rounded up.

    Args:
      a: an integer, or an array of integers.
      b: an integer that is not 0, or an array of integers.

    Examples:
      >>> pl.cdiv(7, 2)
      4
    """
    if is_known_integer(a) and is_known_integer(b):
        return -(-int(a) // int(b))
    return (a + b - 1) // b


def align_to(a: Any, alignment: Any) -> Any:
    """Return the smallest multiple of an integer that is not less than another.

    Args:
      a: an integer, or an array of integers.
      alignment: the integer that divides the result.

    Examples:
      >>> pl.align_to(13, 8)
      16
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """Return the smallest power of 2 that is not less than an integer.

    Args:
      x: an integer that is not negative.

    Raises:
      ValueError: if it is negative.

    Examples:
      >>> pl.next_power_of_2(5)
      8
    """
    if x < 0:
        raise ValueError(f"`next_power_of_2` requires a non-negative integer: got {x}")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array in row-major order.

    Args:
      shape: the shape of the array.

    Examples:
      >>> pl.strides_from_shape((2, 3, 4))
      (12, 4, 1)
    """
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
