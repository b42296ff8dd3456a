"""jax_use_simplified_jaxpr_constants: arrays that stand in programs themselves."""

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.base.config import options

HOST, DEVICE = np.arange(3, dtype=np.float32), jnp.arange(3.0)
KEY = hlofront.random.key(0)


@pytest.fixture(autouse=True)
def inside():
    with options["jax_use_simplified_jaxpr_constants"](True):
        yield


@pytest.mark.parametrize("array", [HOST, DEVICE], ids=["host", "device"])
def test_an_array_is_a_literal(array):
    program = hlofront.make_jaxpr(lambda x: x + array)(DEVICE)
    assert program.consts == []
    assert program.eqns[0].invars[1].val is array
    assert str(program) == "{ lambda ; a:f32[3]. let b:f32[3] = add a [...]:f32[3] in (b,) }"
    repr(program.eqns[0].invars)
    loop = hlofront.make_jaxpr(lambda x: lax.scan(lambda c, y: (c + array, y), x, x))(DEVICE)
    assert loop.consts == []
    assert loop.eqns[0].params["num_consts"] == 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + HOST * DEVICE,
        lambda x: hlofront.jit(lambda y: y + HOST)(x) + DEVICE,
        lambda x: jnp.array(HOST) + x,
        lambda x: DEVICE,
        lambda x: lax.scan(lambda c, y: (c + DEVICE, y), x, x)[0],
        lambda x: lax.cond(x[0] > 1, lambda y: y + DEVICE, lambda y: y * HOST, x),
        lambda x: x[HOST.astype(int)],
        lambda x: hlofront.checkpoint(lambda y: jnp.sin(y) * DEVICE)(x),
        lambda x: hlofront.vmap(lambda y: y * DEVICE)(x).sum(0),
        lambda x: x * hlofront.random.normal(KEY, (3,)),
        lambda x: jnp.where(x > 1, HOST, x),
        lambda x: jnp.clip(x, HOST, HOST + 1),
        lambda x: x * jnp.arange(5000.0)[:3],
        lambda x: (x @ jnp.ones((3, 3))) * np.ones(3, np.float32),
    ],
)
def test_programs_with_array_literals_give_what_they_gave(function):
    x = jnp.array([1.5, 0.5, 2.5])

    def total(x):
        return jnp.sum(jnp.sin(function(x)))

    values = [
        hlofront.jit(function)(x),
        hlofront.grad(total)(x),
        hlofront.jit(hlofront.grad(total))(x),
    ]
    with options["jax_use_simplified_jaxpr_constants"](False):
        expected = [function(x), hlofront.grad(total)(x), hlofront.grad(total)(x)]
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
