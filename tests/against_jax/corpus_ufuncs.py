"""Universal functions and their methods, vectorize, text of arrays, the modes of promotion."""

import io

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints, unit

BINARY = (
    "add subtract multiply maximum minimum logaddexp logaddexp2 logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor"
).split()
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    x, n, b = floats(2, 3), ints(2, 3), bools(2, 3)

    def add(name, function, *args, **options):
        corpus.add(name, function, *args, tolerance=1e-5, **options)

    _methods(add, jax, jnp, x, n, b)
    _of_python_functions(add, jax, jnp, x, n)
    _vectorized(add, jax, jnp, x)
    _text(add, jax, jnp, x)
    _modes(add, jax, jnp, x, n, b)
    return corpus


def _methods(add, jax, jnp, x, n, b):
    """Each ufunc: what it is, and reduce, accumulate, reduceat, at, outer."""
    ufuncs = {name: getattr(jnp, name) for name in (*BINARY, "negative")}

    def facts():
        return [
            (f.__name__, repr(f), f.nin, f.nout, f.nargs, f.identity, isinstance(f, jnp.ufunc))
            for f in ufuncs.values()
        ]

    add("facts_of_ufuncs", facts)
    add("ufuncs_are_hashed_and_compared", lambda: (len({*ufuncs.values()}), jnp.add == jnp.add))
    places = np.array([0, 2, 1])
    mask = np.array([True, False, True])
    for name, f in ufuncs.items():
        if name == "negative":
            continue
        own = n if name in BITS else x

        def everything(a, f=f):
            row = a[0]
            return (
                f(a, row),
                f.reduce(a),
                f.reduce(a, axis=1, keepdims=True),
                f.accumulate(a),
                f.accumulate(a, axis=-1),
                f.reduceat(a, places, axis=1),
                f.outer(row, a[1]),
            )

        modes = ("value", "jit") if name in ("add", "subtract", "logaddexp") else ("value",)
        add(f"methods_of_{name}", everything, own, modes=modes)
        add(f"{name}_at", lambda a, f=f: f.at(a, (places % 2, places), 2, inplace=False), own)
        add(f"{name}_at_rows", lambda a, f=f: f.at(a, places % 2, a[:1, :1], inplace=False), own)
        add(f"{name}_of_nothing", lambda a, f=f: f.reduce(a[:0]), own)
        add(f"{name}_accumulates_nothing", lambda a, f=f: f.accumulate(a[:0]), own)
        if name != "subtract":  # of several axes
            add(f"{name}_of_everything", lambda a, f=f: f.reduce(a, axis=None), own)
            add(
                f"{name}_where",
                lambda a, f=f: f.reduce(a, axis=1, where=mask, keepdims=True),
                own,
            )
        if name not in ("subtract", "logaddexp", "logaddexp2"):
            add(f"{name}_of_booleans", lambda a, f=f: (f.reduce(a), f.accumulate(a)), b)
            add(f"{name}_from_a_start", lambda a, f=f: f.reduce(a, initial=2, where=mask), own)
    for name in ("add", "multiply", "maximum", "minimum", "subtract"):
        f = ufuncs[name]
        add(f"{name}_of_small_integers", lambda a, f=f: (f.reduce(a), f.accumulate(a)), n, x64=True)
        add(
            f"{name}_of_halves",
            lambda a, f=f: (f.reduce(a), f.outer(a[0], a[1])),
            unit(2, 3, dtype=bf16),
        )
        add(f"{name}_accumulates_in_float16", lambda a, f=f: f.accumulate(a, dtype="float16"), n)
        add(f"{name}_of_weak_numbers", lambda f=f: (f(1.0, 2), f.outer(1, 2.0)))
        add(f"{name}_of_complex", lambda a, f=f: (f.reduce(a), f.accumulate(a)), complexes(2, 3))
    add("add_in_order_of_all", lambda a: jnp.add.accumulate(a, axis=None), x)
    add("add_of_two_axes", lambda a: jnp.add.reduce(a, axis=(0, 1)), x)
    add("negative_at", lambda a: jnp.negative.at(a, np.array([0, 0, 1]), inplace=False), x)
    add("negative_index_at", lambda a: jnp.subtract.at(a, -1, 1, inplace=False), x)
    add("maximum_at_out_of_bounds", lambda a: jnp.maximum.at(a, 7, 100, inplace=False), x)
    add("maximum_at_mixed_dtypes", lambda a: jnp.maximum.at(a, 0, 1.5, inplace=False), n)
    add("reduceat_negative", lambda a: jnp.add.reduceat(a, np.array([0, -1, 1]), axis=1), x)
    add("reduceat_out_of_bounds", lambda a: jnp.add.reduceat(a, np.array([0, 7, 1]), axis=1), x)
    add("subtract_of_arrays_of_starts", lambda a: jnp.subtract.reduce(a, initial=np.ones(3)), x)
    # Reverse mode through each way that a reduction is made.
    for name in ("add", "multiply", "subtract", "maximum", "logaddexp"):
        f = ufuncs[name]
        add(
            f"gradient_of_{name}",
            lambda a, f=f: jax.grad(lambda a: f.reduce(a).sum())(a),
            unit(3, 2),
        )
    add("mapped_reduce", lambda a: jax.vmap(jnp.subtract.reduce)(a), x)
    for label, call in {
        "out": lambda: jnp.add(x, x, out=x),
        "where": lambda: jnp.add(x, x, where=True),
        "too_many": lambda: jnp.add(x, x, x, x),
        "too_few": lambda: jnp.add(x),
        "by_name": lambda: jnp.add(x1=x, x2=x),
        "list": lambda: jnp.add([1], [2]),
        "reduce_list": lambda: jnp.add.reduce([1, 2]),
        "reduce_axis": lambda: jnp.multiply.reduce(x, axis=5),
        "reduce_unary": lambda: jnp.negative.reduce(x),
        "accumulate_unary": lambda: jnp.negative.accumulate(x),
        "reduceat_unary": lambda: jnp.negative.reduceat(x, places),
        "outer_unary": lambda: jnp.negative.outer(x, x),
        "accumulate_axes": lambda: jnp.maximum.accumulate(x, axis=None),
        "accumulate_out": lambda: jnp.maximum.accumulate(x, out=x),
        "no_identity": lambda: jnp.maximum.reduce(x, where=mask),
        "nothing": lambda: jnp.minimum.reduce(x[:0]),
        "several_axes": lambda: jnp.subtract.reduce(x, axis=(0, 1)),
        "floats_have_no_bits": lambda: jnp.bitwise_and.reduce(x),
        "in_place": lambda: jnp.add.at(x, 0, 1),
        "at_list": lambda: jnp.maximum.at(x, [0, 1], 1, inplace=False),
        "at_without_b": lambda: jnp.add.at(x, 0, inplace=False),
        "at_too_many_axes": lambda: jnp.maximum.at(x, (0, 1, 1), 1, inplace=False),
        "reduceat_two_axes": lambda: jnp.add.reduceat(x, places[None]),
        "reduceat_floats": lambda: jnp.add.reduceat(x, np.array([1.0])),
        "reduceat_no_axis": lambda: jnp.add.reduceat(x, places, axis=None),
        "reduceat_scalar": lambda: jnp.add.reduceat(np.float32(1), places),
        "start_of_many": lambda: jnp.add.reduce(x, initial=np.ones(3)),
    }.items():
        add(f"error_{label}", call)


