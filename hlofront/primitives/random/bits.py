"""Primitives of random bits: XLA's generators, and Threefry."""

import enum

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported, issubdtype
from hlofront.base.elements import uint32, uint64
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, Shape, ShapeLike
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer, infers_whole_types
from hlofront.core.sharding.requested_shardings import requested, spec_of_rank, split_by
from hlofront.core.sizes.dimensions import canonical_shape, check_nonnegative
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.dynamic_slicing import dynamic_update_slice
from hlofront.primitives.arrays.shaping import broadcast_shapes, expand_dims, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.rules.batching import match_axes, move_axis, only_axis
from hlofront.primitives.rules.derivatives import no_derivative, unknown_derivative


class RandomAlgorithm(enum.IntEnum):
    """An algorithm of `rng_bit_generator`: the device's default, Threefry or Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
rng_uniform_p = Primitive("rng_uniform")
threefry2x32_p = Primitive("threefry2x32", multiple_results=True)

# Salmon et al. (2011), table 2: the rotation of each round; the parity of the key schedule.
THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA


@boundary
def rng_bit_generator(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike = np.uint32,
    algorithm: str | int | RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: object = None,
) -> tuple[Array, ...]:
    """Return uniformly random bits and the next state of XLA's generator.

    The generators are counter-based: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
    (2011). They are fast, but the bits of a key depend on the device and on XLA's version.

    Args:
      key: the state, of shape (4,) and dtype uint32, or of shape (2,) and dtype uint64.
      shape: the shape of the bits.
      dtype: the dtype of the bits: uint8, uint16, uint32 or uint64.
      algorithm: a RandomAlgorithm, or its name.
      out_sharding: the sharding of the bits over axes of type Explicit.

    Returns:
      (state, bits): the next state, of the shape and dtype of `key`, and an array of `shape`.

    Raises:
      TypeError: if the key or the dtype is not one of these.
      ValueError: if there is no such algorithm.
    """
    if out_sharding is not None:
        out_sharding = requested("rng_bit_generator", out_sharding)
    params = {
        "shape": canonical_shape(shape),
        "dtype": np.dtype(check_user_dtype_supported(dtype, "rng_bit_generator")),
        "algorithm": _algorithm(algorithm),
        "out_sharding": out_sharding,
    }
    return tuple(process(rng_bit_generator_p, (key,), params))


def _algorithm(algorithm: str | int | RandomAlgorithm) -> RandomAlgorithm:
    try:
        if isinstance(algorithm, str):
            return RandomAlgorithm[algorithm]
        return RandomAlgorithm(algorithm)
    except (KeyError, ValueError):
        raise ValueError(
            f"rng_bit_generator: there is no algorithm {algorithm!r}; expected one of "
            f"{', '.join(RandomAlgorithm.__members__)}."
        ) from None


_KEYS = (((4,), uint32), ((2,), uint64))
_BITS = tuple(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))


@infer(rng_bit_generator_p)
def _(
    key: ShapedArray, *, shape: Shape, dtype: DType, out_sharding: NamedSharding | None, **_: object
) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in _KEYS:
        raise TypeError(
            "rng_bit_generator requires a key of type uint32[4] or uint64[2], got "
            f"{key.str_short()}. Two halves of a key of 64 bits make one of 128: "
            "jnp.concatenate([key, key])."
        )
    if dtype not in _BITS:
        raise TypeError(
            f"rng_bit_generator: unsupported dtype {dtype}; expected uint8, uint16, uint32 or "
            "uint64"
        )
    check_nonnegative("rng_bit_generator", "shape", shape)
    bits_sharding = split_by(out_sharding)
    if bits_sharding is not None:
        bits_sharding = bits_sharding._replace(spec=spec_of_rank(bits_sharding.spec, len(shape)))
    bits = ShapedArray(shape, dtype, sharding=bits_sharding, manual_axis_type=key.manual_axis_type)
    return [key.strip_weak_type(), bits]


no_derivative(rng_bit_generator_p)
# The requested sharding applies to the bits, not to the state.
infers_whole_types.add(rng_bit_generator_p)


@batch(rng_bit_generator_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, shape: Shape, **params: object
) -> tuple[ArrayLikes, BatchAxes]:
    keys = move_axis(values[0], only_axis(axes), 0)
    size = typeof(keys).shape[0]
    # One call generates the bits of the whole batch from the first key, and only that key advances.
    first = squeeze(slice_in_dim(keys, 0, 1), (0,))
    key, bits = process(rng_bit_generator_p, (first,), {"shape": (size, *shape), **params})
    return [dynamic_update_slice(keys, expand_dims(key, (0,)), (0, 0)), bits], [0, 0]


@boundary
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: ShapeLike) -> Array:
    """Return uniform random numbers in [a, b) from the device's hidden state, without a key.

    Args:
      a: the inclusive lower bound, a scalar.
      b: the exclusive upper bound, a scalar of the dtype of `a`.
      shape: the shape of the result.

    Raises:
      ValueError: if the bounds are not scalars of equal dtype.
      TypeError: if they are neither floats of at least 16 bits nor integers of at least 32 bits.
    """
    return process(rng_uniform_p, (a, b), {"shape": canonical_shape(shape)})


@infer(rng_uniform_p)
def _(a: ShapedArray, b: ShapedArray, *, shape: Shape) -> ShapedArray:
    if a.shape or b.shape:
        raise ValueError(
            f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}."
        )
    if a.dtype != b.dtype:
        raise ValueError(
            f"Arguments to rng_uniform must have identical dtypes, got {a.dtype} and {b.dtype}."
        )
    # For other dtypes XLA aborts the process.
    is_float = issubdtype(a.dtype, np.floating) and a.dtype.itemsize >= 2
    is_integer = issubdtype(a.dtype, np.integer) and a.dtype.itemsize >= 4
    if not is_float and not is_integer:
        raise TypeError(
            f"rng_uniform does not accept dtype {a.dtype}: expected floats of at least 16 bits, or "
            "integers of at least 32 bits."
        )
    check_nonnegative("rng_uniform", "shape", shape)
    return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)


unknown_derivative(
    rng_uniform_p, "draw between 0 and 1, and scale: a + (b - a) * lax.rng_uniform(0., 1., shape)."
)


@batch(rng_uniform_p)
def _(values: ArrayLikes, axes: BatchAxes, *, shape: Shape) -> Batched:
    raise NotImplementedError(  # JAX raises this class.
        "Batching rule for 'rng_uniform' not implemented: the bounds of one call are scalars. Draw "
        "between 0 and 1, in a shape with the batch axis, and scale."
    )


# ---- threefry ------------------------------------------------------------------------------------


def threefry2x32(key: ArrayLikes, counts: ArrayLikes) -> list[Array]:
    """Encrypt pairs of 32-bit words by Threefry-2x32 with 20 rounds.

    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).

    Args:
      key: two uint32 arrays, the words of the key; shapes broadcast by NumPy's rule.
      counts: two uint32 arrays, the words to encrypt.

    Returns:
      Two uint32 arrays of the broadcast shape.
    """
    return process(threefry2x32_p, (*key, *counts), {})


@infer(threefry2x32_p)
def _(*words: ShapedArray) -> list[ShapedArray]:
    if any(word.dtype != uint32 for word in words):
        raise TypeError(
            "Arguments to threefry2x32 must have uint32 type, got "
            f"{', '.join(word.str_short() for word in words)}"
        )
    result = ShapedArray(broadcast_shapes(*[word.shape for word in words]), uint32)
    return [result, result]


no_derivative(threefry2x32_p)


@batch(threefry2x32_p)
def _(values: ArrayLikes, axes: BatchAxes) -> tuple[ArrayLikes, BatchAxes]:
    values, axis = match_axes(values, axes)
    return process(threefry2x32_p, tuple(values), {}), [axis, axis]
