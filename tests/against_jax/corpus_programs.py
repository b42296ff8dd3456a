"""Whole programs, and how they print: names, literals, constants, nested programs, wrapping."""

import collections

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, f8_e5m2, floats, ints, unit

Point = collections.namedtuple("Point", ["x", "y"])


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr",))
    arguments(corpus, jax, jnp, lax)
    literals(corpus, jax, lax)
    constants(corpus, jnp, lax)
    nested(corpus, jax, lax)
    shared(corpus, jax, lax)
    options_of_jit(corpus, jax, jnp, lax)
    long_ones(corpus, jax, lax)
    wrapping(corpus, jax, lax)
    return corpus


def arguments(corpus, jax, jnp, lax):
    @corpus.program()
    def no_arguments_no_results():
        return ()

    @corpus.program(floats(3))
    def identity(x):
        return x

    @corpus.program(floats(3))
    def same_result_twice(x):
        y = lax.sin(x)
        return y, x, y

    @corpus.program(floats(3), unit(3))
    def unused_argument(x, y):
        return lax.sin(y)

    @corpus.program(floats(3))
    def unused_results(x):
        lax.sin(x)
        y = lax.cos(x)
        lax.add(y, x)
        return lax.exp(y)

    @corpus.program(floats(3))
    def one_of_several_results_unused(x):
        return lax.top_k(x, 2)[1]

    @corpus.program(floats(3))
    def results_that_are_constants(x):
        return 1, 2.0, True, x, None, np.float32(3)

    @corpus.program({"b": floats(2), "a": (ints(1), [unit(2)])}, modes=("jaxpr", "shape", "jit"))
    def dictionary_in_and_out(tree):
        return {"z": lax.neg(tree["b"]), "m": [tree["a"][0], {"k": lax.sin(tree["a"][1][0])}]}

    @corpus.program(Point(floats(2), unit(2)), modes=("jaxpr", "shape", "jit"))
    def namedtuple_in_and_out(p):
        return Point(lax.add(p.x, p.y), lax.mul(p.x, p.y))

    @corpus.program(None, floats(2), modes=("jaxpr", "jit"))
    def none_as_argument(nothing, x):
        return (lax.sin(x), nothing)

    @corpus.program(floats(2), keywords={"scale": unit(2), "bias": 1.0})
    def keyword_arguments(x, *, scale, bias):
        return lax.add(lax.mul(x, scale), lax.mul(bias, scale))

    @corpus.program(floats(2), 3, static_argnums=(1,), modes=("jaxpr", "jit"))
    def static_argument(x, n):
        for _ in range(n):
            x = lax.sin(x)
        return x

    @corpus.program(floats(2), (2, 2), "mean", static_argnums=(1, 2))
    def several_static_arguments(x, shape, how):
        y = lax.broadcast_in_dim(x, shape, (1,))
        return lax.reduce_sum(y, (0,)) if how == "mean" else y

    for name, args in {
        "python_scalars": (1, 2.0, True, 1j),
        "numpy_scalars": (np.int8(1), np.float16(2), np.bool_(False), np.uint32(4)),
        "numpy_doubles": (np.float64(1), np.int64(2), np.arange(3.0), np.arange(3)),
        "narrow_floats": (
            floats(2, dtype=bf16),
            floats(2, dtype=f8_e5m2),
            floats(2, dtype=np.float16),
        ),
        "complex_and_bool": (complexes(2), bools(2), ints(2, dtype=np.uint8)),
        "empty_and_deep": (floats(0), floats(1, 1, 1, 2), floats(2, 0)),
    }.items():
        corpus.add(f"arguments_{name}", lambda *args: args, *args)

    @corpus.program(jax.ShapeDtypeStruct((3, 2), np.float32))
    def shape_dtype_struct(x):
        return lax.sin(x)

    @corpus.program(1.0, 2)
    def weak_results(x, n):
        return lax.mul(x, 2.0), lax.add(n, 1), x + n, lax.convert_element_type(n, np.float32)

    corpus.add("x64_scalars", lambda x, n: (x + n, lax.add(x, 1.0)), 1.0, 2, x64=True)
    corpus.add(
        "x64_arrays",
        lambda x, n: (lax.sin(x), n + 1, x + n, lax.convert_element_type(n, np.float32)),
        np.arange(3.0),
        np.arange(3),
        x64=True,
    )


