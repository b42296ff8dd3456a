"""The interpreter that models a TPU: values of kernels, and planted mistakes that it finds."""

import contextlib
import importlib
import inspect
import logging
import pathlib

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas import test_kernels, test_pipeline

x = np.arange(8, dtype=np.float32)
m = np.arange(32, dtype=np.float32).reshape(4, 8)
anywhere = pl.BlockSpec(memory_space=pl.ANY)
pairs = pl.BlockSpec((2,), lambda i: i)
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
VECTOR = pltpu.VMEM((8,), jnp.float32)
PARALLEL = pltpu.CompilerParams(dimension_semantics=("parallel",))
MODES = ("eager", "on_wait", "random")
HERE = pathlib.Path(__file__).name


def out(*shape, dtype=np.float32):
    return hlofront.ShapeDtypeStruct(shape, dtype)


def run(kernel, *args, out_shape=None, **options):
    """The result of a kernel on a modeled TPU; options of InterpretParams and of pallas_call."""
    names = inspect.signature(pltpu.InterpretParams).parameters
    params = {name: options.pop(name) for name in list(options) if name in names}
    params = pltpu.InterpretParams(**{"detect_races": True, **params})
    shape = out(*args[0].shape) if out_shape is None else out_shape
    return pl.pallas_call(kernel, shape, interpret=params, **options)(*args)


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_copies_between_memories_happen_in_every_mode(mode):
    def kernel(x_ref, o_ref, buffers, arrived, sent):
        copies = [
            pltpu.make_async_copy(x_ref.at[pl.ds(4 * i, 4)], buffers.at[i], arrived.at[i])
            for i in range(2)
        ]
        for copy in copies:
            copy.start()
        for i, copy in enumerate(copies):
            copy.wait()
            buffers[i] = buffers[i] + i
        for i in range(2):
            pltpu.async_copy(
                buffers.at[i], o_ref.at[pl.ds(4 * i, 4)], arrived.at[i], src_sem=sent
            ).wait()

    found = run(
        kernel,
        x,
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.VMEM((2, 4), jnp.float32), DMA((2,)), DMA],
        dma_execution_mode=mode,
    )
    np.testing.assert_array_equal(found, x + np.repeat([0, 1], 4))


@pytest.mark.parametrize("mode", MODES)
def test_pipelines_of_several_buffers_have_no_races(mode):
    rows = pl.BlockSpec((1, 8), lambda i: (i, 0))
    for read, written in ((1, 1), (2, 2), (3, 2)):
        pipeline = pltpu.emit_pipeline(
            double,
            grid=(4,),
            in_specs=[rows.replace(pipeline_mode=pl.Buffered(read))],
            out_specs=[rows.replace(pipeline_mode=pl.Buffered(written))],
        )
        found = run(
            pipeline,
            m,
            in_specs=[anywhere],
            out_specs=anywhere,
            dma_execution_mode=mode,
            uninitialized_memory="raise",
        )
        np.testing.assert_array_equal(found, m * 2)


