"""Lowering rules of operations on random keys, from their generators' functions of one key."""

from collections.abc import Callable, Mapping
from typing import Any

from hlofront.base.config import threefry_partitionable
from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.higher_order import random_gamma
from hlofront.lowering.builder import Builder, in_function
from hlofront.lowering.extended import physical
from hlofront.lowering.random_bits import is_one_loop
from hlofront.primitives import keys as k
from hlofront.transforms.vmap import vmap


def _over(function: Callable[..., Array], rank: int) -> Callable[..., Array]:
    """Return a function of one key mapped over the axes of an array of keys with this rank."""
    for _ in range(rank):
        function = vmap(function)
    return function


def _lower_by_generator(
    primitive: Primitive, function_of: Callable[..., Callable[..., Array]]
) -> None:
    """Register the rule that calls `function_of(generator, **params)` with the bits of each key."""

    @lower(primitive)
    @in_function
    def _(build: Builder, *operands: Value, partitionable: bool = True, **params: object) -> Value:
        aval = next(filter(k.is_key, (*build.avals_in, *build.avals_out)))
        function = _over(function_of(aval.dtype.generator, **params), build.avals_in[0].ndim)
        avals = list(map(physical, build.avals_in))
        with threefry_partitionable(partitionable):
            return build.by_tracing(function, operands, avals)[0]


def _seed(generator: k.Generator, impl: object) -> Callable[[Array], Array]:
    return generator.seed


def _split(generator: k.Generator, shape: Shape) -> Callable[[Array], Array]:
    def split(key: Array) -> Array:
        return generator.split(key, shape)

    return split


def _random_bits(generator: k.Generator, bit_width: int, shape: Shape) -> Callable[[Array], Array]:
    def random_bits(key: Array) -> Array:
        return generator.random_bits(key, bit_width, shape)

    return random_bits


_lower_by_generator(k.random_seed_p, _seed)
_lower_by_generator(k.random_split_p, _split)
_lower_by_generator(k.random_bits_p, _random_bits)


@lower(k.random_bits_p, platform="cpu")
@in_function
def _(build: Builder, keys: Value, *, shape: Shape, **params: Any) -> Value:
    if not is_one_loop(build):
        return lower[k.random_bits_p](build, keys, shape=shape, **params)
    # XLA would compute all rounds again in each loop that reads numbers made of the bits.
    (result,) = build.avals_out
    if not _is_lengthened(build, params):
        bits = lower[k.random_bits_p](build, keys, shape=shape, **params)
        return build.barrier([bits], [result])[0]
    (key,) = build.avals_in
    unit = _UNIT_OF_FEW if result.size < _MANY else _UNIT
    whole = result.update(shape=(-(-result.size // unit) * unit,))
    of_key = _random_bits(key.dtype.generator, params["bit_width"], whole.shape)
    with threefry_partitionable(True):
        bits = build.by_tracing(of_key, [keys], [physical(key)])
    (bits,) = build.barrier(bits, [whole])
    flat = result.update(shape=(result.size,))
    return build.reshape(build.slice(bits, (0,), flat.shape, result=flat), result)


# One thread computes fewer bits than this, in vectors.
_FEWEST = 1280
# A multiple of this is divided in equal parts by most numbers of threads,
_UNIT = 960
# and of this by those that share less than _MANY bits: XLA gives each some 600 or more.
_UNIT_OF_FEW = 240
_MANY = 3840
_THREADS = 16


def _is_lengthened(build: Builder, params: Mapping[str, Any]) -> bool:
    """Return whether bits after those that are asked for are computed, too.

    Where threads have unequal parts, XLA compares each index with the end, and computes one element
    after the other: 99,999 bits take 16 ns each, 100,000 of them 1.7. Bits are of their positions.
    In microseconds on a loaded Intel Xeon of 2 cores, as they are and lengthened to a multiple of
    240 and of 960, 1,000 take 10, 10 and 13 to 17, 1,300 13, 16 and 18, 1,399 42, 19 and 18, and
    1,999 66, 22 and 27.
    """
    (key,), (result,) = build.avals_in, build.avals_out
    is_threefry = key.dtype.generator.name == "threefry2x32"
    if not is_threefry or not params.get("partitionable", True) or key.shape:
        return False
    return build.is_undivided and result.size % _THREADS != 0 and result.size >= _FEWEST


@lower(k.random_fold_in_p)
@in_function
def _(build: Builder, keys: Value, data: Value, *, partitionable: bool = True) -> Value:
    keys_aval, data_aval = build.avals_in
    result = build.avals_out[0]
    of_keys: ShapedArray = result.update(dtype=keys_aval.dtype)
    of_data = result.update(dtype=data_aval.dtype)
    operands = [
        build.broadcast_to(keys, keys_aval, of_keys),
        build.broadcast_to(data, data_aval, of_data),
    ]
    function = _over(keys_aval.dtype.generator.fold_in, result.ndim)
    with threefry_partitionable(partitionable):
        return build.by_tracing(function, operands, [physical(of_keys), of_data])[0]


@lower(k.random_wrap_p, k.random_unwrap_p, k.random_clone_p)
def _(build: Builder, x: Value, **_: object) -> Value:
    return x


@lower(random_gamma.random_gamma_p)
@in_function
def _(
    build: Builder, keys: Value, alpha: Value, *, log_space: bool, partitionable: bool = True
) -> Value:
    with threefry_partitionable(partitionable):
        return build.by_tracing(random_gamma.draw, (keys, alpha), log_space=log_space)[0]
