"""Functions with rules of the user's: derivatives, batching, what is kept, what is solved."""

import functools
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.against_jax.inputs import floats


def programs(jax, jnp, lax):
    corpus = Corpus(("equations", "value", "jit"))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    forward_rules(corpus, jax, jnp, lax)
    backward_rules(corpus, jax, jnp, lax, door)
    checkpoints(corpus, jax, jnp, lax, door)
    solvers(corpus, jax, jnp, lax)
    batching(corpus, jax, jnp, lax, door)
    texts(corpus, jax, jnp, lax, door)
    refused(corpus, jax, jnp)
    return corpus


def product_rule(jax, jnp):
    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 2 * jnp.cos(x) * dx * y + dy * jnp.sin(x)

    return f


def forward_rules(corpus, jax, jnp, lax):
    f = product_rule(jax, jnp)

    @corpus.program(floats(3), floats(3))
    def jvp_of_custom_jvp(x, y):
        return jax.jvp(f, (x, y), (y, x))

    @corpus.program(floats(3), floats(3))
    def grad_of_custom_jvp(x, y):
        return jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y)

    # Equations are not counted: the weak zero that the rule of the inner grad is given is converted
    # by an equation.
    @corpus.program(floats(3), 2.0, modes=("value", "jit"))
    def vmap_and_grad_of_custom_jvp(x, y):
        inside = jax.vmap(jax.grad(f), (0, None))(x, y)
        outside = jax.grad(lambda x: jax.vmap(f, (0, None))(x, y).sum())(x)
        return inside, outside

    @corpus.program(1.5, 2.0)
    def second_order_of_custom_jvp(x, y):
        return jax.hessian(f)(x, y), jax.grad(jax.grad(f, 1), 0)(x, y)

    @corpus.program(1.5, 2.0)
    def custom_jvp_under_jit(x, y):
        return jax.grad(jax.jit(f), 1)(x, y)

    # Equations are not counted: jax drops the call that nobody differentiates, we keep it.
    @corpus.program(floats(3), modes=("value", "jit"))
    def custom_jvp_in_scan(x):
        def body(carry, x):
            carry = f(carry, x)
            return carry, carry

        return jax.grad(lambda x: lax.scan(body, 0.5, x)[1].sum())(x)

    @corpus.program(1.5)
    def custom_jvp_with_a_function(x):
        @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
        def apply(g, x):
            return g(x)

        @apply.defjvp
        def _(g, primals, tangents):
            return g(*primals), 3 * tangents[0]

        return jax.grad(lambda x: apply(jnp.sin, x))(x)

    @corpus.program(2.0, 3.0)
    def rule_per_argument(x, y):
        @jax.custom_jvp
        def g(x, y):
            return x * y

        g.defjvps(lambda t, ans, x, y: 10 * t * y, None)
        return jax.grad(g, (0, 1))(x, y)

    @corpus.program(2.0, 3.0)
    def forward_rule_with_symbolic_zeros(x, y):
        @jax.custom_jvp
        def g(x, y):
            return x * y

        def rule(primals, tangents):
            known = [type(t).__name__ == "SymbolicZero" for t in tangents]
            assert known == [False, True]
            return g(*primals), tangents[0] * 5

        g.defjvp(rule, symbolic_zeros=True)
        return jax.grad(g)(x, y)

    @corpus.program(floats(2))
    def rule_of_trees(x):
        @jax.custom_jvp
        def g(tree):
            return {"s": tree["a"] * tree["b"]}

        @g.defjvp
        def _(primals, tangents):
            (p,), (t,) = primals, tangents
            return g(p), {"s": 2 * t["a"] * p["b"]}

        x = jnp.asarray(x)
        return jax.jvp(lambda x: g({"a": x, "b": x}), (x,), (x,))


def reversed_product(jax, jnp):
    @jax.custom_vjp
    def g(x, y):
        return jnp.sin(x) * y

    g.defvjp(lambda x, y: (g(x, y), (x, y)), lambda kept, c: (c * kept[0], 7 * c * kept[1]))
    return g


