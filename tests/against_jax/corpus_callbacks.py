"""Python functions called back: how they print, what they see, and what is refused.

What they see is returned: each program gives the values together with what was told on the way.
"""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.against_jax.inputs import floats, ints


def doubled(x):
    return np.asarray(x) * 2


def added(x, y):
    return np.asarray(x) + np.asarray(y)


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "value", "jit"))
    experimental = (
        jax
        if isinstance(jax, Anything)
        else importlib.import_module(f"{jax.__name__}.experimental")
    )
    results(corpus, jax, experimental.io_callback)
    debugging(corpus, jax, lax)
    vectorized(corpus, jax, experimental.io_callback)
    nested(corpus, jax, lax, experimental.io_callback)
    what_callbacks_see(corpus, jax, lax, experimental.io_callback)
    refused(corpus, jax, experimental.io_callback)
    return corpus


def results(corpus, jax, io_callback):
    def like(x):
        return jax.ShapeDtypeStruct(x.shape, x.dtype)

    @corpus.program(floats(3))
    def pure(x):
        return jax.pure_callback(doubled, like(x), x)

    @corpus.program(floats(3), ints(2))
    def pure_of_trees(x, n):
        def on_host(a, *, b):
            return {"s": np.asarray(a[0]) + 1, "t": (b["k"],)}

        return jax.pure_callback(on_host, {"s": like(x), "t": (like(n),)}, [x], b={"k": n})

    @corpus.program(floats(2))
    def io_unordered_and_ordered(x):
        return io_callback(doubled, like(x), x), io_callback(doubled, x, x, ordered=True)

    @corpus.program(floats(2))
    def of_literals(x):
        return io_callback(added, like(x), x, 1.0), io_callback(np.asarray, np.int32(0), 3)

    @corpus.program(floats(2))
    def without_results(x):
        io_callback(lambda x: None, None, x)
        return jax.pure_callback(lambda x: (), (), x)


def debugging(corpus, jax, lax):
    @corpus.program(floats(2))
    def debug_callback(x):
        jax.debug.callback(doubled, x)
        jax.debug.callback(added, x, y=x, ordered=True, partitioned=True)
        return lax.sin(x)

    @corpus.program(floats(2), 3)
    def debug_print(x, n):
        jax.debug.print("x {} {n} {what} {}", x, 2.5, n=n, what="text", ordered=True)
        jax.debug.print("no arguments")
        return x

    @corpus.program(floats(2))
    def gradient_of_printing(x):
        def loss(x):
            jax.debug.print("{}", x)
            return lax.sin(x).sum()

        return jax.value_and_grad(loss)(x)

    @corpus.program(floats(2))
    def tangent_of_printing(x):
        def shown(x):
            jax.debug.print("{}", x)
            return lax.sin(x)

        return jax.jvp(shown, (x,), (x,))

    @corpus.program(floats(2, 3))
    def printing_each_example(x):
        def shown(row, x):
            jax.debug.print("{} {}", row, x)
            return lax.neg(row)

        return jax.vmap(shown, in_axes=(1, None))(x, x)


def vectorized(corpus, jax, io_callback):
    scalar = jax.ShapeDtypeStruct((), np.float32)

    for method in ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized"):

        def mapped(x, y, method=method):
            def call(x, y):
                return jax.pure_callback(added, scalar, x, y, vmap_method=method)

            return jax.vmap(call, in_axes=(0, None))(x, y)

        corpus.add(f"pure_callback_{method}", mapped, floats(3), np.float32(2))

    @corpus.program(floats(2, 3))
    def pure_callback_of_rows(x):
        def call(row, x):
            return jax.pure_callback(
                lambda row, x: np.asarray(row).sum(-1), scalar, row, x, vmap_method="expand_dims"
            )

        return jax.vmap(call, in_axes=(1, None))(x, x)

    @corpus.program(floats(3))
    def io_callback_of_examples(x):
        return jax.vmap(lambda x: io_callback(doubled, scalar, x))(x)


def nested(corpus, jax, lax, io_callback):
    scalar = jax.ShapeDtypeStruct((), np.float32)

    @corpus.program(floats())
    def in_jit(x):
        inner = jax.jit(lambda x: io_callback(doubled, scalar, x, ordered=True))
        return inner(x) + inner(x)

    @corpus.program(floats())
    def in_scan(x):
        def step(carry, _):
            carry = io_callback(doubled, scalar, carry, ordered=True)
            return carry, jax.pure_callback(doubled, scalar, carry)

        return lax.scan(step, x, None, length=3)

    @corpus.program(floats())
    def in_while_loop(x):
        return lax.while_loop(
            lambda x: x < 100,
            lambda x: io_callback(lambda x: np.abs(x) * 2 + 1, scalar, x, ordered=True),
            x,
        )

    @corpus.program(floats())
    def in_the_condition_of_a_while_loop(x):
        def goes_on(x):
            return io_callback(np.asarray, scalar, x, ordered=True) < 10

        return lax.while_loop(goes_on, lambda x: x + 3, x)

    @corpus.program(True, floats())
    def in_cond(which, x):
        return lax.cond(
            which, lambda x: io_callback(doubled, scalar, x, ordered=True), lambda x: x, x
        )