def _of_python_functions(add, jax, jnp, x, n):
    def made(function, nin=2, nout=1, **options):
        return jnp.frompyfunc(function, nin, nout, **options)

    f = made(lambda a, b: 2 * a + b, identity=1)
    half = made(lambda a, b: a * 0.5 + b)
    add("frompyfunc_facts", lambda: (repr(f), f.nin, f.nout, f.nargs, f.identity, half.identity))
    add("frompyfunc_called", lambda a: (f(a, a[0]), f(1, 2), f(1, 2.5)), x, modes=("value", "jit"))
    add("frompyfunc_reduce", lambda a: (f.reduce(a), f.reduce(a, axis=None, keepdims=True)), n)
    add("frompyfunc_widens", lambda a: (half.reduce(a), half.accumulate(a)), n)
    add("frompyfunc_where", lambda a: f.reduce(a, where=a > 0), x)
    add("frompyfunc_initial", lambda a: (f.reduce(a, initial=5), f.reduce(a, initial=a[0])), n)
    add("frompyfunc_accumulate", lambda a: f.accumulate(a, axis=1), x)
    add("frompyfunc_reduceat", lambda a: f.reduceat(a, np.array([0, 2, 1]), axis=1), x)
    add("frompyfunc_at", lambda a: f.at(a, np.array([0, 0]), 1, inplace=False), n)
    add("frompyfunc_outer", lambda a: f.outer(a, a[0]), x)
    add("frompyfunc_two_results", lambda a: made(lambda a, b: (a * b, a - b), nout=2)(a, a[0]), x)
    add("frompyfunc_of_three", lambda a: made(lambda a, b, c: a * b + c, nin=3)(a, a[0], 1), x)
    add("frompyfunc_mapped", lambda a: (jax.vmap(f.reduce)(a), jax.vmap(f.accumulate)(a)), x)
    add("frompyfunc_gradient", lambda a: jax.grad(lambda a: (f.reduce(a) ** 2).sum())(a), x)
    add(
        "frompyfunc_gradient_at",
        lambda a: jax.grad(lambda a: f.at(a, np.array([0, 0]), 2.0, inplace=False).sum())(a),
        x,
    )
    add("error_frompyfunc_shapes", lambda: f(np.ones(3), np.ones(2)))
    add("error_frompyfunc_numbers", lambda: made(lambda a: a, nin="1"))
    add("error_frompyfunc_list", lambda: f([1], 2))
    add("error_frompyfunc_axes", lambda: f.reduce(x, axis=(0, 1)))
    add("error_frompyfunc_where", lambda: f.reduce(x, where=n))
    add("error_three_reduce", lambda: made(lambda a, b, c: a, nin=3).reduce(x))
    add("error_two_accumulate", lambda: made(lambda a, b: (a, b), nout=2).accumulate(x))
    add("error_two_outer", lambda: made(lambda a, b: (a, b), nout=2).outer(x, x))
    add("error_nothing_to_start_from", lambda: half.reduce(x[:0]))


