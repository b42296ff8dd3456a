"""Branches and loops of unknown length: cond, switch, while_loop, fori_loop, platform_dependent."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bools, floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "value", "jit"))
    branches(corpus, jax, jnp, lax)
    loops(corpus, jax, jnp, lax)
    ranges(corpus, jnp, lax)
    platforms(corpus, jnp, lax)
    derivatives(corpus, jax, jnp, lax)
    batches(corpus, jax, jnp, lax)
    refused(corpus, jax, jnp, lax)
    return corpus


# ---- cond and switch -----------------------------------------------------------------------------


def branches(corpus, jax, jnp, lax):
    x, y = floats(3), unit(3)

    @corpus.program(x)
    def cond_of_a_comparison(x):
        return lax.cond(x[0] > 0, jnp.sin, lambda x: x * 2, x)

    for name, pred in {
        "true": True,
        "int": 2,
        "zero": 0.0,
        "int8": np.int8(1),
        "float16": np.float16(0),
        "array": np.array(1.5),
    }.items():
        corpus.add(f"cond_of_{name}", lambda x, p=pred: lax.cond(p, jnp.sin, jnp.cos, x), x)
        corpus.add(
            f"cond_of_argument_{name}", lambda x, p: lax.cond(p, lax.sin, lax.cos, x), x, pred
        )

    @corpus.program(x, y)
    def operands_of_each_branch(x, y):
        return lax.cond(x[0] > 0, x, jnp.sin, y, jnp.cos)

    @corpus.program(x)
    def operand_by_keyword(x):
        return (
            lax.cond(x[0] > 0, jnp.sin, jnp.cos, operand=x),
            lax.cond(x[0] > 0, lambda _: x, lambda _: x * 2, operand=None),
            lax.switch(2, [jnp.sin, jnp.cos], operand=x),
        )

    @corpus.program({"a": x, "b": [y, None]}, 1.5)
    def trees(tree, scale):
        return lax.cond(
            scale > 1,
            lambda t, s: {"sum": t["a"] + s, "rest": (t["b"], s)},
            lambda t, s: {"sum": t["b"][0], "rest": (t["b"], s * 2)},
            tree,
            scale,
        )

    @corpus.program(x, y)
    def closures(x, y):
        return lax.cond(
            x[0] > 0,
            lambda: (x + y, np.arange(3)),
            lambda: (y * np.ones(3, np.float32), np.arange(3) * y.astype(int)),
        )

    @corpus.program(x, y)
    def a_closure_that_is_an_operand_too(x, y):
        return lax.cond(x[0] > 0, lambda z: x + y * z, lambda z: y * z, y)

    @corpus.program(x, y, 1)
    def closures_of_many_branches(a, b, i):
        return lax.switch(i, [lambda z: z * b, lambda z: z * a + b, lambda z: -z], a)

    @corpus.program(x, y)
    def outputs_that_are_inputs(x, y):
        return lax.cond(
            x[0] > 0,
            lambda a, b: (a, b, a + b, x),
            lambda a, b: (a, a, a - b, x),
            x,
            y,
        )

    @corpus.program(x, y)
    def only_outputs_that_are_inputs(x, y):
        return lax.cond(x[0] > 0, lambda a, b: a, lambda a, b: a, x, y)

    @corpus.program(2.0, np.float32(3))
    def weak_and_strong(w, s):
        return (
            lax.cond(True, lambda: w, lambda: s),
            lax.cond(True, lambda: s, lambda: w),
            lax.cond(False, lambda: 1, lambda: np.int32(2)),
            lax.cond(w > 1, lambda: w, lambda: w * 2),
        )

    @corpus.program(x)
    def one_function_twice(x):
        def double(x):
            return x * 2

        first = lax.cond(x[0] > 0, double, double, x)
        return lax.cond(x[0] > 1, double, jnp.sin, first)

    @corpus.program(x, y)
    def nested(x, y):
        return lax.cond(
            x[0] > 0,
            lambda z: lax.cond(z[0] > 1, lambda: x, lambda: y + z),
            lambda z: lax.switch(jnp.int32(z[0]), [lambda: z, lambda: x * z]),
            y,
        )

    for name, index in {
        "negative": -3,
        "large": 7,
        "uint8": np.uint8(1),
        "int64": np.int64(2),
        "strong": np.int32(1),
    }.items():
        corpus.add(
            f"switch_of_{name}",
            lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, lambda x: -x], x),
            x,
            index,
        )

    @corpus.program(x, 1)
    def switch_of_one(x, i):
        return lax.switch(i, [jnp.sin], x)

    @corpus.program(x)
    def switch_of_a_known_index(x):
        return lax.switch(1, [jnp.sin, jnp.cos, jnp.tanh], x)

    @corpus.program(x, modes=("value",))
    def without_jit(x):
        with jax.disable_jit():
            return (
                lax.cond(x[0] > 0, lambda x: "yes", lambda x: "no", x),
                lax.switch(5, [lambda: "first", lambda: "last"]),
                lax.while_loop(lambda s: s < 10, lambda s: s + 1.5, 0),
                lax.fori_loop(0, 3, lambda i, s: s + i, 0),
                lax.fori_loop(3, 0, lambda i, s: s + i, 2),
                jax.grad(lambda x: lax.while_loop(lambda s: s < 10, lambda s: s * 2, x))(1.0),
            )


# ---- while_loop ----------------------------------------------------------------------------------


def loops(corpus, jax, jnp, lax):
    x, y = floats(3), unit(3)

    @corpus.program(27)
    def collatz(n):
        def step(state):
            count, n = state
            return count + 1, lax.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)

        return lax.while_loop(lambda state: state[1] > 1, step, (0, n))

    @corpus.program(2.0, tolerance=1e-5)
    def newton(a):
        def step(state):
            x, _ = state
            new = x - (x * x - a) / (2 * x)
            return new, jnp.abs(new - x)

        return lax.while_loop(lambda state: state[1] > 1e-4, step, (a, jnp.inf))

    @corpus.program(x, y)
    def closures_in_a_loop(x, y):
        return lax.while_loop(
            lambda s: (s[0] < 10) & (y[0] < s[0] + 9),
            lambda s: (s[0] + 1, y * jnp.sin(s[1]) + x),
            (0, x),
        )

    @corpus.program(x)
    def arrays_in_a_loop(x):
        return lax.while_loop(
            lambda s: (s < np.arange(3.0)).all(), lambda s: s + np.arange(3.0) + np.ones(3), x
        )

    @corpus.program(x)
    def members_that_stay(x):
        return lax.while_loop(
            lambda s: s["i"] < s["end"],
            lambda s: {**s, "i": s["i"] + 1, "x": s["x"] * s["scale"] + x},
            {"i": 0, "end": 4, "x": x, "scale": x + 1, "unused": 2.0},
        )

    @corpus.program(x[0], 1)
    def weak_members(x, n):
        return (
            lax.while_loop(lambda s: s < 10, lambda s: s + np.float32(1), 0.0),
            lax.while_loop(lambda s: s < 10, lambda s: s + 1.5, 0),
            lax.while_loop(lambda s: s < 10, lambda s: s + 1.5, n),
            lax.while_loop(lambda s: s < 10, lambda s: s + np.int8(1), n),
            lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + s[1], s[1] + x + 1), (0.0, 1.0)),
            lax.while_loop(lambda s: s < 0.5, lambda s: 1.0, x),
        )

    @corpus.program(x)
    def loops_in_loops(x):
        def outer(state):
            i, x = state
            _, x = lax.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, jnp.cos(s[1])), (0, x))
            return i + 1, x

        return lax.while_loop(lambda s: s[0] < 4, outer, (0, x))

    @corpus.program(modes=("jaxpr",))
    def nothing_carried():
        return lax.while_loop(lambda s: True, lambda s: (), ())

    @corpus.program(x)
    def loops_in_jit_in_scan(x):
        halve = jax.jit(lambda x: lax.while_loop(lambda s: s > 1, lambda s: s / 2, x))
        return lax.scan(lambda c, x: (c + halve(x * 9), c), 0.0, x)

    @corpus.program(12, 18)
    def greatest_common_divisor(a, b):
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]


def ranges(corpus, jnp, lax):
    x = floats(3)

    def add(i, s):
        return s + i

    for name, bounds in {
        "static": (0, 5),
        "numpy": (np.int32(1), np.int32(4)),
        "int8_and_python": (0, np.int8(3)),
        "empty": (5, 2),
        "bools": (False, True),
    }.items():
        corpus.add(f"range_{name}", lambda x, b=bounds: lax.fori_loop(*b, add, x), x)
    for name, bounds in {
        "python": (0, 5),
        "strong": (0, np.int32(5)),
        "int8": (0, np.int8(5)),
        "lower_strong": (np.int32(1), 5),
        "float": (0.0, 3.0),
    }.items():
        corpus.add(
            f"range_of_arguments_{name}", lambda x, a, b: lax.fori_loop(a, b, add, x), x, *bounds
        )
        corpus.add(
            f"range_to_argument_{name}",
            lambda x, b, a=bounds[0]: lax.fori_loop(a, b, add, x),
            x,
            bounds[1],
        )

    @corpus.program(x, 3)
    def range_with_a_tree(x, n):
        def step(i, s):
            return {"sum": s["sum"] + s["x"] * i, "x": s["x"]}

        first = {"sum": jnp.zeros(3), "x": jnp.asarray(x)}
        return lax.fori_loop(0, n, step, first), lax.fori_loop(0, 3, step, first)

    @corpus.program(x)
    def range_unrolled(x):
        return lax.fori_loop(0, 5, add, x, unroll=2), lax.fori_loop(0, 3, add, x, unroll=True)

    @corpus.program(np.int8(1), 3)
    def range_number_is_weak(x, n):
        return lax.fori_loop(0, 3, add, x), lax.fori_loop(0, n, add, x)

    @corpus.program(x[0], 3)
    def range_with_weak_init(x, n):
        step = lambda i, s: s + x * i
        return lax.fori_loop(0, n, step, 0.0), lax.fori_loop(0, 3, step, 0.0)


def platforms(corpus, jnp, lax):
    x = floats(3)

    @corpus.program(x)
    def by_platform(x):
        return lax.platform_dependent(
            x, cpu=jnp.sin, cuda=jnp.cos, tpu=jnp.sin, default=lambda x: x * 2
        )

    @corpus.program(x)
    def by_platform_default(x):
        return lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos)

    @corpus.program(x)
    def by_platform_one(x):
        return lax.platform_dependent(x, cpu=lambda x: {"a": x, "b": x * 2})

    def scaled(x, *, factor, add=0.0):
        return {"scaled": x * factor, "sum": x + add}

    @corpus.program(x)
    def composite(x):
        return lax.composite(scaled, name="test.scaled", version=2)(x, factor=2, add=np.ones(3))

    @corpus.program(x)
    def composites_of_attributes(x):
        def f(x, *, shape, name, flag):
            return x.reshape(shape)

        return lax.composite(f, name="test.reshaped")(x, shape=(3, 1), name="n", flag=True)


# ---- under transformations -----------------------------------------------------------------------


def derivatives(corpus, jax, jnp, lax):
    x, y = floats(3), unit(3)
    modes = ("value", "jit", "equations")

    def branching(x, y):
        return lax.cond(
            x[0] > 0, lambda: jnp.sin(x) * y * jnp.tanh(x), lambda: x * y + jnp.exp(x)
        ).sum()

    @corpus.program(x, y, modes=modes)
    def grad_of_cond(x, y):
        both = jax.grad(branching, argnums=(0, 1))
        return both(x, y), both(-x, y), jax.jvp(branching, (x, y), (y, x))

    @corpus.program(x, y, modes=modes, tolerance=1e-5)
    def hessian_of_cond(x, y):
        return jax.hessian(branching)(x, y), jax.jacrev(jax.jacfwd(branching))(-x, y)

    @corpus.program(x, modes=modes)
    def grad_of_a_branch_without_derivative(x):
        f = lambda x: lax.cond(x[0] > 0, lambda x: jnp.zeros(3), jnp.exp, x).sum()
        return jax.grad(f)(x), jax.grad(f)(-x), jax.jvp(f, (x,), (x,))

    @corpus.program(x, 1, modes=modes)
    def grad_of_switch(x, i):
        f = lambda x: lax.switch(i, [jnp.sin, lambda x: x * x, lambda x: x], x).sum()
        return jax.value_and_grad(f)(x)

    @corpus.program(x, modes=modes)
    def grad_of_a_cond_that_saves_from_nan(x):
        f = lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x)
        return jax.vmap(jax.grad(f))(x), jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.zeros(3))

    @corpus.program(x, y, modes=modes)
    def grad_of_cond_in_scan(x, y):
        def step(carry, a):
            carry = lax.cond(a > 0, lambda c: jnp.sin(c) * a, lambda c: c * y, carry)
            return carry, carry.sum()

        return jax.grad(lambda x: lax.scan(step, x, y)[1].sum())(x)

    @corpus.program(x, y, modes=modes)
    def forward_through_a_loop(x, y):
        f = lambda x, y: lax.while_loop(
            lambda s: s[0] < 4, lambda s: (s[0] + 1, jnp.sin(s[1]) * y), (0, x)
        )[1]
        return (
            jax.jvp(f, (x, y), (y, x)),
            jax.jacfwd(f)(x, y),
            jax.linearize(f, x, y)[1](y, x),
            jax.jvp(lambda x: jax.jvp(lambda x: f(x, y), (x,), (y,)), (x,), (x,)),
        )

    @corpus.program(1.5, modes=modes)
    def grad_past_a_loop(x):
        def f(x):
            n = lax.while_loop(lambda n: n < x * 3, lambda n: n + 1, 0)
            kept = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (1, x))[1]
            return x * n + kept

        return jax.value_and_grad(f)(x)

    @corpus.program(x, modes=modes)
    def grad_of_a_static_range(x):
        f = lambda x: lax.fori_loop(0, 4, lambda i, s: jnp.sin(s) * x + i, x).sum()
        return jax.value_and_grad(f)(x)

    @corpus.program(x, modes=modes)
    def grad_by_platform(x):
        f = lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.exp).sum()
        return jax.grad(f)(x), jax.vmap(jax.grad(lambda x: f(x[None])))(x)


def batches(corpus, jax, jnp, lax):
    x, y = floats(4, 3), unit(4, 3)
    modes = ("value", "jit", "equations")

    def branching(p, x, y):
        return lax.cond(
            p, lambda x, y: (jnp.sin(x), y, x.sum()), lambda x, y: (x, y * 2, 1.0), x, y
        )

    for name, axes in {
        "all": (0, 0, 0),
        "the_predicate": (0, None, None),
        "an_operand": (None, 0, None),
        "the_other_operand": (None, None, 1),
    }.items():
        p = bools(4) if axes[0] == 0 else True
        operands = [
            a if axis == 0 else a.T if axis == 1 else a[0]
            for a, axis in zip((x, y), axes[1:], strict=True)
        ]
        corpus.add(f"cond_over_{name}", jax.vmap(branching, axes), p, *operands, modes=modes)

    @corpus.program(ints(4) % 3, x, modes=modes)
    def switch_over_the_index(i, x):
        f = lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: -x], x)
        return jax.vmap(f)(i, x), jax.vmap(f, (0, None))(i, x[0])

    def looping(x, y):
        return lax.while_loop(
            lambda s: s[0].sum() < 5, lambda s: (s[0] * 1.5 + jnp.abs(y), s[1] + 1), (x, 0)
        )

    for name, axes in {"both": (0, 0), "what_it_reads": (None, 0), "the_carry": (1, None)}.items():
        operands = [
            a if axis == 0 else a.T if axis == 1 else a[0]
            for a, axis in zip((x, y), axes, strict=True)
        ]
        corpus.add(f"loop_over_{name}", jax.vmap(looping, axes), *operands, modes=modes)

    @corpus.program(x, y, modes=modes)
    def loop_over_two_axes(x, y):
        return jax.vmap(jax.vmap(looping, (0, None)), (None, 0))(x, y)

    @corpus.program(x, modes=modes)
    def loop_of_as_many_steps_for_all(x):
        f = lambda x: lax.fori_loop(0, jnp.int32(3), lambda i, s: s * x + i, x)
        return jax.vmap(f)(x), jax.jvp(jax.vmap(f), (x,), (x,))


# ---- what is refused -----------------------------------------------------------------------------


def refused(corpus, jax, jnp, lax):
    x = floats(3)
    identity = lambda s: s
    for name, function in {
        "predicate_of_many": lambda: lax.cond(x > 0, jnp.sin, jnp.cos, x),
        "predicate_of_none": lambda: lax.cond(None, jnp.sin, jnp.cos, x),
        "predicate_of_text": lambda: lax.cond("yes", jnp.sin, jnp.cos, x),
        "predicate_of_a_list": lambda: lax.cond([True], jnp.sin, jnp.cos, x),
        "predicate_of_complex": lambda: lax.cond(1j, jnp.sin, jnp.cos, x),
        "predicate_of_bfloat16": lambda: lax.cond(jnp.bfloat16(1), jnp.sin, jnp.cos, x),
        "branch_that_is_no_function": lambda: lax.cond(True, jnp.sin, 3, x),
        "operand_given_twice": lambda: lax.cond(True, jnp.sin, jnp.cos, x, operand=x),
        "operand_of_text": lambda: lax.cond(True, identity, identity, "a"),
        "branches_of_dtypes": lambda: lax.cond(True, lambda: 1, lambda: jnp.float32(1)),
        "branches_of_shapes": lambda: lax.cond(True, lambda: x, lambda: x[:2]),
        "branches_of_trees": lambda: lax.cond(True, lambda: (x,), lambda: [x]),
        "branches_of_none": lambda: lax.cond(True, lambda: (x, None), lambda: (x, x)),
        "branch_that_returns_text": lambda: lax.cond(True, lambda: "a", lambda: x),
        "switch_of_none": lambda: lax.switch(1, [], x),
        "switch_of_a_float": lambda: lax.switch(1.0, [jnp.sin, jnp.cos], x),
        "switch_of_a_bool": lambda: lax.switch(True, [jnp.sin, jnp.cos], x),
        "switch_of_many": lambda: lax.switch(np.arange(3), [jnp.sin, jnp.cos], x),
        "switch_of_other_than_functions": lambda: lax.switch(1, [jnp.sin, 1], x),
        "switch_of_shapes": lambda: lax.switch(1, [jnp.sin, jnp.sum], x),
        "carry_of_a_new_dtype": lambda: lax.while_loop(
            lambda s: s < 3, lambda s: s * 1.5, jnp.int32(0)
        ),
        "carry_of_a_new_shape": lambda: lax.while_loop(lambda s: True, lambda s: s[:1], x),
        "carry_of_a_new_tree": lambda: lax.while_loop(lambda s: True, lambda s: (s,), x),
        "carry_that_would_promote_twice": lambda: lax.while_loop(
            lambda s: s[0] < 9, lambda s: (s[0] + s[1], s[1] + np.float32(1)), (1, 1)
        ),
        "condition_of_an_int": lambda: lax.while_loop(identity, lambda s: s + 1, 0),
        "condition_of_many": lambda: lax.while_loop(lambda s: s < 1, identity, x),
        "condition_of_a_pair": lambda: lax.while_loop(lambda s: (True, s), identity, 0),
        "condition_of_none": lambda: lax.while_loop(lambda s: None, identity, 0),
        "condition_that_is_no_function": lambda: lax.while_loop(True, identity, 0),
        "carry_of_text": lambda: lax.while_loop(lambda s: True, identity, "a"),
        "range_of_a_float": lambda: lax.fori_loop(0, 2.5, lambda i, s: s, x),
        "range_of_two_dtypes": lambda: lax.fori_loop(np.int32(0), np.int8(3), lambda i, s: s, x),
        "range_of_uint8": lambda: lax.fori_loop(0, np.uint8(3), lambda i, s: s, x),
        "range_of_many": lambda: lax.fori_loop(0, np.arange(3), lambda i, s: s, x),
        "range_too_large": lambda: lax.fori_loop(2**40, 2**40 + 1, lambda i, s: s, x),
        "range_without_a_function": lambda: lax.fori_loop(0, 3, 3, x),
        "range_unrolled_backwards": lambda: lax.fori_loop(0, 3, lambda i, s: s, x, unroll=-1),
        "range_unknown_and_unrolled": lambda: jax.jit(
            lambda n: lax.fori_loop(0, n, lambda i, s: s, x, unroll=2)
        )(3),
        "reverse_through_a_loop": lambda: jax.grad(
            lambda x: lax.while_loop(lambda s: s < 3, lambda s: s + 1, x)
        )(1.0),
        "reverse_through_a_range": lambda: jax.jit(
            lambda n: jax.grad(lambda x: lax.fori_loop(0, n, lambda i, s: s * 2, x))(1.0)
        )(3),
        "platform_gpu": lambda: lax.platform_dependent(x, gpu=jnp.sin, default=jnp.cos),
        "platform_without_a_branch": lambda: lax.platform_dependent(x, tpu=jnp.sin),
        "composite_of_no_function": lambda: lax.composite(3, name="a.b")(x),
        "composite_of_a_traced_attribute": lambda: jax.jit(
            lambda x: lax.composite(lambda x, *, n: x * n, name="a.b")(x, n=x)
        )(x),
        "composite_of_a_traced_closure": lambda: jax.jit(
            lambda x: lax.composite(lambda: x * 2, name="a.b")()
        )(x),
        "composite_of_an_array": lambda: lax.composite(lambda x, *, n: x * n, name="a.b")(
            x, n=jnp.ones(3)
        ),
        "composite_of_an_array_traced": lambda: jax.jit(
            lambda x, n=jnp.ones(3): lax.composite(lambda x, *, n: x * n, name="a.b")(x, n=n)
        )(x),
        "composite_without_a_namespace": lambda: jax.jit(lax.composite(jnp.sin, name="a"))(x),
        "grad_of_composite": lambda: jax.grad(lax.composite(jnp.sin, name="a.b"))(1.0),
        "vmap_of_composite": lambda: jax.vmap(lax.composite(jnp.sin, name="a.b"))(x),
    }.items():
        corpus.add(name, function, modes=("value",))
