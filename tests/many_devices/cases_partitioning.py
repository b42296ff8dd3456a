"""custom_partitioning and inspect_array_sharding, beyond what `partitioning_answers.txt` asks."""

import sys
import threading

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import UnexpectedTracerError
from hlofront.experimental.custom_partitioning import custom_partitioning
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices, matrix, split


def keeping_shardings(on_shards):
    """A partition function that splits nothing anew, and applies this to shards."""

    def partition(mesh, args, result):
        return mesh, on_shards, result.sharding, tuple(x.sharding for x in args)

    return partition


def partitioned(on_shards, fun=jnp.sin, rule="i j -> i j", **options):
    function = custom_partitioning(fun)
    function.def_partition(keeping_shardings(on_shards), sharding_rule=rule, **options)
    return function


def test_operations_outside_of_the_shards_run_while_xla_compiles():
    """Concrete values are computed, and programs compiled, by the function of shards."""
    weights = np.arange(2048, dtype=np.float32)

    def on_shards(x):
        with jax.ensure_compile_time_eval():
            three = float(jnp.arange(3).sum())
        return jnp.sin(x) * three + jax.jit(lambda a: a.sum())(weights)

    found = jax.jit(partitioned(on_shards))(matrix("x", "y"))
    wanted = np.sin(np.arange(32.0).reshape(8, 4)) * 3 + weights.sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_partitioned_function_in_another_is_called_with_shards():
    inner = partitioned(lambda x: x * 3, lambda x: x * 2)
    found = jax.jit(partitioned(lambda x: inner(x)))(matrix("x", "y"))
    np.testing.assert_array_equal(found, np.asarray(matrix()) * 2)


def test_another_partitioned_function_runs_while_xla_compiles_one():
    inner = partitioned(lambda x: x * 3, lambda x: x * 2)

    def on_shards(x):
        with jax.ensure_compile_time_eval():
            total = float(jax.jit(inner)(matrix("x")).sum())
        return x + total

    total = 3 * np.asarray(matrix()).sum()
    found = jax.jit(partitioned(on_shards))(matrix("x", "y"))
    np.testing.assert_array_equal(found, np.asarray(matrix()) + total)


def test_gradients_are_those_of_custom_vjp():
    sine, cosine = partitioned(jnp.sin), partitioned(jnp.cos, jnp.cos)
    function = jax.custom_vjp(sine)
    function.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * cosine(x),))
    array = matrix("x", "y")
    found = jax.jit(jax.grad(lambda x: function(x).sum()))(array)
    assert found.sharding.is_equivalent_to(split("x", "y"), 2)
    np.testing.assert_allclose(found, np.cos(np.asarray(array)), rtol=1e-6)


def test_batches_are_those_of_custom_vmap():
    rows = partitioned(jnp.sin, rule="i -> i")
    batch = partitioned(jnp.sin)
    function = jax.custom_batching.custom_vmap(rows)
    function.def_vmap(lambda size, batched, x: (batch(x), True))
    found = jax.jit(jax.vmap(function))(matrix("x", "y"))
    np.testing.assert_allclose(found, np.sin(np.asarray(matrix())), rtol=1e-5, atol=1e-6)


def test_shardings_over_the_devices_in_another_order_are_understood():
    backwards = Mesh(np.array(devices[::-1]).reshape(8), ("b",))
    function = custom_partitioning(lambda x: x)

    def partition(mesh, args, result):
        along = NamedSharding(backwards, P("b"))
        return backwards, lambda x: x + x.sum(), along, (along,)

    function.def_partition(partition, sharding_rule="i j -> i j")
    array = matrix("x", "y")
    rows = np.asarray(array)
    np.testing.assert_array_equal(jax.jit(function)(array), rows + rows.sum(1, keepdims=True))


def test_the_cause_of_a_failed_compilation_is_the_exception():
    failing = partitioned(lambda x: {}["a"])
    with pytest.raises(jax.errors.JaxRuntimeError, match="KeyError: 'a'") as caught:
        jax.jit(failing)(matrix("x"))
    assert type(caught.value.__cause__) is KeyError


def test_host_calls_among_shards_are_refused():
    calling = partitioned(lambda x: jax.pure_callback(np.sin, x, x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="call them outside of it"):
        jax.jit(calling)(matrix("x"))


def test_values_that_are_no_arguments_are_refused():
    with pytest.raises(UnexpectedTracerError, match="not among its arguments"):
        jax.jit(lambda a: partitioned(jnp.sin, lambda b: a + b)(a))(matrix("x"))
    with pytest.raises(AttributeError, match=r"call f\.def_partition"):

        @custom_partitioning
        def f(x):
            return x

        f(matrix("x"))


def test_keys_are_split_by_the_axes_of_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), split("x"))
    given = []

    def partition(mesh, args, result):
        given.append((args[0].shape, args[0].sharding.spec))
        return mesh, lambda k: jax.vmap(jax.random.uniform)(k), result.sharding, (args[0].sharding,)

    draw = custom_partitioning(lambda k: jax.vmap(jax.random.uniform)(k))
    draw.def_partition(partition, sharding_rule="i word -> i")
    np.testing.assert_array_equal(jax.jit(draw)(keys), jax.vmap(jax.random.uniform)(keys))
    assert given == [((8,), P("x"))]


def test_types_of_64_bits_stay_where_a_lowered_program_is_compiled_later():
    with jax.enable_x64(True):
        array = jax.device_put(np.ones((8, 4)), split("x", "y"))
        lowered = jax.jit(partitioned(lambda x: x + jnp.zeros((2, 2)))).lower(array)
    assert lowered.compile()(array).dtype == np.float64


def test_several_threads_compile_their_own():
    found = {}

    def run(factor):
        function = partitioned(lambda x: x * factor)
        found[factor] = float(jax.jit(function)(matrix("x", "y")).sum())

    threads = [threading.Thread(target=run, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {factor: 496.0 * factor for factor in range(1, 5)}


def test_shardings_without_a_spec_are_shown_as_xla_says_them():
    seen = []

    @jax.jit
    def f(a):
        b = a.reshape(2, 2, 2, 4)
        jax.debug.inspect_array_sharding(b, callback=seen.append)
        return b

    f(matrix("x", "y"))
    assert repr(seen) == "[GSPMDSharding({devices=[2,2,1,2]<=[8]}, memory_kind=device)]"


def test_the_values_of_a_program_for_one_device_are_whole():
    seen = []
    lowered = jax.jit(
        lambda a: jax.debug.inspect_array_sharding(a * 2, callback=seen.append)
    ).lower(np.ones(3))
    assert not seen
    lowered.compile()
    assert seen[0].is_fully_replicated


def test_tables_have_colors_on_terminals(monkeypatch):
    rich = pytest.importorskip("rich")
    assert rich
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    import contextlib
    import io

    written = io.StringIO()
    written.isatty = lambda: True
    with contextlib.redirect_stdout(written):
        jax.debug.visualize_sharding((8, 8), split("x", "y"))
    assert "CPU 7" in written.getvalue() and "\x1b[" in written.getvalue()
