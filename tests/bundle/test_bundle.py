"""Bundles: files of a function's programs, which other processes call and start from."""

import collections
import json
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import bundle, export
from hlofront.base import events
from hlofront.pjrt import cache_file
from hlofront.runtime.bundle import programs
from tests.bundle.programs import spec, specs, step
from tests.pjrt.needed import need
from tests.support.scaled_node import Scaled

pytestmark = pytest.mark.filterwarnings("error")

Pair = collections.namedtuple("Pair", "x y")
export.register_namedtuple_serialization(Pair, serialized_name="tests.bundle.Pair")


def saved(tmp_path, function, *args, **options):
    path = tmp_path / "program.hlob"
    bundle.save(path, function, *args, **options)
    return path


def weights():
    return {"w": np.arange(3, dtype=np.float32), "unused": np.ones(2, np.float32)}


def compilations(call, *args, **kwargs):
    """How often a call compiles, and its result."""
    names = []
    listener = lambda event, *_, **more: names.append(event) if event == events.COMPILE else None
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        return (call(*args, **kwargs), len(names))[::-1]
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert jax.typeof(x) == jax.typeof(y)
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)


# ---- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("trust", [True, False])
def test_each_size_has_a_program(tmp_path, trust):
    path = saved(tmp_path, jax.jit(step), *(bundle.arguments(*specs(n)) for n in (2, 5)))
    loaded = bundle.load(path, trust=trust)
    for rows in (2, 5):
        x = np.ones((rows, 3), np.float32)
        count, result = compilations(loaded, weights(), x)
        assert (count == 0) is trust
        assert_same(result, jax.jit(step)(weights(), x))
    with pytest.raises(TypeError, match=r"x: float32\[7,3\](.|\n)*x: float32\[2,3\]\)(.|\n)*5,3"):
        loaded(weights(), np.ones((7, 3), np.float32))
    with pytest.raises(TypeError, match="has no program of step"):
        loaded(weights(), np.ones((2, 3), np.float32), 2.0)


