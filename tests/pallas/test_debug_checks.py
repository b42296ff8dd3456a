"""Checks in kernels on request: bounds of blocks and of indices, and pl.debug_check."""

import pathlib

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.test_mosaic import X, call

HERE = pathlib.Path(__file__).name
x = np.arange(8, dtype=np.float32)
OUT = jax.ShapeDtypeStruct((8,), jnp.float32)
halves = pl.BlockSpec((4,), lambda i: i)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(kernel, *args, checks=True, **options):
    with pl.enable_debug_checks(checks):
        result = pl.pallas_call(kernel, OUT, **{"interpret": True, **options})(*args or (x,))
        return np.asarray(jax.block_until_ready(result))


def index_kernel(access):
    """A kernel with an access at an index that is an operand."""

    def kernel(n_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]
        access(n_ref[0], x_ref, o_ref)

    return kernel


def read_element(n, x_ref, o_ref):
    o_ref[0] = x_ref[n]


def write_slice(n, x_ref, o_ref):
    o_ref[pl.ds(n, 4)] = x_ref[:4]


def view_in_a_loop(n, x_ref, o_ref):
    @pl.loop(0, n)
    def _(i):
        o_ref.at[pl.ds(i, 2)][0] = x_ref[0]


def strided(n, x_ref, o_ref):
    o_ref[:2] = x_ref[pl.ds(n, 2, 3)]


ACCESSES = [(read_element, 7, 8), (write_slice, 4, 5), (view_in_a_loop, 7, 8), (strided, 4, 5)]


@pytest.mark.parametrize(("access", "last", "beyond"), ACCESSES, ids=lambda a: str(a))
def test_an_index_that_is_computed_is_checked_with_its_line(access, last, beyond):
    kernel = index_kernel(access)
    inside = run(kernel, np.int32([last]), x)
    np.testing.assert_array_equal(run(kernel, np.int32([last]), x, checks=False), inside)
    run(kernel, np.int32([beyond]), x, checks=False)
    line = access.__code__.co_firstlineno
    with pytest.raises(JaxRuntimeError, match=r"IndexError: Out-of-bounds index .* axis 0") as got:
        run(kernel, np.int32([beyond]), x)
    lines = [f"{HERE}:{line + offset}:" for offset in range(4)]
    assert any(place in str(got.value) for place in lines)


def test_an_index_that_counts_from_the_end_is_inside():
    kernel = index_kernel(read_element)
    assert run(kernel, np.int32([-1]), x)[0] == 7
    with pytest.raises(JaxRuntimeError, match="Out-of-bounds index -9"):
        run(kernel, np.int32([-9]), x)


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams()], ids=["xla", "modeled"])
def test_a_block_outside_of_its_array_is_told_with_its_index_and_step(interpret):
    beyond = pl.BlockSpec((4,), lambda i: i + 1)
    options = {"grid": 2, "out_specs": halves, "interpret": interpret}
    np.testing.assert_array_equal(run(copy, in_specs=[halves], **options), x)
    with pytest.raises(JaxRuntimeError, match=r"Out-of-bounds block .*at step \(1,\)"):
        run(copy, in_specs=[beyond], **options)
    if interpret is True:
        with pytest.raises(JaxRuntimeError, match=r"of args\[0\] .* begins at element 8 and has 4"):
            run(copy, in_specs=[beyond], **options)
        run(copy, in_specs=[beyond], **options, checks=False)


def test_a_block_that_reaches_past_the_end_is_inside():
    uneven = pl.BlockSpec((3,), lambda i: i)
    np.testing.assert_array_equal(run(copy, grid=3, in_specs=[uneven], out_specs=uneven), x)


def positive(x_ref, o_ref):
    pl.debug_check(jnp.all(x_ref[...] > 0), "roots of {positive} numbers")
    o_ref[...] = x_ref[...]


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams()], ids=["xla", "modeled"])
def test_a_condition_is_checked_on_request(interpret):
    run(positive, checks=False, interpret=interpret)
    run(positive, x + 1, interpret=interpret)
    with pytest.raises(JaxRuntimeError, match=r"roots of \{positive\} numbers.*test_debug_checks"):
        run(positive, interpret=interpret)


def test_mosaic_asserts_a_condition_on_request():
    assert "cf.assert" not in call(positive, X)
    with pl.enable_debug_checks(True):
        assert "cf.assert %" in call(positive, X)


def test_buffers_without_contents_are_nan_where_a_kernel_is_interpreted():
    assert np.isnan(run(lambda x_ref, o_ref: None)).all()
    assert pl.enable_poison_buffers.value is False
