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
