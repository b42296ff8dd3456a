"""Dtypes: names, 64-bit narrowing and type promotion.

A dtype is a NumPy dtype (with those of ml_dtypes), or an ExtendedDType for elements that NumPy
lacks, such as random keys. A dtype may be *weak*: that of a Python scalar, which yields to the
dtype of an array operand.
"""

import functools
from typing import Any, cast

import ml_dtypes
import numpy as np

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.elements import (
    ExtendedDType,
    NumPyDType,
    all_dtypes,
    bool_,
    extended,
    float0,
    kind_of_class,
    narrow_floats,
    narrow_integers,
    prng_key,
    unsigned_integers,
)
from hlofront.base.promotion_order import Node, least_above
from hlofront.bridge import state
from hlofront.bridge.fast_parts import Array

_x64 = state.enable_x64
_promotion_mode = options["jax_numpy_dtype_promotion"].cell
_explicit_mode = options["jax_explicit_x64_dtypes"]


# ---- dtypes and their names -------------------------------------------------------------------

# NumPy converts some of these to dtypes, with a warning; its version decides which.
_abstract_classes = frozenset(
    {np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact}
    | {np.floating, np.complexfloating, np.flexible, np.character, extended, prng_key}
)

# A scalar class of NumPy or ml_dtypes, an abstract one, such as np.floating, or a Python type.
ScalarClass = type[Any]

_DTYPE_CLASSES: tuple[type[Any], ...] = (np.dtype, ExtendedDType)
_dtype_of: dict[object, NumPyDType] = {}


def dtype_of(dtype: Any) -> Any:
    """Return the dtype for a name, scalar class or dtype, without narrowing 64-bit ones.

    Raises:
      TypeError: if it is not a dtype, or is an abstract class such as np.floating.
      ValueError: if it is an array.
    """
    if isinstance(dtype, _DTYPE_CLASSES):
        return dtype
    try:
        return _dtype_of[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, type) and dtype in _abstract_classes:
        raise TypeError(
            f"{dtype.__name__} is a kind of dtypes; expected one dtype, such as float32"
        )
    if isinstance(dtype, Array):
        raise ValueError("an array was given as a dtype: instead of dtype=x write dtype=x.dtype")
    resolved = np.dtype(dtype)
    if isinstance(dtype, type | str):  # a small set, unlike lists of fields
        _dtype_of[dtype] = resolved
    return resolved


@functools.cache
def full_name(dtype: NumPyDType | ExtendedDType) -> str:
    """Return the name of a dtype, such as float32, cached: NumPy computes it each time."""
    return "float0" if dtype == float0 else dtype.name


@functools.cache
def short_name(dtype: NumPyDType | ExtendedDType) -> str:
    """Return the name of a dtype in jaxprs, such as f32, bf16, i4, u8, c64 or f8_e4m3fn."""
    if dtype == float0:
        return "float0"
    name = dtype.name
    for long, short in _SHORT:
        if name.startswith(long):
            return short + name[len(long) :]
    return name


_SHORT = (("float", "f"), ("int", "i"), ("uint", "u"), ("complex", "c"), ("bfloat", "bf"))


# ---- 64-bit dtypes, enabled and disabled -------------------------------------------------------

_narrowed: dict[object, NumPyDType] = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
# The canonical dtype of each dtype-like value, with 64-bit dtypes disabled and enabled.
_canonical_32: dict[object, NumPyDType] = {}
_canonical_64: dict[object, NumPyDType] = {}
# The canonical dtype of each array dtype.
_of_array_32 = {dtype: _narrowed.get(dtype, dtype) for dtype in (*all_dtypes, float0)}
_of_array_64 = {dtype: dtype for dtype in (*all_dtypes, float0)}


