"""Makers of primitives that come in families: one line defines one elementwise operation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.boundary import filter_traceback
from hlofront.base.dtypes import float0, issubdtype
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process
from hlofront.primitives.batching import batch_elementwise

# What dtypes an operation accepts, as NumPy's abstract scalar types.
FLOAT = (np.floating,)
COMPLEX = (np.complexfloating,)
INT = (np.integer,)
SIGNED = (np.signedinteger,)
UNSIGNED = (np.unsignedinteger,)
BOOL = (np.bool_,)
NUMBER = INT + FLOAT + COMPLEX
# What `<` orders.
ORDERED = INT + FLOAT + BOOL
# Every dtype that NumPy would know, but not keys and their like.
ARITHMETIC = INT + BOOL + FLOAT + COMPLEX
ANY = (np.generic,)

Kinds = tuple[type, ...]


def accepts(dtype: DType, kinds: Kinds) -> bool:
    if kinds is ANY:
        return dtype != float0
    return any(issubdtype(dtype, kind) for kind in kinds)


def check_dtype(name: str, dtype: DType, kinds: Kinds, position: int | None = None) -> None:
    """Raise TypeError if an operation does not accept a dtype.

    Args:
      name: of the operation, for the message.
      kinds: the accepted kinds of dtypes.
      position: the operand's position, for the message.
    """
    if accepts(dtype, kinds):
        return
    at = "" if position is None else f" at position {position}"
    wanted = ", ".join(kind.__name__.rstrip("_") for kind in kinds)
    raise TypeError(
        f"{name} does not accept dtype {dtype}{at}. Accepted dtypes{at} are subtypes of {wanted}."
    )


def operand_shape(name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the shape of an elementwise operation: scalars fit any, a size of one any size.

    Unlike NumPy's rule, which `shaping.broadcast_shapes` follows, ranks must agree but for scalars.
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
    promoting = _promoting.get(name, name)
    advice = (
        f" (Tip: jnp.{promoting} is a similar function that does automatic type promotion on "
        "inputs)."
        if promoting
        else ""
    )
    raise TypeError(
        f"lax.{name} requires arguments to have the same dtypes, got "
        f"{', '.join(str(aval.dtype) for aval in avals)}.{advice}"
    )


# The NumPy-like function that promotes, where its name differs; empty where there is none.
_promoting = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "rem": "remainder",
    "max": "maximum",
    "min": "minimum",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "shift_left": "left_shift",
    "shift_right_arithmetic": "right_shift",
    "shift_right_logical": "right_shift",
    "pow": "power",
    "eq": "equal",
    "ne": "not_equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "atan2": "arctan2",
    "select": "where",
    "clamp": "",
    "complex": "",
    "mulhi": "",
    "eq_to": "",
    "le_to": "",
    "lt_to": "",
    "igamma": "",
    "igammac": "",
    "igamma_grad_a": "",
    "random_gamma_grad": "",
    "regularized_incomplete_beta": "",
    "polygamma": "",
    "zeta": "",
}


def elementwise_primitive(
    name: str,
    kinds: Kinds,
    arity: int = 1,
    result_dtype: Callable[[Any], Any] | None = None,
) -> Primitive:
    """Define a primitive that acts on each element of operands of one dtype, and is batched so.

    Args:
      name: of the primitive.
      kinds: what dtypes it accepts.
      arity: how many operands it takes.
      result_dtype: operand dtype -> result dtype; by default the same.
    """
    primitive = Primitive(name)

    def rule(*avals: Any, **params: object) -> ShapedArray:
        for i, aval in enumerate(avals):
            check_dtype(name, aval.dtype, kinds, None if arity == 1 else i)
        shape = avals[0].shape
        if arity > 1:
            shape = operand_shape(name, tuple(aval.shape for aval in avals))
            check_same_dtypes(name, avals)
        dtype = avals[0].dtype
        return ShapedArray(
            shape,
            dtype if result_dtype is None else result_dtype(dtype),
            all(aval.weak_type for aval in avals),
        )

    rule.__name__ = rule.__qualname__ = f"{name}_infer"
    infer(primitive)(rule)
    batch_elementwise(primitive)
    return primitive


def unary(
    name: str,
    kinds: Kinds,
    doc: str,
    *,
    result_dtype: Callable[[Any], Any] | None = None,
    function_name: str | None = None,
) -> tuple[Primitive, Callable[..., Any]]:
    """A primitive of one operand, and the function that binds it."""
    primitive = elementwise_primitive(name, kinds, 1, result_dtype)

    # As `boundary` does, without the cost of a call.
    def function(x: ArrayLike) -> Any:
        try:
            return process(primitive, (x,), {})
        except Exception as error:
            filter_traceback(error)
            raise

    return primitive, _named(function, function_name or name, doc)


def unary_with_accuracy(name: str, kinds: Kinds, doc: str) -> tuple[Primitive, Callable[..., Any]]:
    """Return a primitive of one operand and its function, which takes an `accuracy`."""
    primitive = elementwise_primitive(name, kinds)

    def function(x: ArrayLike, *, accuracy: object = None) -> Any:
        try:
            return process(primitive, (x,), {"accuracy": accuracy})
        except Exception as error:
            filter_traceback(error)
            raise

    doc += (
        "\n\n    `accuracy` is an AccuracyMode or a Tolerance to ask of the compiler, or None for "
        "its default.\n    "
    )
    return primitive, _named(function, name, doc)


def binary(
    name: str,
    kinds: Kinds,
    doc: str,
    *,
    result_dtype: Callable[[Any], Any] | None = None,
    function_name: str | None = None,
) -> tuple[Primitive, Callable[..., Any]]:
    """A primitive of two operands of one dtype, and the function that binds it."""
    primitive = elementwise_primitive(name, kinds, 2, result_dtype)

    def function(x: ArrayLike, y: ArrayLike) -> Any:
        try:
            return process(primitive, (x, y), {})
        except Exception as error:
            filter_traceback(error)
            raise

    return primitive, _named(function, function_name or name, doc)


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def to_bool(dtype: DType) -> DType:
    return np.dtype(np.bool_)


def real_of(dtype: DType) -> DType:
    """The dtype of the parts of complex numbers: float32 for complex64; others as they are."""
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype


def complex_of(dtype: DType) -> DType:
    """The dtype of complex numbers with such parts: complex64 for float32."""
    return np.dtype(f"complex{dtype.itemsize * 16}") if dtype.kind == "f" else dtype
