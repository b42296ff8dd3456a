"""jax.experimental.hijax: values that consist of several arrays, and operations on them."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import hijax


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@dataclasses.dataclass(frozen=True)
class PairType(hijax.HiType):
    part: jax.core.ShapedArray

    def lo_ty(self):
        return [self.part, self.part]

    def lower_val(self, pair):
        return [pair.a, pair.b]

    def raise_val(self, a, b):
        return Pair(a, b)

    def to_tangent_aval(self):
        return PairType(self.part.to_tangent_aval())


hijax.register_hitype(Pair, lambda pair: PairType(jax.typeof(pair.a)))


class Total(hijax.HiPrimitive):
    """The sum of a pair, with a derivative that is three times too large."""

    def abstract_eval(self, pair):
        return pair.part, set()

    def to_lojax(self, pair):
        return pair.a + pair.b

    def jvp(self, primals, tangents):
        return total(*primals), 3 * total(*tangents)

    def transpose(self, cotangent, pair):
        return [make_pair(cotangent, cotangent)]


class MakePair(hijax.HiPrimitive):
    def abstract_eval(self, a, b):
        return PairType(a), set()

    def to_lojax(self, a, b):
        return Pair(a, b)

    def jvp(self, primals, tangents):
        return make_pair(*primals), make_pair(*map(hijax.instantiate_zeros, tangents))

    def transpose(self, cotangent, a, b):
        return [cotangent.a, cotangent.b]


class Scaled(hijax.HiPrimitive):
    """Both multiples of an array."""

    multiple_results = True

    def abstract_eval(self, x, *, by):
        return (x, x), set()

    def to_lojax(self, x, *, by):
        return x * by, x / by


total, make_pair, scaled = Total("total").bind, MakePair("make_pair").bind, Scaled("scaled").bind
x = jnp.arange(1.0, 4.0)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit, jax.checkpoint])
def test_high_values_are_arguments_results_and_operands(transformed):
    assert jax.typeof(Pair(x, x)) == PairType(jax.typeof(x))
    np.testing.assert_array_equal(transformed(total)(Pair(x, x)), 2 * x)
    np.testing.assert_array_equal(transformed(lambda x: make_pair(x, 2 * x))(x).b, 2 * x)
    np.testing.assert_array_equal(transformed(lambda x: scaled(x, by=2.0))(x), [2 * x, x / 2])


def test_derivatives_are_the_methods():
    def f(x):
        return jnp.sum(total(make_pair(x, x * x)))

    np.testing.assert_array_equal(jax.grad(f)(x), 3 * (1 + 2 * x))
    np.testing.assert_allclose(jax.jvp(jax.jit(f), (x,), (x,))[1], 3 * jnp.sum(x + 2 * x * x))
    gradient = jax.grad(lambda pair: jnp.sum(total(pair)))(Pair(x, x))
    np.testing.assert_array_equal(gradient.a, 3 * jnp.ones(3))


def test_high_values_are_carried_by_loops():
    def body(pair, _):
        return make_pair(total(pair), pair.a), None

    pair, _ = jax.lax.scan(body, Pair(jnp.ones(()), jnp.ones(())), None, length=5)
    assert (pair.a, pair.b) == (13, 8)


def test_equations_of_high_operations():
    jaxpr = jax.make_jaxpr(lambda x: total(make_pair(x, x)))(x)
    first, second = jaxpr.eqns
    assert (first.primitive.name, second.primitive.name) == ("make_pair", "total")
    assert len(first.outvars) == len(second.invars) == 2


def test_missing_methods_are_named():
    nothing = hijax.HiPrimitive("nothing").bind
    with pytest.raises(AssertionError, match="nothing must override abstract_eval"):
        jax.jit(nothing)(x)
    with pytest.raises(AssertionError, match="scaled must override jvp"):
        jax.jvp(lambda x: scaled(x, by=2.0), (x,), (x,))


class Cube(hijax.VJPHiPrimitive):
    """The cube of an array, which keeps its square for a derivative that is twice too large."""

    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    def expand(self, x):
        return x**3

    def vjp_fwd(self, nzs_in, x):
        return self(x), x * x

    def vjp_bwd_retval(self, square, g):
        return (6 * square * g,)

    def lin(self, nzs_in, x):
        return self(x), x

    def linearized(self, x, dx):
        return 3 * x * x * dx


def cube(x):
    return Cube(jax.typeof(x))(x)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit, jax.checkpoint])
def test_backward_rules_are_methods_in_every_program(transformed):
    gradient = jax.grad(lambda x: jnp.sum(transformed(cube)(x)))(x)
    np.testing.assert_allclose(gradient, 6 * x * x)


def test_a_linear_function_is_run_by_its_own_rule_and_in_programs_by_the_backward_rule():
    np.testing.assert_allclose(jax.linearize(cube, x)[1](x), 3 * x**3)
    np.testing.assert_allclose(jax.linearize(jax.jit(cube), x)[1](x), 6 * x**3)


def test_cotangents_of_another_shape_are_refused():
    class Wrong(Cube):
        def vjp_bwd_retval(self, square, g):
            return (g[0],)

    with pytest.raises(ValueError, match=r"Expected cotangent type float32\[3\] but got float32"):
        jax.grad(lambda x: jnp.sum(Wrong(jax.typeof(x))(x)))(x)


class Saved(Cube):
    """A cube whose result `checkpoint` saves, where Cube's is recomputed."""

    policies = []

    def remat(self, policy, x):
        self.policies.append(policy)
        y = self(x)
        return y, lambda x: y


