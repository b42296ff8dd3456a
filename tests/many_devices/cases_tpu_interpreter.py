"""Kernels that several modeled TPUs run: copies and signals between them, and planted mistakes."""

import inspect
import pathlib

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.pallas.interpret.tpu import call as call_of_kernels
from hlofront.sharding import Mesh
from hlofront.sharding import PartitionSpec as P

COUNT = 4
HERE = pathlib.Path(__file__).name
mesh = Mesh(np.array(jax.devices()[:COUNT]), ("i",))
anywhere = pl.BlockSpec(memory_space=pl.ANY)
DMA = pltpu.SemaphoreType.DMA
x = np.arange(2 * COUNT, dtype=np.float32)
BARRIER = pltpu.CompilerParams(collective_id=7)


def run(kernel, shape=(2,), scratch=(DMA, DMA), mesh=mesh, spec=P("i"), x=x, **options):
    names = ("dma_execution_mode", "random_seed")
    chosen = {name: options.pop(name) for name in names if name in options}
    params = pltpu.InterpretParams(detect_races=True, **chosen)

    def on_device(x):
        return pl.pallas_call(
            kernel,
            jax.ShapeDtypeStruct(shape, np.float32),
            in_specs=[anywhere],
            out_specs=anywhere,
            scratch_shapes=list(scratch),
            interpret=params,
            **options,
        )(x)

    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return np.asarray(jax.jit(mapped)(x))


def neighbors():
    i = lax.axis_index("i")
    return lax.rem(i + COUNT - 1, COUNT), lax.rem(i + 1, COUNT)


def meet_neighbors():
    barrier = pltpu.get_barrier_semaphore()
    for neighbor in neighbors():
        pl.semaphore_signal(barrier, device_id=(neighbor,))
    pl.semaphore_wait(barrier, 2)


def pass_on(x_ref, o_ref, send, receive):
    _, right = neighbors()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, receive, device_id=(right,))
    copy.start()
    copy.wait()


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["eager", "on_wait", "random"])
def test_each_device_gets_what_its_neighbor_has(mode):
    found = run(pass_on, dma_execution_mode=mode)
    np.testing.assert_array_equal(found, np.roll(x, 2))


def test_devices_meet_at_the_barrier_before_they_copy():
    def kernel(*refs):
        meet_neighbors()
        pass_on(*refs)

    np.testing.assert_array_equal(run(kernel, compiler_params=BARRIER), np.roll(x, 2))


@pytest.mark.parametrize("seed", range(3))
def test_all_devices_gather_what_the_others_have(seed):
    def kernel(x_ref, o_ref, local, send, receive):
        i, (_, right) = lax.axis_index("i"), neighbors()
        meet_neighbors()
        own = pltpu.make_async_copy(x_ref, o_ref.at[i], local)
        own.start()
        own.wait()
        for step in range(COUNT - 1):
            slot = lax.rem(i + COUNT - step, COUNT)
            part = o_ref.at[slot]
            copy = pltpu.make_async_remote_copy(
                part, part, send, receive.at[step], device_id={"i": right}
            )
            copy.start()
            copy.wait()

    found = run(
        kernel,
        shape=(COUNT, 2),
        scratch=(DMA, DMA, DMA((COUNT - 1,))),
        compiler_params=BARRIER,
        dma_execution_mode="random",
        random_seed=seed,
    )
    np.testing.assert_array_equal(found, np.tile(x.reshape(COUNT, 2), (COUNT, 1)))


def test_devices_of_two_axes_are_named_by_coordinates_or_numbers():
    grid = Mesh(np.array(jax.devices()[:COUNT]).reshape(2, 2), ("a", "b"))

    def crossed(x_ref, o_ref, send, receive):
        a, b = lax.axis_index("a"), lax.axis_index("b")
        pltpu.async_remote_copy(x_ref, o_ref, send, receive, device_id=(b, a)).wait()

    def reversed_(x_ref, o_ref, send, receive):
        number = COUNT - 1 - (2 * lax.axis_index("a") + lax.axis_index("b"))
        kind = pl.DeviceIdType.LOGICAL
        pltpu.async_remote_copy(x_ref, o_ref, send, receive, number, kind).wait()

    parts = x.reshape(2, 2, 2)
    found = run(crossed, mesh=grid, spec=P(("a", "b")))
    np.testing.assert_array_equal(found.reshape(2, 2, 2), parts.transpose(1, 0, 2))
    found = run(reversed_, mesh=grid, spec=P(("a", "b")))
    np.testing.assert_array_equal(found.reshape(2, 2, 2), parts[::-1, ::-1])


def test_large_arrays_need_no_threads_that_waiting_devices_hold():
    large = np.arange(COUNT * 256 * 512, dtype=np.float32).reshape(COUNT * 256, 512)
    found = run(pass_on, shape=(256, 512), x=large)
    np.testing.assert_array_equal(found, np.roll(large, 256, 0))