def _vectorized(add, jax, jnp, x):
    v = jnp.vectorize
    product = v(jnp.dot, signature="(n,m),(m)->(n)")
    add("vectorize_broadcasts", lambda a: v(lambda a, b: a + b)(a, a[0]), x)
    add("vectorize_ones", lambda a: v(lambda a, b: a * b)(a[:, :1], np.ones((4, 1, 3))), x)
    add("vectorize_text", lambda a: v(lambda a: a + 1)(a), x[:1, :1], modes=("jaxpr",))
    add("vectorize_signature", lambda: product(floats(5, 1, 2, 3), floats(4, 3)))
    add(
        "vectorize_program",
        lambda a, b: product(a, b),
        floats(2, 3),
        floats(3),
        modes=("equations",),
    )
    add("vectorize_new_size", lambda a: v(lambda a: a[:2], signature="(n)->(k)")(a), x)
    add("vectorize_two_results", lambda a: v(lambda a: (a, a.sum()), signature="(n)->(n),()")(a), x)
    add("vectorize_excluded", lambda a: v(lambda a, k: a**k, excluded={1})(a, 2), x)
    add("vectorize_excluded_name", lambda a: v(lambda a, k=2: a**k, excluded={"k"})(a, k=3), x)
    add(
        "vectorize_excluded_text",
        lambda a: v(lambda a, s: a if s == "+" else -a, excluded=[1])(a, "-"),
        x,
    )
    add("vectorize_none", lambda a: v(lambda a, b: a)(a, None), x)
    add("vectorize_constant", lambda a: v(lambda a: 1)(a), x)
    add("vectorize_tree", lambda a: v(lambda a: {"a": a, "b": (a, a)})(a), x)
    add("vectorize_grows", lambda a: v(lambda a: jnp.arange(3))(a), x)
    add("vectorize_nothing", lambda: v(lambda a, b: a + b)(np.ones((0, 3)), np.ones(3)))
    add("vectorize_scalars", lambda: v(lambda a, b: a + b)(1, 2.0))
    add("vectorize_gradient", lambda a: jax.grad(lambda a: v(lambda a: a * a)(a).sum())(a), x)
    for label, call in {
        "few_axes": lambda: product(np.ones(3), np.ones((5, 3))),
        "sizes": lambda: product(np.ones((2, 4)), np.ones(3)),
        "batches": lambda: product(np.ones((2, 2, 3)), np.ones((3, 3))),
        "count": lambda: product(x),
        "result_axes": lambda: v(lambda a: a, signature="(n)->()")(x),
        "result_size": lambda: v(lambda a: a[:2], signature="(n)->(n)")(x),
        "result_count": lambda: v(lambda a: (a, a), signature="(n)->(n)")(x),
        "no_tuple": lambda: v(lambda a: a, signature="(n)->(n),()")(x),
        "bad_signature": lambda: v(lambda a: a, signature="n->n")(x),
        "excluded_float": lambda: v(lambda a: a, excluded={1.5}),
        "excluded_negative": lambda: v(lambda a: a, excluded={-1}),
        "shapes": lambda: v(lambda a, b: a)(x, np.ones(2)),
        "along_no_axis": lambda: jnp.apply_along_axis(jnp.sum, 2, x),
        "along_none": lambda: jnp.apply_along_axis(jnp.sum, None, x),
        "along_list": lambda: jnp.apply_along_axis(jnp.sum, 0, [[1, 2]]),
        "over_int": lambda: jnp.apply_over_axes(jnp.sum, x, 1),
        "over_axis": lambda: jnp.apply_over_axes(jnp.sum, x, [5]),
        "over_result": lambda: jnp.apply_over_axes(lambda a, axis: a.ravel()[0], x, [0]),
    }.items():
        add(f"error_vectorize_{label}", call)
    along = jnp.apply_along_axis
    y = floats(2, 3, 4)
    add("along_axis_sums", lambda a: [along(jnp.sum, i, a) for i in range(3)], y)
    add(
        "along_axis_outer",
        lambda a: [along(lambda v: v[:, None] * v[:2], i, a) for i in (0, 1, -1)],
        y,
    )
    add("along_axis_arguments", lambda a: along(lambda v, m, k=0: v * m + k, -1, a, 2, k=3), x)
    add("along_axis_tree", lambda a: along(lambda v: (v * 2, v.sum()), 0, a), x)
    add("along_axis_program", lambda a: along(jnp.sum, 1, a), y, modes=("equations",))
    over = jnp.apply_over_axes
    add("over_axes", lambda a: (over(jnp.sum, a, [0, 1]), over(jnp.cumsum, a, (1, -2))), x)
    add("over_no_axes", lambda a: over(jnp.sum, a, []), x)