def canonicalize_dtype(dtype: object, allow_extended_dtype: bool = False) -> Any:
    """Return the canonical dtype of a dtype-like value: 64 bits become 32 unless x64 is enabled.

    Args:
      dtype: a dtype, its name, a scalar type, or None for the default floating-point dtype.
      allow_extended_dtype: whether dtypes of random keys are accepted; they are returned unchanged.

    Raises:
      TypeError: if it is not a dtype.
      ValueError: if it is an extended dtype and those are not allowed.

    Example:
      >>> jax.dtypes.canonicalize_dtype("float64")
      dtype('float32')
    """
    try:
        return (_canonical_64 if _x64.value else _canonical_32)[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, ExtendedDType) or (
        isinstance(dtype, type) and issubclass(dtype, extended)
    ):
        if not allow_extended_dtype:
            raise ValueError(
                f"{dtype} is an extended dtype, and only ordinary dtypes are supported here"
            )
        return dtype
    canonical = np.dtype(None) if dtype is None else dtype_of(dtype)
    if not _x64.value:
        canonical = _narrowed.get(canonical, canonical)
    if dtype is None or isinstance(dtype, type | str) or dtype in all_dtypes:
        (_canonical_64 if _x64.value else _canonical_32)[dtype] = canonical
    return canonical


def array_dtype(dtype: NumPyDType) -> NumPyDType:
    """Return the dtype on device of a NumPy array's dtype: 64 bits become 32 unless x64 is enabled.

    Raises:
      TypeError: if no device supports it: strings, objects, dates, other byte orders.
    """
    try:
        return (_of_array_64 if _x64.value else _of_array_32)[dtype]
    except KeyError:
        raise TypeError(
            f"dtype {dtype} is not a valid JAX array type: expected numbers or booleans in native "
            "byte order. Convert the array with .astype first."
        ) from None


_PYTHON_32: dict[type, NumPyDType] = {
    bool: bool_,
    int: np.dtype("int32"),
    float: np.dtype("float32"),
    complex: np.dtype("complex64"),
}
_PYTHON_64: dict[type, NumPyDType] = {
    bool: bool_,
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}


def python_scalar_dtype(type_: type) -> NumPyDType:
    """Return the default dtype of Python scalars of a type, such as float32 for float.

    Raises:
      TypeError: if the type is not bool, int, float, complex or a subclass of one.
    """
    table = _PYTHON_64 if _x64.value else _PYTHON_32
    try:
        return table[type_]
    except KeyError:
        for base in type_.__mro__:
            if base in table:
                return table[base]
        raise TypeError(f"{type_.__name__} is not a type of Python scalars") from None


def check_integer(x: int) -> None:
    """Raise OverflowError unless the default integer dtype can hold a Python integer."""
    if -(1 << 31) <= x < 1 << 31:
        return
    dtype = python_scalar_dtype(int)
    bits = dtype.itemsize * 8 - 1
    if not -(1 << bits) <= x < 1 << bits:
        advice = "as no integer dtype holds it"
        if not _x64.value:
            advice = "or turn 64-bit dtypes on with jax_enable_x64"
        elif 0 <= x < 1 << 64:
            advice = "or as np.uint64(...)"
        raise OverflowError(
            f"Python integer {x} is too large to convert to {dtype}: give it as a float, {advice}."
        )


def default_dtype(kind: str) -> NumPyDType:
    """Return the default dtype for a NumPy kind letter among "biufc"."""
    if kind == "u":
        return unsigned_integers[3 if _x64.value else 2]
    return python_scalar_dtype({"b": bool, "i": int, "f": float, "c": complex}[kind])


def check_user_dtype_supported(dtype: object, where: str = "dtype") -> Any:
    """Return the canonical dtype of a dtype that a user requests in the function named `where`.

    Without x64, a 64-bit dtype warns and narrows, or does what `jax_explicit_x64_dtypes` selects.
    The Python types `int`, `float`, `complex` and None request a kind, not 64 bits.

    Raises:
      TypeError: if it is not a dtype, or is one that no device supports.
      ValueError: if it is a 64-bit dtype and the option is "error".
    """
    if dtype is None or (isinstance(dtype, type) and dtype in _PYTHON_32):
        return canonicalize_dtype(dtype)
    requested = dtype_of(dtype)
    if isinstance(requested, ExtendedDType):
        return requested
    if requested not in all_dtypes and requested != float0:
        raise TypeError(
            f"JAX only supports number and bool dtypes in native byte order, got dtype {requested} "
            f"in {where}"
        )
    if _x64.value or requested not in _narrowed:
        return requested
    mode = _explicit_mode.value
    if mode == "allow":
        return requested
    problem = f"Explicitly requested dtype {requested} is not available in {where}"
    remedy = (
        'Turn 64-bit dtypes on with config.update("jax_enable_x64", True) or the environment '
        "variable JAX_ENABLE_X64=1."
    )
    if mode == "error":
        raise ValueError(f"{problem}. {remedy}")
    narrow = _narrowed[requested]
    source.warn(f"{problem}, and will be truncated to dtype {narrow}. {remedy}")
    return narrow