def backward_rules(corpus, jax, jnp, lax, door):
    g = reversed_product(jax, jnp)

    @corpus.program(floats(3), floats(3))
    def grad_of_custom_vjp(x, y):
        return jax.grad(lambda x, y: g(x, y).sum(), (0, 1))(x, y)

    # Equations are not counted: the weak zero that the rule of the inner grad is given is converted
    # by an equation.
    @corpus.program(floats(3), 2.0, modes=("value", "jit"))
    def vmap_and_grad_of_custom_vjp(x, y):
        inside = jax.vmap(jax.grad(g, (0, 1)), (0, None))(x, y)
        outside = jax.grad(lambda x, y: jax.vmap(g, (0, None))(x, y).sum(), (0, 1))(x, y)
        return inside, outside

    # Under jit jax takes the derivative of the residuals for one in forward mode, and refuses.
    # Equations are not counted: jax refuses here as it does under jit.
    @corpus.program(1.5, 2.0, modes=("value",))
    def second_order_of_custom_vjp(x, y):
        return jax.hessian(g)(x, y), jax.grad(jax.grad(g))(x, y)

    @corpus.program(floats(4))
    def custom_vjp_in_scan(x):
        def body(carry, x):
            return g(carry, x), carry

        return jax.grad(lambda x: lax.scan(body, 0.5, x)[1].sum())(x)

    @corpus.program(floats(4))
    def clip_of_gradients(x):
        @jax.custom_vjp
        def clip(low, high, x):
            return x

        clip.defvjp(
            lambda low, high, x: (x, (low, high)),
            lambda bounds, c: (None, None, jnp.clip(c, *bounds)),
        )
        return jax.grad(lambda x: (clip(-0.5, 0.5, jnp.sin(x)) ** 2).sum())(x)

    @corpus.program(1.5)
    def custom_vjp_with_a_function(x):
        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def apply(g, x):
            return g(x)

        apply.defvjp(lambda g, x: (g(x), x), lambda g, x, c: (c * x * g(x),))
        return jax.grad(lambda x: apply(jnp.sin, x))(x)

    @corpus.program(2.0)
    def backward_rule_with_symbolic_zeros(x):
        @jax.custom_vjp
        def h(x, y):
            return x * y, y

        def forward(x, y):
            assert (x.perturbed, y.perturbed) == (True, False)
            return (x.value * y.value, y.value), None

        def backward(_, cotangents):
            known = [type(c).__name__ == "SymbolicZero" for c in cotangents]
            assert known == [False, True]
            return cotangents[0] * 9, None

        h.defvjp(forward, backward, symbolic_zeros=True)
        return jax.grad(lambda x: h(x, 3.0)[0])(x)

    # Equations are not counted: ours shows the function without residuals, jax a thunk.
    @corpus.program(1.5, modes=("value", "jit"))
    def optimized_for_remat(x):
        @jax.custom_vjp
        def h(x):
            return x * 2

        h.defvjp(lambda x: (x * 2, jnp.sin(x)), lambda kept, c: (c * kept,), optimize_remat=True)
        return jax.grad(h)(x), jax.grad(jax.checkpoint(lambda x: jnp.sin(h(x))))(x)

    @corpus.program(1.5, modes=("value", "jit"))
    def integer_arguments_of_custom_vjp(x):
        return jax.grad(lambda x: g(x, 2))(x)

    @corpus.program(1.5)
    def gradient_returned(x):
        h = jax.custom_gradient(lambda x: (x * x, lambda c: 3 * c * x))
        return jax.grad(h)(x), jax.grad(jax.grad(h))(x)

    @corpus.program(1.5, 2.0)
    def gradients_returned(x, y):
        h = jax.custom_gradient(lambda x, y: (x * y, lambda c: (c * y * 2, c * x * 5)))
        return jax.grad(h, (0, 1))(x, y)

    # Equations are not counted: the transpose is counted too, which jax keeps as a thunk.
    @corpus.program(floats(3), floats(3), modes=("value", "jit"))
    def linear_call(x, y):
        call = door("custom_derivatives").linear_call
        return jax.grad(lambda y: call(lambda r, y: r * y, lambda r, c: 4 * r * c, x, y).sum())(y)