def test_operations_have_the_values_of_xla():
    def kernel(x_ref, y_ref, f_ref, i_ref):
        a, b = x_ref[...], y_ref[...]
        f_ref[0] = jnp.dot(a, b, preferred_element_type=jnp.float32)
        f_ref[1] = jnp.exp(a) + of_functions(b) + a.max(axis=1, keepdims=True) - b.mean()
        f_ref[2] = jnp.where(a > b, a**3, jnp.clip(b, -1, 1)) / (1 + jnp.abs(a))
        n = (a * 3).astype(jnp.int32) - 4
        i_ref[0] = n // 3 + n % 3 + hlofront.lax.div(n, jnp.int32(-3))
        i_ref[1] = hlofront.lax.rem(n, jnp.int32(3)) + hlofront.lax.broadcasted_iota(
            jnp.int32, (8, 8), 1
        )
        i_ref[2] = jnp.cumsum(n, axis=0) + (n << 2) + jnp.argmax(a, axis=0)

    def of_functions(b):
        return hlofront.nn.sigmoid(b) * hlofront.lax.rsqrt(1 + b * b) + jnp.tanh(b)

    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 8, 8)).astype(np.float32)
    shapes = [out(3, 8, 8), out(3, 8, 8, dtype=np.int32)]
    found = run(kernel, a, b, out_shape=shapes)
    expected = pl.pallas_call(kernel, shapes, interpret=True)(a, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("file", ["kernels", "flash_attention"])
def test_the_kernels_of_the_examples_give_no_false_alarm(file, monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "examples"))
    example = importlib.import_module(file)
    params = pltpu.InterpretParams(detect_races=True, uninitialized_memory="raise")
    with pltpu.force_tpu_interpret_mode(params):
        if file == "kernels":
            rows = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)
            found, expected = example.softmax(rows), hlofront.nn.softmax(rows)
        else:
            q, k, v = np.random.default_rng(0).standard_normal((3, 1, 128, 64)).astype(np.float32)
            found, expected = example.attention(q, k, v), example.textbook(q, k, v)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (test_kernels, "test_a_product_of_matrices_accumulates_over_the_grid"),
        (
            test_kernels,
            "test_branches_loops_and_jitted_functions_of_a_kernel_read_the_index_of_its_step",
        ),
        (test_kernels, "test_values_move_between_rows_and_dtypes"),
        (test_kernels, "test_an_empty_batch_gives_empty_results"),
        (test_kernels, "test_a_kernel_runs_on_each_device_of_a_mesh"),
        (test_pipeline, "test_an_output_that_several_steps_see_accumulates"),
        (test_pipeline, "test_an_input_that_several_steps_see_is_copied_once"),
    ],
)
def test_interpreted_kernels_give_no_false_alarm(module, name, caplog):
    params = pltpu.InterpretParams(detect_races=True, on_race="warn")
    with pltpu.force_tpu_interpret_mode(params), caplog.at_level(logging.WARNING):
        getattr(module, name)()
    assert not caplog.records


def test_memory_holds_nan_or_zero_or_the_greatest_integer_before_it_is_written_to():
    def kernel(x_ref, f_ref, i_ref):
        f_ref[0] = x_ref[0]

    def found(kind):
        shapes = [out(2), out(2, dtype=np.int32)]
        return [array.tolist()[1] for array in run(kernel, x, out_shape=shapes, **kind)]

    assert found({"uninitialized_memory": "zero"}) == [0, 0]
    number, integer = found({})
    assert np.isnan(number)
    assert integer == 2**31 - 1


def test_steps_along_parallel_axes_are_divided_among_cores():
    steps = []

    def record(token, indices, core):
        steps.append((int(core), *map(int, indices)))
        return token

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0)

    found = run(
        kernel,
        x,
        grid=4,
        in_specs=[pairs],
        out_specs=pairs,
        compiler_params=PARALLEL,
        num_cores_or_threads=2,
        random_seed=1,
        grid_point_recorder=record,
    )
    np.testing.assert_array_equal(found, x + np.repeat(range(4), 2))
    assert [core for core, _ in steps] == [0, 0, 1, 1]
    assert sorted(step for _, step in steps) == [0, 1, 2, 3]


def test_reads_out_of_bounds_and_in_the_padding_give_uninitialized_elements():
    def kernel(n_ref, x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(n_ref[0], 8)]

    two = np.full(1, 2, np.int32)
    for options in ({"out_of_bounds_reads": "uninitialized"}, {"buffer_bounds": "padded"}):
        found = run(kernel, two, x, out_shape=out(8), **options)
        np.testing.assert_array_equal(found, [*x[2:], np.nan, np.nan])


def test_floating_point_operations_can_be_skipped():
    def kernel(x_ref, o_ref, n_ref):
        o_ref[...] = jnp.exp(x_ref[...])
        n_ref[0] = jnp.int32(3) + pl.program_id(0)

    shapes = [out(8), out(1, dtype=np.int32)]
    values, number = run(kernel, x, out_shape=shapes, grid=1, skip_floating_point_ops=True)
    assert np.isinf(values).all()
    assert number.tolist() == [3]


def test_kernels_that_are_batched_and_differentiated_run_too():
    def f(x):
        return run(double, x, grid=4, in_specs=[pairs], out_specs=pairs)

    np.testing.assert_array_equal(hlofront.vmap(f)(np.stack([x, x + 1])), [x * 2, x * 2 + 2])
    value, tangent = hlofront.jvp(f, (x,), (x + 1,))
    np.testing.assert_array_equal(tangent, x * 2 + 2)
    np.testing.assert_array_equal(value, x * 2)


