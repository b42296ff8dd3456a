"""Functions that define elementwise primitives: their infer and batch rules, and functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.boundary import filter_traceback
from hlofront.base.code_constants import with_constants
from hlofront.base.dtypes import float0, issubdtype
from hlofront.base.elements import NumPyDType
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process
from hlofront.primitives.rules.batching import batch_elementwise
from hlofront.primitives.sharding import families as sharding_families

# The dtypes that an operation accepts, as NumPy's abstract scalar types.
FLOAT = (np.floating,)
COMPLEX = (np.complexfloating,)
INT = (np.integer,)
SIGNED = (np.signedinteger,)
UNSIGNED = (np.unsignedinteger,)
BOOL = (np.bool_,)
NUMBER = INT + FLOAT + COMPLEX
# The dtypes that `<` orders.
ORDERED = INT + FLOAT + BOOL
# Every dtype except extended ones, such as random keys.
ARITHMETIC = INT + BOOL + FLOAT + COMPLEX
ANY = (np.generic,)

Kinds = tuple[type, ...]


def accepts(dtype: DType, kinds: Kinds) -> bool:
    if kinds is ANY:
        return dtype != float0
    return any(issubdtype(dtype, kind) for kind in kinds)


def check_dtype(name: str, dtype: DType, kinds: Kinds, position: int | None = None) -> None:
    """Raise TypeError unless an operation accepts a dtype.

    Args:
      name: the operation's name, for the message.
      dtype: the operand's dtype.
      kinds: the accepted kinds of dtypes.
      position: the operand's position, for the message.
    """
    if accepts(dtype, kinds):
        return
    at = "" if position is None else f" at position {position}"
    expected = ", ".join(kind.__name__.rstrip("_") for kind in kinds)
    raise TypeError(
        f"{name} does not accept dtype {dtype}{at}. Accepted dtypes{at} are subtypes of {expected}."
    )


def operand_shape(name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the result shape of an elementwise operation; raise TypeError if shapes conflict.

    Axes of size 1 and scalars are broadcast. Unlike NumPy's rule, which `shaping.broadcast_shapes`
    follows, all operands except scalars must have the same rank.
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


def check_same_dtypes(name: str, avals: tuple[ShapedArray, ...]) -> None:
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


# The NumPy-like function that promotes dtypes, by primitive name; empty where there is none.
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
    result_dtype: Callable[[NumPyDType], NumPyDType] | None = None,
) -> Primitive:
    """Define an elementwise primitive on operands of equal dtype, with its infer and batch rules.

    Args:
      name: the primitive's name.
      kinds: the accepted kinds of dtypes.
      arity: the number of operands.
      result_dtype: operand dtype -> result dtype; by default the operand dtype.
    """
    primitive = Primitive(name)

    def rule(*avals: ShapedArray, **params: object) -> ShapedArray:
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
    sharding_families.elementwise(primitive)
    return primitive


def unary(
    name: str,
    kinds: Kinds,
    doc: str,
    *,
    result_dtype: Callable[[NumPyDType], NumPyDType] | None = None,
    function_name: str | None = None,
    example: str = "",
) -> tuple[Primitive, Callable[..., Array]]:
    """Define an elementwise primitive of one operand; return it and the function that binds it.

    The function's docstring is `doc`, sections on its arguments, result and errors, and `example`.
    """
    primitive = elementwise_primitive(name, kinds, 1, result_dtype)

    doc += with_example(_unary_sections(kinds, result_dtype), example)
    return primitive, _named(_unary, primitive, function_name or name, doc)


# These functions filter tracebacks themselves, without the extra call that `boundary` costs.
def _unary(x: ArrayLike) -> Array:
    primitive: Any = "$primitive"
    try:
        return process(primitive, (x,), {})
    except Exception as error:
        filter_traceback(error)
        raise


def _unary_with_accuracy(x: ArrayLike, *, accuracy: object = None) -> Array:
    primitive: Any = "$primitive"
    try:
        return process(primitive, (x,), {"accuracy": accuracy})
    except Exception as error:
        filter_traceback(error)
        raise


def _binary(x: ArrayLike, y: ArrayLike) -> Array:
    primitive: Any = "$primitive"
    try:
        return process(primitive, (x, y), {})
    except Exception as error:
        filter_traceback(error)
        raise


def unary_with_accuracy(
    name: str, kinds: Kinds, doc: str
) -> tuple[Primitive, Callable[..., Array]]:
    """Define an elementwise primitive of one operand; return it and its function of (x, accuracy).

    The function's docstring is `doc` and sections on its arguments, result and errors.
    """
    primitive = elementwise_primitive(name, kinds)
    accuracy = """
      accuracy: an AccuracyMode or a Tolerance to request from the compiler; None for its default.
      """
    doc += _unary_sections(kinds, None, accuracy)
    return primitive, _named(_unary_with_accuracy, primitive, name, doc)


def binary(
    name: str,
    kinds: Kinds,
    doc: str,
    *,
    result_dtype: Callable[[NumPyDType], NumPyDType] | None = None,
    function_name: str | None = None,
    example: str = "",
) -> tuple[Primitive, Callable[..., Array]]:
    """Define an elementwise primitive of two operands; return it and the function that binds it.

    The function's docstring is `doc`, sections on its arguments, result and errors, and `example`.
    """
    primitive = elementwise_primitive(name, kinds, 2, result_dtype)
    doc += with_example(sections_of_operands(kinds, result_dtype), example)
    return primitive, _named(_binary, primitive, function_name or name, doc)


def _named(
    template: Callable[..., Array], primitive: Primitive, name: str, doc: str
) -> Callable[..., Array]:
    function = with_constants(template, primitive=primitive)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def to_bool(dtype: NumPyDType) -> NumPyDType:
    return np.dtype(np.bool_)


def real_of(dtype: NumPyDType) -> NumPyDType:
    """Return the dtype of a complex dtype's parts, float32 for complex64; others are unchanged."""
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype


