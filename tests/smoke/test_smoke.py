"""The pipeline end to end in a few seconds, for every supported Python and jaxlib."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax

pytestmark = pytest.mark.smoke

x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-6)


def test_jit_of_everyday_code():
    @jax.jit
    def f(x, y):
        z = jnp.sin(x) @ y.T + 1
        return {"sum": z.sum(axis=0), "where": jnp.where(z > 1, z, 0), "first": z[0]}

    z = np.sin(x) @ x.T + 1
    for _ in range(2):  # traced and compiled, then from the cache
        found = f(x, jnp.asarray(x))
        close(found["sum"], z.sum(0))
        close(found["where"], np.where(z > 1, z, 0))
        close(found["first"], z[0])


def test_eager_operations():
    a = jnp.asarray(x)
    close(a + 1, x + 1)
    close(2 * a - a / 3, 2 * x - x / 3)
    close(a[1, ::-1], x[1, ::-1])
    close(a[a > 0], x[x > 0])
    close(a.at[0, 1].set(9).at[1].add(1)[:, 1], [9, x[1, 1] + 1])
    close(jnp.einsum("ij,kj->ik", a, a), x @ x.T)
    close(a.reshape(3, -1).T, x.reshape(3, -1).T)
    assert float(a.max()) == 1.0
    assert [float(v) for v in a[0]] == [float(v) for v in x[0]]


def test_every_family_of_operations_compiles():
    def f(x, n):
        return (
            lax.erf(x),
            lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "VALID"),
            lax.conv(x[None], x[None, :, :1] * 0 + 1, (1,), "SAME"),
            lax.sort((n, x[0]), num_keys=1),
            lax.top_k(x, 2),
            lax.cumsum(x, axis=1),
            lax.dynamic_slice(x, (n[0], 0), (1, 2)),
            lax.argmax(x, 1, np.int32),
            lax.reduce(x, np.float32(1), lambda a, b: a * b, (0,)),
            lax.population_count(n),
            lax.convert_element_type(x, jnp.bfloat16),
            lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (2,))[1],
            lax.optimization_barrier(x),
        )

    n = np.array([1, 0, 2], np.int32)
    results = jax.jit(f)(x, n)
    close(results[3][1], x[0][[1, 0, 2]])
    close(results[5], np.cumsum(x, 1))
    close(results[8], x[0] * x[1])


@pytest.mark.cpu
def test_barriers_outlive_the_optimizer():
    """What fences rest on: a pass of XLA's that is turned off by its name."""

    def deep(x):
        for _ in range(40):
            y = (x - x.mean(-1, keepdims=True)) * 0.5
            x = x + jnp.tanh(y @ y.T) @ x
        return x

    lowered = jax.jit(jax.value_and_grad(lambda x: deep(x).sum())).lower(x)
    assert lowered.fences
    assert lowered.compile().as_text().count("opt-barrier") >= len(lowered.fences) // 2
    # One of two values in a loop so small that XLA makes one kernel of it.
    step = lambda i, c: lax.optimization_barrier((c[0] * 2, c[1] + 1))
    found = jax.jit(lambda x: lax.fori_loop(0, 3, step, (x, x)))(x)
    close(found[0], x * 8)
    close(found[1], x + 3)


def test_every_stage_can_be_read():
    def f(x):
        return lax.mul(lax.sin(x), 2.0)

    text = str(jax.make_jaxpr(f)(x))
    assert text.splitlines() == [
        "{ lambda ; a:f32[2,3]. let",
        "    b:f32[2,3] = sin a",
        "    c:f32[2,3] = mul b 2.0:f32[]",
        "  in (c,) }",
    ]
    lowered = jax.jit(f).lower(x)
    assert "stablehlo.sine" in lowered.as_text()
    compiled = lowered.compile()
    assert "ENTRY" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    close(compiled(x), np.sin(x) * 2)


def test_arguments_and_results_of_every_kind():
    f = jax.jit(lambda tree, n, *, flag: (tree, n * 2, flag), static_argnames="flag")
    tree, twice, flag = f({"a": x, "b": [1, 2.0, True, None]}, 3, flag=1)
    assert (int(twice), int(flag)) == (6, 1)
    assert jax.tree.structure(tree) == jax.tree.structure({"a": 0, "b": [0, 0, 0, None]})
    assert tree["b"][0].weak_type and tree["b"][0].dtype == jnp.int32
    assert f(jnp.ones(2, jnp.bfloat16), np.float64(1), flag=0)[1].dtype == jnp.float32


def test_64_bits_on_request():
    assert jnp.asarray(np.arange(2.0)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert jax.jit(lambda v: v + 1)(np.arange(2.0)).dtype == np.float64


def test_arrays_as_objects():
    a = jnp.asarray(x)
    assert repr(jnp.array([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(jnp.asarray(1.5)) == "Array(1.5, dtype=float32, weak_type=True)"
    for copied in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        close(copied, x)
        assert isinstance(copied, jax.Array)
    assert a.block_until_ready() is a
    assert len(a.devices()) == 1
    close(jax.device_get(jax.device_put(x)), x)
    close(np.from_dlpack(jax.device_put(a, jax.devices("cpu")[0])), x)


def test_donation():
    a = jnp.asarray(x) + 0
    jax.jit(lambda v: v * 2, donate_argnums=0)(a)
    assert a.is_deleted()


def test_errors_are_jaxs():
    with pytest.raises(jax.errors.TracerBoolConversionError, match="bool"):
        jax.jit(lambda v: 1 if v.sum() > 0 else 2)(x)
    with pytest.raises(TypeError, match="float32"):
        lax.add(1, 1.0)
    with pytest.raises(TypeError, match="broadcast"):
        jnp.ones(2) + jnp.ones(3)


def test_jax_and_hlofront_refuse_each_other():
    """Whether jax is installed or not: a stand-in for it, and then the real name."""
    before = "import sys, types; sys.modules['jax'] = types.ModuleType('jax'); import hlofront"
    after = (
        "import hlofront.numpy as jnp, sys; jnp.ones(3) + 1; assert 'jax' not in sys.modules\n"
        "import jax"
    )
    for code in (before, after):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert found.returncode != 0
        assert "ImportError" in found.stderr or "ModuleNotFoundError" in found.stderr, found.stderr
    assert (
        "one process"
        in subprocess.run([sys.executable, "-c", before], capture_output=True, text=True).stderr
    )
