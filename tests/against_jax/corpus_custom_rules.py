"""What the rules of custom derivatives are given, and what they may return."""

import functools
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.against_jax.inputs import bf16, f8_e4m3, floats


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    bound_keywords(corpus, jax)
    trees_of_users(corpus, jax, jnp)
    other_structures(corpus, jax, jnp, lax)
    other_dtypes(corpus, jax, jnp, lax)
    zeros(corpus, jax, jnp, door)
    residuals_of_python(corpus, jax, jnp, lax)
    return corpus


def bound_keywords(corpus, jax):
    """What functools.partial binds, or a default fills, is no argument of the call."""

    def forward(fun):
        f = jax.custom_jvp(fun)
        f.defjvp(lambda p, t: (f(*p), t[0] * 2 + t[1] * 3))
        return f

    def backward(fun):
        f = jax.custom_vjp(fun)
        f.defvjp(lambda x, y: (f(x, y), None), lambda _, ct: (ct * 2, ct * 3))
        return f

    functions = {
        "keyword": functools.partial(lambda x, y, a: x + y * a, a=0.5),
        "position": functools.partial(lambda a, x, y: x + y * a, 0.5),
        "keyword_only": lambda x, y, *, a=0.5: x + y * a,
        "keyword_only_bound": functools.partial(lambda x, y, *, a=0.5: x + y * a, a=3.0),
        "any_keywords": lambda x, y, **others: x + y,
    }
    for kind, custom in {"forward": forward, "backward": backward}.items():
        for name, fun in functions.items():

            def value_and_gradient(x, y, custom=custom, fun=fun):
                return custom(fun)(x, y), jax.grad(custom(fun), (0, 1))(x, y)

            corpus.add(f"{kind}_rule_and_bound_{name}", value_and_gradient, *floats(2))
        corpus.add(
            f"{kind}_rule_and_a_keyword_of_a_partial",
            lambda x, y, custom=custom: custom(functools.partial(lambda x, y: x + y))(x, y=y),
            *floats(2),
        )
        corpus.add(
            f"{kind}_rule_and_a_keyword_only_argument",
            lambda x, y, custom=custom: custom(lambda x, y, *, a=2.0: x + y * a)(x, y, a=y),
            *floats(2),
        )


def trees_of_users(corpus, jax, jnp):
    class Box:
        def __init__(self, value):
            self.value = value

    if not isinstance(jax, Anything):
        jax.tree_util.register_pytree_node(
            Box, lambda box: ((box.value,), None), lambda _, children: Box(*children)
        )
    symbolic_zero = jax.custom_derivatives.SymbolicZero
    zero_from_primal = jax.custom_derivatives.zero_from_primal
    # Cotangents of a box. A leaf stands for all that is below it.
    cotangents = {
        "none": lambda box, ct: None,
        "box": lambda box, ct: Box(ct),
        "box_of_none": lambda box, ct: Box(None),
        "scalar": lambda box, ct: jnp.float32(0),
        "array": lambda box, ct: ct,
        "symbolic_zero": lambda box, ct: symbolic_zero(jax.typeof(ct)),
        "box_of_symbolic_zero": lambda box, ct: Box(symbolic_zero(jax.typeof(ct))),
        "zeros": lambda box, ct: zero_from_primal(box),
        "symbolic_zeros": lambda box, ct: zero_from_primal(box, symbolic_zeros=True),
        "other_tree": lambda box, ct: (ct, ct),
    }

    def product(symbolic, cotangent):
        f = jax.custom_vjp(lambda box, x: box.value * x)
        if symbolic:
            forward = lambda box, x: (box.value.value * x.value, (Box(box.value.value), x.value))
        else:
            forward = lambda box, x: (box.value * x, (box, x))
        backward = lambda kept, ct: (cotangent(kept[0], ct), ct * kept[0].value)
        f.defvjp(forward, backward, symbolic_zeros=symbolic)
        return f

    for kind, symbolic in {"plain": False, "symbolic": True}.items():
        for name, cotangent in cotangents.items():

            def of_each(x, y, symbolic=symbolic, cotangent=cotangent):
                f = product(symbolic, cotangent)
                f = lambda x, y, f=f: f(Box(x), y)
                return jax.grad(f)(x, y), jax.grad(f, 1)(x, y), jax.grad(jax.jit(f), 1)(x, y)

            corpus.add(f"{kind}_cotangent_of_a_box_{name}", of_each, *floats(2))

    def forward_rule(f):
        def rule(primals, tangents):
            (box, x), (box_dot, x_dot) = primals, tangents
            total = 0.0
            if type(box_dot.value) is not symbolic_zero:
                total += box_dot.value * x
            if type(x_dot) is not symbolic_zero:
                total += box.value * x_dot * 10
            return f(box, x), total

        f.defjvp(rule, symbolic_zeros=True)
        return f

    @corpus.program(floats(3), floats(3))
    def symbolic_tangents_of_a_box(x, y):
        f = forward_rule(jax.custom_jvp(lambda box, x: box.value * x))
        g = lambda x, y: f(Box(x), y).sum()
        mapped = lambda x, y: jax.vmap(f)(Box(x), y).sum()
        return [jax.grad(h, n)(x, y) for h in (g, jax.jit(g), mapped) for n in (0, 1)]


