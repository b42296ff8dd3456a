"""Backward rules whose cotangents are all zero, and what they return: not only derivatives.

A rule may return what is no linear function of the cotangent, such as statistics of a step. So it
is seen in a gradient whether the rule was called, and with what.
"""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats

STEPS = 2
# What results are used for in a few programs alone.
FEW_TIMES = ("zeroed", "blocked_twice", "compared")


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def of_arrays(fun):
        # A rule of jax is given NumPy arrays as they are.
        return lambda *args: fun(*map(jnp.asarray, args))

    rules = {
        "plain_rule": counting(jax, symbolic_zeros=False),
        "symbolic_rule": counting(jax, symbolic_zeros=True),
    }
    around = nestings(jax, jnp, lax)
    uses = uses_of_results(jax, lax)
    in_all_nestings(corpus, jax, of_arrays, rules, around, uses)
    beside_other_results(corpus, jax, jnp, lax, of_arrays, rules["plain_rule"], uses)
    two_deep(corpus, jax, of_arrays, rules["plain_rule"], around, uses)
    unmapped_arguments(corpus, jax, jnp, of_arrays, rules)
    return corpus


def counting(jax, symbolic_zeros):
    """Return a function whose backward rule adds to its cotangent a mark of how it was called."""

    @jax.custom_vjp
    def f(x, statistics):
        return x * 2

    def forward(x, statistics):
        if symbolic_zeros:
            x, statistics = x.value, statistics.value
        return x * 2, statistics

    def backward(statistics, cotangent):
        if type(cotangent) is jax.custom_derivatives.SymbolicZero:
            return statistics * 0 + 100, statistics + 1000
        return cotangent * 2 + 10, statistics + 1

    f.defvjp(forward, backward, symbolic_zeros=symbolic_zeros)
    return f


def nestings(jax, jnp, lax):
    """Return the programs that a function of arrays of one shape is put into, by name."""

    def carry_of_scan(f):
        return lambda x, s: lax.scan(lambda c, _: (f(c, s), None), x, None, length=STEPS)[0]

    def ys_of_scan(f):
        return lambda x, s: lax.scan(lambda c, _: (c, f(x, s)), x, None, length=STEPS)[1].sum(0)

    def xs_of_scan(f):
        return lambda x, s: lax.scan(lambda c, x: (c, f(x, s)), 0.0, jnp.stack([x, x]))[1].sum(0)

    def alone_in_scan(f):
        return lambda x, s: lax.scan(lambda c, _: (c, f(x, s)), None, None, length=STEPS)[1].sum(0)

    def branch_of_cond(f):
        return lambda x, s: lax.cond(s[0] > -9, f, lambda x, s: x * 3, x, s)

    def branches_of_switch(f):
        return lambda x, s: lax.switch(1, [lambda x, s: x, f, lambda x, s: x + s], x, s)

    def while_loop(f):
        # A while loop has no derivative backwards: its iterations differentiate f.
        def iterate(x, s):
            step = lambda c: (c[0] + 1, c[1] + jax.grad(lambda x: f(x, s).sum())(x))
            return x + lax.while_loop(lambda c: c[0] < STEPS, step, (0, lax.stop_gradient(x)))[1]

        return iterate

    def fori_loop(f):
        return lambda x, s: lax.fori_loop(0, STEPS, lambda _, c: f(c, s), x)

    def mapped(f):
        return lambda x, s: jax.vmap(f)(jnp.stack([x, x]), jnp.stack([s, s])).sum(0)

    def mapped_but_for_statistics(f):
        return lambda x, s: jax.vmap(f, (0, None))(jnp.stack([x, x]), s).sum(0)

    def mapped_statistics(f):
        return lambda x, s: jax.vmap(f, (None, 0))(x, jnp.stack([s, s])).sum(0)

    def custom_jvp(f):
        g = jax.custom_jvp(f)
        g.defjvp(lambda primals, tangents: jax.jvp(lambda x, s: x * s, primals, tangents))
        h = jax.custom_jvp(lambda x, s: x)
        h.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
        return lambda x, s: g(x, s) + h(x, s)

    return {
        "nothing": lambda f: f,
        "jit": jax.jit,
        "checkpoint": jax.checkpoint,
        "carry_of_scan": carry_of_scan,
        "ys_of_scan": ys_of_scan,
        "xs_of_scan": xs_of_scan,
        "scan_without_carry": alone_in_scan,
        "cond": branch_of_cond,
        "switch": branches_of_switch,
        "while_loop": while_loop,
        "fori_loop": fori_loop,
        "vmap": mapped,
        "vmap_but_for_statistics": mapped_but_for_statistics,
        "vmap_of_statistics": mapped_statistics,
        "custom_jvp": custom_jvp,
    }


def uses_of_results(jax, lax):
    """Return the functions of (x, f(x)) that say what a result of f is used for, by name."""

    def blocking(cotangent):
        block = jax.custom_vjp(lambda x: x)
        block.defvjp(lambda x: (x, None), lambda _, g: (cotangent(g),))
        return block

    to_none = blocking(lambda g: None)
    to_zeros = blocking(lambda g: g * 0)
    return {
        "read": lambda x, y: y,
        "unread": lambda x, y: x * 2,
        "stopped": lambda x, y: x + lax.stop_gradient(y),
        "blocked": lambda x, y: x + to_none(y),
        "blocked_alone": lambda x, y: to_none(y),
        "zeroed": lambda x, y: x + to_zeros(y),
        "blocked_twice": lambda x, y: x + to_none(to_none(y) * 2),
        "compared": lambda x, y: x * (y > 0),
    }


