"""Small kernels of Pallas, interpreted: dtypes, sums, products, grids, and modes of blocks."""

import functools

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, f8_e5m2, floats, ints
from tests.against_jax.pallas_kit import kit_of


def programs(jax, jnp, lax):
    return corpus_of((elements, reductions, products, steps, windows), jax, jnp, lax)


def corpus_of(groups, jax, jnp, lax):
    """The corpus of functions that add kernels."""
    corpus = Corpus(("value",))
    kit = kit_of(jax, jnp, lax)
    for add in groups:
        add(functools.partial(one, corpus, kit, add.__name__), kit)
    return corpus


def one(corpus, kit, group, name, kernel, *args, shape=None, dtype=None, **options):
    """Add a kernel of one output, by default of the shape and dtype of the first operand."""
    shape = args[0].shape if shape is None else shape
    dtype = args[0].dtype if dtype is None else dtype
    corpus.add(
        f"{group}_{name}", lambda *xs: kit.call(kernel, shape, *xs, dtype=dtype, **options), *args
    )


def specs(kit, *pairs):
    """BlockSpecs of inputs, and of the output, from their block shapes and index maps."""
    *ins, out = [kit.pl.BlockSpec(*pair) for pair in pairs]
    return {"in_specs": ins, "out_specs": out}


def rows(i):
    return i, 0


def each(i, j):
    return i, j


def mapped(function):
    """A kernel that computes a function of the blocks of its inputs."""

    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])

    return kernel


# ---- elements of all dtypes ----------------------------------------------------------------------


