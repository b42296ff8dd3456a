"""Blocks of arrays that stay where they are, in compiled kernels: parts of these arrays."""

import re

import numpy as np
import pytest

import hlofront as jax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.mosaic_modules import ANYWHERE, F32, X, array, module_of, on_tpu


def copy_rows(x_ref, o_ref, sem):
    pltpu.async_copy(x_ref, o_ref, sem).wait()


def copied_in_blocks(x, rows, **options):
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0), memory_space=pl.ANY)
    out = jax.ShapeDtypeStruct((rows, 128), F32)
    scratch = [pltpu.SemaphoreType.DMA]
    specs = {"in_specs": [spec], "out_specs": ANYWHERE, "scratch_shapes": scratch}
    return pl.pallas_call(copy_rows, out, grid=(2,), **specs, **options)(x)


def test_an_example_of_a_batch_is_a_part_of_the_array_that_is_not_moved():
    specs = {"in_specs": [ANYWHERE], "out_specs": ANYWHERE}
    call = pl.pallas_call(copy_rows, X, **specs, scratch_shapes=[pltpu.SemaphoreType.DMA])
    batch = array((3, *X.shape))
    text = module_of(jax.vmap(call), batch)
    assert text.count("tpu.memref_slice %arg") == 2
    assert "memref<3x16x128xf32, #tpu.memory_space<any>> -> memref<1x16x128xf32" in text
    on_tpu(jax.vmap(call), batch).compile()


def test_a_block_of_an_array_that_is_not_moved_begins_where_its_index_map_says():
    text = module_of(lambda x: copied_in_blocks(x, 8), X)
    assert re.search(
        r"%(\S+) = arith.muli %arg0, %c8_i32.*tpu.memref_slice %arg1\[%\1, ", text, re.S
    )
    x = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
    np.testing.assert_array_equal(copied_in_blocks(x, 8, interpret=True), x[8:])


def test_blocks_that_do_not_divide_an_array_that_is_not_moved_are_refused():
    with pytest.raises(ValueError, match=r"do not divide args\[0\], which is not moved"):
        module_of(lambda x: copied_in_blocks(x, 12), X)