def in_all_nestings(corpus, jax, of_arrays, rules, around, uses):
    outside = {
        "plain_rule": ("read", "unread", "stopped", "blocked", "blocked_alone"),
        "symbolic_rule": ("read", "blocked", "blocked_alone"),
    }
    for rule_name, f in rules.items():
        for nesting, put_into in around.items():
            few = nesting in ("nothing", "carry_of_scan") and rule_name == "plain_rule"
            for use_name in (*outside[rule_name], *(FEW_TIMES if few else ())):
                if nesting == "vmap_of_statistics" and use_name in ("read", "zeroed"):
                    # JAX sums the cotangents of the examples before the rule, of which residuals
                    # differ: the gradient of sum(s * x) by rules is sum(s) times the examples.
                    continue

                def used_outside(x, s, f=f, put_into=put_into, use=uses[use_name]):
                    return use(x, put_into(f)(x, s)).sum()

                corpus.add(
                    f"{rule_name}_in_{nesting}_{use_name}",
                    of_arrays(jax.grad(used_outside, (0, 1))),
                    floats(2),
                    floats(2) + 1,
                )
    for nesting, put_into in around.items():

        def blocked_inside(x, s, put_into=put_into):
            return put_into(lambda x, s: uses["blocked"](x, rules["plain_rule"](x, s)))(x, s).sum()

        corpus.add(
            f"plain_rule_in_{nesting}_blocked_inside",
            of_arrays(jax.grad(blocked_inside, (0, 1))),
            floats(2),
            floats(2) + 1,
        )


def beside_other_results(corpus, jax, jnp, lax, of_arrays, f, uses):
    """A program of two results, of which one alone has a cotangent."""

    def pair(x, s):
        return f(x, s), x * 3

    around = {
        "jit": jax.jit(pair),
        "checkpoint": jax.checkpoint(pair),
        "cond": lambda x, s: lax.cond(s[0] > -9, pair, pair, x, s),
        "carry_of_scan": lambda x, s: lax.scan(
            lambda c, _: (pair(c[0], s), None), (x, x), None, length=STEPS
        )[0],
        "ys_of_scan": lambda x, s: lax.scan(
            lambda c, _: (c * 2, pair(c, s)), x, None, length=STEPS
        )[1],
        "ys_of_scan_without_carry": lambda x, s: lax.scan(
            lambda c, _: (c, pair(x, s)), None, None, length=STEPS
        )[1],
        "carry_and_ys_of_scan": lambda x, s: lax.scan(
            lambda c, _: pair(c, s), x, None, length=STEPS
        ),
        "vmap": lambda x, s: jax.vmap(lambda x: pair(x, s))(jnp.stack([x, x])),
    }
    for name, program in around.items():
        for use_name in ("unread", "blocked"):
            if use_name == "blocked" and name.startswith("ys_"):
                continue  # JAX fails: it gives the rule a zero of all iterations for that of one.

            def used(x, s, program=program, use=uses[use_name]):
                y, z = program(x, s)
                return use(z, y).sum()

            corpus.add(
                f"beside_another_result_in_{name}_{use_name}",
                of_arrays(jax.grad(used, (0, 1))),
                floats(2),
                floats(2) + 1,
            )


def two_deep(corpus, jax, of_arrays, f, around, uses):
    inner = ("jit", "checkpoint", "carry_of_scan", "scan_without_carry", "cond", "vmap")
    for outer_name in inner:
        for inner_name in inner:

            def program(x, s, outer=outer_name, inner=inner_name):
                in_both = around[outer](lambda x, s: uses["blocked"](x, around[inner](f)(x, s)))
                return in_both(x, s).sum()

            corpus.add(
                f"plain_rule_in_{inner_name}_of_{outer_name}_blocked",
                of_arrays(jax.grad(program, (0, 1))),
                floats(2),
                floats(2) + 1,
            )


def unmapped_arguments(corpus, jax, jnp, of_arrays, rules):
    """An argument that vmap does not map has one cotangent for all examples."""
    x, s = floats(3), floats(3) + 1
    xs = np.stack([x, x + 1, x + 2])
    for rule_name, f in rules.items():
        for way, program in {
            "grad_of_vmap": lambda x, s, f=f: jax.grad(
                lambda x, s: jax.vmap(f, (0, None))(x, s).sum(), (0, 1)
            )(x, s),
            "vmap_of_grad": lambda x, s, f=f: jax.vmap(
                jax.grad(lambda x, s: f(x, s).sum(), (0, 1)), (0, None)
            )(x, s),
            "vmap_of_vjp": lambda x, s, f=f: jax.vmap(
                lambda x, s: jax.vjp(f, x, s)[1](jnp.ones(3)), (0, None)
            )(x, s),
            "vmap_of_the_cotangent": lambda x, s, f=f: jax.vmap(jax.vjp(f, x[0], s)[1])(x),
            "grad_of_two_vmaps": lambda x, s, f=f: jax.grad(
                lambda x, s: jax.vmap(jax.vmap(f, (0, None)), (0, None))(x[None], s).sum(), (0, 1)
            )(x, s),
            "grad_of_jit_of_vmap": lambda x, s, f=f: jax.grad(
                lambda x, s: jax.jit(jax.vmap(f, (0, None)))(x, s).sum(), (0, 1)
            )(x, s),
            "grad_of_vmap_of_jit": lambda x, s, f=f: jax.grad(
                lambda x, s: jax.vmap(jax.jit(f), (0, None))(x, s).sum(), (0, 1)
            )(x, s),
        }.items():
            corpus.add(f"{way}_of_{rule_name}_with_an_unmapped_argument", of_arrays(program), xs, s)