class Cheaper(Cube):
    """A cube that is recomputed by another formula."""

    def remat(self, policy, x):
        return self(x), lambda x: x * x * x


def twice(primitive):
    return lambda x: jnp.sum(primitive(jax.typeof(x))(primitive(jax.typeof(x))(x)))


def calls_in_backward_pass(primitive, fun=lambda f: f, **options):
    """Return how often the operation, and multiplication, are in what checkpoint recomputes."""
    loss = fun(jax.checkpoint(twice(primitive), **options))
    text = str(jax.make_jaxpr(jax.grad(loss))(x))
    recomputed = text[text.index("remat2[") :]
    return recomputed.count("call_hi_primitive["), recomputed.count("integer_pow")


def test_checkpoint_saves_and_recomputes_as_the_method_remat_says():
    nothing = jax.checkpoint_policies.nothing_saveable
    assert calls_in_backward_pass(Cube)[0] >= 1
    assert calls_in_backward_pass(Saved)[0] == 0
    assert calls_in_backward_pass(Cheaper)[0] == 0
    assert calls_in_backward_pass(Saved, policy=nothing)[0] == 0
    assert Saved.policies[0] is None
    assert Saved.policies[-1] is not None
    assert calls_in_backward_pass(Saved, lambda f: jax.jit(lambda x: f(x)))[0] == 0
    for primitive in (Cube, Saved, Cheaper):
        gradient = jax.grad(jax.checkpoint(twice(primitive)))(x)
        np.testing.assert_allclose(gradient, 36 * x**8, rtol=1e-6)


@pytest.mark.parametrize("primitive", [Saved, Cheaper])
def test_steps_of_a_scan_are_recomputed_as_the_method_remat_says(primitive):
    def loss(x):
        def step(c, y):
            return primitive(jax.typeof(c))(c) + y, jnp.sin(c)

        last, ys = jax.lax.scan(step, x / 4, jnp.ones((3, 3)) / 3)
        return jnp.sum(last) + jnp.sum(ys)

    wanted = jax.grad(loss)(x)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(loss))(x), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.checkpoint(loss)))(x), wanted, rtol=1e-6)


def test_the_method_staging_writes_the_operation_into_programs():
    seen = []

    class Noted(Cube):
        def staging(self, trace, source_info, *args):
            seen.append(source_info)
            return super().staging(trace, source_info, *args)

    class Unrolled(Cube):
        def staging(self, trace, source_info, x):
            return self.expand(x)

    def call(primitive):
        return lambda x: primitive(jax.typeof(x))(x)

    (equation,) = jax.make_jaxpr(call(Noted))(x).eqns
    assert equation.primitive.name == "call_hi_primitive"
    assert equation.source_info is seen[0]
    call(Noted)(x)
    assert len(seen) == 1
    assert [e.primitive.name for e in jax.make_jaxpr(call(Unrolled))(x).eqns] == ["integer_pow"]
    np.testing.assert_allclose(jax.jit(call(Unrolled))(x), x**3)
    np.testing.assert_allclose(jax.jit(call(Noted))(x), x**3)


def test_the_rules_of_operations_come_with_their_class():
    program = """
import hlofront as jax
jax.jit(jax.numpy.sin)(1.0)
from hlofront.core import rules
from hlofront.higher_order.hi_prim.hi_calls import call_hi_primitive_p
assert call_hi_primitive_p not in rules.run
from hlofront.experimental.hijax import VJPHiPrimitive
assert call_hi_primitive_p in rules.run
"""
    subprocess.run([sys.executable, "-c", program], check=True)
