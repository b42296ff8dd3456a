"""Loops of a known number of steps: scan, map and associative_scan."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "jit"))
    plain(corpus, jnp, lax)
    weak_types(corpus, jnp, lax)
    forwarding(corpus, jnp, lax)
    mapping(corpus, jnp, lax)
    associative(corpus, jnp, lax)
    nested(corpus, jax, jnp, lax)
    errors(corpus, jnp, lax)
    return corpus


def plain(corpus, jnp, lax):
    @corpus.program(floats(3), floats(5, 3))
    def sums_so_far(init, xs):
        return lax.scan(lambda c, x: (c + x, c * 2), init, xs)

    @corpus.program(floats(3), floats(5, 3))
    def in_reverse(init, xs):
        return lax.scan(lambda c, x: (c * 0.5 + x, c - x), init, xs, reverse=True)

    @corpus.program(floats(2))
    def without_xs(init):
        return lax.scan(lambda c, _: (jnp.sin(c), None), init, None, length=4)

    @corpus.program(floats(2), np.float32(3))
    def length_and_xs(x, y):
        return lax.scan(lambda c, x: (c * x, (x, c)), y, x, length=2)

    @corpus.program({"w": floats(3, 3), "b": unit(3)}, floats(4, 3), ints(4))
    def trees(params, xs, n):
        def step(carry, x):
            h = jnp.tanh(params["w"] @ carry["h"] + x["x"] + params["b"])
            return {"n": carry["n"] + 1, "h": h}, {"out": (h, x["i"]), "none": None}

        return lax.scan(step, {"n": 0, "h": xs[0]}, {"x": xs, "i": n})

    for unroll in (0, 2, 3, 5, 9, True, False):
        for reverse in (False, True):

            def unrolled(init, xs, unroll=unroll, reverse=reverse):
                def step(c, x):
                    return c * 0.5 + x, c - x

                return lax.scan(step, init, xs, unroll=unroll, reverse=reverse)

            name = f"unrolled_{unroll}{'_in_reverse' if reverse else ''}"
            corpus.add(name, unrolled, floats(3), floats(5, 3))

    @corpus.program(floats(3), floats(5, 3))
    def long_step_unrolled(init, xs):
        def step(c, x):
            for i in range(3):
                c = jnp.sin(c + x * i)
            return c, (c, x * 2)

        return lax.scan(step, init, xs, unroll=2)

    @corpus.program(floats(3))
    def no_steps(x):
        return lax.scan(lambda c, x: (c + x, c), x, np.zeros((0, 3), np.float32))

    @corpus.program(floats(3))
    def no_steps_unrolled(x):
        return lax.scan(lambda c, x: (c + 1, c), x, None, length=0, unroll=True)

    @corpus.program(floats(0, 2), floats(3, 0, 2))
    def no_elements(x, xs):
        return lax.scan(lambda c, x: (c + x, x * 2), x, xs)

    @corpus.program(floats(3), floats(1, 3))
    def one_step(x, xs):
        return lax.scan(lambda c, x: (c + x, c), x, xs)

    @corpus.program(ints(3), floats(3, dtype=bf16), unit(3, dtype=np.float16))
    def several_dtypes(n, b, h):
        return lax.scan(lambda c, x: (c + x[0], (x[1] * 2, x[2] > c)), 3, (n, b, h))

    @corpus.program(floats(4))
    def constants_of_all_kinds(x):
        table = np.arange(4.0, dtype=np.float32)
        return lax.scan(
            lambda c, i: (c * x[0] + table[i] + 2.5 + np.float32(3), c), 0.5, np.arange(4)
        )

    @corpus.program(floats(3), floats(5, 3))
    def lists_and_pairs(init, xs):
        return lax.scan(lambda c, x: [c + x, [c]], init, xs)

    @corpus.program(floats(4, 3), modes=("value",), x64=True)
    def in_double_precision(xs):
        xs = xs.astype(np.float64)
        return lax.scan(lambda c, x: (c + x, jnp.sin(c)), jnp.zeros(3), xs)


def weak_types(corpus, jnp, lax):
    kinds = {"int": 1, "float": 1.0, "complex": 1j, "bool": True}
    for kind, init in kinds.items():
        for dtype in ("int8", "bfloat16", "float32", "complex64"):

            def promoted(x, init=init, dtype=dtype):
                step = lambda c, _: (jnp.asarray(x, dtype) + 0, c)
                return lax.scan(step, init, None, length=2)

            corpus.add(f"{kind}_becomes_{dtype}", promoted, 3)

    @corpus.program(1, 2.0)
    def arguments_that_give_way(n, x):
        def step(c, _):
            return (c[0] * jnp.float32(2), c[1] * jnp.float32(3)), c

        return lax.scan(step, (n, x), None, length=2)

    @corpus.program(1)
    def weak_int_to_weak_float(n):
        return lax.scan(lambda c, _: (c * 1.5, c), n, None, length=2)

    @corpus.program(floats())
    def strong_carry_returned_weak(x):
        return lax.scan(lambda c, _: (3.0, c), x, None, length=2)

    @corpus.program(floats(2), instead=None)
    def weak_array(x):
        init = jnp.full((2,), 1.0)
        return lax.scan(lambda c, x: (c * x, c), init, x.astype(bf16))


def forwarding(corpus, jnp, lax):
    @corpus.program(1.0, 2.0, floats(3), 4.0, floats(3, 3), floats(5, 3))
    def carries_and_xs_that_come_back(a, b, c, d, w, xs):
        def step(c, x):
            return (c[0], c[1] + 1, c[2] @ w, c[3]), (c[0], c[3], w, x, c[2])

        return lax.scan(step, (a, b, c, d), xs)

    @corpus.program(1.0, 2.0)
    def nothing_but_carries_that_come_back(a, b):
        return lax.scan(lambda c, _: (c, None), (a, b), None, length=3)

    @corpus.program(1.0, 2.0)
    def carries_that_swap(a, b):
        return lax.scan(lambda c, _: (c[::-1], c[0]), (a, b), None, length=3)

    @corpus.program(floats(3))
    def xs_that_come_back(x):
        return lax.scan(lambda c, i: (c + i, i), x, jnp.arange(3))


def mapping(corpus, jnp, lax):
    @corpus.program(floats(5, 3))
    def mapped(xs):
        return lax.map(lambda x: x * 2, xs)

    @corpus.program({"a": floats(5, 3), "b": ints(5)})
    def mapped_trees(xs):
        return lax.map(lambda x: (x["a"] * x["b"], {"n": x["b"]}), xs)

    for size in (0, 1, 2, 5, 8):

        def in_batches(xs, size=size):
            return lax.map(lambda x: (jnp.sin(x[0]) + x[1], x[1]), (xs, xs), batch_size=size)

        corpus.add(f"mapped_in_batches_of_{size}", in_batches, floats(5, 3))

    @corpus.program(np.zeros((0, 3), np.float32))
    def mapped_nothing(xs):
        return lax.map(lambda x: x * 2, xs, batch_size=2)


def associative(corpus, jnp, lax):
    for size in (1, 2, 3, 4, 7, 8):
        corpus.add(
            f"associative_{size}", lambda x: lax.associative_scan(jnp.add, x), floats(size, 2)
        )

    @corpus.program(floats(3, 5))
    def associative_in_reverse_along_an_axis(x):
        return lax.associative_scan(jnp.multiply, x, reverse=True, axis=1)

    @corpus.program(unit(6, 2), floats(6, 2))
    def linear_recurrence(a, b):
        return lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, b))

    @corpus.program({"m": floats(4, 2, 2)})
    def products_of_matrices(tree):
        return lax.associative_scan(lambda a, b: {"m": b["m"] @ a["m"]}, tree)


def nested(corpus, jax, jnp, lax):
    @corpus.program(floats(3, 3), floats(3), floats(4, 3))
    def scan_of_scan(w, c, xs):
        def outer(c, x):
            return lax.scan(lambda d, y: (d @ w + y, y * c), c, xs)

        return lax.scan(outer, c, None, length=2)

    @corpus.program(floats(3), floats(4, 3))
    def jit_in_scan_in_jit(c, xs):
        @jax.jit
        def cell(c, x):
            return jnp.tanh(c + x)

        @jax.jit
        def run(c, xs):
            return lax.scan(lambda c, x: (cell(c, x), cell(x, c)), c, xs)

        return run(c, xs)

    @corpus.program(floats(3), floats(4, 3))
    def cond_in_scan(c, xs):
        def step(c, x):
            return lax.cond(x[0] > 0, lambda c: c + x, lambda c: c * 2, c), None

        return lax.scan(step, c, xs)

    @corpus.program(floats(3), floats(4, 3))
    def scan_in_cond_in_scan(c, xs):
        def inner(c):
            return lax.scan(lambda c, x: (jnp.sin(c) + x, None), c, xs)[0]

        def step(c, x):
            return lax.cond(x[0] > 0, inner, lambda c: c * 2, c), x[1]

        return lax.scan(step, c, xs)

    @corpus.program(floats(3), floats(4, 3))
    def while_in_scan(c, xs):
        def step(c, x):
            last = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, c))
            return last[1] * 0.5, last[0]

        return lax.scan(step, c, xs)

    @corpus.program(floats(3), floats(4, 3))
    def scan_in_while(c, xs):
        def body(s):
            return s[0] + 1, lax.scan(lambda c, x: (jnp.sin(c) + x, None), s[1], xs)[0]

        return lax.while_loop(lambda s: s[0] < 3, body, (0, c))

    @corpus.program(floats(3))
    def fori_in_scan(c):
        def step(c, i):
            return lax.fori_loop(0, 3, lambda j, c: c * 0.5 + j, c) + i, None

        return lax.scan(step, c, jnp.arange(3))


def errors(corpus, jnp, lax):
    x, xs = floats(3), floats(4, 3)

    def add(name, function, **options):
        corpus.add(name, function, modes=("value", "jit"), **options)

    add("not_callable", lambda: lax.scan(3, x, xs))
    add("no_pair", lambda: lax.scan(lambda c, x: c, x, xs))
    add("three_results", lambda: lax.scan(lambda c, x: (c, c, c), x, xs))
    add("nothing_returned", lambda: lax.scan(lambda c, x: None, x, xs))
    add("other_shape", lambda: lax.scan(lambda c, x: (c[:2], None), x, xs))
    add("other_dtype", lambda: lax.scan(lambda c, x: (c.astype(int), None), x, xs))
    add("strong_int_and_weak_float", lambda: lax.scan(lambda c, x: (1.0, None), jnp.int32(1), xs))
    add("other_structure", lambda: lax.scan(lambda c, x: ((c, c), None), x, xs))
    add("another_key", lambda: lax.scan(lambda c, x: ({"b": c["a"]}, None), {"a": x}, xs))
    add("lengths_differ", lambda: lax.scan(lambda c, x: (c, None), x, (xs, xs[:2])))
    add("length_disagrees", lambda: lax.scan(lambda c, x: (c, None), x, xs, length=3))
    add("no_length", lambda: lax.scan(lambda c, x: (c, None), x))
    add("no_axis", lambda: lax.scan(lambda c, x: (c, None), x, 3.0))
    add("xs_not_an_array", lambda: lax.scan(lambda c, x: (c, None), x, "text"))
    add("init_not_an_array", lambda: lax.scan(lambda c, x: (c, None), "text", xs))
    add("result_not_an_array", lambda: lax.scan(lambda c, x: (c, "text"), x, xs))
    add("negative_unroll", lambda: lax.scan(lambda c, x: (c, None), x, xs, unroll=-1))
    corpus.add(
        "traced_length",
        lambda n: lax.scan(lambda c, x: (c, None), x, None, length=n),
        np.int32(3),
        modes=("jit",),
    )
    add("map_of_nothing", lambda: lax.map(lambda x: x, None))
    add("map_of_scalars", lambda: lax.map(lambda x: x, 3.0))
    add("map_lengths_differ", lambda: lax.map(lambda x: x, (xs, xs[:2])))
    add("map_not_callable", lambda: lax.map(3, xs))
    add("associative_not_callable", lambda: lax.associative_scan(3, xs))
    add("associative_sizes_differ", lambda: lax.associative_scan(jnp.add, (xs, xs[:2])))
    add("associative_no_axis", lambda: lax.associative_scan(jnp.add, xs, axis=2))
