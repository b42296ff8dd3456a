"""Arrays go from any sharding to any other, over the same devices or others, without the host.

CPU devices read each other's shards from the memory that they share. Devices of other kinds
exchange shards by compiled programs, and the tests let CPU devices do so too.
"""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
from hlofront.pjrt import host_value
from hlofront.runtime.array import array as array_methods
from hlofront.runtime.sharding import resharding, shared_memory
from hlofront.sharding import AxisType, Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices, split


def over(first, sizes, *entries, **kind):
    """A sharding over a mesh of these sizes, from the `first` device on."""
    chosen = np.array(devices[first : first + int(np.prod(sizes))]).reshape(sizes)
    return NamedSharding(Mesh(chosen, tuple("xyz"[: len(sizes)])), P(*entries), **kind)


backwards = Mesh(np.array(devices[::-1]).reshape(4, 2), ("x", "y"))
SHARDINGS = {
    "one": jax.sharding.SingleDeviceSharding(devices[3]),
    "rows of eight": over(0, (8,), "x"),
    "columns of eight": over(0, (8,), None, "x"),
    "tiles": split("x", "y"),
    "copies": split(),
    "tiles backwards": NamedSharding(backwards, P("x", "y")),
    "cube": over(0, (2, 2, 2), ("x", "z"), "y"),
    "rows of the last four": over(4, (4,), "x"),
    "tiles of the last four": over(4, (2, 2), "y", "x"),
    "columns of two": over(6, (2,), None, "x"),
    "six": over(0, (6,), "x"),
    "three of six": over(2, (3, 2), None, "x"),
    "explicit": NamedSharding(
        jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2), P("y", "x")
    ),
    "host memory": split("y", memory_kind="pinned_host"),
}


@pytest.fixture
def no_host(monkeypatch):
    """Whatever reads an array on the host fails, but for views of a CPU device's own memory."""

    def refuse(array):
        raise AssertionError(f"{array.aval} was gathered on the host")

    monkeypatch.setattr(array_methods, "fetched", refuse)
    monkeypatch.setattr(host_value, "fetched", refuse)


def by_programs_alone(monkeypatch):
    monkeypatch.setattr(resharding, "_assembly_instead", lambda *shardings_and_shape: None)


@pytest.fixture(params=["shared memory", "programs"])
def way(request, monkeypatch):
    if request.param == "programs":
        by_programs_alone(monkeypatch)


@pytest.mark.parametrize("source", SHARDINGS)
@pytest.mark.parametrize("target", SHARDINGS)
def test_between_any_two(source, target, way, no_host, monkeypatch):
    values = np.arange(24 * 48, dtype=np.float32).reshape(24, 48)
    x = jax.device_put(values, SHARDINGS[source])
    moved = jax.device_put(x, SHARDINGS[target])
    monkeypatch.undo()
    assert moved.sharding == SHARDINGS[target] and moved.committed and not x.is_deleted()
    assert moved.aval == jax.device_put(values, SHARDINGS[target]).aval
    for shard in moved.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(shard.data, values[shard.index])
    np.testing.assert_array_equal(x, values)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "complex64", "bfloat16", "int4"])
@pytest.mark.parametrize("shape", [(), (0, 8), (8, 0), (8, 16), (8, 2, 4)])
def test_of_any_dtype_and_shape(shape, dtype, way):
    values = np.arange(int(np.prod(shape))).reshape(shape) % 5
    values = values.astype(getattr(ml_dtypes, dtype, dtype))
    entries = ("x",) if shape else ()
    for first, second in (
        (over(0, (8,), *entries), over(4, (2, 2), *entries)),
        (over(4, (2,), *entries), over(0, (8,), *entries)),
        (over(0, (8,)), over(0, (8,), *entries)),
    ):
        moved = jax.device_put(jax.device_put(values, first), second)
        assert moved.sharding == second and moved.dtype == values.dtype
        np.testing.assert_array_equal(moved, values)


def test_devices_that_are_not_enough_for_the_shards_cut_coarser_ones():
    x = jax.device_put(np.arange(48.0).reshape(24, 2), over(0, (4,), "x"))
    cuts = resharding._cut_for(x, over(0, (6,), "x"), False)
    # Of 6 shards, 4 devices can hold halves, twice each; they cut them in three.
    assert [cut.times for cut in cuts] == [(3, 1)] * 3
    assert sorted(start for cut in cuts for start in set(cut.starts())) == [
        (4 * i, 0) for i in range(6)
    ]


def test_programs_of_resharding_are_compiled_once(monkeypatch):
    by_programs_alone(monkeypatch)
    x = jax.device_put(np.ones((8, 4), np.float32), split("x"))
    jax.device_put(x, split("y"))
    before = resharding._program.cache_info().misses
    for _ in range(3):
        jax.device_put(x + 1, split("y"))
    assert resharding._program.cache_info().misses == before


