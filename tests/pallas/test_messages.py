"""What is said of kernels that are wrong: what was given, which line it is, and the way out."""

import pathlib
import re
import traceback

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu

x = np.arange(8, dtype=np.float32)
constant = jnp.ones(8)
HERE = pathlib.Path(__file__).name
wrong = {}


def says(error, *parts):
    """Register a call that raises an error whose text has these parts."""

    def register(function):
        wrong[function.__name__] = (function, error, parts)
        return function

    return register


def call(kernel, shape=(8,), **options):
    out = hlofront.ShapeDtypeStruct(shape, np.float32)
    return pl.pallas_call(kernel, out, interpret=True, **options)(x)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


@says(ValueError, "copy at ", HERE, "captures constants [f32[8]]", "inputs", "read at", HERE)
def captured_array():
    def copy(x_ref, o_ref):
        o_ref[...] = x_ref[...] + constant

    call(copy)


@says(ValueError, "values of the function around the call", "pass them as inputs")
def captured_value():
    def f(y):
        return call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] + y))

    hlofront.jit(f)(x)


@says(ValueError, "should return None", "Write results to the references of outputs")
def returned_value():
    call(lambda x_ref, o_ref: x_ref[...])


@says(ValueError, "Expected shape: (8,). Value shape: (4,)", "jnp.broadcast_to", HERE)
def shape_written():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:4]

    call(kernel)


@says(ValueError, "Value dtype: int32", "value.astype('float32')", HERE)
def dtype_written():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].astype(int)

    call(kernel)


@says(ValueError, "Block shape for args[0]", "(8,)", "one size per axis")
def block_of_another_rank():
    call(copy, in_specs=[pl.BlockSpec((4, 4), lambda: (0, 0))])


@says(ValueError, "Unsupported block dimension type", "args[0]", "`pl.Element`")
def block_of_a_string():
    call(copy, in_specs=[pl.BlockSpec(("a",), lambda: 0)])


@says(ValueError, "the block shape of args[0] has an axis of size 0", "at least one element")
def block_of_size_zero():
    call(copy, in_specs=[pl.BlockSpec((0,), lambda: 0)])


@says(ValueError, "Index map function", HERE, "args[0]", "must return 1 values", "(0, 0)")
def index_of_another_rank():
    call(copy, in_specs=[pl.BlockSpec((4,), lambda: (0, 0))])


@says(TypeError, "Index map function", HERE, "args[0]", "1 arguments", "axis of the grid", "'j'")
def index_map_of_too_many_axes():
    spec = pl.BlockSpec((4,), lambda i, j: i)
    call(copy, grid=(2,), in_specs=[spec], out_specs=pl.BlockSpec((4,), lambda i: i))


@says(ValueError, "Index map function", HERE, "integer scalars", "float32[]")
def index_of_floats():
    call(copy, in_specs=[pl.BlockSpec((4,), lambda: 0.5)])


@says(ValueError, "must not capture constants", "PrefetchScalarGridSpec")
def index_from_outside():
    number = jnp.asarray(1)
    call(copy, in_specs=[pl.BlockSpec((4,), lambda: number)])


@says(ValueError, "Pytree for `in_specs` and `inputs`", "tuple of 2", "one pl.BlockSpec per array")
def too_many_specs():
    call(copy, in_specs=[pl.BlockSpec()] * 2)


@says(ValueError, "must consist of pl.BlockSpec", "found 4 of type int")
def number_for_a_spec():
    call(copy, in_specs=[4])


@says(ValueError, "`in_specs` must be a tuple or a list", "in_specs=[spec]")
def spec_without_a_list():
    call(copy, in_specs=pl.BlockSpec((8,), lambda: 0))


@says(ValueError, "If `grid_spec` is specified, then `grid` must be `()`", "to the grid spec")
def grid_given_twice():
    call(copy, grid=(2,), grid_spec=pl.GridSpec(grid=(2,)))


@says(ValueError, "If `grid_spec` is specified, then `scratch_shapes` must be `()`")
def scratch_given_twice():
    call(copy, grid_spec=pl.GridSpec(), scratch_shapes=[pltpu.VMEM((8,), jnp.float32)])


@says(ValueError, "Grid must be a tuple of integers", "2.5")
def grid_of_floats():
    call(copy, grid=(2.5,))


@says(ValueError, "num_scalar_prefetch=3", "1 operands", "first operands")
def too_many_prefetched():
    call(copy, grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=3))


@says(ValueError, "'0:0'", "float32[8]", "float32[4]", "its shape and dtype")
def alias_of_another_shape():
    call(lambda x_ref, o_ref: None, shape=(4,), input_output_aliases={0: 0})


@says(ValueError, "Axis 1 is out of bounds for grid (2,)", "from 0 to 0")
def axis_that_is_not_there():
    call(lambda x_ref, o_ref: pl.program_id(1), grid=(2,))


@says(ValueError, "only be called in a kernel", "Index maps take the indices")
def index_outside_of_a_kernel():
    pl.program_id(0)


