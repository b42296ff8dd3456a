"""ShapeDtypeStruct: what it says of itself, where it stands for an operand, and what refuses it."""

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P

three = hlofront.ShapeDtypeStruct((3,), np.float32)
scalar = hlofront.ShapeDtypeStruct((), np.float32)


def test_a_function_that_returns_a_description_has_its_shape():
    assert hlofront.eval_shape(lambda: three) == three
    both = hlofront.eval_shape(lambda x: {"a": three, "b": x}, 1)
    assert both["a"] == three
    assert both["b"].dtype == np.int32
    assert hlofront.eval_shape(lambda: hlofront.eval_shape(lambda: three)) == three
    keys = hlofront.ShapeDtypeStruct((2,), hlofront.random.key(0).dtype)
    assert hlofront.eval_shape(lambda: keys) == keys


@pytest.mark.parametrize(
    "function",
    [
        lambda: jnp.sin(three),
        lambda: lax.sin(three),
        lambda: hlofront.jit(lambda x: x + 1)(three),
        lambda: hlofront.vmap(jnp.sin)(three),
        lambda: hlofront.grad(lambda x: x.sum())(three),
        lambda: hlofront.checkpoint(jnp.sin)(three),
        lambda: lax.scan(lambda c, x: (c, None), three, None, length=2)[0],
        lambda: lax.cond(True, lambda x: x, lambda x: x, three),
    ],
)
def test_a_description_is_an_operand_of_what_is_only_traced(function):
    assert hlofront.eval_shape(function) == three
    assert hlofront.make_jaxpr(function)().out_avals[0].shape == (3,)
    with pytest.raises(TypeError, match="ShapeDtypeStruct does not have a value"):
        hlofront.jit(function)()


def test_typeof_and_shape_of_a_description():
    assert hlofront.typeof(three) == hlofront.typeof(np.zeros(3, np.float32))
    assert jnp.zeros_like(three).shape == (3,)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: hlofront.jit(lambda x: 1)(x),
        lambda x: hlofront.jit(lambda x: x)({"a": x}),
        jnp.sin,
        lambda x: lax.add(x, 1.0),
        hlofront.nn.relu,
        jnp.asarray,
        hlofront.device_put,
        lambda x: hlofront.jvp(jnp.sin, (x,), (x,)),
        lambda x: jnp.ones(3) + x,
        hlofront.checkpoint(lambda x: x * 2),
    ],
)
@pytest.mark.parametrize("described", [three, scalar], ids=["vector", "scalar"])
def test_what_runs_refuses_a_description(function, described):
    with pytest.raises(TypeError):
        function(described)


def test_what_runs_names_the_argument():
    with pytest.raises(TypeError, match=r"x\['a'\].* of shape float32\[3\]"):
        hlofront.jit(lambda x: x)({"a": three})


def test_descriptions_of_64_bits_are_of_32_where_x64_is_off():
    long = hlofront.ShapeDtypeStruct((4,), np.int64)
    assert long.dtype == np.int64
    f = hlofront.jit(lambda x: x)
    assert hlofront.eval_shape(lambda x: x, long).dtype == np.int32
    assert f.eval_shape(hlofront.ShapeDtypeStruct((), np.complex128)).dtype == np.complex64
    assert hlofront.make_jaxpr(lambda x: x)(long).in_avals[0].dtype == np.int32
    assert f.lower(long).compile()(np.ones(4, np.int32)).dtype == np.int32

    class Described:
        shape, dtype = (2,), np.dtype(np.float64)

    assert hlofront.eval_shape(lambda x: x, Described()).dtype == np.float32
    with hlofront.enable_x64(True):
        assert hlofront.eval_shape(lambda x: x, long).dtype == np.int64


def test_like():
    like = hlofront.ShapeDtypeStruct.like
    assert like(np.ones(3, np.float32)) == like(jnp.ones(3)) == like(three) == three
    assert like(1.0) == hlofront.ShapeDtypeStruct((), np.float32, weak_type=True)
    mesh = Mesh(np.array(hlofront.devices()[:1]), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    assert like(hlofront.device_put(jnp.ones(4), sharding)).sharding == sharding
    described = hlofront.ShapeDtypeStruct((4,), np.float32, sharding=sharding)
    assert like(described) == described
    assert hlofront.jit(lambda x: x * (like(x) == three))(np.ones(3, np.float32)).all()
    with pytest.raises(TypeError):
        like("text")


def test_a_sharding_of_more_axes_than_the_shape_has_is_refused():
    mesh = Mesh(np.array(hlofront.devices()[:1]), ("x",))
    with pytest.raises(ValueError, match="rank at least 1"):
        hlofront.ShapeDtypeStruct((), np.float32, sharding=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="rank at least 3"):
        hlofront.ShapeDtypeStruct(
            (4,), np.float32, sharding=NamedSharding(mesh, P("x", None, None))
        )
    with pytest.raises(ValueError, match="sharding"):
        hlofront.ShapeDtypeStruct((4,), np.float32, sharding=3)


def test_eval_shape_of_a_jitted_function_knows_the_shardings_of_its_results():
    mesh = Mesh(np.array(hlofront.devices()[:1]), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    f = hlofront.jit(lambda x: (x, x + 1), out_shardings=(sharding, None))
    for shapes in (f.eval_shape(jnp.ones(4)), hlofront.eval_shape(f, jnp.ones(4))):
        assert [struct.sharding for struct in shapes] == [sharding, None]