def complex_of(dtype: NumPyDType) -> NumPyDType:
    """Return the complex dtype with parts of a floating dtype: complex64 for float32."""
    return np.dtype(f"complex{dtype.itemsize * 16}") if dtype.kind == "f" else dtype


# ---- docstrings ------------------------------------------------------------------------------

_KIND_WORDS: dict[type, str] = {
    np.bool_: "boolean",
    np.integer: "integer",
    np.signedinteger: "signed integer",
    np.unsignedinteger: "unsigned integer",
    np.floating: "floating-point",
    np.complexfloating: "complex",
}
_RESULT_WORDS: dict[Callable[[NumPyDType], NumPyDType] | None, str] = {
    None: "that dtype",
    to_bool: "booleans",
    real_of: "the dtype of the parts",
    complex_of: "complex numbers with parts of that dtype",
}


def _dtype_words(kinds: Kinds) -> str:
    """Return the accepted kinds of dtypes in words, such as "integer or floating-point dtype"."""
    if kinds is ANY:
        return "any dtype"
    *first, last = [_KIND_WORDS.get(kind, kind.__name__) for kind in kinds]
    return f"{', '.join(first)} or {last} dtype" if first else f"{last} dtype"


def with_example(sections: str, example: str) -> str:
    """Return the sections of a docstring, with an Example section unless `example` is empty."""
    return f"{sections.rstrip()}\n\n    Example:{example}" if example else sections


def _unary_sections(
    kinds: Kinds,
    result_dtype: Callable[[NumPyDType], NumPyDType] | None,
    more_arguments: str = "",
) -> str:
    """Return the sections of the docstring of an elementwise function of `x`."""
    return f"""

    Args:
      x: an array or scalar of {_dtype_words(kinds)}.{more_arguments}

    Returns:
      An array of {_RESULT_WORDS[result_dtype]}, of the shape of `x`.

    Raises:
      TypeError: if `x` is not an array or scalar, or has another dtype.
    """


def sections_of_operands(
    kinds: Kinds,
    result_dtype: Callable[[NumPyDType], NumPyDType] | None = None,
    names: str = "x, y",
) -> str:
    """Return the sections of the docstring of an elementwise function of several operands."""
    return f"""

    Args:
      {names}: arrays or scalars of {_dtype_words(kinds)}, the same for all.
        Their axes have equal sizes or size 1; a scalar fits every shape.

    Returns:
      An array of {_RESULT_WORDS[result_dtype]}; the operands' shapes broadcast to its shape.

    Raises:
      TypeError: if an operand is not an array or scalar, or their dtypes or shapes do not fit.
    """
