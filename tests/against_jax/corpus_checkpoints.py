"""What checkpointed programs compute again under each policy, counted by operation."""

import collections
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

W = np.full((3, 3), 0.5, np.float32)
X = np.array([0.1, 0.2, 0.3], np.float32)
COUNTED = frozenset(("sin", "cos", "exp", "log", "dot_general"))


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    policies(corpus, jax, jnp, lax)
    barriers(corpus, jax, jnp)
    return corpus


def inner_jaxprs(params):
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            if hasattr(part, "eqns"):
                yield getattr(part, "jaxpr", part)


def equations_of(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_jaxprs(equation.params):
            yield from equations_of(inner)


def counts(closed_jaxpr):
    names = [equation.primitive.name for equation in equations_of(closed_jaxpr.jaxpr)]
    return dict(sorted(collections.Counter(n for n in names if n in COUNTED).items()))


def bodies(jax, jnp, lax, named, policy_of):
    """Functions of a vector, by name: each computes in another structure."""
    sin, cos, dot = jnp.sin, jnp.cos, jnp.dot
    twice = lambda x: sin(sin(x))
    layer = lambda x: sin(dot(W, sin(dot(W, x))))
    scanned = lambda f, x, n=3: lax.scan(lambda c, _: (f(c), None), x, None, length=n)[0]
    kept = lambda name, f: jax.checkpoint(f, policy=policy_of(name))

    forward = jax.custom_jvp(lambda x: sin(x))
    backward = jax.custom_vjp(lambda x: sin(x))
    if not isinstance(jax, Anything):
        forward.defjvp(lambda p, t: (sin(p[0]), cos(p[0]) * t[0]))
        backward.defvjp(lambda x: (sin(x), cos(x)), lambda r, c: (r * c,))

    return {
        "plain": twice,
        "dots": layer,
        "jit": jax.jit(twice),
        "custom_jvp": lambda x: sin(forward(x)),
        "custom_vjp": lambda x: sin(backward(x)),
        "scan": lambda x: lax.scan(lambda c, _: (sin(c), sin(c)), x, None, length=3),
        "scan_of_two": lambda x: lax.scan(lambda c, _: (twice(c), sin(c)), x, None, length=3)[0],
        "scan_over_rows": lambda x: lax.scan(
            lambda c, y: (c * sin(y), cos(c)), x, jnp.stack([x, x])
        )[0],
        "scan_with_a_constant": lambda x: lax.scan(lambda c, _: (c * sin(x), cos(c)), x, W)[0],
        "scan_of_dots": lambda x: scanned(layer, x),
        "scan_of_names": lambda x: scanned(lambda c: sin(named(sin(named(c * 2, "b")), "a")), x),
        "scan_of_exp": lambda x: scanned(lambda c: jnp.log(jnp.exp(c) + 1), x),
        "scan_of_jit": lambda x: scanned(jax.jit(twice), x),
        "scan_of_custom_jvp": lambda x: scanned(forward, x),
        "scan_of_custom_vjp": lambda x: scanned(backward, x),
        "scan_of_scan": lambda x: scanned(lambda c: scanned(twice, c, 2), x),
        "scan_in_jit": lambda x: jax.jit(lambda x: scanned(twice, x))(x),
        "vmapped_scan": lambda x: jax.vmap(lambda x: scanned(twice, x))(x),
        "map": lambda x: lax.map(twice, jnp.stack([x, x])),
        "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: twice(c), x),
        "cond": lambda x: lax.cond(x[0] > 0, layer, lambda x: dot(W, x), x),
        "cond_of_scan": lambda x: lax.cond(x[0] > 0, lambda x: scanned(twice, x), lambda x: x, x),
        "scan_of_cond": lambda x: lax.scan(
            lambda c, y: (lax.cond(y[0] > 1, twice, lambda c: c, c), None), x, W
        )[0],
        "checkpoint": lambda x: sin(kept("none", twice)(x)),
        "checkpoint_cos": lambda x: sin(kept("cos", twice)(x)),
        "checkpoint_sin": lambda x: sin(kept("sin", twice)(x)),
        "checkpoint_of_scan": lambda x: sin(kept("none", lambda x: scanned(twice, x))(x)),
        "checkpoint_cos_of_scan": lambda x: sin(kept("cos", lambda x: scanned(twice, x))(x)),
        "scan_of_checkpoint": lambda x: scanned(kept("none", twice), x),
        "scan_of_checkpoint_cos": lambda x: scanned(kept("cos", twice), x),
    }


def policies(corpus, jax, jnp, lax):
    nameless = isinstance(jax, Anything)
    door = jax if nameless else importlib.import_module(f"{jax.__name__}.ad_checkpoint")
    by_name = lambda *names: lambda prim, *_, **__: str(prim) in names
    known = jax.checkpoint_policies
    table = {
        "none": None,
        "cos": by_name("cos"),
        "sin": by_name("sin"),
        "both": by_name("sin", "cos"),
        "exp": by_name("exp"),
        "dots": known.checkpoint_dots,
        "dots_without_batch": known.checkpoint_dots_with_no_batch_dims,
        "everything": known.everything_saveable,
        "only_a": known.save_only_these_names("a"),
        "all_but_a": known.save_anything_except_these_names("a"),
        "names_but_a": known.save_any_names_but_these("a"),
    }
    # A result of a branch that is kept under one policy is kept for all branches, where the
    # reference makes that of the others again.
    less = {("scan_of_cond", "sin"), ("scan_of_cond", "cos")}
    # The others are tried with all bodies.
    of_some = {
        "exp": ("scan_of_exp",),
        "dots": ("dots", "scan_of_dots", "cond"),
        "dots_without_batch": ("dots", "scan_of_dots", "cond"),
        "only_a": ("plain", "scan_of_names"),
        "all_but_a": ("scan_of_names",),
        "names_but_a": ("scan_of_names",),
    }
    for name, body in bodies(jax, jnp, lax, door.checkpoint_name, table.get).items():
        for policy, rule in table.items():
            if (name, policy) in less or name not in of_some.get(policy, (name,)):
                continue

            def counted(x, f=jax.checkpoint(body, policy=rule), valued=policy in ("cos", "sin")):
                total = lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(f(x)))
                _, backward = jax.vjp(f, x)
                cotangents = jax.tree.map(jnp.ones_like, jax.eval_shape(f, x))
                # Values show that what was kept is what was computed.
                found = [jax.jit(jax.grad(total))(x)] if valued else []
                return {
                    "values": found,
                    "backward": counts(jax.make_jaxpr(backward)(cotangents)),
                    "grad": counts(jax.make_jaxpr(jax.grad(total))(x)),
                    "second": counts(jax.make_jaxpr(jax.jacfwd(jax.grad(total)))(x)),
                }

            corpus.add(f"{name}_keeping_{policy}", counted, X)


