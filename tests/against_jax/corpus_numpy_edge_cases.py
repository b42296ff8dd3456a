"""Calls of jax.numpy that few programs make: odd sizes, masks without elements, huge arrays."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    making(corpus, jax, jnp)
    constants(corpus, jax, jnp)
    statistics(corpus, jax, jnp)
    sequences(corpus, jnp)
    indices(corpus, jax, jnp)
    halves(corpus, jax, jnp)
    keys_and_sets(corpus, jax, jnp)
    vectorized(corpus, jnp)
    large(corpus, jax, jnp)
    refused(corpus, jax, jnp, lax)
    return corpus


def making(corpus, jax, jnp):
    for number in (0, 1, 2):
        for endpoint in (True, False):

            def spaced(number=number, endpoint=endpoint):
                ends = jnp.zeros(2), jnp.ones(2)
                return jnp.linspace(*ends, number, endpoint=endpoint, retstep=True)

            corpus.add(f"linspace_{number}_{endpoint}", spaced, modes=("value", "jit"))
    masked = np.ma.array([1, 2], mask=[True, False])
    for name, make in {
        "array": lambda: jnp.array(masked),
        "nested": lambda: jnp.array([masked, masked]),
        "dtype": lambda: jnp.array(masked, dtype="float32"),
        "shared": lambda: jnp.array(masked, copy=False),
        "asarray": lambda: jnp.asarray(masked),
        "jitted": lambda: jax.jit(lambda x: x)(masked),
    }.items():
        corpus.add(f"masked_array_{name}", make)
    for k in (2**40, -(2**40), 2**70, 2**31 - 1, -1):
        corpus.add(f"eye_{k}", lambda k=k: jnp.eye(3, k=k), modes=("value", "jit"))
    for k in (2**40, -(2**40)):
        corpus.add(f"tri_{k}", lambda k=k: jnp.tri(3, k=k), modes=("value", "jit"))
        corpus.add(f"tril_{k}", lambda k=k: jnp.tril(jnp.ones((2, 2)), k=k))
        corpus.add(f"triu_indices_{k}", lambda k=k: jnp.triu_indices(3, k=k))

    @corpus.program(x64=True)
    def tri_with_x64():
        return jnp.tri(3, k=2**40), jnp.tril_indices(3, -(2**40))

    @corpus.program()
    def grids_of_nothing():
        return jnp.mgrid[()], jnp.ogrid[()]


def constants(corpus, jax, jnp):
    """A NumPy array is one constant of a program, though functions copy it."""
    host, wide = np.arange(3, dtype=np.float32), np.arange(3)
    for name, use in {
        "array": lambda x: x * jnp.array(host) + host,
        "array_last": lambda x: x * host + jnp.array(host),
        "arrays": lambda x: x * jnp.array(host) + jnp.array(host),
        "asarray": lambda x: jnp.array(host, ndmin=2) + jnp.asarray(host) * x,
        "copy": lambda x: jnp.copy(host) + host * x,
        "narrowed": lambda x: jnp.array(wide) * x + wide,
        "differentiated": lambda x: jax.grad(lambda y: (y * jnp.array(host) + host).sum())(x[0]),
    }.items():
        corpus.add(f"constant_{name}", use, floats(3), modes=("jaxpr",))


def statistics(corpus, jax, jnp):
    x = floats(2, 5)
    for dtype in ("int32", "bool", "float16", "float32", "complex64"):
        corpus.add(f"cov_{dtype}", lambda x, dtype=dtype: jnp.cov(x, dtype=dtype), x)
        corpus.add(
            f"corrcoef_{dtype}",
            lambda x, dtype=dtype: jnp.corrcoef(x, dtype=dtype),
            x,
            tolerance=2e-3 if dtype == "float16" else None,
        )
    for ddof, correction in ((0, 1), (0, 0.5), (0, 0), (1, 0), (1, 1)):

        def corrected(x, ddof=ddof, correction=correction):
            return (
                jnp.var(x, ddof=ddof, correction=correction),
                jnp.std(x, ddof=ddof, correction=correction, axis=1),
            )

        corpus.add(f"variance_{ddof}_{correction}", corrected, x, modes=("value", "jit"))

    @corpus.program(x, modes=("value", "jit"))
    def methods(x):
        return x.var(ddof=1), jnp.asarray(x).std(axis=0, correction=1)


def sequences(corpus, jnp):
    for name in ("convolve", "correlate"):
        for dtype in ("uint16", "int8", "int32", "float32"):
            for preferred in ("uint16", "int8", "int32", "float16", "float32"):

                def of_dtypes(name=name, dtype=dtype, preferred=preferred):
                    x, y = jnp.arange(5).astype(dtype), jnp.arange(3).astype(dtype)
                    return getattr(jnp, name)(
                        x, y, mode="full", preferred_element_type=jnp.dtype(preferred)
                    )

                corpus.add(f"{name}_{dtype}_{preferred}", of_dtypes)
    corpus.add(
        "compress_to_none", lambda: jnp.compress(np.array([True, False]), np.ones(2), size=0)
    )
    corpus.add("extract_to_none", lambda: jnp.extract(np.array([True, False]), np.ones(2), size=0))
    corpus.add(
        "compress_of_none", lambda: jnp.compress(np.ones(0, bool), np.ones((0, 3)), 0, size=0)
    )
    corpus.add("compress_to_less", lambda: jnp.compress(np.ones(2, bool), np.ones(2), size=-1))


def indices(corpus, jax, jnp):
    for dtype in ("int8", "uint8", "int16", "uint32", "int32"):
        for mode in ("wrap", "clip", "ignore"):

            def ravelled(mode=mode, dtype=dtype):
                given = np.array([0, 1, 5], dtype), np.array([2, 1, 7], dtype)
                return (
                    jnp.ravel_multi_index(given, (3, 4), mode=mode),
                    jnp.ravel_multi_index((given[0], 1), (3, 4), mode=mode, order="F"),
                )

            corpus.add(f"ravel_{dtype}_{mode}", ravelled)

        def too_large(dtype=dtype):
            given = np.array([0, 1], dtype), np.array([2, 1], dtype)
            return jnp.ravel_multi_index(given, (30, 40), mode="clip")

        corpus.add(f"ravel_in_large_{dtype}", too_large)

        def along(x, dtype=dtype):
            places = np.ones((2, 4), dtype)
            return jnp.take_along_axis(x, places, 0, mode="promise_in_bounds")

        corpus.add(f"take_promised_{dtype}", along, floats(3, 4), modes=("value", "jaxpr"))

    @corpus.program(floats(3, 4), np.ones((2, 4), "int32"), modes=("value", "jaxpr"))
    def take_along(x, places):
        return jnp.take_along_axis(x, places, 0)

    x = np.arange(12).reshape(3, 4)
    for shape in ((0, 4), (3, 0), (0, 0), (0,), (2, 0), (0, 5)):

        def masked(x, shape=shape):
            mask = np.zeros(shape, bool)
            return jnp.asarray(x)[mask], jnp.asarray(x).at[mask].set(7)

        corpus.add(f"mask_{'x'.join(map(str, shape))}", masked, x, modes=("value", "jit"))

    @corpus.program(x)
    def masks_beside(x):
        none = np.zeros(0, bool)
        return jnp.asarray(x)[:, none], jnp.asarray(x)[none, none]


def halves(corpus, jax, jnp):
    """Sums of 16-bit floats, which are made in float32, and slopes where norms are 0."""
    for dtype in ("float16", "bfloat16"):
        x = (np.arange(3000, dtype=np.float32) % 7 + 1).reshape(3, 1000) / 64
        for name, call in {
            "norm": jnp.linalg.norm,
            "norm_1": lambda x: jnp.linalg.norm(x, 1, axis=1),
            "norm_3": lambda x: jnp.linalg.norm(x, 3, axis=1),
            "norm_inf": lambda x: jnp.linalg.norm(x, np.inf),
            "cov": jnp.cov,
            "rankdata": lambda x: jax.scipy.stats.rankdata(x[:, :5], axis=1),
        }.items():
            corpus.add(f"{dtype}_{name}", lambda x, f=call, d=dtype: f(x.astype(d)), jnp.asarray(x))
    for order in (1, 2, np.inf):
        for shape in ((3,), (2, 3)):
            corpus.add(
                f"slope_of_norm_{order}_of_{len(shape)}_axes",
                jax.grad(lambda x, order=order: jnp.linalg.norm(x, order)),
                np.zeros(shape, np.float32),
            )


def keys_and_sets(corpus, jax, jnp):
    @corpus.program()
    def closeness_of_keys():
        keys = jax.random.split(jax.random.key(0), 3)
        others = jax.random.split(jax.random.key(1), 3)
        return jnp.isclose(keys, keys), jnp.isclose(keys, others), jnp.allclose(keys, keys)

    for shape in ((3, 0), (0,), (0, 3)):

        def unique(shape=shape):
            x = jnp.zeros(shape)
            return (
                jnp.unique(x, return_inverse=True),
                tuple(jnp.unique_all(x)),
                tuple(jnp.unique_inverse(x)),
            )

        corpus.add(f"unique_of_{'x'.join(map(str, shape))}", unique)


def vectorized(corpus, jnp):
    def first(x, y):
        return x if y is None else x + y

    for name, options in {
        "core": {"signature": "(n),(n)->(n)"},
        "scalar": {"signature": "(n),()->(n)"},
        "plain": {},
        "excluded": {"excluded": (1,)},
    }.items():

        def call(options=options):
            return jnp.vectorize(first, **options)(jnp.ones(3), None)

        corpus.add(f"vectorized_none_{name}", call)


def large(corpus, jax, jnp):
    """Arrays of more elements than int32 can count, which are never made."""
    functions = {
        "mean": jnp.mean,
        "var": jnp.var,
        "std": jnp.std,
        "average": jnp.average,
        "median": jnp.median,
    }
    for name, function in functions.items():
        for size in (2**32, 2**31 - 1):

            def shape(function=function, size=size):
                x = jax.ShapeDtypeStruct((size,), "float32")
                result = jax.eval_shape(function, x)
                return jnp.zeros(result.shape, result.dtype)

            corpus.add(f"{name}_of_{size}", shape)

    @corpus.program()
    def searched_among_most():
        x = jax.ShapeDtypeStruct((2**31 - 1,), "float32")
        return str(jax.eval_shape(jnp.searchsorted, x, x).dtype) == "int32"

    @corpus.program(x64=True)
    def searched_with_x64():
        x = jax.ShapeDtypeStruct((2**31,), "float32")
        return str(jax.eval_shape(jnp.searchsorted, x, x).dtype) == "int64"


def refused(corpus, jax, jnp, lax):
    @corpus.program()
    def repeated_axis():
        return jnp.size(jnp.ones((2, 3)), (1, -2 + 1))

    @corpus.program()
    def sizes():
        return jnp.size(jnp.ones((2, 3)), (0, -1)), jnp.size(jnp.ones((2, 3)), -2)

    @corpus.program(2)
    def split_at_traced(n):
        return jax.jit(lambda n: jnp.split(jnp.arange(4), [n]))(n)

    @corpus.program(2)
    def permutation_of_traced(n):
        return jax.jit(jax.random.permutation)(jax.random.key(0), n)

    nothing = np.zeros(2, [("float0", np.void, 0)])
    for name, function in {
        "add": lambda x: x + jnp.ones(2),
        "reflected": lambda x: jnp.ones(2) + x,
        "jnp": lambda x: jnp.add(x, jnp.ones(2)),
        "lax": lambda x: lax.add(x, jnp.ones(2)),
        "equal": lambda x: jnp.equal(x, jnp.ones(2)),
        "jitted": lambda x: jax.jit(lambda x: x + 1.0)(x),
    }.items():
        corpus.add(f"float0_{name}", function, nothing)
