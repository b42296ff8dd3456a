"""ufuncs: against NumPy's own, for any function, under transformations, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

BINARY = (
    "add subtract multiply maximum minimum logaddexp logaddexp2 logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor"
).split()
ONE_AXIS = {"subtract"}
FLOATS = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]], np.float32)
INTEGERS = np.array([[5, -2, 7], [3, 12, 6]], np.int32)


def data(name):
    return INTEGERS if name.startswith("bitwise") else FLOATS


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_methods_are_numpys(name):
    ours, theirs, x = getattr(jnp, name), getattr(np, name), data(name)
    close(ours(x, x[0]), theirs(x, x[0]))
    close(ours.reduce(x, axis=1, keepdims=True), theirs.reduce(x, axis=1, keepdims=True))
    close(ours.accumulate(x, axis=1), theirs.accumulate(x, axis=1))
    close(ours.outer(x, x[0]), theirs.outer(x, x[0]))
    if name not in ONE_AXIS:
        close(ours.reduce(x, axis=None), theirs.reduce(x, axis=None))
        close(ours.reduce(x, axis=(0, 1)), theirs.reduce(x, axis=(0, 1)))
    if not name.startswith("logical"):  # of which single elements stay what they are, as in jax
        indices = np.array([0, 2, 1])
        close(ours.reduceat(x, indices, axis=1), theirs.reduceat(x, indices, axis=1))
        updated = x.copy()
        theirs.at(updated, ([0, 0, 1], [1, 1, 2]), 2)
        close(ours.at(x, ([0, 0, 1], [1, 1, 2]), 2, inplace=False), updated)


@pytest.mark.parametrize("name", ["add", "logaddexp", "bitwise_or", "logical_and", "maximum"])
def test_where_and_initial(name):
    ours, theirs, x = getattr(jnp, name), getattr(np, name), data(name)
    mask = np.array([True, False, True])
    initial = 1 if name.startswith("bitwise") else 0.5
    for where in (mask, np.array([[True], [False]])):
        wanted = theirs.reduce(x, axis=1, initial=initial, where=np.broadcast_to(where, x.shape))
        close(ours.reduce(x, axis=1, initial=initial, where=where), wanted)


@pytest.mark.parametrize("name", ["maximum", "logical_xor", "subtract"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "complex64"])
def test_dtypes_of_folds(name, dtype):
    if name == "subtract" and dtype == "bool":
        pytest.skip("there is no difference of booleans")
    x = jnp.asarray(INTEGERS % 3).astype(dtype)
    f = getattr(jnp, name)
    expected = jnp.dtype("bool") if name == "logical_xor" else x.dtype
    host = np.asarray(x)
    wide = host.astype("float64") if dtype == "bfloat16" else host
    theirs = getattr(np, name)
    for found, wanted in (
        (f.reduce(x), theirs.reduce(wide)),
        (f.accumulate(x, axis=1), theirs.accumulate(wide, axis=1)),
    ):
        assert found.dtype == expected
        np.testing.assert_array_equal(np.asarray(found).astype(wanted.dtype), wanted)


def test_sizes_of_zero():
    empty = np.zeros((0, 3), np.float32)
    for name in ("add", "multiply", "logaddexp", "logical_or"):
        close(getattr(jnp, name).reduce(empty), getattr(np, name).reduce(empty))
        assert getattr(jnp, name).accumulate(empty).shape == (0, 3)
    assert jnp.subtract.reduce(np.zeros((3, 0))).shape == (0,)
    assert jnp.subtract.outer(empty, np.ones(2)).shape == (0, 3, 2)
    assert jnp.add.reduceat(FLOATS, np.zeros(0, int), axis=1).shape == (2, 0)
    close(jnp.subtract.at(empty, np.zeros(0, int), 1, inplace=False), empty)
    with pytest.raises(ValueError, match="no identity"):
        jnp.subtract.reduce(empty)


def test_any_function():
    f = jnp.frompyfunc(lambda a, b: 2 * a + b, 2, 1, identity=1)
    x = INTEGERS
    folded = np.ones(3, int)
    steps = [x[0]]
    for row in x:
        folded = 2 * folded + row
    for row in x[1:]:
        steps.append(2 * steps[-1] + row)
    np.testing.assert_array_equal(f.reduce(x), folded)
    np.testing.assert_array_equal(f.accumulate(x), steps)
    np.testing.assert_array_equal(f.outer(x[0], x[1]), 2 * x[0][:, None] + x[1])
    assert f.reduce(x, axis=None, keepdims=True).shape == (1, 1)
    # What a function makes of the dtype is the dtype of its folds.
    assert jnp.frompyfunc(lambda a, b: a / 2 + b, 2, 1).reduce(x).dtype == np.float32
    assert f.reduce(x, dtype="float16").dtype == np.float16
    # A constant that is an array, and one whose function is called once for all elements.
    calls = []
    g = jnp.frompyfunc(lambda a: calls.append(a.shape) or (a, -a), 1, 2)
    first, second = g(jnp.ones((2, 3)))
    assert first.shape == second.shape == (2, 3) and calls == [()]


def test_every_kind_of_index():
    f = jnp.frompyfunc(lambda a, b: a * b, 2, 1)
    for index in (1, -1, (0, 1), np.array([0, 0]), (slice(None), 1), ..., FLOATS > 0, (0, None)):
        for g, h in ((f, np.multiply), (jnp.maximum, np.maximum), (jnp.multiply, np.multiply)):
            wanted = FLOATS.copy()
            h.at(wanted, index, 2)
            close(g.at(FLOATS, index, 2, inplace=False), wanted)
    close(jnp.negative.at(FLOATS, np.array([0, 0, 1]), inplace=False), FLOATS * [[1], [-1]])
    # Nothing is out of bounds but what is not there.
    close(f.at(FLOATS, 7, 2, inplace=False), FLOATS)


def test_transformations():
    x = jnp.asarray(FLOATS)
    f = jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1)

    def loss(x):
        total = f.reduce(x, axis=1).sum() + f.accumulate(x).sum()
        return total + f.at(x, np.array([0, 0]), x[0, 0], inplace=False).sum()

    gradient = jax.grad(loss)(x)
    step = 1e-2
    direction = jnp.asarray(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    slope = (loss(x + step * direction) - loss(x - step * direction)) / (2 * step)
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-2)
    close(jax.jit(loss)(x), loss(x))
    for method in (f.reduce, jnp.logaddexp.reduce, jnp.subtract.accumulate):
        close(jax.vmap(method)(x), jnp.stack([method(row) for row in x]))
    twice = jax.jit(lambda function, x: function(x, x), static_argnums=0)
    close(twice(jnp.add, x), 2 * x)
    close(jax.grad(lambda x: jnp.logaddexp.reduce(x, axis=None))(x), jnp.exp(x) / jnp.exp(x).sum())


def test_a_fold_is_one_native_operation():
    x = jnp.asarray(FLOATS)
    for f, names in (
        (jnp.add, ["reduce_sum"]),
        (jnp.maximum, ["reduce_max"]),
        (jnp.logical_and, ["ne", "reduce_and"]),
    ):
        equations = jax.make_jaxpr(f.reduce)(x).jaxpr.eqns
        assert [equation.primitive.name for equation in equations] == names
    assert "cummax" in str(jax.make_jaxpr(jnp.maximum.accumulate)(x))
    assert "scatter-add" in str(jax.make_jaxpr(lambda x: jnp.add.at(x, 0, 1, inplace=False))(x))


def test_identity_of_ufuncs():
    assert isinstance(jnp.add, jnp.ufunc) and repr(jnp.add) == "<jnp.ufunc 'add'>"
    assert jnp.add == jnp.add != jnp.multiply and len({jnp.add, jnp.add, jnp.multiply}) == 2
    assert copy.deepcopy(jnp.add) is jnp.add is pickle.loads(pickle.dumps(jnp.add))
    assert jnp.frompyfunc(max, 2, 1) == jnp.frompyfunc(max, 2, 1)
    assert jnp.frompyfunc(max, 2, 1) != jnp.frompyfunc(max, 2, 1, identity=2)
    assert pickle.loads(pickle.dumps(jnp.frompyfunc(max, 2, 1))) == jnp.frompyfunc(max, 2, 1)
    own = jnp.ufunc(lambda a, b: a, 2, 1, name="first", reduce=lambda a, **options: options)
    assert own.reduce(FLOATS)["axis"] == 0 and own.nargs == 2 and own.__name__ == "first"


def test_the_operators_do_not_pass_through_ufuncs():
    """`x + y` is a C++ function, and no slower for jnp.add being an object of ours."""
    assert type(type(jnp.ones(1)).__add__).__name__ == "PjitFunction"


def test_refusals():
    x = jnp.ones((2, 3))
    with pytest.raises(NotImplementedError, match="'out' argument"):
        jnp.add(x, x, out=x)
    with pytest.raises(NotImplementedError, match="'where' argument"):
        jnp.add(x, x, where=True)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(x, 0, 1)
    with pytest.raises(ValueError, match="only supported for binary ufuncs"):
        jnp.negative.reduce(x)
    with pytest.raises(ValueError, match="does not have an identity"):
        jnp.maximum.reduce(x, where=x > 0)
    with pytest.raises(NotImplementedError, match="folds one axis"):
        jnp.subtract.reduce(x, axis=(0, 1))
    with pytest.raises(TypeError, match="requires a function"):
        jnp.frompyfunc(1, 1, 1)
    with pytest.raises(ValueError, match="incompatible shapes"):
        jnp.maximum.at(x, np.array([0, 1]), jnp.ones(3), inplace=False)
    with pytest.raises(ValueError, match="does not broadcast to the shape of the index"):
        jnp.maximum.at(x, np.array([0]), jnp.ones(3), inplace=False)
