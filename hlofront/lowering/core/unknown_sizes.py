"""Operations on arrays of unknown sizes, which take sizes as values computed at run time.

A module for such arrays first computes its size variables from the sizes of its arguments, and
passes them to its functions like large constants. When XLA compiles a call, all sizes are known: a
pass substitutes the sizes of the arguments, and checks the shape assertions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from hlofront.base.dtypes import default_dtype
from hlofront.base.elements import ExtendedDType, bool_, int32
from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import AbstractValue, Avals, ShapedArray
from hlofront.core.sizes.equations import Check, Solution
from hlofront.core.sizes.symbolic import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Factor,
    SizeExpression,
    has_symbolic_size,
)
from hlofront.lowering.core import types

Size = int | SizeExpression


class SizeVariable:
    """The name of a size variable of a module, whose value functions take as an argument."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name


class Emitting(Protocol):
    """The protocol of Emitter's members used here; Emitter's module imports this one."""

    hoisted: dict[int, Value]
    constants: dict[Any, Value]

    @property
    def module(self) -> Any: ...
    @property
    def avals_out(self) -> Sequence[Any]: ...
    def op(
        self,
        name: str,
        operands: Values,
        result: AbstractValue | None = None,
        /,
        **attributes: ir.Attribute,
    ) -> Value: ...
    def ops(
        self,
        name: str,
        operands: Values,
        results: Sequence[AbstractValue],
        /,
        **attributes: ir.Attribute,
    ) -> list[Value]: ...
    def constant(self, value: Any, dtype: Any = None) -> Value: ...
    def compare(
        self, direction: str, x: Value, y: Value, aval: ShapedArray, kind: str | None = None
    ) -> Value: ...
    def select(self, condition: Value, yes: Value, no: Value, aval: ShapedArray) -> Value: ...


def size_aval() -> ShapedArray:
    """Return the aval of a size at run time: a scalar of the default integer dtype."""
    return ShapedArray((), default_dtype("i"))


def vector_aval(rank: int) -> ShapedArray:
    """Return the aval of a vector of `rank` sizes, in the default integer dtype."""
    return ShapedArray((rank,), default_dtype("i"))


# ---- sizes as values -----------------------------------------------------------------------------


def size_value(build: Emitting, size: Size) -> Value:
    """Return a size as a scalar, computed once per block."""
    if not isinstance(size, SizeExpression):
        return build.constant(size, default_dtype("i"))
    known = build.constants.get(size)
    if known is None:
        known = build.constants[size] = _sum(build, size)
    return known


def _sum(build: Emitting, size: SizeExpression) -> Value:
    total: Value | None = None
    for term, coefficient in size.terms:
        product: Value | None = None
        if coefficient != 1 or term.is_constant:
            product = build.constant(coefficient, default_dtype("i"))
        for factor, exponent in term.factors:
            value = _factor(build, factor)
            for _ in range(exponent):
                product = value if product is None else _binary(build, "multiply", product, value)
        assert product is not None
        total = product if total is None else _binary(build, "add", total, product)
    assert total is not None
    return total


def _factor(build: Emitting, factor: Factor) -> Value:
    if factor.is_variable:
        return build.hoisted[id(build.module.size_variables[factor.name])]
    x, y = (size_value(build, operand) for operand in factor.operands)
    return _OPERATIONS[factor.name](build, x, y)


def _binary(build: Emitting, name: str, x: Value, y: Value) -> Value:
    return build.op(f"stablehlo.{name}", (x, y), size_aval())


def _adjusted(build: Emitting, x: Value, y: Value) -> tuple[Value, Value]:
    """Return StableHLO's remainder of x / y, and whether its quotient is one above the floor.

    StableHLO rounds quotients toward zero, and Python rounds them down.
    """
    aval = size_aval()
    remainder = _binary(build, "remainder", x, y)
    zero = build.constant(0, aval.dtype)
    negative = build.compare("LT", remainder, zero, aval)
    other_sign = build.compare(
        "NE", negative, build.compare("LT", y, zero, aval), ShapedArray((), bool_)
    )
    inexact = build.compare("NE", remainder, zero, aval)
    return remainder, build.op("stablehlo.and", (other_sign, inexact), ShapedArray((), bool_))


def _floor_division(build: Emitting, x: Value, y: Value) -> Value:
    _, rounds = _adjusted(build, x, y)
    quotient = _binary(build, "divide", x, y)
    lower = _binary(build, "subtract", quotient, build.constant(1, size_aval().dtype))
    return build.select(rounds, lower, quotient, size_aval())


