"""Primitives of other packages: their rules as JAX's extensions give them, and what is missing."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core.primitive import ALL, Primitive
from hlofront.interpreters import ad, batching

pair = np.array([1.0, 2.0], np.float32)


@pytest.fixture
def new():
    """Makes primitives that are forgotten after the test."""
    made = []

    def make(name="outside", multiple_results=False):
        primitive = Primitive(name)
        primitive.multiple_results = multiple_results
        made.append(primitive)
        return primitive

    yield make
    for primitive in made:
        ALL.pop(primitive.name, None)


def runs(primitive):
    """The primitive, as one that gives its operand."""
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    return primitive


def test_impl_runs_on_arrays_without_a_compiler(new):
    twice = new()

    @twice.def_impl
    def double(x, *, plus):
        return x * 2 + plus

    assert callable(double) and twice.impl is double
    np.testing.assert_array_equal(twice.bind(pair, plus=1), [3, 5])
    twice.impl = lambda x, *, plus: x
    assert twice.bind(pair, plus=1) is pair
    with pytest.raises(TypeError, match=r"value is of type <class 'str'>.* at position 0"):
        twice.bind("text", plus=1)


def test_impl_of_our_own_primitives_compiles_and_runs():
    np.testing.assert_array_equal(lax.neg_p.impl(pair), [-1, -2])


def test_abstract_eval_says_the_type_and_the_effects(new):
    split = new(multiple_results=True)

    @split.def_abstract_eval
    def types(x):
        return [x, x.update(dtype=np.dtype("int32"))]

    assert types(jax.core.ShapedArray((2,), np.float32))[1].dtype == np.int32
    program = jax.make_jaxpr(lambda x: split.bind(x))(pair)
    assert [aval.dtype for aval in program.out_avals] == [np.float32, np.int32]
    assert split.abstract_eval(program.in_avals[0]) == (program.out_avals, frozenset())
    split.def_abstract_eval(lambda x: [x])
    assert len(jax.make_jaxpr(lambda x: split.bind(x))(pair).out_avals) == 1


def test_effectful_abstract_eval(new):
    class Loud(jax.core.Effect):
        pass

    shout, effect = new(), Loud()
    shout.def_effectful_abstract_eval(lambda x: (x, {effect}))
    program = jax.make_jaxpr(lambda x: shout.bind(x))(pair)
    assert program.effects == program.eqns[0].effects == {effect}
    assert shout.abstract_eval(program.in_avals[0]) == (program.out_avals[0], {effect})


def missing(kind):
    return pytest.raises(NotImplementedError, match=f"^{kind} for 'outside' not implemented")


def test_missing_rules_are_named_as_jax_names_them(new):
    bare, typed = new(), runs(new())
    with missing("Evaluation rule"):
        bare.bind(pair)
    with missing("Evaluation rule"):
        bare.impl(pair)
    with missing("Abstract evaluation"):
        jax.jit(bare.bind)(pair)
    with missing("Abstract evaluation"):
        bare.abstract_eval(jax.typeof(pair))
    with missing("Differentiation rule"):
        jax.jvp(typed.bind, (pair,), (pair,))
    with missing("Batching rule"):
        jax.vmap(typed.bind)(pair)
    with missing("MLIR translation rule"):
        jax.jit(typed.bind)(pair)
    ad.primitive_jvps[typed] = lambda primals, tangents: (
        typed.bind(*primals),
        typed.bind(*tangents),
    )
    with missing(r"Transpose rule \(for reverse-mode differentiation\)"):
        jax.grad(typed.bind)(1.0)


def test_an_equation_is_bound_again_with_its_parameters():
    program = jax.make_jaxpr(lambda x: lax.cumsum(jax.nn.relu(x)))(pair)
    again = pair
    for equation in program.eqns:
        params = equation.primitive.get_bind_params(equation.params)
        again = equation.primitive.bind(again, **params)
        (again,) = again if equation.primitive.multiple_results else (again,)
    np.testing.assert_array_equal(again, lax.cumsum(jax.nn.relu(pair)))
    assert not lax.sin_p.call_primitive and lax.sin_p.is_effectful is None


def test_batch_rules_get_tuples(new):
    kept, given = runs(new()), []

    def rule(values, axes):
        given.extend((type(values), type(axes)))
        return values[0], axes[0]

    batching.primitive_batchers[kept] = rule
    jax.vmap(kept.bind)(pair)
    batching.fancy_primitive_batchers[kept] = lambda axis, values, axes: rule(values, axes)
    jax.vmap(kept.bind)(pair)
    assert given == [tuple] * 4


@pytest.mark.parametrize("axis_name", [None, "i"])
def test_axis_batch_rules_take_five_arguments(new, axis_name):
    wide, given = runs(new()), []

    def rule(size, name, kind, values, axes, **params):
        given.append((size, name, kind, axes, params))
        return jnp.broadcast_to(values[0], (size,)), 0

    batching.axis_primitive_batchers[wide] = rule
    assert wide in batching.fancy_primitive_batchers
    np.testing.assert_array_equal(jax.vmap(wide.bind, axis_name=axis_name)(pair), pair)
    # The rule is asked where nothing is mapped too: it may use the size.
    closed = jax.vmap(lambda x: wide.bind(3.0), axis_name=axis_name)(pair)
    np.testing.assert_array_equal(closed, [3, 3])
    assert given == [(2, axis_name, None, (0,), {}), (2, axis_name, None, (None,), {})]
    del batching.axis_primitive_batchers[wide]
    assert wide not in batching.fancy_primitive_batchers


def test_the_batch_rule_of_reductions(new):
    total = new()

    @total.def_impl
    def _(x, *, axes):
        return jnp.sum(x, axes)

    batching.defreducer(total)
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    summed = jax.vmap(lambda y: total.bind(y, axes=(0,)), in_axes=1)(x)
    np.testing.assert_array_equal(summed, x.sum(0))