# ---- kinds -------------------------------------------------------------------------------------


def issubdtype(a: object, b: object) -> bool:
    """Return whether a dtype belongs to a kind.

    Unlike `np.issubdtype`, it supports the dtypes of ml_dtypes and extended dtypes.

    Args:
      a: a dtype, its name or a scalar type.
      b: a dtype, or a kind of dtypes such as np.floating, jnp.integer or dtypes.prng_key.

    Raises:
      TypeError: if one of them is not a dtype, nor a name or class of dtypes.

    Example:
      >>> jax.dtypes.issubdtype("bfloat16", np.floating)
      True
    """
    try:
        return _issubdtype(a, b)
    except TypeError:
        # The argument is an unhashable description of a dtype, or not a dtype.
        return _issubdtype(*(x if isinstance(x, type) else dtype_of(x) for x in (a, b)))


def is_complex(dtype: NumPyDType | ExtendedDType | type) -> bool:
    """Return whether the elements of a dtype are complex numbers."""
    return issubdtype(dtype, np.complexfloating)


@functools.cache
def _issubdtype(dtype: object, kind: object) -> bool:
    if isinstance(kind, ExtendedDType):
        return dtype == kind
    class_, kind_class = _scalar_class(dtype), _scalar_class(kind)
    return issubclass(class_, kind_class) or issubclass(
        kind_of_class.get(class_, class_), kind_class
    )


def _scalar_class(dtype: object) -> ScalarClass:
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return cast(ScalarClass, dtype)
    return np.dtype(None).type if dtype is None else dtype_of(dtype).type


@functools.cache
def _info(dtype: NumPyDType) -> Any:
    if issubdtype(dtype, np.integer):
        return ml_dtypes.iinfo(dtype) if dtype in narrow_integers else np.iinfo(dtype)
    if issubdtype(dtype, np.inexact):
        return cast(Any, ml_dtypes.finfo)(dtype)  # The stub of ml_dtypes only lists floats.
    return None


def finfo(dtype: object) -> Any:
    """Return the limits of a floating-point or complex dtype.

    Raises:
      ValueError: for other dtypes.
    """
    limits = None if issubdtype(dtype, np.integer) else _info(dtype_of(dtype))
    if limits is None:
        raise ValueError(f"dtype {dtype_of(dtype)} is not inexact: finfo is for floats and complex")
    return limits


def iinfo(dtype: object) -> Any:
    """Return the limits of an integer dtype.

    Raises:
      ValueError: for other dtypes.
    """
    if not issubdtype(dtype, np.integer):
        raise ValueError(f"dtype {dtype_of(dtype)} is not an integer dtype: iinfo is for integers")
    return _info(dtype_of(dtype))


@functools.cache
def _bit_width(dtype: NumPyDType) -> int:
    if dtype in narrow_integers or dtype in narrow_floats:
        return _info(dtype).bits
    if dtype == bool_ or issubdtype(dtype, np.number):
        return dtype.itemsize * 8
    raise ValueError(f"dtype {dtype} has no width in bits: it is neither number nor boolean")


def bit_width(dtype: object) -> int:
    """Return the bits per element of a dtype; 4 for int4, though NumPy stores it in a byte.

    Args:
      dtype: a dtype, its name or a scalar type.

    Raises:
      ValueError: if it is neither a number nor boolean, or None.
    """
    if dtype is None:
        raise ValueError("dtype cannot be None")
    return _bit_width(dtype_of(dtype))


