"""The distributions of counts: Poisson, binomial and multinomial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.config import debug_key_reuse
from hlofront.base.dtypes import check_user_dtype_supported, finfo, iinfo
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core.aval import is_value, typeof
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.higher_order.control_flow.library_loops import scan, while_loop
from hlofront.numpy.arrays import creation
from hlofront.numpy.arrays.shape import moveaxis
from hlofront.numpy.elementwise import logic
from hlofront.numpy.elementwise.rounding import clip
from hlofront.numpy.indexing import selecting
from hlofront.numpy.support.promotion import promote_dtypes_inexact
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.reducing import reduce_or
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    abs,
    ceil,
    clamp,
    floor,
    log,
    log1p,
    neg,
    sqrt,
)
from hlofront.primitives.elementwise.special import lgamma
from hlofront.primitives.random.keys import random_clone, random_split
from hlofront.random.approximate import checked_method, poisson_approx
from hlofront.random.arguments import broadcast_to_shape, checked_key, in_dtype, integral, parts
from hlofront.random.continuous import uniform
from hlofront.random.sampler import sampler
from hlofront.runtime.dispatch.operation import operation

# The number of a loop's step, and three arrays that each step changes.
LoopState: TypeAlias = tuple[Array, Array, Array, Array]


def _again(key: Array) -> Array:
    """Return a key that jax_debug_key_reuse allows to be used twice, on disjoint elements."""
    return random_clone(key) if debug_key_reuse.value else key


def _any(x: Array) -> Array:
    return reduce_or(x, range(typeof(x).ndim))


# ---- Poisson -------------------------------------------------------------------------------------


@sampler(dtype=integral, method=checked_method, nested=False)
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Return random numbers from the Poisson distribution.

    The exact method is for keys of the generator threefry2x32. Small means use Knuth's products of
    uniform numbers; others use the transformed rejection of Hoermann, "The transformed rejection
    method for generating Poisson random variables" (1993).

    Args:
      lam: the mean, which broadcasts to the shape. Where it is negative or NaN, the exact method
        returns -1.
      dtype: an integer dtype; by default int32, with x64 int64.
      method: "exact", by rejection in loops, or "approximate", which is faster as it has no loop,
        with probabilities that are wrong by less than 1e-4 in total.

    Example:
      >>> jax.eval_shape(jax.random.poisson, jax.random.key(0), jnp.array([1.0, 100.0]))
      ShapeDtypeStruct(shape=(2,), dtype=int32)
    """
    if method == "approximate":
        return poisson_approx(key, lam, shape=shape, dtype=dtype)
    generator = key.dtype.generator
    if generator.name != "threefry2x32":
        raise NotImplementedError(  # JAX raises this class.
            "`poisson` with method='exact' is only implemented for the threefry2x32 RNG, not "
            f"{generator.name}: its loops need a generator whose bits do not depend on what else "
            "is drawn. Use method='approximate', or a key of threefry2x32"
        )
    lam = convert_element_type(broadcast_to_shape(lam, shape), np.float32)
    return _poisson(key, lam, shape=shape, dtype=dtype)


@operation(static_argnames=("shape", "dtype"), nested=True)
def _poisson(key: Array, lam: Array, shape: Shape, dtype: DType) -> Array:
    is_small = (lam != lam) | (lam < 10)
    small = select(is_small, lam, full_like(lam, 0.0))
    large = select(is_small, full_like(lam, 1e5), lam)
    counts = select(
        is_small,
        _poisson_knuth(key, small, shape=shape, dtype=dtype),
        _poisson_rejection(_again(key), large, shape=shape, dtype=dtype),
    )
    return select(lam == 0, full_like(counts, 0), counts)


def _should_continue(undecided: Array, step: Array, dtype: DType, most: float) -> Array:
    return _any(undecided) & (convert_element_type(step, dtype) < host_number(most, dtype))


@operation(static_argnames=("shape", "dtype"), nested=True)
def _poisson_knuth(key: Array, lam: Array, shape: Shape, dtype: DType) -> Array:
    most = int(iinfo(dtype).max)

    def go_on(state: LoopState) -> Array:
        return _should_continue(state[3] > -lam, state[0], dtype, most)

    def multiply(state: LoopState) -> LoopState:
        step, count, key, log_product = state
        key, subkey = parts(key)
        count = select(log_product > -lam, count + 1, count)
        u = uniform(subkey, shape, np.dtype(np.float32), 0.0, 1.0)
        return step + 1, count, key, log_product + log(u)

    start = (0, full_like(lam, 0, dtype, shape), key, full_like(lam, 0, np.float32, shape))
    return while_loop(go_on, multiply, start)[1] - 1


