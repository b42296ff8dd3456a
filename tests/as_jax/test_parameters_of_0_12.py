"""Parameters that functions have since jax 0.12, with what they were called before."""

import importlib
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.compute_on import compute_on


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 16])
def test_lexsort_sorts_by_batches_of_keys(axis, batch_size):
    keys = np.random.default_rng(0).integers(0, 3, (5, 6, 7))
    keys = [*keys[:2].astype(np.float32), *keys[2:]]
    found = jnp.lexsort(keys, axis, batch_size=batch_size)
    np.testing.assert_array_equal(found, np.lexsort(keys, axis))
    with pytest.raises(ValueError, match="batch_size must be positive"):
        jnp.lexsort(keys, batch_size=0)


def test_long_keys_are_sorted_by_small_sorts():
    keys = [jnp.arange(4.0)] * 40
    text = jax.jit(lambda *keys: jnp.lexsort(keys)).lower(*keys).as_text()
    assert len(re.findall(r"stablehlo\.sort", text)) == 3


def test_equal_elements_of_top_k_may_be_in_any_order():
    values, indices = jax.lax.top_k(jnp.array([3, 9, 9, 7]), 2, is_stable=False)
    assert values.tolist() == [9, 9] and sorted(indices.tolist()) == [1, 2]


def test_results_are_split_as_requested():
    mesh = jax.make_mesh(axis_sizes=(1,), axis_names=("x",))
    with jax.set_mesh(mesh):
        vectors = jax.nn.one_hot(jnp.arange(4), 3, out_sharding=jax.P("x", None))
        counts, edges = jnp.histogram(jnp.arange(4.0), 2, out_sharding=jax.P("x"))
    assert str(jax.typeof(vectors)) == "float32[4@x,3]"
    assert str(jax.typeof(counts)) == "float32[2@x]" and edges.shape == (3,)


def test_sizes_of_a_mesh_have_a_former_name():
    mesh = jax.make_mesh((1,), ("x",))
    assert jax.make_mesh(axis_shapes=(1,), axis_names=("x",)) == mesh
    assert jax.make_mesh(axis_sizes=(1,), axis_names=("x",)) == mesh
    for given in ({"axis_names": ("x",)}, {"axis_sizes": (1,), "axis_shapes": (1,)}):
        with pytest.raises(TypeError, match="axis_sizes"):
            jax.make_mesh(**given)


def test_functions_are_computed_on_a_processor():
    spaces = {"compute_type": "device_host", "out_memory_spaces": jax.memory.Space.Device}

    def f(x):
        return x * 2

    for on_host in (compute_on(f, **spaces), compute_on(**spaces)(f)):
        assert on_host(2.0) == 4
        text = jax.jit(on_host).lower(2.0).as_text()
        assert '_xla_compute_type = "host"' in text
    for former in (compute_on("device_host"), compute_on(compute_type="device_host")):
        text = jax.jit(former(jax.jit(f))).lower(2.0).as_text()
        assert '_xla_compute_type = "host"' in text
    with pytest.raises(TypeError, match="requires compute_type and out_memory_spaces"):
        compute_on(f, compute_type="device_host")
    with pytest.raises(ValueError, match="Invalid compute type"):
        compute_on("nothing")


def test_rules_for_dead_code_may_be_told_of_live_references():
    pe = importlib.import_module("hlofront.interpreters.partial_eval")
    primitive = importlib.import_module("hlofront.extend.core").Primitive("half_used")
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda x: [x, x])
    seen = []

    def rule(used_outs, live_ins, eqn):
        seen.append((list(used_outs), list(live_ins)))
        return [True] * len(eqn.invars), eqn

    pe.dce_rules[primitive] = rule
    jaxpr = jax.make_jaxpr(lambda x: primitive.bind(x)[0])(1.0).jaxpr
    smaller, used = pe.dce_jaxpr(jaxpr, [True], live_inputs=[True])
    assert seen == [([True, False], [True])] and used == [True] and len(smaller.eqns) == 1

    pe.dce_rules[primitive] = lambda used_outs, eqn: ([False], None)
    assert len(pe.dce_jaxpr(jaxpr, [True])[0].eqns) == 0


def test_dead_code_of_calls_is_removed_by_either_signature():
    pe = importlib.import_module("hlofront.interpreters.partial_eval")
    f = jax.jit(lambda x, y: (x + 1, y * 2))
    (equation,) = jax.make_jaxpr(f)(1.0, 2.0).eqns
    before = pe.dce_jaxpr_call_rule([True, False], equation)
    for rule in (pe.dce_jaxpr_call_rule, pe.dce_jaxpr_closed_call_rule):
        used, smaller = rule([True, False], [True, True], equation)
        assert used == before[0] == [True, False] and len(smaller.outvars) == 1