def test_the_mode_for_all_kernels_is_set_per_thread_and_per_process():
    call = hlofront.jit(lambda x: pl.pallas_call(double, out(8))(x))
    with pltpu.force_tpu_interpret_mode():
        np.testing.assert_array_equal(call(x), x * 2)
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU"):
        call(x)
    pltpu.set_tpu_interpret_mode()
    try:
        np.testing.assert_array_equal(call(x), x * 2)
    finally:
        pltpu.set_tpu_interpret_mode(None)
        pltpu.reset_tpu_interpret_mode_state()
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU"):
        call(x)


def test_wrong_options_say_which_values_there_are():
    for options, match in (
        ({"on_race": "ignore"}, "on_race is 'raise' or 'warn'"),
        ({"dma_execution_mode": "late"}, "dma_execution_mode is 'eager' or 'on_wait' or 'random'"),
        ({"num_cores_or_threads": 0}, "must be at least 1, but got 0"),
        ({"vector_clock_size": 1}, "must be greater than the total number"),
    ):
        with pytest.raises(ValueError, match=match):
            pltpu.InterpretParams(**options)
    with pytest.raises(TypeError, match=r"True, False or a pltpu\.InterpretParams: got 'yes'"):
        pl.pallas_call(double, out(8), interpret="yes")


# ---- planted mistakes ----------------------------------------------------------------------------

planted = {}


def finds(*parts, error=JaxRuntimeError, **options):
    """Register a kernel with a mistake: the parts of the message, and options of `run`.

    The message also names each line of the kernel that ends in `# told`.
    """

    def register(kernel):
        planted[kernel.__name__] = (kernel, error, parts, options)
        return kernel

    return register


def told_lines(kernel):
    lines, first = inspect.getsourcelines(kernel)
    return [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# told")]


copying = {"in_specs": [anywhere], "scratch_shapes": [VECTOR, DMA]}
both_anywhere = {**copying, "out_specs": anywhere}


@finds("RACE DETECTED", "write of buffer[0:8] by the copy", "read of buffer[0:8]", **copying)
def read_before_the_copy_arrives(x_ref, o_ref, buffer, sem):
    copy = pltpu.make_async_copy(x_ref, buffer, sem)
    copy.start()  # told
    o_ref[...] = buffer[...]  # told
    copy.wait()


@finds("RACE DETECTED", "read of buffer[0:8] by the copy", "write of buffer[2]", **both_anywhere)
def source_written_before_it_is_read(x_ref, o_ref, buffer, sem):
    pltpu.sync_copy(x_ref, buffer)
    copy = pltpu.make_async_copy(buffer, o_ref, sem)
    copy.start()  # told
    buffer[2] = 0.0  # told
    copy.wait()


@finds("RACE DETECTED", "write of buffer[4:8]", **copying, dma_execution_mode="eager")
def destination_written_while_a_copy_is_in_flight(x_ref, o_ref, buffer, sem):
    copy = pltpu.make_async_copy(x_ref.at[pl.ds(4, 4)], buffer.at[pl.ds(4, 4)], sem)
    copy.start()  # told
    buffer[...] = jnp.zeros(8)  # told
    copy.wait()
    o_ref[...] = buffer[...]


two_copies = {"in_specs": [anywhere], "scratch_shapes": [VECTOR, DMA((2,))]}


@finds("RACE DETECTED", "write of buffer[0:4] by the copy", "write of buffer[2:6]", **two_copies)
def two_copies_to_one_place(x_ref, o_ref, buffer, sems):
    one = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buffer.at[pl.ds(0, 4)], sems.at[0])
    two = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buffer.at[pl.ds(2, 4)], sems.at[1])
    one.start()  # told
    two.start()  # told
    one.wait()
    two.wait()
    o_ref[...] = buffer[...]


