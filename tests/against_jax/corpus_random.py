"""Random numbers, keys in programs, arguments that are refused, keys that are used twice.

What is exact by construction is compared bit for bit: keys, random bits, integers, and uniform
numbers between 0 and 1. Other numbers went through logarithms, powers and loops of them, in which
XLA's code for one processor differs from that for another by units in the last place: SAMPLED says
how many are allowed. With the instruction sets AVX, AVX2 and AVX-512 (`XLA_FLAGS=
--xla_cpu_max_isa=AVX`) no result lies further apart than a quarter of it.
"""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats
from tests.support.units import Units

SAMPLED = Units(float16=20, bfloat16=8, float32=128, float64=16)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    random = jax.random
    samplers(corpus, jax, jnp, random)
    modes(corpus, jax, jnp, random)
    generators(corpus, jax, jnp, random)
    texts(corpus, jax, jnp, lax, random)
    keys(corpus, jax, jnp, lax, random)
    odd_arguments(corpus, jax, jnp, random)
    errors(corpus, jax, jnp, random)
    reuse(corpus, jax, jnp, lax, random)
    return corpus


def bits(x):
    """Return the bits of a floating-point array as unsigned integers, which must be equal."""
    x = np.asarray(x)
    return x.view(f"u{x.itemsize}")


def samples(samplers, key, *args):
    return {name: sampler(key, *args) for name, sampler in samplers.items()}


