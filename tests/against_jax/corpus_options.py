"""Options that are set in a block inside of a traced function, and what becomes of them there."""

import warnings

import numpy as np

from tests.against_jax.describe import Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    generators(corpus, jax, jnp, lax)
    seeds(corpus, jax, jnp)
    wide_blocks(corpus, jax, jnp, lax)
    scalars_in_wide_blocks(corpus, jax, jnp)
    other_options(corpus, jax, jnp)
    programs_at_compile_time(corpus, jax, jnp, lax)
    return corpus


def quietly(function, *args):
    """Return the result of a call, in which the reference may warn of its own conversions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def interpretations(jax, jnp, lax):
    """The ways in which a function of a scalar is run, by name."""

    def evaluated(function):
        def run(x):
            program = jax.make_jaxpr(function)(x)
            return jax.core.eval_jaxpr(program.jaxpr, program.consts, x)[0]

        return run

    return {
        "jit": jax.jit,
        "vmap_of_jit": lambda f: lambda x: jax.vmap(jax.jit(f))(jnp.stack([x, x + 1])),
        "evaluated": evaluated,
        "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1],
        "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
    }


def derivatives(jax, jnp, lax):
    """The ways in which a function of a scalar, with a scalar result, is differentiated."""
    return {
        "grad_of_jit": lambda f: jax.grad(jax.jit(f)),
        "jit_of_grad": lambda f: jax.jit(jax.grad(f)),
        "grad_of_checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
        "second": lambda f: jax.jit(jax.grad(jax.grad(f))),
    }


def generators(corpus, jax, jnp, lax):
    """jax_threefry_partitionable, which a program keeps until it is lowered."""
    random = jax.random

    def random_numbers(seed):
        """Return random numbers made in each of the ways that depend on the option."""
        key = random.key(seed)
        return (
            random.bits(key, (3,)),
            random.key_data(random.split(key)),
            random.gamma(key, 2.0, (2,)).round(2),
            random.key_data(random.fold_in(key, 3)),
        )

    def in_block(mode, function):
        def with_option(seed):
            with jax.threefry_partitionable(mode):
                return function(seed)

        return with_option

    numbers = lambda seed: random.bits(random.key(seed), (3,))
    for name, how in interpretations(jax, jnp, lax).items():
        corpus.add(
            f"generators_{name}", lambda how=how: how(in_block(False, numbers))(jnp.int32(1))
        )

    def switched_on(seed):
        with jax.threefry_partitionable(False):
            return jax.jit(in_block(True, numbers))(seed)

    corpus.add("generators_switched_on", switched_on, 1)
    corpus.add("generators_all", in_block(False, random_numbers), 1, modes=("jit",))

    def both(seed):
        """Return numbers of one jitted function, called with the option on and off."""
        inner = jax.jit(lambda s: random.bits(random.key(s), (3,)))
        outside = inner(seed)
        with jax.threefry_partitionable(False):
            return outside, inner(seed), inner(seed + 1)

    corpus.add("generators_nested", both, np.int32(1), modes=("value", "jit"))

    def recomputed(x):
        with jax.threefry_partitionable(False):
            f = jax.checkpoint(lambda x: random.uniform(random.key(3), ()) * jnp.sin(x))
            return f(x)

    for name, how in derivatives(jax, jnp, lax).items():
        corpus.add(f"generators_recomputed_{name}", lambda how=how: how(recomputed)(0.5))

    def other_generators(name):
        def function(seed):
            with jax.threefry_partitionable(False):
                return random.key_data(random.split(random.key(seed, impl=name), 3))

        return function

    corpus.add("generators_rbg", other_generators("rbg"), 1, modes=("value", "jit"))

    def compiled(seed):
        return jax.jit(in_block(False, numbers)).lower(seed).compile()(seed)

    corpus.add("generators_lowered", compiled, 1)


def seeds(corpus, jax, jnp):
    """jax_random_seed_offset, which is added to seeds of their dtype."""
    random = jax.random

    def offset(number, function):
        def run():
            jax.config.update("jax_random_seed_offset", number)
            try:
                return function()
            finally:
                jax.config.update("jax_random_seed_offset", 0)

        return run

    data = lambda *args: random.key_data(random.key(*args))
    for name, seed in {
        "python": 17,
        "negative": -1,
        "wraps": 2**31 - 2,
        "beyond_32_bits": 2**40,
        "int8": np.int8(127),
        "uint8": np.uint8(255),
        "bool": True,
    }.items():
        corpus.add(f"offset_{name}", offset(3, lambda seed=seed: data(seed)))
    corpus.add("offset_array", offset(3, lambda: data(jnp.uint32(17))))
    corpus.add("offset_jit", offset(3, lambda: random.key_data(jax.jit(random.key)(17))))
    corpus.add("offset_old_keys", offset(3, lambda: random.PRNGKey(17)))
    corpus.add(
        "offset_vmap", offset(3, lambda: random.key_data(jax.vmap(random.key)(jnp.arange(2))))
    )
    corpus.add("offset_below_zero", offset(-1, lambda: (data(2), data(jnp.uint32(2)))))
    corpus.add("offset_wide", offset(2**33, lambda: data(2)), x64=True)
    corpus.add("offset_too_large", offset(2**33, lambda: data(2)))
    corpus.add("offset_text", lambda: offset(3, lambda: str(jax.make_jaxpr(random.key)(17)))())


def wide_blocks(corpus, jax, jnp, lax):
    """enable_x64 around a part of a function: its types stay where it is run or transformed."""

    def times(constant):
        def function(x):
            with jax.enable_x64(True):
                return (jnp.sin(x) * constant()).sum()

        return function

    def back_in_float32(x):
        with jax.enable_x64(True):
            y = jnp.exp(jnp.asarray(x, "float64")) + 1e-12
            return jnp.float32(y * y - 1)

    def looped(x):
        with jax.enable_x64(True):
            wide = jnp.asarray(x, "float64")
            return lax.scan(lambda c, y: (c * y + 1.0, c), wide, jnp.arange(1.0, 4.0))[0]

    def contracted(x):
        with jax.enable_x64(True):
            return (x * jnp.ones(3, "float64")) @ jnp.arange(3)

    def nested(x):
        with jax.enable_x64(True):
            return jax.jit(lambda x: jnp.sin(x) * jnp.arange(3).sum())(x)

    long = np.arange(1000.0)
    functions = {
        "array": times(lambda: np.arange(3.0)),
        "long_array": times(lambda: long),
        "scalar": times(lambda: np.float64(2)),
        "python": times(lambda: 2.0),
        "back": back_in_float32,
        "scan": looped,
        "dot": contracted,
        "nested": nested,
    }
    ways = {**interpretations(jax, jnp, lax), **derivatives(jax, jnp, lax)}
    for name, function in functions.items():
        for way, how in ways.items():
            # The reference goes on in float32 there, though the function says float64.
            if (name, way) == ("dot", "vmap_of_jit"):
                continue
            corpus.add(
                f"wide_{name}_{way}",
                lambda f=function, how=how: quietly(how(f), jnp.float32(0.5)),
            )

    def random_numbers(seed):
        with jax.enable_x64(True):
            key = jax.random.key(seed)
            return jax.random.key_data(key), jax.random.normal(key, (2,), "float32")

    corpus.add("wide_random", random_numbers, 1, modes=("value", "jit"))


def scalars_in_wide_blocks(corpus, jax, jnp):
    """Scalars of Python that are differentiated outside of a block and used inside."""

    def sine(x):
        with jax.enable_x64(True):
            return jnp.sin(x)

    def activated(x):
        with jax.enable_x64(True):
            return jax.nn.relu(x) * jax.nn.silu(x)

    def jitted(x):
        with jax.enable_x64(True):
            return jax.jit(jnp.sin)(x)

    def narrow(x):
        with jax.enable_x64(False):
            return jnp.sin(x) * 2.0

    for function in (sine, activated, jitted):
        for name, how in {
            "grad": jax.grad,
            "jacrev": jax.jacrev,
            "value_and_grad": jax.value_and_grad,
            "jit_of_grad": lambda f: jax.jit(jax.grad(f)),
            "grad_of_jit": lambda f: jax.grad(jax.jit(f)),
            "jit": jax.jit,
        }.items():
            corpus.add(
                f"python_{name}_{function.__name__}", lambda f=function, how=how: how(f)(0.5)
            )
    for name, how in {"jit": jax.jit, "grad_of_jit": lambda f: jax.grad(jax.jit(f))}.items():
        corpus.add(f"python_{name}_narrow", lambda how=how: quietly(how(narrow), 0.5), x64=True)

    def mixed(operation):
        def function(x):
            with jax.enable_x64(True):
                return operation(x)

        return function

    for name, operation in {
        "plus_integer": lambda x: x + 1,
        "plus_float": lambda x: x + 1.0,
        "divided": lambda x: x / 2,
        "maximum": lambda x: jnp.maximum(x, 0),
        "with_array": lambda x: x + jnp.arange(2),
        "with_float32": lambda x: x + jnp.float32(1),
        "stacked": lambda x: jnp.stack([x, 1]),
        "complex": lambda x: x + 1j,
    }.items():
        for kind, x in {"float": 0.5, "int": 2}.items():
            corpus.add(f"weak_{name}_{kind}", mixed(operation), x, modes=("jit",))


def other_options(corpus, jax, jnp):
    """Options that are read while a function is traced."""

    def block(option, *value):
        def around(function):
            def run(*args):
                with getattr(jax, option)(*value):
                    return function(*args)

            return run

        return around

    threes = np.ones(3, np.float32)
    square = np.ones((2, 2), np.float32)
    corpus.add(
        "precision",
        block("default_matmul_precision", "float32")(lambda a, b: a @ b),
        square,
        square,
        modes=("jaxpr",),
    )
    for name, option, value, function in (
        ("dtypes", "numpy_dtype_promotion", "strict", lambda x: x + jnp.arange(3)),
        ("ranks", "numpy_rank_promotion", "raise", lambda x: x + jnp.ones((2, 3))),
    ):
        corpus.add(f"strict_{name}", block(option, value)(function), threes, modes=("value", "jit"))
        inner = jax.jit(function)

        def twice(x, inner=inner, option=option, value=value):
            """Return what a jitted function gives, which was traced without the option before."""
            return inner(x), block(option, value)(inner)(x)

        corpus.add(f"strict_{name}_nested", twice, threes, modes=("value", "jit"))
    corpus.add(
        "generator_of_keys",
        block("default_prng_impl", "rbg")(lambda seed: jax.random.PRNGKey(seed)),
        1,
        modes=("value", "jit"),
    )
    corpus.add(
        "softmax",
        block("softmax_custom_jvp", True)(jax.nn.softmax),
        threes,
        modes=("equations",),
    )


def programs_at_compile_time(corpus, jax, jnp, lax):
    """Functions that are traced in a block in which their constants are computed."""
    wave = jax.jit(lambda x: x * jnp.sin(1.0) + jnp.arange(3.0) * 2)

    def sized(x):
        """A function that cannot be traced outside of the block."""
        return x + jnp.ones(int(jnp.arange(4)[3]))

    def rows(c, _):
        return c + jnp.cos(1.0), jnp.arange(int(jnp.ones(2).sum()))

    for name, function in {
        "jit": wave,
        "jit_of_a_size": jax.jit(sized),
        "jit_twice": lambda x: (wave(x), wave(x)),
        "jit_of_no_arguments": lambda x: x + jax.jit(lambda: jnp.arange(3) * 2)(),
        "cond": lambda x: lax.cond(x > 0, sized, wave, x),
        "scan": lambda x: lax.scan(rows, x, None, length=2),
        "scan_of_nothing": lambda x: x + lax.scan(lambda *_: ((), sized(1.0)), (), None, 2)[1],
        "while": lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + jnp.exp(1.0), x),
        "vmap": lambda x: jax.vmap(sized)(jnp.stack([x, x])),
        "grad": jax.grad(lambda x: jnp.sum(wave(x))),
        "checkpoint": jax.checkpoint(sized),
        "make_jaxpr": lambda x: len(jax.make_jaxpr(sized)(x).eqns),
    }.items():

        def inside(x, function=function):
            with jax.ensure_compile_time_eval():
                return function(x)

        corpus.add(f"{name}_at_compile_time", inside, 1.0, modes=("value", "jit", "equations"))
        corpus.add(f"{name}_outside_of_the_block", function, 1.0, modes=("value", "jit"))
