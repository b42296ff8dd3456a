"""Executables on disk: found by another process, distinguished by everything relevant, repaired."""

import json
import os
import pathlib
import subprocess
import sys
import warnings
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import program_digest
from hlofront.core.rules import infer, lower
from hlofront.pjrt import cache_file, cache_key, configured_stores
from tests import on_platforms

ROOT = pathlib.Path(__file__).parents[2]
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def folder(tmp_path):
    """A folder where small executables are kept during the test."""
    place = tmp_path / "executables"
    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(place)):
        jax.clear_caches()
        yield place
    jax.clear_caches()


def entries(folder):
    return sorted(folder.glob("*.xla")) if folder.exists() else []


def fields_of(path):
    return cache_file.unpack(path.read_bytes())


def step(x):
    return jnp.tanh(x @ x.T).sum(axis=0) * 2


def timings_again(f, *args):
    """The timings of a call when nothing is left in memory, and its result."""
    jax.clear_caches()
    result = np.asarray(f(*args))
    return f.timings(), result


# ---- hits ----------------------------------------------------------------------------------------

SCRIPT = """
import sys, json
import hlofront as jax, hlofront.numpy as jnp, numpy as np
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
y = jnp.sin(x) @ x.T
f = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) ** 2)))
value, gradient = f(x)
loop = jax.jit(lambda x: jax.lax.scan(lambda c, r: (c + jnp.cos(r), c), x[0], x)[0])
found = [np.asarray(v).tobytes().hex() for v in (y, value, gradient, loop(x))]
mlir = any(name.startswith("jaxlib.mlir") for name in sys.modules)
print(json.dumps([found, mlir, f.timings(), f.lower(x).compile().as_text()]))
"""


