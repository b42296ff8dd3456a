"""Avals and Python values as MLIR types, attributes and constants, each made once."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import ExtendedDType, float0
from hlofront.bridge.mlir import context, ir
from hlofront.core.aval import AbstractToken, ShapedArray

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
_element_types: dict[Any, Any] = {}
_types: dict[Any, Any] = {}
_attributes: dict[str, Any] = {}
_integers: dict[Any, Any] = {}


def clear() -> None:
    """Forget the types and attributes made so far."""
    for table in (_element_types, _types, _attributes, _integers):
        table.clear()


def element_type(dtype: Any) -> Any:
    """The MLIR element type of a dtype; TypeError where no device has it."""
    found = _element_types.get(dtype)
    if found is None:
        # Nothing is known of what float0 holds: booleans take its place.
        text = "i1" if dtype == float0 else _element_texts.get(dtype.name)
        if text is None:
            raise TypeError(f"dtype {dtype.name} has no StableHLO element type")
        found = _element_types[dtype] = ir.Type.parse(text, context)
    return found


def tensor_type(shape: tuple[int, ...], dtype: Any) -> Any:
    return aval_type(ShapedArray(shape, dtype))


def aval_type(aval: Any) -> Any:
    """The MLIR type of a value of this aval."""
    found = _types.get(aval)
    if found is None:
        if isinstance(aval, AbstractToken):
            found = ir.Type.parse("!stablehlo.token", context)
        elif isinstance(aval.dtype, ExtendedDType):
            shape, dtype = aval.dtype.physical(aval.shape)
            found = tensor_type(shape, dtype)
        else:
            # XLA ends the process where the number of bytes overflows.
            if aval.size * max(aval.dtype.itemsize, 1) > _MOST_BYTES:
                raise ValueError(
                    f"an array {aval.str_short()} has {aval.size * aval.dtype.itemsize:,} bytes: "
                    "more than any device can address"
                )
            found = ir.RankedTensorType.get(aval.shape, element_type(aval.dtype), loc=unknown)
        _types[aval] = found
    return found


unknown = ir.Location.unknown(context)
_MOST_BYTES = 2**63 - 1


def attribute(text: str) -> Any:
    """An attribute from its text, parsed once."""
    found = _attributes.get(text)
    if found is None:
        found = _attributes[text] = ir.Attribute.parse(text, context)
    return found


def i64_array(values: Any) -> Any:
    """`array<i64: 1, 2>`: what dimension lists are in StableHLO."""
    key = tuple(map(int, values))
    found = _integers.get(key)
    if found is None:
        found = _integers[key] = ir.DenseI64ArrayAttr.get(key, context)
    return found


def i64(value: int) -> Any:
    return attribute(f"{int(value)} : i64")


def i32(value: int) -> Any:
    return attribute(f"{int(value)} : i32")


def boolean(value: bool) -> Any:
    return attribute("true" if value else "false")


def bool_array(values: Any) -> Any:
    texts = ", ".join("true" if v else "false" for v in values)
    return attribute(f"array<i1: {texts}>" if texts else "array<i1>")


def i64_matrix(rows: Any, columns: int = 2) -> Any:
    """`dense<[[0, 1], ...]> : tensor<nx2xi64>`: what padding is in StableHLO."""
    rows = [tuple(map(int, row)) for row in rows]
    body = ", ".join("[" + ", ".join(map(str, row)) + "]" for row in rows)
    inner = f"[{body}]" if rows else ""
    return attribute(f"dense<{inner}> : tensor<{len(rows)}x{columns}xi64>")


def string(value: str) -> Any:
    return ir.StringAttr.get(value, context)


def dense(array: np.ndarray) -> Any:
    """The elements attribute that holds an array: bit for bit, and short for equal elements."""
    array = np.asarray(array)
    if array.dtype == float0:
        array = np.zeros(array.shape, bool)
    # MLIR's Python cannot name the class of complex elements that it parsed.
    if array.size == 0 and array.dtype.kind != "c":
        return attribute(f"dense<> : {tensor_type(array.shape, array.dtype)}")
    first = array.reshape(-1)[:1]
    # Compared by their bytes: NaN equals itself, and 0.0 is not -0.0.
    if array.size == 1 or (first.tobytes() * array.size == array.tobytes()):
        return _from_bytes(first, array.shape, array.dtype)
    return _from_bytes(array, array.shape, array.dtype)


def _from_bytes(array: np.ndarray, shape: tuple[int, ...], dtype: Any) -> Any:
    """MLIR reads booleans and integers below a byte from one byte each."""
    bits = np.ascontiguousarray(array)
    if dtype.kind not in "iufc" or dtype.name not in _BUFFER_FORMATS:
        bits = bits.view(f"u{dtype.itemsize}")
    with context:
        return ir.DenseElementsAttr.get(bits, type=element_type(dtype), shape=shape)


_BUFFER_FORMATS = frozenset(
    f"{kind}{bits}" for kind in ("int", "uint", "float", "complex") for bits in (8, 16, 32, 64, 128)
)


def compare_type(dtype: Any) -> str:
    """How StableHLO is to compare elements of a dtype."""
    if dtype == np.bool_ or np.issubdtype(dtype, np.unsignedinteger) or dtype.name in _UNSIGNED:
        return "UNSIGNED"
    if np.issubdtype(dtype, np.signedinteger) or dtype.name in _SIGNED:
        return "SIGNED"
    return "FLOAT"


_UNSIGNED = ("uint2", "uint4")
_SIGNED = ("int2", "int4")


_WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def is_wide(aval: Any) -> bool:
    """Whether elements are of a dtype that there is only where the option jax_enable_x64 is on."""
    return getattr(aval, "dtype", None) in _WIDE