def barriers(corpus, jax, jnp):
    """Which operands of the operation pass the barrier."""

    def flags(function, *args):
        jaxpr = jax.make_jaxpr(function)(*args).jaxpr
        names = ("remat2", "checkpoint")
        return [e.params["prevent_cse"] for e in equations_of(jaxpr) if e.primitive.name in names]

    for name, prevent_cse in {
        "second": (False, True),
        "first": (True, False),
        "leaf": ((True, False), False),
        "none": (False, False),
        "all": True,
        "too_many": (True, True, True),
    }.items():

        def barrier_flags(x, prevent_cse=prevent_cse):
            f = jax.checkpoint(
                lambda x, y: jnp.sin(x[0]) * jnp.sin(y) * x[1], prevent_cse=prevent_cse
            )
            total = lambda x, y: f(x, y).sum()
            return [
                flags(f, (x, x), x),
                flags(jax.grad(total), (x, x), x),
                flags(jax.grad(total, (0, 1)), (x, x), x),
                flags(jax.vmap(f), (x, x), x),
                flags(lambda x: jax.hessian(lambda y: total((x, x), y))(x), x),
            ]

        corpus.add(f"barrier_of_{name}", barrier_flags, X)
    corpus.add(
        "unhashable_static_argument",
        lambda x: jax.grad(jax.checkpoint(lambda s, x: x * len(s), static_argnums=(0,)), argnums=1)(
            [1, 2], x[0]
        ),
        X,
    )
    corpus.add("barrier_of_wrong_type", lambda x: jax.checkpoint(jnp.sin, prevent_cse=1)(x), X)
