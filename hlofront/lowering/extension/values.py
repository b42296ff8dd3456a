"""MLIR values, types and attributes for lowering rules that are written with MLIR's bindings."""

# jaxlib's stubs omit types.
# pyright: basic, reportArgumentType=false, reportReturnType=false

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.bridge.fast_parts import PyTreeRegistry
from hlofront.bridge.mlir import Operation, context, ir
from hlofront.core.aval import AbstractValue, token_aval, typeof
from hlofront.lowering.core import types

Member = TypeVar("Member")

# An MLIR value, or the values that represent one value of a jaxpr.
IrValues = ir.Value | Sequence[ir.Value]
IrTypes = ir.Type | Sequence[ir.Type]


def _registry_of_sequences() -> PyTreeRegistry:
    registry = PyTreeRegistry(
        enable_none=False,
        enable_tuple=True,
        enable_namedtuple=False,
        enable_list=True,
        enable_dict=False,
    )
    registry.register_node(
        ir.OpResultList, lambda results: (results, None), lambda _, results: list(results)
    )
    return registry


# The pytrees of MLIR values and types: tuples, lists and the results of operations.
ir_tree_registry = _registry_of_sequences()


def ir_constant(
    val: object, *, const_lowering: object = None, aval: AbstractValue | None = None
) -> ir.Value:
    """Emit a constant at the ambient insertion point.

    Args:
      val: a NumPy array, an array on a device, or a scalar.
      const_lowering: ignored, for compatibility with JAX.
      aval: the type of the constant, for Python scalars that should have a different dtype.
    """
    values = ir_constants(val, const_lowering=const_lowering, aval=aval)
    if len(values) != 1:
        raise TypeError(f"Expected a single IR value for a {type(val)}, got {len(values)}")
    return values[0]


def ir_constants(
    val: object, *, const_lowering: object = None, aval: AbstractValue | None = None
) -> tuple[ir.Value, ...]:
    """Emit a constant like `ir_constant`, and return the sequence of values that represent it.

    The handler registered for the class of the constant emits it.
    """
    for kind in type(val).__mro__:
        handler = _constant_handlers.get(kind)
        if handler is not None:
            made = handler(val, aval)
            return (made,) if isinstance(made, ir.Value) else tuple(made)
    aval = typeof(val) if aval is None else aval
    array = np.asarray(val, getattr(aval, "dtype", None))
    constant = Operation.create(
        "stablehlo.constant", (types.aval_type(aval),), (), {"value": types.dense(array)}
    )
    return (constant.results[0],)