def in_a_process(folder, seed, script=SCRIPT, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={
            **os.environ,
            "HLOFRONT_CACHE": "on",
            "HLOFRONT_CACHE_DIR": str(folder),
            "PYTHONHASHSEED": seed,
            **environment,
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_another_process_neither_lowers_nor_compiles(tmp_path):
    first, _, cold, text = in_a_process(tmp_path / "a", "1")
    again, mlir, warm, text_again = in_a_process(tmp_path / "a", "2")
    assert again == first, "bit for bit"
    assert cold[2] > 0 and cold[3] == 0
    assert warm[1] == warm[2] == 0 and warm[3] > 0
    assert not mlir, "MLIR is not even loaded"
    assert text_again == text


LAPACK = """
import sys, json
import hlofront as jax, hlofront.numpy as jnp, numpy as np
a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
f = jax.jit(lambda a: jnp.linalg.inv(a) + jnp.linalg.eigh(a)[1] + jnp.linalg.qr(a)[0])
found = np.asarray(f(a)).tobytes().hex()
print(json.dumps([found, f.timings()]))
"""


@pytest.mark.long
@pytest.mark.cpu
def test_programs_that_call_lapack_load_it_first(tmp_path):
    (first, _), (again, warm) = (in_a_process(tmp_path / "a", "1", LAPACK) for _ in range(2))
    assert again == first and warm[2] == 0 and warm[3] > 0
    assert not (tmp_path / "a" / "damaged").exists()


def test_off_and_without_a_home_nothing_is_written(tmp_path):
    in_a_process(tmp_path / "a", "1", HLOFRONT_CACHE="off")
    assert entries(tmp_path / "a") == []


def test_eager_operations_are_kept(folder):
    jnp.sort(jnp.asarray(x), axis=0)
    names = {json.loads(fields_of(path)["about"])["name"] for path in entries(folder)}
    assert "sort" in names


def test_what_an_entry_holds(folder):
    f = jax.jit(step)
    f(x)
    (path,) = entries(folder)
    fields = fields_of(path)
    assert set(fields) == {"key", "about", "call", "executable", "stablehlo", "hlo"}
    key = json.loads(fields["key"])
    assert path.stem == cache_key.bytes_digest(cache_key.encoded(key))
    assert key["name"] == "step" and key["arguments"] == "float32[3,4]"
    text = json.dumps(key) + fields["call"].decode()
    assert "test_disk_cache" not in text and str(ROOT) not in text
    # Where the function is defined is for people, and decides nothing.
    about = json.loads(fields["about"])
    assert (about["file"], about["line"]) == (__file__, step.__code__.co_firstlineno)
    assert "stablehlo.tanh" in zlib.decompress(fields["stablehlo"]).decode()
    assert "HloModule" in zlib.decompress(fields["hlo"]).decode()


def test_the_stages_work_on_a_hit(folder):
    f = jax.jit(step)
    wanted = np.asarray(f(x))
    cold = f.lower(x).compile()
    jax.clear_caches()
    compiled = f.lower(x).compile()
    assert f.timings().compile == 0 and f.timings().load > 0
    assert compiled.as_text() == cold.as_text()
    assert compiled.memory_analysis().temp_size_in_bytes == (
        cold.memory_analysis().temp_size_in_bytes
    )
    np.testing.assert_array_equal(compiled(x), wanted)


def test_unused_arguments_donation_and_its_warning(folder):
    f = jax.jit(lambda unused, a, b: a * b, donate_argnums=(1, 2))

    def call():
        a, b = jnp.asarray(x), jnp.asarray(x)
        return f(1.0, a, b), a.is_deleted()

    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        wanted = call()
    jax.clear_caches()
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        found = call()
    assert f.timings().load > 0
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[1] and wanted[1]


@pytest.mark.cpu
def test_fences_are_kept(folder):
    def deep(x):
        for _ in range(20):
            x = x + jnp.tanh((x - x.mean()) @ x.T) @ x
        return x

    f = jax.jit(deep)
    wanted = np.asarray(f(x))
    assert "opt-barrier" in f.lower(x).compile().as_text()
    times, found = timings_again(f, x)
    assert times.load > 0
    np.testing.assert_array_equal(found, wanted)
    assert "opt-barrier" in f.lower(x).compile().as_text()


def test_the_committed_and_the_uncommitted_share_an_executable():
    f = jax.jit(step)
    f(x)
    before = f.timings().compile
    f(jax.device_put(x, *f(x).devices()))
    assert f.timings().compile == before


# ---- misses --------------------------------------------------------------------------------------


def the_miss(first, second, monkeypatch, caplog, change=lambda patch: None):
    """What is said about the miss of a program that is like one on disk but for something."""
    first()
    jax.clear_caches()
    change(monkeypatch)
    caplog.clear()
    with jax.explain_cache_misses(True), caplog.at_level("WARNING", "hlofront"):
        second()
    return [r.getMessage() for r in caplog.records if "on disk" in r.getMessage()]


def jitted(fun, name="step", **options):
    fun.__name__ = name
    return jax.jit(fun, **options)


def call(fun=lambda x: jnp.tanh(x) * 2, *args, **options):
    return lambda: jitted(lambda *a: fun(*a), **options)(*(args or (x,)))


_JAXLIB = ".".join(map(str, cache_key.state.jaxlib_version))


def version(patch):
    patch.setattr(cache_key, "state", SimpleNamespace(jaxlib_version=(0, 12, 0), jaxlib_build=""))


def ours(patch):
    patch.setattr(cache_key, "our_version", lambda: "0.2.0 0123")


def processor(patch):
    patch.setattr(cache_key, "processor", lambda: "x86_64 linux another 0123")


def flags(patch):
    patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=true")


def numpys(patch):
    patch.setattr(cache_key.np, "__version__", "3.0")


CAUSES = {
    "another program": (call(), call(lambda x: jnp.tanh(x) * 3), None, "program:"),
    "another shape": (call(), call(jnp.tanh, x[:2]), None, "arguments: float32[3,4] -> float32[2,"),
    "another dtype": (
        call(jnp.abs),
        call(jnp.abs, x.astype(np.int32)),
        None,
        "arguments: float32[3,4] -> int32",
    ),
    "donation": (call(), lambda: call(donate_argnums=0)(), None, "donated:  -> 1"),
    "kept arguments": (call(), call(keep_unused=True), None, "keep_unused: False -> True"),
    "an option of XLA's": (
        call(),
        call(compiler_options={"xla_cpu_enable_fast_min_max": True}),
        None,
        "compiler options:  -> xla_cpu_enable_fast_min_max=True",
    ),
    "flags of XLA's": (
        call(),
        call(),
        flags,
        f"XLA_FLAGS: {os.environ.get('XLA_FLAGS', '')} -> --xla_cpu_enable_fast_min_max=true",
    ),
    "jaxlib": (call(), call(), version, f"jaxlib: {_JAXLIB}"),
    "hlofront": (call(), call(), ours, "hlofront:"),
    "the processor": (call(), call(), processor, "processor:"),
    "numpy": (call(), call(), numpys, "numpy:"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_field_that_differs_is_named(cause, folder, monkeypatch, caplog):
    first, second, change, wanted = CAUSES[cause]
    if (
        cause == "the processor"
        and on_platforms.device_of(on_platforms.current())[0].platform == "gpu"
    ):
        pytest.skip("what a GPU runs does not depend on it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = the_miss(first, second, monkeypatch, caplog, change or (lambda patch: None))
    assert any("step is not in the cache on disk" in line and wanted in line for line in said), said


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("hlofront_fences", "fences: True -> False"),
        ("hlofront_cpu_formulas", "formulas: nothing -> False"),
    ],
)
def test_settings_of_cpus_are_part_of_the_key(option, wanted, folder, monkeypatch, caplog):
    def without():
        with options[option](False):
            call()()

    (said,) = the_miss(call(), without, monkeypatch, caplog)
    assert wanted in said


def test_another_name_has_no_entry(folder, monkeypatch, caplog):
    (said,) = the_miss(call(), call(name="other"), monkeypatch, caplog)
    assert "other is not in the cache on disk: it has no entry of this name" in said


def test_lines_and_history_make_no_difference(folder):
    def build(shift):
        space = {"jnp": jnp}
        exec("\n" * shift + "def f(x):\n    return jnp.exp(x) + x", space)
        return jax.jit(space["f"])

    build(0)(x)
    count = len(entries(folder))
    jnp.cos(x[:1])
    jax.clear_caches()
    f = build(37)
    f(x)
    assert f.timings().load > 0
    assert len(entries(folder)) == count + 1, "that of cos"


# ---- what is not stored --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2,
        lambda x: jax.debug.print("{}", x) or x * 2,
        lambda x: jax.debug.callback(lambda x: None, x) or x * 2,
    ],
)
def test_programs_that_call_back_are_not_stored(function, folder):
    jax.jit(function)(x)
    jax.effects_barrier()
    assert entries(folder) == []


RAISING = """
import sys, json
import hlofront as jax, hlofront.numpy as jnp, numpy as np
class NegativeError(RuntimeError):
    pass
def positive(x):
    if x.sum() < 0:
        raise NegativeError("boom")
    return x
@jax.jit
def f(x):
    y = jnp.tanh(x @ x.T).sum() + x
    return jax.pure_callback(positive, jax.ShapeDtypeStruct(y.shape, y.dtype), y)
x = np.ones((2, 2), np.float32)
f(x)
try:
    jax.block_until_ready(f(x - 9))
    found = "nothing"
except (ValueError, RuntimeError) as error:
    found = str(error)
print(json.dumps(["NegativeError: boom" in found, found]))
"""


@pytest.mark.slow
def test_an_exception_of_a_host_function_is_the_same_with_a_folder(tmp_path):
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "whole"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    for seed in ("1", "2"):
        is_said, text = in_a_process(tmp_path / "a", seed, RAISING, **settings)
        assert is_said, text


def test_large_programs_need_a_folder_of_the_users(folder, tmp_path):
    def long(x):
        for _ in range(150):
            x = x * x + 1
        return x

    f = jax.jit(long)
    f(x)
    assert entries(folder) == []
    jax.clear_caches()
    whole = tmp_path / "whole"
    seconds = options["jax_persistent_cache_min_compile_time_secs"]
    with options["jax_compilation_cache_dir"](str(whole)):
        with seconds(60.0):
            f(x)
        assert entries(whole) == [], "it took less than a minute"
        jax.clear_caches()
        with seconds(0.0):
            wanted = np.asarray(f(x))
            assert len(entries(whole)) == 1 and entries(folder) == []
            times, found = timings_again(f, x)
            assert times.load > 0
            np.testing.assert_array_equal(found, wanted)
            with options["jax_enable_compilation_cache"](False):
                times, _ = timings_again(f, x)
                assert times.load == 0
        with options["jax_persistent_cache_min_entry_size_bytes"](1 << 30), seconds(0.0):
            jax.clear_caches()
            jax.jit(lambda x: long(x) - 1)(x)
            assert len(entries(whole)) == 1


def test_large_constants_are_no_part_of_the_executable(folder):
    table = np.arange(4096, dtype=np.float32)

    def of(table):
        return jax.jit(lambda i: table[i] * 2)

    f = of(jnp.asarray(table))
    assert program_digest(f.trace(np.int32(3)).jaxpr) is None
    assert float(f(np.int32(3))) == 6
    jax.clear_caches()
    g = of(jnp.asarray(-table))
    assert float(g(np.int32(3))) == -6, "the values are arguments"
    assert g.timings().load > 0


def test_small_constants_are(folder):
    def of(value):
        table = jnp.asarray(value)
        return jax.jit(lambda i: table[i] * 2)

    assert float(of([1.0, 2.0])(np.int32(1))) == 4
    jax.clear_caches()
    assert float(of([1.0, 3.0])(np.int32(1))) == 6


# ---- healing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"something else altogether",
        lambda data: cache_file.pack({**cache_file.unpack(data), "executable": b"no executable"}),
        lambda data: cache_file.pack({**cache_file.unpack(data), "call": b"{}"}),
        lambda data: cache_file.pack({**cache_file.unpack(data), "call": b"no JSON"}),
    ],
)
def test_a_damaged_entry_is_compiled_anew_and_replaced(damage, folder):
    f = jax.jit(step)
    wanted = np.asarray(f(x))
    assert f.timings().compile > 0, "what was in memory was forgotten"
    (path,) = entries(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    times, found = timings_again(f, x)
    np.testing.assert_array_equal(found, wanted)
    assert times.compile > 0 and times.load == 0
    again, before = (
        {**json.loads(fields["call"]), "compile_seconds": 0.0}
        for fields in (fields_of(path), cache_file.unpack(whole))
    )
    assert again == before
    assert len(list((folder / "damaged").iterdir())) == 1
    times, found = timings_again(f, x)
    assert times.load > 0
    np.testing.assert_array_equal(found, wanted)


def test_a_folder_that_others_can_write_to_is_refused(folder, caplog):
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with caplog.at_level("WARNING", "hlofront"):
        np.testing.assert_allclose(jax.jit(step)(x), np.tanh(x @ x.T).sum(0) * 2, rtol=1e-5)
    assert entries(folder) == [] and "chmod go-w" in caplog.text


# ---- digests -------------------------------------------------------------------------------------


def digest(f, *args):
    return program_digest(jax.jit(f).trace(*args).jaxpr)


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (lambda x: x * 2, lambda x: x * 2.5),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x.sum(0), lambda x: x.sum(1)),
        (lambda x: x[:2], lambda x: x[1:]),
        (lambda x: x - x[0], lambda x: x[0] - x),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), lambda x: x),
        (
            lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
            lambda x: lax.cond(x[0, 0] > 0, jnp.cos, jnp.sin, x),
        ),
        (lambda x: x.at[0].set(1), lambda x: x.at[0].add(1)),
        (lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.float16)),
        (jax.jit(lambda x: x * 2), lambda x: x * 2),
        (lambda x: x * np.float32("nan"), lambda x: x * np.float32("inf")),
    ],
)
def test_different_programs_have_different_digests(f, g):
    assert digest(f, x) and digest(g, x) and digest(f, x) != digest(g, x)


def test_equal_programs_have_one_digest():
    def build():
        w = jax.jit(lambda a: jnp.sin(a) * 2)
        return lambda x: w(x) + w(x + 1).sum(0)

    assert digest(build(), x) == digest(build(), x)
    relu = jax.custom_jvp(lambda x: jnp.maximum(x, 0))
    relu.defjvp(lambda p, t: (relu(*p), t[0]))
    assert digest(lambda x: relu(x) + 1, x) is not None, "derivative rules are not lowered"


def test_a_primitive_of_the_users_has_none():
    mine_p = Primitive("mine")
    infer(mine_p)(lambda x: x)
    lower(mine_p)(lambda build, x: x)
    assert digest(lambda x: mine_p.bind(x), x) is None


def test_misses_are_warned_of_only_where_an_option_names_a_folder(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(configured_stores, "default_folder", lambda: str(tmp_path))
    with options["hlofront_cache"](True):
        jax.clear_caches()
        assert not the_miss(call(), call(name="other"), monkeypatch, caplog)
    assert entries(tmp_path)
    jax.clear_caches()
