"""emit_pipeline: loops inside of a kernel that copy blocks while others are computed."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu

m = np.arange(32, dtype=np.float32).reshape(4, 8)
blocks = pl.BlockSpec((2, 4), lambda i, j: (i, j))
rows = pl.BlockSpec((1, 8), lambda i: (i, 0))


def run(pipeline, *shape, scratch_shapes=(), given=m):
    """The result of a kernel that runs a pipeline from its input to its output."""
    anywhere = pl.BlockSpec(memory_space=pl.ANY)

    def kernel(x_ref, o_ref, *scratches):
        if scratches:
            pipeline(x_ref, o_ref, scratches=scratches)
        else:
            pipeline(x_ref, o_ref)

    call = pl.pallas_call(
        kernel,
        hlofront.ShapeDtypeStruct(shape or m.shape, np.float32),
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=scratch_shapes,
        interpret=True,
    )
    return np.asarray(call(given))


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


@pytest.mark.parametrize("no_pipelining", [False, True])
def test_each_block_is_copied_in_computed_and_copied_out(no_pipelining):
    pipeline = pltpu.emit_pipeline(
        double, grid=(2, 2), in_specs=[blocks], out_specs=[blocks], no_pipelining=no_pipelining
    )
    np.testing.assert_array_equal(run(pipeline), m * 2)


@pytest.mark.parametrize(("read", "written"), [(1, 1), (3, 1), (1, 3), (3, 2)])
def test_any_number_of_buffers_gives_the_same(read, written):
    pipeline = pltpu.emit_pipeline(
        double,
        grid=(4,),
        in_specs=[rows.replace(pipeline_mode=pl.Buffered(read))],
        out_specs=[rows.replace(pipeline_mode=pl.Buffered(written))],
    )
    np.testing.assert_array_equal(run(pipeline), m * 2)


def test_an_output_that_several_steps_see_accumulates():
    def body(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros((2, 4), jnp.float32)

        o_ref[...] += x_ref[...]

    first = pl.BlockSpec((2, 4), lambda i, j: (i, 0))
    pipeline = pltpu.emit_pipeline(body, grid=(2, 2), in_specs=[blocks], out_specs=[first])
    np.testing.assert_array_equal(run(pipeline, 4, 4), m[:, :4] + m[:, 4:])


def test_an_input_that_several_steps_see_is_copied_once():
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0) * 10 + pl.program_id(1)
        x_ref[...] = x_ref[...] + 100

    one = pl.BlockSpec((1, 8), lambda i, j: (i, 0))
    each = pl.BlockSpec((1, 8), lambda i, j: (2 * i + j, 0))
    pipeline = pltpu.emit_pipeline(body, grid=(2, 2), in_specs=[one], out_specs=[each])
    numbers = np.array([[0], [101], [10], [111]])
    np.testing.assert_array_equal(run(pipeline), m[[0, 0, 1, 1]] + numbers)


def test_a_pipeline_of_a_traced_grid_with_scratch_buffers():
    def body(x_ref, o_ref, total_ref):
        total_ref[...] = x_ref[...] * pl.num_programs(0)
        o_ref[...] = total_ref[...]

    def pipeline(x_ref, o_ref, scratches):
        steps = x_ref[0, 3].astype(jnp.int32)
        pltpu.emit_pipeline(body, grid=(steps,), in_specs=[rows], out_specs=[rows])(
            x_ref, o_ref, scratches=scratches
        )

    result = run(pipeline, scratch_shapes=[pltpu.VMEM((1, 8), jnp.float32)])
    np.testing.assert_array_equal(result[:3], m[:3] * 3)
    assert np.isnan(result[3]).all()


def test_blocks_of_a_bounded_size_begin_anywhere():
    # The rows 1:3 and 2:4 of an array, twice.
    bounded = pl.BlockSpec((pl.BoundedSlice(3), 8), lambda i: (pl.ds(i + 1, 2), 0))

    def twice(x_ref, o_ref):
        o_ref[...] = x_ref[:2] * 2

    pairs = pl.BlockSpec((2, 8), lambda i: (i, 0))
    pipeline = pltpu.emit_pipeline(twice, grid=(2,), in_specs=[bounded], out_specs=[pairs])
    np.testing.assert_array_equal(run(pipeline), np.concatenate([m[1:3], m[2:4]]) * 2)


def test_what_a_bounded_slice_needs_is_told():
    def pipeline(index_map):
        spec = pl.BlockSpec((pl.BoundedSlice(3), 8), index_map)
        return pltpu.emit_pipeline(double, grid=(2,), in_specs=[spec], out_specs=[rows])

    with pytest.raises(ValueError, match="Must return a ds from the index_map"):
        run(pipeline(lambda i: (i, 0)))
    with pytest.raises(ValueError, match="must be an int of at most 3"):
        run(pipeline(lambda i: (pl.ds(i, 4), 0)))
    for dim, match in ((pl.BoundedSlice(3), "Use pl.Element"), (pl.Indirect(3), "SparseCores")):
        spec = pl.BlockSpec((dim, 8), lambda: (0, 0))
        with pytest.raises(ValueError, match=match):
            pl.pallas_call(double, m, in_specs=[spec], interpret=True)(m)


def test_blocks_are_copied_as_many_steps_ahead_as_there_are_other_buffers():
    """At the first step, the blocks of the next two have been copied, that of the fourth not."""

    def kernel(x_ref, o_ref):
        def body(row_ref, out_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                x_ref[1:] = jnp.zeros((3, 8))

            out_ref[...] = row_ref[...]

        three = rows.replace(pipeline_mode=pl.Buffered(3))
        pltpu.emit_pipeline(body, grid=(4,), in_specs=[three], out_specs=[rows])(x_ref, o_ref)

    np.testing.assert_array_equal(run(kernel), np.concatenate([m[:3], 0 * m[:1]]))


def test_a_reference_in_the_memory_of_its_spec_is_seen_without_a_copy():
    in_vmem = rows.replace(memory_space=pltpu.VMEM)

    def kernel(x_ref, o_ref):
        specs = {"in_specs": [in_vmem], "out_specs": [in_vmem]}
        pltpu.emit_pipeline(double, grid=(4,), **specs)(x_ref, o_ref)

    def call(x):
        whole = pl.BlockSpec(memory_space=pltpu.VMEM)
        specs = {"in_specs": [whole], "out_specs": whole}
        return pl.pallas_call(kernel, m, interpret=True, **specs)(x)

    np.testing.assert_array_equal(call(m), m * 2)
    assert "dma_start" not in str(hlofront.make_jaxpr(call)(m))


def test_the_body_may_take_the_step():
    def body(step, x_ref, o_ref):
        o_ref[...] = x_ref[...] + 10 * step.index[0] + 100 * step.index[1] + 1000 * step.local_index

    pipeline = pltpu.emit_pipeline(
        body, grid=(2, 2), in_specs=[blocks], out_specs=[blocks], _explicit_indices=True
    )
    steps = np.kron([[0, 1100], [2010, 3110]], np.ones((2, 4)))
    np.testing.assert_array_equal(run(pipeline), m + steps)


def test_references_come_in_the_trees_of_their_specs():
    def body(refs, o_ref):
        o_ref[...] = refs["a"][...] - refs["b"][...]

    def kernel(x_ref, o_ref):
        specs = ({"a": rows, "b": pl.BlockSpec((1, 8), lambda i: (3 - i, 0))},)
        pipeline = pltpu.emit_pipeline(body, grid=(4,), in_specs=specs, out_specs=rows)
        pipeline({"a": x_ref, "b": x_ref}, o_ref)

    np.testing.assert_array_equal(run(kernel), m - m[::-1])


# ---- buffers -------------------------------------------------------------------------------------


def test_buffers_are_allocated_once_for_several_pipelines():
    def kernel(x_ref, o_ref):
        pipeline, make_allocations = pltpu.emit_pipeline_with_allocations(
            double, grid=(4,), in_specs=[rows], out_specs=[rows]
        )

        def twice(allocations):
            assert [each.buffer_count for each in allocations] == [2, 2]
            pipeline(x_ref, o_ref, allocations=allocations)
            pipeline(o_ref, o_ref, allocations=allocations)

        pl.run_scoped(twice, make_allocations(x_ref, o_ref))

    np.testing.assert_array_equal(run(kernel), m * 4)


@pytest.mark.parametrize("count", [1, 2, (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)])
def test_blocks_may_be_read_changed_and_written_back(count, interpret):
    """Rows are visited twice in a row, and rows that were written stay away long enough."""
    columns = pl.BlockSpec((1, 8), lambda i, j: (i, 0))

    def body(o_ref):
        o_ref[...] = o_ref[...] * 2 + pl.program_id(1)

    def kernel(x_ref, o_ref):
        buffers = pltpu.BufferedRef.input_output(columns, jnp.float32, count)

        def with_buffers(given):
            pltpu.emit_pipeline(body, grid=(4, 2))(o_ref, allocations=[given])

        pl.run_scoped(with_buffers, buffers)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        kernel,
        m,
        in_specs=[anywhere],
        out_specs=anywhere,
        input_output_aliases={0: 0},
        interpret=interpret,
    )
    np.testing.assert_array_equal(call(m), m * 4 + 1)


def test_blocks_that_the_kernel_has_copied_are_not_copied_again():
    fetched = rows.replace(pipeline_mode=pl.Buffered(2, prefetched_count=2))

    def kernel(x_ref, o_ref):
        pipeline, make_allocations = pltpu.emit_pipeline_with_allocations(
            double, grid=(4,), in_specs=[fetched], out_specs=[rows]
        )

        def with_buffers(window_ref, allocations):
            window_ref[...] = jnp.ones((2, 1, 8))
            first, *rest = allocations
            given = [first.with_window_ref(window_ref), *rest]
            pipeline(x_ref, o_ref, allocations=given)

        types = make_allocations(x_ref, o_ref)
        pl.run_scoped(with_buffers, pltpu.VMEM((2, 1, 8), jnp.float32), types)

    np.testing.assert_array_equal(run(kernel), np.concatenate([np.full((2, 8), 2), m[2:] * 2]))


def test_what_buffers_there_are():
    vectors = pl.BlockSpec((4,), lambda i: i)
    assert pltpu.BufferedRef.input(vectors, jnp.float32, 3).window_ref.shape == (12,)
    both = pltpu.BufferedRef.input_output(rows, jnp.bfloat16)
    assert (both.in_buffer_count, both.out_buffer_count, both.buffer_count) == (2, 1, 2)
    assert both.window_ref == pltpu.VMEM((2, 1, 8), jnp.bfloat16)
    assert both.is_input and both.is_output and both.is_input_output
    assert pltpu.BufferType.OUTPUT.is_output and not pltpu.BufferType.OUTPUT.is_input
    same = pltpu.BufferedRef.output(rows, jnp.float32, source_memory_space=pltpu.VMEM)
    assert not same.is_buffered and same.with_spec(blocks).block_shape == (2, 4)


def test_wrong_buffers_say_what_to_do():
    def wrong(match, *args, **options):
        with pytest.raises(ValueError, match=match):
            pltpu.BufferedRef.input(*args, **options)

    wrong("buffer_count must be at least 1, got 0", rows, jnp.float32, 0)
    wrong("buffer_count must be an int, or a pair", rows, jnp.float32, (2, 2))
    wrong("Block shape must be specified", pl.BlockSpec(), jnp.float32)
    wrong("at most in_buffer_count: got 3", rows, jnp.float32, prefetched_count=3)
    in_hbm = rows.replace(memory_space=pltpu.HBM)
    wrong("HBM block spec for a non-HBM source", in_hbm, jnp.float32, source_memory_space="vmem")
    wrong("Tiling.SPARSE_CORE", rows, jnp.float32, tiling=pltpu.Tiling.SPARSE_CORE)
    wrong("Unsupported buffer memory", rows.replace(memory_space=pltpu.CMEM), jnp.float32)
    prefetched = pltpu.BufferedRef.input(rows, jnp.float32, prefetched_count=1)
    with pytest.raises(ValueError, match="by with_window_ref"):
        prefetched.slot(0)


# ---- cores ---------------------------------------------------------------------------------------


def on_two_cores(grid, index_map, interpret=True, **options):
    """The result of a pipeline on two cores, each of which adds (its number + 1) * 100."""
    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
    spec = pl.BlockSpec((1, 8), index_map)

    @pl.kernel(out_type=m, mesh=mesh, interpret=interpret)
    def kernel(x_ref, o_ref):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...] + 100 * (hlofront.lax.axis_index("core") + 1)

        pltpu.emit_pipeline(
            body, grid=grid, in_specs=[spec], out_specs=[spec], core_axis_name="core", **options
        )(x_ref, o_ref)

    return np.asarray(kernel(m))


@pytest.mark.parametrize(
    "interpret", [True, pltpu.InterpretParams(num_cores_or_threads=2, detect_races=True)]
)
@pytest.mark.parametrize("semantics", [pltpu.PARALLEL, "parallel"])
def test_cores_divide_a_parallel_axis(semantics, interpret):
    options = {"dimension_semantics": (semantics,), "interpret": interpret}
    expected = m + np.array([[100], [100], [200], [200]])
    np.testing.assert_array_equal(on_two_cores((4,), lambda i: (i, 0), **options), expected)


def test_cores_divide_an_axis_that_is_not_even():
    result = on_two_cores((3,), lambda i: (i, 0), dimension_semantics=("parallel",))
    np.testing.assert_array_equal(result[:3], m[:3] + np.array([[100], [100], [200]]))


def test_cores_divide_the_first_axis_that_is_even():
    semantics = ("arbitrary", "parallel")
    result = on_two_cores((2, 2), lambda i, j: (2 * i + j, 0), dimension_semantics=semantics)
    np.testing.assert_array_equal(result, m + np.array([[100], [200], [100], [200]]))


def test_without_a_parallel_axis_cores_cannot_divide_a_grid():
    with pytest.raises(NotImplementedError, match="Say which axis may be divided"):
        on_two_cores((4,), lambda i: (i, 0))


def test_wrong_pipelines_say_what_to_do():
    def wrong(match, *args, **options):
        with pytest.raises(ValueError, match=match):
            run(pltpu.emit_pipeline(double, *args, **options))

    wrong("must be strictly positive.*pl.when", grid=(0,), in_specs=[rows], out_specs=[rows])
    wrong("one spec per reference", grid=(4,), in_specs=[rows, rows], out_specs=[rows])
    one = {"grid": (4,), "in_specs": [rows], "out_specs": [rows]}
    wrong("has no Tiling.SPARSE_CORE", tiling=pltpu.Tiling.SPARSE_CORE, **one)
    wrong("Only one of `core_axis` or `core_axis_name`", core_axis=0, core_axis_name="c", **one)
    thirds = pl.BlockSpec((3, 8), lambda i: (i, 0))
    wrong(
        "blocks of 3 do not divide axis 0 of reference 1",
        grid=(4,),
        in_specs=[rows],
        out_specs=[thirds],
    )
    flat = pl.BlockSpec((8,), lambda i: i)
    wrong("Give one size per axis", grid=(4,), in_specs=[flat], out_specs=[rows])
