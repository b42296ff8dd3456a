"""checkify on a program: its operations are run again, each with its checks."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront.base.boundary import user_context
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import ArrayLike, Shape
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.higher_order.checkify_errors import (
    DivisionByZeroError,
    ErrorCategory,
    JaxException,
    NaNError,
    OOBError,
)
from hlofront.higher_order.checking import (
    DescribedError,
    Error,
    ErrorEffect,
    check_p,
    effect_of,
    zeros_of_type,
)
from hlofront.primitives.comparing import eq, ge, gt, lt, ne, select_n
from hlofront.primitives.converting import convert, convert_element_type
from hlofront.primitives.creating import full
from hlofront.primitives.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from hlofront.primitives.elementwise import bitwise_and, bitwise_not, bitwise_or, div_p, rem_p
from hlofront.primitives.gathering import gather_p
from hlofront.primitives.reducing import argmax, reduce_or
from hlofront.primitives.scattering import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from hlofront.primitives.shaping import reshape
from hlofront.primitives.slicing import index_in_dim

# Stands for the number of an error where there is none.
NO_ERROR = np.int32(-1)


class State:
    """The error of a program so far: the first one, so that of all kinds at most one is set.

    Attributes:
      errors: the classes of errors that are looked for.
      failed: a boolean scalar, whether there was an error; None where nothing was checked.
      slots: per kind of error its number, or NO_ERROR, and then its arrays.
      metadata: per number, the structure of the error as a pytree.
      quiet: whether operations without results, which are run for their effects, are left out,
        because they are run elsewhere.
    """

    __slots__ = ("errors", "failed", "metadata", "quiet", "slots")

    def __init__(
        self,
        errors: frozenset[ErrorCategory],
        failed: ArrayLike | None = None,
        quiet: bool = False,
    ):
        self.errors = errors
        self.failed = failed
        self.slots: dict[ErrorEffect, list[ArrayLike]] = {}
        self.metadata: dict[int, PyTreeDef] = {}
        self.quiet = quiet

    def record(self, bad: ArrayLike, error: JaxException) -> None:
        """Set the error if `bad`, a boolean scalar, holds."""
        described = DescribedError.of(error)
        self.metadata[int(described.code)] = described.structure
        self.add(described.effect, bad, [described.code, *described.payload])

    def add(self, effect: ErrorEffect, bad: ArrayLike, values: Sequence[ArrayLike]) -> None:
        """Set an error if `bad`, a boolean scalar, holds.

        Args:
          effect: the kind of error.
          bad: whether it is one.
          values: its number, and its arrays.
        """
        aval = typeof(bad)
        if aval.weak_type:
            bad = convert(bad, aval.dtype, False)
        first = bad
        if self.failed is not None:
            first = bitwise_and(bad, bitwise_not(self.failed))
            bad = bitwise_or(self.failed, bad)
        self.failed = bad
        before = self.slots.get(effect)
        if before is None:
            # Where the number is NO_ERROR, the arrays are not read.
            self.slots[effect] = [select_n(first, NO_ERROR, values[0]), *values[1:]]
        else:
            self.slots[effect] = [
                select_n(first, old, new) for old, new in zip(before, values, strict=True)
            ]

    def merge(
        self,
        effects: Sequence[ErrorEffect],
        metadata: Mapping[int, PyTreeDef],
        values: Sequence[ArrayLike],
    ) -> None:
        """Take over the errors of a program that began with this state's flag.

        Args:
          effects: the kinds of errors that it has slots for.
          metadata: per number, the structure of the error.
          values: whether there was an error, and the slots.
        """
        self.failed = values[0]
        self.metadata.update(metadata)
        for effect, new in slots_of(effects, values[1:]).items():
            before = self.slots.get(effect)
            if before is not None:
                is_new = ge(new[0], np.int32(0))
                new = [select_n(is_new, x, y) for x, y in zip(before, new, strict=True)]
            self.slots[effect] = new

    def flag(self) -> ArrayLike:
        """Return whether there was an error, as a value of the program."""
        return np.bool_(False) if self.failed is None else self.failed

    def values(self, effects: Sequence[ErrorEffect]) -> list[ArrayLike]:
        """Return the flag and the slots of these kinds of errors, as `set` takes them."""
        values = [self.flag()]
        for effect in effects:
            values += self.slots.get(effect) or empty_slot(effect)
        return values

    def set(self, effects: Sequence[ErrorEffect], values: Sequence[ArrayLike]) -> None:
        """Set the flag and the slots of these kinds of errors, as `values` returned them."""
        self.failed = values[0]
        self.slots.update(slots_of(effects, values[1:]))

    def error(self) -> Error:
        """Return the error as users get it."""
        pred: dict[ErrorEffect, ArrayLike] = {}
        code: dict[ErrorEffect, ArrayLike] = {}
        payload: dict[ErrorEffect, Sequence[ArrayLike]] = {}
        for effect, (number, *arrays) in self.slots.items():
            # Of several kinds the one is set that has a number.
            pred[effect] = self.flag() if len(self.slots) == 1 else ge(number, np.int32(0))
            code[effect] = number
            payload[effect] = arrays
        return Error(pred, code, self.metadata, payload)


def slots_of(
    effects: Sequence[ErrorEffect], values: Sequence[ArrayLike]
) -> dict[ErrorEffect, list[ArrayLike]]:
    """Return flat slots by the kind of error: its number and its arrays."""
    slots: dict[ErrorEffect, list[ArrayLike]] = {}
    start = 0
    for effect in effects:
        count = 1 + len(effect.shape_dtypes)
        slots[effect] = list(values[start : start + count])
        start += count
    return slots


def empty_slot(effect: ErrorEffect) -> list[ArrayLike]:
    """Return the slot of a kind of error without an error."""
    return [NO_ERROR, *[zeros_of_type(s.shape, s.dtype) for s in effect.shape_dtypes]]


# ---- programs ------------------------------------------------------------------------------------

# (state, equation, operands) -> the result of the operation, or the list of its results. A rule
# adds to the state the errors that there are.
Check = Callable[[State, Equation, list[Any]], Any]
error_checks: dict[Primitive, Check] = {}


def error_check(*primitives: Primitive) -> Callable[[Check], Check]:
    """Register the function that runs and checks operations of these primitives."""

    def register(check: Check) -> Check:
        error_checks.update(dict.fromkeys(primitives, check))
        return check

    return register


def evaluate(
    jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[ArrayLike], state: State
) -> list[ArrayLike]:
    """Return the results of a program whose operations are checked.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      args: its operands.
      state: gets the errors that there are.
    """
    values: dict[Var, ArrayLike] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def value_of(atom: Atom) -> ArrayLike:
        return values[atom] if isinstance(atom, Var) else atom.operand

    for equation in jaxpr.eqns:
        primitive = equation.primitive
        if state.quiet and not equation.outvars and primitive is not check_p:
            continue
        operands = list(map(value_of, equation.invars))
        try:
            with coming_from(equation.name_stack, equation.traceback):
                results = error_checks.get(primitive, run_for_nans)(state, equation, operands)
        except Exception:
            with user_context(equation.traceback):
                raise
        if not primitive.multiple_results:
            results = (results,)
        values.update(zip(equation.outvars, results, strict=True))
    return list(map(value_of, jaxpr.outvars))


def run(equation: Equation, operands: Sequence[ArrayLike]) -> Any:
    """Run the operation of an equation, and return its result or the list of its results."""
    return equation.primitive.bind(*operands, **equation.params)


# ---- users' checks -------------------------------------------------------------------------------


@error_check(check_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    failed, code, *payload = operands
    error_type = equation.params["error_type"]
    if error_type in state.errors:
        state.metadata.update(equation.params["structures"])
        state.add(effect_of(error_type, map(typeof, payload)), failed, [code, *payload])
    return []


# ---- NaNs ----------------------------------------------------------------------------------------

# Operations that pass values on, or choose among them: a NaN in their results is an operand's.
_MOVE = frozenset(
    {
        "abs",
        "all_gather",
        "all_to_all",
        "approx_top_k",
        "bitcast_convert_type",
        "broadcast_in_dim",
        "clamp",
        "complex",
        "concatenate",
        "conj",
        "convert_element_type",
        "copy",
        "device_put",
        "dynamic_slice",
        "dynamic_update_slice",
        "empty",
        "gather",
        "imag",
        "io_callback",
        "max",
        "min",
        "neg",
        "nextafter",
        "optimization_barrier",
        "pmax",
        "pmin",
        "ppermute",
        "pure_callback",
        "real",
        "reduce_max",
        "reduce_min",
        "reduce_precision",
        "reshape",
        "rev",
        "scatter",
        "scatter-max",
        "scatter-min",
        "select_n",
        "slice",
        "sort",
        "split",
        "squeeze",
        "stack",
        "stage",
        "stop_gradient",
        "tile",
        "top_k",
        "transpose",
        "unstack",
        "reduce_window_max",
        "reduce_window_min",
        "select_and_gather_add",
    }
)


def run_for_nans(state: State, equation: Equation, operands: Sequence[ArrayLike]) -> Any:
    """Run the operation of an equation, as `run`; a NaN that it makes is an error."""
    results = run(equation, operands)
    if NaNError in state.errors and equation.primitive.name not in _MOVE:
        several: Sequence[Any] = results if equation.primitive.multiple_results else [results]
        is_nan = [_any(ne(x, x)) for x in several if _is_inexact(x)]
        if is_nan:
            bad = functools.reduce(bitwise_or, is_nan)
            state.record(bad, NaNError(equation.traceback, equation.primitive.name))
    return results


def _is_inexact(x: object) -> bool:
    """Return whether a value is an array that may hold a NaN."""
    dtype = getattr(typeof(x), "dtype", None)
    if dtype is None or isinstance(dtype, ExtendedDType):
        return False
    return issubdtype(dtype, np.inexact)


def _any(x: ArrayLike) -> ArrayLike:
    rank = typeof(x).ndim
    return reduce_or(x, tuple(range(rank))) if rank else x


# ---- division ------------------------------------------------------------------------------------


@error_check(div_p, rem_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    if DivisionByZeroError in state.errors:
        divisor = operands[1]
        aval = typeof(divisor)
        zero: ArrayLike = np.zeros((), aval.dtype)
        if aval.shape:
            zero = full(aval.shape, zero[()], aval.dtype)
        state.record(_any(eq(divisor, zero)), DivisionByZeroError(equation.traceback))
    return run_for_nans(state, equation, operands)


# ---- indices -------------------------------------------------------------------------------------


class _AxisIndices(NamedTuple):
    """The indices along one axis of the operand, and the largest index that is in bounds."""

    axis: int
    indices: ArrayLike
    largest: int


def _check_bounds(
    state: State, equation: Equation, shape: Shape, axes: Sequence[_AxisIndices]
) -> None:
    """Record an OOBError in the state, under the condition that an index is out of bounds.

    Args:
      state: the checkify state that gets the error.
      equation: the equation that indexes.
      shape: the shape of the indexed operand.
      axes: the indices along each indexed axis, with their bounds.
    """
    bad: ArrayLike | None = None
    wrong_index: list[ArrayLike] = []
    # The first axis that is wrong is reported, so it comes last.
    for axis, indices, largest in reversed(axes):
        first_wrong = _out_of_bounds(indices, largest)
        if first_wrong is None:
            continue
        wrong, index = first_wrong
        own = [index, np.int32(axis), np.int32(shape[axis])]
        if bad is None:
            bad, wrong_index = wrong, own
        else:
            bad = bitwise_or(bad, wrong)
            wrong_index = [select_n(wrong, x, y) for x, y in zip(wrong_index, own, strict=True)]
    if bad is not None:
        name = equation.primitive.name
        state.record(bad, OOBError(equation.traceback, name, tuple(shape), *wrong_index))


def _out_of_bounds(values: ArrayLike, largest: int) -> tuple[ArrayLike, ArrayLike] | None:
    """Return whether any index is out of bounds, and the first such index, as an int32.

    None is returned for no indices.
    """
    aval = typeof(values)
    if not aval.size:
        return None
    if aval.dtype != np.int32:
        if aval.dtype in (np.int64, np.uint64):
            values = convert_element_type(values, np.int64)
        else:
            values = convert_element_type(values, np.int32)
    dtype = typeof(values).dtype
    limits: list[ArrayLike] = [np.zeros((), dtype)[()], np.asarray(largest, dtype)[()]]
    if aval.shape:
        values = reshape(values, (aval.size,))
        limits = [full((aval.size,), limit, dtype) for limit in limits]
    wrong = bitwise_or(lt(values, limits[0]), gt(values, limits[1]))
    if aval.shape:
        first = argmax(wrong, 0, np.int32)
        values = dynamic_index_in_dim(values, first, keepdims=False, allow_negative_indices=False)
        wrong = reduce_or(wrong, (0,))
    return wrong, convert_element_type(values, np.int32) if dtype != np.int32 else values


def _columns(
    indices: ArrayLike, axes: Sequence[int], largest: Mapping[int, int]
) -> list[_AxisIndices]:
    """Return the indices of gather or scatter by the axis that they count along.

    Args:
      indices: an index per axis, along the last axis.
      axes: the axes of the operand that they count along.
      largest: per axis of the operand, the largest index that is in bounds.
    """
    last = typeof(indices).ndim - 1
    return [
        _AxisIndices(axis, index_in_dim(indices, k, last, keepdims=False), largest[axis])
        for k, axis in enumerate(axes)
    ]


@error_check(gather_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    if OOBError in state.errors:
        operand, indices = operands
        shape = typeof(operand).shape
        sizes = equation.params["slice_sizes"]
        largest = {axis: shape[axis] - sizes[axis] for axis in range(len(shape))}
        axes = equation.params["dimension_numbers"].start_index_map
        _check_bounds(state, equation, shape, _columns(indices, axes, largest))
    return run_for_nans(state, equation, operands)


@error_check(scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    if OOBError in state.errors:
        operand, indices, updates = operands
        shape, update_shape = typeof(operand).shape, typeof(updates).shape
        numbers = equation.params["dimension_numbers"]
        single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        windows = iter(numbers.update_window_dims)
        sizes = [1 if axis in single else update_shape[next(windows)] for axis in range(len(shape))]
        largest = {axis: shape[axis] - sizes[axis] for axis in range(len(shape))}
        axes = numbers.scatter_dims_to_operand_dims
        _check_bounds(state, equation, shape, _columns(indices, axes, largest))
    return run_for_nans(state, equation, operands)


@error_check(dynamic_slice_p, dynamic_update_slice_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    if OOBError in state.errors:
        shape = typeof(operands[0]).shape
        if equation.primitive is dynamic_slice_p:
            indices, sizes = operands[1:], equation.params["slice_sizes"]
        else:
            indices, sizes = operands[2:], typeof(operands[1]).shape
        bounded = [
            _AxisIndices(axis, index, shape[axis] - sizes[axis])
            for axis, (atom, index) in enumerate(
                zip(equation.invars[-len(shape) :] if shape else (), indices, strict=False)
            )
            # A constant in bounds needs no check.
            if not (type(atom) is Literal and 0 <= int(atom.val) <= shape[axis] - sizes[axis])
        ]
        _check_bounds(state, equation, shape, bounded)
    return run_for_nans(state, equation, operands)
