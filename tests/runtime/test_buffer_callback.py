"""buffer_callback: Python functions that write their results into the memory of a program."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import JaxRuntimeError
from hlofront.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

F32 = jax.ShapeDtypeStruct((3,), np.float32)
X = np.arange(3, dtype=np.float32)


def add_one(context, result, x):
    np.asarray(result)[...] = np.asarray(x) + 1


@pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_function_writes_its_result(mode):
    f = mode(buffer_callback(add_one, F32))
    for start in (X, X * 2):
        np.testing.assert_array_equal(f(start), start + 1)


def test_trees_and_keywords():
    seen = []

    def both(context, result, pair, *, shift):
        seen.append((context.stage, type(result["sum"]), result["sum"].shape, result["sum"].dtype))
        assert result["sum"].writeable and not pair[0].writeable
        np.asarray(result["sum"])[...] = np.asarray(pair[0]) + np.asarray(shift)
        np.asarray(result["difference"])[...] = np.asarray(pair[1]) - np.asarray(shift)

    f = jax.jit(buffer_callback(both, {"sum": F32, "difference": F32}))
    results = f([X, X * 3], shift=X)
    np.testing.assert_array_equal(results["sum"], X * 2)
    np.testing.assert_array_equal(results["difference"], X * 2)
    assert seen == [(ExecutionStage.EXECUTE, Buffer, (3,), np.float32)]


def test_memory_of_an_operand_becomes_that_of_the_result():
    def in_place(context, result, x):
        np.asarray(result)[...] += 1

    f = jax.jit(buffer_callback(in_place, F32, input_output_aliases={0: 0}))
    np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(X, np.arange(3))


@pytest.mark.parametrize(
    ("aliases", "dtype", "what"),
    [
        ({1: 0}, "float32", "input index 1 outside"),
        ({0: 1}, "float32", "output index 1 outside"),
        ({0: 0}, "int32", "a different abstract value"),
    ],
)
def test_aliases_that_cannot_be(aliases, dtype, what):
    with pytest.raises(ValueError, match=what):
        buffer_callback(add_one, F32, input_output_aliases=aliases)(X.astype(dtype))


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_by_method(method):
    f = buffer_callback(lambda c, r, x, y: add_sum(r, x, y), F32, vmap_method=method)
    batch = np.stack([X, X * 2])
    np.testing.assert_array_equal(jax.vmap(f, (0, None))(batch, X), batch + X)


def add_sum(result, x, y):
    np.asarray(result)[...] = np.asarray(x) + np.asarray(y)


def test_vmap_and_derivatives_are_refused():
    f = buffer_callback(add_one, F32)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(f)(np.stack([X, X]))
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(lambda x: f(x).sum())(X)


def test_effects_are_kept_in_loops_too():
    seen = []

    def note(context, result, x):
        seen.append(float(np.asarray(x)[0]))

    def program(has_side_effect):
        call = buffer_callback(note, (), has_side_effect=has_side_effect)
        return jax.jit(lambda x: lax.scan(lambda c, _: (c + 1, call(c)), x, None, length=3)[0])

    np.testing.assert_array_equal(program(False)(X), X + 3)
    assert seen == []
    np.testing.assert_array_equal(program(True)(X), X + 3)
    assert seen == [0.0, 1.0, 2.0]


def test_errors_keep_their_class_and_line():
    class Mine(Exception):
        pass

    def broken(context, result, x):
        raise Mine("told by the user")

    for f in (buffer_callback(broken, F32), jax.jit(buffer_callback(broken, F32))):
        for _ in range(2):
            with pytest.raises(JaxRuntimeError, match="told by the user") as caught:
                jax.block_until_ready(f(X))
            assert type(caught.value.__cause__) is Mine
    with pytest.raises(JaxRuntimeError, match="must not return any values"):
        jax.block_until_ready(buffer_callback(lambda c, r, x: 3, F32)(X))


def test_platforms():
    f = jax.jit(buffer_callback(add_one, F32, command_buffer_compatible=True))
    cuda = f.trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "@xla_buffer_python_gpu_callback_cmd_buffer" in cuda
    with pytest.raises(ValueError, match="not supported on tpu"):
        f.trace(X).lower(lowering_platforms=("tpu",))
    with pytest.raises(NotImplementedError, match="multi-platform"):
        f.trace(X).lower(lowering_platforms=("cpu", "cuda"))
    assert "buffer_callback" in str(jax.make_jaxpr(f)(jnp.asarray(X)))
