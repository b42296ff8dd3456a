"""Sampling from gamma distributions by rejection, in a loop per element.

The method is that of Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables" (2000).
"""

import math

import numpy as np

from hlofront.base.dtypes import finfo, issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.mapping import map
from hlofront.higher_order.control_flow.while_loop import while_loop
from hlofront.primitives.arrays.creation import full, full_like
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.elementwise.compare import eq, ge, le, select
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    div,
    exp,
    log,
    log1p,
    mul,
    neg,
    pow,
    sqrt,
    sub,
)
from hlofront.primitives.elementwise.special import random_gamma_grad
from hlofront.primitives.random.floats import normals, uniforms
from hlofront.primitives.random.keys import broadcast_keys, is_key, random_split, settings
from hlofront.primitives.rules.batching import move_axis
from hlofront.primitives.rules.derivatives import derivative_from_result
from hlofront.primitives.sharding.families import elementwise
from hlofront.transforms.vmap import vmap

random_gamma_p = Primitive("random_gamma")

# A key, the square of a normal sample x, the cube of 1 + c x, and a uniform sample.
_State = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
# A key, a normal sample x, and 1 + c x.
_Normal = tuple[ArrayLike, ArrayLike, ArrayLike]


def random_gamma(keys: ArrayLike, alpha: ArrayLike, log_space: bool) -> Array:
    """Draw samples from gamma distributions, or their logarithms, in the shape of `alpha`.

    Args:
      keys: random keys, whose shape is a prefix of the shape of `alpha`; samples along the other
        axes share a key.
      alpha: the shape parameters of the distributions, floating-point.
      log_space: whether to return logarithms.

    Raises:
      TypeError: if `keys` are not keys, `alpha` is not floating-point, or the shapes do not match.
    """
    return process(random_gamma_p, (keys, alpha), {"log_space": log_space, **settings()})


@infer(random_gamma_p)
def _(
    keys: ShapedArray, alpha: ShapedArray, *, log_space: bool, partitionable: bool = True
) -> ShapedArray:
    if not is_key(keys) or not issubdtype(alpha.dtype, np.floating):
        raise TypeError(
            "random_gamma takes random keys and floats, got "
            f"{keys.str_short()} and {alpha.str_short()}"
        )
    if alpha.shape[: keys.ndim] != keys.shape:
        raise TypeError(
            f"random_gamma: the shape of the keys, {keys.shape}, must be the first part of that "
            f"of the parameters, {alpha.shape}"
        )
    return alpha.strip_weak_type()


elementwise(random_gamma_p)


@batch(random_gamma_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[Array, int]:
    keys, alpha = values
    key_axis, alpha_axis = axes
    if alpha_axis is None:
        assert key_axis is not None
        size, aval = typeof(keys).shape[key_axis], typeof(alpha)
        alpha = broadcast_in_dim(alpha, (size, *aval.shape), range(1, aval.ndim + 1))
    else:
        alpha = move_axis(alpha, alpha_axis, 0)
    keys = broadcast_keys(keys, key_axis, typeof(alpha).shape[0])
    return process(random_gamma_p, (keys, alpha), params), 0


def _by_alpha(
    tangent: ArrayLike,
    result: ArrayLike,
    keys: ArrayLike,
    alpha: ArrayLike,
    *,
    log_space: bool,
    partitionable: bool = True,
) -> Array:
    """Return the tangent of gamma samples from the tangent of `alpha`."""
    if not log_space:
        return mul(tangent, random_gamma_grad(alpha, result))
    sample = exp(result)
    # The logarithm is accurate even if the sample itself underflows to zero.
    tiny = full_like(sample, finfo(typeof(sample).dtype).smallest_normal)
    sample = select(eq(sample, full_like(sample, 0)), tiny, sample)
    return mul(tangent, div(random_gamma_grad(alpha, sample), sample))


derivative_from_result(random_gamma_p, None, _by_alpha)


# ---- the algorithm ------------------------------------------------------------------------------


def draw(keys: ArrayLike, alpha: ArrayLike, log_space: bool) -> ArrayLike:
    """Draw gamma samples by Marsaglia and Tsang's algorithm, with other primitives."""
    keys_aval, aval = typeof(keys), typeof(alpha)
    if not aval.size:
        return alpha
    rest = math.prod(aval.shape[keys_aval.ndim :])
    keys = random_split(reshape(keys, (keys_aval.size,)), (rest,))
    operands = reshape(keys, (aval.size,)), reshape(alpha, (aval.size,))

    def draw_one(operands: tuple[ArrayLike, ArrayLike]) -> Array:
        return _draw_one(*operands, log_space)

    # Other generators draw the bits of a batch from only the first key.
    in_batches = keys_aval.dtype.generator.name == "threefry2x32"
    numbers = vmap(draw_one)(operands) if in_batches else map(draw_one, operands)
    return reshape(numbers, aval.shape)


def parts(key: ArrayLike, count: int) -> list[Array]:
    """Split a random key into `count` keys."""
    keys = random_split(key, (count,))
    return [squeeze(slice_in_dim(keys, i, i + 1), (0,)) for i in range(count)]


def _draw_one(key: ArrayLike, alpha: ArrayLike, log_space: bool) -> Array:
    """Draw one gamma sample from a scalar key and a scalar alpha."""
    dtype = typeof(alpha).dtype
    constant = dtype.type
    zero, one, third = constant(0), constant(1), constant(1 / 3)
    # For alpha < 1, a sample for alpha + 1 is scaled by a power of a uniform sample.
    is_large = ge(alpha, one)
    shifted = select(is_large, alpha, add(alpha, one))
    d = sub(shifted, third)
    c = div(third, sqrt(d))
    key, boost_key = parts(key, 2)

    def rejected(state: _State) -> Array:
        _, square, cube, u = state
        surely = sub(one, mul(constant(0.0331), mul(square, square)))
        bound = add(mul(square, constant(0.5)), mul(d, add(sub(one, cube), log(cube))))
        return bitwise_and(ge(u, surely), ge(log(u), bound))

    def propose(state: _State) -> _State:
        key, normal_key, uniform_key = parts(state[0], 3)

        def again(state: _Normal) -> _Normal:
            key, subkey = parts(state[0], 2)
            x = normals(subkey, (), dtype)
            return key, x, add(one, mul(x, c))

        def not_positive(state: _Normal) -> Array:
            _, _, v = state
            return le(v, zero)

        _, x, v = while_loop(not_positive, again, (normal_key, zero, -one))
        return key, mul(x, x), mul(mul(v, v), v), uniforms(uniform_key, (), dtype, zero, one)

    # The initial proposal is always rejected.
    _, _, cube, _ = while_loop(rejected, propose, (key, zero, one, constant(2)))
    boost = uniforms(boost_key, (), dtype, zero, one)
    if log_space:
        log_boost = log1p(neg(boost))
        none = bitwise_or(is_large, eq(log_boost, zero))
        log_boost = select(none, full((), 0, dtype), mul(log_boost, div(one, alpha)))
        return add(add(log(d), log(cube)), log_boost)
    boost = pow(sub(one, boost), div(one, alpha))
    return mul(mul(d, cube), select(is_large, full((), 1, dtype), boost))
