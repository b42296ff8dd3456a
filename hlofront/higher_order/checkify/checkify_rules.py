"""The checkify interpreter, which runs each equation of a program with its checks."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from hlofront.base.boundary import user_context
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import ExtendedDType
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, Shape
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, Equation, Jaxpr, Literal, Value, Var
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.core.sharding.manual_axes import MeshAxisNames
from hlofront.core.sharding.mesh_context import vma_enabled
from hlofront.higher_order.checkify.checkify_errors import (
    DivisionByZeroError,
    ErrorCategory,
    JaxException,
    NaNError,
    OOBError,
)
from hlofront.higher_order.checkify.checking import (
    DescribedError,
    Error,
    ErrorEffect,
    check_p,
    effect_of,
    zeros_of_type,
)
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from hlofront.primitives.arrays.gathering import gather_p
from hlofront.primitives.arrays.reducing import argmax, reduce_or
from hlofront.primitives.arrays.scattering import (
    ScatterDimensionNumbers,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.collectives.varying import pvary
from hlofront.primitives.elementwise.compare import eq, ge, gt, lt, ne, select_n
from hlofront.primitives.elementwise.converting import convert, convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    div_p,
    rem_p,
)

# The number of an error in a slot without an error.
NO_ERROR = np.int32(-1)


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class State:
    """The first error of a program so far: at most one slot is set.

    Attributes:
      errors: the categories of errors that are checked.
      failed: a boolean scalar, whether there was an error; None if nothing was checked.
      slots: per kind of error, the error's number or NO_ERROR, and then the error's arrays.
      metadata: the tree definition of each error, by the error's number.
      quiet: whether equations without results are skipped, because their effects occur elsewhere.
    """

    errors: frozenset[ErrorCategory]
    failed: ArrayLike | None = None
    quiet: bool = False
    slots: dict[ErrorEffect, list[ArrayLike]] = dataclasses.field(
        init=False, default_factory=dict[ErrorEffect, list[ArrayLike]]
    )
    metadata: dict[int, PyTreeDef] = dataclasses.field(
        init=False, default_factory=dict[int, PyTreeDef]
    )

    def record(self, bad: ArrayLike, error: JaxException) -> None:
        """Record `error` in the state if `bad`, a boolean scalar, is True and no error is set."""
        described = DescribedError.of(error)
        self.metadata[int(described.code)] = described.structure
        self.add(described.effect, bad, [described.code, *described.payload])

    def add(self, effect: ErrorEffect, bad: ArrayLike, values: ArrayLikes) -> None:
        """Record an error of one kind in the state if `bad` is True and no error is set.

        Args:
          effect: the kind of error.
          bad: a boolean scalar.
          values: the error's number, and then its arrays.
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
            # The arrays of a slot whose number is NO_ERROR are not read.
            self.slots[effect] = [select_n(first, NO_ERROR, values[0]), *values[1:]]
        else:
            self.slots[effect] = [
                select_n(first, old, new) for old, new in zip(before, values, strict=True)
            ]

    def merge(
        self, effects: Sequence[ErrorEffect], metadata: Mapping[int, PyTreeDef], values: ArrayLikes
    ) -> None:
        """Record the errors of a checked program that was called with this state's flag.

        Args:
          effects: the kinds of errors that the program has slots for.
          metadata: the tree definition of each error, by the error's number.
          values: the error flag, and then the slots.
        """
        self.failed = values[0]
        self.metadata.update(metadata)
        for effect, new in slots_of(effects, values[1:]).items():
            before = self.slots.get(effect)
            if before is not None:
                is_new = ge(new[0], np.int32(0))
                self.slots[effect] = [
                    select_n(is_new, x, y) for x, y in zip(before, new, strict=True)
                ]
            else:
                self.slots[effect] = new

    def flag(self) -> ArrayLike:
        """Return a boolean scalar, possibly traced: whether an error has been recorded."""
        return np.bool_(False) if self.failed is None else self.failed

    @property
    def axes(self) -> MeshAxisNames:
        """The manual axes along which the flag or any of the slots varies, in shard_map."""
        arrays = itertools.chain([self.flag()], *self.slots.values())
        return frozenset[Hashable]().union(*map(axes_of, arrays))

    def values(
        self, effects: Sequence[ErrorEffect], axes: MeshAxisNames = frozenset()
    ) -> list[ArrayLike]:
        """Return the error flag, and then the flat slots for the kinds of errors in `effects`.

        All of them vary along the same manual axes: `axes`, and those of the state.
        """
        values = [self.flag()]
        for effect in effects:
            values += self.slots.get(effect) or empty_slot(effect)
        if not vma_enabled():
            return values
        axes |= self.axes
        return [pvary(x, axes) for x in values]

    def set(self, effects: Sequence[ErrorEffect], values: ArrayLikes) -> None:
        """Set the error flag, and the slots for the kinds of errors in `effects`."""
        self.failed = values[0]
        self.slots.update(slots_of(effects, values[1:]))

    def error(self) -> Error:
        """Return the state as the Error that `checkify` returns to users."""
        pred: dict[ErrorEffect, ArrayLike] = {}
        code: dict[ErrorEffect, ArrayLike] = {}
        payload: dict[ErrorEffect, ArrayLikes] = {}
        for effect, (number, *arrays) in self.slots.items():
            # At most one kind of error has a number other than NO_ERROR.
            pred[effect] = self.flag() if len(self.slots) == 1 else ge(number, np.int32(0))
            code[effect] = number
            payload[effect] = arrays
        return Error(pred, code, self.metadata, payload)


