"""fits: whether a program fits a device's memory."""

import importlib.util

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def f(x, w):
    return jnp.tanh(x @ w)


def spec(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_a_small_program_fits():
    found = jax.fits(f, spec(4, 8), spec(8, 2), target="cpu")
    assert found and found.fits is True
    assert found.argument_bytes == 4 * (32 + 16) and found.output_bytes == 4 * 8
    assert found.needed_bytes >= found.argument_bytes + found.output_bytes
    assert found.device == "cpu" and "fits into the memory of cpu" in str(found)


def test_a_program_that_is_too_large_says_what_is_large():
    found = jax.fits(lambda x: (x * 2).sum(), spec(1 << 20, 1 << 20), target="cpu")
    assert not found and found.fits is False
    assert found.needed_bytes > found.available_bytes
    assert "does not fit" in str(found) and "argument f32[1048576,1048576]" in str(found)


def test_donation_counts_once():
    plain = jax.fits(lambda x: x + 1, spec(1024), target="cpu")
    donated = jax.fits(jax.jit(lambda x: x + 1, donate_argnums=0), spec(1024), target="cpu")
    assert donated.needed_bytes == plain.needed_bytes - 4096 and donated.alias_bytes == 4096


def test_a_margin():
    whole = jax.fits(f, spec(4, 8), spec(8, 2), target="cpu")
    half = jax.fits(f, spec(4, 8), spec(8, 2), target="cpu", margin=0.5)
    assert half.available_bytes == pytest.approx(whole.available_bytes / 2, rel=1e-6)
    with pytest.raises(ValueError, match="margin"):
        jax.fits(f, spec(4, 8), spec(8, 2), target="cpu", margin=1.5)


def test_the_device_at_hand():
    found = jax.fits(f, np.ones((4, 8), np.float32), spec(8, 2))
    assert found.fits in (True, None) and found.argument_bytes == 4 * (32 + 16)


@pytest.mark.slow
def test_the_devices_of_shardings_are_the_target():
    """They are not attached, so that they cannot be asked for their memory."""
    # The package is not imported: it would set TPU_LIBRARY_PATH for all processes of later tests.
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("libtpu is not installed")
    devices = np.array(jax.target("tpu:v5e:2x2").devices)
    split = jax.NamedSharding(jax.sharding.Mesh(devices, ("x",)), jax.P("x"))
    found = jax.fits(f, jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=split), spec(8, 2))
    assert found and found.device == "tpu:v5e:2x2" and found.available_bytes > 8 << 30


def test_a_compiler_without_memory_for_a_trial_is_an_answer(monkeypatch):
    """XLA's compiler for GPUs runs kernels to choose among them, and fails where none has room."""

    def refuse(lowered):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to ...")

    monkeypatch.setattr(type(jax.jit(f).lower(spec(1, 1), spec(1, 1))), "compile", refuse)
    found = jax.fits(lambda x: x @ x, spec(1 << 20, 1 << 20), target="cpu")
    assert found.fits is False and found.temporary_bytes == 0
    assert found.needed_bytes == 2 * 4 * 2**40 > found.available_bytes
    assert "argument f32[1048576,1048576]" in str(found)
    # A program that would fit if the memory were free: what is in use is not known.
    assert jax.fits(f, spec(4, 8), spec(8, 2), target="cpu").fits is None


def test_other_errors_of_the_compiler_stay_errors(monkeypatch):
    def refuse(lowered):
        raise jax.errors.JaxRuntimeError("INTERNAL: no such pass")

    monkeypatch.setattr(type(jax.jit(f).lower(spec(1, 1), spec(1, 1))), "compile", refuse)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no such pass"):
        jax.fits(f, spec(4, 8), spec(8, 2), target="cpu")
