"""More than 200 small kernels, of each kind of operation, block and buffer, compile for a v5e."""

import functools
import itertools

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.mosaic_modules import ANYWHERE, BF16, F32, I8, I32, SCALARS, array, on_tpu

SHAPE = (64, 256)
FAMILIES = {}


def family(function):
    """Add the kernels that a function yields: pairs of a function of arrays, and their types."""
    FAMILIES[function.__name__] = list(function())
    return function


def mapped(function, *dtypes, shape=SHAPE, block=(32, 128), out=None):
    """A kernel that computes a function of blocks."""

    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])

    avals = [array(shape, dtype) for dtype in dtypes]
    result = jax.eval_shape(function, *avals)
    spec = pl.BlockSpec(block, lambda i, j: (i, j))
    grid = tuple(n // b for n, b in zip(shape, block, strict=True))
    specs = {"grid": grid, "in_specs": [spec] * len(dtypes), "out_specs": spec}
    return functools.partial(pl.pallas_call(kernel, result, **specs)), avals


@family
def floats():
    functions = [jnp.exp, jnp.log, jnp.tanh, jnp.sin, jnp.cos, jnp.sqrt, lax.rsqrt, jnp.abs]
    functions += [jnp.floor, jnp.ceil, jnp.sign, jnp.square, jax.nn.sigmoid, jax.nn.relu, jnp.log1p]
    functions += [jnp.expm1, jnp.isnan, jnp.exp2, lax.neg, lambda x: x**3, lambda x: x > 0]
    functions = [lambda x, f=f: f(x).astype(x.dtype) for f in functions]
    return [mapped(f, dtype) for f in functions for dtype in (F32, BF16)]


@family
def pairs():
    functions = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum]
    functions += [lambda x, y: jnp.where(x > y, x, y * 2), lambda x, y: jnp.clip(x, 0, y)]
    return [mapped(f, d, d) for f in functions for d in (F32, BF16, I32, I8)]


