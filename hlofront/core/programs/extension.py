"""JAX's extension interface for jaxprs: making variables and equations, and asking about values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from hlofront.base import errors
from hlofront.base.dtypes import float0, issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import DType
from hlofront.core.aval import AbstractValue, is_value
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import Atom, Equation, EquationContext, Jaxpr, ParamDict, Var
from hlofront.core.names import SourceInfo
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import is_program, opened
from hlofront.core.trace import Tracer


def gensym() -> Callable[[AbstractValue], Var]:
    """Return a function that makes a new variable of an aval."""
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: ParamDict,
    effects: Effects,
    source_info: SourceInfo | None = None,
    ctx: EquationContext | None = None,
) -> Equation:
    """Return a new equation of a jaxpr.

    Args:
      invars: the operands.
      outvars: the variables of the results.
      primitive: the operation.
      params: its parameters, by name.
      effects: its effects.
      source_info: the user's line and the name stack; None for the current ones.
      ctx: the options that the equation is lowered under; None for the current ones.
    """
    return Equation(invars, outvars, primitive, params, effects, source_info, ctx)


def jaxprs_in_params(params: Mapping[str, object]) -> Iterator[Jaxpr]:
    """Yield the jaxprs among an equation's parameters, and inside parameters that are sequences."""
    for value in params.values():
        members = cast(Sequence[object], value) if isinstance(value, tuple | list) else (value,)
        for member in members:
            if is_program(member):
                yield opened(member)


def primal_dtype_to_tangent_dtype(primal_dtype: DType) -> DType:
    """Return the dtype of tangents of arrays of a dtype: float0 for integers and booleans."""
    if isinstance(primal_dtype, ExtendedDType) or issubdtype(primal_dtype, np.inexact):
        return primal_dtype
    return float0


def valid_jaxtype(x: object) -> bool:
    """Return whether a value may be an operand: an array, a tracer, or a scalar."""
    if not is_value(x):
        return False
    dtype = getattr(x, "dtype", None)
    return not isinstance(x, np.ndarray) or not (dtype is None or dtype.kind in "OSUMm")


def concrete_or_error(force: Callable[[Any], Any] | None, val: object, context: str = "") -> Any:
    """Return a value that is not a tracer, converted by `force`.

    Args:
      force: the conversion, such as `int`; None leaves the value unchanged.
      val: the value. A tracer with a concrete value is replaced by that value.
      context: the purpose of the value, for the error message.

    Raises:
      ConcretizationTypeError: if the value is a tracer without a concrete value.
    """
    if isinstance(val, Tracer):
        known = val.to_concrete_value()
        if known is None:
            raise errors.ConcretizationTypeError(val, context)
        val = known
    return val if force is None else force(val)


# The classes of NumPy arrays and scalars that may be operands.
array_types = frozenset(
    {np.ndarray}
    | {
        np.dtype(name).type
        for name in (
            "bool int2 int4 int8 int16 int32 int64 uint2 uint4 uint8 uint16 uint32 uint64 "
            "float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
            "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float16 bfloat16 float32 "
            "float64 complex64 complex128"
        ).split()
    }
)
