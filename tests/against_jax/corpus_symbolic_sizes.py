"""Programs exported for arrays of unknown sizes: sizes of their results, calls for three sizes.

The first programs print sizes: expressions made by chance, comparisons, and parsed texts.
"""

import importlib
import operator
import random

import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.against_jax.inputs import floats, ints

COMPARISONS = operator.ge, operator.eq, operator.lt
# Texts of shapes, with the shapes that their placeholders stand for.
TEXTS = [
    *[
        (text, None)
        for text in (
            "b, 2*d|(b, 3)|b,||()|b c|2b|b**2|b^2|b^-1|-b+3|floordiv(b,2)|mod(b, 0)|floordiv(b)|"
            "max(b, 3), min(b, 3)|b/2|b//2|_|b + + c|b + -2|b*-2|b + 2)|((b,))|b.c|3.5|b=2|b, b-b|"
            "floordiv(b, -2)|mod(-b, 3)|b*(c)|2*b*c + b^2 - 3*c + 4"
        ).split("|")
    ],
    ("_", (3,)),
    ("_, b, ...", (3, 4, 5, 6)),
    ("...", (3, None)),
    ("b,4", (3, 5)),
    ("b,_", (3,)),
    ("b, ...", (3,)),
    (None, (3, 4)),
    (5, (3, 4)),
]
CONSTRAINTS = (
    ["a"],
    ["a >= "],
    "a >= 2",
    [3],
    ["2 >= 3"],
    ["a + b == 3"],
    ["a == b", "a == 3"],
    ["a == b", "b == 3"],
    ["a*b == 6"],
    ["3 == a"],
    ["2*a == b"],
    ["mod(a, 2) == 0", "a >= 3"],
    ["a < 3"],
    ["a, b >= 3"],
)