def other_structures(corpus, jax, jnp, lax):
    """Rules whose first result is not like the function's, where that was run before."""

    def forward(first):
        f = jax.custom_jvp(jnp.sin)
        f.defjvp(lambda p, t: (first(p[0]), first(t[0])))
        return f

    def backward(first):
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (first(x), None), lambda _, ct: jax.tree.leaves(ct)[:1])
        return f

    firsts = {
        "tuple": lambda x: (x,),
        "two": lambda x: (x, x),
        "shape": lambda x: jnp.ones(3) * x,
        "dtype": lambda x: x.astype(jnp.bfloat16),
    }
    places = {
        "scan": lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        "jit": lambda f, x: jax.jit(f)(x),
        "cond": lambda f, x: lax.cond(x > 0, f, jnp.cos, x),
    }
    for kind, custom in {"forward": forward, "backward": backward}.items():
        for name, first in firsts.items():
            for place, call in places.items():

                def gradient(x, call=call, custom=custom, first=first):
                    return jax.grad(lambda x: call(custom(first), x))(x)

                corpus.add(
                    f"{kind}_rule_with_another_{name}_in_{place}",
                    gradient,
                    np.float32(0.5),
                    modes=("value",),
                )


def other_dtypes(corpus, jax, jnp, lax):
    def doubled(backward):
        f = jax.custom_vjp(lambda x: x.astype(jnp.float32) * 2.0)
        f.defvjp(lambda x: (x.astype(jnp.float32) * 2.0, None), lambda _, ct: (backward(ct),))
        return lambda x: f(x).sum()

    same = lambda ct: ct
    narrow = lambda ct: ct.astype(jnp.bfloat16)
    for name, backward, x in (
        ("float32_for_bfloat16", same, floats(2, dtype=bf16)),
        ("bfloat16_for_float32", narrow, floats(2)),
        ("bfloat16_for_float8", narrow, np.ones(2, f8_e4m3)),
        ("complex_for_float32", lambda ct: ct.astype(complex), floats(2)),
        ("shape", lambda ct: ct.sum(), floats(2)),
    ):

        def gradients(x, backward=backward):
            f = doubled(backward)
            return {
                "grad": jax.grad(f)(x),
                "of jit": jax.grad(jax.jit(f))(x),
                "mapped": jax.vmap(jax.grad(f))(jnp.stack([x, x])),
                "of vmap": jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.stack([x, x])),
                "checkpoint": jax.grad(jax.checkpoint(f))(x),
                "twice": jax.grad(lambda x: f(x) + f(x))(x),
            }

        corpus.add(f"cotangent_of_another_dtype_{name}", gradients, x)

    corpus.add(
        "cotangents_whose_dtypes_differ",
        lambda x: jax.grad(lambda x: doubled(narrow)(x) + (x * 2).sum())(x),
        floats(2),
        modes=("value",),
    )

    @corpus.program(floats(2), modes=("value",))
    def cotangent_of_another_shape_where_none_is_checked(x):
        jax.config.update("jax_disable_bwd_checks", True)
        try:
            return jax.grad(doubled(lambda ct: jnp.ones(3) * ct.sum()))(x)
        finally:
            jax.config.update("jax_disable_bwd_checks", False)


def zeros(corpus, jax, jnp, door):
    symbolic_zero = jax.custom_derivatives.SymbolicZero
    ad = door("interpreters.ad")

    for name, symbolic in {"plain": False, "symbolic": True}.items():

        def of_other_shape(x, y, symbolic=symbolic):
            f = jax.custom_vjp(lambda x, y: (x * y).sum())
            if symbolic:
                forward = lambda x, y: ((x.value * y.value).sum(), None)
            else:
                forward = lambda x, y: ((x * y).sum(), None)
            zero = symbolic_zero(jax.typeof(y))
            f.defvjp(forward, lambda _, ct: (zero, zero), symbolic_zeros=symbolic)
            return jax.grad(f)(x, y)

        corpus.add(
            f"{name}_symbolic_zero_of_another_argument", of_other_shape, floats(2), floats(2, 2)
        )

    @corpus.program(floats(3), modes=("value",))
    def what_trees_take_for_leaves(x):
        aval = jax.typeof(x)
        marks = [symbolic_zero(aval), ad.Zero(aval), ad.UndefinedPrimal(aval)]
        counts = [len(jax.tree.leaves(mark)) for mark in marks]
        again = [type(jax.tree.map(lambda x: x, mark)).__name__ for mark in marks[1:]]
        same = [
            jax.tree.structure(mark) == jax.tree.structure(type(mark)(aval)) for mark in marks[1:]
        ]
        return counts, [name in ("Zero", "UndefinedPrimal") for name in again], same

    @corpus.program({"a": floats(2), "b": (np.int32(3), None)})
    def zeros_like_a_tree(tree):
        plain = jax.custom_derivatives.zero_from_primal(tree)
        symbolic = jax.custom_derivatives.zero_from_primal(tree, symbolic_zeros=True)
        return plain, [type(x) is symbolic_zero for x in jax.tree.leaves(symbolic)]


def residuals_of_python(corpus, jax, jnp, lax):
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(
        lambda x: (x * 2, (True, 0, 2.5, np.bool_(True), x)),
        lambda kept, ct: (
            jnp.stack([ct, kept[4]]).sum(kept[1]) * kept[2] if kept[0] and kept[3] else ct,
        ),
    )

    @corpus.program(floats(2))
    def rules_keep_numbers_of_python(x):
        g = lambda x: f(x).sum()
        return {
            "grad": jax.grad(g)(x),
            "jit": jax.jit(jax.grad(g))(x),
            "of jit": jax.grad(jax.jit(g))(x),
            "mapped": jax.vmap(jax.grad(f))(x),
            "of vmap": jax.grad(lambda x: jax.vmap(f)(x).sum())(x),
            "scan": jax.grad(lambda x: lax.scan(lambda c, x: (c + f(x), None), 0.0, x)[0])(x),
            "checkpoint": jax.grad(jax.checkpoint(g))(x),
        }
