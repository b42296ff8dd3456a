"""Makers of primitives that come in families: one line defines one elementwise operation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process

# What dtypes an operation accepts, as NumPy's abstract scalar types.
FLOAT = (np.floating,)
COMPLEX = (np.complexfloating,)
INT = (np.integer,)
SIGNED = (np.signedinteger,)
UNSIGNED = (np.unsignedinteger,)
BOOL = (np.bool_,)
NUMBER = (np.number,)
ANY = (np.generic,)

Kinds = tuple[type, ...]


def accepts(dtype: Any, kinds: Kinds) -> bool:
    return kinds is ANY or any(issubdtype(dtype, kind) for kind in kinds)


def check_dtype(name: str, dtype: Any, kinds: Kinds, position: int | None = None) -> None:
    """Raise the TypeError that names what the operation accepts."""
    if accepts(dtype, kinds):
        return
    at = "" if position is None else f" at position {position}"
    wanted = ", ".join(kind.__name__.rstrip("_") for kind in kinds)
    raise TypeError(
        f"{name} does not accept dtype {dtype}{at}. Accepted dtypes{at} are subtypes of {wanted}."
    )


def broadcast_shapes(name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The common shape of operands: scalars fit any, a size of one fits any size.

    Unlike NumPy, ranks must agree but for scalars.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ranked = [shape for shape in shapes if shape]
    rank = len(ranked[0])
    if any(len(shape) != rank for shape in ranked):
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{', '.join(map(str, shapes))}."
        )
    result = list(ranked[0])
    for shape in ranked[1:]:
        for i, size in enumerate(shape):
            if size != result[i]:
                if result[i] == 1:
                    result[i] = size
                elif size != 1:
                    raise TypeError(
                        f"{name} got incompatible shapes for broadcasting: "
                        f"{', '.join(map(str, shapes))}."
                    )
    return tuple(result)


def check_same_dtypes(name: str, avals: tuple[Any, ...]) -> None:
    first = avals[0].dtype
    if all(aval.dtype == first for aval in avals):
        return
    raise TypeError(
        f"lax.{name} requires arguments to have the same dtypes, got "
        f"{', '.join(str(aval.dtype) for aval in avals)}. "
        f"(Tip: jnp.{_numpy_name.get(name, name)} is a similar function that does automatic type "
        "promotion on inputs)."
    )


# Where NumPy's name differs.
_numpy_name = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "rem": "remainder",
    "max": "maximum",
    "min": "minimum",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "pow": "power",
    "eq": "equal",
    "ne": "not_equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "atan2": "arctan2",
}


def elementwise(
    name: str,
    kinds: Kinds,
    arity: int = 1,
    result_dtype: Callable[[Any], Any] | None = None,
    doc: str | None = None,
    function_name: str | None = None,
    mixed: tuple[Kinds, ...] | None = None,
    with_accuracy: bool = False,
) -> tuple[Primitive, Callable[..., Any]]:
    """Define a primitive that acts on each element, and the function that binds it.

    Args:
      name: of the primitive.
      kinds: what dtypes it accepts.
      arity: 1, 2 or 3 operands.
      result_dtype: operand dtype -> result dtype; by default the same.
      mixed: per operand what dtypes it accepts, where they need not agree.
      with_accuracy: whether the function takes an `accuracy` for the compiler.
    """
    primitive = Primitive(name)

    def rule(*avals: Any, **params: Any) -> ShapedArray:
        if mixed is not None:
            for i, (aval, accepted) in enumerate(zip(avals, mixed, strict=True)):
                check_dtype(name, aval.dtype, accepted, i)
        else:
            for i, aval in enumerate(avals):
                check_dtype(name, aval.dtype, kinds, None if arity == 1 else i)
            if arity > 1:
                check_same_dtypes(name, avals)
        dtype = avals[0].dtype
        return ShapedArray(
            broadcast_shapes(name, tuple(aval.shape for aval in avals)),
            dtype if result_dtype is None else result_dtype(dtype),
            result_dtype is not to_bool and all(aval.weak_type for aval in avals),
        )

    rule.__name__ = f"{name}_infer"
    infer(primitive)(rule)

    if with_accuracy:

        def function(x, accuracy=None):
            return process(primitive, (x,), {"accuracy": accuracy})

    elif arity == 1:

        def function(x):
            return process(primitive, (x,), {})

    elif arity == 2:

        def function(x, y):
            return process(primitive, (x, y), {})

    else:

        def function(x, y, z):
            return process(primitive, (x, y, z), {})

    function.__name__ = function.__qualname__ = function_name or name
    function.__doc__ = doc
    return primitive, function


def to_bool(dtype: Any) -> Any:
    return np.dtype(np.bool_)