def _text(add, jax, jnp, x):
    y = np.array([[0.125, 1e-9], [2.5, 1000.0]], np.float32)

    def texts():
        a = jnp.asarray(y)
        return (
            jnp.array_repr(a),
            jnp.array_str(a),
            jnp.array_repr(a[:0]),
            jnp.array_repr(a, precision=2, suppress_small=True, max_line_width=20),
            jnp.array_str(a, precision=2, suppress_small=True),
            jnp.array_repr(a > 1),
            jnp.array_repr(a[0, 0]),
            jnp.array_repr(y),
        )

    def options():
        before = jnp.get_printoptions()["precision"]
        with jnp.printoptions(precision=2):
            inside = repr(jnp.asarray(y))
        jnp.set_printoptions(precision=3)
        set_ = str(jnp.asarray(y))
        jnp.set_printoptions(precision=before)
        return before, inside, set_, str(jnp.asarray(y))

    def round_trip(dtype):
        file = io.BytesIO()
        jnp.save(file, jnp.arange(4).astype(dtype))
        file.seek(0)
        return jnp.load(file)

    def archive():
        file = io.BytesIO()
        jnp.savez(file, jnp.arange(3), b=jnp.ones(2))
        file.seek(0)
        return {name: np.asarray(value) for name, value in jnp.load(file).items()}

    add("text_of_arrays", texts)
    add("options_of_printing", options)
    add("error_unknown_option", lambda: jnp.set_printoptions(decimals=3))
    for dtype in ("bool", "int8", "uint16", "float16", "float32", "complex64", "bfloat16"):
        add(f"saved_{dtype}", lambda dtype=dtype: round_trip(dtype))
    add("saved_wide", lambda: round_trip("float64"), x64=True)
    add("saved_archive", archive)
    add("error_no_such_file", lambda: jnp.load("/nowhere/nothing.npy"))
    add("error_saving_while_tracing", lambda: jax.jit(lambda a: jnp.save(io.BytesIO(), a))(x))

    def info():
        return jnp.__array_namespace_info__()

    add("namespace_version", lambda: jnp.__array_api_version__)
    add("namespace_info", lambda: (info().capabilities(), info().default_device()))
    for wide in (False, True):
        suffix = "_wide" if wide else ""
        add(f"namespace_defaults{suffix}", lambda: info().default_dtypes(), x64=wide)
        for kind in (None, "bool", "integral", "numeric", ("bool", "real floating")):
            add(
                f"namespace_dtypes{suffix}_{kind}",
                lambda kind=kind: sorted(info().dtypes(kind=kind)),
                x64=wide,
            )
    add("error_namespace_kind", lambda: info().dtypes(kind="numbers"))
    add("namespace_of_arrays", lambda: jnp.ones(2).__array_namespace__(api_version="2024.12").pi)
    add(
        "error_namespace_version",
        lambda: jnp.ones(2).__array_namespace__(api_version="2021.12"),
    )


