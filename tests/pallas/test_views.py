"""Views of references in another shape, or with their bits as another dtype: in all modes."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.test_mosaic import X, array, call

MODES = [True, pltpu.InterpretParams()]
modes = pytest.mark.parametrize("interpret", MODES, ids=["interpreted", "modeled"])
m = np.arange(32, dtype=np.int32).reshape(4, 8) * 70000


def run(kernel, x=m, shape=(4, 8), dtype=np.int32, interpret=True):
    out = jax.ShapeDtypeStruct(shape, dtype)
    return np.asarray(pl.pallas_call(kernel, out, interpret=interpret)(x))


@modes
def test_a_part_is_read_and_written_in_another_shape(interpret):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        view = o_ref.at[1:3].reshape(2, 2, 4)
        assert view.shape == (2, 2, 4)
        view[1, :, pl.ds(1, 2)] = x_ref.reshape((-1, 4)).at[2:4][:, :2]

    expected = np.zeros_like(m)
    expected[1:3].reshape(2, 2, 4)[1, :, 1:3] = m.reshape(8, 4)[2:4, :2]
    np.testing.assert_array_equal(run(kernel, interpret=interpret), expected)


@modes
def test_rows_of_narrow_elements_are_packed_in_one_the_lowest_bits_first(interpret):
    def narrow(x_ref, o_ref):
        o_ref[...] = x_ref.bitcast(jnp.int16)[...]

    halves = m.view(np.int16).reshape(4, 8, 2).transpose(0, 2, 1).reshape(8, 8)
    got = run(narrow, shape=(8, 8), dtype=np.int16, interpret=interpret)
    np.testing.assert_array_equal(got, halves)

    def wide(x_ref, o_ref):
        o_ref.bitcast(jnp.uint16).bitcast(jnp.int16)[...] = x_ref[...]

    np.testing.assert_array_equal(run(wide, halves, interpret=interpret), m)
    np.testing.assert_array_equal(
        run(lambda x, o: o.__setitem__(..., x.bitcast(np.int32)[...]), halves, interpret=interpret),
        m,
    )


@modes
def test_one_element_of_a_view_is_written(interpret):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        o_ref.bitcast(jnp.int16)[3, 2] = jnp.int16(7)
        pltpu.store(o_ref.reshape(8, 4), jnp.zeros((8, 4), int), mask=x_ref.reshape(8, 4)[...] < 9)

    expected = m.copy()
    expected[1, 2] = (expected[1, 2] & 0xFFFF) | (7 << 16)
    expected[m < 9] = 0
    np.testing.assert_array_equal(run(kernel, interpret=interpret), expected)


def test_a_reference_outside_of_kernels_has_views_too():
    ref = jax.new_ref(jnp.arange(6.0))

    @jax.jit
    def swap_rows():
        view = ref.reshape(2, 3)
        first = view[0]
        view[0] = view[1]
        view[1] = first

    swap_rows()
    np.testing.assert_array_equal(ref[...], [3, 4, 5, 0, 1, 2])
    np.testing.assert_array_equal(ref.bitcast(jnp.int32)[...], np.asarray(ref[...]).view(np.int32))


def test_tangents_pass_through_another_shape_and_bits_have_none():
    def kernel(x_ref, o_ref):
        o_ref.reshape(4, 2)[...] = x_ref.reshape(4, 2)[...] * 3
        o_ref[0, 0] = o_ref[0, 0] + x_ref.bitcast(jnp.int32)[0, 0]

    x = np.ones((2, 4), np.float32)
    call = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2, 4), x.dtype), interpret=True)
    _, tangent = jax.jvp(call, (x,), (x * 2,))
    np.testing.assert_array_equal(tangent, x * 6)


def test_they_are_views_of_memory_in_mosaic():
    def kernel(x_ref, o_ref):
        o_ref.bitcast(jnp.int32)[...] = x_ref.bitcast(jnp.bfloat16).bitcast(jnp.int32)[...]
        o_ref[...] += x_ref.reshape(2, 8, 128)[0, 0:1]

    text = call(kernel, X)
    for expected in (
        "tpu.memref_bitcast %arg0 : memref<16x128xf32, #tpu.memory_space<vmem>> -> memref<32x128x",
        "tpu.memref_reshape %arg0 : memref<16x128xf32, #tpu.memory_space<vmem>> -> memref<2x8x128",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (lambda x: x.reshape(3, 5), r"cannot reshape ref of shape \(4, 8\).*32 elements"),
        (lambda x: x.reshape(-1, 5), "cannot reshape ref"),
        (lambda x: x.at[0].bitcast(jnp.int16), r"cannot bitcast ref of shape \(8,\)"),
        (lambda x: x.at[:3].bitcast(jnp.int16).at[:3].bitcast(int), "must be a multiple of 2"),
    ],
)
def test_views_of_other_sizes_are_refused(view, message):
    with pytest.raises(ValueError, match=message):
        run(lambda x_ref, o_ref: view(x_ref) and None)


def test_an_array_is_no_reference():
    assert not hasattr(array, "bitcast")
    assert jax.jit(lambda x: x.reshape(8, 4))(m).shape == (8, 4)
