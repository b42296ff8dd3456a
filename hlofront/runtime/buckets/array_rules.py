"""Rules of operations on padded operands: shapes, reductions, sorting, windows and products."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import NumPyDType
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.primitives.arrays import cumulative, reducing, shaping, sorting, windowed
from hlofront.primitives.arrays.creation import empty2_p, empty_p, iota_p
from hlofront.primitives.arrays.reducing import greatest_value, least_value
from hlofront.primitives.arrays.sizes import dim_as_value_p
from hlofront.primitives.arrays.slicing import pad_p, stack_p
from hlofront.primitives.arrays.tiling import tile_p
from hlofront.primitives.calls.barriers import optimization_barrier_p
from hlofront.primitives.elementwise import converting
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import clamp_p
from hlofront.primitives.linalg import factoring, fourier, solving, spectral
from hlofront.primitives.linalg.conv import conv_general_dilated_p
from hlofront.primitives.linalg.dot_general import dot_general_p
from hlofront.primitives.random import keys
from hlofront.primitives.random.bits import threefry2x32_p
from hlofront.primitives.rules.derivatives import add_any_p
from hlofront.primitives.sharding.placing import sharding_constraint_p
from hlofront.runtime.buckets.bounding import Bounded, padded_axes, rule, rules, symbolic

# ---- operations that leave the padding where it is -----------------------------------------------

rules.update(
    dict.fromkeys(
        (
            converting.convert_element_type_p,
            converting.bitcast_convert_type_p,
            clamp_p,
            add_any_p,
            empty_p,
            empty2_p,
            iota_p,
            keys.random_clone_p,
            keys.random_fold_in_p,
            keys.random_seed_p,
            keys.random_unwrap_p,
            keys.random_wrap_p,
            name_p,
            optimization_barrier_p,
            shaping.broadcast_in_dim_p,
            select_n_p,
            shaping.squeeze_p,
            shaping.transpose_p,
            sharding_constraint_p,
            stack_p,
            threefry2x32_p,
        ),
        Bounded.bind,
    )
)


@rule(dim_as_value_p)
def _(bounded: Bounded, equation: Equation) -> Any:
    aval = equation.outvars[0].aval
    length = bounded.length(equation.params["dim"])
    return convert(length, aval.dtype, aval.weak_type)


@rule(shaping.reshape_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    shape, new = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    if equation.params["dimensions"] is not None or not _moves_first_to_first(shape, new):
        bounded.refuse(
            equation,
            f"padding would come between elements of the result, of shape {new}: a padded axis of "
            "the operand is not the first of the axes that are merged or split",
            "Move that axis to the front before, or compute along the axes without merging them",
        )
    return bounded.bind(equation, operand)


def _moves_first_to_first(shape: Sequence[Any], new: Sequence[Any]) -> bool:
    """Return whether a reshape keeps the true elements of a padded array before its padding.

    It does if only the first axis is padded in each group of axes that are merged or split.
    """
    before, after = ([size for size in sizes if size != 1] for sizes in (shape, new))
    while before and after:
        count, new_count = next(
            (
                (i, j)
                for i in range(1, len(before) + 1)
                for j in range(1, len(after) + 1)
                if math.prod(before[:i]) == math.prod(after[:j])
            ),
            (0, 0),
        )
        if any(map(symbolic, [*before[1:count], *after[1:new_count]])) or not count:
            return False
        del before[:count], after[:new_count]
    return not before and not after


@rule(tile_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    shape = equation.invars[0].aval.shape
    if any(symbolic(n) and r != 1 for n, r in zip(shape, equation.params["reps"], strict=True)):
        bounded.refuse(
            equation, "copies of a padded axis would have padding between them", _OUTSIDE
        )
    return bounded.bind(equation, operand)


_OUTSIDE = "Call it outside of this function"


@rule(pad_p)
def _(bounded: Bounded, equation: Equation, operand: Any, value: Any) -> Any:
    """Write the value of `pad` over the padding of the bucket, which then continues it."""
    aval = equation.invars[0].aval
    axes = padded_axes(aval)
    if any(symbolic(n) for row in equation.params["padding_config"] for n in (row[0], row[2])):
        bounded.refuse(
            equation, "how much it pads before the elements depends on a length", "Pad behind them"
        )
    axes = [axis for axis in axes if equation.params["padding_config"][axis][1:] != (0, 0)]
    return bounded.bind(equation, bounded.mask(equation, 0, operand, axes, value), value)


# ---- operations that combine elements along an axis ----------------------------------------------


def _zero(dtype: NumPyDType) -> Any:
    return np.zeros((), dtype)


def _one(dtype: NumPyDType) -> Any:
    return np.ones((), dtype)


def _all_bits(dtype: NumPyDType) -> Any:
    return np.array(True) if dtype == np.bool_ else np.invert(np.zeros((), dtype))


def _last_in_order(dtype: NumPyDType) -> Any:
    """Return an element that no other element sorts after."""
    if issubdtype(dtype, np.complexfloating):
        return np.array(complex(np.nan, np.nan), dtype)
    return np.array(np.nan, dtype) if issubdtype(dtype, np.inexact) else greatest_value(dtype)


def _minus_infinity(dtype: NumPyDType) -> Any:
    return np.array(-np.inf, dtype)


# Per operation, the function from a dtype to the element that changes no result.
_NEUTRAL: dict[Primitive, Callable[[NumPyDType], Any]] = {
    reducing.reduce_sum_p: _zero,
    reducing.reduce_prod_p: _one,
    reducing.reduce_max_p: least_value,
    reducing.reduce_min_p: greatest_value,
    reducing.reduce_and_p: _all_bits,
    reducing.reduce_or_p: _zero,
    reducing.reduce_xor_p: _zero,
    reducing.argmax_p: least_value,
    reducing.argmin_p: greatest_value,
    cumulative.cumsum_p: _zero,
    cumulative.cumprod_p: _one,
    cumulative.cummax_p: least_value,
    cumulative.cummin_p: greatest_value,
    cumulative.cumlogsumexp_p: _minus_infinity,
    windowed.reduce_window_sum_p: _zero,
    windowed.reduce_window_max_p: least_value,
    windowed.reduce_window_min_p: greatest_value,
}


def _neutral(equation: Equation) -> Any:
    return _NEUTRAL[equation.primitive](equation.invars[0].aval.dtype)


@rule(*[primitive for primitive in _NEUTRAL if primitive.name.startswith(("reduce_", "arg"))])
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    axes = equation.params["axes"]
    return bounded.bind(equation, bounded.mask(equation, 0, operand, axes, _neutral(equation)))


@rule(*[primitive for primitive in _NEUTRAL if primitive.name.startswith("cum")])
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    axes = [equation.params["axis"]] if equation.params["reverse"] else []
    return bounded.bind(equation, bounded.mask(equation, 0, operand, axes, _neutral(equation)))


@rule(sorting.sort_p)
def _(bounded: Bounded, equation: Equation, *operands: Any) -> Any:
    """Sort keys with their padding last, after equal keys, as the sort is stable."""
    axis, key_count = equation.params["dimension"], equation.params["num_keys"]
    keys = [
        bounded.mask(equation, i, key, [axis], _last_in_order(typeof(key).dtype))
        for i, key in enumerate(operands[:key_count])
    ]
    return bounded.bind(equation, *keys, *operands[key_count:], is_stable=True)


@rule(sorting.top_k_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    fill = least_value(typeof(operand).dtype)
    return bounded.bind(
        equation, bounded.mask(equation, 0, operand, [equation.params["axis"]], fill)
    )


@rule(dot_general_p)
def _(bounded: Bounded, equation: Equation, lhs: Any, rhs: Any) -> Any:
    (lhs_axes, rhs_axes), _ = equation.params["dimension_numbers"]
    # Both are masked: 0 times a NaN in the padding is NaN.
    lhs = bounded.mask(equation, 0, lhs, lhs_axes, _zero(typeof(lhs).dtype))
    rhs = bounded.mask(equation, 1, rhs, rhs_axes, _zero(typeof(rhs).dtype))
    return bounded.bind(equation, lhs, rhs)


# ---- windows -------------------------------------------------------------------------------------


@rule(*[primitive for primitive in _NEUTRAL if primitive.name.startswith("reduce_window")])
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    axes = padded_axes(equation.invars[0].aval)
    _check_windows(bounded, equation, equation.params["padding"])
    return bounded.bind(equation, bounded.mask(equation, 0, operand, axes, _neutral(equation)))


@rule(conv_general_dilated_p)
def _(bounded: Bounded, equation: Equation, lhs: Any, rhs: Any) -> Any:
    params = equation.params
    numbers = params["dimension_numbers"]
    lhs_aval, rhs_aval = (atom.aval for atom in equation.invars)
    grouped = params["feature_group_count"] != 1 or params["batch_group_count"] != 1
    if padded_axes(rhs_aval, numbers.rhs_spec[2:]) or (
        grouped and (padded_axes(lhs_aval, numbers.lhs_spec[:2]) or padded_axes(rhs_aval))
    ):
        bounded.refuse(
            equation,
            "the padded axis is one of the window, or of features or examples in groups",
            "Pad the array to a fixed size, as by jnp.pad",
        )
    _check_windows(bounded, equation, params["padding"])
    lhs = bounded.mask(equation, 0, lhs, numbers.lhs_spec[1:], _zero(typeof(lhs).dtype))
    rhs = bounded.mask(equation, 1, rhs, numbers.rhs_spec[1:2], _zero(typeof(rhs).dtype))
    return bounded.bind(equation, lhs, rhs)


def _check_windows(bounded: Bounded, equation: Equation, padding: Sequence[Any]) -> None:
    """Refuse windows whose positions depend on a length, because of padding before the array."""
    if any(symbolic(before) for before, _ in padding):
        bounded.refuse(
            equation,
            "where its first window begins depends on a length",
            'Give the padding as integers instead of "SAME", or use strides of 1',
        )


@rule(windowed.select_and_scatter_add_p, windowed.select_and_gather_add_p)
def _(bounded: Bounded, equation: Equation, *operands: Any) -> Any:
    padded = padded_axes(equation.invars[0].aval) + padded_axes(equation.invars[1].aval)
    if any(equation.params["window_dimensions"][axis] != 1 for axis in padded):
        bounded.refuse(
            equation,
            "the greatest element of a window may be in the padding",
            "Pad the array to a fixed size, as by jnp.pad",
        )
    return bounded.bind(equation, *operands)


# ---- operations on the last axes of each example -------------------------------------------------


def _on_last_axes(count: Callable[[Equation], int], *primitives: Primitive) -> None:
    def of_each(bounded: Bounded, equation: Equation, *operands: Any) -> Any:
        for atom in equation.invars:
            last = range(max(0, atom.aval.ndim - count(equation)), atom.aval.ndim)
            if padded_axes(atom.aval, last):
                bounded.refuse(
                    equation,
                    "each element of its result depends on all along the padded axis",
                    "Use it along other axes only, or on an array of a fixed size",
                )
        return bounded.bind(equation, *operands)

    rule(*primitives)(of_each)


_on_last_axes(
    lambda equation: 2,
    factoring.cholesky_p,
    factoring.lu_p,
    factoring.qr_p,
    factoring.geqrf_p,
    factoring.householder_product_p,
    factoring.lu_pivots_to_permutation_p,
    solving.triangular_solve_p,
    spectral.eig_p,
    spectral.eigh_p,
    spectral.svd_p,
)
_on_last_axes(lambda equation: len(equation.params["fft_lengths"]), fourier.fft_p)


@rule(keys.random_bits_p, keys.random_split_p)
def _(bounded: Bounded, equation: Equation, key: Any) -> Any:
    """Check that each element depends only on its index, as with threefry along axis 0."""
    shape = equation.params["shape"]
    by_index = equation.params.get("partitionable", True)
    generator = equation.invars[0].aval.dtype.generator.name
    if any(map(symbolic, shape[1:])) or (
        symbolic(shape[0] if shape else 0) and not (by_index and generator == "threefry2x32")
    ):
        bounded.refuse(
            equation,
            "random numbers depend on the whole shape that they are drawn in",
            "Draw them with a key per element of the padded axis, as by jax.vmap over "
            "jax.random.split(key, length), or draw them outside of this function",
        )
    return bounded.bind(equation, key)