def what_callbacks_see(corpus, jax, lax, io_callback):
    """Programs that return what their callbacks saw, in order."""

    def tells(program):
        def telling(*args):
            seen = []
            result = jax.jit(lambda *args: program(seen.append, *args))(*args)
            jax.block_until_ready(result)
            jax.effects_barrier()
            return result, [np.asarray(x) for x in seen]

        corpus.add(program.__name__, telling, floats(3), modes=("value",))
        return program

    @tells
    def seen_in_scan(see, x):
        def step(carry, x):
            jax.debug.callback(see, carry, ordered=True)
            return carry + x, x

        return lax.scan(step, 0.0, x)

    @tells
    def seen_in_loops_and_branches(see, x):
        def step(i, x):
            even = jax.lax.rem(i, 2) == 0

            def show(x):
                jax.debug.callback(see, x, ordered=True)
                return x * 2

            return lax.cond(even, show, lambda x: x + 1, x)

        return lax.fori_loop(0, 4, step, x)

    @tells
    def seen_in_calls(see, x):
        inner = jax.jit(lambda x: (jax.debug.callback(see, x, ordered=True), x + 1)[1])
        return inner(inner(x))

    @tells
    def seen_under_vmap(see, x):
        return jax.vmap(lambda x: (jax.debug.callback(see, x, ordered=True), x + 1)[1])(x)

    @tells
    def seen_under_vmap_of_scan(see, x):
        def step(carry, _):
            jax.debug.callback(see, carry, ordered=True)
            return carry + 1, None

        return jax.vmap(lambda x: lax.scan(step, x, None, length=2)[0])(x)

    @tells
    def seen_under_vmap_of_while_loop(see, x):
        def step(x):
            jax.debug.callback(see, x, ordered=True)
            return x + 1

        return jax.vmap(lambda x: lax.while_loop(lambda x: x < 2, step, x))(x)

    @tells
    def seen_under_grad_of_scan(see, x):
        def step(carry, x):
            jax.debug.callback(see, carry, ordered=True)
            return carry * x, None

        return jax.grad(lambda x: lax.scan(step, 2.0, x)[0])(x)

    @tells
    def seen_under_grad_of_cond(see, x):
        def show(x):
            jax.debug.callback(see, x, ordered=True)
            return lax.sin(x)

        return jax.grad(lambda x: lax.cond(x[0] < 10, show, lambda x: x, x).sum())(x)

    @tells
    def seen_under_jvp_of_while_loop(see, x):
        def step(x):
            jax.debug.callback(see, x, ordered=True)
            return x * 2 + 1

        return jax.jvp(lambda x: lax.while_loop(lambda x: x.sum() < 9, step, x), (x,), (x,))

    @tells
    def seen_in_a_custom_derivative(see, x):
        @jax.custom_vjp
        def clipped(x):
            return x

        def backward(_, cotangent):
            jax.debug.callback(see, cotangent, ordered=True)
            return (cotangent * 2,)

        clipped.defvjp(lambda x: (x, None), backward)
        return jax.grad(lambda x: (clipped(x) * x).sum())(x)

    @tells
    def values_of_io_callback_in_loops(see, x):
        scalar = jax.ShapeDtypeStruct((), np.float32)

        def noted(x):
            see(x)
            return np.asarray(x) + 1

        def goes_on(x):
            return io_callback(noted, scalar, x, ordered=True) < 5

        def step(x):
            return io_callback(noted, scalar, x, ordered=True)

        return lax.while_loop(goes_on, step, np.float32(0))


def refused(corpus, jax, io_callback):
    scalar = jax.ShapeDtypeStruct((), np.float32)
    transformations = {
        "grad": jax.grad,
        "grad_of_jit": lambda f: jax.grad(jax.jit(f)),
        "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        "linear_transpose": lambda f: lambda x: jax.linear_transpose(f, x)(x),
        "vmap": lambda f: lambda x: jax.vmap(f)(jax.numpy.ones(3) * x),
    }
    calls = {
        "pure": lambda x: jax.pure_callback(doubled, scalar, x),
        "ordered_io": lambda x: io_callback(doubled, scalar, x, ordered=True),
    }
    for name, call in calls.items():
        for kind, transform in transformations.items():
            corpus.add(
                f"{kind}_of_{name}_callback",
                lambda x, call=call, transform=transform: transform(call)(x),
                np.float32(2),
                modes=("value",),
            )

    def fails(x):
        raise KeyError("mine")

    for mode in ("value", "jit"):
        for name, call in {
            "pure": lambda x: jax.pure_callback(fails, scalar, x),
            "io": lambda x: io_callback(fails, scalar, x),
            "debug": lambda x: (jax.debug.callback(fails, x, ordered=True), x)[1],
        }.items():
            corpus.add(f"failing_{name}_{mode}", call, np.float32(1), modes=(mode,))

    for name, returned in {
        "another_dtype": np.int32(1),
        "another_shape": np.ones(3, np.float32),
        "too_many": (1.0, 2.0),
        "nothing": None,
        "text": "text",
        "python_float": 1.5,
        "list": [1.5],
        "python_int": 1,
    }.items():
        corpus.add(
            f"returning_{name}",
            lambda x, returned=returned: jax.pure_callback(lambda x: returned, scalar, x),
            np.float32(1),
            modes=("value", "jit"),
        )

    for name, format_and_values in {
        "unused": ("{}", 1, 2),
        "too_few": ("{} {}", 1),
        "malformed": ("{", 1),
        "no_format": (3,),
        "attribute": ("{.shape}", 3),
    }.items():
        corpus.add(
            f"printing_{name}", lambda a=format_and_values: jax.debug.print(*a), modes=("value",)
        )