# What jax 0.12.0.1 draws with random.key(0) and method="approximate".
ALPHAS = np.array([0.01, 0.5, 1.0, 3.0, 100.0, 1e6], np.float32)
APPROXIMATE = {
    "gamma": [2.235971, 1.1745418, 1.0762902, 0.93644476, 92.0164, 1000588.75],
    "loggamma": [0.8046756, 0.16087812, 0.07352018, -0.06566476, 4.521967, 13.816099],
    "beta": [1.7949853e-12, 0.011957492, 0.6885029, 0.72910744, 0.9992889, 1.0],
    "chisquare": [2.1464539, 1.8118496, 0.74785066, 0.5573513, 89.23577, 1000831.7],
}
# And the derivatives by the shape parameter, or by the degrees of freedom.
SLOPES = {
    "gamma": [115.155235, 1.5997065, 1.4562181, 1.2906533, 1.0500877, 1.0005021],
    "loggamma": [73.70353, 0.40462825, 0.30914018, 0.173891, 0.009315296, 9.994959e-07],
    "beta": [0.0034718248, 0.1580484, 0.10724206, 0.062153675, 0.0004771168, 4.986045e-12],
    "chisquare": [219.85121, 1.9239476, 1.5997065, 1.391221, 1.0708038, 1.0007104],
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_gamma_and_its_relatives_are_drawn_without_loops(name):
    key = jax.random.key(0)
    draw = getattr(jax.random, name)
    others = (ALPHAS[::-1],) if name == "beta" else ()
    numbers = draw(key, ALPHAS, *others, method="approximate")
    np.testing.assert_allclose(numbers, APPROXIMATE[name], rtol=1e-5)

    def drawn(alpha):
        return draw(key, alpha, *([3.0] if others else []), method="approximate")

    np.testing.assert_allclose(jax.vmap(jax.grad(drawn))(ALPHAS), SLOPES[name], rtol=1e-5)
    assert "while" not in str(jax.make_jaxpr(drawn)(1.0))


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_gamma_numbers_are_computed_in_float32(name, dtype):
    draw = getattr(jax.random, name)
    alphas = ALPHAS[:5].astype(dtype)
    numbers = draw(jax.random.key(0), alphas, dtype=dtype, method="approximate")
    wide = draw(jax.random.key(0), alphas.astype(np.float32), method="approximate")
    np.testing.assert_array_equal(numbers, wide.astype(dtype))


def test_poisson_numbers_are_drawn_without_loops_by_any_generator():
    means = np.array([0.0, 0.3, 1.0, 6.9, 7.0, 30.0, 1000.0, 1e7], np.float32)
    numbers = jax.random.poisson(jax.random.key(0), means, method="approximate")
    assert numbers.tolist() == [0, 2, 0, 7, 7, 25, 984, 10001563]
    assert numbers.dtype == np.int32
    narrow = jax.random.poisson(jax.random.key(0), means[:7], dtype="int8", method="approximate")
    assert narrow.tolist() == [0, 2, 0, 7, 7, 25, 127]
    key = jax.random.key(0, impl="rbg")
    assert jax.random.poisson(key, 2.0, (3,), method="approximate").tolist() == [1, 4, 3]
    with pytest.raises(NotImplementedError, match="Use method='approximate'"):
        jax.random.poisson(key, 2.0)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "beta", "chisquare", "poisson"])
def test_methods_of_samplers_are_passed_by_name_and_known(name):
    draw = getattr(jax.random, name)
    parameters = (1.0, 1.0) if name == "beta" else (1.0,)
    same = [draw(jax.random.key(0), *parameters, **how) for how in ({}, {"method": "exact"})]
    assert same[0] == same[1]
    with pytest.raises(ValueError, match=f"method argument to `{name}`.*got 'quick'"):
        draw(jax.random.key(0), *parameters, method="quick")
    with pytest.raises(TypeError, match="positional arguments"):
        draw(jax.random.key(0), *parameters, (), None, "exact")


def test_polyval_takes_the_default_of_unroll():
    coefficients, x = jnp.arange(9.0), jnp.array([0.5, 1.0])
    value = jnp.polyval(coefficients, x, unroll=None)
    np.testing.assert_allclose(value, np.polyval(np.arange(9.0), [0.5, 1.0]))


def test_references_are_not_pinned():
    assert jax.new_ref(jnp.ones(2), pin=False)[...].tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="Leave pin out"):
        jax.jit(lambda x: jax.new_ref(x, pin=True)[...])(1.0)
    with pytest.raises(NotImplementedError, match=r"empty_ref.*no pinned"):
        jax.empty_ref(jax.typeof(1.0), None, True)


@pytest.mark.parametrize(("dtype", "default"), [("float32", 20), ("float64", 5)])
def test_erfc_has_a_highest_accuracy(dtype, default):
    mpmath = pytest.importorskip("mpmath")
    erfc, highest = jax.lax.erfc, jax.lax.AccuracyMode.HIGHEST
    with jax.enable_x64(dtype == "float64"), mpmath.workdps(40):
        x = np.linspace(-3, 8.5, 301).astype(dtype)
        exact = [mpmath.erfc(float(v)) for v in x]

        def greatest_error(y):
            pairs = zip(np.asarray(y), exact, strict=True)
            return max(abs(float((float(a) - b) / float(np.spacing(a)))) for a, b in pairs)

        assert greatest_error(erfc(x)) > default
        assert greatest_error(erfc(x, accuracy=highest)) < 4
        tolerance = jax.lax.Tolerance(atol=1e-3, rtol=0, ulps=0)
        for accuracy in (None, jax.lax.AccuracyMode.DEFAULT, tolerance):
            np.testing.assert_array_equal(erfc(x, accuracy=accuracy), erfc(x))
        ends = np.array([-np.inf, 0, 30, np.inf, np.nan], dtype)
        np.testing.assert_array_equal(erfc(ends, accuracy=highest), [2, 1, 0, 0, np.nan])
        slope = jax.grad(lambda x: erfc(x, accuracy=highest))(x[0])
        assert slope == jax.grad(erfc)(x[0])
    with pytest.raises(TypeError, match="got 'high'"):
        erfc(1.0, accuracy="high")
    text = str(jax.make_jaxpr(lambda x: erfc(x, accuracy=highest))(1.0))
    assert "erfc[accuracy=AccuracyMode.HIGHEST]" in text
    assert jax.make_jaxpr(erfc)(1.0).eqns[0].params == {}


def test_narrow_erfc_is_that_of_wider_floats():
    x = jnp.linspace(-3, 3, 9).astype("float16")
    highest = jax.lax.erfc(x, accuracy=jax.lax.AccuracyMode.HIGHEST)
    np.testing.assert_array_equal(highest, jax.lax.erfc(x))
