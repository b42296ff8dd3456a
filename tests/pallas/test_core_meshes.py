"""Kernels that each core of a mesh runs: pl.kernel, in all modes and in Mosaic."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.test_mosaic import module_of

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


def test_the_cores_of_a_mesh_are_by_default_those_of_the_device():
    mesh = pltpu.TensorCoreMesh(axis_name="core")
    assert mesh.shape == {"core": 1}
    assert str(mesh.core_type) == "tc"


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