CASES = {
    "containers": (
        lambda pair, ordered, scaled: (Pair(pair.y, pair.x), ordered, [scaled, None, ()]),
        (Pair(1.0, np.int8(2)), collections.OrderedDict(b=1, a=np.float16(2)), Scaled(True, 5)),
        {},
    ),
    "weak types": (lambda x, y: (x * 2, y), (3, 2.5), {}),
    "keys": (lambda k: (jax.random.split(k), jax.random.uniform(k, 3)), (jax.random.key(0),), {}),
    "a large constant": (lambda x: x + np.arange(3000.0, dtype=np.float32), (np.float32(1),), {}),
    "small types": (lambda x: (x.astype("int4"), x > 1, x.astype("bfloat16")), (jnp.ones(2),), {}),
    "lapack": (jnp.linalg.cholesky, (4 * np.eye(2, dtype=np.float32),), {}),
    "an unused argument": (lambda x, y: x + 1, (1.0, np.ones(2)), {"keep_unused": True}),
    "no arguments": (lambda: jnp.arange(3), (), {}),
    "loops": (lambda x: jax.lax.scan(lambda c, y: (c + y, c), 0.0, x), (np.ones(4, "f"),), {}),
    "complex": (lambda x: jnp.fft.fft(x), (np.ones(4, np.complex64),), {}),
    "a compiler option": (
        lambda x: jnp.sin(x),
        (1.0,),
        {"compiler_options": {"xla_cpu_enable_fast_math": True}},
    ),
    "nothing": (lambda x: None, (1.0,), {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("trust", [True, False])
def test_results_are_those_of_the_function(tmp_path, case, trust):
    function, args, options = CASES[case]
    jitted = jax.jit(function, **options)
    loaded = bundle.load(saved(tmp_path, jitted, *args), trust=trust)
    count, result = compilations(loaded, *args)
    assert (count == 0) is trust
    expected = jitted(*args)
    if case == "containers":
        assert result[2][0].factor == expected[2][0].factor == 5
        assert result[0] == expected[0] and list(result[1]) == ["b", "a"]
    else:
        assert_same(result, expected)


def test_static_arguments_by_position_and_name(tmp_path):
    jitted = jax.jit(
        lambda x, n, mode="sin": getattr(jnp, mode)(x) * n,
        static_argnums=1,
        static_argnames="mode",
    )
    calls = bundle.arguments(1.0, 2), bundle.arguments(1.0, 3, mode="cos")
    loaded = bundle.load(saved(tmp_path, jitted, *calls), trust=True)
    assert loaded(1.0, 2) == jitted(1.0, 2)
    assert loaded(1.0, 3, mode="cos") == jitted(1.0, 3, mode="cos")
    for n in (3, 2.0, True):  # Equal to none of the values, or of another type.
        with pytest.raises(TypeError, match=rf"1={n}.*(.|\n)*1=3, mode='cos'"):
            loaded(1.0, n)
    with pytest.raises(ValueError, match=r"static argument 1 of .* of type object"):
        saved(tmp_path, jax.jit(lambda x, n: x, static_argnums=1), 1.0, object())


def test_donated_arguments_are_deleted(tmp_path):
    jitted = jax.jit(lambda x, y: x + y, donate_argnums=0)
    loaded = bundle.load(saved(tmp_path, jitted, spec((4,)), 1.0), trust=True)
    x, y = jnp.ones(4), jnp.float32(1)
    loaded(x, y)
    assert x.is_deleted() and not y.is_deleted()


def test_calls_after_the_first_run_no_python(tmp_path):
    loaded = bundle.load(saved(tmp_path, jax.jit(lambda x: x + 1), spec((3,))), trust=True)
    x = loaded(jnp.ones(3))
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame) if event == "call" else None)
    try:
        loaded(x)
    finally:
        sys.setprofile(None)
    assert not called


def test_an_only_program_is_loaded_before_its_call(tmp_path, monkeypatch):
    loads = []

    def load(self, executable, key):
        loads.append(threading.current_thread().name)
        return loaded_here(self, executable, key)

    loaded_here = programs.Program._load
    monkeypatch.setattr(programs.Program, "_load", load)
    path = saved(tmp_path, jax.jit(lambda x: x + 1), spec((3,)))
    x = np.ones(3, np.float32)
    assert bundle.load(path, trust=True)(x).tolist() == [2, 2, 2]
    assert loads == ["hlofront-load"]
    # Not without trust, and not one of several programs.
    loads.clear()
    assert bundle.load(path)(x).tolist() == [2, 2, 2]
    assert not loads
    calls = bundle.arguments(spec((3,))), bundle.arguments(spec((4,)))
    assert bundle.load(saved(tmp_path, jax.jit(lambda x: x + 1), *calls), trust=True)(x)[0] == 2
    assert loads == ["MainThread"]


def test_an_executable_that_xla_refuses_is_compiled_where_it_is_called(tmp_path):
    path = saved(tmp_path, jax.jit(lambda x: x + 1), spec((3,)))
    fields = cache_file.unpack(path.read_bytes())
    inner = cache_file.unpack(fields["executable 0 0"])
    broken = cache_file.pack({**inner, "executable": b"no machine code"})
    path.write_bytes(cache_file.pack({**fields, "executable 0 0": broken}))
    loaded = bundle.load(path, trust=True)
    with pytest.warns(bundle.BundleWarning, match="XLA refuses it"):
        assert loaded(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_a_loaded_function_is_traced_differentiated_batched_and_exported(tmp_path):
    jitted = jax.jit(lambda x: jnp.sin(x) * x)
    loaded = bundle.load(saved(tmp_path, jitted, spec((3,)), vjp_order=2), trust=True)
    x = np.linspace(0, 1, 3, dtype=np.float32)
    slope = lambda f: jax.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(slope(loaded)(x), slope(jitted)(x), rtol=1e-6)
    np.testing.assert_allclose(slope(slope(loaded))(x), slope(slope(jitted))(x), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(loaded)(np.stack([x, x])), jitted(np.stack([x, x])))
    again = export.deserialize(export.export(loaded)(x).serialize())
    np.testing.assert_array_equal(again.call(x), jitted(x))
    without = bundle.load(saved(tmp_path, jitted, spec((3,))), trust=True)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda x: without(x).sum())(x)
    with jax.disable_jit():
        np.testing.assert_allclose(loaded(x), jitted(x), rtol=1e-6)


def test_symbolic_sizes_are_compiled_for_each_size(tmp_path):
    size = export.symbolic_shape("n, 3")
    loaded = bundle.load(saved(tmp_path, jax.jit(lambda x: x.sum(0)), spec(size)), trust=True)
    for rows in (1, 4):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(loaded(x), x.sum(0))
    assert "f32[n,3]" in str(loaded.exported().in_avals[0].str_short(short_dtypes=True))


@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_stages_are_saved_and_loaded(tmp_path, stage):
    args = np.ones(3, np.float32), 2
    jitted = jax.jit(lambda x, n: {"y": x * n}, static_argnums=1)
    saved_stage = jitted.trace(*args) if stage == "trace" else jitted.lower(*args)
    if stage == "compile":
        saved_stage = saved_stage.compile()
    loaded = bundle.load(saved(tmp_path, saved_stage), trust=True)
    count, result = compilations(loaded, args[0])
    assert count == 0
    assert_same(result, jitted(*args))
    lowered = loaded.lower(args[0])
    assert "stablehlo.multiply" in lowered.as_text()
    assert "multiply" in lowered.compile().as_text()
    with pytest.raises(ValueError, match="has its arguments"):
        bundle.save(tmp_path / "other", saved_stage, args[0])


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match=r"takes a jitted function.*Pass jax\.jit\(f\)"):
        saved(tmp_path, step, *specs(2))
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        saved(tmp_path, jax.jit(lambda x: jax.pure_callback(np.sin, x, x)), spec((3,)))
    with pytest.raises(ValueError, match="arguments of one call, or"):
        saved(tmp_path, jax.jit(step), bundle.arguments(1.0), 2.0)
    Unknown = collections.namedtuple("Unknown", "x")
    with pytest.raises(ValueError, match="unregistered type"):
        saved(tmp_path, jax.jit(lambda u: u.x), Unknown(1.0))
    assert not list(tmp_path.iterdir())