def samplers(corpus, jax, jnp, random):
    simple = {
        "uniform": lambda k, s, d: random.uniform(k, s, d, -1, 2.5),
        "normal": random.normal,
        "cauchy": random.cauchy,
        "exponential": random.exponential,
        "gumbel": random.gumbel,
        "laplace": random.laplace,
        "logistic": random.logistic,
        "maxwell": random.maxwell,
        "lognormal": lambda k, s, d: random.lognormal(k, 1.5, s, d),
        "pareto": lambda k, s, d: random.pareto(k, 1.5, s, d),
        "rayleigh": lambda k, s, d: random.rayleigh(k, 1.5, s, d),
        "triangular": lambda k, s, d: random.triangular(k, -1.0, 0.5, 2.0, s, d),
        "truncated_normal": lambda k, s, d: random.truncated_normal(k, -1.0, 2.0, s, d),
        "wald": lambda k, s, d: random.wald(k, 1.5, s, d),
        "weibull_min": lambda k, s, d: random.weibull_min(k, 1.5, 2.0, s, d),
    }
    made_of_gamma = {
        "gamma": lambda k, s, d: random.gamma(k, 2.5, s, d),
        "gamma_small": lambda k, s, d: random.gamma(k, 0.25, s, d),
        "loggamma": lambda k, s, d: random.loggamma(k, 0.5, s, d),
        "beta": lambda k, s, d: random.beta(k, 0.7, 2.0, s, d),
        "chisquare": lambda k, s, d: random.chisquare(k, 3.0, s, d),
        "dirichlet": lambda k, s, d: random.dirichlet(k, jnp.array([0.5, 1, 3]), s, d),
        "f": lambda k, s, d: random.f(k, 2.0, 5.0, s, d),
        "t": lambda k, s, d: random.t(k, 4.0, s, d),
        "ball": lambda k, s, d: random.ball(k, 3, 1.5, s, d),
        "double_sided": lambda k, s, d: random.double_sided_maxwell(k, 1.0, 2.0, s, d),
        "generalized_normal": lambda k, s, d: random.generalized_normal(k, 1.5, s, d),
    }
    counts = {
        "randint": lambda k, s, d: random.randint(k, s, -3, 100, d),
        "geometric": lambda k, s, d: random.geometric(k, 0.2, s, d),
        "rademacher": random.rademacher,
        "poisson": lambda k, s, d: random.poisson(k, jnp.array([3.0, 30.0, 0.0]), s, d),
    }
    others = {
        "bernoulli": lambda k, s: random.bernoulli(k, 0.3, s),
        "bernoulli_high": lambda k, s: random.bernoulli(k, 0.3, s, mode="high"),
        "gumbel_high": lambda k, s: random.gumbel(k, s, mode="high"),
        "categorical": lambda k, s: random.categorical(k, jnp.array([0.1, 0.5, 2.0]), shape=s),
        "choice": lambda k, s: random.choice(k, 7, s),
        "choice_p": lambda k, s: random.choice(k, 3, s, p=jnp.array([0.1, 0.3, 0.6])),
        "choice_once": lambda k, s: random.choice(k, 50, s, replace=False),
        "choice_p_once": lambda k, s: random.choice(k, 9, s, False, jnp.arange(9.0)),
        "permutation": lambda k, s: random.permutation(k, 1000),
        "of_rows": lambda k, s: random.permutation(k, jnp.arange(12.0).reshape(3, 4), 1),
        "independent": lambda k, s: random.permutation(
            k, jnp.arange(12.0).reshape(3, 4), 1, independent=True
        ),
        "complex": lambda k, s: random.normal(k, s, "complex64"),
        "binomial": lambda k, s: random.binomial(k, jnp.array([9.0, 200.0, -1.0]), 0.3, s),
        "multinomial": lambda k, s: random.multinomial(k, 30, jnp.array([0.2, 0.8]), shape=(*s, 2)),
        "covariance": lambda k, s: random.multivariate_normal(
            k, jnp.arange(2.0), jnp.array([[2.0, 0.5], [0.5, 1]]), s
        ),
        "orthogonal": lambda k, s: random.orthogonal(k, 3, s),
    }
    corpus.add(
        "simple", lambda: samples(simple, random.key(3), (2, 3), "float32"), tolerance=SAMPLED
    )
    corpus.add(
        "of_gamma",
        lambda: samples(made_of_gamma, random.key(4), (3,), "float32"),
        tolerance=SAMPLED,
    )
    corpus.add("counts", lambda: samples(counts, random.key(5), (3,), "int32"))
    corpus.add("others", lambda: samples(others, random.key(6), (3,)), tolerance=SAMPLED)
    narrow = {name: simple[name] for name in ("uniform", "normal", "gumbel", "truncated_normal")}
    for dtype in ("float16", "bfloat16", "float64"):
        x64 = dtype == "float64"
        corpus.add(
            f"in_{dtype}",
            lambda d=dtype: samples(narrow, random.key(7), (5,), d),
            x64=x64,
            tolerance=SAMPLED,
        )
    corpus.add(
        "gamma_float16",
        lambda: random.gamma(random.key(8), jnp.array([0.2, 2.0]), dtype="float16"),
        tolerance=SAMPLED,
    )
    randint = {
        dtype: lambda k, d=dtype: random.randint(k, (4,), -5, 99, d)
        for dtype in ("int8", "uint8", "uint32", "int64")
    }
    corpus.add("integers", lambda: samples(randint, random.key(9)), x64=True)


def modes(corpus, jax, jnp, random):
    """Both of jax_threefry_partitionable, for what all samplers are made of."""
    for mode in (True, False):

        def of_widths(mode=mode):
            with jax.threefry_partitionable(mode):
                k = random.key(12)
                return {
                    (str(shape), dtype): random.bits(k, shape, dtype)
                    for shape in ((), (0,), (5,), (2, 3))
                    for dtype in ("uint8", "uint16", "uint32", "uint64")
                    if shape == (5,) or dtype == "uint32"
                }

        def made_of_bits(mode=mode):
            with jax.threefry_partitionable(mode):
                k = random.key(2**31 + 5)
                return (
                    random.key_data(random.split(k, (3, 2))),
                    random.key_data(random.split(k, 3)),
                    random.key_data(random.fold_in(k, 7)),
                    random.normal(k, (7,)),
                    random.gamma(k, jnp.array([0.5, 3.0])),
                    random.permutation(k, 10),
                    random.poisson(k, 20.0, (3,)),
                    bits(jax.vmap(lambda k: random.uniform(k, (3,)))(random.split(k, 2))),
                )

        corpus.add(f"bits_{'on' if mode else 'off'}", of_widths, x64=True)
        corpus.add(f"made_of_bits_{'on' if mode else 'off'}", made_of_bits, tolerance=SAMPLED)


