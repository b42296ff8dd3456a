"""Arrays on devices of any platform: there and back, donated, as DLPack, in their memories.

`pytest -m gpu` runs them on the GPU: see tests/on_platforms.py.
"""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax


@pytest.fixture
def device():
    """Where arrays are made by default: the GPU in the tests of GPUs."""
    return next(iter(jnp.zeros(()).devices()))


@pytest.fixture
def host():
    return jax.devices("cpu")[0]


DTYPES = "bool int8 uint16 int32 float16 bfloat16 float32 complex64 int4 float8_e4m3fn".split()


@pytest.mark.parametrize("name", DTYPES)
def test_there_and_back(name, device, host):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(getattr(ml_dtypes, name, name))
    there = jax.device_put(values, device)
    assert there.devices() == {device} and there.committed
    back = jax.device_put(there, host)
    assert back.devices() == {host}
    again = jax.device_put(back, device)
    for array in (there, back, again, there.copy(), jax.device_put(there)):
        assert array.dtype == values.dtype
        np.testing.assert_array_equal(np.asarray(array), values)
    np.testing.assert_array_equal(jax.device_get([there])[0], values)


def test_programs_run_where_their_arguments_are(device, host):
    f = jax.jit(lambda x, y: (x + y, jnp.arange(3)))
    x = jax.device_put(np.ones(3, np.float32), host)
    assert [a.devices() for a in f(x, 1.0)] == [{host}] * 2
    x = jax.device_put(x, device)
    assert [a.devices() for a in f(x, 1.0)] == [{device}] * 2
    assert (x + 1).devices() == {device}
    assert jax.random.normal(jax.random.key(0), (2,)).devices() == {device}
    assert f(1, 2)[1].devices() == {device}


def test_donated_memory_is_used_again(device):
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    # Of a program: what is put there may be NumPy's memory, which is copied.
    x = (jnp.zeros((64, 64)) + 1).block_until_ready()
    assert f.lower(x).compile().memory_analysis().alias_size_in_bytes == x.nbytes
    pointer = x.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == pointer
    np.testing.assert_array_equal(np.asarray(y), np.full((64, 64), 2))
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_dlpack_goes_by_the_device(device):
    x = jnp.arange(6.0).reshape(2, 3)
    y = jax.dlpack.from_dlpack(x)
    # That of the host has one number, however many devices XLA makes of it.
    assert {d.platform for d in y.devices()} == {device.platform}
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    kind, number = x.__dlpack_device__()
    assert kind == {"cpu": 1, "gpu": 2}[device.platform]
    assert number == (device.local_hardware_id if device.platform == "gpu" else 0)
    assert jnp.from_dlpack(np.arange(3.0, dtype=np.float32)).shape == (3,)


class ByDLPack:
    """Another library's array, which NumPy cannot read where it is on a GPU."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array__(self, *args, **kwargs):
        if self.__dlpack_device__()[0] != 1:
            raise TypeError("it is on a GPU")
        return np.array(self.array)


class ByInterface:
    """Another library's array on a GPU that speaks no DLPack, as numba's."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_arrays_of_other_libraries_stay_on_the_device(device):
    x = jnp.arange(6.0).reshape(2, 3)
    foreign = [ByDLPack(x)] if device.platform == "cpu" else [ByDLPack(x), ByInterface(x)]
    for other in foreign:
        for taken in (jnp.asarray(other), jnp.array(other), jnp.asarray(other, "int32")):
            assert {d.platform for d in taken.devices()} == {device.platform}
            np.testing.assert_array_equal(np.asarray(taken), np.asarray(x))
        if device.platform == "gpu":
            assert jnp.asarray(other).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
            assert jnp.array(other).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    copied = jax.dlpack.from_dlpack(foreign[0], copy=True)
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(copied), np.asarray(x))


def test_memories_of_the_device(device):
    default = device.default_memory()
    assert default in device.addressable_memories()
    assert default.kind == "device"
    assert device.memory(default.kind) is default
    x = jnp.ones(3)
    assert x.sharding.memory_kind == default.kind
    for memory in device.addressable_memories():
        sharding = x.sharding.with_memory_kind(memory.kind)
        moved = jax.device_put(x, sharding)
        assert moved.sharding.memory_kind == memory.kind
        np.testing.assert_array_equal(np.asarray(moved), np.ones(3))
    assert {m.kind for m in device.addressable_memories()} >= {"device", "pinned_host"}
    if device.platform == "gpu":
        assert device.memory_stats()["bytes_in_use"] > 0


def test_profiles_have_the_lines_of_operations(device):
    """Also those that a GPU would launch together, as one graph."""

    def steps(x):
        for _ in range(4):
            x = jnp.sort(x @ x, axis=0)
            x = x / jnp.abs(x).max()
        return x

    measured = jax.inspect.profile(steps, runs=3)(jnp.ones((128, 128)))
    assert measured.runs == 3
    lines = {row.line for row in measured.lines if row.file and row.file.endswith("platform.py")}
    assert len(lines) == 2, measured
    assert sum(row.share for row in measured.lines if row.line in lines) > 0.9, measured


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_random_bits_are_those_of_the_cpu(implementation, host):
    def draw(seed):
        key = jax.random.key(seed, impl=implementation)
        first, second = jax.random.split(key)
        return (
            jax.random.bits(first, (1000,)),
            jax.random.uniform(second, (1000,)),
            jax.random.randint(first, (50,), 0, 1000),
            jax.random.permutation(second, 100),
        )

    here = jax.jit(draw)(3)
    seed = jax.device_put(np.int32(3), host)
    # The bits of rbg are those of the device's own generator.
    if implementation == "threefry2x32" or here[0].devices() == {host}:
        for one, other in zip(here, jax.jit(draw)(seed), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert len(np.unique(here[0])) > 990


def test_products_of_matrices(device):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 64, 64))
    for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 1e-2), (ml_dtypes.bfloat16, 5e-2)):
        a, b = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
        wanted = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
        found = np.asarray(lax.dot(a, b, preferred_element_type=np.float32))
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=16 * tolerance)


def test_the_same_program_for_each_platform(device):
    """One traced function is lowered and compiled for the platform of each argument."""
    calls = []

    @jax.jit
    def f(x):
        calls.append(x)
        return lax.platform_dependent(x, cpu=lambda x: x * 1, default=lambda x: x * 2)

    factor = 1 if device.platform == "cpu" else 2
    assert float(f(jnp.float32(3))) == 3 * factor
    assert float(f(jax.device_put(np.float32(3), jax.devices("cpu")[0]))) == 3
    assert len(calls) == 1


def test_the_device_is_among_those_of_its_platform(device):
    assert device.platform == device.client.platform
    assert device in jax.devices(device.platform)
    assert device in jax.local_devices(backend=device.platform)
