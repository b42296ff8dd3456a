"""Maxima and minima over several devices are NaN where an element is, as on one device."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.sharding import AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
SPLITS = [P("x", "y"), P("x"), P(None, "y"), P()]
X = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
X[50, 60], X[3, 4], X[4, 3] = np.nan, np.inf, -np.inf


def windows(combine, start, padding):
    return lambda x: lax.reduce_window(x, np.float32(start), combine, (2, 4), (2, 4), padding)


PROGRAMS = {
    "all": lambda x: [x.max(), x.min()],
    "columns": lambda x: [x.max(0), x.min(0)],
    "rows": lambda x: [x.max(1), x.min(1)],
    "lax.reduce": lambda x: lax.reduce(x, np.float32(0), jnp.maximum, (0,)),
    "maxima of windows": windows(lax.max, -np.inf, "VALID"),
    "minima of windows": windows(lax.min, np.inf, "SAME"),
    "windows of padding": windows(lax.max, -np.inf, ((4, 0), (0, 8))),
    "minima of padding": windows(lax.min, np.inf, ((4, 0), (0, 8))),
    "windows by a function": windows(jnp.maximum, 0.5, "SAME"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_split_arrays(name):
    program = jax.jit(PROGRAMS[name])
    wanted = program(X)
    for split in SPLITS:
        result = program(jax.device_put(X, NamedSharding(mesh, split)))
        for of_split, of_whole in zip(jax.tree.leaves(result), jax.tree.leaves(wanted)):
            np.testing.assert_array_equal(of_split, of_whole)
    assert any(np.isnan(each).any() for each in jax.tree.leaves(wanted))


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32"])
def test_few_and_narrow_floats(dtype):
    x = X[:8, :8].astype(dtype)
    x[5, 6] = np.nan
    program = jax.jit(PROGRAMS["all"])
    for split in SPLITS:
        maximum, minimum = program(jax.device_put(x, NamedSharding(mesh, split)))
        assert np.isnan(maximum) and np.isnan(minimum)


@pytest.mark.parametrize("name", ["all", "columns", "rows", "lax.reduce"])
def test_explicitly_split_arrays(name):
    program = jax.jit(PROGRAMS[name])
    wanted = program(X)
    with jax.set_mesh(explicit):
        for split in SPLITS:
            result = program(jax.device_put(X, NamedSharding(explicit, split)))
            for of_split, of_whole in zip(jax.tree.leaves(result), jax.tree.leaves(wanted)):
                np.testing.assert_array_equal(of_split, of_whole)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32]
)
def test_collectives(dtype):
    def extremes(x):
        rows = x.astype(dtype)
        return lax.pmax(rows, "x"), lax.pmin(rows, "x"), lax.pmax(rows, (0, "x"))

    with jax.enable_x64(np.dtype(dtype).itemsize == 8):
        x = np.where(np.isfinite(X), X, X if np.dtype(dtype).kind == "f" else 0).astype(dtype)
        rows = x.reshape(4, 16, 128)
        extremes_of_all = jax.shard_map(
            extremes, mesh=mesh, in_specs=P("x"), out_specs=(P(), P(), P())
        )
        most, least, most_of_all = jax.jit(extremes_of_all)(x)
    assert most.dtype == least.dtype == dtype
    np.testing.assert_array_equal(most, np.max(rows, 0))
    np.testing.assert_array_equal(least, np.min(rows, 0))
    np.testing.assert_array_equal(most_of_all, np.max(x, 0))


@pytest.mark.parametrize("position", range(8))
def test_a_nan_of_any_device(position):
    x = np.arange(8, dtype=np.float32)
    x[position] = np.nan
    both = jax.pmap(lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")), "i")
    assert np.isnan(both(x)).all()


def test_groups_of_devices():
    x = np.arange(8, dtype=np.float32)
    x[3] = np.nan
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    maxima = jax.pmap(lambda x: lax.pmax(x, "i", axis_index_groups=groups), "i")
    np.testing.assert_array_equal(maxima(x), [np.nan] * 4 + [7] * 4)


def test_where_they_are_used():
    split = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(mesh, P("x", "y")))
    over_x = jax.shard_map(lambda x: lax.pmax(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    for program in (PROGRAMS["all"], PROGRAMS["maxima of windows"], over_x):
        traced = jax.jit(program).trace(split)
        assert "bitcast_convert" in traced.lower().as_text()
        assert "bitcast_convert" not in traced.lower(lowering_platforms=("tpu",)).as_text()
        with options["hlofront_cpu_formulas"](False):
            assert "bitcast_convert" in traced.lower().as_text()