def _modulo(build: Emitting, x: Value, y: Value) -> Value:
    remainder, rounds = _adjusted(build, x, y)
    return build.select(rounds, _binary(build, "add", remainder, y), remainder, size_aval())


def _maximum(build: Emitting, x: Value, y: Value) -> Value:
    return _binary(build, "maximum", x, y)


def _minimum(build: Emitting, x: Value, y: Value) -> Value:
    return _binary(build, "minimum", x, y)


_OPERATIONS: dict[str, Callable[[Emitting, Value, Value], Value]] = {
    FLOORDIV: _floor_division,
    MOD: _modulo,
    MAX: _maximum,
    MIN: _minimum,
}


def vector(build: Emitting, sizes: Sequence[Size]) -> Value:
    """Return sizes as an array with one axis."""
    if not has_symbolic_size(sizes):
        return build.constant(np.asarray(sizes, default_dtype("i")))
    parts = [build.op("stablehlo.reshape", (size_value(build, n),), vector_aval(1)) for n in sizes]
    return join(build, parts)


def pairs(build: Emitting, sizes: Sequence[Sequence[Size]]) -> Value:
    """Return pairs of sizes, such as the padding of axes, as an array with a row for each."""
    dtype = size_aval().dtype
    rows = [
        build.op("stablehlo.reshape", (vector(build, pair),), ShapedArray((1, 2), dtype))
        for pair in sizes
    ]
    result = ShapedArray((len(rows), 2), dtype)
    return build.op("stablehlo.concatenate", rows, result, dimension=types.i64(0))


def join(build: Emitting, parts: Values) -> Value:
    """Return vectors of size one as one vector."""
    if len(parts) == 1:
        return parts[0]
    return build.op("stablehlo.concatenate", parts, vector_aval(len(parts)), dimension=types.i64(0))


# ---- the size variables of a module --------------------------------------------------------------


def emit_variables(build: Emitting, solution: Solution, arguments: Sequence[Value | None]) -> None:
    """Emit the size variables of a module, and the assertions that the arguments' sizes fit.

    Args:
      solution: the variables as functions of the sizes of the arguments.
      arguments: the arguments by position; those with symbolic sizes are not None.
    """
    module, values_by_id = build.module, build.hoisted
    # The variables in the expressions of the solution are the sizes of the arguments.
    module.size_variables = {
        solved.name: SizeVariable(solved.name) for solved in solution.dimensions
    }
    for dimension in solution.dimensions:
        argument = arguments[dimension.argument]
        assert argument is not None
        size = dimension_size(build, argument, dimension.axis)
        values_by_id[id(module.size_variables[dimension.name])] = size
    for check in solution.checks:
        _emit_assertion(build, check)
    values = {name: size_value(build, value) for name, value in solution.values.items()}
    module.size_variables = {name: SizeVariable(name) for name in sorted(values)}
    for name, variable in module.size_variables.items():
        values_by_id[id(variable)] = values[name]


def dimension_size(build: Emitting, x: Value, axis: int) -> Value:
    """Return the size of an array along an axis, as a scalar."""
    narrow = ShapedArray((), int32)
    size = build.op("stablehlo.get_dimension_size", (x,), narrow, dimension=types.i64(axis))
    wide = size_aval()
    return size if wide == narrow else build.op("stablehlo.convert", (size,), wide)


# The maximum number of sizes in a message that XLA's pass reads.
_MAX_SIZES = 32


def _emit_assertion(build: Emitting, check: Check) -> None:
    left, right = size_value(build, check.left), size_value(build, check.right)
    holds = build.compare("EQ" if check.is_equation else "GE", left, right, size_aval())
    inputs: dict[Size, Value] = {}
    text = ""
    for part in check.message:
        if isinstance(part, str):
            text += part
        elif part in inputs or len(inputs) < _MAX_SIZES:
            inputs.setdefault(part, size_value(build, part))
            text += "{" + str(list(inputs).index(part)) + "}"
        else:
            text += f"({part})"
    build.ops(
        "stablehlo.custom_call",
        (holds, *inputs.values()),
        (),
        call_target_name=types.string("shape_assertion"),
        error_message=types.string(text),
        has_side_effect=types.boolean(True),
        api_version=types.i32(2),
    )


def without_unknown_sizes(
    name: str, params: Mapping[str, object], error: InconclusiveDimensionOperation
) -> InconclusiveDimensionOperation:
    """Return the error for an operation whose lowering needs a known size.

    Args:
      name: the operation's name.
      params: its parameters; the error names those with unknown sizes.
      error: the error of its lowering rule.
    """
    if isinstance(error, _NamedError):
        return error
    unknown = [f"{key}={value}" for key, value in params.items() if _has_unknown_size(value)]
    of_parameters = f" of {', '.join(unknown)}" if unknown else ""
    return _NamedError(
        f"{name} has no StableHLO form for these unknown sizes{of_parameters}, export it for known "
        f"ones: {error}"
    )


