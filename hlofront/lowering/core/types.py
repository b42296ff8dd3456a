"""MLIR types, attributes and constants of avals and Python values, cached."""

# The stubs of jaxlib do not name the types of all arguments.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import ExtendedDType, float0, full_name
from hlofront.base.typing import DType, NumPyArray
from hlofront.bridge.mlir import context, ir, parsed_attribute
from hlofront.core.aval import AbstractToken, AbstractValue, ShapedArray, SymbolicSize
from hlofront.core.futures import AbstractFuture
from hlofront.core.sizes.symbolic import has_symbolic_size

# A NumPy dtype, which all dtypes are except the extended ones.
NumPyDType = np.dtype[Any]

_element_texts = {
    "bool": "i1",
    "int2": "i2",
    "int4": "i4",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint2": "ui2",
    "uint4": "ui4",
    "uint8": "ui8",
    "uint16": "ui16",
    "uint32": "ui32",
    "uint64": "ui64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
}
_element_types: dict[DType, ir.Type] = {}
_types: dict[AbstractValue, ir.Type] = {}
_attributes: dict[str, ir.Attribute] = {}
_integers: dict[tuple[int, ...], ir.Attribute] = {}


def clear() -> None:
    """Clear the caches of types and attributes."""
    _element_types.clear()
    _types.clear()
    _attributes.clear()
    _integers.clear()


def element_type(dtype: DType) -> ir.Type:
    """Return the MLIR element type of a dtype.

    Raises:
      TypeError: if no device supports elements of the dtype.
    """
    type_ = _element_types.get(dtype)
    if type_ is None:
        # An element of float0 holds no data; represent it as a boolean.
        text = "i1" if dtype == float0 else _element_texts.get(dtype.name)
        if text is None:
            raise TypeError(f"dtype {dtype.name} has no StableHLO element type")
        type_ = _element_types[dtype] = ir.Type.parse(text, context)
    return type_


def tensor_type(shape: tuple[int, ...], dtype: DType) -> ir.Type:
    """Return the MLIR type of an array with this shape and dtype."""
    return aval_type(ShapedArray(shape, dtype))


def aval_type(aval: AbstractValue) -> ir.Type:
    """Return the MLIR type of a value with this aval: an array, a token or a future.

    Raises:
      TypeError: if no handler knows the class of the aval, or it stands for several MLIR values.
      ValueError: if an array has more bytes than any device can address.
    """
    type_ = _types.get(aval)
    if type_ is None:
        made = types_of(aval)
        if not isinstance(made, ir.Type):
            raise TypeError(f"Expected a single IR type, got {made}")
        type_ = _types[aval] = made
    return type_


def types_of(aval: AbstractValue) -> ir.Type | Sequence[ir.Type]:
    """Return the MLIR type for an aval, or the types if it stands for several MLIR values.

    Raises:
      TypeError: if no handler knows the class of the aval.
    """
    handler = type_handlers.get(type(aval))
    if handler is None:
        raise TypeError(f"No ir_type_handler for aval type: {type(aval)}")
    with context:
        return handler(aval)


class TypeHandlers(dict[type[AbstractValue], Callable[[Any], "ir.Type | Sequence[ir.Type]"]]):
    """A table from classes of avals to functions that return the MLIR types of an aval."""

    def __setitem__(
        self, aval_class: type[AbstractValue], handler: Callable[[Any], Any], /
    ) -> None:
        _types.clear()
        super().__setitem__(aval_class, handler)


def _array_type(aval: ShapedArray) -> ir.Type:
    if isinstance(aval.dtype, ExtendedDType):
        return tensor_type(*aval.dtype.physical(aval.shape))
    if has_symbolic_size(aval.shape):
        shape = [dynamic if isinstance(size, SymbolicSize) else size for size in aval.shape]
        return ir.RankedTensorType.get(shape, element_type(aval.dtype), loc=unknown)
    # XLA aborts the process if the product of leading sizes and the bytes of an element overflows,
    # even if a later size of 0 leaves the array without elements.
    bytes_so_far = max(aval.dtype.itemsize, 1)
    for size in aval.shape:
        bytes_so_far *= size
        if bytes_so_far > _MAX_BYTES:
            raise ValueError(_too_large(aval))
    return ir.RankedTensorType.get(aval.shape, element_type(aval.dtype), loc=unknown)


def _too_large(aval: ShapedArray) -> str:
    """Return the error for an array whose number of bytes XLA cannot represent."""
    if aval.size:
        return (
            f"an array {aval.str_short()} has {aval.size * aval.dtype.itemsize:,} bytes: "
            "more than any device can address"
        )
    return (
        f"an array {aval.str_short()} has no elements, but XLA cannot represent the product of the "
        "sizes before the 0: put the axis of size 0 first, or reduce the other sizes"
    )