def scalar_kind(dtype: object) -> type:
    """Return the Python type of a dtype's scalars: bool, int, float or complex.

    Raises:
      TypeError: if the dtype is neither a number nor boolean.
    """
    for kind, type_ in _SCALAR_KINDS:
        if issubdtype(dtype, kind):
            return type_
    raise TypeError(f"dtype {dtype} is neither a number nor a boolean")


_SCALAR_KINDS: tuple[tuple[ScalarClass, type], ...] = (
    (np.bool_, bool),
    (np.integer, int),
    (np.floating, float),
    (np.complexfloating, complex),
)


@functools.cache
def to_numeric_dtype(dtype: object) -> Any:
    """Return a dtype, with bool replaced by int32."""
    dtype = dtype_of(dtype)
    return np.dtype("int32") if dtype == bool_ else dtype


@functools.cache
def to_inexact_dtype(dtype: Any) -> Any:
    """Return a dtype; for integers and bool, return float64 if they have 64 bits, else float32."""
    dtype = dtype_of(dtype)
    if dtype != bool_ and not issubdtype(dtype, np.integer):
        return dtype
    return np.dtype("float64" if dtype.itemsize == 8 else "float32")


@functools.cache
def to_floating_dtype(dtype: Any) -> Any:
    """Return the floating dtype for a dtype: that of a complex one's parts, a float for others."""
    dtype = to_inexact_dtype(dtype)
    if issubdtype(dtype, np.complexfloating):
        return np.dtype("float64" if dtype.itemsize == 16 else "float32")
    return dtype


@functools.cache
def to_complex_dtype(dtype: Any) -> Any:
    """Return a dtype if it is complex, else complex128 for 64-bit dtypes, complex64 for others."""
    dtype = dtype_of(dtype)
    if issubdtype(dtype, np.complexfloating):
        return dtype
    return np.dtype("complex128" if dtype.itemsize == 8 else "complex64")


# ---- promotion ---------------------------------------------------------------------------------

Promotable = tuple[Any, bool]

# (x64, promotion mode) -> operand types -> promoted type.
_promoted: dict[tuple[bool, str], dict[tuple[Promotable, ...], Promotable]] = {
    (x64, mode): {} for x64 in (False, True) for mode in ("standard", "strict")
}


def lattice_result(types: tuple[Promotable, ...]) -> Promotable:
    """Return the (dtype, weak) pair that operands with (dtype, weak) pairs promote to.

    Raises:
      ValueError: if there are none, or extended dtypes differ.
      TypePromotionError: if they have no common dtype.
    """
    try:
        return _promoted[_x64.value, _promotion_mode.value][types]
    except KeyError:
        return _lattice_result(types)


def _lattice_result(types: tuple[Promotable, ...]) -> Promotable:
    if not types:
        raise ValueError("at least one array or dtype is required")
    x64, mode = _x64.value, _promotion_mode.value
    dtypes = [dtype for dtype, _ in types]
    wide = False
    if not x64 and any(dtype in _narrowed for dtype in dtypes):
        # # Operands were made under x64, or by jax_explicit_x64_dtypes, which is not in the cache
        # key.
        wide = _explicit_mode.value == "allow"
        if not wide:
            return lattice_result(tuple((_narrowed.get(d, d), weak) for d, weak in types))
    first = dtypes[0]
    if not any(weak for _, weak in types) and all(dtype == first for dtype in dtypes):
        return first, False  # for any dtype, extended ones included
    if mode == "standard" and all(weak for _, weak in types):
        # Weak dtypes may have 32 bits under x64, if a block enabled it after they were made.
        joined = least_above(dtypes, mode)
        result: Promotable = _at_width(joined, x64), joined != np.bool_
    else:
        joined = least_above((_weak_node(d) if weak else d for d, weak in types), mode)
        if isinstance(joined, type):
            result = python_scalar_dtype(joined), True
        else:
            result = _at_width(joined, x64 or wide), False
    if not wide:
        _promoted[x64, mode][types] = result
    return result


def _at_width(node: Node, wide: bool) -> Node:
    """Return a node of the promotion order, narrowed to 32 bits unless `wide`."""
    return node if wide or isinstance(node, type) else _narrowed.get(node, node)


