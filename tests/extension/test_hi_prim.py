"""HiPrim: operations that are objects with the methods of jax 0.12.

With `import jax` instead of hlofront, these tests also pass under jax 0.12.0.1, except for the one
of `remat`, which jax calls only with its option jax_remat3.
"""

import dataclasses
import functools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import hijax


class Op(hijax.HiPrim):
    """x * y * factor, by its parameter; derivatives are ten times too large."""

    def __init__(self, x, y, factor=2.0):
        self.in_avals, self.out_aval, self.params = (x, y), x, {"factor": factor}
        super().__init__()

    def expand(self, x, y):
        return x * y * self.factor

    def batch(self, axis_data, args, dims):
        return hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0


def applied(cls, x, y, **params):
    return cls(jax.typeof(x), jax.typeof(y), **params)(x, y)


def jvp(self, primals, tangents):
    (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
    return self(x, y), 10 * self.factor * (dx * y + x * dy)


def lin(self, nzs_in, x, y):
    return self(x, y), (x, y)


def linearized(self, residuals, dx, dy):
    x, y = residuals
    dx, dy = map(hijax.instantiate_zeros, (dx, dy))
    return 10 * self.factor * (dx * y + x * dy)


class ByJvp(Op):
    jvp = jvp
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp


class ByJvpThenLin(Op):
    jvp = jvp
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


class ByLin(Op):
    lin, linearized = lin, linearized
    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


x, y = jnp.arange(3.0), jnp.float32(4.0)


@pytest.mark.parametrize("cls", [ByJvp, ByJvpThenLin, ByLin])
@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit, jax.checkpoint])
def test_rules_are_derived_from_each_other(cls, transformed):
    f = transformed(lambda x, y: applied(cls, x, y))
    np.testing.assert_array_equal(f(x, y), 8 * x)
    results, tangents = jax.jvp(f, (x, y), (jnp.ones(3), jnp.float32(1)))
    np.testing.assert_array_equal(results, 8 * x)
    np.testing.assert_array_equal(tangents, 20 * (y + x))
    results, linear = jax.linearize(lambda x: f(x, y), x)
    np.testing.assert_array_equal(linear(jnp.ones(3)), [80, 80, 80])
    gradients = jax.grad(lambda x, y: jnp.sum(f(x, y)), (0, 1))(x, y)
    np.testing.assert_array_equal(gradients[0], [80, 80, 80])
    assert gradients[1] == 20 * 3
    _, backward = jax.vjp(lambda y: f(x, y), y)
    assert backward(x)[0] == 20 * 5


@pytest.mark.parametrize("cls", [ByJvp, ByJvpThenLin, ByLin])
def test_derived_rules_are_batched(cls):
    xs, ys = jnp.arange(6.0).reshape(2, 3), jnp.float32([1, 2])
    results = jax.vmap(lambda x, y: applied(cls, x, y))(xs, ys)
    np.testing.assert_array_equal(results, 2 * xs * ys[:, None])
    results = jax.vmap(lambda x: applied(cls, x, y), in_axes=1, out_axes=1)(xs)
    np.testing.assert_array_equal(results, 8 * xs)
    gradient = jax.vmap(jax.grad(lambda y: jnp.sum(applied(cls, x, y))))(ys)
    np.testing.assert_array_equal(gradient, [60, 60])


def test_a_rule_and_its_source_may_not_be_derived_from_each_other():
    class Circular(Op):
        jvp = hijax.jvp_from_lin
        lin, linearized = hijax.linearize_from_jvp

    with pytest.raises(TypeError, match="jvp_from_lin"):
        jax.jvp(lambda x: applied(Circular, x, y), (x,), (x,))


@pytest.mark.parametrize("name", ["linearize_from_jvp", "vjp_from_jvp", "vjp_from_lin"])
def test_a_pair_of_rules_is_not_a_rule(name):
    with pytest.raises(TypeError, match="pair of rules"):
        getattr(hijax, name)(None, None)