def generators(corpus, jax, jnp, random):
    for impl in ("rbg", "unsafe_rbg"):

        @corpus.program(tolerance=SAMPLED)
        def of_impl(impl=impl):
            k = random.key(21, impl=impl)
            return (
                random.key_data(k),
                random.key_data(random.split(k, 3)),
                random.key_data(random.fold_in(k, 5)),
                *[random.bits(k, (3,), f"uint{width}") for width in (8, 16, 32)],
                random.normal(k, (4,)),
                random.gamma(k, 2.0, (3,)),
                jax.vmap(lambda k: random.bits(k, (2,)))(random.split(k, 3)),
                random.split(random.PRNGKey(21, impl=impl).reshape(2, 2)[0]),
            )

        corpus.programs[impl] = corpus.programs.pop("of_impl")

    @corpus.program()
    def seeds():
        given = (-1, 2**32 - 1, 2**40, -(2**63), True, np.int8(-1), np.uint32(7), jnp.int8(-1))
        return [random.PRNGKey(seed) for seed in given]

    @corpus.program(x64=True)
    def seeds_of_64_bits():
        return [random.PRNGKey(seed) for seed in (-1, 2**40 + 3, 2**63 - 1, np.uint64(2**63))]


def texts(corpus, jax, jnp, lax, random):
    key = random.key(0)
    keys = random.split(key, 4)
    functions = {
        "seed": (lambda s: random.key(s), (3,)),
        "prng_key": (lambda s: random.PRNGKey(s), (3,)),
        "split": (lambda k: random.split(k, (2, 3)), (key,)),
        "fold_in": (lambda k, i: random.fold_in(k, i), (key, 3)),
        "key_data": (random.key_data, (key,)),
        "wrap": (random.wrap_key_data, (np.zeros((3, 2), np.uint32),)),
        "uniform": (lambda k: random.uniform(k, (3,)), (key,)),
        "normal": (lambda k: random.normal(k, (2, 3)), (key,)),
        "normal_of_raw": (random.normal, (np.zeros(2, np.uint32),)),
        "half_normal": (lambda k: random.normal(k, (3,), "bfloat16"), (key,)),
        "randint": (lambda k: random.randint(k, (3,), 0, 10), (key,)),
        "randint_narrow": (lambda k: random.randint(k, (3,), 0, 10, "uint8"), (key,)),
        "bernoulli_high": (lambda k: random.bernoulli(k, 0.3, (3,), mode="high"), (key,)),
        "exponential": (lambda k: random.exponential(k, (3,)), (key,)),
        "gumbel": (lambda k: random.gumbel(k, (3,)), (key,)),
        "beta": (lambda k: random.beta(k, 0.3, 2.0, (3,)), (key,)),
        "dirichlet": (lambda k: random.dirichlet(k, np.ones(3, np.float32), (2,)), (key,)),
        "categorical": (lambda k, x: random.categorical(k, x), (key, floats(2, 3))),
        "permutation": (lambda k: random.permutation(k, 5), (key,)),
        "wald": (lambda k: random.wald(k, 2.0, (3,)), (key,)),
        "poisson": (lambda k: random.poisson(k, 3.0, (2,)), (key,)),
        "batch_of_uniform": (lambda k: jax.vmap(random.uniform)(k), (keys,)),
        "batch_of_fold_in": (jax.vmap(random.fold_in), (keys, np.arange(4))),
        "batch_of_gamma": (jax.vmap(random.gamma, (0, None)), (keys, 1.0)),
        "index": (lambda k: k[0], (keys,)),
        "stack": (lambda k: jnp.stack([k, k]), (keys,)),
        "zeros": (jnp.zeros_like, (keys,)),
        "iterate": (lambda k: list(k), (keys,)),
    }
    for name, (function, args) in functions.items():
        # There, functions of NumPy's are programs of their own.
        mode = "equations" if name in ("randint", "randint_narrow") else "jaxpr"
        corpus.add(f"text_of_{name}", function, *args, modes=(mode,))
    for name, function in {
        "orthogonal": lambda k: random.orthogonal(k, 3),
        "covariance": lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2)),
        "gamma_derived": jax.grad(lambda a: random.gamma(key, a)),
        "binomial": lambda k: random.binomial(k, 3.0, 0.4, (2,)),
    }.items():
        arg = 2.0 if name == "gamma_derived" else key
        corpus.add(f"equations_of_{name}", function, arg, modes=("equations",))