def _letter(class_: ScalarClass) -> str:
    """Return the kind letter of a scalar class, for `default_dtype`."""
    if issubdtype(class_, np.unsignedinteger):
        return "u"
    return scalar_kind(class_).__name__[0]


def _weak_node(dtype: object) -> Node:
    """Return the promotion order's node of a weak dtype: a Python type, or bool's dtype."""
    kind = scalar_kind(dtype)
    return bool_ if kind is bool else kind


def promote_types(a: object, b: object) -> Any:
    """Return the dtype that two dtypes promote to; without x64 it has 64 bits only if one has.

    Args:
      a, b: dtypes, their names, or scalar types: int, float and complex are weak dtypes of 64 bits.

    Raises:
      TypePromotionError: if they have no common dtype.
      TypeError: if one is not a dtype.

    Example:
      >>> jnp.promote_types("int32", "float16")
      dtype('float16')
    """
    first, second = _promotion_node(a), _promotion_node(b)
    if isinstance(first, ExtendedDType) and first == second:
        return first
    joined = least_above((first, second), _promotion_mode.value)
    if isinstance(joined, type):
        return _PYTHON_64[joined]
    return _at_width(joined, _x64.value or first in _narrowed or second in _narrowed)


def _promotion_node(dtype: object) -> Node:
    """Return the promotion order's node of a dtype; Python's int, float and complex are nodes."""
    if isinstance(dtype, type) and dtype in _PYTHON_64 and dtype is not bool:
        return dtype
    return np.dtype(None) if dtype is None else dtype_of(dtype)


# ---- the dtypes of values ----------------------------------------------------------------------


def dtype_and_weakness(x: object) -> Promotable:
    """Return the dtype of an array, tracer, NumPy array or Python scalar, and whether it is weak.

    Raises:
      TypeError: if it is none of these, or has a dtype that no device supports.
    """
    type_: type = type(x)
    dtype = None if type_ in _PYTHON_32 else getattr(x, "dtype", None)
    if dtype is None:
        if not isinstance(x, bool | int | float | complex):
            raise TypeError(f"a value of type {type_.__name__} has no dtype: got {x!r}")
        return python_scalar_dtype(type_), type_ is not bool
    if isinstance(x, np.ndarray | np.generic):
        return array_dtype(dtype), False
    # Python scalars may have a dtype: see core/typed_scalars.py.
    return dtype, bool(getattr(x, "weak_type", isinstance(x, int | float | complex)))


def scalar_type_of(x: object) -> type:
    """Return the Python type of a value's or dtype's scalars: bool, int, float or complex.

    Args:
      x: an array, a scalar or a dtype.

    Raises:
      TypeError: if the dtype is neither numeric nor boolean.
    """
    if _is_dtype(x):
        return scalar_kind(dtype_of(x))
    return scalar_kind(dtype_and_weakness(x)[0])


def result_type(*args: object, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype that values and dtypes promote to by JAX's rules.

    Args:
      args: arrays, NumPy arrays, Python scalars, dtypes and their names. The Python types int,
        float and complex count as weak, None as the default float.
      return_weak_type_flag: whether to return a pair of the dtype and whether it is weak.

    Raises:
      ValueError: if there are no arguments.
      TypeError: if an argument has no dtype.
      TypePromotionError: if there is no common dtype.
    """
    dtype, weak = as_result(lattice_result(tuple(map(_promotable, args))))
    return (dtype, weak) if return_weak_type_flag else dtype


def as_result(promoted: Promotable) -> Promotable:
    """Return a promoted (dtype, weak) pair with a weak dtype replaced by its kind's default."""
    dtype, weak = promoted
    return (default_dtype(_letter(_scalar_class(dtype))), True) if weak else promoted


def _promotable(x: object) -> Promotable:
    if isinstance(x, type) and x in _PYTHON_32:
        return python_scalar_dtype(x), x is not bool
    if x is None or _is_dtype(x):
        return check_user_dtype_supported(x), False
    return dtype_and_weakness(x)


def _is_dtype(x: object) -> bool:
    return isinstance(x, np.dtype | ExtendedDType | type | str)
