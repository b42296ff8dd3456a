"""Kernels, interpreted: values as NumPy computes them, under transformations, traced once."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.sharding import Mesh
from hlofront.sharding import PartitionSpec as P

x = np.arange(8, dtype=np.float32)
halves = pl.BlockSpec((4,), lambda i: i)


def out(*shape, dtype=np.float32):
    return hlofront.ShapeDtypeStruct(shape, dtype)


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def doubled(x):
    spec = pl.BlockSpec((2,), lambda i: i)
    call = pl.pallas_call(
        double, out(*x.shape), grid=x.size // 2, in_specs=[spec], out_specs=spec, interpret=True
    )
    return call(x)


def test_a_product_of_matrices_accumulates_over_the_grid():
    def kernel(x_ref, y_ref, o_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = sum_ref[...]

    x, y = np.arange(24.0).reshape(4, 6), np.arange(48.0).reshape(6, 8)
    product = pl.pallas_call(
        kernel,
        out(4, 8),
        grid=(2, 2, 3),
        in_specs=[
            pl.BlockSpec((2, 2), lambda i, j, k: (i, k)),
            pl.BlockSpec((2, 4), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((2, 4), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((2, 4), jnp.float32)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")
        ),
        interpret=True,
    )
    np.testing.assert_array_equal(product(x.astype(np.float32), y.astype(np.float32)), x @ y)


def test_branches_loops_and_jitted_functions_of_a_kernel_read_the_index_of_its_step():
    @hlofront.jit
    def numbered(x):
        return x + pl.program_id(0)

    def kernel(x_ref, o_ref):
        @pl.when(x_ref[0] >= 0)
        def _():
            o_ref[0] = x_ref[0] + pl.program_id(0)

        @pl.loop(1, 3)
        def _(i):
            o_ref[i] = x_ref[i] + pl.program_id(0)

        o_ref[3] = numbered(x_ref[3])

    for grid in (2, 1):
        call = pl.pallas_call(
            kernel, out(8), grid=(grid,), in_specs=[halves], out_specs=halves, interpret=True
        )
        numbers = np.repeat(np.arange(grid), 4)
        np.testing.assert_array_equal(call(x)[: 4 * grid], x[: 4 * grid] + numbers)


def test_kernels_run_with_64_bit_dtypes():
    def kernel(x_ref, o_ref, semaphore):
        pltpu.sync_copy(x_ref, o_ref)
        pl.semaphore_signal(semaphore, 2)
        pl.semaphore_wait(semaphore)
        o_ref[...] += pl.program_id(0) + pl.semaphore_read(semaphore)

    def body(x_ref, o_ref):
        spec = pl.BlockSpec((2,), lambda i: i)
        inner = pltpu.emit_pipeline(double, grid=(2,), in_specs=[spec], out_specs=[spec])
        inner(x_ref, o_ref)

    with hlofront.enable_x64(True):
        options = {"grid": (2,), "in_specs": [halves], "out_specs": halves, "interpret": True}
        semaphores = [pltpu.SemaphoreType.REGULAR]
        call = pl.pallas_call(
            kernel, out(8, dtype=np.float64), scratch_shapes=semaphores, **options
        )
        wide = x.astype(np.float64)
        # One is left at each step.
        np.testing.assert_array_equal(call(wide), x + np.repeat([1, 3], 4))
        call = pl.pallas_call(body, out(8, dtype=np.float64), **options)
        np.testing.assert_array_equal(call(wide), x * 2)


def test_a_kernel_is_traced_once_for_operands_of_the_same_types():
    traced = []

    def kernel(x_ref, o_ref):
        traced.append(x_ref.shape)
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(kernel, out(8), interpret=True)
    for scale in (1, 2, 3):
        np.testing.assert_array_equal(call(x * scale), x * scale)
    assert traced == [(8,)]


def test_a_kernel_runs_on_each_device_of_a_mesh():
    mesh = Mesh(np.array(hlofront.devices()[:1]), ("i",))

    def on_device(x):
        y = doubled(x)
        assert hlofront.typeof(y).manual_axis_type.varying == {"i"}
        return y

    mapped = hlofront.shard_map(on_device, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    np.testing.assert_array_equal(hlofront.jit(mapped)(x), x * 2)


def test_an_interpreted_kernel_is_exported_for_every_platform():
    exported = hlofront.export.export(hlofront.jit(doubled), platforms=("cpu", "tpu"))(out(8))
    loaded = hlofront.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(loaded.call(x), x * 2)


def test_tangents_pass_through_scratch_aliases_prefetched_scalars_and_indices():
    def kernel(n_ref, x_ref, o_ref, square):
        square[...] = x_ref[...] * x_ref[...]
        o_ref[...] += square[...] * (n_ref[0] + pl.program_id(0))

    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec((4,), lambda i, n: i)],
        out_specs=pl.BlockSpec((4,), lambda i, n: i),
        scratch_shapes=[pltpu.VMEM((4,), jnp.float32)],
    )
    call = pl.pallas_call(
        kernel, out(8), grid_spec=grid_spec, input_output_aliases={1: 0}, interpret=True
    )
    scale = np.repeat([3, 4], 4)
    value, tangent = hlofront.jvp(lambda x: call(np.full(1, 3, np.int32), x), (x,), (x + 1,))
    np.testing.assert_array_equal(value, x + scale * x**2)
    np.testing.assert_array_equal(tangent, (1 + 2 * scale * x) * (x + 1))


def test_tangents_pass_through_masked_loads_and_stores():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.zeros(8)
        some = jnp.arange(8) % 2 == 0
        pltpu.store(o_ref, jnp.sin(pltpu.load(x_ref, mask=some)), mask=some)

    function = pl.pallas_call(kernel, out(8), interpret=True)
    value, tangent = hlofront.jvp(function, (x,), (x + 1,))
    some = np.arange(8) % 2 == 0
    np.testing.assert_allclose(value, np.where(some, np.sin(x), 0), rtol=1e-6)
    np.testing.assert_allclose(tangent, np.where(some, np.cos(x) * (x + 1), 0), rtol=1e-5)


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams()], ids=["xla", "modeled"])
def test_tangents_pass_through_buffers_of_a_part_of_a_kernel(interpret):
    def kernel(x_ref, o_ref):
        def body(buffer, count, semaphore):
            count[0] = 2
            pl.semaphore_signal(semaphore)
            buffer[...] = x_ref[...] * x_ref[...]
            o_ref[...] = buffer[...] * count[0].astype(jnp.float32)
            pl.semaphore_wait(semaphore)
            return jnp.sum(buffer[...])

        types = (pltpu.VMEM((8,), jnp.float32), pltpu.SMEM((1,), jnp.int32))
        total = pl.run_scoped(body, *types, pltpu.SemaphoreType.REGULAR)
        o_ref[...] += total

    function = pl.pallas_call(kernel, out(8), interpret=interpret)
    value, tangent = hlofront.jvp(function, (x,), (x + 1,))
    np.testing.assert_allclose(value, 2 * x**2 + np.sum(x**2), rtol=1e-6)
    moved = 2 * x * (x + 1)
    np.testing.assert_allclose(tangent, 2 * moved + moved.sum(), rtol=1e-6)


def test_a_copy_without_tangents_says_where_to_define_them():
    def kernel(x_ref, o_ref):
        pltpu.sync_copy(x_ref, o_ref)

    function = pl.pallas_call(kernel, out(8), interpret=True)
    with pytest.raises(NotImplementedError, match=r"'dma_start'.*jax.custom_jvp or jax.custom_vjp"):
        hlofront.jvp(function, (x,), (x,))


def test_integers_that_start_with_their_operand_have_no_tangent():
    call = pl.pallas_call(
        lambda n_ref, x_ref, m_ref, o_ref: double(x_ref, o_ref),
        [out(2, dtype=np.int32), out(8)],
        input_output_aliases={0: 0},
        interpret=True,
    )
    (n, _), (_, tangent) = hlofront.jvp(lambda x: call(np.ones(2, np.int32), x), (x,), (x,))
    assert n.tolist() == [1, 1]
    np.testing.assert_array_equal(tangent, x * 2)


def test_an_empty_batch_gives_empty_results():
    assert hlofront.vmap(doubled)(np.ones((0, 8), np.float32)).shape == (0, 8)


def test_debug_print_shows_values_of_each_step(capfd):
    def kernel(x_ref, o_ref):
        pl.debug_print("step {} begins with {}", pl.program_id(0), x_ref[0])
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(
        kernel, out(8), grid=2, in_specs=[halves], out_specs=halves, interpret=True
    )
    call(x).block_until_ready()
    hlofront.effects_barrier()
    assert capfd.readouterr().out == "step 0 begins with 0.0\nstep 1 begins with 4.0\n"


def test_values_move_between_rows_and_dtypes():
    def kernel(x_ref, shift_ref, rolled_ref, slanted_ref, bits_ref, back_ref, inverse_ref):
        x = x_ref[...]
        rolled_ref[...] = pltpu.roll(x, shift_ref[0], 1)
        slanted_ref[...] = pltpu.roll(x, 1, 1, stride=2, stride_axis=0)
        bits_ref[...] = pltpu.bitcast(x, jnp.int16)
        back_ref[...] = pltpu.bitcast(bits_ref[...], jnp.float32)
        inverse_ref[...] = pltpu.reciprocal(x, approx=True)

    m = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
    shapes = [out(4, 8), out(4, 8), out(8, 8, dtype=np.int16), out(4, 8), out(4, 8)]
    call = pl.pallas_call(kernel, shapes, interpret=True)
    rolled, slanted, bits, back, inverse = call(m, np.full(1, 3, np.int32))
    np.testing.assert_array_equal(rolled, np.roll(m, 3, 1))
    np.testing.assert_array_equal(slanted, [np.roll(m[i], 1 + 2 * i) for i in range(4)])
    low_then_high = m.view(np.int16).reshape(4, 8, 2).transpose(0, 2, 1).reshape(8, 8)
    np.testing.assert_array_equal(bits, low_then_high)
    np.testing.assert_array_equal(back, m)
    np.testing.assert_allclose(inverse, 1 / m, rtol=1e-6)


def test_a_copy_signals_that_its_source_was_read_and_that_it_has_arrived():
    def kernel(x_ref, o_ref, counts_ref, semaphores):
        copy = pltpu.async_copy(x_ref, o_ref, semaphores.at[0], src_sem=semaphores.at[1])

        def count(i):
            counts_ref[2 * i] = pl.semaphore_read(semaphores.at[0])
            counts_ref[2 * i + 1] = pl.semaphore_read(semaphores.at[1])

        count(0)
        copy.wait_read()
        count(1)
        copy.wait_write()
        count(2)

    call = pl.pallas_call(
        kernel,
        [out(8), out(6, dtype=np.int32)],
        scratch_shapes=[pltpu.SemaphoreType.DMA((2,))],
        interpret=True,
    )
    copied, counts = call(x)
    np.testing.assert_array_equal(copied, x)
    assert counts.tolist() == [8, 8, 8, 0, 0, 0]


def test_the_jaxpr_of_a_kernel_shows_its_references_copies_and_masks():
    def kernel(x_ref, o_ref, buffer, semaphore):
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(0, 4)], buffer, semaphore)
        copy.start()
        copy.wait()
        pltpu.store(o_ref.at[pl.ds(4, 4)], buffer[...], mask=buffer[...] > 0)
        pl.run_scoped(pl.semaphore_signal, pltpu.SemaphoreType.REGULAR)

    call = pl.pallas_call(
        kernel, out(8), scratch_shapes=[pltpu.VMEM((4,), jnp.float32), pltpu.SemaphoreType.DMA]
    )
    (equation,) = hlofront.make_jaxpr(call)(x).eqns
    expected = """
{ lambda ; a:Ref<default>{f32[8]} b:Ref<default>{f32[8]} c:Ref<vmem>{f32[4]}
    d:Ref<semaphore_mem>{dma_sem[]}. let
    dma_start(p0) a[:4] -> c[...] d[...]
    dma_wait c[...] d[...]
    e:f32[4] <- c[...]
    f:f32[4] <- c[...]
    g:bool[4] = gt f 0.0:f32[]
    _:f32[4], b[4:] <- b[4:], e mask=g
    run_scoped[
      collective_axes=()
      jaxpr={ lambda ; h:Ref<semaphore_mem>{semaphore[]}. let
          semaphore_signal h[...] 1:i32[]
        in () }
    ]
  in () }"""
    assert str(equation.params["jaxpr"]).split() == expected.split()


@pytest.mark.parametrize("memory", [pltpu.VMEM, pltpu.SMEM, pltpu.HBM, pl.ANY])
def test_a_memory_makes_types_of_buffers(memory):
    buffer = memory((2, 3), jnp.bfloat16)
    assert (buffer.shape, buffer.dtype) == ((2, 3), jnp.bfloat16)
    assert str(buffer.get_ref_aval()) == f"Ref<{memory}>{{bfloat16[2,3]}}"


def test_estimate_cost_counts_products_functions_and_the_turns_of_loops():
    def f(x, y):
        return hlofront.lax.fori_loop(0, 5, lambda _, z: jnp.exp(z @ y), x)

    cost = pl.estimate_cost(f, out(8, 8), out(8, 8))
    assert (cost.flops, cost.transcendentals) == (5 * 2 * 8**3 + 5, 5 * 64)
    assert cost.bytes_accessed == 3 * 8 * 8 * 4
    assert pl.estimate_cost(lambda x, power: x**power, out(10), power=-2).flops == 30
    shown = pl.CostEstimate(1, 2, 3).to_json()
    assert shown == b'{"flops": 1, "transcendentals": 2, "bytes_accessed": 3, ' + (
        b'"remote_bytes_transferred": 0}'
    )


def test_a_batch_costs_as_much_as_its_examples_and_a_tangent_doubles_the_cost():
    cost = pl.CostEstimate(flops=8, transcendentals=1, bytes_accessed=64)
    call = pl.pallas_call(double, out(8), cost_estimate=cost)

    def cost_of(f, *args):
        (equation,) = hlofront.make_jaxpr(f)(*args).eqns
        return equation.params["cost_estimate"].flops

    assert cost_of(hlofront.vmap(call), np.ones((3, 8), np.float32)) == 24
    assert cost_of(lambda x: hlofront.jvp(call, (x,), (x,)), x) == 16


def test_a_function_of_references_becomes_one_of_arrays():
    def swap_and_double(refs):
        a, b = refs["a"][...], refs["b"][...]
        refs["a"][...] = b
        refs["b"][...] = a * 2

    function = pl.run_state(swap_and_double)
    for each in (function, hlofront.jit(function)):
        result = each({"a": x, "b": x + 1})
        np.testing.assert_array_equal(result["a"], x + 1)
        np.testing.assert_array_equal(result["b"], x * 2)


def test_an_array_is_broadcast_along_axes_that_it_lacks():
    column = np.arange(3.0, dtype=np.float32).reshape(3, 1)
    np.testing.assert_array_equal(
        pl.broadcast_to(column, (2, 3, 4)), np.broadcast_to(column, (2, 3, 4))
    )
    with pytest.raises(ValueError, match="only axes of size 1 are repeated"):
        pl.broadcast_to(column, (2, 4))


def test_a_reference_is_made_for_a_type():
    @hlofront.jit
    def f(x):
        ref = pl.empty_ref_like(hlofront.ShapeDtypeStruct((8,), jnp.float32))
        ref[...] = x * 2
        return ref[...]

    np.testing.assert_array_equal(f(x), x * 2)
    assert not pltpu.is_tpu_device()


def test_with_scoped_passes_the_other_arguments_of_the_function():
    buffer = pltpu.VMEM((8,), jnp.float32)

    @pl.with_scoped(buffer, second=buffer)
    def written(o_ref, first, *, second, value):
        first[...] = jnp.full(8, value, jnp.float32)
        second[...] = first[...] + 1
        o_ref[...] = second[...]

    def kernel(o_ref):
        written(o_ref, value=4)

    out = hlofront.ShapeDtypeStruct((8,), jnp.float32)
    np.testing.assert_array_equal(pl.pallas_call(kernel, out, interpret=True)(), np.full(8, 5))


def test_an_array_whose_spec_alone_is_left_out_is_not_moved():
    def kernel(x_ref, o_ref):
        pltpu.sync_copy(x_ref, o_ref)

    x = jnp.arange(8.0)
    call = pl.pallas_call(kernel, x, in_specs=[pl.no_block_spec], interpret=True)
    assert "<any>" in str(hlofront.make_jaxpr(call)(x))
    np.testing.assert_array_equal(call(x), x)