@says(
    ValueError,
    "Only interpret mode is supported on CPU backend",
    "copy at ",
    HERE,
    "interpret=True",
)
def compiled_on_a_cpu():
    pl.pallas_call(copy, hlofront.ShapeDtypeStruct((8,), np.float32))(x)


@says(ValueError, "copy at ", HERE, "jax.custom_vjp")
def reverse_derivative():
    hlofront.grad(lambda x: pl.pallas_call(copy, x, interpret=True)(x).sum())(x)


@says(TypeError, "interpret is True, False or a pltpu.InterpretParams", "'yes'")
def unknown_interpreter():
    pl.pallas_call(copy, x, interpret="yes")


@says(TypeError, "scratch_shapes", "pltpu.VMEM((8, 128), jnp.float32)", "8 of type int")
def scratch_of_a_shape():
    call(lambda *_: None, scratch_shapes=[(8,)])


@says(ValueError, "one shape and dtype", "shape (4,)", "ref.at[...]", HERE)
def copy_of_another_shape():
    def kernel(x_ref, o_ref):
        pltpu.sync_copy(x_ref.at[pl.ds(0, 4)], o_ref)

    call(kernel)


@says(ValueError, "requires a DMA semaphore", "pltpu.SemaphoreType.DMA")
def copy_with_another_semaphore():
    def kernel(x_ref, o_ref, semaphore):
        pltpu.async_copy(x_ref, o_ref, semaphore)

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.REGULAR])


@says(ValueError, "wait_send", "wait()")
def sent_on_one_device():
    def kernel(x_ref, o_ref, semaphore):
        pltpu.async_copy(x_ref, o_ref, semaphore).wait_send()

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.DMA])


@says(ValueError, "runs on one device", "copies to device 1")
def copy_to_another_device():
    def kernel(x_ref, o_ref, send, receive):
        pltpu.async_remote_copy(x_ref, o_ref, send, receive, 1).wait()

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.DMA] * 2)


@says(ValueError, "runs on one device", "device_id=1")
def signal_of_another_device():
    def kernel(x_ref, o_ref, semaphore):
        pl.semaphore_signal(semaphore, device_id=1)

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.REGULAR])


@says(ValueError, "one semaphore, got an array of shape (2,)", "sem.at[i]")
def signal_of_two_semaphores():
    def kernel(x_ref, o_ref, semaphores):
        pl.semaphore_signal(semaphores)

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))])


@says(ValueError, "dma_sem", "the method wait of the copy")
def wait_for_a_semaphore_of_copies():
    def kernel(x_ref, o_ref, semaphore):
        pl.semaphore_wait(semaphore)

    call(kernel, scratch_shapes=[pltpu.SemaphoreType.DMA])


@says(TypeError, "of booleans", "int32")
def mask_of_integers():
    call(lambda x_ref, o_ref: pltpu.store(o_ref, x_ref[...], mask=jnp.arange(8)))


@says(ValueError, "shape of the elements, (8,)", "jnp.broadcast_to(mask, (8,))")
def mask_of_another_shape():
    call(lambda x_ref, o_ref: pltpu.store(o_ref, x_ref[...], mask=x_ref[0] > 0))


@says(ValueError, "run_scoped can only be called in a kernel")
def buffers_outside_of_a_kernel():
    pl.run_scoped(lambda ref: None, pltpu.VMEM((8,), jnp.float32))


@says(ValueError, "cannot be returned", "ref[...]", HERE)
def returned_buffer():
    call(lambda x_ref, o_ref: pl.run_scoped(lambda ref: ref, pltpu.VMEM((8,), jnp.float32)))


@says(ValueError, "shift must be non-negative", "-1")
def rolled_backwards():
    call(lambda x_ref, o_ref: o_ref.__setitem__(..., pltpu.roll(x_ref[...], -1, 0)))


@says(ValueError, "size 3 cannot be perfectly packed", "a multiple of 2")
def packed_unevenly():
    call(lambda x_ref, o_ref: pltpu.bitcast(jnp.zeros((3, 8), jnp.int16), jnp.float32))


@says(TypeError, "without init_carry returns None", "init_carry")
def carry_of_a_loop():
    call(lambda x_ref, o_ref: pl.loop(0, 8)(lambda i: x_ref[i]))


@says(ValueError, "dimension_semantics", "'arbitrary'", "'sequential'")
def unknown_semantics():
    pltpu.CompilerParams(dimension_semantics=("sequential",))


@pytest.mark.parametrize("name", wrong)
def test_an_error_says_what_was_wrong_where_and_what_to_do(name):
    function, error, parts = wrong[name]
    with pytest.raises(error) as caught:
        function()
    text = str(caught.value)
    missing = [part for part in parts if not re.search(re.escape(part), text)]
    assert not missing, f"{missing} missing in: {text}"


def test_an_error_inside_a_kernel_is_raised_from_its_line():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + jnp.zeros(3)

    with pytest.raises(TypeError) as caught:
        call(kernel)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "kernel"


@pytest.mark.parametrize("module", [pl, pltpu])
def test_a_name_that_is_not_there_is_an_attribute_error_of_its_module(module):
    message = f"module '{module.__name__}' has no attribute 'get_global"
    with pytest.raises(AttributeError, match=message):
        module.get_global