@family
def integers():
    functions = [lambda x: x & 7, lambda x: x | 1, lambda x: x ^ 3, lambda x: ~x, lambda x: x << 1]
    functions += [lambda x: x >> 2, jnp.abs, lambda x: -x, lambda x: x // 3, lambda x: x % 5]
    return [mapped(f, dtype) for f in functions for dtype in (I32, jnp.uint32)]


@family
def conversions():
    dtypes = (F32, BF16, I32, I8, jnp.uint8, jnp.int16)
    return [mapped(lambda x, d=to: x.astype(d), of) for of, to in itertools.permutations(dtypes, 2)]


@family
def reductions():
    def reduced(function, axis, dtype):
        def kernel(x_ref, o_ref):
            o_ref[...] = function(x_ref[...], axis=axis, keepdims=True)

        avals = [array(SHAPE, dtype)]
        out = jax.eval_shape(lambda x: function(x, axis=axis, keepdims=True), *avals)
        return functools.partial(pl.pallas_call(kernel, out)), avals

    of_floats = [reduced(f, a, F32) for f in (jnp.sum, jnp.max, jnp.min, jnp.mean) for a in (0, 1)]
    indices = [reduced(f, a, F32) for f in (jnp.argmax, jnp.argmin) for a in (0, 1)]
    return [*of_floats, *indices, *[reduced(f, 1, BF16) for f in (jnp.sum, jnp.max)]]


@family
def products():
    def product(numbers, dtype, out):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = lax.dot_general(
                x_ref[...], y_ref[...], numbers, preferred_element_type=out
            )

        batch = numbers[1][0]
        avals = [array((4, 128, 128) if batch else (128, 128), dtype)] * 2
        return functools.partial(pl.pallas_call(kernel, array(avals[0].shape, out))), avals

    plain = [(((a,), (b,)), ((), ())) for a in (0, 1) for b in (0, 1)]
    batched = [(((2,), (1,)), ((0,), (0,))), (((2,), (2,)), ((0,), (0,)))]
    kinds = ((F32, F32), (BF16, F32), (I8, I32))
    return [
        product(n, d, o) for n in (*plain, *batched) for d, o in kinds if d != I8 or n != plain[0]
    ]


@family
def blocks():
    def copied(block, index, grid, dtype, shape=SHAPE, **options):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        spec = pl.BlockSpec(block, index, **options)
        specs = {"grid": grid, "in_specs": [spec], "out_specs": spec}
        return functools.partial(pl.pallas_call(kernel, array(shape, dtype), **specs)), [
            array(shape, dtype)
        ]

    buffered = {"pipeline_mode": pl.Buffered(1)}
    rows, cube = lambda i: (i, 0), lambda i: (i, 0, 0)
    for dtype in (F32, BF16, I32, I8):
        yield copied((32, 128), lambda i, j: (i, j), (2, 2), dtype)
        yield copied((32, 256), rows, 2, dtype)
        yield copied((32, 256), rows, 2, dtype, **buffered)
        yield copied((32, 256), lambda i: (1 - i, 0), 2, dtype)
        yield copied((64, 128), lambda j: (0, j), (2,), dtype)
        yield copied(None, None, (), dtype)
        yield copied((None, 64, 256), cube, 4, dtype, (4, 64, 256))
        yield copied((pl.squeezed, 32, 256), cube, 4, dtype, (4, 32, 256))
        yield copied((2, 32, 256), cube, 2, dtype, (4, 32, 256))
        yield copied((pl.Element(32), pl.Element(256)), lambda i: (32 * i, 0), 2, dtype)


# ---- what kernels have besides blocks ------------------------------------------------------------


def whole(kernel, *avals, out=None, **options):
    return functools.partial(pl.pallas_call(kernel, out or avals[-1], **options)), avals


@family
def buffers():
    for dtype in (F32, BF16, I32):
        x = array(SHAPE, dtype)
        row = pl.BlockSpec((32, 256), lambda i: (i, 0))
        rows = {"grid": 2, "in_specs": [row], "out_specs": row}
        vmem, dma = pltpu.VMEM((32, 256), dtype), pltpu.SemaphoreType.DMA

        def through_scratch(x_ref, o_ref, scratch):
            scratch[...] = x_ref[...]
            o_ref[...] = scratch[...]

        yield whole(through_scratch, x, scratch_shapes=[vmem], **rows)
        yield whole(lambda x, o: o.__setitem__(..., x[...]), x, input_output_aliases={0: 0}, **rows)

        def scoped(x_ref, o_ref, run=vmem):
            def inner(buffer):
                buffer[...] = x_ref[...]
                o_ref[...] = buffer[...]

            pl.run_scoped(inner, run)

        yield whole(scoped, x, **rows)

        def by_copies(x_ref, o_ref, buffer, sem):
            pltpu.async_copy(x_ref.at[pl.ds(0, 32)], buffer, sem).wait()
            pltpu.async_copy(buffer, o_ref.at[pl.ds(32, 32)], sem).wait()

        anywhere = {"in_specs": [ANYWHERE], "out_specs": ANYWHERE}
        yield whole(by_copies, x, scratch_shapes=[vmem, dma], **anywhere)

        def in_a_loop(x_ref, o_ref):
            @pl.loop(0, 2)
            def _(i):
                part = pl.ds(pl.multiple_of(i * 32, 32), 32)
                o_ref[part, :] = x_ref[part, :]

        yield whole(in_a_loop, x)

        def of_steps(x_ref, o_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                o_ref[...] = x_ref[...]

        yield whole(of_steps, x, **rows)
        for count, has_pipelining in ((2, True), (3, True), (1, False)):
            spec = pl.BlockSpec((32, 256), lambda i: (i, 0), pipeline_mode=pl.Buffered(count))

            def pipelined(x_ref, o_ref, spec=spec, off=not has_pipelining):
                def body(x_ref, o_ref):
                    o_ref[...] = x_ref[...]

                pltpu.emit_pipeline(
                    body, grid=(2,), in_specs=[spec], out_specs=[spec], no_pipelining=off
                )(x_ref, o_ref)

            yield whole(pipelined, x, **anywhere)

        def updated(o_ref, x_ref, out_ref):
            spec = pl.BlockSpec((32, 256), lambda i: (i, 0))

            def body(block):
                block[...] = block[...] + block[...]

            def run(buffers):
                pltpu.emit_pipeline(body, grid=(2,))(out_ref, allocations=[buffers])

            pl.run_scoped(run, pltpu.BufferedRef.input_output(spec, out_ref.dtype))

        both = {"in_specs": [ANYWHERE, ANYWHERE], "out_specs": ANYWHERE}
        yield whole(updated, x, x, input_output_aliases={0: 0}, **both)

        def chosen(n_ref, x_ref, y_ref, o_ref):
            pltpu.sync_copy(pl.select_ref(n_ref[0], x_ref, y_ref), o_ref)

        specs = {"in_specs": [SCALARS, ANYWHERE, ANYWHERE], "out_specs": ANYWHERE}
        yield whole(chosen, array((1,), I32), x, x, **specs)
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(2,),
            in_specs=[pl.BlockSpec((32, 256), lambda i, n: (n[i], 0))],
            out_specs=pl.BlockSpec((32, 256), lambda i, n: (i, 0)),
        )
        take = lambda n, x, o: o.__setitem__(..., x[...])
        yield whole(take, array((2,), I32), x, grid_spec=spec)


def test_there_are_more_than_two_hundred():
    assert sum(map(len, FAMILIES.values())) > 200


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_libtpu_compiles_them(name):
    failures = []
    for number, (function, avals) in enumerate(FAMILIES[name]):
        lowered = on_tpu(function, *avals)
        assert "tpu_custom_call" in lowered.as_text()
        try:
            lowered.compile()
        except jax.errors.JaxRuntimeError as error:
            failures.append(f"{number}: {str(error)[:200]}")
    assert not failures, "\n".join(failures)
