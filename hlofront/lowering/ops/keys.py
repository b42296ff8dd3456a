"""Lowering rules of operations on random keys, from generators' functions of a single key."""

from collections.abc import Callable

from hlofront.base.config import threefry_partitionable
from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.higher_order import random_gamma
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.extended import physical
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate, Emit, is_large, replaces
from hlofront.primitives.random import keys as k
from hlofront.transforms.vmap import vmap


def _over(function: Callable[..., Array], rank: int) -> Callable[..., Array]:
    """Map a function of a single key over the axes of an array of keys of this rank."""
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


@replaces(k.random_bits_p, sizes="threefry2x32", needs_barriers=True, splits=True)
def _(equation: Candidate) -> Emit | None:
    """Emit a barrier; otherwise XLA would repeat all rounds in each loop that uses the bits."""
    (result,) = equation.avals_out
    return _stored_bits if is_large(result, MIN_SIZES["threefry2x32"]["all"]) else None


def _stored_bits(build: Builder, keys: Value) -> Value:
    bits = lower[k.random_bits_p](build, keys, **build.current.params)
    return build.barrier([bits], build.avals_out)[0]


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
