"""Kernels that each core of a mesh runs: pl.kernel and pl.core_map, in all modes and in Mosaic."""

import types

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.mosaic_modules import array, module_of, on_tpu

TWO = pltpu.TensorCoreMesh(axis_name="core", num_cores=2)
modes = pytest.mark.parametrize(
    "interpret",
    [True, pltpu.InterpretParams(num_cores_or_threads=2, detect_races=True)],
    ids=["interpreted", "modeled"],
)
x = np.arange(16, dtype=np.float32).reshape(2, 8)
OUT = jax.ShapeDtypeStruct((2, 8), jnp.float32)


@modes
def test_each_core_runs_the_function_on_whole_arrays(interpret):
    def body(x_ref, o_ref, buffer):
        core = lax.axis_index("core")
        pltpu.sync_copy(x_ref.at[core], buffer)

        @pl.loop(0, 1)
        def _(_):
            buffer[...] = buffer[...] * (lax.axis_index("core") + lax.axis_size("core"))

        pltpu.sync_copy(buffer, o_ref.at[1 - core])

    scratch = [pltpu.VMEM((8,), jnp.float32)]
    function = pl.kernel(body, OUT, mesh=TWO, scratch_types=scratch, interpret=interpret)
    expected = (x * [[2], [3]])[::-1]
    np.testing.assert_array_equal(function(x), expected)
    if interpret is True:
        np.testing.assert_array_equal(jax.vmap(function)(x[None]), expected[None])


@modes
def test_cores_wait_for_one_another(interpret):
    @pl.kernel(
        out_type=(OUT, OUT),
        mesh=TWO,
        scratch_types={"arrived": pltpu.SemaphoreType.REGULAR},
        interpret=interpret,
    )
    def swapped(x_ref, half_ref, o_ref, *, arrived):
        core = lax.axis_index("core")
        pltpu.sync_copy(x_ref.at[core], half_ref.at[core])
        pltpu.core_barrier(arrived, core_axis_name="core")

        @pltpu.run_on_first_core("core")
        def _():
            pltpu.sync_copy(half_ref.at[0], o_ref.at[1])

    half, out = swapped(x)
    if interpret is not True:
        np.testing.assert_array_equal(half, x)
    np.testing.assert_array_equal(out[1], x[0])


def test_cores_run_the_steps_of_a_parallel_grid_of_mosaic():
    def body(x_ref, o_ref):
        core = lax.axis_index("core")
        pltpu.sync_copy(x_ref.at[pl.ds(8 * core, 8)], o_ref.at[pl.ds(8 * core, 8)])

    rows = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    text = module_of(pl.kernel(body, rows, mesh=TWO), rows)
    assert "iteration_bounds = array<i64: 2>" in text
    assert "dimension_semantics<arbitrary>" in text or "dimension_semantics<parallel>" in text
    assert text.count("memory_space<any>") > 1


# ---- references of the program around the kernel -------------------------------------------------

ROW = [pltpu.VMEM((8,), jnp.float32)]


def doubled_and_swapped(x, interpret):
    ref, swapped = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

    @pl.core_map(TWO, interpret=interpret, scratch_shapes=ROW)
    def _(buffer):
        core = lax.axis_index("core")
        pltpu.sync_copy(ref.at[core], buffer)
        buffer[...] *= 2
        pltpu.sync_copy(buffer, swapped.at[1 - core])

    return ref[...], swapped[...]


