"""The user-defined generators of random bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike
from hlofront.primitives.random.keys import Generator
from hlofront.random.keys import GeneratorLike, PRNGSpec, generator_of, seed_array
from hlofront.random.keys import random_seed as _random_seed


@boundary
def define_prng_impl(
    *,
    key_shape: Sequence[int],
    seed: Callable[..., Array],
    split: Callable[..., Array],
    random_bits: Callable[..., Array],
    fold_in: Callable[..., Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGSpec:
    """Define a generator of random bits, for the argument `impl` of `jax.random.key`.

    Each function takes one key, an array of uint32 of shape `key_shape`, and is batched by `vmap`
    over arrays of keys.

    Args:
      key_shape: the shape of a key.
      seed: (an integer scalar) -> a key.
      split: (key, shape) -> an array of keys, of shape (*shape, *key_shape).
      random_bits: (key, width, shape) -> an array of unsigned integers of this many bits.
      fold_in: (key, a scalar of uint32) -> a key.
      name: the name of the generator, for messages.
      tag: the short name in the dtype of the generator's keys, key<tag>.

    Returns:
      A hashable PRNGSpec, which represents the generator.
    """
    return PRNGSpec(Generator(key_shape, seed, split, random_bits, fold_in, name, tag))


@boundary
def seed_with_impl(impl: GeneratorLike, seed: ArrayLike) -> Array:
    """Return keys of a generator from integer seeds.

    Args:
      impl: the generator: one of this module, a result of `define_prng_impl`, or a name.
      seed: an integer, or an array of integers.

    Returns:
      An array of keys of the shape of `seed`.

    Raises:
      TypeError: if the seed is not of integers.
    """
    return random_seed(seed, impl)


@boundary
def random_seed(seeds: ArrayLike, impl: GeneratorLike) -> Array:
    """Return keys of a generator from integer seeds.

    Args:
      seeds: an integer, or an array of integers.
      impl: the generator: one of this module, a result of `define_prng_impl`, or a name.

    Returns:
      An array of keys of the shape of `seeds`.

    Raises:
      TypeError: if the seeds are not integers.
    """
    return _random_seed(seed_array(seeds), generator_of(impl))