@finds("RACE DETECTED", "read of buffer[4:8]", "write of buffer[4:8] by the copy", **two_copies)
def wait_for_the_other_semaphore(x_ref, o_ref, buffer, sems):
    halves = [
        pltpu.make_async_copy(x_ref.at[pl.ds(i, 4)], buffer.at[pl.ds(i, 4)], sems.at[i // 4])
        for i in (0, 4)
    ]
    for half in halves:
        half.start()  # told
    halves[0].wait()
    o_ref[pl.ds(0, 4)] = buffer[pl.ds(4, 4)]  # told
    halves[1].wait()


@finds("RACE DETECTED", "read of buffer[0:4]", "write of buffer[0:4] by the copy", **copying)
def one_wait_for_two_copies_with_one_semaphore(x_ref, o_ref, buffer, sem):
    halves = [
        pltpu.make_async_copy(x_ref.at[pl.ds(i, 4)], buffer.at[pl.ds(i, 4)], sem) for i in (0, 4)
    ]
    for half in halves:
        half.start()  # told
    halves[0].wait()
    # Which of the two has arrived?
    o_ref[pl.ds(0, 4)] = buffer[pl.ds(0, 4)]  # told
    halves[1].wait()


@finds(
    "RACE DETECTED",
    "write of o_ref in HBM[0:2] by core 1 of device 0",
    "write of o_ref in HBM[0:2] by core 0 of device 0",
    "which writes the block of o_ref",
    grid=4,
    in_specs=[pairs],
    out_specs=pl.BlockSpec((2,), lambda i: 0),
    compiler_params=PARALLEL,
    num_cores_or_threads=2,
)
def cores_that_write_one_block(x_ref, o_ref):
    o_ref[...] = x_ref[...]


two_cores = {
    "grid": 2,
    "in_specs": [anywhere],
    "out_specs": anywhere,
    "compiler_params": PARALLEL,
    "num_cores_or_threads": 2,
}


@finds("RACE DETECTED", "core 0", "core 1", **two_cores, scratch_shapes=[DMA])
def cores_that_copy_to_one_place(x_ref, o_ref, sem):
    copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], o_ref.at[pl.ds(0, 4)], sem)
    copy.start()  # told
    copy.wait()


@finds("DEADLOCK", "core 0 of device 0 waits at", "for sem to be at least 2, which is 1")
def wait_for_more_than_was_signaled(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, 1)
    pl.semaphore_wait(sem, 2)  # told


@finds("DEADLOCK", "for sem to be at least 32, which is 0", **copying)
def wait_for_a_copy_that_was_not_started(x_ref, o_ref, buffer, sem):
    pltpu.make_async_copy(x_ref, buffer, sem).wait()  # told
    o_ref[...] = buffer[...]


@finds("DEADLOCK", "for sem to be at least 32, which is 16", **copying)
def wait_for_more_than_a_copy_brings(x_ref, o_ref, buffer, sem):
    pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buffer.at[pl.ds(0, 4)], sem).start()
    pltpu.make_async_copy(x_ref, buffer, sem).wait()  # told


@finds("DEADLOCK", "core 0 of device 0 waits", "core 1 of device 0 waits", **two_cores)
def cores_that_wait_for_each_other(x_ref, o_ref, sem):
    other = 1 - pl.program_id(0)
    pl.semaphore_wait(sem)  # told
    pl.semaphore_signal(sem, core_index=other)


@finds("Semaphore sem has non-zero count for core 0 of device 0 at its end: 3", "the signal by")
def signals_that_nobody_waits_for(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, 3)  # told


@finds("Semaphore sem has non-zero count", "at its end: 32", "the copy that core 0", **copying)
def copy_that_nobody_waits_for(x_ref, o_ref, buffer, sem):
    pltpu.make_async_copy(x_ref, buffer, sem).start()  # told


@finds("Semaphore buffer 0 of run_scoped", "non-zero count", "at its end: 1")
def semaphore_of_a_scope_that_is_left_with_a_count(x_ref, o_ref, sem):
    pl.run_scoped(lambda own: pl.semaphore_signal(own), REGULAR)  # told


numbers = pl.BlockSpec(memory_space=pltpu.SMEM)
three = np.full(1, 3, np.int32)
indexed = {"args": (three, x), "in_specs": [numbers, pl.BlockSpec((8,), lambda: 0)]}


@finds("Out-of-bounds read of x_ref, whose shape is (8,): index 3:11 of axis 0", **indexed)
def read_past_the_end(n_ref, x_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(n_ref[0], 8)]  # told


@finds("Out-of-bounds write of o_ref, whose shape is (8,): index 9 of axis 0", **indexed)
def write_past_the_end(n_ref, x_ref, o_ref):
    o_ref[n_ref[0] * 3] = x_ref[0]  # told


