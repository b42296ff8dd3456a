"""What is said of kernels that TPUs cannot run: what was given, which line it is, the way out."""

import inspect
import pathlib
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.mosaic_modules import ANYWHERE, BOOL, F32, I32, SCALARS, X, array, call

HERE = pathlib.Path(__file__).name
BUFFERS = pl.BlockSpec((16, 128), lambda i: (0, 0), pipeline_mode=pl.Buffered(3))
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
wrong = {}


def says(error, *parts, avals=(X,), out=X, **options):
    """Register a kernel whose lowering raises an error with these parts, and its line."""

    def register(kernel):
        wrong[kernel.__name__] = (kernel, error, parts, avals, out, options)
        return kernel

    return register


def lacks(*parts, **options):
    """Register a kernel with an operation that kernels of TPUs do not have."""
    return says(NotImplementedError, *parts, **options)


# ---- operations that TPUs lack -------------------------------------------------------------------


@lacks("tc: sort", "compute it outside of the kernel")
def sorts(x, o):
    o[...] = jnp.sort(x[...])


@lacks("tc: cumsum", "triangular matrix of ones")
def sums_up(x, o):
    o[...] = jnp.cumsum(x[...], 0)


@lacks("tc: rev", "index the blocks backwards")
def reverses(x, o):
    o[...] = x[...][::-1]


@lacks("tc: reduce_prod", "multiply slices")
def multiplies(x, o):
    o[...] = jnp.broadcast_to(jnp.prod(x[...], 0), (16, 128))


@lacks("tc: dynamic_slice", "ref[pl.ds(start, 8), :]", grid=(2,))
def slices_a_value(x, o):
    o[...] = lax.dynamic_slice(x[...], (pl.program_id(0), 0), (16, 128))


@lacks("tc: dynamic_update_slice", "ref[pl.ds(start, 8), :] = x", grid=(2,))
def updates_a_value(x, o):
    o[...] = lax.dynamic_update_slice(x[...], x[:8], (pl.program_id(0), 0))


@lacks("tc: scatter-add", "in a loop", grid=(2,))
def scatters(x, o):
    o[...] = x[...].at[pl.program_id(0)].add(1.0)


@lacks("tc: conv_general_dilated", "shifted slices")
def convolves(x, o):
    o[...] = lax.conv(x[...][None, None], jnp.ones((1, 1, 1, 1)), (1, 1), "SAME")[0, 0]


@lacks("tc: top_k", "jnp.max and jnp.argmax")
def takes_the_greatest(x, o):
    o[:, :4] = lax.top_k(x[...], 4)[0]


@lacks("tc: debug_callback", "pl.debug_print")
def calls_back(x, o):
    jax.debug.callback(print, x[0, 0])


@lacks("tc: pure_callback", "outside of the kernel")
def calls_python(x, o):
    o[...] = jax.pure_callback(np.sin, X, x[...])


@lacks("tc: pallas_call", "pltpu.emit_pipeline")
def calls_a_kernel(x, o):
    o[...] = pl.pallas_call(lambda x, o: None, X)(x[...])


# ---- operations that TPUs have in other forms ----------------------------------------------------


@lacks("strides (1, 2)", "pl.ds(start, size, stride)", out=array((16, 64)))
def slices_with_strides(x, o):
    o[...] = x[...][:, ::2]


@lacks("pad by ((0, 0, 1)", "jnp.concatenate", out=array((31, 128)))
def pads_between(x, o):
    o[...] = lax.pad(x[...], 0.0, ((0, 0, 1), (0, 0, 0)))


@lacks("a gather of float32[16,128]", "jnp.take_along_axis", avals=(X, array((4,), I32)))
def gathers_rows(x, i, o):
    o[:4] = x[...][i[...]]


@lacks("a scan over arrays", "jax.lax.fori_loop")
def scans(x, o):
    o[...] = lax.scan(lambda total, row: (total, total + row), x[0], x[...])[1]


@lacks("reshape with `dimensions`", "transpose first", out=array((128, 16)))
def reshapes_in_another_order(x, o):
    o[...] = lax.reshape(x[...], (128, 16), (1, 0))


@lacks("bitcast_convert_type from", "pltpu.bitcast", out=array((16, 128, 2), jnp.int16))
def splits_words(x, o):
    o[...] = lax.bitcast_convert_type(x[...], jnp.int16)


@lacks("pltpu.bitcast along axis 1", "transpose first", out=array((16, 256), jnp.int16))
def splits_columns(x, o):
    o[...] = pltpu.bitcast(x[...], jnp.int16, dim=-1)


@lacks("pltpu.bitcast from bool[16,128]", "x.astype(jnp.int32)", avals=(array((16, 128), BOOL),))
def reads_bits_of_masks(x, o):
    o[:4] = pltpu.bitcast(x[...], F32)


@lacks("no mulhi of int16", "32 bits", avals=(array((16, 128), jnp.int16),))
def multiplies_short_integers(x, o):
    o[...] = lax.mulhi(x[...], x[...]).astype(F32)


@lacks("reduce_and of int32", "(x != 0).any(axis)", avals=(array((16, 128), I32),))
def reduces_bits(x, o):
    o[...] = jnp.broadcast_to(lax.reduce_and_p.bind(x[...], axes=(0,)), (16, 128)).astype(F32)


