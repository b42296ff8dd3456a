"""Arrays in files come back as they were."""

import io

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.core import operators

DTYPES = "bool int8 int32 uint16 float16 bfloat16 float32 complex64 int64 float64".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype):
    with jax.enable_x64(dtype.endswith("64")):
        x = jnp.arange(6).reshape(2, 3).astype(dtype)
        file = io.BytesIO()
        assert jnp.save(file, x) is None
        file.seek(0)
        found = jnp.load(file)
    assert isinstance(found, jax.Array) and found.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_paths(tmp_path):
    jnp.save(tmp_path / "x", jnp.ones(3))
    found = jnp.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(found, jax.Array) and found.shape == (3,)
    with pytest.raises(FileNotFoundError):
        jnp.load(tmp_path / "y.npy")


def test_archives(tmp_path):
    jnp.savez(tmp_path / "both", jnp.arange(3), weights=jnp.ones(2))
    with jnp.load(tmp_path / "both.npz") as found:
        assert sorted(found) == ["arr_0", "weights"]
        np.testing.assert_array_equal(found["arr_0"], np.arange(3))


def test_wide_numbers_are_narrowed_and_text_stays_numpys():
    file = io.BytesIO()
    np.save(file, np.arange(3.0))
    file.seek(0)
    assert jnp.load(file).dtype == np.float32
    file = io.BytesIO()
    np.save(file, np.array(["a", "bb"]))
    file.seek(0)
    assert isinstance(jnp.load(file), np.ndarray)


def test_what_is_traced_has_no_value_to_save():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: jnp.save(io.BytesIO(), x))(jnp.ones(2))


def test_what_the_array_api_asks():
    info = jnp.__array_namespace_info__()
    assert jnp.__array_api_version__ == "2024.12"
    assert jnp.ones(2).__array_namespace__(api_version="2024.12") is jnp
    assert info.devices()[0] is None and info.default_device() is None
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32"}
    with jax.enable_x64(True):
        assert info.default_dtypes()["indexing"] == np.int64
        assert "complex128" in info.dtypes()
    with pytest.raises(KeyError):
        info.dtypes(kind="numbers")


def test_a_member_that_waits_for_the_operators_takes_keywords():
    waiting = operators._waiting("__array_namespace__")
    assert waiting(jnp.ones(2), api_version=None) is jnp