def slots_of(
    effects: Sequence[ErrorEffect], values: ArrayLikes
) -> dict[ErrorEffect, list[ArrayLike]]:
    """Group flat slots by their kind of error: each has the error's number, then its arrays."""
    slots: dict[ErrorEffect, list[ArrayLike]] = {}
    start = 0
    for effect in effects:
        count = 1 + len(effect.shape_dtypes)
        slots[effect] = list(values[start : start + count])
        start += count
    return slots


def axes_of(x: ArrayLike) -> MeshAxisNames:
    """Return the manual axes along which an array varies."""
    return typeof(x).manual_axis_type.varying


def empty_slot(effect: ErrorEffect) -> list[ArrayLike]:
    """Return an empty slot for a kind of error: NO_ERROR and placeholder arrays."""
    return [NO_ERROR, *[zeros_of_type(s.shape, s.dtype) for s in effect.shape_dtypes]]


# ---- programs ------------------------------------------------------------------------------------

# (state, equation, operands) -> the result of the equation, or the list of its results. A rule
# records errors in the state.
Check = Callable[[State, Equation, list[Value]], Value]
error_checks: dict[Primitive, Check] = {}


def error_check(*primitives: Primitive) -> Callable[[Check], Check]:
    """Return a decorator that registers a function as the checkify rule of `primitives`."""

    def register(check: Check) -> Check:
        error_checks.update(dict.fromkeys(primitives, check))
        return check

    return register


def evaluate(jaxpr: Jaxpr, consts: ArrayLikes, args: ArrayLikes, state: State) -> list[ArrayLike]:
    """Run a program with checks of its equations, and return its results.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      args: the values of its inputs.
      state: the checkify state, in which errors are recorded.
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


def run(equation: Equation, operands: ArrayLikes) -> Value:
    """Bind an equation's primitive to operands, and return its result or list of results."""
    return equation.primitive.bind(*operands, **equation.params)


# ---- users' checks -------------------------------------------------------------------------------


