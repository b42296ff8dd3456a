"""Numbers at the ends of dtypes: integers beyond them, unsigned indices, NaN in a part."""

import ml_dtypes
import numpy as np

from tests.against_jax.describe import Corpus

nan = np.nan


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    integers_beyond_a_dtype(corpus, jax, jnp, lax)
    integers_that_no_dtype_holds(corpus, jax, jnp)
    integers_of_the_array(corpus, jax, jnp)
    sets(corpus, jax, jnp)
    unsigned_positions(corpus, jax, jnp)
    narrow_indices(corpus, jax, jnp, lax)
    return corpus


def integers_beyond_a_dtype(corpus, jax, jnp, lax):
    makers = {
        "full": lambda value, dtype: jnp.full((2,), value, dtype),
        "full_like": lambda value, dtype: jnp.full_like(jnp.zeros(2, dtype), value),
        "full_like_in": lambda value, dtype: jnp.full_like(jnp.zeros(2), value, dtype=dtype),
        "lax_full": lambda value, dtype: lax.full((2,), value, dtype),
        "lax_full_like": lambda value, dtype: lax.full_like(jnp.zeros(2, dtype), value),
        "convert": lambda value, dtype: lax.convert_element_type(value, dtype),
        "take": lambda value, dtype: jnp.take(
            jnp.ones(2, dtype), jnp.array([5]), mode="fill", fill_value=value
        ),
        "get": lambda value, dtype: jnp.ones(2, dtype).at[5].get(mode="fill", fill_value=value),
        "array": lambda value, dtype: jnp.array([value, jnp.ones((), dtype)], dtype),
    }
    values = {"wide": 2**100, "wider": 2**2000, "below": -(2**63) - 1, "low": 2**32 + 5}
    for maker, made in makers.items():
        for name, value in values.items():
            for dtype in ("bool", "int8", "uint32", "float32", "complex64"):

                def eager(made=made, value=value, dtype=dtype):
                    return made(value, dtype)

                corpus.add(f"{maker}_{name}_{dtype}", eager)

        def traced(made=made):
            return made(2**100, "float32"), made(-(2**70), "complex64")

        corpus.add(f"{maker}_traced", traced, modes=("jit",))

    @corpus.program(modes=("value", "jit"))
    def floats_beyond_4_bits():
        values = 300.0, -300.0, np.inf, -np.inf, np.nan
        makers = (
            lambda value, dtype: jnp.full(2, value, dtype),
            lambda value, dtype: lax.full((2,), value, dtype),
            lambda value, dtype: jnp.full_like(jnp.zeros(2, dtype), value),
        )
        dtypes = ("int4", "uint4", "int8")
        return [make(value, dtype) for make in makers for value in values for dtype in dtypes]

    @corpus.program(x64=True)
    def beyond_64_bits():
        return jnp.full(2, 2**100, "float64"), lax.convert_element_type(2**64 - 1, "int64")


def integers_that_no_dtype_holds(corpus, jax, jnp):
    for name, bounds in {"high": (2**64, 2**64 + 2), "low": (-(2**63) - 1, -(2**63) + 2)}.items():
        for dtype in (None, "int8", "uint32"):
            corpus.add(f"arange_{name}_{dtype}", lambda b=bounds, d=dtype: jnp.arange(*b, dtype=d))
    # Of an array of more axes the reference, under jit, takes such an index modulo 2**32.
    x = np.arange(12, dtype="float32")
    for wide in (False, True):
        for index in (2**31, -(2**31) - 1, 2**63 - 1, 2**63):

            def read(x, index=index):
                return x[index], x[index, None]

            corpus.add(f"read_at_{index}_{wide}", read, x, x64=wide, modes=("value", "jit"))

    @corpus.program(modes=("jaxpr",), x64=True)
    def far_on_a_long_axis():
        long = jnp.broadcast_to(jnp.int8(1), (2**33, 2))
        return long[2**33 - 3]


def integers_of_the_array(corpus, jax, jnp):
    for method in ("set", "add", "multiply", "min", "max", "divide", "power"):

        def written(method=method):
            return getattr(jnp.ones(2, "uint32").at[0], method)(2**32 - 1)

        corpus.add(f"unsigned_{method}", written, modes=("value", "jit"))

    @corpus.program(modes=("value", "jit"))
    def beyond_unsigned():
        return jnp.zeros(1, "uint32").at[0].set(2**32)

    @corpus.program(modes=("value", "jit"))
    def wrapped_in_narrow_ones():
        return jnp.zeros(1, "uint8").at[0].set(300), jnp.zeros(1, "int8").at[0].add(-129)

    @corpus.program()
    def masked_unsigned():
        x = jnp.zeros(3, "uint32")
        return x.at[jnp.array([True, False, True])].set(2**32 - 1)

    @corpus.program()
    def lists_of_what_does_not_fit():
        return jnp.array([300, jnp.ones((), "int8")])

    @corpus.program(x64=True)
    def unsigned_64_bits():
        return jnp.zeros(2, "uint64").at[1].set(2**64 - 1)


