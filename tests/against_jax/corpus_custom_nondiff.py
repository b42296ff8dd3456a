"""Custom derivatives of functions with nondifferentiable arguments, given in any order."""

import itertools
from functools import partial

from tests.against_jax.describe import Corpus

# Ways to say which of the arguments (a, x, b, c) of a function have no derivative, all but x.
WHICH = {
    **{
        f"positions_{'_'.join(map(str, order))}": {"nondiff_argnums": order}
        for order in itertools.permutations((0, 2, 3))
    },
    "names": {"nondiff_argnames": ("c", "a", "b")},
    "positions_and_names": {"nondiff_argnums": (3, 0), "nondiff_argnames": ("b",)},
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    for name, options in WHICH.items():
        corpus.add(f"jvp_{name}", partial(forward, jax, options), 3.0)
        corpus.add(f"vjp_{name}", partial(backward, jax, options), 3.0)
    return corpus


def weighted(a, x, b, c):
    """Return a number by which the arguments that a rule took can be told apart."""
    return 2 * a + 3 * x + 5 * b + 7 * c


def forward(jax, options, x):
    f = jax.custom_jvp(weighted, **options)

    @f.defjvp
    def _(a, b, c, primals, tangents):
        return weighted(a, *primals, b, c), tangents[0] * (a + 10 * b + 100 * c)

    return jax.value_and_grad(lambda x: f(1.0, x, 2.0, 3.0))(x)


def backward(jax, options, x):
    f = jax.custom_vjp(weighted, **options)
    f.defvjp(
        lambda a, x, b, c: (weighted(a, x, b, c), x),
        lambda a, b, c, x, cotangent: (cotangent * (a + 10 * b + 100 * c) * x,),
    )
    return jax.value_and_grad(lambda x: f(1.0, x, 2.0, 3.0))(x)
