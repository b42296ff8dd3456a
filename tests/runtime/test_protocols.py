"""Arrays among other objects: NumPy, buffers, DLPack, pickles, copies, Python numbers."""

import copy
import operator
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

DTYPES = ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "int4")


@pytest.mark.parametrize("name", DTYPES)
def test_to_numpy_and_back(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    host = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    x = jax.device_put(host)
    assert (x.shape, x.dtype, x.ndim, x.size) == ((2, 3), dtype, 2, 6)
    back = np.asarray(x)
    assert back.dtype == dtype and not back.flags.writeable
    np.testing.assert_array_equal(back, host)
    assert np.array(x).flags.writeable
    assert repr(x).startswith("Array([[") and f"dtype={dtype.name}" in repr(x)
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert other.dtype == dtype
        np.testing.assert_array_equal(np.asarray(other), host)


def test_weak_types_survive_pickling_and_show():
    x = jnp.asarray(1.5)
    assert repr(x) == "Array(1.5, dtype=float32, weak_type=True)"
    assert pickle.loads(pickle.dumps(x)).weak_type


@pytest.mark.cpu
@pytest.mark.parametrize("name", ["int8", "int32", "float16", "float32", "complex64"])
def test_dlpack_both_ways(name):
    x = jnp.arange(6).astype(name).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    host = np.arange(6, dtype=name).reshape(3, 2)
    got = jax.dlpack.from_dlpack(host)
    assert isinstance(got, jax.Array) and got.dtype == host.dtype
    np.testing.assert_array_equal(got, host)
    np.testing.assert_array_equal(jnp.from_dlpack(x), x)


@pytest.mark.cpu
def test_an_array_of_another_library_on_a_gpu_asks_for_that_gpu(monkeypatch):
    """NumPy could not read it, and would say so; what is missing here is the GPU."""

    class Tensor:
        shape, dtype = (3,), np.dtype("float32")

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **options):
            raise AssertionError("the device comes first")

    class OldTensor:
        __cuda_array_interface__ = {
            "shape": (3,),
            "typestr": "<f4",
            "data": (1 << 20, False),
            "version": 3,
        }

    asked = []

    def client_for(platform):
        asked.append(platform)
        raise RuntimeError("no GPU here")

    monkeypatch.setattr(jax.pjrt.clients, "client_for", client_for)
    for tensor in (Tensor(), OldTensor()):
        for convert in (jnp.asarray, jnp.array):
            with pytest.raises(RuntimeError, match="no GPU here"):
                convert(tensor)
    assert asked == ["cuda"] * 4


@pytest.mark.cpu
def test_the_buffer_protocol():
    x = jnp.arange(3.0)
    view = memoryview(x)
    assert view.readonly and view.shape == (3,)
    np.testing.assert_array_equal(np.asarray(view), [0.0, 1.0, 2.0])


def test_python_numbers():
    x = jnp.float32(3.7)
    assert (int(x), round(float(x), 3), bool(x), complex(x).real > 3) == (3, 3.7, True, True)
    assert operator.index(jnp.int32(3)) == 3 and [10, 20][jnp.int32(1)] == 20
    assert x.item() == pytest.approx(3.7) and jnp.arange(3).tolist() == [0, 1, 2]
    assert f"{jnp.float32(1.5):.2f}" == "1.50"
    with pytest.raises(TypeError, match="scalar"):
        float(jnp.ones(2))
    with pytest.raises(ValueError, match="more than one element"):
        bool(jnp.ones(2))
    with pytest.raises(TypeError):
        operator.index(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError):
        len(x)


def test_iteration_gives_rows():
    rows = list(jnp.arange(6).reshape(2, 3))
    assert [type(r).__name__ for r in rows] == ["ArrayImpl"] * 2
    np.testing.assert_array_equal(rows[1], [3, 4, 5])
    with pytest.raises(TypeError, match="0-d"):
        iter(jnp.float32(1))


def test_device_put_and_get():
    (device,) = jnp.zeros(()).devices()
    tree = {"a": np.arange(3), "b": [1.0, True]}
    put = jax.device_put(tree, device)
    assert put["a"].committed and put["a"].devices() == {device} and put["a"].dtype == np.int32
    assert put["b"][0].weak_type and put["b"][1].dtype == np.bool_
    back = jax.device_get(put)
    np.testing.assert_array_equal(back["a"], [0, 1, 2])
    assert isinstance(back["a"], np.ndarray)
    assert not jax.device_put(1.0).committed
    program = jax.make_jaxpr(lambda x: jax.device_put(x, device) * 2)(1.0)
    assert [e.primitive.name for e in program.eqns] == ["device_put", "mul"]
    for bad in (object(), "text", np.array([object()])):
        with pytest.raises(TypeError):
            jax.device_put(bad)


def test_a_deleted_array_says_so():
    x = jnp.arange(3) + 1
    x.block_until_ready()
    x.delete()
    assert x.is_deleted()
    for use in (np.asarray, lambda x: x + 1, jax.jit(lambda x: x), lambda x: x.tolist()):
        with pytest.raises(RuntimeError, match="deleted"):
            use(x)


def test_numpy_defers_to_arrays():
    x = jnp.ones(2)
    assert isinstance(np.ones(2) + x, jax.Array) and isinstance(np.float32(2) * x, jax.Array)
    assert isinstance(np.sin(x), np.ndarray)


def test_shards_of_one_device():
    x = jnp.arange(4.0)
    (shard,) = x.addressable_shards
    assert shard.device in x.devices() and shard.replica_id == 0
    np.testing.assert_array_equal(shard.data, x)
    assert x.is_fully_addressable and x.is_fully_replicated
    assert f"SingleDeviceSharding(device={shard.device!r}" in repr(x.sharding)


@pytest.mark.parametrize("first", ["jax", "hlofront"])
def test_one_of_the_two_per_process(first, tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    second = {"jax": "hlofront", "hlofront": "jax"}[first]
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {first}\n"
        f"try:\n    import {second}\nexcept ImportError as error:\n    print(error)"
    )
    text = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert f"cannot be imported after {first}" in text


def test_the_public_class_of_arrays_has_their_members():
    x = jnp.arange(3.0)
    for name in ("T", "all", "astype", "at", "device", "dtype", "reshape", "sharding", "__add__"):
        assert hasattr(jax.Array, name) and name in dir(jax.Array)
    assert float(jax.Array.sum(x)) == 3.0
    assert jax.Array.shape.fget(x) == (3,)
    np.testing.assert_array_equal(jax.jit(jax.Array.__mul__)(x, x), [0, 1, 4])
    with pytest.raises(AttributeError, match="no attribute 'no_such_member'"):
        _ = jax.Array.no_such_member


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", ["jax.Array.at", "jax.Array.all", "dir(jax.Array).index('sum')"]
)
def test_members_of_the_class_are_known_before_any_operator_is_used(question):
    loaded = "'hlofront.numpy.support.operators' in sys.modules"
    code = f"import hlofront as jax, sys\n{question}\nassert {loaded}"
    subprocess.run([sys.executable, "-c", code], check=True)