def keys(corpus, jax, jnp, lax, random):
    @corpus.program(modes=("value", "jit"))
    def moved():
        keys = random.split(random.key(1), 4)
        out = [
            keys[2],
            keys[jnp.array([3, 9])],
            keys.at[1].set(keys[0]),
            jnp.where(jnp.arange(4) > 1, keys, keys[0]),
            lax.scan(lambda c, k: (k, c), keys[0], keys)[1],
            lax.cond(keys.shape == (4,), lambda: keys[0], lambda: keys[1]),
            jnp.full((2,), 3, keys.dtype),
            keys.at[9].get(mode="fill"),
        ]
        return [random.key_data(x) for x in out], keys == keys[1]

    @corpus.program(modes=("repr",))
    def printed():
        return random.split(random.key(1, impl="rbg"), 2), random.key(0), random.key_dtype()


def odd_arguments(corpus, jax, jnp, random):
    """What the reference takes in a way of its own."""
    key = random.key(7)
    spread = np.float32([1, 2])
    for name, draw in {
        "geometric_of_integers": lambda k: random.geometric(k, 1),
        "rademacher_of_booleans": lambda k: random.rademacher(k, (3,), bool),
        "lognormal_of_complex": lambda k: random.lognormal(k, 0.5, (2,), np.complex64),
        "double_sided_of_arrays": lambda k: random.double_sided_maxwell(k, spread, 2.0),
    }.items():
        corpus.add(name, draw, key, tolerance=SAMPLED)
        corpus.add(f"{name}_text", draw, key, modes=("equations",))
    corpus.add("categorical_text", lambda k: random.categorical(k, spread), key, modes=("jaxpr",))


