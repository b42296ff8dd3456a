"""custom_vmap with other transformations, and decorators with rules on top of each other."""

import itertools

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    shapes_of_results(corpus, jax, jnp)
    derivatives(corpus, jax, jnp)
    reverse_mode(corpus, jax, lax)
    stacked(corpus, jax, jnp)
    return corpus


def with_rule(jax, fun, rule):
    f = jax.custom_batching.custom_vmap(fun)
    f.def_vmap(rule)
    return f


def shapes_of_results(corpus, jax, jnp):
    @corpus.program(floats(3), floats(3))
    def rule_whose_result_broadcasts_with_others(x, z):
        rule = lambda size, batched, xs: (z + jnp.cos(xs), batched[0])
        return jax.vmap(with_rule(jax, lambda x: z + jnp.sin(x), rule))(x)

    @corpus.program(floats(3))
    def rule_whose_unbatched_result_is_larger(x):
        rule = lambda size, batched, xs: (jnp.ones(5), False)
        return jax.vmap(with_rule(jax, jnp.sin, rule))(x)

    @corpus.program(floats(3))
    def rule_whose_examples_are_larger(x):
        rule = lambda size, batched, xs: (jnp.stack([xs, xs], 1), True)
        return jax.vmap(with_rule(jax, jnp.sin, rule))(x)

    @corpus.program(floats(3))
    def custom_vmap_without_a_rule(x):
        return jax.custom_batching.custom_vmap(jnp.sin)(x)

    corpus.add(
        "custom_vmap_without_a_rule_mapped",
        lambda x: jax.vmap(jax.custom_batching.custom_vmap(jnp.sin))(x),
        floats(3),
    )


def derivatives(corpus, jax, jnp):
    def product(seen):
        def rule(size, batched, x, y):
            seen.append(np.array(batched))
            return jnp.sin(x) * y * 10, any(batched)

        return with_rule(jax, lambda x, y: jnp.sin(x) * y, rule)

    jvp = jax.jvp
    for name, call in {
        "tangents": lambda f, x: jax.vmap(lambda t: jvp(f, (x[0], x[1]), (t, x[2])))(x),
        "tangents_of_one": lambda f, x: jax.vmap(
            lambda t: jvp(lambda y: f(y, x[0]), (x[1],), (t,))
        )(x),
        "values": lambda f, x: jax.vmap(lambda p: jvp(f, (p, x[0]), (x[1], x[2])))(x),
        "values_and_tangents": lambda f, x: jax.vmap(lambda p: jvp(f, (p, x[0]), (p, x[1])))(x),
        "jacfwd": lambda f, x: jax.jacfwd(lambda y: f(y, x))(x),
        "jacfwd_of_both": lambda f, x: jax.jacfwd(lambda y: f(y, y))(x),
        "jvp_of_vmap": lambda f, x: jvp(lambda y: jax.vmap(f, (0, None))(y, x[0]), (x,), (x,)),
        "grad_of_vmap": lambda f, x: jax.grad(lambda y: jax.vmap(f, (0, None))(y, x[0]).sum())(x),
    }.items():

        def what_the_rule_sees(x, call=call):
            seen = []
            return call(product(seen), x), seen

        corpus.add(f"rule_under_mapped_{name}", what_the_rule_sees, floats(3))

    @corpus.program(floats(3), np.float32(2))
    def tangents_of_linear_functions_stay_unmapped(x, y):
        f = with_rule(jax, lambda x: x * 2, lambda size, batched, x: (x * 2, batched[0]))
        derivative = lambda x, t: jvp(f, (x,), (t,))
        values = jax.vmap(derivative, in_axes=(0, None), out_axes=(0, None))(x, y)
        tangents = jax.vmap(derivative, in_axes=(None, 0), out_axes=(None, 0))(y, x)
        return values, tangents

    @corpus.program(floats(3))
    def sequential_vmap_of_one_of_value_and_tangent(x):
        f = jax.custom_batching.sequential_vmap(jnp.sin)
        values = jax.vmap(lambda x: jvp(f, (x,), (x[0] if x.ndim else 1.0 * x,)))(x)
        return values, jax.vmap(lambda x: f(x[0]), in_axes=None, axis_size=2)(x)


def reverse_mode(corpus, jax, lax):
    """A custom_vmap function has no derivative in reverse mode, but around vmap."""
    rule = lambda size, batched, x: (x * 3, batched[0])
    f = with_rule(jax, lambda x: x * 2, rule)
    for name, call in {
        "grad": jax.grad(f),
        "grad_of_jit": jax.grad(jax.jit(f)),
        "vjp": lambda x: jax.vjp(f, x)[0],
        "linearize": lambda x: jax.linearize(f, x)[0],
        "grad_in_scan": jax.grad(lambda x: lax.fori_loop(0, 2, lambda _, x: f(x), x)),
        "grad_in_cond": jax.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
        "grad_of_checkpoint": jax.grad(jax.checkpoint(f)),
        "hessian": jax.hessian(f),
        "grad_of_another_factor": jax.grad(lambda x: f(3.0) * x),
        "grad_behind_stop_gradient": jax.grad(lambda x: f(lax.stop_gradient(x)) * x),
        "grad_of_the_mapped": jax.grad(lambda x: jax.vmap(f)(lax.broadcast(x, (2,))).sum()),
    }.items():
        corpus.add(f"reverse_mode_{name}", call, 1.0)


def stacked(corpus, jax, jnp):
    """Each rule is given to the outermost decorator."""
    decorators = {
        "jvp": jax.custom_jvp,
        "vjp": jax.custom_vjp,
        "vmap": jax.custom_batching.custom_vmap,
    }

    def decorated(names):
        f = lambda x: x * 2
        for name in names:
            f = decorators[name](f)
        if "jvp" in names:
            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 3))
        if "vjp" in names:
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 5,))
        if "vmap" in names:
            f.def_vmap(lambda size, batched, x: (x * 7, True))
        return f

    orders = [*itertools.permutations(decorators, 2), *itertools.permutations(decorators)]
    for names in orders:

        def values_and_derivatives(x, names=names):
            f, x = decorated(names), jnp.asarray(x)
            found = {"call": f(x[0]), "vmap": jax.vmap(f)(x)}
            if names[-1] != "vmap":
                found["grad"] = jax.grad(f)(x[0])
                found["vmap of grad"] = jax.vmap(jax.grad(f))(x)
            if "jvp" in names and names[-1] != "vjp" and names[1:] != ("vjp", "vmap"):
                found["jvp"] = jax.jvp(f, (x[0],), (x[1],))
            return found

        corpus.add("_then_".join(names), values_and_derivatives, floats(3))

    corpus.add(
        "rules_are_for_the_decorators_that_there_are",
        lambda x: decorators["jvp"](decorators["vmap"](jnp.sin)).defvjp,
        1.0,
        modes=("value",),
    )