def literals(corpus, jax, lax):
    @corpus.program(floats(3))
    def float_literals(x):
        for value in (0.1, 1e-7, 1e20, 123456.789, -0.0, np.pi, 1 / 3, 2.0**-126):
            x = x + value
        return x

    @corpus.program(floats(3))
    def odd_float_literals(x):
        return x + np.inf, x - np.inf, x * np.nan

    @corpus.program(ints(3))
    def int_literals(x):
        return x + 2147483647, x + -2147483648, lax.mul(x, -1)

    @corpus.program(floats(3, dtype=bf16))
    def bf16_literals(x):
        return x + 0.1, x * 3, lax.max(x, bf16(0.5))

    @corpus.program(floats(3, dtype=np.float16))
    def f16_literals(x):
        return x + 0.1, lax.mul(x, np.float16(0.1))

    @corpus.program(complexes(3))
    def complex_literals(x):
        return x + 1j, x * (1 - 2j), x + 2

    @corpus.program(bools(3))
    def bool_literals(x):
        return lax.bitwise_and(x, True), x | False

    @corpus.program(ints(3, dtype=np.uint8))
    def small_int_literals(x):
        return x + 255, lax.add(x, np.uint8(7))

    @corpus.program(floats(3))
    def numpy_scalars_as_literals(x):
        return x + np.float32(0.1), lax.add(x, np.float32(1)), x * np.float64(2)

    @corpus.program(floats(3))
    def zero_dimensional_arrays_as_literals(x):
        return lax.add(x, np.array(2.5, np.float32)), lax.mul(np.array(3, np.float32), x)

    corpus.add("x64_literals", lambda x: (x + 0.1, x * 1e300, x - 1 / 3), np.arange(2.0), x64=True)


def constants(corpus, jnp, lax):
    table = floats(3)
    other = ints(2, 3)

    @corpus.program(floats(3))
    def closed_over_numpy(x):
        return lax.add(x, table)

    @corpus.program(floats(3))
    def closed_over_device_array(x):
        c = jnp.asarray(table)
        return lax.add(lax.mul(x, c), c)

    @corpus.program()
    def constant_as_result():
        return other

    @corpus.program(floats(3))
    def several_constants(x):
        y = lax.add(x, table)
        n = lax.convert_element_type(lax.reduce_sum(lax.add(other, other), (0,)), np.float32)
        return lax.mul(y, n), table

    @corpus.program(floats(1))
    def constant_of_one_element(x):
        return lax.add(x, np.ones((1,), np.float32))

    @corpus.program(floats(3))
    def numpy_on_the_left(x):
        return table * x + np.ones(3, np.float32)


