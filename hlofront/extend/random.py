"""jax.extend.random: generators of random bits, and how to define others."""

from hlofront.primitives.random.bits import threefry2x32_p as threefry2x32_p
from hlofront.random.generators import define_prng_impl as define_prng_impl
from hlofront.random.generators import random_seed as random_seed
from hlofront.random.generators import seed_with_impl as seed_with_impl
from hlofront.random.rbg import rbg as rbg_prng_impl
from hlofront.random.rbg import unsafe_rbg as unsafe_rbg_prng_impl
from hlofront.random.threefry import threefry as threefry_prng_impl
from hlofront.random.threefry import threefry_2x32 as threefry_2x32

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