def test_missing_methods_are_named():
    class Bare(hijax.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x

    bare = Bare(jax.typeof(x))
    for transformed, method in (
        (lambda: jax.vmap(Bare(jax.typeof(y)))(x), "`batch`"),
        (lambda: jax.grad(lambda x: jnp.sum(bare(x)))(x), "`vjp_fwd`"),
        (lambda: jax.jvp(bare, (x,), (x,)), "`jvp`"),
    ):
        with pytest.raises(NotImplementedError, match=method):
            transformed()


class Split(hijax.HiPrim):
    """A pair of products; what is not read is not computed, and a checkpoint saves the first."""

    def __init__(self, x, names=("a", "b")):
        self.in_avals, self.out_aval = (x,), dict.fromkeys(names, x)
        self.params = {"names": names}
        super().__init__()

    def expand(self, x):
        return {name: x * (2.0 if name == "a" else 3.0) for name in self.names}

    def jvp(self, primals, tangents):
        return self(*primals), self.expand(*tangents)

    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp

    def dce(self, used_outs, live_ins):
        names = tuple(name for name in self.names if used_outs[name])
        if not names:
            return False, False, None
        return (True,), dict(used_outs), Split(*self.in_avals, names)

    def remat(self, trace, x):
        policies.append(trace.policy)
        result = self(x)
        return result, result, lambda saved, x: saved


policies = []


def test_results_that_nothing_reads_are_not_computed():
    jaxpr = jax.make_jaxpr(jax.jit(lambda x: Split(jax.typeof(x))(x)["b"]))(x)
    text = jax.jit(lambda x: Split(jax.typeof(x))(x)["b"]).lower(x).as_text()
    assert "2.0" not in text and "3.0" in text
    assert len(jaxpr.out_avals) == 1


def test_a_checkpoint_recomputes_by_residuals():
    policies.clear()
    policy = jax.checkpoint_policies.nothing_saveable

    @functools.partial(jax.checkpoint, policy=policy)
    def f(x):
        return jnp.sum(Split(jax.typeof(x))(x)["a"] ** 2)

    np.testing.assert_array_equal(jax.grad(f)(x), 8 * x)
    assert policies and set(policies) == {policy}


class WithAccumulators(Op):
    def vjp_fwd(self, nzs_in, x, y):
        return self(x, y), (x, y)

    def vjp_bwd(self, residuals, g, x_total, y_total):
        x, y = residuals
        seen.append((type(x_total), type(y_total)))
        x_total.accum(g * y * self.factor)
        x_total.accum(None)
        y_total.accum(jnp.sum(g * x))


seen = []


def test_backward_rules_add_to_accumulators():
    seen.clear()
    assert jax.grad(lambda y: jnp.sum(applied(WithAccumulators, x, y)))(y) == 3
    assert seen == [(hijax.NullAccum, hijax.ValAccum)]
    prim = WithAccumulators(jax.typeof(x), jax.typeof(y))
    (x_bar, y_bar), logs = prim.vjp_bwd_retval_logs((x, y), jnp.ones(3))
    np.testing.assert_array_equal(x_bar, [8, 8, 8])
    assert y_bar == 3 and logs is None


def test_accumulators():
    aval = jax.typeof(x)
    for total in (hijax.ValAccum(aval), hijax.RefAccum(aval)):
        assert isinstance(total, hijax.GradAccum) and total.aval == aval
        assert type(total.freeze()) is hijax.Zero
        total.accum(x)
        total.accum(hijax.Zero(aval))
        total.accum(jnp.ones(3))
        with pytest.raises(ValueError, match="Expected cotangent type"):
            total.accum(jnp.ones(2))
        np.testing.assert_array_equal(total.freeze(), x + 1)
    assert hijax.ValAccum(aval, x).val is not None
    np.testing.assert_array_equal(hijax.RefAccum(aval).inst().freeze(), jnp.zeros(3))
    np.testing.assert_array_equal(hijax.RefAccum(aval, jax.new_ref(x)).freeze(), x)
    null = hijax.NullAccum(aval)
    null.accum("anything")
    assert isinstance(null, hijax.GradAccum)


def test_references_accumulate_in_programs():
    @jax.jit
    def f(x):
        total = hijax.RefAccum(jax.typeof(x)).inst()
        jax.lax.fori_loop(0, 3, lambda i, _: total.accum(x), None)
        return total.freeze()

    np.testing.assert_array_equal(f(x), 3 * x)


def test_types_and_values_of_batches():
    def seen_by(args, dims):
        class Seen(Op):
            def batch(self, axis_data, args, dims):
                avals = hijax.unmap_avals(axis_data, self.in_avals, dims)
                assert [a.shape for a in avals] == [jnp.shape(x) for x in args]
                x, y = hijax.bdims_at_front(axis_data, args, dims)
                return x * y[:, None], 0

        return jax.vmap(lambda x, y: applied(Seen, x, y), in_axes=dims)(*args)

    xs = jnp.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(seen_by((xs, y), (1, None)), 4 * xs.T)


def test_symbolic_zeros_pass_through_batches():
    class Seen(Op):
        def batch(self, axis_data, args, dims):
            def one(x, zero):
                return x, zero, hijax.Zero(jax.typeof(x))

            zero = hijax.Zero(jax.typeof(args[0]))
            rule = hijax.vmap_rule(axis_data, one, (dims[0], 0), (0, 0, 0))
            x, same, made = rule(args[0], zero)
            assert same.aval.shape == made.aval.shape == x.shape
            return x, 0

    jax.vmap(lambda x: applied(Seen, x, y))(jnp.ones((2, 3)))


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@dataclasses.dataclass(frozen=True)
class PairType(hijax.HiType):
    part: object

    def lo_ty(self):
        return [self.part, self.part]

    def lower_val(self, pair):
        return [pair.a, pair.b]

    def raise_val(self, a, b):
        return Pair(a, b)

    def to_tangent_aval(self):
        return PairType(self.part.to_tangent_aval())

    def vspace_zero(self):
        return Pair(jnp.zeros(self.part.shape), jnp.zeros(self.part.shape))

    def vspace_add(self, p, q):
        return Pair(p.a + q.a, p.b + q.b)


hijax.register_hitype(Pair, lambda pair: PairType(jax.typeof(pair.a)))


class Total(hijax.HiPrim):
    """The sum of a pair and an integer's, which has no tangent."""

    def __init__(self, pair, n):
        self.in_avals, self.out_aval, self.params = (pair, n), pair.part, {}
        super().__init__()

    def expand(self, pair, n):
        return pair.a + pair.b + n

    def lin(self, nzs_in, pair, n):
        return self(pair, n), ()

    def linearized(self, residuals, pair, n):
        return total(pair, 0)

    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin

    def transpose(self, out_ct, pair, n):
        assert isinstance(pair, hijax.GradAccum)
        pair.accum(MakePair(jax.typeof(out_ct))(out_ct))


class MakePair(hijax.HiPrim):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), PairType(x), {}
        super().__init__()

    def expand(self, x):
        return Pair(x, x)


def total(pair, n):
    return Total(jax.typeof(pair), jax.typeof(n))(pair, n)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit])
def test_derived_rules_of_high_types_and_integers(transformed):
    f = transformed(lambda pair: jnp.sum(total(pair, 7) ** 2))
    assert f(Pair(x, x)) == np.sum((2 * np.arange(3) + 7) ** 2)
    gradient = jax.grad(f)(Pair(x, x))
    np.testing.assert_array_equal([gradient.a, gradient.b], [2 * (2 * x + 7)] * 2)


def test_parameters_that_start_with_an_underscore_are_not_shown():
    prim = Op(jax.typeof(x), jax.typeof(y))
    assert prim.pp_params() == {"factor": 2.0}
    prim.params = {"_hidden": 1, "shown": 2}
    assert prim.pp_params() == {"shown": 2}