def nested(corpus, jax, lax):
    @jax.jit
    def double(x):
        return lax.mul(x, 2.0)

    @corpus.program(floats(3))
    def jit_inside(x):
        return lax.sin(double(x))

    @corpus.program(floats(3))
    def jit_of_the_whole(x):
        return double(x)

    corpus.add("jit_at_the_top", double, floats(3))
    corpus.add("jit_of_jit_at_the_top", jax.jit(double), floats(3))

    @jax.jit
    def two_results(x, y):
        s = lax.add(x, y)
        return s, lax.mul(s, y)

    @corpus.program(floats(3), unit(3))
    def results_used_later(x, y):
        a, b = two_results(x, y)
        return lax.sub(b, a)

    @corpus.program(floats(3), unit(3))
    def result_of_jit_unused(x, y):
        a, _ = two_results(x, y)
        return a

    @corpus.program(floats(3), unit(3))
    def arguments_swapped(x, y):
        return two_results(y, x)

    @corpus.program(floats(3))
    def same_argument_twice(x):
        return two_results(x, x)

    @corpus.program(floats(3))
    def literal_to_a_jit(x):
        return two_results(x, 1.0)

    @jax.jit
    def passes_through(x, y):
        return y, lax.sin(x), x

    @corpus.program(floats(3), unit(2))
    def jit_that_passes_through(x, y):
        return passes_through(x, y)

    @corpus.program(floats(3), unit(2))
    def jit_passes_through_then_used(x, y):
        b, s, a = passes_through(x, y)
        return lax.add(a, s), lax.exp(b)

    @jax.jit
    def ignores(x, y):
        return lax.cos(x)

    @corpus.program(floats(3), unit(2))
    def jit_ignores_an_argument(x, y):
        return ignores(x, y)

    @jax.jit
    def constant():
        return 3.0, np.arange(2, dtype=np.int32)

    @corpus.program()
    def jit_without_arguments():
        return constant()

    @jax.jit
    def inner(x):
        return lax.sin(x)

    @jax.jit
    def middle(x):
        y = inner(x)
        return lax.mul(y, y)

    @jax.jit
    def outer(x):
        return lax.add(middle(x), x)

    @corpus.program(floats(3))
    def three_deep(x):
        return lax.neg(outer(x))

    @jax.jit
    def middle_that_returns_it(x):
        return inner(lax.cos(x))

    @corpus.program(floats(3))
    def two_deep_result_passed_up(x):
        return middle_that_returns_it(x)

    @corpus.program(floats(3))
    def two_deep_result_passed_up_and_used(x):
        return lax.exp(middle_that_returns_it(lax.neg(x)))

    @jax.jit
    def with_inner_unused(x):
        inner(x)
        return lax.cos(x)

    @corpus.program(floats(3))
    def unused_inside_a_jit(x):
        return with_inner_unused(x)

    table = floats(3)

    @jax.jit
    def closes_over(x):
        return lax.add(x, table)

    @corpus.program(floats(3))
    def constant_inside_a_jit(x):
        return closes_over(x)

    @corpus.program(floats(3))
    def constant_inside_and_outside(x):
        return lax.mul(closes_over(x), table)

    @corpus.program(floats(3))
    def closes_over_a_tracer(x):
        y = lax.sin(x)

        @jax.jit
        def uses_y(z):
            return lax.add(y, z)

        return uses_y(x)

    @corpus.program(floats(3))
    def closes_over_only_a_tracer(x):
        return jax.jit(lambda: lax.cos(x))()

    @corpus.program(floats(3))
    def closes_over_a_literal(x):
        scale = 2.5
        return jax.jit(lambda z: lax.mul(z, scale))(x)

    @corpus.program({"w": floats(2, 2), "b": unit(2)}, floats(2))
    def trees_through_a_jit(params, x):
        @jax.jit
        def layer(p, x):
            return {"out": lax.add(lax.dot(p["w"], x), p["b"])}

        return layer(params, x)["out"]

    @corpus.program(floats(3))
    def named_lambda(x):
        square = lambda x: lax.mul(x, x)
        square.__name__ = "square it"
        return jax.jit(square)(x)

    @corpus.program(floats(3))
    def jit_of_a_method(x):
        class Model:
            def __call__(self, x):
                return lax.tanh(x)

            def apply(self, x):
                return lax.sin(x)

        return jax.jit(Model().apply)(x)

    @corpus.program(floats(3))
    def unnested_by_inline(x):
        inlined = jax.jit(lambda x: lax.mul(lax.sin(x), 2.0), inline=True)
        return lax.add(inlined(x), x)

    @corpus.program(floats(3))
    def inline_inside_a_jit(x):
        inlined = jax.jit(lambda x: lax.mul(lax.sin(x), 2.0), inline=True)
        return jax.jit(lambda x: inlined(inlined(x)))(x)

    corpus.add("inline_at_the_top", jax.jit(lambda x: lax.sin(x), inline=True), floats(3))