@operation(static_argnames=("shape", "dtype"), nested=True)
def _poisson_rejection(key: Array, lam: Array, shape: Shape, dtype: DType) -> Array:
    most = int(iinfo(dtype).max)
    log_lam = log(lam)
    b = 0.931 + 2.53 * sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    at_once = 0.9277 - 3.6224 / (b - 2)

    def go_on(state: LoopState) -> Array:
        return _should_continue(~state[2], state[0], dtype, most)

    def propose(state: LoopState) -> LoopState:
        step, count, accepted, key = state
        key, u_key, v_key = parts(key, 3)
        u = uniform(u_key, shape, typeof(lam).dtype, 0.0, 1.0) - 0.5
        v = uniform(v_key, shape, typeof(lam).dtype, 0.0, 1.0)
        near = 0.5 - abs(u)
        k = floor((2 * a / near + b) * u + lam + 0.43)
        height = log(v * inverse_alpha / (a / (near * near) + b))
        bound = -lam + k * log_lam - lgamma(k + 1)
        surely = (near >= 0.07) & (v <= at_once)
        never = (k < 0) | ((near < 0.013) & (v > near))
        fits = height <= bound
        accept = surely | (~never & fits)
        count, accepted = select(accept, k, count), accepted | accept
        return step + 1, count, accepted, key

    start = (0, full_like(lam, -1.0), full_like(lam, False, np.bool_), key)
    return convert_element_type(while_loop(go_on, propose, start)[1], dtype)


# ---- binomial ------------------------------------------------------------------------------------


