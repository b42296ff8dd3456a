"""jax_enable_checks: wrong results of a rule are found where the rule gives them."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.base.errors import JaxprTypeError
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.experimental import checkify
from hlofront.transforms import partial_eval, simplify

x = jnp.ones(3, np.float32)


def identity(name):
    """A new operation that gives its operand back, with the rules for being run and traced."""
    primitive = Primitive(name)
    rules.infer(primitive)(lambda x: ShapedArray(x.shape, x.dtype))
    rules.run(primitive)(lambda x: x)
    return primitive


def test_a_program_that_breaks_the_type_rules_is_found_when_it_is_traced():
    fickle = Primitive("fickle")
    dtypes = iter([np.dtype("float32"), np.dtype("int32")] * 8)
    rules.infer(fickle)(lambda x: ShapedArray(x.shape, next(dtypes)))
    jax.make_jaxpr(fickle.bind)(x)
    with (
        jax.enable_checks(True),
        pytest.raises(JaxprTypeError, match=r"fickle"),
    ):
        jax.make_jaxpr(lambda x: fickle.bind(x))(x)


def test_a_tangent_of_a_wrong_shape_is_found():
    primitive = identity("wrong_tangent")
    rules.jvp(primitive)(lambda primals, tangents: (primitive.bind(*primals), jnp.ones(7)))

    def derivative(x):
        return jax.jvp(primitive.bind, (x,), (x,))[1]

    assert derivative(x).shape == (7,)
    message = r"the jvp rule of wrong_tangent gives a tangent of type f32\[7\] for its result of"
    with jax.enable_checks(True):
        with pytest.raises(JaxprTypeError, match=message):
            derivative(x)
        with pytest.raises(JaxprTypeError, match=message):
            jax.jvp(jax.jit(lambda x: primitive.bind(x)), (x,), (x,))


@pytest.mark.parametrize(
    ("cotangent", "message"),
    [
        (lambda c: [jnp.ones(7, np.float32)], r"f32\[7\] for its operand of type f32\[3\]"),
        (lambda c: [c.astype(np.int32)], r"i32\[3\] for its operand of type f32\[3\]"),
        (lambda c: [c, c], "gives 2 cotangents for 1 operands"),
    ],
)
def test_a_wrong_cotangent_is_found(cotangent, message):
    primitive = identity("wrong_cotangent")
    rules.jvp(primitive)(lambda primals, ts: (primitive.bind(*primals), primitive.bind(*ts)))
    rules.transpose(primitive)(lambda c, x: cotangent(c))
    with (
        jax.enable_checks(True),
        pytest.raises(JaxprTypeError, match=f"the transpose rule of wrong_cotangent.*{message}"),
    ):
        jax.vjp(lambda x: primitive.bind(x), x)[1](x)


def wrong_program():
    """A program whose last equation is said to give another type than it gives."""
    program = jax.make_jaxpr(lambda x: jnp.sin(jnp.cos(x)))(x)
    *before, last = program.eqns
    wrong = last.replace(outvars=[type(last.outvars[0])(ShapedArray((7,), np.dtype("float32")))])
    jaxpr = program.jaxpr.replace(eqns=[*before, wrong], outvars=wrong.outvars)
    return ClosedJaxpr(jaxpr, program.consts)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: simplify.without_unused_constants(p.jaxpr, p),
        lambda p: simplify.inline_calls(p.jaxpr, p.consts, {}),
        lambda p: partial_eval.closed_part({}, p.jaxpr.invars, p.jaxpr.outvars, p.eqns, p.jaxpr),
    ],
)
def test_programs_that_are_made_of_others_are_checked(make):
    make(wrong_program())
    with jax.enable_checks(True), pytest.raises(JaxprTypeError, match=r"f32\[7\]"):
        make(wrong_program())


def test_programs_of_right_types_pass():
    def loss(w):
        return jax.lax.scan(lambda c, row: (jnp.tanh(c @ w) + row, c), x, jnp.ones((4, 3)))[0].sum()

    w = jnp.ones((3, 3), np.float32)
    with jax.enable_checks(True):
        checked = jax.jit(jax.vmap(jax.grad(loss)))(w[None])
        checked_hessian = jax.hessian(jax.checkpoint(loss))(w)
    np.testing.assert_array_equal(checked[0], jax.grad(loss)(w))
    np.testing.assert_allclose(checked_hessian, jax.hessian(loss)(w), rtol=1e-5)


# Bodies of shard_map are checked with its mesh and its axes in scope, wherever they are derived.

along = jax.P("i")


@jax.custom_jvp
def scaled(x):
    return jnp.sin(x) * lax.axis_index("i")


scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * lax.axis_index("i")))


@jax.custom_vjp
def sine(x):
    return jnp.sin(x) * lax.axis_index("i")


sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * jnp.cos(x),))


def doubled(x):
    ref = jax.new_ref(x)
    ref[...] *= 2
    return ref[...]


BODIES = {
    "literal": lambda x: x * 2.0,
    "axis_index": lambda x: x * lax.axis_index("i"),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    "psum": lambda x: x + lax.psum(x, "i"),
    "pcast": lambda x: lax.pcast(jnp.ones(3), "i", to="varying") * x,
    "jit": jax.jit(lambda x: x * lax.axis_index("i")),
    "cond": lambda x: lax.cond(x.sum() > 2, lambda v: v * 2, lambda v: v, x),
    "scan": lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c + 1, x),
    "custom_jvp": scaled,
    "custom_vjp": sine,
    "checkpoint": jax.checkpoint(scaled),
    "grad": jax.grad(lambda x: scaled(x).sum()),
    "reference": doubled,
    "vmap": jax.vmap(lambda x: x * lax.axis_index("i")),
}
USES = {
    "jit": lambda f: f,
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: f(x).sum())),
    "hessian": lambda f: jax.hessian(lambda x: f(x).sum()),
    "checkify": lambda f: checkify.checkify(f, checkify.float_checks),
}
# A while loop has no transpose; checkify takes no references, and no types that vary in branches.
UNUSED = {
    "while": ("grad", "checkpoint", "hessian", "checkify"),
    "cond": ("checkify",),
    "reference": ("checkify",),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("check_vma", [True, False])
def test_bodies_of_shard_map_pass_the_checks(body, check_vma):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    function = jax.shard_map(
        BODIES[body], mesh=mesh, in_specs=along, out_specs=along, check_vma=check_vma
    )
    with jax.enable_checks(True):
        for name, use in USES.items():
            if name not in UNUSED.get(body, ()):
                lowered = jax.jit(use(function)).lower(x)
                assert jax.tree.leaves(lowered.out_info)


def test_pmap_passes_the_checks():
    with jax.enable_checks(True):
        function = jax.pmap(lambda x: x * lax.axis_index("i") + lax.psum(x, "i"), axis_name="i")
        np.testing.assert_array_equal(function(jnp.ones((1, 3))), jnp.ones((1, 3)))


# A backward rule of a user may give another dtype, and, where that is allowed, another shape.


@jax.custom_vjp
def widened(x):
    return x * 2


widened.defvjp(lambda x: (widened(x), None), lambda _, ct: (ct.astype(np.float32),))


@jax.custom_vjp
def reshaped(x):
    return x * 2


reshaped.defvjp(lambda x: (reshaped(x), None), lambda _, ct: (jnp.ones(7, ct.dtype),))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint])
def test_backward_rules_of_users_are_not_checked_twice(around):
    with jax.enable_checks(True):
        gradient = jax.grad(lambda x: around(widened)(x).sum())(jnp.ones(3, jnp.bfloat16))
        assert gradient.dtype == np.float32
        with options["jax_disable_bwd_checks"](True):
            assert jax.grad(lambda x: around(reshaped)(x).sum())(x).shape == (7,)
