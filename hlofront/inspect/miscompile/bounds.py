"""What rounding explains: how far two computations of an array may differ."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType, finfo
from hlofront.base.typing import ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.jaxpr import Equation
from hlofront.inspect.error.measure import epsilon, is_inexact, wide_host
from hlofront.inspect.stepwise.operands import ELEMENTWISE, typed
from hlofront.inspect.stepwise.run import StepValue
from hlofront.random.keys import key_data

# A result may differ by this many times as much as the samples do, since these are few.
FACTOR = 32.0

# Operations that move, choose or compare numbers, without rounding.
EXACT = frozenset(
    """
    abs all_gather argmax argmin argsort bitcast_convert_type broadcast broadcast_in_dim ceil clamp
    complex concatenate conj copy copy_p cummax cummin device_put dynamic_slice
    dynamic_update_slice expand_dims floor gather imag iota is_finite max min name neg nextafter
    optimization_barrier pad real reduce_max reduce_min reduce_precision reduce_window_max
    reduce_window_min reshape rev round scatter select_n select_and_gather_add sign slice sort
    split squeeze stop_gradient top_k transpose
    """.split()
)
# Elementwise operations that round only results which the dtype cannot hold.
_ARITHMETIC = frozenset("add add_any convert_element_type integer_pow mul square sub".split())
# Operations that sum products, or multiply: integers stay exact in any order.
_SUMS = frozenset(
    """
    conv_general_dilated cumprod cumsum dot_general psum reduce_prod reduce_sum reduce_window
    reduce_window_sum scatter_add scatter-add
    """.split()
)
# Operations whose results in float64 must be met by any implementation in a narrower dtype.
TRUSTED = (EXACT | _SUMS | _ARITHMETIC) - {
    "argmax", "argmin", "argsort", "bitcast_convert_type", "convert_element_type", "cumprod",
    "integer_pow", "nextafter", "reduce_precision", "reduce_prod", "reduce_window", "round",
    "sort", "top_k",
}  # fmt: skip


# Reductions that NumPy computes independently of XLA, whose faults were in float64, too.
_BY_NUMPY: dict[str, Callable[..., NumPyArray]] = {
    "argmax": lambda x, axes, index_dtype: x.argmax(axes[0]),
    "argmin": lambda x, axes, index_dtype: x.argmin(axes[0]),
    "reduce_max": lambda x, axes, out_sharding=None: x.max(axes),
    "reduce_min": lambda x, axes, out_sharding=None: x.min(axes),
    "reduce_sum": lambda x, axes, out_sharding=None: x.sum(axes, dtype=x.dtype),
}


_PRODUCTS = frozenset(("conv_general_dilated", "dot_general"))
# The relative rounding of products on GPUs and TPUs, which may have the digits of bfloat16.
_COARSE = 2.0**-8


class Sampled(StepValue):
    """An array of the running program, and its samples: the same array with other roundings."""

    __slots__ = ("samples",)

    def __init__(self, array: ArrayLike, origin: "Equation | str", samples: ArrayLikes = ()):
        super().__init__(array, origin)
        # In float64, then with random roundings; empty if all of them equal the array.
        self.samples = samples

    def sample(self, number: int) -> ArrayLike:
        """Return the array of a sample; number 0 is the one in float64."""
        return self.samples[number] if self.samples else self.array


def stored(x: ArrayLike) -> NumPyArray:
    """Return an array as a NumPy array: in 64 bits if inexact, keys as their stored numbers."""
    if isinstance(typed(x)[0], ExtendedDType):
        return np.asarray(key_data(x))
    return wide_host(x) if is_inexact(x) else np.asarray(x)


def wrong_elements(ours: ArrayLike, value: Sampled) -> NumPyArray:
    """Return which elements of an array rounding does not explain, given a value's samples.

    Integers, booleans and random keys must be equal, unless rounding decides them: then the samples
    of the value differ, too. NaNs and infinities must be where some sample has them.
    """
    found, array = stored(ours), stored(value.array)
    others = [stored(x) for x in value.samples if x is not value.array]
    if not is_inexact(value.array):
        wrong = np.asarray(found != array)
        for other in others if wrong.any() else ():
            wrong &= other == array
        return wrong
    allowed = _allowed(value.array, array, others)
    wrong = ~_near(found, array, allowed)
    for other in others if wrong.any() else ():
        wrong &= ~_near(found, other, allowed)
    return wrong


def is_undetermined(value: Sampled) -> bool:
    """Return whether rounding may change most elements of a value by more than their size."""
    array = stored(value.array)
    others = [stored(x) for x in value.samples if x is not value.array]
    if not others or not array.size:
        return False
    if not is_inexact(value.array):
        return bool(np.mean([other != array for other in others]) > 0.25)
    with np.errstate(all="ignore"):
        loose = _allowed(value.array, array, others) > np.maximum(np.abs(array), 1e-300)
    return bool(np.mean(loose & (array != 0)) > 0.5)


def _allowed(x: ArrayLike, array: NumPyArray, others: Sequence[NumPyArray]) -> NumPyArray:
    """Return how much another computation of each element may differ."""
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(array), np.abs(array), 0.0)
        spread = epsilon(typed(x)[0]) * size
        for other in others:
            distance = np.abs(other - array)
            same = (other == array) | (np.isnan(other) & np.isnan(array))
            spread = np.maximum(spread, np.where(same, 0.0, np.nan_to_num(distance, nan=np.inf)))
        return FACTOR * spread + float(finfo(typed(x)[0]).tiny)


def _near(found: NumPyArray, other: NumPyArray, allowed: NumPyArray) -> NumPyArray:
    with np.errstate(all="ignore"):
        near = np.abs(found - other) <= allowed
    return near | (found == other) | (np.isnan(found) & np.isnan(other)) | np.isinf(allowed)


def has_numpy(equation: Equation) -> bool:
    """Return whether NumPy can compute an operation, too."""
    return equation.primitive.name in _BY_NUMPY


def by_numpy(equation: Equation, operands: ArrayLikes) -> NumPyArray | None:
    """Return the result of an operation as NumPy computes it; None if it does not."""
    compute = _BY_NUMPY.get(equation.primitive.name)
    if compute is None or np.iscomplexobj(operands[0]) or not np.size(operands[0]):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(compute(stored(operands[0]), **equation.params))


def is_product(equation: Equation) -> bool:
    """Return whether an operation is a product of matrices or a convolution."""
    return equation.primitive.name in _PRODUCTS


def is_sum(equation: Equation) -> bool:
    """Return whether an operation sums several numbers, or products of them."""
    return equation.primitive.name in _SUMS


def exceeds_rounding(
    equation: Equation,
    operands: ArrayLikes,
    result: ArrayLike,
    exact: ArrayLike,
    largest: ArrayLike,
) -> NumPyArray:
    """Return which elements of the result of a `TRUSTED` operation rounding does not explain.

    Args:
      equation: the operation.
      operands: its operands.
      result: its result.
      exact: its result in float64, from the same operands.
      largest: for a sum, the sum of absolute values; otherwise the result again.
    """
    ours, wide, size = stored(result), stored(exact), np.abs(stored(largest))
    if not is_inexact(result):
        return np.asarray(ours != wide)
    info = finfo(typed(result)[0])
    terms = _terms_of(equation, operands, [result])
    with np.errstate(all="ignore"):
        allowed = 4 * (terms + 2) * epsilon(typed(result)[0]) * size + float(info.tiny)
        wrong = ~_near(ours, wide, allowed)
        # Partial sums may have left the range.
        return wrong & ~(size > float(info.max) / 2)


# ---- rounding at random --------------------------------------------------------------------------


class Rounding:
    """The roundings that are possible in an operation, given its operands and results.

    Args:
      equation: the operation.
      operands: its operands.
      results: its results.
      exact: its results in float64.
      is_coarse: whether products are rounded to fewer digits than their dtype has.
    """

    def __init__(
        self,
        equation: Equation,
        operands: ArrayLikes,
        results: ArrayLikes,
        exact: ArrayLikes,
        is_coarse: bool = False,
    ):
        name = equation.primitive.name
        self.terms = _terms_of(equation, operands, results)
        inexact = any(map(is_inexact, results))
        # Per result, the elements that are rounded; True for all of them.
        self.rounded: list[NumPyArray | bool]
        if name in EXACT or not inexact:
            self.rounded = [False] * len(results)
        elif name in _SUMS:
            self.rounded = [not _are_small_integers(self.terms, [*operands, *results])]
        elif name in _ARITHMETIC:
            is_double = epsilon(typed(results[0])[0]) < 1e-15
            self.rounded = [
                not _are_small_integers(1, [*operands, results[0]])
                if is_double
                else stored(results[0]) != stored(exact[0])
            ]
        else:
            self.rounded = [is_inexact(x) for x in results]
        self.is_exact = not any(np.any(mask) for mask in self.rounded)
        # A sum is rounded once per term: with random signs, errors grow as the square root.
        self.relative = 2.0 * float(np.sqrt(self.terms))
        if is_coarse and name in _PRODUCTS and inexact:
            self.relative *= max(1.0, _COARSE / epsilon(typed(results[0])[0]))

    def moved_operands(self, operands: ArrayLikes, random: np.random.Generator) -> ArrayLikes:
        """Return the operands of a sum as they are when its terms are added in another order."""
        if self.is_exact or self.terms == 1:
            return operands
        return [moved(x, self.relative, random) if is_inexact(x) else x for x in operands]

    def moved_results(self, results: ArrayLikes, random: np.random.Generator) -> list[ArrayLike]:
        """Return results with other roundings."""
        return [
            moved(x, self.relative, random, mask) if np.any(mask) else x
            for x, mask in zip(results, self.rounded, strict=True)
        ]


def moved(
    x: ArrayLike,
    relative: float,
    random: np.random.Generator,
    where: NumPyArray | bool = True,
) -> ArrayLike:
    """Return an inexact array whose elements are changed at random.

    Args:
      x: the array.
      relative: the largest relative change, in units of the dtype's epsilon.
      random: the generator of random numbers.
      where: which elements.
    """
    dtype, shape = typed(x)
    wide = wide_host(x)
    info = finfo(dtype)
    largest, tiny = float(info.max), float(info.tiny)
    with np.errstate(all="ignore"):
        factors = 1.0 + min(relative * epsilon(dtype), 0.25) * random.uniform(-1, 1, shape)
        # Processors may flush numbers below the normal ones to zero.
        factors = np.where(np.abs(wide) < tiny, random.integers(0, 3, shape), factors)
        result = wide * factors
        if not np.iscomplexobj(wide):
            result = np.where(np.isfinite(wide), np.clip(result, -largest, largest), wide)
        return np.where(where & np.isfinite(wide), result, wide).astype(dtype)


def _terms_of(equation: Equation, operands: ArrayLikes, results: ArrayLikes) -> int:
    """Return how many numbers an operation adds up for an element of its result, about."""
    name, params = equation.primitive.name, equation.params
    if name in ELEMENTWISE or name in EXACT or not operands:
        return 1
    sizes = [int(np.prod(typed(x)[1])) for x in operands]
    if name == "dot_general":
        shape = typed(operands[0])[1]
        return max(1, int(np.prod([shape[i] for i in params["dimension_numbers"][0][0]])))
    if name.startswith("cum"):
        return max(1, typed(operands[0])[1][params["axis"]])
    if name.startswith("reduce_") and "window" not in name:
        return max(1, max(sizes) // max(1, int(np.prod(typed(results[0])[1]))))
    return max(1, max(sizes))


def _are_small_integers(terms: int, arrays: ArrayLikes) -> bool:
    """Return whether arrays hold integers, whose products' sums any order computes exactly."""
    largest, least_epsilon = 1.0, 1.0
    for x in arrays:
        if not is_inexact(x):
            continue
        array = wide_host(x)
        if (
            np.iscomplexobj(array)
            or not np.isfinite(array).all()
            or (array != np.rint(array)).any()
        ):
            return False
        largest *= max(1.0, float(np.abs(array).max(initial=0.0)))
        least_epsilon = min(least_epsilon, epsilon(typed(x)[0]))
    return terms * largest <= 1.0 / least_epsilon