@modes
@pytest.mark.parametrize("transform", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_core_map_reads_and_writes_the_references_around_it(interpret, transform):
    kept, swapped = transform(lambda x: doubled_and_swapped(x, interpret))(x)
    np.testing.assert_array_equal(kept, x)
    np.testing.assert_array_equal(swapped, 2 * x[::-1])


def test_core_map_runs_for_each_example_of_a_batch():
    batch = np.stack([x, x + 100])
    _, swapped = jax.vmap(lambda x: doubled_and_swapped(x, True))(batch)
    np.testing.assert_array_equal(swapped, 2 * batch[:, ::-1])


@modes
def test_a_kernel_writes_to_references_that_are_passed_and_closed_over(interpret):
    def run(x, factor):
        passed, around = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))
        factor = factor * 3

        @pl.kernel(out_type=[OUT], mesh=TWO, scratch_types={"row": ROW[0]}, interpret=interpret)
        def kernel(ref, y_ref, o_ref, *, row):
            core = lax.axis_index("core")
            pltpu.sync_copy(ref.at[core], row)
            row[...] = row[...] * factor + core
            pltpu.sync_copy(row, around.at[core])
            pltpu.sync_copy(y_ref.at[core], o_ref.at[core])
            pltpu.sync_copy(y_ref.at[core], ref.at[core])

        (out,) = kernel(passed, x + 1)
        return out, passed[...], around[...]

    out, passed, around = jax.jit(run)(x, np.float32(2))
    np.testing.assert_array_equal(out, x + 1)
    np.testing.assert_array_equal(passed, x + 1)
    np.testing.assert_array_equal(around, x * 6 + [[0], [1]])


def test_random_numbers_in_core_map_are_those_of_a_kernel_with_results():
    def draw(o_ref):
        pltpu.prng_seed(7)
        o_ref[...] = pltpu.prng_random_bits((8, 128))

    bits = jax.ShapeDtypeStruct((8, 128), jnp.int32)
    one = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    ref = jax.new_ref(jnp.zeros((8, 128), jnp.int32))
    pl.core_map(one, interpret=True)(lambda: draw(ref))
    expected = pl.pallas_call(draw, bits, interpret=True)()
    np.testing.assert_array_equal(ref[...], expected)


def test_core_map_compiles_for_a_tpu_with_a_scalar_of_the_program():
    one = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]

    def scaled(x, factor):
        ref, factor = jax.new_ref(x), factor * 3

        @pl.core_map(one, scratch_shapes=scratch)
        def _(buffer, sem):
            pltpu.async_copy(ref, buffer, sem).wait()
            buffer[...] *= factor
            pltpu.async_copy(buffer, ref, sem).wait()

        return ref[...]

    lowered = on_tpu(scaled, array((8, 128)), array(()))
    assert "output_operand_alias" in lowered.as_text()
    lowered.compile()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda ref, y: lambda: ref.__setitem__(..., y), "captures constants .*f32.2,8."),
        (lambda ref, y: lambda: 3, "should return None"),
    ],
    ids=["an array", "a result"],
)
def test_what_core_map_cannot_close_over_or_return_is_refused(use, message):
    ref, y = jax.new_ref(x), jnp.asarray(x)
    with pytest.raises(ValueError, match=message):
        pl.core_map(TWO, interpret=True)(use(ref, y))


def test_a_reference_is_not_passed_to_a_kernel_that_closes_over_it():
    ref = jax.new_ref(x)
    kernel = pl.kernel(lambda r: pltpu.sync_copy(r.at[0], ref.at[1]), mesh=TWO, interpret=True)
    with pytest.raises(ValueError, match="both closed over and passed"):
        kernel(ref)


# ---- meshes --------------------------------------------------------------------------------------


def test_the_cores_of_a_mesh_are_by_default_those_of_the_device():
    mesh = pltpu.TensorCoreMesh(axis_name="core")
    assert mesh.shape == {"core": 1}
    assert str(mesh.core_type) == "tc"
    assert pltpu.create_tensorcore_mesh("core") == mesh
    assert pltpu.create_tensorcore_mesh("core", num_cores=2) == TWO
    megacores = [types.SimpleNamespace(num_cores=2)]
    assert pltpu.create_tensorcore_mesh("core", megacores) == TWO
    with pytest.raises(ValueError, match="cannot specify both"):
        pltpu.create_tensorcore_mesh("core", megacores, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([print, print], OUT), {"mesh": [TWO, TWO]}, "several functions or meshes"),
        (
            (print, OUT),
            {"mesh": TWO, "compiler_params": pltpu.CompilerParams(("parallel",))},
            "does not support dimension_semantics",
        ),
    ],
)
def test_what_cores_cannot_do_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        pl.kernel(*arguments, **options)


def test_the_axis_of_cores_ends_with_the_kernel():
    with pytest.raises(NameError, match="unbound axis name: core"):
        lax.axis_index("core")