def _modes(add, jax, jnp, x, n, b):
    row = x[0]
    pairs = {
        "int_and_float": (n, x),
        "int8_and_int32": (n.astype(np.int8), n),
        "float_and_python": (x, 2.0),
        "int_and_python_float": (n, 2.0),
        "bool_and_int": (b, n),
        "weak": (1, 2.0),
    }
    names = (
        "add divide maximum equal less logical_or power floor_divide arctan2 where isclose "
        "array_equal matmul dot fmax concatenate hypot copysign nextafter logaddexp heaviside "
        "append"
    ).split()

    def call(name, first, second):
        function = getattr(jnp, name)
        if name == "where":
            return function(first > 0, first, second)
        if name == "concatenate":
            return function([jnp.ravel(first), jnp.ravel(second)])
        if name in ("matmul", "dot") and np.ndim(second) > 1:
            second = second.T
        return function(first, second)

    def strictly(name, pair):
        with jax.numpy_dtype_promotion("strict"):
            return call(name, *map(_array(jnp), pair))

    def ranks(name, mode, pair):
        with jax.numpy_rank_promotion(mode):
            return call(name, *map(_array(jnp), pair))

    for name in names:
        for label, pair in pairs.items():
            if name not in ("matmul", "concatenate") or not label.endswith(
                ("python", "weak", "float")
            ):
                add(f"strict_{name}_{label}", lambda name=name, pair=pair: strictly(name, pair))
        if name not in ("matmul", "dot", "concatenate", "append", "array_equal"):
            for mode in ("raise", "warn") if name in ("add", "equal", "where") else ("raise",):
                for label, pair in {"ranks": (x, row), "scalar": (x, 2.0)}.items():
                    add(
                        f"{mode}_{name}_{label}",
                        lambda name=name, mode=mode, pair=pair: jax.jit(
                            lambda *a: ranks(name, mode, a)
                        )(*pair),
                    )
    # Defaults of dtypes, as x64 and the option about bits have it.
    made = {
        "arange": lambda: jnp.arange(3),
        "zeros": lambda: jnp.zeros(2),
        "array": lambda: jnp.array([1, 2]),
        "floats": lambda: jnp.array([1.0, 2]),
        "complex": lambda: jnp.array([1j]),
        "mean": lambda: jnp.mean(n),
        "sum": lambda: jnp.sum(b),
        "linspace": lambda: jnp.linspace(0, 1, 3),
        "argmax": lambda: jnp.argmax(x),
        "true_divide": lambda: jnp.divide(n, 2),
        "sin": lambda: jnp.sin(n),
        "full": lambda: jnp.full(2, 7),
        "eye": lambda: jnp.eye(2),
    }
    for name, function in made.items():
        for wide in (False, True):
            add(f"default_{name}_{'64' if wide else '32'}", function, x64=wide)


def _array(jnp):
    return lambda value: value if isinstance(value, int | float) else jnp.asarray(value)
