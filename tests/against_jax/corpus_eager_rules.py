"""Functions that run operations outside of programs: `impl` of primitives and of subclasses."""

import importlib
from unittest import mock

from tests.against_jax.describe import Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    twice = lambda x: lax.sin(lax.sin(x))

    def runs_of_sin(function):
        """Return how often a function runs `sin` outside of programs, and its result."""
        before, calls = lax.sin_p.impl, []

        def counted(x, **params):
            calls.append(x)
            return before(x, **params)

        lax.sin_p.def_impl(counted)
        try:
            result = function()
        finally:
            lax.sin_p.def_impl(before)
        return len(calls), result

    for name, function in {
        "once": lambda: lax.sin(1.0),
        "in_numpy": lambda: jnp.sin(1.0),
        "in_jit": lambda: jax.jit(twice)(1.0),
        "in_vmap": lambda: jax.vmap(twice)(jnp.ones(3)),
        "in_grad": lambda: jax.grad(twice)(1.0),
        "in_checkpoint": lambda: jax.grad(jax.checkpoint(twice))(1.0),
        "in_part": lambda: jax.grad(lambda x: lax.sin(jax.checkpoint(twice)(x)))(1.0),
        "in_linearize": lambda: jax.linearize(jax.checkpoint(twice), 1.0)[1](1.0),
        "in_scan": lambda: lax.scan(lambda c, _: (lax.sin(c), None), 1.0, None, length=3)[0],
    }.items():
        corpus.add(f"runs_{name}", lambda function=function: runs_of_sin(function))

    @corpus.program()
    def an_impl_is_put_back():
        before = lax.sin_p.impl
        with mock.patch.object(lax.sin_p, "impl", lambda x, **_: x + 1):
            during = lax.sin(1.0)
        after = lax.sin_p.impl == before, lax.sin(1.0)
        lax.sin_p.impl = new = lambda x, **_: x + 2
        try:
            return during, after, lax.sin_p.impl is new, lax.sin(1.0)
        finally:
            lax.sin_p.impl = before

    @corpus.program()
    def impls_of_each_other():
        add, neg = lax.add_p.impl, lax.neg_p.impl
        lax.add_p.def_impl(lambda x, y: add(neg(x), y))
        try:
            return lax.add(jnp.ones(2), jnp.ones(2)), lax.neg(jnp.ones(2))
        finally:
            lax.add_p.def_impl(add)

    @corpus.program()
    def methods_of_a_subclass():
        Primitive = importlib.import_module(f"{jax.__name__}.extend.core").Primitive

        class Twice(Primitive):
            def impl(self, x, *, plus):
                return x * 2 + plus

            def abstract_eval(self, x, *, plus):
                return x, set()

        class Both(Primitive):
            multiple_results = True

            def impl(self, x):
                return [x, x + 1]

            def abstract_eval(self, x):
                return [x, x], set()

        x, twice, both = jnp.ones(2), Twice("twice"), Both("both")
        results = twice.bind(x, plus=1), both.bind(x)
        types = jax.eval_shape(lambda x: (twice.bind(x, plus=1), both.bind(x)), x)
        text = str(jax.make_jaxpr(lambda x: twice.bind(x, plus=1))(x))
        twice.def_impl(lambda x, *, plus: x - plus)
        return results, types, text, twice.bind(x, plus=1)

    return corpus