def elements(add, kit):
    jnp = kit.jnp
    blocks = {"grid": (2, 2), **specs(kit, ((2, 4), each), ((2, 4), each))}

    def of(name, function, x, **options):
        add(name, mapped(function), x, **{**blocks, **options})

    of("float16", jnp.exp, floats(4, 8, dtype=np.float16))
    of("bfloat16", lambda x: x * x - 1, floats(4, 8).astype(bf16))
    of("int8", lambda x: x // 3, ints(4, 8, dtype=np.int8))
    of("int16", lambda x: x % 4 - x, ints(4, 8, dtype=np.int16))
    of("uint8", lambda x: x << 1, ints(4, 8, dtype=np.uint8))
    of("uint32", lambda x: x ^ (x >> 2), ints(4, 8, dtype=np.uint32))
    of("bool", jnp.logical_not, bools(4, 8))
    of("to_int8", lambda x: (x * 10).astype(jnp.int8), floats(4, 8), dtype=np.int8)
    of("compared", lambda x: x > 0.5, floats(4, 8), dtype=np.bool_)
    of("clipped", lambda x: jnp.clip(x, -1, 1), floats(4, 8))
    of("to_float8", lambda x: x.astype(jnp.float8_e5m2), floats(4, 8), dtype=f8_e5m2)
    of("rounded_and_signed", lambda x: jnp.round(x) + jnp.sign(x) * jnp.floor(x), floats(4, 8))


# ---- sums over axes and over steps ---------------------------------------------------------------


def reductions(add, kit):
    jnp, pl = kit.jnp, kit.pl
    by_row = {"grid": 4, **specs(kit, ((1, 8), rows), ((1, 1), rows)), "shape": (4, 1)}
    for name in ("sum", "max", "min", "prod", "mean"):
        reduced = functools.partial(getattr(jnp, name), axis=1, keepdims=True)
        add(f"rows_{name}", mapped(reduced), floats(4, 8), **by_row)
    add(
        "argmax",
        mapped(lambda x: jnp.argmax(x, axis=1, keepdims=True).astype(jnp.int32)),
        floats(4, 8),
        **by_row,
        dtype=np.int32,
    )
    add("cumsum", mapped(lambda x: jnp.cumsum(x, axis=1)), floats(4, 8))
    add("any", mapped(lambda x: jnp.any(x, axis=0)), bools(4, 8), shape=(8,))

    def greatest(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.full_like(o_ref, -jnp.inf)

        o_ref[...] = jnp.maximum(o_ref[...], x_ref[...])

    add(
        "greatest_of_steps",
        greatest,
        floats(6, 4),
        shape=(1, 4),
        grid=6,
        **specs(kit, ((1, 4), rows), ((1, 4), lambda i: (0, 0))),
    )


# ---- products ------------------------------------------------------------------------------------


def products(add, kit):
    jnp, lax, pl = kit.jnp, kit.lax, kit.pl
    x, y = floats(4, 8), floats(8, 6)
    add("whole", mapped(jnp.matmul), x, y, shape=(4, 6))
    add("transposed", mapped(lambda x, y: x @ y.T), x, floats(6, 8), shape=(4, 6))
    add(
        "of_bfloat16",
        mapped(lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32)),
        x.astype(bf16),
        y.astype(bf16),
        shape=(4, 6),
        dtype=np.float32,
    )
    add(
        "of_int8",
        mapped(lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.int32)),
        ints(4, 8, dtype=np.int8),
        ints(8, 6, dtype=np.int8),
        shape=(4, 6),
        dtype=np.int32,
    )
    add("outer", mapped(lambda x, y: x[:, None] * y), floats(4), floats(6), shape=(4, 6))
    add(
        "contracted_over_rows",
        mapped(lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ())))),
        floats(4, 3),
        floats(4, 5),
        shape=(3, 5),
    )
    batched = [((None, 2, 3), lambda b: (b, 0, 0)), ((None, 3, 2), lambda b: (b, 0, 0))]
    add(
        "of_batches",
        mapped(jnp.matmul),
        floats(3, 2, 3),
        floats(3, 3, 2),
        shape=(3, 2, 2),
        grid=3,
        **specs(kit, *batched, ((None, 2, 2), lambda b: (b, 0, 0))),
    )

    def accumulated(x_ref, y_ref, o_ref, total):
        @pl.when(pl.program_id(1) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += x_ref[...].T @ y_ref[...]

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = total[...].astype(o_ref.dtype)

    add(
        "accumulated",
        accumulated,
        floats(6, 4),
        floats(6, 2),
        shape=(4, 2),
        dtype=bf16,
        grid=(2, 3),
        scratch_shapes=[kit.pltpu.VMEM((2, 2), np.float32)],
        **specs(
            kit,
            ((2, 2), lambda i, k: (k, i)),
            ((2, 2), lambda i, k: (k, 0)),
            ((2, 2), lambda i, k: (i, 0)),
        ),
    )


# ---- grids ---------------------------------------------------------------------------------------


def steps(add, kit):
    jnp, pl = kit.jnp, kit.pl

    def numbered(x_ref, o_ref):
        index = sum(pl.program_id(a) * 10**a for a in range(3))
        o_ref[...] = x_ref[...] + index

    cube = ((1, 2, 4), lambda i, j, k: (i, j, k))
    add("three_axes", numbered, floats(2, 4, 8), grid=(2, 2, 2), **specs(kit, cube, cube))
    add(
        "last_writer_wins",
        lambda x, o: o.__setitem__(..., x[...]),
        floats(4, 4),
        grid=4,
        shape=(1, 4),
        **specs(kit, ((1, 4), rows), ((1, 4), lambda i: (0, 0))),
    )
    add(
        "diagonal",
        mapped(lambda x: x),
        floats(4, 4),
        shape=(2, 2),
        grid=1,
        **specs(kit, ((2, 2), lambda i: (1, 1)), ((2, 2), lambda i: (i, i))),
    )
    add(
        "row_of_two_indices",
        mapped(lambda x: -x),
        floats(6, 2),
        grid=(2, 3),
        **specs(
            kit, ((1, 2), lambda i, j: (i * 3 + j, 0)), ((1, 2), lambda i, j: (5 - (i * 3 + j), 0))
        ),
    )
    add(
        "every_second",
        mapped(lambda x: x),
        floats(8, 2),
        shape=(4, 2),
        grid=4,
        **specs(kit, ((1, 2), lambda i: (2 * i + 1, 0)), ((1, 2), rows)),
    )
    add(
        "wrapped_around",
        mapped(lambda x: x),
        floats(4, 2),
        grid=4,
        **specs(kit, ((1, 2), lambda i: ((i + 1) % 4, 0)), ((1, 2), rows)),
    )

    def triangle(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)

        @pl.when(pl.program_id(0) >= pl.program_id(1))
        def _():
            o_ref[...] = x_ref[...]

    add("triangle", triangle, floats(6, 6), grid=(3, 3), **specs(kit, *[((2, 2), each)] * 2))
    add("of_ones", numbered, floats(1, 2, 4), grid=(1, 1, 1), **specs(kit, cube, cube))

    def transposed(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    add(
        "transposed",
        transposed,
        floats(4, 6),
        shape=(6, 4),
        grid=(2, 3),
        **specs(kit, ((2, 2), each), ((2, 2), lambda i, j: (j, i))),
    )


# ---- modes of blocks -----------------------------------------------------------------------------


def windows(add, kit):
    jnp, pl = kit.jnp, kit.pl
    x = floats(10)

    def window(size, padding=(0, 0)):
        return (pl.Element(size, padding),), lambda i: i * 2

    pair = ((2,), lambda i: i)
    add(
        "overlapping",
        mapped(lambda x: x[:2] + x[1:3] + x[2:]),
        x,
        shape=(8,),
        grid=4,
        **specs(kit, window(4), pair),
    )
    add(
        "with_halo",
        mapped(lambda x: jnp.where(jnp.isnan(x), 0, x)[1:3]),
        x,
        shape=(8,),
        grid=4,
        **specs(kit, window(4, (1, 1)), pair),
    )
    middle = ((2, None, 3), lambda i, j: (0, i, j))
    add(
        "squeezed_middle",
        mapped(lambda x: x.sum(0)),
        floats(2, 4, 6),
        shape=(4, 6),
        grid=(4, 2),
        **specs(kit, middle, ((None, 3), each)),
    )
    add(
        "squeezed_first_of_one",
        mapped(lambda x: x + 1),
        floats(3),
        grid=3,
        **specs(kit, ((None,), lambda i: i), ((None,), lambda i: 2 - i)),
    )
    add(
        "buffered_once",
        mapped(lambda x: x * 2),
        floats(4, 2),
        grid=4,
        **specs(kit, ((1, 2), rows, pl.Buffered(1)), ((1, 2), rows)),
    )
    add(
        "uneven_on_two_axes",
        mapped(lambda x: x + 1),
        floats(5, 7),
        grid=(3, 2),
        **specs(kit, *[((2, 4), each)] * 2),
    )
    add(
        "uneven_sum",
        mapped(lambda x: jnp.nansum(x, keepdims=True)),
        floats(10),
        shape=(3,),
        grid=3,
        **specs(kit, ((4,), lambda i: i), ((1,), lambda i: i)),
    )
    add(
        "one_block_for_all",
        mapped(lambda x, y: x * y),
        floats(6, 4),
        floats(1, 4),
        grid=3,
        **specs(kit, ((2, 4), rows), ((1, 4), lambda i: (0, 0)), ((2, 4), rows)),
    )
    add(
        "whole_next_to_blocks",
        mapped(lambda x, y: x + y[3]),
        floats(6, 4),
        floats(6, 4),
        grid=3,
        **specs(kit, ((2, 4), rows), (), ((2, 4), rows)),
    )