# The values of the variables that each program is called for.
SIZES = ({"b": 1, "c": 2, "n": 4}, {"b": 3, "c": 1, "n": 8}, {"b": 4, "c": 5, "n": 6})


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    anything = isinstance(jax, Anything)
    export = jax if anything else importlib.import_module(f"{jax.__name__}.export")

    def arguments(shapes, dtypes, values):
        environment = {"floordiv": operator.floordiv, **values}
        for shape, dtype in zip(shapes, dtypes, strict=True):
            sizes = eval(f"({shape},)", environment) if shape else ()
            yield (floats if np.dtype(dtype).kind == "f" else ints)(*sizes, dtype=dtype)

    def exported_for(*shapes, constraints=(), dtypes=None, sizes=SIZES, order=0):
        """Add a program that exports a function for shapes, and calls it for three sizes."""
        types = dtypes or ("float32",) * len(shapes)

        def register(function):
            def program():
                scope = export.SymbolicScope(constraints)
                specs = [
                    jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype)
                    for shape, dtype in zip(shapes, types, strict=True)
                ]
                exported = export.export(jax.jit(function), platforms=["cpu"])(*specs)
                for _ in range(order):
                    exported = exported.vjp()
                printed = "; ".join(str(aval.shape) for aval in exported.out_avals)
                return {printed: [called(exported, values) for values in sizes]}

            def called(exported, values):
                values = [jnp.asarray(x) for x in arguments(shapes, types, values)]
                if order:
                    values.append(jnp.ones_like(function(*values)))
                return exported.call(*values)

            program.__name__ = function.__name__
            corpus.program()(program)
            return function

        return register

    # ---- sizes themselves

    def shown(answer):
        try:
            return str(answer())
        except Exception as error:
            return type(error).__name__

    def made_by_chance(rng, sizes, depth):
        """Return an expression of sizes, of up to so many nested operations."""
        if not depth:
            return rng.choice(sizes)
        operations = [operator.add, operator.sub] * 2
        operations += [operator.mul, operator.floordiv, operator.mod]
        operations += [jax.core.max_dim, jax.core.min_dim]
        operation = rng.choice(operations)
        x = made_by_chance(rng, sizes, depth - 1)
        return operation(x, made_by_chance(rng, sizes, rng.randrange(depth)))

    def compared(rng, sizes):
        """Return two expressions and whether one is at least, equal to, and less than the other."""
        x, y = (made_by_chance(rng, sizes, rng.choice([1, 2, 3])) for _ in range(2))
        answers = [shown(lambda compare=compare: compare(x, y)) for compare in COMPARISONS]
        return " | ".join([str(x), str(y), *answers])

    def comparisons(*constraints):
        def program():
            sizes = [*export.symbolic_shape("b, d, e", constraints=constraints), 1, 2, 3, 4, 7]
            lines = [shown(lambda n=n: compared(random.Random(n), sizes)) for n in range(200)]
            return "\n".join(lines)

        return program

    constraints_of = {
        "none": (),
        "divisible": ("b >= 8", "mod(b, 4) == 0"),
        "equal": ("d <= b", "e == 2*b"),
        "bounded": ("b >= d", "d >= 3", "b <= 64"),
        "extreme": ("max(b, d) >= 10",),
        "quotient": ("floordiv(b, 2) == d",),
    }
    for name, constraints in constraints_of.items():
        corpus.add(f"comparisons_{name}", comparisons(*constraints), modes=("repr",))

    @corpus.program(modes=("repr",))
    def parsed_texts():
        parsed = export.symbolic_shape
        shapes = [
            f"{text!r} {like} {shown(lambda: parsed(text, like=like))}" for text, like in TEXTS
        ]
        constrained = [
            f"{each} {shown(lambda: parsed('a, 2*a, a*b, 4*b', constraints=each))}"
            for each in CONSTRAINTS
        ]
        return "\n".join([*shapes, *constrained])

    # ---- elementwise operations and types

    @exported_for("b, 3")
    def elementwise(x):
        return jnp.sin(x) * 2 + x

    @exported_for("b, 3", "3")
    def broadcast_operands(x, y):
        return x + y, x * y[None], jnp.where(x > y, x, 0.5)

    @exported_for("b, 1", "1, c")
    def outer_sum(x, y):
        return x + y

    @exported_for("b", "b", dtypes=("int32", "float32"))
    def mixed_dtypes(i, x):
        return i + x, i // 2, i % 3, x.astype(jnp.int32), i == 2

    @exported_for("b", "c")
    def incompatible_shapes(x, y):
        return x + y

    @exported_for("b, c")
    def special_functions(x):
        return jax.scipy.special.erf(x), jax.nn.softplus(x), jnp.logaddexp(x, 1.0)

    @exported_for("b, 4")
    def softmax_and_normalization(x):
        return jax.nn.softmax(x, axis=0), (x - x.mean(0)) / (x.std(0) + 1)

    # ---- sizes as values

    @exported_for("b, 3")
    def size_times_array(x):
        return x * x.shape[0], x.shape[0] * x, x / x.shape[0], x - x.shape[0] // 2

    @exported_for("b, c")
    def size_as_result(x):
        return x.shape[0], jnp.asarray(x.shape[1]), x.size + 1, jnp.float32(x.shape[0])

    @exported_for("b")
    def arithmetic_of_sizes(x):
        n = x.shape[0]
        return (
            jnp.array([n * n, n // 2, n % 3, -n, n**2, (n + 5) // (n + 1)]),
            1.5 * n,
            n / 2,
            2 / n,
        )

    @exported_for("b", "c")
    def extremes_of_sizes(x, y):
        m, n = x.shape[0], y.shape[0]
        larger, smaller = jax.core.max_dim(m, n), jax.core.min_dim(m, n)
        return jnp.ones((larger,)), jnp.ones((smaller, 2)), jnp.arange(larger) * smaller

    @exported_for("b")
    def size_in_numpy_arithmetic(x):
        n = x.shape[0]
        return np.float32(2) * n, np.ones(3, np.float32) + n, n * np.arange(2)

    @exported_for("b")
    def comparison_without_answer(x):
        return x if x.shape[0] > 3 else x + 1

    @exported_for("b", constraints=["b <= 8"])
    def comparison_with_answer(x):
        return x if x.shape[0] < 9 else x + 1

    @exported_for("b")
    def size_as_index(x):
        return range(x.shape[0])[0] + x

    @exported_for("b")
    def size_as_int(x):
        return x * int(x.shape[0])

    # ---- creation

    @exported_for("b, c")
    def creation(x):
        m, n = x.shape
        return jnp.zeros((m, 2)), jnp.ones_like(x), jnp.full((n, m), 7, jnp.int32), jnp.eye(m, n)

    @exported_for("b")
    def ranges(x):
        n = x.shape[0]
        return (
            jnp.arange(n),
            jnp.arange(n, dtype=jnp.float32),
            jnp.arange(2, n + 4),
            jnp.arange(2 * n, 0, -1),
        )

    @exported_for("b")
    def range_with_step(x):
        return jnp.arange(0, 3 * x.shape[0], 2)

    @exported_for("b")
    def linspace_of_size(x):
        return jnp.linspace(0.0, 1.0, x.shape[0] + 2)

    @exported_for("b, c")
    def iotas(x):
        return lax.broadcasted_iota(jnp.int32, x.shape, 1), lax.iota(jnp.float32, x.shape[0])

    @exported_for("b, b")
    def triangles(x):
        return jnp.tril(x), jnp.triu(x, 1), jnp.diagonal(x), jnp.trace(x)

    # ---- shape

    @exported_for("b, 3")
    def flattened(x):
        return x.reshape(-1), x.ravel(), x.reshape((3, -1))

    @exported_for("b, n", constraints=["mod(n, 2) == 0"])
    def halves(x):
        return x.reshape((x.shape[0], 2, -1)), x.reshape((-1, 2))

    @exported_for("b, c")
    def reshape_of_another_size(x):
        return x.reshape((x.shape[0] + 1, -1))

    @exported_for("b, c")
    def transposes(x):
        return x.T, jnp.swapaxes(x[None], 0, 2), x[:, None, :], jnp.expand_dims(x, -1)

    @exported_for("b, c")
    def broadcasts(x):
        return jnp.broadcast_to(x, (2, *x.shape)), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=0)

    @exported_for("b, 1")
    def squeezed(x):
        return jnp.squeeze(x, 1)

    @exported_for("b, c")
    def squeeze_of_unknown_size(x):
        return jnp.squeeze(x, 0)

    @exported_for("b, c")
    def reversed_and_rolled(x):
        return x[::-1], jnp.flip(x, 1), jnp.roll(x, 1, axis=0)

    @exported_for("b, 2", "c, 2")
    def concatenations(x, y):
        return jnp.concatenate([x, y, x]), jnp.vstack([x, y])

    @exported_for("b, 2", "b, 2")
    def stacks(x, y):
        return jnp.stack([x, y]), jnp.hstack([x, y]), jnp.column_stack([x, y])

    @exported_for("b, n", constraints=["mod(n, 2) == 0"])
    def splits(x):
        return jnp.split(x, 2, axis=1)

    @exported_for("b, c")
    def pads(x):
        return jnp.pad(x, ((1, 2), (0, 1))), jnp.pad(
            x, ((0, x.shape[1]), (1, 0)), constant_values=2
        )

    @exported_for("b, c")
    def lax_pad(x):
        return lax.pad(x, 0.0, ((1, 2, 1), (0, 0, 0)))

    # ---- indexing

    @exported_for("b, 3")
    def integer_indices(x):
        return x[0], x[-1], x[:, 1], x[..., -1]

    @exported_for("n")
    def index_without_answer(x):
        return x[2]

    @exported_for("n", constraints=["n >= 4"])
    def slices(x):
        return x[1:], x[:-1], x[1:3], x[: x.shape[0] // 2], x[-2:], x[::2]

    @exported_for("b")
    def slice_without_answer(x):
        return x[3:]

    @exported_for("b, 4", "c", dtypes=("float32", "int32"))
    def array_indices(x, i):
        return x[i], x[:, i % 4], jnp.take(x, i, axis=0, mode="clip")

    @exported_for("b, 4", "", dtypes=("float32", "int32"))
    def traced_index(x, i):
        return x[i], lax.dynamic_index_in_dim(x, i, 0)

    @exported_for("b, n", "", dtypes=("float32", "int32"))
    def dynamic_slices(x, i):
        rows = lax.dynamic_slice_in_dim(x, i, 1, 0)
        return rows, lax.dynamic_update_slice_in_dim(x, rows * 2, i, 0)

    @exported_for("b, n", "", constraints=["n >= 3"], dtypes=("float32", "int32"))
    def dynamic_slice_of_size(x, i):
        return lax.dynamic_slice(x, (0, i), (x.shape[0], x.shape[1] - 2))

    @exported_for("b, 3", "c", dtypes=("float32", "int32"))
    def updates(x, i):
        return x.at[0].set(7.0), x.at[i].add(1.0), x.at[:, 1].multiply(2), x.at[-1].set(x[0])

    @exported_for("b, n", "b", dtypes=("float32", "int32"))
    def along_axis(x, i):
        return jnp.take_along_axis(x, i[:, None] % 4, axis=1)

    @exported_for("b")
    def boolean_mask(x):
        return x[x > 0]

    # ---- reductions and orders

    @exported_for("b, c")
    def reductions(x):
        return x.sum(), x.sum(0), x.max(1), x.min(), x.prod(1), (x > 0).any(0), (x > -9).all()

    @exported_for("b, c")
    def statistics(x):
        return x.mean(), x.mean(1, keepdims=True), x.var(0), jnp.linalg.norm(x)

    @exported_for("b, c")
    def arg_reductions(x):
        return x.argmax(0), x.argmin(), jnp.argmax(x, 1)

    @exported_for("b, c")
    def cumulative(x):
        return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0, reverse=True)

    @exported_for("b, c")
    def sorts(x):
        return jnp.sort(x, 0), jnp.argsort(x, 1)

    @exported_for("b, n")
    def top_k(x):
        return lax.top_k(x, 2)

    @exported_for("b, c")
    def logsumexp(x):
        return jax.scipy.special.logsumexp(x, 1)

    # ---- products

    @exported_for("b, c", "c, 2")
    def matrix_product(x, y):
        return x @ y

    @exported_for("b, 3", "c, 3")
    def inner_products(x, y):
        return jnp.dot(x, y.T), jnp.einsum("ik,jk->ij", x, y), jnp.tensordot(x, y, ((1,), (1,)))

    @exported_for("b, c, 3", "b, 3, 2")
    def batched_product(x, y):
        return jnp.matmul(x, y), jnp.einsum("bij,bjk->bik", x, y)

    @exported_for("b, c", "b, 2")
    def product_of_other_sizes(x, y):
        return x @ y

    @exported_for("b, 2, 4, 3", "b, 2, 4, 3")
    def attention(q, k):
        scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(3), axis=-1)
        return jnp.einsum("bhts,bshd->bthd", scores, k)

    @exported_for("b, 6, 6, 2", "3, 3, 2, 4")
    def convolution(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers)

    @exported_for("b, n, n, 1", "3, 3, 1, 1", constraints=["n >= 4"])
    def convolution_of_unknown_images(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        same = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        valid = lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=numbers)
        return same, valid

    @exported_for("b, n, n, 1", "3, 3, 1, 1", constraints=["n >= 4"])
    def convolution_of_unknown_padding(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=numbers)

    @exported_for("n, 2")
    def segments(x):
        of = jnp.arange(x.shape[0]) // 2
        return jax.ops.segment_sum(x, of, x.shape[0]), jax.nn.one_hot(of, x.shape[0])

    @exported_for("n")
    def repeats_of_total_size(x):
        n = x.shape[0]
        return jnp.repeat(x, jnp.ones(n, jnp.int32) * 2, total_repeat_length=2 * n)

    @exported_for("b, n, 2", constraints=["n >= 4", "mod(n, 2) == 0"])
    def pooling(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), "VALID")

    # ---- programs in programs

    @exported_for("b, 3")
    def nested_jit(x):
        return jax.jit(lambda y: y.sum(0) * y.shape[0])(x) + jax.jit(jnp.mean)(x)

    @exported_for("b, 3")
    def scan_over_known_steps(x):
        return lax.scan(lambda carry, _: (carry * 0.5 + 1, carry.sum()), x, None, length=3)

    @exported_for("b, 3")
    def scan_over_unknown_steps(x):
        return lax.scan(lambda carry, row: (carry + row, carry * row), jnp.zeros(3), x)

    @exported_for("b, c")
    def map_over_rows(x):
        return lax.map(lambda row: row.sum() * row, x)

    @exported_for("b")
    def loops(x):
        count = lax.fori_loop(0, 3, lambda i, y: y * 2 + i, x)
        return count, lax.while_loop(lambda y: y.sum() < 50, lambda y: y * y + 1, x)

    @exported_for("b")
    def loop_to_size(x):
        return lax.fori_loop(0, x.shape[0], lambda i, y: y + x[i], jnp.float32(0))

    @exported_for("b", "", dtypes=("float32", "int32"))
    def branches(x, i):
        return lax.cond(i > 0, lambda y: y * 2, lambda y: y - y.shape[0], x)

    @exported_for("b, c")
    def vmapped(x):
        return jax.vmap(lambda row: row / row.sum())(x), jax.vmap(jnp.sort, 1, 1)(x)

    @exported_for("b, 3", "c, 3")
    def vmap_of_products(x, y):
        return jax.vmap(lambda row: y @ row)(x)

    @exported_for("b, 3")
    def gradient_inside(x):
        return jax.grad(lambda y: (jnp.tanh(y @ y.T) ** 2).mean())(x)

    @exported_for("b, 3")
    def derivatives_inside(x):
        f = lambda y: jnp.sin(y).sum(1)
        return jax.jvp(f, (x,), (jnp.ones_like(x),)), jax.hessian(lambda z: (x @ z).sum() ** 2)(
            x[0]
        )

    @exported_for("b, 3", "3, 2")
    def custom_rules(x, w):
        @jax.custom_vjp
        def doubled(y):
            return 2 * y

        doubled.defvjp(lambda y: (2 * y, y), lambda y, ct: (3 * ct * y,))
        return jax.grad(lambda y: doubled(y @ w).sum())(x), jax.checkpoint(jnp.sin)(x)

    @exported_for("b, 3")
    def random_numbers(x):
        key = jax.random.key(0)
        return jax.random.uniform(key, x.shape), jax.random.normal(key, (x.shape[0],))

    @exported_for("b, 2, 2")
    def factorizations(x):
        return jnp.linalg.cholesky(jnp.matmul(x, jnp.swapaxes(x, 1, 2)) + 3 * jnp.eye(2))

    # ---- derivatives of exports

    @exported_for("b, 3", order=1)
    def derivative_of_elementwise(x):
        return jnp.sin(x).sum(0)

    @exported_for("b, c", "c, 2", order=1)
    def derivative_of_product(x, w):
        return jax.nn.relu(x @ w)

    @exported_for("n", constraints=["n >= 4"], order=1)
    def derivative_of_slices(x):
        return x[1:] * x[:-1]

    @exported_for("b, 3", order=1)
    def derivative_of_scan(x):
        return lax.scan(lambda carry, row: (carry * row, None), jnp.ones(3), x)[0]

    @exported_for("b, 4", "c", dtypes=("float32", "int32"), order=1)
    def derivative_of_gather(x, i):
        return x[i]

    # ---- specifications

    @exported_for("b, 2*c", "c")
    def size_from_product(x, y):
        return x.reshape((x.shape[0], -1, 2)) + y[:, None]

    @exported_for("b", "b + c")
    def size_from_difference(x, y):
        return y[: x.shape[0]], y[x.shape[0] :]

    @exported_for("b*c", "b")
    def size_from_quotient(x, y):
        return x

    @exported_for("b*b")
    def size_without_solution(x):
        return x

    @exported_for("b", "floordiv(b, 2) + 1")
    def size_of_operation(x, y):
        return x.sum() + y

    @exported_for("b, 3")
    def exported_inside(x):
        inner = export.export(jax.jit(lambda y: y * y.shape[0]))(
            jax.ShapeDtypeStruct(export.symbolic_shape("m, k"), "float32")
        )
        return inner.call(x), inner.call(x.T)

    return corpus