def shared(corpus, jax, lax):
    @jax.jit
    def double(x):
        return lax.mul(x, 2.0)

    @corpus.program(floats(3))
    def called_twice(x):
        return double(double(x))

    @corpus.program(floats(3), floats(2))
    def called_with_two_shapes(x, y):
        return double(x), double(y)

    @corpus.program(floats(3), floats(2))
    def called_twice_with_two_shapes(x, y):
        return double(double(x)), double(double(y))

    @corpus.program(floats(3))
    def called_strong_and_weak(x):
        return double(x), double(2.0), double(np.float32(1))

    @jax.jit
    def twice(x):
        return double(double(x))

    @corpus.program(floats(3))
    def shared_below_a_jit(x):
        return twice(x)

    @corpus.program(floats(3))
    def shared_at_two_depths(x):
        return lax.add(twice(x), double(x))

    @corpus.program(floats(3))
    def shared_that_share(x):
        return twice(twice(x))

    @jax.jit
    def once(x):
        return lax.sin(double(x))

    @corpus.program(floats(3))
    def inner_shared_by_different_callers(x):
        return lax.add(once(x), double(x))

    @corpus.program(floats(3))
    def caller_shared_with_an_inner_program(x):
        return once(once(x))

    def plain(x):
        return lax.cos(x)

    @corpus.program(floats(3))
    def two_jits_of_one_function(x):
        return jax.jit(plain)(x), jax.jit(plain)(x)

    @corpus.program(floats(3))
    def two_functions_of_one_name(x):
        def f(x):
            return lax.sin(x)

        first = jax.jit(f)

        def f(x):
            return lax.cos(x)

        second = jax.jit(f)
        return first(first(x)), second(second(x))

    @corpus.program(floats(3))
    def lambdas_shared(x):
        f = jax.jit(lambda x: lax.sin(x))
        g = jax.jit(lambda x: lax.cos(x))
        return f(f(x)), g(g(x))

    @jax.jit
    def pair(x, y):
        return lax.add(x, y), lax.sub(x, y)

    @corpus.program(floats(3), unit(3))
    def shared_with_two_results(x, y):
        a, b = pair(x, y)
        _, d = pair(b, a)
        return d

    @corpus.program(floats(3), unit(3))
    def a_network_of_layers(x, y):
        @jax.jit
        def relu(x):
            return lax.max(x, 0.0)

        @jax.jit
        def layer(x):
            return relu(lax.mul(x, y))

        for _ in range(3):
            x = layer(x)
        return relu(x)

    def chain(length, name="chain", final=None):
        def f(x):
            for _ in range(length):
                x = lax.sin(x)
            return x if final is None else final(x)

        f.__name__ = name
        return jax.jit(f)

    # Programs of more than ten equations are set apart as well.
    for length in (9, 10, 11):
        corpus.add(f"jit_of_{length}_equations", lambda x, f=chain(length): f(x), floats(3))
    corpus.add("long_jit_of_a_long_jit", chain(11, "outer", chain(12, "inner")), floats(3))
    corpus.add("short_jit_of_a_long_jit", chain(2, "outer", chain(12, "inner")), floats(3))
    corpus.add("long_jit_of_a_short_jit", chain(12, "outer", chain(2, "inner")), floats(3))
    corpus.add("long_jits_of_one_name", chain(11, "f", chain(12, "f")), floats(3))

    @corpus.program(floats(3))
    def long_jits_of_one_name_beside_each_other(x):
        return chain(11)(x), chain(12)(x), chain(13, "other")(x), chain(2)(chain(2)(x))

    @corpus.program(floats(3))
    def long_jit_that_shares(x):
        inner = chain(3, "inner")
        return chain(11, "outer", lambda x: inner(inner(x)))(inner(x))


