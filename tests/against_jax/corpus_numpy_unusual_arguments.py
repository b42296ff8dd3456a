"""Odd input that jax takes, and what comes of it: named axes, 64 bits, floats as indices."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import complexes, floats, ints


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    named_axes(corpus, jax, jnp)
    reshaped_by_numpy(corpus, jax, jnp)
    made_by_a_method(corpus, jax, jnp)
    clipped_indices(corpus, jnp)
    kinds_of_dtypes(corpus, jax, jnp)
    filled(corpus, jax, jnp, lax)
    coordinates(corpus, jax, jnp)
    allowed_64_bits(corpus, jax, jnp, lax)
    powers(corpus, jax, jnp)
    refused(corpus, jax, jnp)
    return corpus


def made_by_a_method(corpus, jax, jnp):
    class Held:
        """An object that is an operand by its method `__jax_array__`."""

        def __jax_array__(self):
            return jnp.arange(3.0)

    held, ones = Held(), np.ones(3, np.float32)
    calls = {
        "pair": lambda: jnp.array([held, held]),
        "nested": lambda: jnp.asarray([[held], [[1.0, 2.0, 3.0]]]),
        "beside_an_array": lambda: jnp.array((held, jnp.ones(3))),
        "beside_numpy": lambda: jnp.array([ones, held]),
        "beside_a_number": lambda: jnp.array([held, 1.0]),
        "as_integers": lambda: jnp.array([held, held], dtype="int32"),
        "traced": lambda: jax.jit(lambda x: jnp.array([held, x]))(ones),
        "described": lambda: (jnp.shape(held), jnp.ndim(held), jnp.size(held), jnp.size(held, 0)),
    }
    for name, call in calls.items():
        corpus.add(f"held_{name}", call)


def reshaped_by_numpy(corpus, jax, jnp):
    x = np.arange(6.0).reshape(2, 3)
    values = {
        "float64": x,
        "columns": np.asfortranarray(x.astype("float32")),
        "scalar": np.float32(1),
        "boolean": np.bool_(True),
        "strings": np.array(["a", "b"]),
        "python": 1.0,
        "list": [1, 2],
        "array": jnp.asarray(x),
    }
    calls = {
        "row": {"shape": -1},
        "column_first": {"shape": (-1,), "order": "F"},
        "as_in_memory": {"shape": (1, -1), "order": "A", "copy": True},
        "no_axes": {"shape": ()},
        "too_long": {"shape": 7},
        "float": {"shape": (2.0, 3)},
        "as_sharded": {"shape": -1, "out_sharding": jax.sharding.PartitionSpec(None)},
    }
    for name, value in values.items():
        for kind, arguments in calls.items():

            def reshaped(value=value, arguments=arguments):
                found = jnp.reshape(value, **arguments)
                is_host = isinstance(found, np.ndarray | np.generic)
                return type(found).__name__ if is_host else found

            corpus.add(f"reshape_{name}_{kind}", reshaped)
            if name == "float64":
                corpus.add(f"reshape_traced_{kind}", lambda f=reshaped: jax.eval_shape(f))


def named_axes(corpus, jax, jnp):
    x = floats(3, 4)
    with_nan = np.where(x > 1, np.nan, x)
    mask = np.array([True, False, True, True])

    for name in ("mean", "var", "std", "nanmean", "nanvar", "nanstd"):

        def over_names(x, function=getattr(jnp, name)):
            def of_row(row):
                return (
                    function(row, axis="i"),
                    function(row, axis=("i",)),
                    function(row, axis=(0, "i")),
                    function(row, axis=(0, "i"), keepdims=True, where=mask),
                )

            return jax.vmap(of_row, axis_name="i")(x)

        def unbound(x, function=getattr(jnp, name)):
            return function(x, axis="i")

        corpus.add(f"{name}_over_names", over_names, with_nan if "nan" in name else x)
        corpus.add(f"{name}_over_no_axis", unbound, x)

    @corpus.program(floats(5, 4))
    def variance_over_more_rows(x):
        return jax.vmap(lambda row: jnp.var(row, axis=(0, "i"), ddof=1), axis_name="i")(x)

    @corpus.program(x)
    def derivative_over_names(x):
        def total(row):
            return jnp.var(row, axis=(0, "i")) + jnp.nanmean(row, axis=(0, "i"))

        return jax.vmap(jax.grad(total), axis_name="i")(x)

    for name in ("nanmax", "nanmin", "nanprod"):

        def no_collective(x, function=getattr(jnp, name)):
            return jax.vmap(lambda row: function(row, axis="i"), axis_name="i")(x)

        corpus.add(f"{name}_over_names", no_collective, x)


def clipped_indices(corpus, jnp):
    for name, index in {"after": 7, "before": -7, "last": -1, "far": 2**40}.items():
        for wrap in (True, False):

            def clipped(x, index=index, wrap=wrap):
                return x.at[index, 1:].get(mode="clip", wrap_negative_indices=wrap)

            corpus.add(f"clipped_{name}_{wrap}", clipped, floats(4, 3), modes=("jaxpr", "value"))


def kinds_of_dtypes(corpus, jax, jnp):
    kinds = {
        "floating": np.floating,
        "number": np.number,
        "generic": np.generic,
        "prng_key": jax.dtypes.prng_key,
        "none": None,
        "bytes": b"bool",
        "list": [np.float32],
        "nested": (("bool",),),
        "nonsense": "nonsense",
        "integer": 3,
        "scalar": np.float32(2),
        "object": object,
    }
    for name, kind in kinds.items():

        def is_kind(kind=kind):
            return jnp.isdtype(np.float32, kind), jnp.isdtype("bool", kind)

        corpus.add(f"isdtype_{name}", is_kind)

    @corpus.program()
    def dtypes_of_arrays():
        return jnp.isdtype(jnp.ones(2), "real floating"), jnp.isdtype(jnp.ones(2), np.int32)


def filled(corpus, jax, jnp, lax):
    @corpus.program()
    def booleans_of_complex_numbers():
        mask = jnp.array([True, False])
        fill = np.complex64(1j)
        return (
            jnp.full_like(mask, 1j),
            jnp.full_like(mask, fill),
            jnp.full((2,), 0j, bool),
            jax.jit(lambda: jnp.full((2,), 1j, bool))(),
            lax.full((2,), 2j, np.dtype(bool)),
        )

    @corpus.program(complexes(3) * np.float32([0, 1, 0]))
    def complex_numbers_as_booleans(z):
        return z.astype(bool), jax.jit(lambda z: jnp.astype(z, bool))(z)

    @corpus.program()
    def integers_of_floats_beyond_them():
        beyond = (np.nan, np.inf, -np.inf, 1e20, 300.7, -3.7)
        return [
            (jnp.full((2,), x, dtype), jnp.full_like(jnp.ones(2, dtype), x), lax.full((), x, dtype))
            for x in beyond
            for dtype in map(np.dtype, ("int32", "uint8", "int8"))
        ]


def coordinates(corpus, jax, jnp):
    for name, indices in {
        "float": 2.5,
        "floats": np.float32([5, 7.9]),
        "python": 7,
        "beyond": 100,
        "before": -3,
        "boolean": True,
        "unsigned": np.uint8([3, 5]),
        "integers": ints(4),
    }.items():

        def coordinates_of(indices=indices):
            shapes = ((3, 4), (3.0, 4.0), (3.5, 4), 12, np.array([3, 4]), (), [3, 4], (0, 3))
            return [jnp.unravel_index(indices, shape) for shape in shapes]

        corpus.add(f"unravel_{name}", coordinates_of)

    @corpus.program(ints(4), np.int32([3, 4]))
    def unravel_traced(indices, shape):
        return jax.jit(lambda i, a, b: jnp.unravel_index(i, (a, b)))(indices, *shape)

    for name, which in {
        "scalars": (1, 2),
        "rows": np.array([[1, 2], [0, 1]]),
        "ranks": (np.array([[1]]), np.array([1, 2])),
        "scalar_and_array": (np.array([1, 2]), 1),
        "beyond": (5, 2),
        "too_few": (1,),
        "nothing": (),
        "floats": (1.5, 2),
    }.items():
        for mode in ("raise", "wrap", "clip"):

            def raveled(which=which, mode=mode):
                return jnp.ravel_multi_index(which, (3, 4), mode=mode)

            corpus.add(f"ravel_{name}_{mode}", raveled)


def allowed_64_bits(corpus, jax, jnp, lax):
    def allowing(name, **functions):
        """One program of all these functions, while explicit 64-bit dtypes are allowed."""

        def program():
            jax.config.update("jax_explicit_x64_dtypes", "allow")
            try:
                return {name: function() for name, function in functions.items()}
            finally:
                jax.config.update("jax_explicit_x64_dtypes", "warn")

        corpus.add(f"allowed_64_bits_{name}", program)

    def ones(dtype="float64"):
        return jnp.ones(2, dtype)

    values = (1.5, 3, True, [1.5, 2], np.float64(0.25), np.arange(3), jnp.ones(2))
    allowing(
        "of_values",
        made=lambda: [
            function(x, dtype)
            for function in (jnp.array, jnp.asarray)
            for x in values
            for dtype in ("float64", np.int64, np.complex128, float)
        ],
        scalars=lambda: (jnp.float64(1.5), jnp.int64(3), jnp.uint64(3), jnp.complex128(2)),
        of_numpy=lambda: (jnp.asarray(np.ones(2)), jnp.float32(1) + np.float64(2)),
    )
    allowing(
        "made",
        arange=lambda: [jnp.arange(1, 7, 2, dtype=t) for t in ("int64", "float64", "uint64", int)],
        fraction=lambda: jnp.arange(0, 1, 0.3, dtype="float64"),
        linspace=lambda: [jnp.linspace(0, 1, 4, dtype=t) for t in ("float64", np.complex128)],
        logspace=lambda: jnp.logspace(0, 1, 3, dtype="float64"),
        eye=lambda: (jnp.eye(2, 3, 1, dtype="float64"), jnp.identity(2, "int64"), jnp.eye(2)),
        tri=lambda: (jnp.tri(2, dtype="float64"), jnp.tri(2, dtype=np.int64)),
        full=lambda: (lax.full((2,), 1.5, "float64"), lax.full_like(ones("int32"), 1, np.int64)),
        indices=lambda: (jnp.indices((2, 1), "int64"), lax.iota("int64", 3)),
        by_function=lambda: jnp.fromfunction(lambda i: i + 1, (3,), dtype="float64"),
        one_hot=lambda: [jax.nn.one_hot(np.arange(2), 2, dtype=t) for t in (int, "float64", None)],
        frequencies=lambda: jnp.fft.fftfreq(4, dtype="float64"),
        random=lambda: (
            jax.random.randint(jax.random.key(0), (3,), 0, 100, "int64"),
            jax.random.bits(jax.random.key(0), (2,), "uint64"),
            jax.random.uniform(jax.random.key(0), (2,), "float64"),
        ),
    )
    allowing(
        "converted",
        view=lambda: (
            jnp.ones(4, "float32").view("float64"),
            ones().view("int64"),
            ones("complex64").view("float64"),
            jax.jit(lambda x: x.view("uint64"))(jnp.ones(2)),
            lax.bitcast_convert_type(ones(), np.int64),
        ),
        astype=lambda: (jnp.ones(2).astype("float64"), jnp.ones(2).astype(float)),
        rows=lambda: list(jnp.ones(2, "float64") * 0.1),
        unique=lambda: jnp.unique(jnp.array([1, 2, 2], "int64"), return_counts=True),
        indexed=lambda: ones()[jnp.array([0, 1], "int64")],
        taken=lambda: jnp.take(ones(), jnp.array([0, -1], "int64")),
        updated=lambda: ones("int64").at[0].add(3),
    )
    allowing(
        "computed",
        operators=lambda: (
            ones() + 1,
            ones() + jnp.ones(2),
            ones("int64") + 1.5,
            ones("int64") * 2**33,
            ones() * 1e-300,
        ),
        sums=lambda: [
            function(jnp.ones(3), dtype=dtype)
            for function in (jnp.sum, jnp.prod, jnp.mean, jnp.var, jnp.cumsum, jnp.nansum)
            for dtype in ("float64", float)
        ],
        elementwise=lambda: (
            jnp.deg2rad(ones()),
            jnp.sinc(ones()),
            jnp.i0(ones()),
            jnp.signbit(ones()),
            jnp.copysign(ones(), -1),
            jnp.spacing(ones()),
            jnp.clip(ones(), 0, 2),
            jnp.gcd(ones("int64"), 2),
        ),
        triangle=lambda: (jnp.tril(jnp.ones((2, 2), "float64")), jnp.vander(ones())),
        others=lambda: (
            jnp.pad(ones(), 1),
            jnp.interp(ones(), ones(), jnp.ones(2)),
            jnp.histogram(ones(), 3),
            jnp.cov(jnp.ones((2, 3)), dtype="float64"),
            jnp.linalg.inv(jnp.eye(2, dtype="float64")),
            jnp.polyval(ones(), 2.0),
        ),
    )
    allowing(
        "transformed",
        grad=lambda: [
            jax.grad(function)(ones())
            for function in (
                jnp.sum,
                jnp.prod,
                jnp.max,
                lambda x: jnp.mean(x**2),
                lambda x: x.at[0].set(2.0).sum(),
                lambda x: jnp.where(x > 0, x, 0).sum(),
                lambda x: x.astype("float32").sum(),
            )
        ],
        of_converted=lambda: jax.grad(lambda x: (x.astype("float64") ** 2).sum())(jnp.ones(2)),
        jvp=lambda: jax.jvp(lambda x: x * 2, (ones(),), (ones(),)),
        hessian=lambda: jax.hessian(lambda x: (x**3).sum())(ones()),
        vmap=lambda: jax.vmap(lambda x: jnp.zeros(2, "int64") + x)(ones("int64")),
        loop=lambda: (
            lax.fori_loop(0, 3, lambda i, c: c * 2, jnp.ones((), "float64")),
            lax.while_loop(lambda c: c < 5, lambda c: c * 2, jnp.ones((), "float64")),
            lax.map(lambda c: c * 2, ones()),
        ),
        jit=lambda: jax.jit(lambda x: (x * 2, x > 1, jnp.arange(2, dtype="int64")))(ones()),
    )


def powers(corpus, jax, jnp):
    bases = {
        "integers": np.int32([0, 1, -2]),
        "unsigned": np.uint8([1, 3]),
        "booleans": np.array([True, False]),
        "floats": np.float32([1.5, -2, 0]),
        "complex": np.complex64([1j, 2 + 0.5j]),
    }
    exponents = {
        "true": True,
        "two": 2,
        "negative": -1,
        "numpy": np.int32(2),
        "numpy_boolean": np.bool_(True),
        "byte": np.int8(3),
        "array": np.array(2, np.int32),
        "large": 2**40,
    }
    for mode in ("standard", "strict"):
        for name, exponent in exponents.items():

            def power(exponent=exponent, mode=mode):
                return [of_base(base, exponent, mode) for base in bases.values()]

            corpus.add(f"powers_{mode}_{name}", power)

    def of_base(base, exponent, mode):
        try:
            with jax.numpy_dtype_promotion(mode):
                return jnp.power(jnp.asarray(base), exponent), jnp.asarray(base) ** exponent
        except (TypeError, ValueError) as error:
            return isinstance(error, TypeError)

    @corpus.program()
    def powers_by_arrays():
        exponents = jnp.asarray(2), jnp.asarray(np.int8(3)), jnp.array(True)
        return [(jnp.power(x, n), jnp.asarray(x) ** n) for x in bases.values() for n in exponents]

    @corpus.program(bases["booleans"], 2)
    def booleans_to_a_traced_power(x, n):
        return jax.jit(jnp.power)(x, n)

    @corpus.program(np.int8([1, 2]))
    def weak_logarithms(x):
        return jnp.logaddexp(x, 0.0), jnp.logaddexp(x > 1, 0.0), jnp.logaddexp(0.0, 1.0)


def refused(corpus, jax, jnp):
    x = floats(4)
    for name, function in {
        "histogram2d_rule": lambda: jnp.histogram2d(x, x, bins="auto"),
        "histogram2d_one": lambda: jnp.histogram2d(x, x, bins=(3,)),
        "histogram_edges_rule": lambda: jnp.histogram_bin_edges(x, bins="auto"),
        "unravel_list": lambda: jnp.unravel_index([1, 2], (3, 4)),
        "unravel_text": lambda: jnp.unravel_index("a", (3, 4)),
        "unravel_complex": lambda: jnp.unravel_index(1j, (3, 4)),
        "unravel_text_as_size": lambda: jnp.unravel_index(3, (3, "a")),
        "full_complex": lambda: jnp.full((2,), 1j, np.float32),
    }.items():
        corpus.add(f"refused_{name}", function)
