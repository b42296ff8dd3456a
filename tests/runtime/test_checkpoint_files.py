"""Arrays that GlobalAsyncCheckpointManager writes to files, and reads from them, in one process."""

import importlib

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.array_serialization.serialization import (
    GlobalAsyncCheckpointManager,
    get_tensorstore_spec,
)
from hlofront.experimental.layout import Format, Layout

FILES = {"driver": "file", "path": "/c/w"}


@pytest.fixture
def manager():
    pytest.importorskip("tensorstore")
    return GlobalAsyncCheckpointManager()


@pytest.fixture
def sharding():
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


@pytest.mark.parametrize(
    "path, store",
    [
        ("/c/w", FILES),
        ("/c//w/", FILES),
        ("c/w", {"driver": "file", "path": "c/w"}),
        ("gs://bucket/c/w", {"driver": "gcs", "bucket": "bucket", "path": "c/w"}),
        ("s3://bucket/c/w/", {"driver": "s3", "bucket": "bucket", "path": "c/w"}),
    ],
)
def test_a_path_says_where_an_array_is_stored(path, store):
    assert get_tensorstore_spec(path) == {"driver": "zarr", "kvstore": store}


def test_arrays_of_a_folder_may_share_a_store():
    base = {"driver": "file", "path": "/c/process_3"}
    assert get_tensorstore_spec("/c/w", ocdbt=True, process_idx=3, driver="zarr3") == {
        "driver": "zarr3",
        "kvstore": {"driver": "ocdbt", "base": base, "path": "w"},
    }


def test_an_array_says_its_shape_and_chunks():
    assert get_tensorstore_spec("/c/w", arr=jnp.ones((2, 0)))["metadata"] == {
        "compressor": {"id": "zstd"},
        "shape": (2, 0),
        "chunks": [2, 1],
    }
    described = get_tensorstore_spec("/c/w", arr=jnp.ones(3, jnp.bfloat16), driver="zarr3")
    assert described["metadata"]["data_type"] == "bfloat16"


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (("gs://bucket/",), {}, "names a bucket and a path in it, gs://bucket/path"),
        (("c/w",), {"ocdbt": True}, "the path of an OCDBT store is absolute: got 'c/w'"),
        (("/c/w",), {"arr": np.ones(2), "driver": "n5"}, "zarr or zarr3: got driver 'n5'"),
    ],
)
def test_what_cannot_be_stored_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        get_tensorstore_spec(*arguments, **options)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.float32(2.5),
        np.zeros((0, 3), np.float16),
        np.array([[True], [False]]),
        np.array([1.5, -0.0], ml_dtypes.bfloat16),
        np.array([1 + 2j, 3], np.complex64),
        np.array([1.0, 2.0], ml_dtypes.float8_e4m3fn),
    ],
    ids=lambda value: str(value.dtype),
)
def test_what_is_written_is_read(manager, sharding, tmp_path, value):
    manager.serialize_with_paths(
        [jnp.asarray(value), jnp.ones(2)], [tmp_path / "a", tmp_path / "b"]
    )
    read, ones = manager.deserialize_with_paths([sharding] * 2, [tmp_path / "a", tmp_path / "b"])
    assert read.dtype == value.dtype and read.shape == value.shape and read.sharding == sharding
    assert np.asarray(read).tobytes() == value.tobytes() and ones.sum() == 2


@pytest.mark.parametrize("options", [{"driver": "zarr3"}, {"ocdbt": True}], ids=str)
def test_formats(manager, sharding, tmp_path, options):
    spec = get_tensorstore_spec(tmp_path / "a", **options)
    manager.serialize([jnp.arange(4)], [spec])
    (read,) = manager.deserialize([sharding], [get_tensorstore_spec(tmp_path / "a", **options)])
    assert read.tolist() == [0, 1, 2, 3] and "metadata" not in spec


def test_reading_into_another_shape_dtype_and_layout(manager, sharding, tmp_path):
    manager.serialize_with_paths([jnp.arange(6.0).reshape(2, 3)], [tmp_path / "a"])
    layout = Layout(major_to_minor=(1, 0))
    (read,) = manager.deserialize_with_paths(
        [Format(layout, sharding)], [tmp_path / "a"], [(3, 2)], [jnp.int32]
    )
    assert read.tolist() == [[0, 1], [3, 4], [0, 0]] and read.dtype == jnp.int32
    assert read.format.layout.major_to_minor == (1, 0)


def test_reads_wait_for_the_bytes_that_they_hold(manager, sharding, tmp_path):
    paths = [tmp_path / str(i) for i in range(4)]
    manager.serialize_with_paths([jnp.full(3, i) for i in range(4)], paths)
    read = manager.deserialize_with_paths([sharding] * 4, paths, concurrent_gb=0)
    assert [array.tolist() for array in read] == [[i] * 3 for i in range(4)]


def test_the_callback_comes_after_the_writes(manager, tmp_path):
    seen = []
    manager.serialize_with_paths(
        [jnp.ones(2)],
        [tmp_path / "a"],
        on_commit_callback=lambda: seen.append((tmp_path / "a/.zarray").exists()),
    )
    manager.wait_until_finished()
    assert seen == [True]
    manager.wait_until_finished()
    assert seen == [True]


def test_an_error_in_the_background_is_raised_once(manager, tmp_path):
    def fail():
        raise OSError("no space left")

    manager.serialize_with_paths([jnp.ones(2)], [tmp_path / "a"], on_commit_callback=fail)
    with pytest.raises(OSError, match="no space left"):
        manager.serialize_with_paths([jnp.ones(2)], [tmp_path / "b"])
    manager.check_for_errors()
    manager.serialize_with_paths([jnp.ones(2)], [tmp_path / "b"])
    manager.wait_until_finished()


def test_what_is_no_sharding_is_refused(manager, tmp_path):
    manager.serialize_with_paths([jnp.ones(2)], [tmp_path / "a"])
    with pytest.raises(
        TypeError, match=r"an array is read into a sharding: .* got 'cpu' of type str"
    ):
        manager.deserialize_with_paths(["cpu"], [tmp_path / "a"])


def test_without_tensorstore_the_error_says_what_to_install(monkeypatch, tmp_path):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match="run `pip install tensorstore`"):
        GlobalAsyncCheckpointManager().serialize_with_paths([jnp.ones(2)], [tmp_path / "a"])
