"""Name stacks of equations, and the op_names of compiled operations: scopes and transformations.

Profilers and tools for HLO group operations by them. Per program, its equations' primitives with
their name stacks are compared, and the op_names of the compiled sines, cosines and exponentials.
"""

import re

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats

X = np.float32(1.25)
SHOWN = ("sin", "cos", "exp")
# What either side has equations for, where the other has none, for reasons of its own.
HELPERS = ("empty2", "add", "split", "jit", "convert_element_type", "squeeze", "reshape")


def programs(jax, jnp, lax):
    corpus = Corpus(("repr",))
    functions = scoped_functions(jax, jnp, lax)
    for name, (function, x) in straight(jax, jnp, lax, functions).items():
        named(corpus, jax, name, function, x)
    for name, (function, x) in structured(jax, jnp, lax, functions).items():
        named(corpus, jax, name, function, x)
    return corpus


def named(corpus, jax, name, function, x):
    def names(x):
        stacks = sorted(set(stacks_of(jax.make_jaxpr(function)(x).jaxpr)))
        text = jax.jit(function).lower(x).compile().as_text()
        paths = set(re.findall(r'op_name="([^"]*)"', text))
        return stacks, sorted(path for path in paths if path.split("/")[-1] in SHOWN)

    corpus.add(name, names, x)


def stacks_of(jaxpr):
    for equation in jaxpr.eqns:
        if equation.primitive.name not in HELPERS:
            yield f"{equation.primitive.name}: {equation.source_info.name_stack}"
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else [value]:
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    yield from stacks_of(part)


def scoped_functions(jax, jnp, lax):
    """Functions with scopes, and loops and branches over them."""

    def scoped(x):
        with jax.named_scope("a"):
            return jnp.sin(x)

    def twice(x):
        with jax.named_scope("outer"):
            y = jnp.cos(x)
            with jax.named_scope("inner"):
                return y * jnp.exp(x)

    def inner(x):
        return scoped(x) * 2

    def looped(x):
        return lax.while_loop(lambda x: jnp.sum(x) < 3, lambda x: scoped(x) + 1, x)

    def counted(x):
        return lax.fori_loop(0, 3, lambda i, x: scoped(x) + 1, x)

    def scanned(x):
        return lax.scan(lambda c, _: (scoped(c), None), x, None, length=3)[0]

    def branched(x):
        return lax.cond(jnp.sum(x) > 0, scoped, twice, x)

    def checkpointed(x):
        return jax.checkpoint(lambda x: jnp.sin(scoped(x)))(x)

    return scoped, twice, jax.jit(inner), looped, counted, scanned, branched, checkpointed


