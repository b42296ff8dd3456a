"""The generators that encrypt counters: Philox-2x32, Philox-4x32 and Threefry-4x32.

Their keys and bits are exact; what is made of them is as near as of any generator.
"""

import numpy as np

from tests.against_jax.corpus_random import SAMPLED
from tests.against_jax.describe import Corpus

NAMES = ("philox2x32", "philox4x32", "threefry4x32")
WIDTHS = ("uint8", "uint16", "uint32")
SHAPES = ((), (0,), (5,), (2, 3, 2))


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    for name in NAMES:
        exact(corpus, jax, jnp, name)
        sampled(corpus, jax, jnp, lax, name)
    return corpus


def exact(corpus, jax, jnp, name):
    random = jax.random
    data = random.key_data

    def key():
        return random.key(3, impl=name)

    def several():
        return random.split(key(), 3)

    def seeds():
        given = (0, 1, -1, 2**31 - 1, 2**40 + 17, -(2**63), True, np.uint8(7), np.uint64(2**63 + 5))
        return [random.PRNGKey(seed, impl=name) for seed in given]

    def keys():
        return (
            repr(key()),
            random.key_impl(key()),
            [data(random.split(key(), shape)) for shape in ((4,), *SHAPES)],
            [data(random.fold_in(key(), x)) for x in (0, 1, 2**32 - 1, np.int32(-5))],
            data(jax.vmap(random.fold_in)(several(), jnp.arange(3))),
            data(jax.vmap(random.fold_in, (None, 0))(key(), jnp.arange(3))),
            data(jax.vmap(random.split)(several())),
            data(jax.vmap(lambda seed: random.key(seed, impl=name))(jnp.arange(3))),
            data(jax.jit(lambda seed: random.key(seed, impl=name))(5)),
        )

    def bits_of(width):
        return (
            [random.bits(key(), shape, width) for shape in SHAPES],
            jax.jit(lambda k: random.bits(k, (4, 3), width))(key()),
            jax.vmap(lambda k: random.bits(k, (5,), width))(several()),
            jax.vmap(jax.vmap(lambda k: random.bits(k, (), width)))(random.split(key(), (2, 3))),
        )

    def bits():
        return [bits_of(width) for width in WIDTHS]

    def wide_bits():
        return bits_of("uint64")

    def with_the_option():
        with jax.default_prng_impl(name):
            raw = random.PRNGKey(1)
            return raw, random.bits(raw, (3,)), random.split(raw), data(random.key(1))

    def not_partitionable():
        with jax.threefry_partitionable(False):
            return random.bits(key(), (3,)), data(several())

    for function in (seeds, keys, bits, with_the_option, not_partitionable):
        corpus.add(f"{name}_{function.__name__}", function)
    corpus.add(f"{name}_wide_seeds", seeds, x64=True)
    corpus.add(f"{name}_wide_bits", wide_bits, x64=True)
    corpus.add(
        f"{name}_text",
        lambda k: (data(random.split(k)), random.bits(k, (2,))),
        key(),
        modes=("jaxpr", "jit"),
    )
    corpus.add(
        f"{name}_boolean_seed",
        lambda: random.key(np.bool_(True), impl=name),
    )
    corpus.add(
        f"{name}_wrong_data",
        lambda: random.wrap_key_data(np.zeros((2, 3), np.uint32), impl=name),
    )


def sampled(corpus, jax, jnp, lax, name):
    random = jax.random

    def samples():
        k = random.key(21, impl=name)
        return (
            random.uniform(k, (4,)),
            random.normal(k, (4,)),
            random.gamma(k, 2.0, (3,)),
            random.randint(k, (4,), 0, 1000),
            random.permutation(k, 10),
            lax.scan(lambda c, _: (random.fold_in(c, 1), random.bits(c)), k, None, 3)[1],
            jax.grad(lambda x: (random.normal(k, (3,)) * x).sum())(1.0),
        )

    corpus.add(f"{name}_samples", samples, tolerance=SAMPLED)