@finds(
    "Out-of-bounds read of x_ref in HBM, whose shape is (8,): index 6:10",
    args=(three, x),
    in_specs=[numbers, anywhere],
    scratch_shapes=[VECTOR, DMA],
)
def copy_past_the_end(n_ref, x_ref, o_ref, buffer, sem):
    source = x_ref.at[pl.ds(n_ref[0] * 2, 4)]
    copy = pltpu.make_async_copy(source, buffer.at[pl.ds(0, 4)], sem)
    copy.start()  # told
    copy.wait()
    o_ref[...] = buffer[...]


@finds("Out-of-bounds semaphore of sems, whose shape is (2,): index 3", **indexed)
def semaphore_that_is_not_there(n_ref, x_ref, o_ref, sems):
    pl.semaphore_signal(sems.at[n_ref[0]])  # told


@finds(
    "Out-of-bounds block index (4,) of x_ref at step (3,)",
    "along axis 0 the block is 8:10, and the array has 8 elements",
    HERE,
    grid=4,
    in_specs=[pl.BlockSpec((2,), lambda i: i + 1)],
    out_specs=pairs,
)
def block_past_the_end(x_ref, o_ref):
    o_ref[...] = x_ref[...]


@finds(
    "Revisited block [0:2] of o_ref at step (2,)",
    HERE,
    grid=4,
    in_specs=[pairs],
    out_specs=pl.BlockSpec((2,), lambda i: i % 2),
)
def block_of_a_result_that_is_seen_again(x_ref, o_ref):
    o_ref[...] = x_ref[...]


@finds("Uninitialized memory: 8 of the 8 elements of buffer[0:8]", uninitialized_memory="raise")
def read_of_a_buffer_that_nobody_wrote(x_ref, o_ref, buffer):
    o_ref[...] = x_ref[...] + buffer[...]  # told


@finds("Uninitialized memory: 4 of the 8 elements", **copying, uninitialized_memory="raise")
def read_of_more_than_was_copied(x_ref, o_ref, buffer, sem):
    pltpu.async_copy(x_ref.at[pl.ds(0, 4)], buffer.at[pl.ds(0, 4)], sem).wait()
    o_ref[...] = buffer[...]  # told


@finds("HBM or ANY cannot be referenced directly", "sync_copy", error=ValueError, **copying)
def read_of_an_array_in_hbm(x_ref, o_ref, buffer, sem):
    o_ref[...] = x_ref[...]  # told


@finds("run_scoped at", "allocates in any", "allow_hbm_allocation_in_run_scoped=True")
def buffer_of_a_scope_in_hbm(x_ref, o_ref, sem):
    pl.run_scoped(lambda buffer: None, pl.ANY((8,), jnp.float32))  # told


@finds("Cannot use communication in pallas_call without shard_map")
def signal_to_another_device_of_no_mesh(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, device_id=1)  # told


SCRATCH = {
    "cores_that_wait_for_each_other": [REGULAR],
    "semaphore_that_is_not_there": [REGULAR((2,))],
    "read_of_a_buffer_that_nobody_wrote": [VECTOR],
}


@pytest.mark.parametrize("name", planted)
def test_a_planted_mistake_is_told_with_its_lines(name):
    kernel, error, parts, options = planted[name]
    options = dict(options)
    args = options.pop("args", (x,))
    parameters = inspect.signature(kernel).parameters
    if name in SCRATCH or ("sem" in parameters and "scratch_shapes" not in options):
        options["scratch_shapes"] = SCRATCH.get(name, [REGULAR])
    with pytest.raises(error) as raised:
        np.asarray(run(kernel, *args, out_shape=out(8), **options))
    message = str(raised.value)
    for part in (*parts, *[f"{HERE}:{line}" for line in told_lines(kernel)]):
        assert part in message, message


def test_races_may_be_logged_instead_of_raised(caplog):
    with caplog.at_level(logging.WARNING):
        run(read_before_the_copy_arrives, x, out_shape=out(8), on_race="warn", **copying)
        hlofront.effects_barrier()
    (record,) = [record for record in caplog.records if "RACE DETECTED" in record.getMessage()]
    for line in told_lines(read_before_the_copy_arrives):
        assert f"{HERE}:{line}" in record.getMessage()


def test_races_are_not_looked_for_unless_asked_and_states_do_not_outlive_an_error():
    for _ in range(2):
        with contextlib.suppress(JaxRuntimeError):
            run(copy_that_nobody_waits_for, x, out_shape=out(8), **copying)
        found = run(
            read_before_the_copy_arrives, x, out_shape=out(8), detect_races=False, **copying
        )
        assert np.isnan(found).all()