# ---- products ------------------------------------------------------------------------------------


@lacks("dimension_numbers", "one axis that is contracted", out=array((1, 1)))
def contracts_two_axes(x, o):
    o[...] = jnp.full((1, 1), lax.dot_general(x[...], x[...], (((0, 1), (0, 1)), ((), ()))))


@lacks("a product of float32[128] and float32[128]", "jnp.sum(x * y)")
def multiplies_vectors(x, o):
    o[...] = jnp.full((16, 128), x[0] @ x[0])


@lacks("no int32", "Convert the operands to int8", avals=(array((16, 128), I32),))
def multiplies_integers(x, o):
    o[:, :16] = (x[...] @ x[...].T).astype(F32)


@lacks("precision=", "Precision.DEFAULT or Precision.HIGHEST")
def multiplies_with_some_precision(x, o):
    o[:, :16] = lax.dot(x[...], x[...].T, precision="high")


# ---- elements ------------------------------------------------------------------------------------


@says(TypeError, "no elements of float16, only of", "Convert")
def converts_to_half(x, o):
    o[...] = x[...].astype(jnp.float16).astype(F32)


@says(
    TypeError, "args[0] of the kernel", "float16", "Convert", avals=(array((16, 128), jnp.float16),)
)
def reads_half(x, o):
    o[...] = x[...].astype(F32)


@says(
    TypeError, "scratch 0 of the kernel", "float16", scratch_shapes=[pltpu.VMEM((8,), jnp.float16)]
)
def keeps_half(x, o, scratch):
    o[...] = x[...]


# ---- references ----------------------------------------------------------------------------------


@says(ValueError, "Cannot store scalars to VMEM", "ref[i, 0:1]")
def writes_an_element(x, o):
    o[0, 0] = x[0, 0]


@says(ValueError, "in ANY", "pltpu.sync_copy", in_specs=[ANYWHERE])
def reads_from_anywhere(x, o):
    o[...] = x[...]


@says(ValueError, "SMEM holds scalars", "a BlockSpec in VMEM", in_specs=[SCALARS])
def reads_a_vector_of_scalars(x, o):
    o[...] = x[...]


@says(ValueError, "a write to SMEM with a mask", "pl.when(mask)", out_specs=SCALARS)
def masks_a_scalar(x, o):
    pltpu.store(o.at[0, 0], x[0, 0], mask=x[0, 0] > 0)


@lacks("a mask and strides", "select, and write them all")
def masks_strides(x, o):
    pltpu.store(o.at[::2], x[:8], mask=x[:8] > 0)


@lacks("an array of integers", "jnp.take_along_axis", avals=(X, array((4,), I32)))
def reads_rows(x, i, o):
    o[:4] = x[i[...]]


@lacks("a view of a reference with strides (2, 1)", "ref[::2, :]")
def views_strides(x, o):
    o[:4] = x.at[::2].at[:4][...]


@says(
    pltpu.LoweringException,
    "Only single (1) and double",
    "emit_pipeline",
    grid=2,
    in_specs=[BUFFERS],
)
def has_three_buffers(x, o):
    o[...] = x[...]


# ---- semaphores, copies and devices --------------------------------------------------------------


@lacks("decrement=False", "pl.semaphore_read", scratch_shapes=[REGULAR])
def waits_and_keeps(x, o, semaphore):
    pl.semaphore_wait(semaphore, decrement=False)


@lacks("a copy that adds", "add from there", scratch_shapes=[DMA])
def adds_by_a_copy(x, o, semaphore):
    pltpu.make_async_copy(x, o, semaphore).start(add=True)


@says(ValueError, "without shard_map", "over a mesh", scratch_shapes=[DMA, DMA])
def copies_to_a_device(x, o, sent, arrived):
    pltpu.make_async_remote_copy(x, o, sent, arrived, device_id=(1,)).start()


# ---- printing ------------------------------------------------------------------------------------


@lacks("ordered=True", "leave `ordered` out")
def prints_in_order(x, o):
    jax.debug.print("x", ordered=True)


@says(ValueError, "keyword arguments", "positional arrays")
def prints_by_name(x, o):
    pl.debug_print("x: {x}", x=x[0, 0])


@says(ValueError, "float32[16,128], float32[]", "Print each vector by itself")
def prints_a_vector_and_a_scalar(x, o):
    pl.debug_print("x: {} {}", x[...], x[0, 0])


@says(ValueError, "{:.2f}", "one int32, uint32 or float32 for each")
def prints_digits(x, o):
    pl.debug_print("x: {:.2f}", x[0, 0])


@pytest.mark.parametrize("name", wrong)
def test_what_tpus_cannot_do_is_told_with_its_line_and_the_way_out(name):
    kernel, error, parts, avals, out, options = wrong[name]
    with pytest.raises(error) as caught:
        call(kernel, *avals, out=out, **options)
    text = str(caught.value)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} missing in: {text}"
    lines, first = inspect.getsourcelines(kernel)
    # The buffers of a block have the name of its operand.
    if "buffering" not in text:
        named = re.findall(rf"{HERE}:(\d+)", text)
        assert any(first <= int(line) < first + len(lines) for line in named), text