def check_padding(
    aval: ShapedArray, padding: Sequence[Sequence[int]], dilation: Sequence[int]
) -> None:
    """Raise an error if the operand of a windowed operation is too large once it is padded.

    XLA pads before it removes elements for negative padding, and aborts the process if the array in
    between has more bytes than it can represent. Symbolic sizes are not checked.

    Args:
      aval: the type of the operand.
      padding, dilation: per trailing axis, the numbers of elements before and after, and the
        distance between elements.

    Raises:
      ValueError: if the padded operand is too large.
    """
    if has_symbolic_size(aval.shape):
        return
    first = aval.ndim - len(dilation)
    padded = [
        max(size - 1, 0) * step + 1 + sum(max(edge, 0) for edge in edges)
        for size, step, edges in zip(aval.shape[first:], dilation, padding, strict=True)
    ]
    _array_type(aval.update(shape=(*aval.shape[:first], *padded)))


type_handlers = TypeHandlers(
    {
        ShapedArray: _array_type,
        AbstractToken: lambda _: ir.Type.parse("!stablehlo.token", context),
        AbstractFuture: lambda aval: ir.Type.parse(
            f"!stablehlo.future<{aval_type(aval.inner_aval)}>", context
        ),
    }
)

unknown = ir.Location.unknown(context)
# The number that represents an unknown size in an array's type.
dynamic: int = ir.ShapedType.get_dynamic_size()
_MAX_BYTES = 2**63 - 1


def attribute(text: str) -> ir.Attribute:
    """Return an MLIR attribute parsed from its text, cached."""
    parsed = _attributes.get(text)
    if parsed is None:
        parsed = _attributes[text] = parsed_attribute(text)
    return parsed


def i64_array(values: Iterable[int]) -> ir.Attribute:
    """Return `array<i64: 1, 2>`, the form of dimension lists in StableHLO."""
    key = tuple(map(int, values))
    array = _integers.get(key)
    if array is None:
        array = _integers[key] = ir.DenseI64ArrayAttr.get(key, context)
    return array


def i64(value: int) -> ir.Attribute:
    return attribute(f"{int(value)} : i64")


def i32(value: int) -> ir.Attribute:
    return attribute(f"{int(value)} : i32")


def boolean(value: bool) -> ir.Attribute:
    return attribute("true" if value else "false")


def bool_array(values: Iterable[bool]) -> ir.Attribute:
    texts = ", ".join("true" if v else "false" for v in values)
    return attribute(f"array<i1: {texts}>" if texts else "array<i1>")


def i64_matrix(rows: Iterable[Sequence[int]], columns: int = 2) -> ir.Attribute:
    """Return `dense<[[0, 1], ...]> : tensor<nx2xi64>`, the form of padding in StableHLO."""
    rows = [tuple(map(int, row)) for row in rows]
    body = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in rows)
    inner = f"[{body}]" if rows else ""
    return attribute(f"dense<{inner}> : tensor<{len(rows)}x{columns}xi64>")


def string(value: str) -> ir.Attribute:
    return ir.StringAttr.get(value, context)


def dense(array: NumPyArray) -> ir.Attribute:
    """Return the elements attribute with an array's exact bits; a splat if all are equal."""
    array = np.asarray(array)
    if array.dtype == float0:
        array = np.zeros(array.shape, bool)
    # MLIR's Python bindings cannot name the class of parsed complex elements.
    if array.size == 0 and array.dtype.kind != "c":
        return attribute(f"dense<> : {tensor_type(array.shape, array.dtype)}")
    first = array.reshape(-1)[:1]
    # Compare bytes: NaN equals itself, and 0.0 is not -0.0.
    if array.size == 1 or (first.tobytes() * array.size == array.tobytes()):
        return _from_bytes(first, array.shape, array.dtype)
    return _from_bytes(array, array.shape, array.dtype)


def _from_bytes(array: NumPyArray, shape: tuple[int, ...], dtype: NumPyDType) -> ir.Attribute:
    """Return an elements attribute from bytes; booleans and narrow integers take one byte each."""
    bits = np.ascontiguousarray(array)
    if dtype.kind not in "iufc" or full_name(dtype) not in _BUFFER_FORMATS:
        bits = bits.view(f"u{dtype.itemsize}")
    with context:
        elements: Any = bits
        return ir.DenseElementsAttr.get(elements, type=element_type(dtype), shape=shape)


_BUFFER_FORMATS = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint", "float", "complex") for bits in (8, 16, 32, 64, 128)
)


def compare_type(dtype: NumPyDType) -> str:
    """Return the comparison type of a dtype in StableHLO: UNSIGNED, SIGNED or FLOAT."""
    name = full_name(dtype)
    if dtype.kind in "bu" or name in _UNSIGNED:
        return "UNSIGNED"
    if dtype.kind == "i" or name in _SIGNED:
        return "SIGNED"
    return "FLOAT"


_UNSIGNED = ("uint2", "uint4")
_SIGNED = ("int2", "int4")


_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def is_wide(aval: AbstractValue) -> bool:
    """Return whether the dtype of an aval requires the option jax_enable_x64."""
    return getattr(aval, "dtype", None) in _WIDE