def straight(jax, jnp, lax, functions):
    scoped, twice, jitted, *_ = functions
    grad, vmap, jvp = jax.grad, jax.vmap, lambda f: lambda x: jax.jvp(f, (x,), (x,))
    row = floats(3)
    unnamed = jax.jit(lambda x: jnp.sin(x) * 2)
    return {
        "a_scope": (scoped, X),
        "scopes_in_scopes": (twice, X),
        "grad_of_a_scope": (grad(scoped), X),
        "grad_of_scopes": (grad(twice), X),
        "grad_of_grad": (grad(grad(twice)), X),
        "vmap_of_a_scope": (vmap(scoped), row),
        "vmap_of_vmap": (vmap(vmap(twice)), floats(2, 3)),
        "vmap_of_grad": (vmap(grad(twice)), row),
        "grad_of_vmap": (grad(lambda x: jnp.sum(vmap(twice)(x))), row),
        "jvp_of_scopes": (jvp(twice), X),
        "jvp_of_grad": (jvp(grad(twice)), X),
        "jit_in_jit": (jitted, X),
        "jit_among_others": (lambda x: jitted(x) + 1, X),
        "grad_of_jit": (grad(jitted), X),
        "jvp_of_jit": (jvp(jitted), X),
        "vmap_of_jit": (vmap(jitted), row),
        "vmap_of_grad_of_jit": (vmap(grad(jitted)), row),
        "jit_of_a_lambda": (lambda x: unnamed(x) + 1, X),
        "jvp_of_jit_of_a_lambda": (jvp(unnamed), X),
        "vmap_of_grad_of_jit_of_a_lambda": (vmap(grad(unnamed)), row),
        "vjp_called": (lambda x: jax.vjp(twice, x)[1](x), X),
        "linearized": (lambda x: jax.linearize(twice, x)[1](x), X),
        "transposed": (lambda x: jax.linear_transpose(lambda y: y * 2 + 3 * y, x)(scoped(x)), X),
        "jacfwd": (jax.jacfwd(lambda x: scoped(x) * x), row),
        "jacrev": (jax.jacrev(lambda x: scoped(x) * x), row),
        "hessian": (jax.hessian(lambda x: jnp.sum(scoped(x) * x)), row),
        "named_call_of_grad": (jax.named_call(grad(scoped), name="called"), X),
        "sum_over_a_named_axis": (vmap(lambda x: lax.psum(scoped(x), "i"), axis_name="i"), row),
        "a_value_with_a_custom_vjp": (with_custom_vjp(jax, jnp), X),
        "grad_of_a_custom_vjp": (grad(with_custom_vjp(jax, jnp)), X),
        "a_value_with_a_custom_jvp": (with_custom_jvp(jax, jnp), X),
    }


def structured(jax, jnp, lax, functions):
    scoped, twice, jitted, looped, counted, scanned, branched, checkpointed = functions
    grad, vmap, jvp = jax.grad, jax.vmap, lambda f: lambda x: jax.jvp(f, (x,), (x,))
    row = floats(3)

    def chosen(x):
        return lax.switch(jnp.int32(jnp.sum(x)), [scoped, twice, lambda x: x * x], x)

    def rows(x):
        return lax.scan(lambda c, y: (scoped(c) * y, c), x, np.arange(3, dtype=np.float32))

    def checkpoints_in_scan(x):
        return lax.scan(lambda c, _: (checkpointed(c), None), x, None, length=3)[0]

    return {
        "while": (looped, X),
        "fori": (counted, X),
        "scan": (rows, X),
        "cond": (branched, X),
        "switch": (chosen, X),
        "map": (lambda x: lax.map(scoped, x), row),
        "checkpoint": (checkpointed, X),
        "grad_of_scan": (grad(scanned), X),
        "grad_of_fori": (grad(counted), X),
        "grad_of_cond": (grad(branched), X),
        "grad_of_checkpoint": (grad(checkpointed), X),
        "grad_of_checkpoints_in_scan": (grad(checkpoints_in_scan), X),
        "jvp_of_while": (jvp(looped), X),
        "jvp_of_fori": (jvp(counted), X),
        "vmap_of_while": (vmap(looped), row),
        "vmap_of_cond": (vmap(branched), row),
        "vmap_of_scan": (vmap(scanned), row),
        "scan_in_jit_in_cond": (
            lambda x: lax.cond(x > 0, jax.jit(scanned), lambda x: x, x),
            X,
        ),
        "while_in_fori": (lambda x: lax.fori_loop(0, 2, lambda i, x: looped(x) + i, x), X),
        "jit_in_scan": (lambda x: lax.scan(lambda c, _: (jitted(c), None), x, None, 2)[0], X),
    }


def with_custom_jvp(jax, jnp):
    f = jax.custom_jvp(lambda x: jnp.sin(x) * 3)
    f.defjvp(lambda primals, tangents: (f(*primals), jnp.cos(primals[0]) * tangents[0]))
    return f


def with_custom_vjp(jax, jnp):
    f = jax.custom_vjp(lambda x: jnp.sin(x) * 3)
    f.defvjp(lambda x: (f(x), x), lambda x, cotangent: (jnp.cos(x) * cotangent,))
    return f