def _has_unknown_size(value: object) -> bool:
    """Return whether a parameter is an unknown size, or a tuple that contains one."""
    if isinstance(value, tuple):
        return any(map(_has_unknown_size, cast("tuple[object, ...]", value)))
    return isinstance(value, SizeExpression)


class _NamedError(InconclusiveDimensionOperation):
    """An error that names the operation."""


# ---- operations ----------------------------------------------------------------------------------


def physical_shape(aval: ShapedArray) -> Sequence[Size]:
    """Return the shape of the array of NumPy elements that represents an array of this aval."""
    if isinstance(aval.dtype, ExtendedDType):
        return aval.dtype.physical(aval.shape)[0]
    return aval.shape


def broadcast(build: Emitting, x: Value, result: ShapedArray, dimensions: Sequence[int]) -> Value:
    """Emit dynamic_broadcast_in_dim: axis i of x becomes axis dimensions[i] of the result."""
    return build.op(
        "stablehlo.dynamic_broadcast_in_dim",
        (x, vector(build, physical_shape(result))),
        result,
        broadcast_dimensions=types.i64_array(dimensions),
    )


def reshape(build: Emitting, x: Value, result: ShapedArray) -> Value:
    """Emit dynamic_reshape."""
    return build.op("stablehlo.dynamic_reshape", (x, vector(build, physical_shape(result))), result)


def iota(build: Emitting, result: ShapedArray, axis: int) -> Value:
    """Emit dynamic_iota: the indices along an axis."""
    return build.op(
        "stablehlo.dynamic_iota",
        (vector(build, result.shape),),
        result,
        iota_dimension=types.i64(axis),
    )


def slice(
    build: Emitting,
    x: Value,
    starts: Sequence[Size],
    limits: Sequence[Size],
    strides: Sequence[Size],
    result: ShapedArray | None,
) -> Value:
    """Emit real_dynamic_slice: x from `starts` up to `limits`, exclusive, per axis."""
    bounds = [vector(build, sizes) for sizes in (starts, limits, strides)]
    return build.op("stablehlo.real_dynamic_slice", (x, *bounds), result)


def dynamic_slice(
    build: Emitting, x: Value, aval: ShapedArray, starts: Values, result: ShapedArray
) -> Value:
    """Emit real_dynamic_slice from starts that are values, clamped so that the slice is inside.

    Args:
      aval: the aval of x.
      starts: a scalar per axis.
    """
    rank, sizes = vector_aval(len(starts)), vector(build, result.shape)
    begins = [
        build.op(
            "stablehlo.reshape",
            (build.op("stablehlo.convert", (start,), size_aval()),),
            vector_aval(1),
        )
        for start in starts
    ]
    last = build.op("stablehlo.subtract", (vector(build, aval.shape), sizes), rank)
    zeros = build.constant(np.zeros(len(starts), rank.dtype))
    begin = build.op("stablehlo.clamp", (zeros, join(build, begins), last), rank)
    end = build.op("stablehlo.add", (begin, sizes), rank)
    ones = build.constant(np.ones(len(starts), rank.dtype))
    return build.op("stablehlo.real_dynamic_slice", (x, begin, end, ones), result)


def pad(
    build: Emitting,
    x: Value,
    filling: Value,
    low: Sequence[Size],
    high: Sequence[Size],
    interior: Sequence[Size],
    result: ShapedArray | None,
) -> Value:
    """Emit dynamic_pad, with numbers of elements before, after and between, per axis."""
    paddings = [vector(build, sizes) for sizes in (low, high, interior)]
    return build.op("stablehlo.dynamic_pad", (x, filling, *paddings), result)


def result_shapes(
    build: Emitting, operand_count: int, results: Avals
) -> tuple[list[tuple[Value, ShapedArray]], dict[str, ir.Attribute]]:
    """Return operands and an attribute that tell a custom call the shapes of its results.

    Both are empty if these are known.
    """
    if not build.module.size_variables or not any(has_symbolic_size(r.shape) for r in results):
        return [], {}
    shapes = [(vector(build, result.shape), vector_aval(result.ndim)) for result in results]
    positions = np.arange(operand_count, operand_count + len(results))
    return shapes, {"indices_of_shape_operands": types.dense(positions)}