def test_another_process_without_the_function(tmp_path):
    """It neither imports the function's module, nor traces, nor compiles."""
    path = saved(tmp_path, jax.jit(step), *specs(2), scale=2.0)
    script = """
        import sys, numpy as np, hlofront as jax
        from hlofront import bundle
        loaded = bundle.load(sys.argv[1], trust=True)
        weights = {"w": np.arange(3, dtype="float32"), "unused": np.ones(2, "float32")}
        weights, loss = loaded(weights, np.ones((2, 3), "float32"), scale=2.0)
        assert not [name for name in sys.modules if name.startswith("tests")]
        assert not [name for name in sys.modules if name.startswith("hlofront.lowering.")]
        print(weights["w"].tolist(), float(loss).hex())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HLOFRONT_CACHE": "0"},
    )
    moved, loss = jax.jit(step)(weights(), np.ones((2, 3), np.float32), scale=2.0)
    assert ran.stdout.split("\n")[0] == f"{moved['w'].tolist()} {float(loss).hex()}"


# ---- a jitted function that starts from a bundle ------------------------------------------------


def test_an_attached_function_is_not_traced(tmp_path):
    traces = []

    def function(x):
        traces.append(x)
        return x * 2

    path = saved(tmp_path, jax.jit(function), spec((3,)))
    traces.clear()
    jax.clear_caches()
    jitted = bundle.attach(jax.jit(function), path, trust=True)
    count, result = compilations(jitted, np.ones(3, np.float32))
    assert (count, traces, result.tolist()) == (0, [], [2, 2, 2])
    assert jitted(np.ones(4, np.float32)).tolist() == [2, 2, 2, 2]  # The bundle has no program.
    assert len(traces) == 1
    assert jax.grad(lambda x: jitted(x).sum())(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_an_attached_function_without_trust_compiles_and_is_not_traced(tmp_path):
    traces = []

    def function(x):
        traces.append(x)
        return x * 2

    path = saved(tmp_path, jax.jit(function), spec((3,)))
    traces.clear()
    jax.clear_caches()
    jitted = bundle.attach(jax.jit(function), path)
    count, result = compilations(jitted, np.ones(3, np.float32))
    assert (count, traces, result.tolist()) == (1, [], [2, 2, 2])


def test_options_at_the_call_that_the_program_was_not_traced_under(tmp_path):
    function = lambda x: x @ x
    path = saved(tmp_path, jax.jit(function), spec((3, 3)))
    jax.clear_caches()
    jitted = bundle.attach(jax.jit(function), path, trust=True)
    with jax.default_matmul_precision("highest"):
        with pytest.warns(bundle.BundleWarning, match="jax_default_matmul_precision"):
            jitted(np.ones((3, 3), np.float32))
    count, _ = compilations(jitted, np.ones((3, 3), np.float32))
    assert count == 0


def test_attach_takes_jitted_functions(tmp_path):
    path = saved(tmp_path, jax.jit(step), *specs(2))
    with pytest.raises(ValueError, match=r"attach takes a jitted function.*Pass jax\.jit"):
        bundle.attach(step, path)
    with pytest.raises(FileNotFoundError):
        bundle.attach(jax.jit(step), tmp_path / "none")


# ---- what has changed ----------------------------------------------------------------------------


def with_fields(path, change):
    """Change the header of a bundle, with the right checksum."""
    fields = cache_file.unpack(path.read_bytes())
    header = json.loads(fields["header"])
    change(header)
    path.write_bytes(cache_file.pack({**fields, "header": json.dumps(header).encode()}))


MACHINE = ["jaxlib", "platform", "platform version", "device", "XLA_FLAGS", "processor", "fences"]


@pytest.mark.parametrize("field", MACHINE)
@pytest.mark.parametrize("attached", [True, False])
def test_an_executable_of_another_machine_is_not_used(tmp_path, field, attached):
    function = lambda x: x * 3
    path = saved(tmp_path, jax.jit(function), spec((3,)))

    def change(header):
        header["programs"][0]["executables"][0]["fields"][field] = "another"

    with_fields(path, change)
    jax.clear_caches()
    load = lambda: (
        bundle.attach(jax.jit(function), path, trust=True)
        if attached
        else bundle.load(path, trust=True)
    )
    loaded = load()
    with pytest.warns(bundle.BundleWarning, match=rf"{field} was another and is "):
        count, result = compilations(loaded, np.ones(3, np.float32))
    assert (count, result.tolist()) == (1, [3, 3, 3])
    verdict = bundle.verify(path)[0]
    assert (field in verdict.differing) == (field != "fences")


@pytest.mark.parametrize("field", ["hlofront", "python", "numpy", "source", "jit"])
def test_an_attached_function_that_has_changed_is_compiled(tmp_path, field):
    function = lambda x: x * 3
    path = saved(tmp_path, jax.jit(function), spec((3,)))
    with_fields(path, lambda header: header["function"].update({field: "another"}))
    with pytest.warns(bundle.BundleWarning, match=rf"{field} was another and is "):
        jitted = bundle.attach(jax.jit(function), path, trust=True)
    assert jitted(np.ones(3, np.float32)).tolist() == [3, 3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Without the function there is nothing to compare.
        assert bundle.load(path, trust=True)(np.ones(3, np.float32)).tolist() == [3, 3, 3]


def test_other_options_of_jit_are_a_change(tmp_path):
    function = lambda x, y: x + y
    path = saved(tmp_path, jax.jit(function), spec((3,)), spec((3,)))
    with pytest.warns(bundle.BundleWarning, match=r"jit was .*'donated': \(\(\), .*\(\(1,\)"):
        bundle.attach(jax.jit(function, donate_argnums=1), path, trust=True)


raw_platforms = {"tpu": "tpu", "cuda": "gpu"}
# The devices of targets that are not here, as an attached device calls itself.
ABSENT = {"tpu:v5e:2x2": "TPU v5 lite", "cuda:h100": "NVIDIA H100 80GB HBM3"}


@pytest.mark.parametrize("name", ABSENT)
@pytest.mark.parametrize("attached", [True, False])
def test_executables_for_absent_devices(tmp_path, name, attached):
    """They are listed, and a process on CPUs compiles the StableHLO, or the function."""
    platform = name.partition(":")[0]
    need(platform)
    function = lambda x: jnp.tanh(x) * 3
    path = saved(tmp_path, jax.jit(function), spec((3,)), targets=[name])
    (program,) = bundle.ls(path).programs
    assert program.platforms == (platform,)
    ((target, size),) = program.executables
    assert target == name and size > 1000
    (verdict,) = bundle.verify(path)
    assert verdict.differing == f"it is for 1 x {ABSENT[name]}, which this process does not have"
    x = np.ones(3, np.float32)
    jax.clear_caches()
    reason = rf"for {name} .* platform was {raw_platforms[platform]} and is cpu\. Save"
    if attached:
        jitted = bundle.attach(jax.jit(function), path, trust=True)
        with pytest.warns(bundle.BundleWarning, match=reason):
            count, result = compilations(jitted, x)
        assert count == 1
        np.testing.assert_allclose(result, function(x), rtol=1e-6)
        return
    # Its StableHLO is for that platform alone.
    with pytest.warns(bundle.BundleWarning, match=reason):
        with pytest.raises(ValueError, match=rf"exported for platforms '\('{platform}',\)'"):
            bundle.load(path, trust=True)(x)
    both = tmp_path / "both"
    bundle.save(both, jax.jit(function), spec((3,)), targets=[name, "cpu"])
    count, result = compilations(bundle.load(both, trust=True), x)
    assert count == 0
    np.testing.assert_allclose(result, function(x), rtol=1e-6)


# ---- damaged files -------------------------------------------------------------------------------


@pytest.mark.long
def test_every_truncation_and_every_flipped_byte_is_refused(tmp_path):
    path = saved(tmp_path, jax.jit(lambda x: x), np.float32(0))
    whole = path.read_bytes()
    changed = tmp_path / "changed"
    for end in range(len(whole)):
        changed.write_bytes(whole[:end])
        with pytest.raises(bundle.BundleError, match=r"the bundle .* (is|was|has|claims)"):
            bundle.load(changed, trust=True)
    for place in range(len(whole)):
        changed.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(bundle.BundleError, match=r"the bundle .* (is|was|has|claims)"):
            bundle.load(changed, trust=True)
    changed.write_bytes(whole + b"x")
    for read in (bundle.load, bundle.ls, bundle.verify):
        with pytest.raises(bundle.BundleError, match="checksum"):
            read(changed)


def test_other_files_newer_ones_and_broken_headers_are_refused(tmp_path):
    jitted = jax.jit(lambda x: x + 1)
    path = saved(tmp_path, jitted, spec((3,)))
    whole = path.read_bytes()
    with_fields(path, lambda header: header.update(version=99))
    with pytest.raises(bundle.BundleError, match=r"version 99 .* this one reads up to 1"):
        bundle.load(path)
    for missing in ("programs", "function", "version", "kind"):
        path.write_bytes(whole)
        with_fields(path, lambda header, missing=missing: header.pop(missing))
        with pytest.raises(bundle.BundleError, match=r"not a bundle|not as hlofront writes it"):
            bundle.ls(path)
    path.write_bytes(export.export(jitted)(spec((3,))).serialize())
    with pytest.raises(bundle.BundleError, match="an exported program, or an executable"):
        bundle.load(path)
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(bundle.BundleError, match="not a bundle: it starts otherwise"):
        bundle.load(path)


def test_a_list_of_what_is_there(tmp_path):
    calls = [bundle.arguments(*specs(n)) for n in (2, 5)]
    path = saved(tmp_path, jax.jit(step), *calls, targets=["cpu"])
    listing = bundle.ls(path)
    assert listing.name == "step"
    assert [program.platforms for program in listing.programs] == [("cpu",), ("cpu",)]
    assert "x: float32[5,3]" in listing.programs[1].signature
    assert "executable for cpu" in str(listing)
    assert [verdict.differing for verdict in bundle.verify(path)] == ["", ""]
