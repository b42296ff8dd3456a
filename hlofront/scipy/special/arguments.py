"""The promotion of the arguments of special functions to a common dtype and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hlofront.base.dtypes import is_complex
from hlofront.base.elements import float32, float64
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import as_array
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.higher_order.custom_rules.custom_rule import SymbolicZero
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.promotion import broadcast_together, promote_args_inexact
from hlofront.primitives.elementwise.converting import convert, strong

# A result: one array, or a pair.
_Result = TypeVar("_Result", Array, tuple[Array, Array])


def inexact_arrays(name: str, *args: ArrayLike) -> list[Array]:
    """Return the arguments as arrays of their common inexact dtype and shape.

    Raises:
      TypeError: if an argument is neither array nor scalar.
      ValueError: if their shapes do not broadcast.
    """
    values = broadcast_together(name, *promote_args_inexact(name, *args))
    return [as_array(x) for x in values]


def floats(name: str, *args: ArrayLike) -> list[Array]:
    """Return the arguments as arrays of their common floating dtype and shape.

    Raises:
      TypeError: if an argument is neither array nor scalar.
      ValueError: if an argument is complex, or their shapes do not broadcast.
    """
    values = inexact_arrays(name, *args)
    if is_complex(typeof(values[0]).dtype):
        raise ValueError(
            f"{name} does not support complex-valued inputs. Give it the real part, x.real, if the "
            "imaginary one is zero."
        )
    return values


def strong_floats(
    name: str, *args: ArrayLike, by: Callable[[Array], Array] = strong
) -> list[Array]:
    """Return the arguments as strongly typed arrays of their common floating dtype and shape.

    Args:
      name: the function, for errors.
      args: its arguments.
      by: `strong`, or `times_one` if cotangents are strongly typed as well.
    """
    return [by(x) for x in floats(name, *args)]


def float32_or_64(name: str, x: ArrayLike, by: Callable[[Array], Array] = strong) -> Array:
    """Return the argument as a float32 or float64 array, not weakly typed; others raise TypeError.

    Args:
      name: the function, for errors.
      x: its argument.
      by: `strong`, or `times_one` if cotangents are strongly typed as well.

    Raises:
      TypeError: if the argument has another dtype.
    """
    array: Array = asarray(x)
    dtype = typeof(array).dtype
    if dtype not in (float32, float64):
        raise TypeError(
            f"{name}: x.dtype={dtype} is not supported. Convert it to float32, or with x64 float64."
        )
    return by(array)


def in_float32(function: Callable[..., _Result], *args: Array) -> _Result:
    """Apply a function of floats, in float32 where they have 16 bits, and round the results back.

    The function's intermediate steps would lose too many digits in 16 bits.
    """
    dtype = typeof(args[0]).dtype
    if dtype.itemsize >= 4:
        return function(*args)
    result = function(*[convert(x, float32, typeof(x).weak_type) for x in args])
    if isinstance(result, tuple):
        first, second = (convert(x, dtype, typeof(x).weak_type) for x in result)
        return first, second
    return convert(result, dtype, typeof(result).weak_type)


def define_slopes(function: custom_jvp, *rules: Callable[..., Array]) -> None:
    """Set a rule per argument: `rule(tangent, result, *arguments)`, what it adds to the tangent.

    An argument that is known to have no tangent contributes nothing, so that an infinite slope
    there does not become NaN as zero times infinity.

    Args:
      function: a custom_jvp function of arrays of equal shape and dtype.
      rules: one for each argument.
    """

    def jvp(
        primals: tuple[Array, ...], tangents: tuple[Array | SymbolicZero, ...]
    ) -> tuple[Array, Array | SymbolicZero]:
        result = function(*primals)
        total: Array | None = None
        for rule, tangent in zip(rules, tangents, strict=True):
            if not isinstance(tangent, SymbolicZero):
                share = rule(tangent, result, *primals)
                total = share if total is None else total + share
        return result, tangents[0] if total is None else total

    function.defjvp(jvp, symbolic_zeros=True)
