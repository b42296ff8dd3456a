"""checkify on a program: its operations are run again, each with its checks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import user_context
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Equation, Jaxpr, Literal
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.higher_order.checkify_errors import (
    DivisionByZeroError,
    NaNError,
    OOBError,
)
from hlofront.higher_order.checking import (
    Error,
    ErrorEffect,
    check_p,
    described,
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

# In the place of the number of an error: there is none.
NOTHING = np.int32(-1)


class State:
    """What was found so far.

    Only the first error is kept, so that of all kinds at most one is set.
    """

    __slots__ = ("errors", "failed", "metadata", "quiet", "slots")

    def __init__(self, errors: frozenset[Any], failed: Any = None, quiet: bool = False):
        # The kinds of errors that are looked for.
        self.errors = errors
        # Whether there was one; None where nothing was checked.
        self.failed = failed
        # Per kind the number of the error, or NOTHING, and then its arrays.
        self.slots: dict[ErrorEffect, list[Any]] = {}
        self.metadata: dict[int, Any] = {}
        # Whether operations that are run for what they do are left out: they are run elsewhere.
        self.quiet = quiet

    def record(self, bad: Any, error: Any) -> None:
        """If `bad`, a boolean scalar, this is the error."""
        effect, code, payload, structure = described(error)
        self.metadata[int(code)] = structure
        self.add(effect, bad, [code, *payload])

    def add(self, effect: ErrorEffect, bad: Any, values: Sequence[Any]) -> None:
        """If `bad`, the error is of this kind, with this number and these arrays."""
        aval: Any = typeof(bad)
        if aval.weak_type:
            bad = convert(bad, aval.dtype, False)
        first = bad
        if self.failed is not None:
            first = bitwise_and(bad, bitwise_not(self.failed))
            bad = bitwise_or(self.failed, bad)
        self.failed = bad
        before = self.slots.get(effect)
        if before is None:
            # Arrays without a number say nothing.
            self.slots[effect] = [select_n(first, NOTHING, values[0]), *values[1:]]
        else:
            self.slots[effect] = [
                select_n(first, old, new) for old, new in zip(before, values, strict=True)
            ]

    def merge(self, effects: Sequence[ErrorEffect], metadata: Any, values: Sequence[Any]) -> None:
        """Take over what a part found that was told `failed`: [failed, *slots]."""
        self.failed = values[0]
        self.metadata.update(metadata)
        for effect, new in slots_of(effects, values[1:]).items():
            before = self.slots.get(effect)
            if before is not None:
                found = ge(new[0], np.int32(0))
                new = [select_n(found, x, y) for x, y in zip(before, new, strict=True)]
            self.slots[effect] = new

    def flag(self) -> Any:
        """Return whether there was an error, as a value of the program."""
        return np.bool_(False) if self.failed is None else self.failed

    def values(self, effects: Sequence[ErrorEffect]) -> list[Any]:
        """[failed, *slots], with slots for these kinds."""
        found = [self.flag()]
        for effect in effects:
            found += self.slots.get(effect) or empty_slot(effect)
        return found

    def set(self, effects: Sequence[ErrorEffect], values: Sequence[Any]) -> None:
        """Put back what `values` gave."""
        self.failed = values[0]
        self.slots.update(slots_of(effects, values[1:]))

    def error(self) -> Error:
        pred, code, payload = {}, {}, {}
        for effect, (number, *arrays) in self.slots.items():
            # Of several kinds the one is set that has a number.
            pred[effect] = self.failed if len(self.slots) == 1 else ge(number, np.int32(0))
            code[effect] = number
            payload[effect] = arrays
        return Error(pred, code, self.metadata, payload)


def slots_of(effects: Sequence[ErrorEffect], values: Sequence[Any]) -> dict[ErrorEffect, list[Any]]:
    found: dict[ErrorEffect, list[Any]] = {}
    start = 0
    for effect in effects:
        count = 1 + len(effect.shape_dtypes)
        found[effect] = list(values[start : start + count])
        start += count
    return found


def empty_slot(effect: ErrorEffect) -> list[Any]:
    return [NOTHING, *[zeros_of_type(s.shape, s.dtype) for s in effect.shape_dtypes]]


# ---- programs ------------------------------------------------------------------------------------

Rule = Callable[[State, Equation, list[Any]], Any]

# Per primitive: (state, equation, operands) -> results. It adds to the state what it finds.
error_checks: dict[Primitive, Rule] = {}


def error_check(*primitives: Primitive) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        error_checks.update(dict.fromkeys(primitives, rule))
        return rule

    return register


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], state: State) -> list[Any]:
    """The results of a program, whose operations are checked."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        if state.quiet and not equation.outvars and primitive is not check_p:
            continue
        operands = [
            atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
        ]
        try:
            with coming_from(equation.name_stack, equation.traceback):
                results = error_checks.get(primitive, run_for_nans)(state, equation, operands)
        except Exception:
            with user_context(equation.traceback):
                raise
        if not primitive.multiple_results:
            results = (results,)
        values.update(zip(equation.outvars, results, strict=True))
    return [atom.operand if type(atom) is Literal else values[atom] for atom in jaxpr.outvars]


