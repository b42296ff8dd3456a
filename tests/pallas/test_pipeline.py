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


def test_wrong_pipelines_say_what_to_do():
    def wrong(match, *args, **options):
        with pytest.raises(ValueError, match=match):
            run(pltpu.emit_pipeline(double, *args, **options))

    wrong("must be strictly positive.*pl.when", grid=(0,), in_specs=[rows], out_specs=[rows])
    wrong("one spec per reference", grid=(4,), in_specs=[rows, rows], out_specs=[rows])
    wrong("runs on one core and has no core_axis: got 0", grid=(4,), core_axis=0)
    thirds = pl.BlockSpec((3, 8), lambda i: (i, 0))
    wrong(
        "blocks of 3 do not divide axis 0 of reference 1",
        grid=(4,),
        in_specs=[rows],
        out_specs=[thirds],
    )
    flat = pl.BlockSpec((8,), lambda i: i)
    wrong("Give one size per axis", grid=(4,), in_specs=[flat], out_specs=[rows])