def checkpoints(corpus, jax, jnp, lax, door):
    def twice(x):
        return jnp.sin(jnp.sin(x))

    def network(weights, x):
        for w in weights:
            x = door("ad_checkpoint").checkpoint_name(jnp.tanh(x @ w), "act")
        return x.sum()

    @corpus.program(1.5)
    def grad_of_checkpoint(x):
        f = jax.checkpoint(twice)
        return f(x), jax.grad(f)(x), jax.jvp(f, (x,), (1.0,))

    @corpus.program(1.5)
    def second_order_of_checkpoint(x):
        f = jax.checkpoint(twice)
        return jax.grad(jax.grad(f))(x), jax.hessian(f)(x)

    @corpus.program(floats(3))
    def vmap_of_checkpoint(x):
        return jax.vmap(jax.grad(jax.checkpoint(twice)))(x)

    # Equations are not counted: what runs first is a call where jax inlines it.
    @corpus.program(1.5, modes=("value", "jit"))
    def checkpoint_under_jit(x):
        return jax.grad(jax.jit(jax.checkpoint(jax.jit(twice))))(x)

    @corpus.program(floats(4))
    def checkpoint_of_a_scan_body(x):
        body = jax.checkpoint(lambda carry, x: (jnp.sin(carry * x), carry), prevent_cse=False)
        return jax.grad(lambda x: lax.scan(body, 0.5, x)[0])(x)

    @corpus.program(floats(4))
    def scan_in_a_checkpoint(x):
        f = jax.checkpoint(lambda x: lax.scan(lambda c, x: (jnp.sin(c * x), c), 0.5, x)[0])
        return jax.grad(f)(x)

    @corpus.program(1.5)
    def static_argument_of_checkpoint(x):
        f = jax.checkpoint(lambda x, flag: jnp.sin(x) if flag else x, static_argnums=(1,))
        return jax.grad(f)(x, True)

    @corpus.program(floats(3, 3) / 4, floats(3, 3))
    def checkpoint_of_a_closure(w, x):
        return jax.grad(lambda w: jax.checkpoint(lambda x: jnp.tanh(x @ w))(x).sum())(w)

    for name in (
        "everything_saveable",
        "nothing_saveable",
        "dots_saveable",
        "dots_with_no_batch_dims_saveable",
        "checkpoint_dots",
    ):

        def with_policy(w, x, name=name):
            policy = getattr(jax.checkpoint_policies, name)
            return jax.grad(jax.checkpoint(network, policy=policy))([w, w], x)

        corpus.add(f"policy_{name}", with_policy, floats(3, 3) / 4, floats(3, 3))

    for name in (
        "save_only_these_names",
        "save_any_names_but_these",
        "save_anything_except_these_names",
    ):

        def with_names(w, x, name=name):
            policy = getattr(jax.checkpoint_policies, name)("act")
            return jax.grad(jax.checkpoint(network, policy=policy))([w, w], x)

        corpus.add(f"policy_{name}", with_names, floats(3, 3) / 4, floats(3, 3))


def solvers(corpus, jax, jnp, lax):
    def inverse(a):
        (p, q), (r, s) = a
        return jnp.array([[s, -q], [-r, p]]) / (p * s - q * r)

    def solved(a, b):
        return lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, b: inverse(a) @ b, lambda _, b: inverse(a).T @ b
        )

    def symmetric(a, b):
        return lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, b: inverse(a) @ b, symmetric=True
        )

    matrix = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    side = np.array([1.0, 2.0], np.float32)

    @corpus.program(matrix, side, tolerance=1e-5)
    def linear_solve(a, b):
        return solved(a, b), jax.grad(lambda a, b: (solved(a, b) ** 2).sum(), (0, 1))(a, b)

    @corpus.program(matrix, side, tolerance=1e-5)
    def symmetric_linear_solve(a, b):
        return jax.grad(lambda a, b: (symmetric(a, b) ** 2).sum(), (0, 1))(a, b)

    @corpus.program(matrix, side, tolerance=1e-5)
    def second_order_of_linear_solve(a, b):
        return jax.hessian(lambda b: (solved(a, b) ** 2).sum())(b)

    @corpus.program(np.stack([matrix, 2 * matrix]), side, tolerance=1e-5)
    def vmap_of_linear_solve(a, b):
        inside = jax.vmap(jax.grad(lambda a: (solved(a, b) ** 2).sum()))(a)
        return inside, jax.grad(lambda a: jax.vmap(solved, (0, None))(a, b).sum())(a)

    def square_root(a):
        def newton(f, x):
            return lax.while_loop(
                lambda x: jnp.abs(f(x)) > 1e-4, lambda x: x - f(x) / jax.grad(f)(x), x
            )

        return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))

    @corpus.program(2.0, tolerance=1e-4)
    def root_by_newton(a):
        return square_root(a), jax.grad(square_root)(a), jax.jvp(square_root, (a,), (1.0,))

    @corpus.program(2.0, tolerance=1e-3)
    def second_order_of_root(a):
        return jax.grad(jax.grad(square_root))(a)

    @corpus.program(np.array([1.0, 4.0], np.float32), tolerance=1e-4, modes=("value", "jit"))
    def vmap_of_root(a):
        return jax.vmap(jax.grad(square_root))(a)


