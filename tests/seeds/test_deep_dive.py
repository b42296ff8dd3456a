"""What a deep dive shows: jaxprs and HLO of small functions, static shapes, purity, trees."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

rng = np.random.default_rng(1)


def test_arrays_beside_numpys():
    x = jnp.array([0, 1, 2, 3], dtype=jnp.int32)
    assert repr(x) == "Array([0, 1, 2, 3], dtype=int32)"
    doubled, next_ = x * 2, x + 1
    assert repr(doubled + next_) == "Array([ 1,  4,  7, 10], dtype=int32)"
    assert repr(jnp.dot(doubled, next_)) == "Array(40, dtype=int32)"
    np.testing.assert_array_equal(jnp.outer(doubled, next_), np.outer(doubled, next_))


def layer(w, b, x):
    return x @ w + b


PARAMETERS = [rng.normal(size=shape).astype(np.float32) for shape in ((4, 2), (2,), (4,))]


def test_a_layer_its_jaxpr_and_its_hlo():
    w, b, x = PARAMETERS
    np.testing.assert_allclose(jax.jit(layer)(w, b, x), x @ w + b, rtol=1e-5)
    assert str(jax.make_jaxpr(layer)(w, b, x)) == (
        "{ lambda ; a:f32[4,2] b:f32[2] c:f32[4]. let\n"
        "    d:f32[2] = dot_general[\n"
        "      dimension_numbers=(([0], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c a\n"
        "    e:f32[2] = add d b\n"
        "  in (e,) }"
    )
    text = jax.jit(layer).lower(w, b, x).compile().as_text()
    assert text.startswith("HloModule jit_layer")
    assert "f32[4,2]" in text and "ENTRY" in text and 'op_name="jit(layer)' in text


def pointless(x):
    y = jnp.copy(x)
    for _ in range(1000):
        x = x * x
    return y


def test_a_thousand_dead_operations_stand_in_the_jaxpr_and_not_in_the_hlo():
    x = jnp.array([1.1, -1.1, 0.5, 2.0])
    lines = str(jax.make_jaxpr(pointless)(x)).splitlines()
    assert lines[1].endswith("copy a") or "copy" in lines[1]
    assert lines[2].strip() == "c:f32[4] = mul a a"
    assert lines[-2].strip() == "_:f32[4] = mul bmm bmm"
    assert lines[-1].strip() == "in (b,) }"
    lowered = jax.jit(pointless).lower(x)
    assert "multiply" not in lowered.as_text()
    np.testing.assert_array_equal(jax.jit(pointless)(x), x)


def filled(value, length):
    return jnp.full((length,), value)


def test_a_traced_length_is_refused_and_a_static_one_is_a_constant():
    assert (str(filled(1.0, 5)), str(filled(2, 2))) == ("[1. 1. 1. 1. 1.]", "[2 2]")
    with pytest.raises(TypeError, match=r"(?s)Shapes must be 1D.*length"):
        jax.jit(filled)(2, 5)
    static = jax.jit(filled, static_argnums=(1,))
    assert str(static(2, 5)) == "[2 2 2 2 2]"
    assert str(static(1.0, 10)) == "[1. 1. 1. 1. 1. 1. 1. 1. 1. 1.]"
    assert static._cache_size() == 2
    for value, dtype in ((2, "i32"), (1.6, "f32")):
        text = str(jax.make_jaxpr(filled, static_argnums=(1,))(value, 10))
        assert f"a:{dtype}[]" in text and f":{dtype}[10] = broadcast_in_dim" in text


def test_a_mask_that_sets_and_one_that_multiplies():
    x = jnp.array(rng.normal(size=(4, 4)))
    mask = jnp.array(rng.uniform(size=(4, 4)) < 0.5)
    expected = np.where(mask, -100.0, x).astype(np.float32)

    def set_masked(x, mask):
        return x.at[mask].set(-100.0)

    def multiply_masked(x, mask):
        return ~mask * x - mask * 100.0

    for f in (set_masked, multiply_masked):
        np.testing.assert_allclose(f(x, mask), expected, rtol=1e-6)
        # Under jit too: setting a scalar is a choice per element, of a shape that is known.
        np.testing.assert_allclose(jax.jit(f)(x, mask), expected, rtol=1e-6)


def test_a_program_per_shape():
    cube = jax.jit(lambda x: x * x * x)
    for length in (1, 2, 3, 2, 1):
        assert cube(jnp.empty((length,))).shape == (length,)
    assert cube._cache_size() == 3


def test_globals_are_read_when_traced():
    state = {"shift": -1.0}

    def shifted(x):
        return x + state["shift"]

    x, y, longer = jnp.array([0, 1, 2]), jnp.array([0, -1, 0]), jnp.array([0, 1, 2, 3])
    jitted = jax.jit(shifted)
    assert str(jitted(x)) == "[-1.  0.  1.]"
    state["shift"] = 1.0
    assert str(jitted(y)) == "[-1. -2. -1.]"
    assert str(jitted(longer)) == "[1. 2. 3. 4.]"
    assert str(shifted(y)) == "[1. 0. 1.]"


def test_a_global_array_is_a_constant_of_the_program():
    box = [jnp.array([1, 2, 3])]
    f = jax.jit(lambda x: x + box[0])
    x = jnp.array([1, 2, 3])
    assert str(f(x)) == "[2 4 6]"
    box[0] = jnp.array([0, 0, 0])
    assert str(f(x)) == "[2 4 6]"


def test_python_side_effects_happen_while_tracing(capsys):
    @jax.jit
    def identity(x):
        print("called")
        return x

    identity(0.5)
    identity(1.0)
    identity(jnp.array([-1, 1]))
    assert capsys.readouterr().out == "called\ncalled\n"


def test_a_branch_that_python_does_not_take_is_not_traced():
    config = {"relu": False}

    @jax.jit
    def fn(w, x):
        y = x @ w
        return jnp.maximum(y, 0) if config["relu"] else y

    text = str(jax.make_jaxpr(fn)(jnp.ones((2, 2)), jnp.ones((2,))))
    assert "dot_general" in text and "max" not in text
    assert "jit[" in text and "name=fn" in text


def test_trees_of_parameters():
    params = [
        {"W": jnp.zeros((out, n)), "b": jnp.zeros((out,))} for n, out in ((784, 64), (64, 10))
    ]
    assert str(jax.tree_util.tree_structure(params)) == (
        "PyTreeDef([{'W': *, 'b': *}, {'W': *, 'b': *}])"
    )
    assert jax.tree_util.tree_map(lambda leaf: str(leaf.shape), params) == [
        {"W": "(64, 784)", "b": "(64,)"},
        {"W": "(10, 64)", "b": "(10,)"},
    ]

    @jax.jit
    def feed_forward(params, x):
        for p in params:
            x = jnp.tanh(p["W"] @ x + p["b"])
        return x

    assert feed_forward(params, jnp.ones(784)).shape == (10,)