def run(equation: Equation, operands: Sequence[Any]) -> Any:
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

# What hands values on, or chooses among them: a NaN of theirs was made elsewhere.
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


def run_for_nans(state: State, equation: Equation, operands: Sequence[Any]) -> Any:
    results = run(equation, operands)
    if NaNError in state.errors and equation.primitive.name not in _MOVE:
        several = results if equation.primitive.multiple_results else [results]
        found = [_any(ne(x, x)) for x in several if _is_inexact(x)]
        if found:
            bad = found[0]
            for other in found[1:]:
                bad = bitwise_or(bad, other)
            state.record(bad, NaNError(equation.traceback, equation.primitive.name))
    return results


def _is_inexact(x: Any) -> bool:
    dtype = getattr(typeof(x), "dtype", None)
    if dtype is None or isinstance(dtype, ExtendedDType):
        return False
    return issubdtype(dtype, np.inexact)


def _any(x: Any) -> Any:
    rank = typeof(x).ndim
    return reduce_or(x, tuple(range(rank))) if rank else x


# ---- division ------------------------------------------------------------------------------------


@error_check(div_p, rem_p)
def _(state: State, equation: Equation, operands: list[Any]) -> Any:
    if DivisionByZeroError in state.errors:
        divisor = operands[1]
        aval: Any = typeof(divisor)
        zero = np.zeros((), aval.dtype)
        if aval.shape:
            zero = full(aval.shape, zero[()], aval.dtype)
        state.record(_any(eq(divisor, zero)), DivisionByZeroError(equation.traceback))
    return run_for_nans(state, equation, operands)


# ---- indices -------------------------------------------------------------------------------------

# An axis of the operand, its indices, and the largest that is in bounds.
Bounded = tuple[int, Any, int]


def _check_bounds(state: State, equation: Equation, shape: Any, indices: Sequence[Bounded]) -> None:
    bad: Any = None
    where: list[Any] = []
    # The first axis that is wrong is reported, so it comes last.
    for axis, values, largest in reversed(indices):
        wrong, index = _out_of_bounds(values, largest)
        if wrong is None:
            continue
        found = [index, np.int32(axis), np.int32(shape[axis])]
        if bad is None:
            bad, where = wrong, found
        else:
            bad = bitwise_or(bad, wrong)
            where = [select_n(wrong, x, y) for x, y in zip(where, found, strict=True)]
    if bad is not None:
        name = equation.primitive.name
        state.record(bad, OOBError(equation.traceback, name, tuple(shape), where))


def _out_of_bounds(values: Any, largest: int) -> tuple[Any, Any]:
    """Return whether any index is out of bounds, and the first such index, as an int32."""
    aval: Any = typeof(values)
    if not aval.size:
        return None, None
    if aval.dtype != np.int32:
        if aval.dtype in (np.int64, np.uint64):
            values = convert_element_type(values, np.int64)
        else:
            values = convert_element_type(values, np.int32)
    dtype = typeof(values).dtype
    limits = [np.zeros((), dtype)[()], np.asarray(largest, dtype)[()]]
    if aval.shape:
        values = reshape(values, (aval.size,))
        limits = [full((aval.size,), limit, dtype) for limit in limits]
    wrong = bitwise_or(lt(values, limits[0]), gt(values, limits[1]))
    if aval.shape:
        place = argmax(wrong, 0, np.int32)
        values = dynamic_index_in_dim(values, place, keepdims=False, allow_negative_indices=False)
        wrong = reduce_or(wrong, (0,))
    return wrong, convert_element_type(values, np.int32) if dtype != np.int32 else values


def _columns(indices: Any, axes: Sequence[int], largest: dict[int, int]) -> list[Bounded]:
    """The indices of gather and scatter by the axis that they count along."""
    last = typeof(indices).ndim - 1
    return [
        (axis, index_in_dim(indices, k, last, keepdims=False), largest[axis])
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
        shape, given = typeof(operand).shape, typeof(updates).shape
        numbers = equation.params["dimension_numbers"]
        single = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        windows = iter(numbers.update_window_dims)
        sizes = [1 if axis in single else given[next(windows)] for axis in range(len(shape))]
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
            (axis, index, shape[axis] - sizes[axis])
            for axis, (atom, index) in enumerate(
                zip(equation.invars[-len(shape) :] if shape else (), indices, strict=False)
            )
            # A constant in bounds needs no check.
            if not (type(atom) is Literal and 0 <= int(atom.val) <= shape[axis] - sizes[axis])
        ]
        _check_bounds(state, equation, shape, bounded)
    return run_for_nans(state, equation, operands)
