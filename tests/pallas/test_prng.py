"""Random numbers in kernels, delays, and what touches references: in all modes and in Mosaic."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.primitives.random.bits import threefry2x32_p
from tests.pallas.test_mosaic import X, call

MODELED = pltpu.InterpretParams(uninitialized_memory="raise")
modes = pytest.mark.parametrize("interpret", [True, MODELED], ids=["interpreted", "modeled"])
SHAPE = (4, 64)


def out(dtype=jnp.float32, shape=SHAPE):
    return jax.ShapeDtypeStruct(shape, dtype)


def drawn(draw, *seeds, dtype=jnp.int32, interpret=True, **options):
    """The result of a kernel that seeds the generator, and writes what it draws."""

    def kernel(o_ref):
        pltpu.prng_seed(*seeds)
        o_ref[...] = draw()

    return np.asarray(pl.pallas_call(kernel, out(dtype), interpret=interpret, **options)())


def bits():
    return pltpu.prng_random_bits(SHAPE)


def test_the_bits_of_a_seed_are_the_same_in_both_interpreters_and_all_seeds_count():
    results = [
        drawn(bits, *seeds, interpret=interpret)
        for interpret in (True, MODELED)
        for seeds in ((3,), (4,), (3, 4), (4, 3), (-3,))
    ]
    for one, other in zip(results[:5], results[5:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len({result.tobytes() for result in results}) == 5


@modes
def test_each_use_has_new_bits_in_loops_branches_and_later_steps(interpret):
    def kernel(o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            pltpu.prng_seed(7)

        @pl.loop(0, 4)
        def _(i):
            o_ref[i] = pltpu.prng_random_bits((64,))

    blocks = pl.BlockSpec((4, 64), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel, out(jnp.int32, (12, 64)), grid=3, out_specs=blocks, interpret=interpret
    )
    values = np.asarray(call())
    assert np.unique(values).size == values.size
    np.testing.assert_array_equal(np.asarray(call()), values)


@modes
@pytest.mark.parametrize(
    ("draw", "low", "high", "mean"),
    [
        (lambda: pltpu.stateful_uniform(SHAPE, minval=-1, maxval=3), -1, 3, 1),
        (lambda: pltpu.stateful_normal(SHAPE), -5, 5, 0),
        (lambda: pltpu.stateful_bernoulli(0.75, SHAPE).astype(jnp.float32), 0, 1.01, 0.75),
    ],
    ids=["uniform", "normal", "bernoulli"],
)
def test_numbers_of_the_core_have_their_distribution(draw, low, high, mean, interpret):
    values = drawn(draw, 1, dtype=jnp.float32, interpret=interpret)
    assert low <= values.min() < values.max() < high
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(values.size)


def test_a_generator_that_was_not_seeded_is_found_on_a_modeled_tpu():
    def kernel(o_ref):
        o_ref[...] = bits()

    with pytest.raises(JaxRuntimeError, match=r"3 of the 3 elements.* were never written"):
        jax.block_until_ready(pl.pallas_call(kernel, out(jnp.int32), interpret=MODELED)())


def test_blocks_of_any_shape_have_the_same_numbers():
    def numbers(block):
        def kernel(o_ref):
            o_ref[...] = pltpu.sample_block(
                jax.random.uniform, jax.random.key(0), block, (2, 4), (8, 8)
            )

        grid = (8 // block[0], 8 // block[1])
        specs = pl.BlockSpec(block, lambda i, j: (i, j))
        shape = out(shape=(8, 8))
        return pl.pallas_call(kernel, shape, grid=grid, out_specs=specs, interpret=True)()

    np.testing.assert_array_equal(numbers((2, 4)), numbers((4, 8)))
    np.testing.assert_array_equal(numbers((8, 4)), numbers((4, 8)))


def test_keys_for_pallas_are_made_of_others_and_not_split():
    key = pltpu.to_pallas_key(jax.random.key(0))
    assert str(key.dtype) == "key<pl>"
    # What jax 0.10.2 gives.
    assert jax.random.key_data(key).tolist() == [[4070199207, 4202968722]]
    assert jax.random.bits(jax.random.fold_in(key, 1), (2, 3)).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="Use fold_in instead"):
        jax.random.split(key)


@modes
def test_delays_touches_and_values_for_profiles_change_nothing(interpret):
    def kernel(x_ref, o_ref):
        pl.delay(10)
        pltpu.touch([x_ref, o_ref.at[0]])
        pltpu.trace_value("first", x_ref[0, 0])
        o_ref[...] = x_ref[...]

    x = np.ones(SHAPE, np.float32)
    function = pl.pallas_call(kernel, out(), interpret=interpret)
    np.testing.assert_array_equal(function(x), x)
    assert not jax.make_jaxpr(function)(x).effects


def test_they_are_operations_of_mosaic():
    def kernel(x_ref, o_ref):
        pltpu.prng_seed(3, pl.program_id(0))
        pl.delay(10)
        pltpu.trace_value("first", pl.program_id(0))
        pltpu.touch(x_ref)
        o_ref[...] = x_ref[...] + pltpu.stateful_uniform((16, 128))

    text = call(kernel, X, grid=2)
    for expected in ("tpu.prng_set_seed_32", "tpu.prng_random_bits", "tpu.delay", '"first"'):
        assert expected in text


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda o: pltpu.prng_seed(), "takes one or more integers"),
        (lambda o: pltpu.prng_seed(jnp.ones(2, int)), r"must be scalar integers. Got int32\[2\]"),
        (lambda o: pltpu.stateful_bits(SHAPE, "uint8"), "must be 32, got dtype uint8"),
        (lambda o: pltpu.stateful_normal(SHAPE, int), "must be a float dtype, got int32"),
        (lambda o: pltpu.trace_value("a", o[...]), "requires a scalar of i32 or f32"),
        (lambda o: pl.delay(jnp.ones(2, int)), "number of nanoseconds, got an array"),
        (lambda o: pltpu.touch(1), "Can only call `touch` on a `Ref`"),
    ],
)
def test_what_does_not_fit_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        pl.pallas_call(kernel, out(), interpret=True)()


def test_random_bits_are_of_kernels():
    with pytest.raises(ValueError, match="can only be called in a kernel"):
        pltpu.prng_random_bits((2,))


def test_threefry_is_arithmetic_of_mosaic():
    """As JAX's own kernel of random bits has it, with the words of the key in SMEM."""

    def kernel(key, o_ref):
        words = [jnp.reshape(key[0, i], (1, 1)) for i in range(2)]
        counts = jax.lax.broadcasted_iota(jnp.uint32, (8, 128), 1)
        upper, lower = threefry2x32_p.bind(*words, counts * 0, counts)
        o_ref[...] = upper ^ lower

    key = jax.ShapeDtypeStruct((1, 2), jnp.uint32)
    text = call(
        kernel,
        key,
        out=jax.ShapeDtypeStruct((8, 128), jnp.uint32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
    )
    assert text.count("arith.shli") == text.count("arith.shrui") == 20
    assert text.count("arith.xori") == 20 + 3
