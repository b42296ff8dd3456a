"""Options that change inside of a traced function, before, between and around its parts."""

import warnings

import numpy as np

from tests.against_jax.describe import Corpus

KNOWN = {
    r"^((old_)?prng_impl|legacy_key)_": "jax reuses what it traced under another generator",
    r"^dtype_promotion_restored_linearize$": "jax hands back the NumPy tangent as it was given",
    r"^debug_infs_restored_linearize$": "the derivative of the quotient is NaN in each step,"
    " infinite in one of jax's",
    r"^debug_infs_.*_custom_": "jax hands NumPy scalars to rules, which compute with NumPy",
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    x = np.float32(0.5)
    for option, (context, outer, inner, part) in options(jax, jnp, lax).items():
        for place, placed in placements(context, outer, inner).items():
            for way, how in ways(jax, jnp, lax).items():

                def run(x, placed=placed, how=how, part=part):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        return placed(how, part)(x)

                corpus.add(f"{option}_{place}_{way}", run, x)
    return corpus


def options(jax, jnp, lax):
    """Option -> its context manager, its value outside and inside, and a function it matters to."""
    random = jax.random

    def promoted(x):
        return x + jnp.arange(2, dtype="int32").sum()

    def ranked(x):
        return (jnp.ones((2, 3)) * (x + jnp.ones(3))).sum()

    def multiplied(x):
        a = x * jnp.ones((2, 2), "float32")
        return (a @ a).sum()

    def wide(x):
        return (jnp.sin(x) * jnp.arange(3).sum() + jnp.ones(2).sum()).astype("float32")

    def keyed(x):
        return x * random.uniform(random.key(3), (), "float32")

    def old_key(x):
        return x * random.PRNGKey(3).sum().astype("float32")

    def made_nan(x):
        return jnp.log(x - 1) * 0 + x

    def divided(x):
        return x / (x - x)

    def smooth(x):
        return jax.nn.softmax(jnp.stack([x, x * 2]))[0]

    def indexed(x):
        return jnp.stack([x, x + 1])[5]

    def checked(x):
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)

    return {
        "x64": (jax.enable_x64, False, True, wide),
        "x64_off": (jax.enable_x64, True, False, wide),
        "dtype_promotion": (jax.numpy_dtype_promotion, "standard", "strict", promoted),
        "rank_promotion": (jax.numpy_rank_promotion, "allow", "raise", ranked),
        "matmul_precision": (jax.default_matmul_precision, "default", "highest", multiplied),
        "threefry": (jax.threefry_partitionable, True, False, keyed),
        "prng_impl": (jax.default_prng_impl, "threefry2x32", "rbg", keyed),
        "old_prng_impl": (jax.default_prng_impl, "threefry2x32", "rbg", old_key),
        "legacy_key": (jax.legacy_prng_key, "allow", "error", old_key),
        "custom_prng": (jax.enable_custom_prng, False, True, keyed),
        "debug_nans": (jax.debug_nans, False, True, made_nan),
        "debug_infs": (jax.debug_infs, False, True, divided),
        "softmax": (jax.softmax_custom_jvp, True, False, smooth),
        "leaks": (jax.checking_leaks_or_not, False, True, checked)
        if hasattr(jax, "checking_leaks_or_not")
        else (jax.check_tracer_leaks, False, True, checked),
        "static_indices": (_setting(jax, "jax_check_static_indices"), False, True, indexed),
        "disable_jit": (jax.disable_jit, False, True, checked),
        "enable_checks": (_setting(jax, "jax_enable_checks"), False, True, checked),
        "log_compiles": (jax.log_compiles, False, False, checked),
        "f16_reductions": (jax.allow_f16_reductions, True, False, multiplied),
        "seed_offset": (_setting(jax, "jax_random_seed_offset"), 0, 3, keyed),
    }


def _setting(jax, name):
    """Return a context manager of an option that has none of its own."""
    import contextlib

    @contextlib.contextmanager
    def context(value):
        before = getattr(jax.config, name)
        jax.config.update(name, value)
        try:
            yield
        finally:
            jax.config.update(name, before)

    return context


def placements(context, outer, inner):
    """Where the option is set: each takes a way to run a function, and the function."""

    def within(value, function):
        def run(x):
            with context(value):
                return function(x)

        return run

    def inside(how, part):
        return within(outer, how(within(inner, part)))

    def around(how, part):
        return within(inner, how(part))

    def half(how, part):
        return within(outer, how(lambda x: part(x) + within(inner, part)(x)))

    def twice(how, part):
        transformed = how(part)

        def run(x):
            return within(outer, transformed)(x), within(inner, transformed)(x)

        return run

    def twice_in_reverse(how, part):
        transformed = how(part)

        def run(x):
            first = within(inner, transformed)(x)
            return first, within(outer, transformed)(x), within(inner, transformed)(x)

        return run

    def restored(how, part):
        return within(inner, how(within(outer, part)))

    return {
        "inside": inside,
        "around": around,
        "half": half,
        "twice": twice,
        "twice_in_reverse": twice_in_reverse,
        "restored": restored,
    }


def ways(jax, jnp, lax):
    """The ways in which a function of a number, with a number as result, is run."""

    def custom_jvp(f):
        g = jax.custom_jvp(f)
        g.defjvp(lambda p, t: (g(*p), t[0] * 2))
        return jax.value_and_grad(g)

    def custom_vjp(f):
        g = jax.custom_vjp(f)
        g.defvjp(lambda x: (f(x), x), lambda residual, ct: (f(residual) * ct,))
        return jax.value_and_grad(g)

    def evaluated(f):
        def run(x):
            program = jax.make_jaxpr(f)(x)
            return jax.core.eval_jaxpr(program.jaxpr, program.consts, x)[0]

        return run

    return {
        "call": lambda f: f,
        "jit": jax.jit,
        "grad": jax.grad,
        "grad_of_jit": lambda f: jax.grad(jax.jit(f)),
        "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x + 1])),
        "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
        "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1],
        "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
        "while": lambda f: lambda x: lax.fori_loop(0, 2, lambda _, c: f(c).astype(c.dtype), x),
        "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
        "custom_jvp": custom_jvp,
        "custom_vjp": custom_vjp,
        "evaluated": evaluated,
        "shape": lambda f: lambda x: jax.eval_shape(f, x),
    }