def sets(corpus, jax, jnp):
    """Complex numbers with a NaN part are one number; `assume_unique` is taken at its word."""
    parts = np.array([1 + 1j, complex(0, nan), 0, complex(1, nan), complex(nan, 1)], "complex64")
    for equal_nan in (True, False):
        for axis in (None, 0):

            def unique(x, axis=axis, equal_nan=equal_nan):
                return jnp.unique(x, True, True, True, axis=axis, equal_nan=equal_nan)

            x = parts if axis is None else np.stack([parts, parts])
            corpus.add(f"complex_unique_{equal_nan}_{axis}", unique, x)

        def of_size(x, equal_nan=equal_nan):
            return jnp.unique(x, True, True, True, equal_nan=equal_nan, size=4)

        corpus.add(f"complex_unique_of_size_{equal_nan}", of_size, parts, modes=("value", "jit"))
    for method in ("scan", "compare_all", "sort"):

        def searched(x, method=method):
            ordered = jnp.sort(x)
            return [
                jnp.searchsorted(ordered, x, side=side, method=method) for side in ("left", "right")
            ]

        corpus.add(f"searchsorted_complex_{method}", searched, parts)
    pairs = {
        "repeats": (np.array([3, 1, 1, 2, 3]), np.array([5, 3, 3, 4, 4, 4])),
        "thrice": (np.array([3, 3, 3, 1]), np.array([3, 3, 7])),
        "none_left": (np.array([1, 2, 2]), np.array([], "int32")),
        "none_right": (np.array([], "int32"), np.array([4, 4, 1])),
        "floats": (np.float32([nan, 1, nan, 2, -0.0, 0]), np.float32([0, nan, 2, 3])),
        "complex": (parts, np.array([complex(nan, nan), 0, 2j], "complex64")),
    }
    for name, (a, b) in pairs.items():
        for unique in (False, True):

            def both(a, b, unique=unique):
                return (
                    jnp.setxor1d(a, b, assume_unique=unique),
                    jnp.intersect1d(a, b, assume_unique=unique, return_indices=True),
                    jnp.setdiff1d(a, b, assume_unique=unique),
                )

            def filled(a, b, unique=unique):
                return (
                    jnp.setxor1d(a, b, assume_unique=unique, size=5, fill_value=7),
                    jnp.intersect1d(a, b, assume_unique=unique, size=5, fill_value=7),
                )

            corpus.add(f"sets_{name}_{unique}", both, a, b)
            corpus.add(f"sets_of_size_{name}_{unique}", filled, a, b, modes=("jit",))


def unsigned_positions(corpus, jax, jnp):
    positions = np.array([0, 1, 9, 5, 100])
    for dtype in ("uint8", "uint32", "int8"):
        for name, shape in {"sizes": (2, 3), "size": 6, "wide": (200, 3)}.items():
            corpus.add(
                f"unravel_{dtype}_{name}",
                jnp.unravel_index,
                positions.astype(dtype),
                shape,
                modes=("value", "jit"),
            )


def narrow_indices(corpus, jax, jnp, lax):
    """Indices of dtypes that do not hold the size of the axis, or that have no sign."""
    long, wide = np.arange(300, dtype="float32"), np.arange(12, dtype="float32").reshape(3, 4)
    positions = np.array([0, 1, 5, 127, 100])
    for dtype in ("int8", "uint8", "uint32"):
        places = positions.astype(dtype)
        corpus.add(
            f"index_take_{dtype}",
            lambda x, i: lax.index_take(x, (i,), (0,)),
            long,
            places,
            modes=("value", "jit"),
        )
        corpus.add(f"put_clipped_{dtype}", put_clipped(jnp), wide, places, modes=("value", "jit"))

        def rolled(x, shift):
            return jnp.roll(x, shift[1]), jnp.roll(x, shift[3], 1), jnp.roll(x, shift[:2], (0, 1))

        corpus.add(f"roll_{dtype}", rolled, wide, places, modes=("value", "jit"))

    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        places = np.array([1, 5, 7, 0], dtype)
        name = places.dtype.name
        both = {"modes": ("value", "jit")}
        corpus.add(f"unravel_{name}", lambda i: jnp.unravel_index(i, (2, 3)), places, **both)
        for mode in ("wrap", "clip"):

            def chosen(x, i, mode=mode):
                return jnp.choose(i, list(x), mode=mode), jnp.take(x[0], i, mode=mode)

            corpus.add(f"chosen_{mode}_{name}", chosen, wide, places, **both)

        def sliced(x, i):
            return lax.dynamic_slice(x, (i[3], i[0]), (2, 2)), lax.dynamic_index_in_dim(x, i[0], 1)

        corpus.add(f"sliced_{name}", sliced, wide, places, **both)

    @corpus.program(wide, np.array([True, False, True]), modes=("value", "jit"))
    def put_at_booleans(x, places):
        return put_clipped(jnp)(x, places), jnp.put(x, places, -1.0, inplace=False)

    @corpus.program(wide, np.uint32(2**32 - 1))
    def rolled_far(x, shift):
        return jnp.roll(x, shift), jnp.roll(x, shift, 1)

    @corpus.program(long, np.array([-1, -100, -128, 3], "int8"), modes=("value", "jit"))
    def taken_from_the_end(x, places):
        return lax.index_take(x, (places,), (0,))

    @corpus.program(wide, np.array([-1, -100, 20, 3]), modes=("value", "jit"))
    def put_at_negative_ones(x, places):
        return put_clipped(jnp)(x, places), jnp.put(x, places, -1.0, inplace=False)


def put_clipped(jnp):
    return lambda x, places: jnp.put(x, places, -1.0, mode="clip", inplace=False)