@error_check(check_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    failed, code, *payload = operands
    error_type = equation.params["error_type"]
    if error_type in state.errors:
        state.metadata.update(equation.params["structures"])
        state.add(effect_of(error_type, map(typeof, payload)), failed, [code, *payload])
    return []


# ---- NaNs ----------------------------------------------------------------------------------------

# Primitives that move or select values: a NaN in their results is a NaN of an operand.
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


def run_for_nans(state: State, equation: Equation, operands: ArrayLikes) -> Value:
    """Run an equation and return its results; record a NaNError if they have a NaN."""
    results = run(equation, operands)
    if NaNError in state.errors and equation.primitive.name not in _MOVE:
        several: ArrayLikes = results if equation.primitive.multiple_results else [results]
        is_nan = [_any(ne(x, x)) for x in several if _is_inexact(x)]
        if is_nan:
            bad = functools.reduce(bitwise_or, is_nan)
            state.record(bad, NaNError(equation.traceback, equation.primitive.name))
    return results


def _is_inexact(x: Value) -> bool:
    """Return whether a value is an array of an inexact dtype, which has NaNs."""
    dtype = getattr(typeof(x), "dtype", None)
    if dtype is None or isinstance(dtype, ExtendedDType):
        return False
    return issubdtype(dtype, np.inexact)


def _any(x: ArrayLike) -> ArrayLike:
    rank = typeof(x).ndim
    return reduce_or(x, tuple(range(rank))) if rank else x


# ---- division ------------------------------------------------------------------------------------


@error_check(div_p, rem_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    if DivisionByZeroError in state.errors:
        divisor = operands[1]
        aval = typeof(divisor)
        zero: ArrayLike = np.zeros((), aval.dtype)
        if aval.shape:
            zero = full(aval.shape, zero[()], aval.dtype)  # pyrefly: ignore[bad-index]
        state.record(_any(eq(divisor, zero)), DivisionByZeroError(equation.traceback))
    return run_for_nans(state, equation, operands)


# ---- indices -------------------------------------------------------------------------------------


class _AxisIndices(NamedTuple):
    """The indices along one axis of an indexed operand, and the largest index in bounds."""

    axis: int
    indices: ArrayLike
    largest: int


def _check_bounds(
    state: State, equation: Equation, shape: Shape, axes: Sequence[_AxisIndices]
) -> None:
    """Record an OOBError in the state if an index is out of bounds.

    Args:
      state: the checkify state in which to record the error.
      equation: the equation that indexes.
      shape: the shape of the indexed operand.
      axes: the indices along each indexed axis, with their bounds.
    """
    bad: ArrayLike | None = None
    wrong_index: list[ArrayLike] = []
    # The first axis with an index out of bounds is reported, so it is recorded last.
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
    """Return whether any index is out of bounds, and the first such index.

    They are scalars of bool and int32. Return None if `values` is empty.
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
    """Split the index vectors of a gather or scatter by operand axis.

    Args:
      indices: index vectors along the last axis, with one index for each of `axes`.
      axes: the axes of the operand that are indexed.
      largest: the largest index in bounds, by axis of the operand.
    """
    last = typeof(indices).ndim - 1
    return [
        _AxisIndices(axis, index_in_dim(indices, k, last, keepdims=False), largest[axis])
        for k, axis in enumerate(axes)
    ]


@error_check(gather_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    if OOBError in state.errors and not equation.params["mode"].is_chosen:
        operand, indices = operands
        shape = typeof(operand).shape
        sizes = equation.params["slice_sizes"]
        largest = {axis: shape[axis] - sizes[axis] for axis in range(len(shape))}
        axes = equation.params["dimension_numbers"].start_index_map
        _check_bounds(state, equation, shape, _columns(indices, axes, largest))
    return run_for_nans(state, equation, operands)


@error_check(scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
    if OOBError in state.errors and not equation.params["mode"].is_chosen:
        operand, indices, updates = operands
        shape, update_shape = typeof(operand).shape, typeof(updates).shape
        numbers: ScatterDimensionNumbers = equation.params["dimension_numbers"]
        single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        windows = iter(numbers.update_window_dims)
        sizes = [1 if axis in single else update_shape[next(windows)] for axis in range(len(shape))]
        largest = {axis: shape[axis] - sizes[axis] for axis in range(len(shape))}
        axes = numbers.scatter_dims_to_operand_dims
        _check_bounds(state, equation, shape, _columns(indices, axes, largest))
    return run_for_nans(state, equation, operands)


@error_check(dynamic_slice_p, dynamic_update_slice_p)
def _(state: State, equation: Equation, operands: list[Value]) -> Value:
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
            # A constant index in bounds needs no check.
            if not (type(atom) is Literal and 0 <= int(atom.val) <= shape[axis] - sizes[axis])
        ]
        _check_bounds(state, equation, shape, bounded)
    return run_for_nans(state, equation, operands)