def batching(corpus, jax, jnp, lax, door):
    def function():
        f = door("custom_batching").custom_vmap(lambda x, y: (x * 2 + y, x))

        @f.def_vmap
        def _(size, batched, x, y):
            return (x * 3 + y, x), (True, batched[0])

        return f

    # Eagerly jax hands NumPy's arrays through.
    modes = ("jit",)

    @corpus.program(floats(3), modes=modes)
    def custom_vmap(x):
        f = function()
        return f(x[0], x[1]), jax.vmap(f, (0, None))(x, jnp.float32(1.0))

    @corpus.program(floats(2, 3), modes=modes)
    def custom_vmap_along_another_axis(x):
        return jax.vmap(function(), (1, None), out_axes=1)(x, jnp.float32(1.0))

    @corpus.program(floats(3), modes=modes)
    def jvp_of_custom_vmap(x):
        f = function()
        return jax.jvp(lambda x: jax.vmap(f, (0, None))(x, jnp.float32(1.0)), (x,), (x,))

    @corpus.program(floats(3, 2), floats(2), modes=modes)
    def sequential_vmap(x, y):
        f = door("custom_batching").sequential_vmap(lambda x, y: jnp.sin(x) @ y)
        return jax.vmap(f, (0, None))(x, y)


def texts(corpus, jax, jnp, lax, door):
    def add(name, function, *args):
        corpus.add(name, function, *args, modes=("jaxpr",))

    f, g = product_rule(jax, jnp), reversed_product(jax, jnp)
    add("text_of_custom_jvp", lambda x, y: f(x, y), 1.0, 2.0)
    add("text_of_vmapped_custom_jvp", lambda x: jax.vmap(f, (0, 0))(x, x), floats(3))
    add("text_of_custom_vjp", lambda x, y: g(x, y), 1.0, 2.0)
    add("text_of_vmapped_custom_vjp", lambda x: jax.vmap(g, (0, 0))(x, x), floats(3))
    add("text_of_checkpoint", lambda x: jax.checkpoint(lambda x: jnp.sin(x) * x)(x), 1.0)
    add("text_of_name", lambda x: door("ad_checkpoint").checkpoint_name(x, "a"), 1.0)
    add(
        "text_of_linear_solve",
        lambda a, b: lax.custom_linear_solve(lambda x: 2 * x * a, b, lambda _, b: b / 2 / a),
        1.0,
        1.0,
    )
    add(
        "text_of_custom_gradient",
        lambda x: jax.custom_gradient(lambda x: (x * x, lambda c: 3 * c))(x),
        1.0,
    )


def refused(corpus, jax, jnp):
    def add(name, function, *args):
        corpus.add(name, function, *args, modes=("value",))

    def forward_rule(rule):
        f = jax.custom_jvp(lambda x: x * 1.0)
        if rule is not None:
            f.defjvp(rule)
        return f

    def backward_rules(forward, backward):
        f = jax.custom_vjp(lambda x: x * 1.0)
        f.defvjp(forward, backward)
        return f

    add("custom_jvp_without_a_rule", lambda x: forward_rule(None)(x), 1.0)
    for name, rule in {
        "no_pair": lambda p, t: p[0],
        "other_structure": lambda p, t: (p[0], (t[0], t[0])),
        "other_shape": lambda p, t: (p[0], jnp.ones(3)),
    }.items():
        add(f"forward_rule_{name}", lambda x, rule=rule: jax.grad(forward_rule(rule))(x), 1.0)
    add("custom_vjp_without_rules", lambda x: jax.custom_vjp(lambda x: x)(x), 1.0)
    for name, forward, backward in (
        ("no_pair", lambda x: x, lambda r, c: (c,)),
        ("no_tuple", lambda x: (x, None), lambda r, c: c),
        ("too_many", lambda x: (x, None), lambda r, c: (c, c)),
        ("other_shape", lambda x: (x, None), lambda r, c: (jnp.ones(3),)),
    ):
        add(
            f"backward_rule_{name}",
            lambda x, a=forward, b=backward: jax.grad(backward_rules(a, b))(x),
            1.0,
        )
    add(
        "forward_mode_of_custom_vjp",
        lambda x: jax.jvp(reversed_product(jax, jnp), (x, x), (x, x)),
        1.0,
    )
    add(
        "python_if_in_checkpoint",
        lambda x: jax.checkpoint(lambda x: x if x > 0 else -x)(x),
        1.0,
    )
