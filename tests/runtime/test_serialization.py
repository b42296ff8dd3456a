"""serialize_executable: a compiled program becomes bytes, and these the program again."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.experimental.serialize_executable import deserialize_and_load, serialize
from hlofront.pjrt import cache_file
from hlofront.runtime.export import serialization


def again(function, *args, **options):
    """The function compiled for these arguments, serialized and loaded."""
    compiled = jax.jit(function, **options).lower(*args).compile()
    return deserialize_and_load(*serialize(compiled))


def test_a_program_of_trees_gives_the_same():
    x = {"b": jnp.ones(3)}
    loaded = again(lambda x, y: {"a": x["b"] + y, "c": [x["b"]]}, x, 2.0)
    found = loaded(x, 3.0)
    np.testing.assert_array_equal(found["a"], [4, 4, 4])
    np.testing.assert_array_equal(found["c"][0], [1, 1, 1])
    assert loaded.out_avals["a"] == jax.typeof(x["b"])
    assert loaded.args_info[0][1]._aval.weak_type
    assert "add" in (loaded.as_text() or "")
    assert loaded.memory_analysis().output_size_in_bytes > 0
    assert loaded.input_shardings[0][1].device_set == {jax.devices()[0]}


def test_other_arguments_are_refused_by_name():
    loaded = again(lambda x: x, jnp.ones(3))
    with pytest.raises(TypeError, match=r"float32\[3\] and called with float32\[4\]"):
        loaded(jnp.ones(4))
    with pytest.raises(TypeError, match="does not match the input pytree"):
        loaded([jnp.ones(3)])


def test_keys_small_types_constants_and_unused_arguments():
    key = jax.random.key(3)
    draw = again(lambda k: (jax.random.uniform(k), jax.random.split(k)), key)
    number, keys = draw(key)
    assert number == jax.random.uniform(key)
    assert (keys == jax.random.split(key)).all()
    table = jnp.arange(1000.0)
    loaded = again(lambda x, unused: (x + table)[1:3].astype(jnp.bfloat16), 1.0, 2.0)
    assert loaded(2.0, None or 5.0).tolist() == [3, 4]
    flags = again(lambda x: (x > 0, x.astype("int4"), None), jnp.array([-1.0, 2.0]))
    assert flags(jnp.array([3.0, -4.0]))[1].tolist() == [3, -4]


def test_donation_stays_and_static_arguments_are_gone():
    loaded = again(lambda x, n: x * n, jnp.ones(4), 3, static_argnums=1, donate_argnums=0)
    x = jnp.ones(4)
    np.testing.assert_array_equal(loaded(x), [3, 3, 3, 3])
    assert x.is_deleted()
    assert loaded.donate_argnums == (0,)


def test_a_program_that_calls_lapack_runs():
    np.testing.assert_allclose(
        again(jnp.linalg.cholesky, jnp.eye(2))(4 * jnp.eye(2)), 2 * np.eye(2)
    )


def test_debug_nans_names_the_program():
    loaded = again(jnp.log, 1.0)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="deserialized_call"):
        loaded(-1.0)


def test_a_loaded_program_is_serialized_again():
    twice = deserialize_and_load(*serialize(again(jnp.sin, 1.0)))
    assert twice(2.0) == jnp.sin(2.0)


def test_a_program_from_the_cache_on_disk_is_serialized_until_it_is_gone(tmp_path):
    def compiled():
        jax.clear_caches()
        return jax.jit(lambda x: jnp.sin(x) * 3).lower(1.0).compile()

    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path)):
        first, second = compiled(), compiled()
        assert deserialize_and_load(*serialize(second))(1.0) == first(1.0)
        shutil.rmtree(tmp_path)
        with pytest.raises(ValueError, match="no longer has it"):
            serialize(second)


def test_another_process_runs_it(tmp_path):

    compiled = jax.jit(lambda x: {"y": x + 1}).lower(1.0).compile()
    data, _, _ = serialize(compiled)
    path = tmp_path / "program"
    path.write_bytes(data)
    script = textwrap.dedent("""
        import sys
        import hlofront as jax
        from hlofront.experimental.serialize_executable import deserialize_and_load
        trees = (jax.tree.structure(((0,), {})), jax.tree.structure({"y": 0}))
        print(deserialize_and_load(open(sys.argv[1], "rb").read(), *trees)(20.0))
    """)
    command = [sys.executable, "-P", "-c", script, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(jax.__file__).parents[1])}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "Array(21." in ran.stdout


def test_effects_are_refused():
    def prints(x):
        jax.debug.print("{}", x)
        return x

    def calls(x):
        return jax.pure_callback(np.sin, x, x)

    for function in (prints, calls):
        compiled = jax.jit(function).lower(1.0).compile()
        with pytest.raises(ValueError, match="calls back to Python"):
            serialize(compiled)


@pytest.mark.parametrize("stage", ["jit", "lowered"])
def test_other_stages_are_refused(stage):
    jitted = jax.jit(jnp.sin)
    with pytest.raises(TypeError, match="takes a compiled program"):
        serialize(jitted if stage == "jit" else jitted.lower(1.0))


def test_a_program_for_a_target_that_is_not_attached_is_refused():
    compiled = jax.jit(jnp.sin).lower(1.0).compile()
    compiled._executable = None  # In place of an AbsentExecutable, which takes a plugin.
    with pytest.raises(ValueError, match="not attached"):
        serialize(compiled)


@pytest.fixture(scope="module")
def serialized():
    return serialize(jax.jit(lambda x: x + 1).lower(1.0).compile())


def changed(data, **fields):
    entries = cache_file.unpack(data)
    header = serialization.json.loads(entries["header"]) | fields
    return cache_file.pack({**entries, "header": serialization.json.dumps(header).encode()})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"jaxlib": "0.1"}, "was serialized by jaxlib 0.1"),
        ({"format": 1}, "in format 1"),
        ({"device_kind": "toaster"}, r"1 devices of cpu \(toaster\)"),
        ({"device_ids": [7]}, r"\[7\] are not here: pass execution_devices"),
        ({"device_ids": [0, 1]}, r"\[1\] are not here"),
    ],
)
def test_other_versions_and_devices_are_refused(serialized, fields, text):
    data, *trees = serialized
    with pytest.raises(ValueError, match=text):
        deserialize_and_load(changed(data, **fields), *trees)


def test_damaged_bytes_and_other_trees_are_refused(serialized):
    data, in_tree, out_tree = serialized
    with pytest.raises(ValueError, match="the serialized executable was cut off or changed"):
        deserialize_and_load(data[:-1] + bytes([data[-1] ^ 1]), in_tree, out_tree)
    with pytest.raises(ValueError, match="1 arguments and 1 results"):
        deserialize_and_load(data, jax.tree.structure(((), {})), out_tree)


def test_the_devices_are_chosen(serialized):
    device = jax.devices()[0]
    assert deserialize_and_load(*serialized, backend="cpu", execution_devices=[device])(1.0) == 2
    with pytest.raises(ValueError, match="was compiled for 1 devices of cpu"):
        deserialize_and_load(*serialized, execution_devices=[device, device])
