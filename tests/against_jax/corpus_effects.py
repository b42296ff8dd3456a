"""How often a transformed program calls back: effects are neither lost nor repeated."""

import importlib

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    experimental = (
        jax
        if isinstance(jax, Anything)
        else importlib.import_module(f"{jax.__name__}.experimental")
    )
    effects = {
        "debug": jax.debug.callback,
        "ordered debug": lambda note: jax.debug.callback(note, ordered=True),
        "io": lambda note: experimental.io_callback(note, None),
        "ordered io": lambda note: experimental.io_callback(note, None, ordered=True),
    }
    for kind, effect in effects.items():
        for name, call in transformed(jax, jnp, lax).items():
            corpus.add(f"{kind} under {name}", counted(jax, effect, call), 2.0)
    return corpus


def counted(jax, effect, call):
    """Return the program that gives the result of a call and the number of effects."""

    def program(x):
        calls = []

        def linear(x):
            effect(lambda: calls.append(1))
            return 3 * x

        result = call(linear, x)
        jax.effects_barrier()
        return result, len(calls)

    return program


def transformed(jax, jnp, lax):
    """Return calls of a transformed linear function, each a function of the function and x.

    Derivatives of checkpointed functions and of scans are not among them: jax repeats effects of
    the first when it computes them again, and has an effect without operands once for all steps
    of the second. docs/differences.md says so.
    """
    calls = {
        "no transformation": lambda f, x: f(x),
        "vmap": lambda f, x: jax.vmap(f)(x * jnp.ones(2)),
        "jvp": lambda f, x: jax.jvp(f, (x,), (x,)),
        "grad": lambda f, x: jax.grad(f)(x),
        "linearize": lambda f, x: jax.linearize(f, x)[1](x),
        "linear_transpose": lambda f, x: jax.linear_transpose(f, x)(x),
        "scan": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0],
        "while_loop": lambda f, x: lax.while_loop(lambda c: c < 50, f, x),
        "cond": lambda f, x: lax.cond(x > 1, f, lambda x: x, x),
        "a branch not taken": lambda f, x: lax.cond(x > 1, lambda x: x, f, x),
        "grad of cond": lambda f, x: jax.grad(lambda x: lax.cond(x > 1, f, lambda x: x, x))(x),
        "vmap of cond": lambda f, x: jax.vmap(lambda p: lax.cond(p, f, lambda x: x, x))(
            jnp.array([True, False, True])
        ),
        "custom_jvp": lambda f, x: custom_jvp(jax, f)(x),
        "grad of custom_vjp": lambda f, x: jax.grad(custom_vjp(jax, f))(x),
        "a result that nothing reads": lambda f, x: (f(x), x)[1],
    }
    jitted = {
        f"jit of {name}": lambda f, x, call=call: jax.jit(lambda x: call(f, x))(x)
        for name, call in calls.items()
    }
    return calls | jitted


def custom_jvp(jax, f):
    g = jax.custom_jvp(f)
    g.defjvps(lambda tangent, result, x: 3 * tangent)
    return g


def custom_vjp(jax, f):
    g = jax.custom_vjp(f)
    g.defvjp(lambda x: (f(x), None), lambda _, cotangent: (3 * cotangent,))
    return g
