"""Operations on random keys, by what their generators do with one key."""

from hlofront.base.config import threefry_partitionable
from hlofront.core.rules import lower
from hlofront.higher_order import random_gamma
from hlofront.lowering.extended import physical
from hlofront.primitives import keys as k
from hlofront.transforms.vmap import vmap


def _over(function, rank):
    """A function of one key, over arrays of keys of this rank."""
    for _ in range(rank):
        function = vmap(function)
    return function


def _lower_by_generator(primitive, function_of):
    """Lower to what `function_of(generator, **params)` does with the integers of one key."""

    @lower(primitive)
    def _(build, *operands, partitionable=True, **params):
        aval = next(filter(k.is_key, (*build.avals_in, *build.avals_out)))
        function = _over(function_of(aval.dtype.generator, **params), build.avals_in[0].ndim)
        avals = list(map(physical, build.avals_in))
        with threefry_partitionable(partitionable):
            return build.by_tracing(function, operands, avals)[0]


_lower_by_generator(k.random_seed_p, lambda generator, impl: generator.seed)
_lower_by_generator(
    k.random_split_p, lambda generator, shape: lambda key: generator.split(key, shape)
)
_lower_by_generator(
    k.random_bits_p,
    lambda generator, bit_width, shape: lambda key: generator.random_bits(key, bit_width, shape),
)


@lower(k.random_fold_in_p)
def _(build, keys, data, *, partitionable=True):
    keys_aval, data_aval = build.avals_in
    result = build.avals_out[0]
    of_keys = result.update(dtype=keys_aval.dtype)
    of_data = result.update(dtype=data_aval.dtype)
    operands = [
        build.broadcast_to(keys, keys_aval, of_keys),
        build.broadcast_to(data, data_aval, of_data),
    ]
    function = _over(keys_aval.dtype.generator.fold_in, result.ndim)
    with threefry_partitionable(partitionable):
        return build.by_tracing(function, operands, [physical(of_keys), of_data])[0]


@lower(k.random_wrap_p, k.random_unwrap_p, k.random_clone_p)
def _(build, x, **_):
    return x


@lower(random_gamma.random_gamma_p)
def _(build, keys, alpha, *, log_space, partitionable=True):
    with threefry_partitionable(partitionable):
        return build.by_tracing(random_gamma.draw, (keys, alpha), log_space=log_space)[0]