@sampler(nested=False, has_out_sharding=False)
def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers of successes in n trials, from the binomial distribution.

    Few expected successes are counted one by one; many use the rejection of Hoermann, "The
    generation of binomial random variates" (1993).

    Args:
      n: the number of trials, which broadcasts to the shape.
      p: the probability of success, which broadcasts to the shape. The result is NaN where
        `n` or `p` is invalid.

    Example:
      >>> jax.eval_shape(jax.random.binomial, jax.random.key(0), 10, jnp.array([0.1, 0.9]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    n, p = (in_dtype(x, typeof(x).dtype) for x in promote_dtypes_inexact(n, p))
    n, p = broadcast_to_shape(n, shape), broadcast_to_shape(p, shape)
    # The rarer of success and failure is counted.
    is_rare = p < 0.5
    q = select(is_rare, p, 1.0 - p)
    bad_n = (n != n) | (n < 0.0)
    endless = logic.isinf(n)
    nan_q = q != q
    bad_q = nan_q | (q < 0.0)
    q = select(bad_q, full_like(q, 0.01), q)
    # Infinitely many trials without success, whose product is NaN, count as none.
    few = bad_n | ~(n * q > 10.0)
    whole = floor(n)
    counts = select(
        few,
        _by_counting(key, select(few & ~endless, whole, full_like(n, 0.0)), q, shape, dtype),
        _by_rejection(
            _again(key),
            select(few, full_like(n, 1e4), whole),
            select(few, full_like(q, 0.5), q),
            shape,
            dtype,
        ),
    )
    invalid = bad_q | bad_n
    counts = select(invalid, full_like(counts, np.nan), counts)
    counts = select(endless & ~invalid, full_like(counts, np.inf), counts)
    is_counted = is_rare | bad_n | nan_q | endless
    return select(is_counted, counts, convert_element_type(whole, dtype) - counts)


def _by_counting(key: Array, n: Array, p: Array, shape: Shape, dtype: DType) -> Array:
    """Return numbers of successes, summing the geometric distances between them up to n trials."""
    most = float(finfo(dtype).max)
    log_failure = log1p(neg(p))

    def go_on(state: LoopState) -> Array:
        return _should_continue(state[2] <= n, state[0], dtype, most)

    def to_next(state: LoopState) -> LoopState:
        step, count, trials, key = state
        subkey, key = parts(key)
        count = select(trials <= n, count + 1, count)
        u = uniform(subkey, shape, typeof(p).dtype, 0.0, 1.0)
        return step + 1, count, trials + ceil(log(u) / log_failure), key

    start = (0, full_like(p, 0.0), full_like(p, 0.0), key)
    return convert_element_type(while_loop(go_on, to_next, start)[1] - 1, dtype)


def _by_rejection(key: Array, n: Array, p: Array, shape: Shape, dtype: DType) -> Array:
    most = float(finfo(dtype).max)
    deviation = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    at_once = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = floor((n + 1) * p)

    def go_on(state: LoopState) -> Array:
        return _should_continue(~state[2], state[0], dtype, most)

    def propose(state: LoopState) -> LoopState:
        step, count, accepted, key = state
        key, u_key, v_key = parts(key, 3)
        u = uniform(u_key, shape, typeof(p).dtype, 0.0, 1.0)
        v = uniform(v_key, shape, typeof(p).dtype, 0.0, 1.0)
        u = u - 0.5
        near = 0.5 - abs(u)
        surely = (near >= 0.07) & (v <= at_once)
        k = floor((2 * a / near + b) * u + c)
        never = (k < 0) | (k > n)
        height = log(v * alpha / (a / (near * near) + b))
        bound = (
            (mode + 0.5) * log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * log(odds * (n - k + 1) / (k + 1))
            + _log_factorial_tail(mode)
            + _log_factorial_tail(n - mode)
            - _log_factorial_tail(k)
            - _log_factorial_tail(n - k)
        )
        fits = height <= bound
        accept = surely | (~never & fits)
        count, accepted = select(accept, k, count), accepted | accept
        return step + 1, count, accepted, key

    start = (0, full_like(p, -1.0), full_like(p, False, np.bool_), key)
    return convert_element_type(while_loop(go_on, propose, start)[1], dtype)


# The logarithms of the factorials of 0 to 9, minus Stirling's formula.
_TAILS = [
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    for k in range(10)
]


def _log_factorial_tail(k: Array) -> Array:
    """Return log(k!) minus Stirling's formula, from a table or by its asymptotic series."""
    table = creation.array(np.array(_TAILS, typeof(k).dtype))
    limited = clamp(host_number(0, typeof(k).dtype), k, host_number(9, typeof(k).dtype))
    square = (limited + 1) * (limited + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (limited + 1)
    index = convert_element_type(floor(limited), np.int32)
    return select(k <= 9, table.at[index].get(mode="promise_in_bounds"), series)


# ---- multinomial ---------------------------------------------------------------------------------


@boundary
def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    unroll: bool | int = 1,
) -> Array:
    """Return random numbers of each outcome in n trials, from the multinomial distribution.

    Args:
      key: a random key.
      n: the number of trials, which broadcasts to the shape without its last axis.
      p: the weights of the outcomes along the last axis, which broadcasts to the shape.
      shape: the shape of the result, with the axis of outcomes last; by default that of `p`.
      dtype: the dtype of the result; by default float32, with x64 float64.
      unroll: the `unroll` argument of the `lax.scan` over the outcomes.

    Raises:
      TypeError: if `n` or `p` is not an array, or `key` is not a key.
      ValueError: if `n` or `p` do not broadcast to the shape, or there are several keys.

    Example:
      >>> jax.eval_shape(jax.random.multinomial, jax.random.key(0), 10, jnp.array([0.2, 0.8]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    key = checked_key("multinomial", key)
    for position, x in enumerate((n, p)):
        if not is_value(x):
            raise TypeError(
                "multinomial requires ndarray or scalar arguments, got "
                f"{type(x)} at position {position}."
            )
    dtype = check_user_dtype_supported(float if dtype is None else dtype, "multinomial")
    shape = typeof(p).shape if shape is None else canonical_shape(shape)
    if not shape:
        raise ValueError("multinomial: p needs an axis, along which the outcomes are")
    return _multinomial(key, n, p, shape, dtype, unroll)


@operation(static_argnames=("shape", "dtype", "unroll"))
def _multinomial(
    key: Array, n: Array, p: Array, shape: Shape, dtype: DType, unroll: bool | int
) -> Array:
    n, p = (in_dtype(x, typeof(x).dtype) for x in promote_dtypes_inexact(n, p))
    n = broadcast_to_shape(n, shape[:-1])
    weights = moveaxis(broadcast_to_shape(p, shape), -1, 0)
    # The remaining trials have this outcome in proportion to its share of the remaining weights.
    left = cumsum(weights, axis=0, reverse=True)
    shares = weights / selecting.where(left == 0, 1, left)

    def draw(left: Array, share_and_key: tuple[Array, Array]) -> tuple[Array, Array]:
        share, key = share_and_key
        count = binomial(key, left, clip(share, 0, 1), dtype=typeof(left).dtype)
        return left - count, count

    keys = random_split(key, (shape[-1],))
    _, counts = scan(draw, n, (shares, keys), unroll=unroll)
    return convert_element_type(moveaxis(counts, 0, -1), dtype)
