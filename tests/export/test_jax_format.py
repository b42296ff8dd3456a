"""JAX's own format: exports that JAX has written are read, and ours are read by it."""

import os
import pathlib
import subprocess
import textwrap

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from tests.export.programs import ARGUMENTS, X, energy

ARTIFACTS = pathlib.Path(__file__).parent / "artifacts"
ORACLE = os.environ.get("HLOFRONT_ORACLE_PYTHON")


def check_energy(exported):
    """Check the value and two derivatives of an exported `energy`."""
    call = lambda a: exported.call({"a": a, "n": np.int32(3)}, scale=2.0)
    direct = lambda a: energy({"a": a, "n": np.int32(3)}, 2.0)
    np.testing.assert_allclose(call(X), direct(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(call)(X), jax.grad(direct)(X), rtol=1e-5)
    second = [jax.grad(lambda a, f=f: jnp.sum(jax.grad(f)(a) ** 2))(X) for f in (call, direct)]
    np.testing.assert_allclose(*second, rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["energy.jax-0.10.2", "energy.jax-0.12.0.1", "energy.hlofront-0.1.0"]
)
def test_exports_of_earlier_versions(name):
    """What an earlier version has written is read by this one: `energy` with two derivatives."""
    exported = export.deserialize((ARTIFACTS / name).read_bytes())
    assert exported.platforms == ("cpu",)
    assert repr(exported.in_avals[0]) == "ShapedArray(float32[2,3])"
    check_energy(exported)


@pytest.mark.parametrize("jax_version", ["0.10.2", "0.12.0.1"])
def test_several_platforms_and_checks(jax_version):
    exported = export.deserialize((ARTIFACTS / f"platforms.jax-{jax_version}").read_bytes())
    assert exported.platforms == ("tpu", "cpu")
    np.testing.assert_array_equal(exported.call(X), X + 1)


def test_round_trip():
    made = export.export(jax.jit(energy), platforms=("cpu", "tpu"))(ARGUMENTS, scale=2.0)
    loaded = export.deserialize(made.serialize(vjp_order=2, format="jax"))
    check_energy(loaded)
    for name in made.__dataclass_fields__:
        if name not in ("_get_vjp", "in_avals", "out_avals"):
            assert getattr(loaded, name) == getattr(made, name), name
    # The format has no weak types.
    assert [(a.shape, a.dtype) for a in loaded.in_avals] == [
        (a.shape, a.dtype) for a in made.in_avals
    ]
    assert loaded.serialize(format="jax") == made.serialize(format="jax")


def test_each_dtype():
    names = (
        "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64 int4 uint4 "
        "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e4m3 float8_e8m0fnu"
    ).split()
    specs = [jax.ShapeDtypeStruct((2,), name) for name in names]
    exported = export.export(jax.jit(lambda *xs: xs))(*specs, jax.random.key(0))
    loaded = export.deserialize(exported.serialize(format="jax"))
    assert loaded.in_avals == exported.in_avals
    assert loaded.out_avals == exported.out_avals


def test_damaged_bytes_raise_errors_alone():
    whole = (ARTIFACTS / "energy.jax-0.10.2").read_bytes()
    for end in range(0, len(whole), 29):
        with pytest.raises(ValueError, match="the serialized program"):
            export.deserialize(whole[:end])
    for place in range(0, len(whole), 31):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        try:
            # The format has no checksum: bytes of a name or of the module look as good as others.
            export.deserialize(flipped)
        except ValueError as error:
            assert str(error)


def test_unknown_format():
    exported = export.export(jax.jit(lambda x: x))(X)
    with pytest.raises(ValueError, match=r"Unknown format: 'pickle'\. Wanted 'hlofront' or 'jax'"):
        exported.serialize(format="pickle")


def has_flatbuffers():
    """Return whether the oracle's Python has the package that JAX reads this format with."""
    if ORACLE is None:
        return False
    check = "import importlib.util as u, sys; sys.exit(u.find_spec('flatbuffers') is None)"
    return subprocess.run([ORACLE, "-c", check], check=False).returncode == 0


def test_jax_reads_and_differentiates(tmp_path):
    if not has_flatbuffers():
        pytest.skip("the oracle has no flatbuffers: PYTHONPATH may have a folder with it")
    made = export.export(jax.jit(energy), platforms=("cpu", "tpu"))(ARGUMENTS, scale=2.0)
    (tmp_path / "energy").write_bytes(made.serialize(vjp_order=2, format="jax"))
    np.save(tmp_path / "x.npy", X)
    script = """
        import sys, numpy as np, jax
        from jax import export
        loaded = export.deserialize(bytearray(open(sys.argv[1] + "/energy", "rb").read()))
        x = np.load(sys.argv[1] + "/x.npy")
        call = lambda a: loaded.call({"a": a, "n": np.int32(3)}, scale=2.0)
        second = jax.grad(lambda a: (jax.grad(call)(a) ** 2).sum())(x)
        np.savez(sys.argv[1] + "/results.npz", value=call(x), second=second)
    """
    command = [str(ORACLE), "-c", textwrap.dedent(script), str(tmp_path)]
    subprocess.run(command, check=True)
    results = np.load(tmp_path / "results.npz")
    direct = lambda a: energy({"a": a, "n": np.int32(3)}, 2.0)
    np.testing.assert_allclose(results["value"], direct(X), rtol=1e-6)
    second = jax.grad(lambda a: jnp.sum(jax.grad(direct)(a) ** 2))(X)
    np.testing.assert_allclose(results["second"], second, rtol=1e-5)