class ConstantHandler(Protocol):
    """A function that emits a constant at the ambient insertion point."""

    def __call__(self, val: Any, aval: AbstractValue | None, /) -> IrValues: ...


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Register the function that emits constants of a class, and of its subclasses.

    Args:
      type_: the class.
      handler_fun: takes a constant, and its aval or None, and returns the MLIR value or values.
    """
    _constant_handlers[type_] = handler_fun


def aval_to_ir_type(ctx: object, aval: AbstractValue | None = None) -> ir.Type:
    """Return the MLIR type of a value.

    Args:
      ctx: the module of the value, or None; it may be omitted, as in older code.
      aval: the aval of the value.
    """
    return types.aval_type(ctx if aval is None else aval)


def aval_to_ir_types(ctx: object, aval: AbstractValue | None = None) -> tuple[ir.Type, ...]:
    """Return the MLIR types of a value, which may be represented by several MLIR values."""
    made = types.types_of(ctx if aval is None else aval)
    return (made,) if isinstance(made, ir.Type) else tuple(made)


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """Return the MLIR element type of a dtype.

    Raises:
      TypeError: if no device supports the dtype.
    """
    return types.element_type(np.dtype(dtype))


def ir_attribute(val: object) -> ir.Attribute:
    """Return a Python or NumPy value as an MLIR attribute.

    Booleans become `i1`, integers `i64`, floats `f64` attributes; NumPy scalars keep their dtype,
    as in `76 : ui8`, and arrays become dense attributes; strings, sequences and dictionaries become
    attributes of their kinds, and dtypes those of element types.

    Raises:
      TypeError: if no attribute represents the value.
      OverflowError: if it is a Python integer of more than 64 bits.
    """
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, str | bytes):
        return ir.StringAttr.get(val, context)
    if isinstance(val, bool | np.bool_):
        return ir.BoolAttr.get(bool(val), context)
    if isinstance(val, int):
        return types.attribute(f"{_of_64_bits(val)} : i64")
    if isinstance(val, float) and not isinstance(val, np.generic):
        return ir.FloatAttr.get(ir.F64Type.get(context), val, types.unknown)
    if isinstance(val, np.generic):
        element = types.element_type(val.dtype)
        if issubdtype(val.dtype, np.integer):
            return types.attribute(f"{int(val)} : {element}")
        if issubdtype(val.dtype, np.floating):
            return ir.FloatAttr.get(element, float(val), types.unknown)
    if isinstance(val, np.ndarray):
        return types.dense(val)
    if isinstance(val, np.dtype):
        return ir.TypeAttr.get(types.element_type(val), context)
    if isinstance(val, dict):
        return ir.DictAttr.get({name: ir_attribute(v) for name, v in val.items()}, context)
    if isinstance(val, tuple | list):
        return ir.ArrayAttr.get([ir_attribute(v) for v in val], context)
    raise TypeError(f"{val!r} of type {type(val)} is no MLIR attribute")


def _of_64_bits(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"{number} is no 64-bit integer, as attributes of integers are")
    return int(number)


def i32_attr(i: int) -> ir.IntegerAttr:
    """Return an integer as a 32-bit attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """Return an integer as a 64-bit attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), i)


def dense_int_array(xs: Sequence[int]) -> ir.Attribute:
    """Return integers as a 64-bit array attribute, the form of dimension lists in StableHLO."""
    return types.i64_array(xs)


def dense_int_elements(xs: Sequence[int]) -> ir.DenseElementsAttr:
    """Return integers as a dense attribute: a 64-bit tensor of rank 1."""
    return types.dense(np.asarray(xs, np.int64))


def shape_tensor(ctx: object, sizes: Sequence[int | ir.Value]) -> ir.Value:
    """Emit a shape as an int32 array of rank 1, from integers and scalar int32 values."""
    int32 = np.dtype(np.int32)
    whole = types.tensor_type((len(sizes),), int32)
    if all(isinstance(size, int) for size in sizes):
        return ir_constant(np.asarray(sizes, int32))
    one = types.tensor_type((1,), int32)
    parts: list[ir.Value] = []
    for size in sizes:
        value = ir_constant(np.int32(size)) if isinstance(size, int) else size
        parts.append(Operation.create("stablehlo.reshape", (one,), (value,)).results[0])
    dimension = {"dimension": i64_attr(0)}
    return Operation.create("stablehlo.concatenate", (whole,), parts, dimension).results[0]


def token_type() -> ir.Type:
    """Return the MLIR type of a token."""
    return types.aval_type(token_aval)


def flat_values(xs: Iterable[object]) -> list[ir.Value]:
    """Return a flat list of values from entries that are values or sequences of values."""
    return _flat(xs, ir.Value)


def _warn_of(name: str, instead: str) -> None:
    message = f"jax.interpreters.mlir.{name} is deprecated: use {instead} instead."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def flatten_ir_values(xs: Iterable[object]) -> list[ir.Value]:
    """Return a flat list of values from entries that are values or sequences of values."""
    _warn_of("flatten_ir_values", "mlir.ir_tree_registry.flatten")
    return _flat(xs, ir.Value)


def flatten_ir_types(xs: Iterable[object]) -> list[ir.Type]:
    """Return a flat list of types from entries that are types or sequences of types."""
    _warn_of("flatten_ir_types", "mlir.ir_tree_registry.flatten")
    return _flat(xs, ir.Type)


def _flat(entries: Iterable[Any], member: type[Member]) -> list[Member]:
    flat: list[Member] = []
    for entry in entries:
        flat += (entry,) if isinstance(entry, member) else entry
    return flat


def unflatten_ir_values_like_types(xs: Iterable[ir.Value], ys: Sequence[IrTypes]) -> list[IrValues]:
    """Return values grouped like types: one value per type, a tuple per sequence of types.

    Raises:
      ValueError: if there are more or fewer values than types.
    """
    _warn_of("unflatten_ir_values_like_types", "treedef.unflatten")
    values, count = list(xs), len(_flat(ys, ir.Type))
    if len(values) != count:
        raise ValueError(f"{len(values)} values do not fit {count} types")
    rest = iter(values)
    return [next(rest) if isinstance(y, ir.Type) else tuple([next(rest) for _ in y]) for y in ys]