def errors(corpus, jax, jnp, random):
    key = random.key(0)
    keys = random.split(key, 2)
    half, single = np.float16, np.float32(2)
    for name, function in {
        "beta_narrow": lambda: random.beta(key, single, 2.0, dtype=half),
        "f_narrow": lambda: random.f(key, single, 2.0, dtype=half),
        "lognormal_narrow": lambda: random.lognormal(key, dtype=half),
        "pareto_complex": lambda: random.pareto(key, np.complex64(1)),
        "rayleigh_complex": lambda: random.rayleigh(key, np.complex64(1)),
        "t_complex": lambda: random.t(key, np.complex64(1)),
        "triangular_narrow": lambda: random.triangular(key, 0.0, single, 4.0, dtype=half),
        "wald_narrow": lambda: random.wald(key, single, dtype=half),
        "chisquare_narrow": lambda: random.chisquare(key, single, dtype=half),
        "uniform_shape_none": lambda: random.uniform(key, None),
        "randint_shape_none": lambda: random.randint(key, None, 0, 3),
        "choice_shape_number": lambda: random.choice(key, 5, 3),
        "gamma_shape_negative": lambda: random.gamma(key, 1.0, (-2,)),
        "seed_float": lambda: random.key(1.5),
        "seed_text": lambda: random.key("a"),
        "seed_array": lambda: random.key(jnp.arange(3)),
        "seed_key": lambda: random.key(key),
        "seed_too_large": lambda: random.key(2**64),
        "impl_unknown": lambda: random.key(0, impl="foo"),
        "impl_number": lambda: random.key(0, impl=3),
        "impl_and_dtype": lambda: random.key(0, impl="rbg", dtype=key.dtype),
        "data_shape": lambda: random.wrap_key_data(jnp.zeros(3, jnp.uint32)),
        "data_dtype": lambda: random.wrap_key_data(jnp.zeros(2, jnp.int32)),
        "data_list": lambda: random.wrap_key_data([1, 2]),
        "split_several": lambda: random.split(keys),
        "split_number": lambda: random.split(3),
        "split_by_float": lambda: random.split(key, 2.5),
        "fold_negative": lambda: random.fold_in(key, -1),
        "fold_array": lambda: random.fold_in(key, jnp.arange(2)),
        "bits_of_ints": lambda: random.bits(key, (2,), jnp.int32),
        "uniform_of_ints": lambda: random.uniform(key, (2,), jnp.int32),
        "uniform_bounds": lambda: random.uniform(key, (2,), minval=jnp.zeros(3)),
        "randint_floats": lambda: random.randint(key, (2,), 0, 10, jnp.float32),
        "randint_shape": lambda: random.randint(key, (2,), jnp.zeros(3, int), 9),
        "randint_large": lambda: random.randint(key, (2,), 0, 2**33),
        "bernoulli_int": lambda: random.bernoulli(key, 1),
        "bernoulli_mode": lambda: random.bernoulli(key, 0.5, mode="x"),
        "gamma_shape": lambda: random.gamma(key, jnp.ones(2), (3,)),
        "poisson_rbg": lambda: random.poisson(random.key(0, impl="rbg"), 5.0),
        "choice_none": lambda: random.choice(key, 0),
        "choice_many": lambda: random.choice(key, 5, (6,), replace=False),
        "choice_weights": lambda: random.choice(key, jnp.arange(5), p=jnp.ones(3)),
        "permute_float": lambda: random.permutation(key, 1.5),
        "dirichlet_scalar": lambda: random.dirichlet(key, 1.0),
        "covariance_shape": lambda: random.multivariate_normal(key, jnp.zeros(2), jnp.eye(3)),
        "covariance_method": lambda: random.multivariate_normal(
            key, jnp.zeros(2), jnp.eye(2), method="a"
        ),
        "add": lambda: key + 1,
        "compare_raw": lambda: key == random.PRNGKey(0),
        "as_numpy": lambda: np.asarray(key),
        "concatenate": lambda: jnp.concatenate([keys, jnp.arange(2)]),
        "sum": lambda: keys.sum(),
        "sine": lambda: jnp.sin(keys),
        "gradient": lambda: jax.grad(lambda k: 1.0)(key),
    }.items():
        corpus.add(f"error_of_{name}", function)


def reuse(corpus, jax, jnp, lax, random):
    def body(c, _):
        c, k = random.split(c)
        return c, random.normal(k)

    functions = {
        "twice": lambda k: random.normal(k) + random.uniform(k),
        "cloned": lambda k: random.normal(k) + random.normal(random.clone(k)),
        "split_and_used": lambda k: (random.split(k), random.normal(k)),
        "folded": lambda k: (random.fold_in(k, 1), random.fold_in(k, 1), random.normal(k))[2],
        "row_twice": lambda k: [random.normal(x[0]) for x in [random.split(k)] * 2],
        "two_rows": lambda k: [random.normal(x) for x in random.split(k)],
        "carried": lambda k: lax.scan(lambda c, x: (c, random.normal(c)), k, length=3)[1],
        "carried_split": lambda k: lax.scan(body, k, length=3)[1],
        "branch": lambda k: lax.cond(True, random.normal, lambda k: 0.0, k),
        "branch_and_more": lambda k: (
            lax.cond(True, random.normal, lambda k: 0.0, k) + random.normal(k)
        ),
        "batch": lambda k: jax.vmap(random.normal)(random.split(k, 3)),
        "gradient": lambda k: jax.grad(lambda x: x * random.normal(k))(2.0),
        "poisson": lambda k: random.poisson(k, 3.0),
    }
    for name, function in functions.items():

        def checked(function=function, staged=False):
            with jax.debug_key_reuse(True):
                return (jax.jit(function) if staged else function)(random.key(0))

        corpus.add(f"reuse_{name}", checked)
        if name in ("twice", "row_twice", "two_rows", "carried", "branch_and_more"):
            corpus.add(f"reuse_{name}_in_jit", checked, keywords={"staged": True})