def test_kernels_run_in_a_loop_with_a_sum_over_devices():
    params = pltpu.InterpretParams(detect_races=True)

    def on_device(x):
        def step(_, x):
            passed = pl.pallas_call(
                pass_on,
                jax.ShapeDtypeStruct((2,), np.float32),
                in_specs=[anywhere],
                out_specs=anywhere,
                scratch_shapes=[DMA, DMA],
                interpret=params,
            )(x)
            return passed + 0 * lax.psum(passed, "i")

        return lax.fori_loop(0, 3, step, x)

    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    np.testing.assert_array_equal(jax.jit(mapped)(x), np.roll(x, 6))


# ---- planted mistakes ----------------------------------------------------------------------------


def told_lines(kernel):
    lines, first = inspect.getsourcelines(kernel)
    return [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# told")]


def sent_only(x_ref, o_ref, buffer, send, receive):
    _, right = neighbors()
    copy = pltpu.make_async_remote_copy(x_ref, buffer, send, receive, device_id=(right,))
    copy.start()  # told
    copy.wait_send()
    buffer[...] = buffer[...] + 1.0  # told
    copy.wait_recv()


def overwritten(x_ref, o_ref, send, receive):
    _, right = neighbors()
    for _ in range(2):
        # The neighbor may not have read what it got before.
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, receive, device_id=(right,))
        copy.start()  # told
        copy.wait_send()
    copy.wait_recv()
    copy.wait_recv()


def all_to_one_place(x_ref, o_ref, send, receive):
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, receive, device_id=(0,))
    copy.start()  # told
    copy.wait_send()

    @pl.when(lax.axis_index("i") == 0)
    def _():
        for _ in range(COUNT):
            copy.wait_recv()


def barrier_of_one_side(x_ref, o_ref, send, receive):
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, device_id=(neighbors()[1],))
    pl.semaphore_wait(barrier, 2)  # told


def last_does_not_send(x_ref, o_ref, send, receive):
    _, right = neighbors()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, receive, device_id=(right,))

    @pl.when(right != 0)
    def _():
        copy.start()
        copy.wait_send()

    copy.wait_recv()  # told


def received_and_not_waited_for(x_ref, o_ref, send, receive):
    _, right = neighbors()
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, receive, device_id=(right,))
    copy.start()  # told
    copy.wait_send()


def to_no_device(x_ref, o_ref, send, receive):
    pltpu.async_remote_copy(x_ref, o_ref, send, receive, device_id=(COUNT,)).wait()  # told


def sorted_by_xla(x_ref, o_ref, buffer, send, receive):
    pass_on(x_ref, o_ref, send, receive)
    buffer[...] = jnp.sort(jnp.ones(2))  # told


def no_barrier(x_ref, o_ref, send, receive):
    pl.semaphore_signal(pltpu.get_barrier_semaphore())  # told


VECTOR = pltpu.VMEM((2,), jnp.float32)


@pytest.mark.parametrize(
    ("kernel", "options", "parts"),
    [
        (sent_only, {"scratch": (VECTOR, DMA, DMA)}, ["RACE DETECTED", "by the copy that core 0"]),
        (overwritten, {}, ["RACE DETECTED", "of o_ref in HBM[0:2] by the copy that core 0"]),
        (all_to_one_place, {}, ["RACE DETECTED", "device 0 started", "device 1 started"]),
        (
            barrier_of_one_side,
            {"compiler_params": BARRIER},
            ["DEADLOCK", "device 3 waits", "the barrier semaphore 7 to be at least 2, which is 1"],
        ),
        (last_does_not_send, {}, ["DEADLOCK", "device 0 waits", "device 3 has ended", "receive"]),
        (
            received_and_not_waited_for,
            {},
            ["Semaphore receive has non-zero count for core 0 of device 0", "device 3 started"],
        ),
        (to_no_device, {}, ["there is no device (4,) in the mesh (i: 4)"]),
        (
            sorted_by_xla,
            {"scratch": (VECTOR, DMA, DMA)},
            ["sort at", "computes in NumPy, which lacks it", "outside of the kernel"],
        ),
        (no_barrier, {}, ["needs the collective_id of the kernel"]),
    ],
)
def test_a_planted_mistake_is_told_with_its_lines(kernel, options, parts):
    with pytest.raises(JaxRuntimeError) as raised:
        run(kernel, **options)
    message = str(raised.value)
    for part in (*parts, *[f"{HERE}:{line}" for line in told_lines(kernel)]):
        assert part in message, message


def test_devices_that_do_not_call_a_kernel_that_communicates_are_told(monkeypatch):
    monkeypatch.setattr(call_of_kernels, "_SECONDS", 0.2)

    def on_device(x):
        def passed(x):
            return pl.pallas_call(
                pass_on,
                jax.ShapeDtypeStruct((2,), np.float32),
                in_specs=[anywhere],
                out_specs=anywhere,
                scratch_shapes=[DMA, DMA],
                interpret=pltpu.InterpretParams(),
            )(x)

        return lax.cond(lax.axis_index("i") < 2, passed, lambda x: x, x)

    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    with pytest.raises(JaxRuntimeError, match=r"of 4 devices these have not called it.*\[2, 3\]"):
        np.asarray(jax.jit(mapped)(x))
