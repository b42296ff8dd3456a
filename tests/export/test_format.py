"""The bytes of exported programs: round trips in another process, and damaged ones."""

import collections
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from hlofront.bridge.mlir import version_of_artifact
from hlofront.pjrt import cache_file
from tests.export.programs import ARGUMENTS, X, energy
from tests.support.scaled_node import Scaled

Point = collections.namedtuple("Point", "x y")
export.register_namedtuple_serialization(Point, serialized_name="tests.Point")


def again(exported, vjp_order=0):
    return export.deserialize(exported.serialize(vjp_order=vjp_order))


def test_derivatives_up_to_the_order_that_was_asked_for():
    exported = export.export(jax.jit(energy))(ARGUMENTS, scale=2.0)
    loaded = again(exported, vjp_order=2)
    call = lambda a: loaded.call({"a": a, "n": np.int32(3)}, scale=2.0)
    direct = lambda a: energy({"a": a, "n": np.int32(3)}, 2.0)
    second = [jax.grad(lambda a, f=f: jnp.sum(jax.grad(f)(a) ** 2))(X) for f in (call, direct)]
    np.testing.assert_allclose(*second, rtol=1e-5)
    assert not again(exported).has_vjp()
    assert again(exported, 1).has_vjp()
    assert not again(exported, 1).vjp().has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda a: again(exported).call({"a": a, "n": np.int32(3)}, scale=2.0))(X)
    with pytest.raises(ValueError, match="No VJP is available"):
        again(exported, 1).serialize(vjp_order=2)


def test_all_fields_come_back():
    function = jax.jit(lambda point, d, s: (Point(point.y, point.x), d, [s, None, ()]))
    arguments = Point(X, 1.0), collections.OrderedDict(b=1, a=np.int8(2)), Scaled(True, 5)
    platforms = ("cpu", "tpu", "cuda")
    checks = [export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("f")]
    made = export.export(function, platforms=platforms, disabled_checks=checks)(*arguments)
    loaded = again(made)
    for name in made.__dataclass_fields__:
        if name != "_get_vjp":
            assert getattr(loaded, name) == getattr(made, name), name
    (swapped, ordered, (scaled, *_)) = loaded.call(*arguments)
    assert (float(swapped.x), list(ordered), scaled.factor) == (1.0, ["b", "a"], 5)


def test_unregistered_containers():
    Unknown = collections.namedtuple("Unknown", "x")
    exported = export.export(jax.jit(lambda u: u.x))(Unknown(X))
    with pytest.raises(ValueError, match=r"unregistered type.*register_namedtuple_serialization"):
        exported.serialize()
    with pytest.raises(TypeError, match=r"string keys\. Found key 1"):
        export.export(jax.jit(lambda d: d[1]))({1: X}).serialize()
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        export.register_namedtuple_serialization(Point, serialized_name="other")
    with pytest.raises(
        ValueError,
        match="Duplicate serialization registration for serialized_name",
    ):
        export.register_namedtuple_serialization(Unknown, serialized_name="tests.Point")
    with pytest.raises(ValueError, match="types other than"):
        export.register_namedtuple_serialization(int, serialized_name="int")


def test_another_process(tmp_path):
    """A process without the function loads it, with its gradient."""
    exported = export.export(jax.jit(energy))({"a": X, "n": np.int32(3)}, scale=2.0)
    (tmp_path / "energy").write_bytes(exported.serialize(vjp_order=1))
    np.save(tmp_path / "x.npy", X)
    script = """
        import sys, numpy as np, hlofront as jax
        from hlofront import export
        loaded = export.deserialize(open(sys.argv[1] + "/energy", "rb").read())
        x = np.load(sys.argv[1] + "/x.npy")
        value, gradient = jax.value_and_grad(
            lambda a: loaded.call({"a": a, "n": np.int32(3)}, scale=2.0))(x)
        np.savez(sys.argv[1] + "/results.npz", value=value, gradient=gradient)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    subprocess.run(command, check=True)
    results = np.load(tmp_path / "results.npz")
    direct = jax.value_and_grad(lambda a: energy({"a": a, "n": np.int32(3)}, 2.0))(X)
    np.testing.assert_array_equal(results["value"], direct[0])
    np.testing.assert_allclose(results["gradient"], direct[1], rtol=1e-6)


# ---- damaged bytes -------------------------------------------------------------------------------


def test_every_truncation_and_every_flipped_byte_is_refused():
    whole = bytes(export.export(jax.jit(lambda x: x))(np.float32(0)).serialize())
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="the serialized program "):
            export.deserialize(whole[:end])
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 0xFF
        with pytest.raises(ValueError, match="the serialized program "):
            export.deserialize(flipped)
    with pytest.raises(ValueError, match="the serialized program "):
        export.deserialize(whole + b"x")


def with_header(data, **changes):
    """Return an exported program with another header and the right checksum."""
    fields = cache_file.unpack(bytes(data))
    header = {**json.loads(fields["header"]), **changes}
    return cache_file.pack({**fields, "header": json.dumps(header).encode()})


def test_newer_versions_are_refused():
    data = export.export(jax.jit(lambda x: x + 1))(X).serialize()
    with pytest.raises(ValueError, match="version 99 of the format, and this one reads up to 2"):
        export.deserialize(with_header(data, version=99))
    for version in (8, 11):
        with pytest.raises(ValueError, match=rf"convention version {version} .* \[9\.\.10\]"):
            export.deserialize(with_header(data, calling_convention=version))
    earlier = export.deserialize(with_header(data, calling_convention=9))
    np.testing.assert_array_equal(earlier.call(X), X + 1)
    with pytest.raises(ValueError, match="no export"):
        export.deserialize(with_header(data, kind="executable"))


# ---- versions of StableHLO -----------------------------------------------------------------------


def test_modules_are_written_for_the_oldest_readers():
    """A program is in the version of two years ago, unless one of its types is newer."""
    old = export.export(jax.jit(lambda x: jnp.sin(x)))(X)
    new = export.export(jax.jit(lambda x: x))(jax.ShapeDtypeStruct((2,), "float8_e8m0fnu"))
    versions = []
    for made in (old, new):
        fields = cache_file.unpack(bytes(again(made).serialize()))
        versions.append(json.loads(fields["header"])["stablehlo"])
        assert version_of_artifact(fields["module"]) == versions[-1]
    assert versions[0] == "0.9.0"
    assert tuple(map(int, versions[1].split("."))) >= (1, 8, 0)


def test_a_module_of_a_newer_version_is_refused_with_both_versions():
    data = export.export(jax.jit(lambda x: x))(X).serialize()
    fields = cache_file.unpack(bytes(data))
    module = fields["module"].replace(b"StableHLO_v0.9.0\0", b"StableHLO_v9.9.0\0")
    module = module.replace(b"return_v1", b"return_v9")
    newer = export.deserialize(cache_file.pack({**fields, "module": module}))
    with pytest.raises(ValueError, match=r"version 9\.9\.0 of StableHLO, .* Take a newer jaxlib"):
        newer.call(X)