def test_arguments_of_jit_are_moved_without_the_host(no_host):
    x = jax.device_put(np.ones((8, 4), np.float32), split("x"))
    loose = jax.device_put(jax.numpy.ones((8, 4)))
    double = jax.jit(lambda a, b: (a + b, a.sum()), in_shardings=(split("x"), split(None, "y")))
    for _ in range(2):
        result, total = double(x, loose)
        assert result.sharding.device_set == total.sharding.device_set == set(devices)


def test_a_copy_shares_no_memory():
    for sharding in (split("x"), split()):
        x = jax.device_put(np.ones((8, 4), np.float32), sharding)
        copy = jax.device_put(x, sharding, may_alias=False)
        pointers = [
            {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}
            for array in (x, copy)
        ]
        assert not pointers[0] & pointers[1]


@pytest.mark.parametrize("target", ["columns of eight", "tiles", "copies", "one"])
def test_what_reuses_the_memory_of_an_array_leaves_the_other_alone(target):
    add_in_memory = jax.jit(lambda a: a + 100, donate_argnums=0)
    for first in (True, False):
        x = jax.jit(lambda a: a + 1, out_shardings=split("x"))(np.zeros((8, 8), np.float32))
        moved = jax.device_put(x, SHARDINGS[target])
        donated, kept = (x, moved) if first else (moved, x)
        np.testing.assert_array_equal(add_in_memory(donated), np.full((8, 8), 101.0))
        assert donated.is_deleted()
        for shard in kept.addressable_shards:
            np.testing.assert_array_equal(shard.data, np.ones(shard.data.shape))


def test_terms_of_a_sum_are_not_taken_for_shards():
    explicit = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    whole, terms = (NamedSharding(explicit, spec) for spec in (P(), P(unreduced={"x"})))
    assert shared_memory.assembly_of(whole, split("x"), (8, 8)) is not None
    assert shared_memory.assembly_of(terms, split("x"), (8, 8)) is None
    assert shared_memory.assembly_of(split("x"), terms, (8, 8)) is None


def test_donated_shards_are_deleted_where_programs_exchange_them(monkeypatch):
    by_programs_alone(monkeypatch)
    for target in (split(None, "x"), NamedSharding(backwards, P("x"))):
        x = jax.device_put(np.ones((8, 4), np.float32), split("x"))
        jax.device_put(x, target, donate=True)
        assert x.is_deleted()


def test_64_bits_stay_where_x64_is_off():
    with jax.enable_x64(True):
        x = jax.device_put(np.arange(16.0), devices[1])
    assert jax.device_put(x, split("x")).dtype == np.float64


def test_traced_values_are_checked_against_the_sharding():
    put = jax.jit(lambda a: jax.device_put(a, split("x", "y")))
    with pytest.raises(jax.errors.IndivisibleError):
        put(np.ones((6, 2)))
    with pytest.raises(ValueError, match="rank at least 2"):
        put(np.ones(8))
    with pytest.raises(ValueError, match="rank at least 2"):
        jax.vmap(put)(np.ones((8, 8)))
    with pytest.raises(ValueError, match="UNCONSTRAINED"):
        jax.jit(lambda a: jax.device_put(a, split(P.UNCONSTRAINED)))(np.ones(8))


def test_results_without_elements_are_split_as_others():
    x = jax.device_put(np.zeros((8, 0), np.float32), split("x"))
    double = jax.jit(lambda a: a * 2, out_shardings=split(None, "y"))
    for _ in range(3):
        result = double(x)
        assert {shard.data.shape for shard in result.addressable_shards} == {(8, 0)}
        kept = jax.jit(lambda a: a * 2, out_shardings=split("x"))(x)
        assert {shard.data.shape for shard in kept.addressable_shards} == {(2, 0)}
        assert np.asarray(kept).shape == (8, 0)


@pytest.mark.parametrize("target", ["rows of eight", "copies", "tiles", "one"])
@pytest.mark.parametrize("in_a_tree", [False, True])
def test_a_copy_of_a_numpy_array_does_not_change_with_it(target, in_a_tree):
    values = np.ones((4096, 64), np.float32)
    source = [values, values] if in_a_tree else values
    copies = jax.tree.leaves(jax.device_put(source, SHARDINGS[target], may_alias=False))
    values[:] = 2
    for copy in copies:
        assert copy.sharding == SHARDINGS[target]
        np.testing.assert_array_equal(copy, np.ones((4096, 64), np.float32))


@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "bool", "bfloat16"])
def test_numpy_arrays_of_each_dtype_go_to_their_devices(dtype):
    values = (np.arange(24 * 48) % 7).reshape(24, 48).astype(getattr(ml_dtypes, dtype, dtype))
    for sharding in SHARDINGS.values():
        for source in (values, values[::-1], values.T.copy().T):
            (array,) = jax.device_put([source], sharding)
            assert array.sharding == sharding and array.committed
            assert array.dtype == jax.dtypes.canonicalize_dtype(values.dtype)
            for shard in array.addressable_shards:
                np.testing.assert_array_equal(shard.data, source[shard.index])