def options_of_jit(corpus, jax, jnp, lax):
    @corpus.program(floats(3), unit(3))
    def donated(x, y):
        return jax.jit(lambda x, y: lax.add(x, y), donate_argnums=(0,))(x, y)

    @corpus.program(floats(3), unit(3))
    def unused_argument_of_jit(x, y):
        return jax.jit(lambda x, y: lax.sin(x), keep_unused=True)(x, y)

    @corpus.program(floats(3))
    def static_in_a_jit(x):
        @jax.jit
        def unused():
            return 1

        f = jax.jit(lambda x, n: lax.integer_pow(x, n), static_argnums=1)
        return f(x, 2), f(x, 3), f(x, 2)

    @corpus.program(floats(3))
    def static_by_name(x):
        f = jax.jit(lambda x, *, n: lax.integer_pow(x, n), static_argnames=("n",))
        return f(x, n=2)

    @corpus.program(floats(3))
    def keywords_to_a_jit(x):
        f = jax.jit(lambda x, *, b, a: lax.sub(lax.mul(x, a), b))
        return f(x, b=1.0, a=x)

    @corpus.program(floats(3))
    def named_scope(x):
        with jax.named_scope("outer"):
            return lax.sin(x)

    @corpus.program(floats(3))
    def concrete_at_trace_time(x):
        with jax.ensure_compile_time_eval():
            n = lax.add(1, 2)
        return lax.mul(x, np.float32(n))

    @corpus.program(floats(3))
    def jit_disabled(x):
        with jax.disable_jit():
            return jax.jit(lambda x: lax.mul(lax.sin(x), 2.0))(x)


def long_ones(corpus, jax, lax):
    @corpus.program(floats(3))
    def more_than_26_variables(x):
        for _ in range(40):
            x = lax.sin(x)
        return x

    @corpus.program(floats(2))
    def more_than_702_variables(x):
        for i in range(720):
            x = lax.cos(x) if i % 2 else lax.sin(x)
        return x

    @corpus.program(*(np.float32(i) for i in range(30)))
    def thirty_arguments(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = lax.add(total, x)
        return total, xs

    @corpus.program(floats(3))
    def many_nested(x):
        for i in range(12):
            f = jax.jit(lambda x, i=i: lax.add(lax.mul(x, float(i)), lax.sin(x)))
            x = f(x)
        return x


def wrapping(corpus, jax, lax):
    @corpus.program(floats(2, 3, 4, 5))
    def a_line_of_many_parameters(x):
        return lax.slice(x, (0, 1, 1, 2), (2, 3, 4, 5), (1, 2, 1, 3))

    @corpus.program(*(floats(12, 345, 6) for _ in range(4)))
    def a_line_of_many_operands(a, b, c, d):
        return lax.concatenate(
            [a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d, a, b], 0
        )

    @corpus.program(floats(1))
    def a_line_of_many_results(x):
        return lax.split(lax.broadcast_in_dim(x, (60,), (0,)), [4] * 15)

    @corpus.program(*(floats(10, 20, 30, dtype=bf16) for _ in range(7)))
    def a_header_that_wraps(a, b, c, d, e, f, g):
        return lax.add(a, b), lax.add(c, d), lax.add(e, f), g

    @corpus.program(floats(2, 2))
    def a_jit_with_many_arguments(x):
        @jax.jit
        def sum_of_all(a, b, c, d, e, f, g, h):
            return (
                a,
                b,
                lax.add(lax.add(a, b), lax.add(c, d)),
                lax.add(lax.add(e, f), lax.add(g, h)),
            )

        parts = [lax.mul(x, float(i)) for i in range(8)]
        return sum_of_all(*parts)

    @corpus.program(floats(2, 2))
    def a_jit_with_a_long_name(x):
        def a_function_with_a_name_so_long_that_the_line_it_stands_on_has_to_be_wrapped(x):
            return lax.sin(x)

        return jax.jit(a_function_with_a_name_so_long_that_the_line_it_stands_on_has_to_be_wrapped)(
            x
        )

    for width in range(6, 14):
        corpus.add(
            f"just_at_the_edge_{width}",
            lambda x, n=width: lax.broadcast_in_dim(x, (1,) * n, ()),
            np.float32(1),
        )
    for count in range(3, 10):
        corpus.add(
            f"one_equation_at_the_edge_{count}",
            lambda *xs: lax.concatenate(list(xs), 0),
            *(floats(1) for _ in range(count)),
        )
