"""scan, map and associative_scan: messages and residuals, besides what the corpora compare."""

import gc
import weakref

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base import events
from hlofront.core.programs.check import check_jaxpr
from hlofront.test_util import check_grads

X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
W = np.linspace(-0.5, 0.7, 9, dtype=np.float32).reshape(3, 3)
C = np.array([0.3, -0.2, 0.1], np.float32)


def equations_of(jaxpr, name="scan"):
    """The equations of a primitive, at any depth."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == name:
            found.append(equation)
        for value in equation.params.values():
            for member in value if isinstance(value, tuple | list) else (value,):
                if hasattr(member, "eqns"):
                    found += equations_of(member, name)
    return found


def collected(jaxpr):
    """Shapes of what the scans of a program collect."""
    return [
        [var.aval.shape for var in equation.outvars[equation.params["num_carry"] :]]
        for equation in equations_of(jaxpr)
    ]


@pytest.fixture
def compilations():
    counted = []

    def listen(event, duration, **_):
        if event == events.COMPILE:
            counted.append(event)

    events.register_event_duration_secs_listener(listen)
    yield counted
    events.unregister_event_duration_listener(listen)


# ---- traced and compiled once --------------------------------------------------------------------


def test_an_eager_scan_is_traced_and_compiled_once(compilations):
    calls = []

    def step(c, x):
        calls.append(1)
        return c + x, c

    for _ in range(3):
        lax.scan(step, C, X)
    assert len(calls) == len(compilations) == 1
    lax.scan(step, C, X[:2])
    assert len(calls) == 1
    assert len(compilations) == 2
    lax.scan(step, np.float32(0), X[0])
    assert len(calls) == 2


def test_an_eager_map_is_traced_and_compiled_once(compilations):
    calls = []

    def double(x):
        calls.append(1)
        return x * 2

    for _ in range(3):
        lax.map(double, X)
    assert len(calls) == len(compilations) == 1


def test_what_is_kept_goes_with_the_function():
    def step(c, x):
        return c + x, c

    lax.scan(step, C, X)
    reference = weakref.ref(step)
    del step
    gc.collect()
    assert reference() is None


def test_a_function_that_closes_over_traced_values_is_traced_in_each_program():
    captured = []

    def step(c, x):
        return c + x * captured[-1], None

    def run(y):
        captured.append(y)
        return lax.scan(step, C, X)[0] + lax.scan(step, C, X)[0]

    for scale in (1.0, 2.0):
        wanted = 2 * (C + X.sum(0) * scale)
        np.testing.assert_allclose(jax.jit(run)(scale), wanted, rtol=1e-5)
        # Another program of the same function.
        np.testing.assert_allclose(jax.jit(lambda y: run(y))(scale), wanted, rtol=1e-5)


def test_unhashable_functions_are_refused_and_bound_methods_are_not():
    class Step:
        __hash__ = None

        def __call__(self, c, x):
            return c + x, None

        def method(self, c, x):
            return c + x, None

    with pytest.raises(TypeError, match=r"unhashable type: 'Step'.*frozen=True"):
        lax.scan(Step(), C, X)
    np.testing.assert_allclose(lax.scan(Step().method, C, X)[0], C + X.sum(0), rtol=1e-5)


def test_derived_programs_are_shared():
    def step(c, x):
        return jnp.sin(c * x), c

    def loss(c):
        return lax.scan(step, lax.scan(step, c, X)[0], X)[0].sum()

    scans = equations_of(jax.make_jaxpr(jax.grad(loss))(C))
    assert len(scans) == 4
    first, second, back_second, back_first = [e.params["jaxpr"] for e in scans]
    assert first is second
    assert back_second is back_first
    again = equations_of(jax.make_jaxpr(jax.grad(loss))(C))
    assert again[0].params["jaxpr"] is first


# ---- what is kept for the way back ---------------------------------------------------------------


def test_only_what_varies_is_collected():
    def loss(w):
        step = lambda c, x: (jnp.sin(jnp.exp(w).T @ c + x), None)
        return lax.scan(step, C, X)[0].sum()

    jaxpr = jax.make_jaxpr(jax.grad(loss))(W)
    # The carry and its cosine; exp(w) comes before the loop, and is handed over once.
    assert collected(jaxpr) == [[(5, 3), (5, 3)], []]
    assert "exp" in [e.primitive.name for e in jaxpr.eqns]
    assert len(equations_of(jaxpr, "exp")) == 1


def test_what_is_computed_in_a_called_function_is_hoisted_too():
    cell = jax.jit(lambda w, c, x: jnp.sin(jnp.exp(w) @ c + x))
    jaxpr = jax.make_jaxpr(
        jax.grad(lambda w: lax.scan(lambda c, x: (cell(w, c, x), None), C, X)[0].sum())
    )(W)
    assert collected(jaxpr) == [[(5, 3), (5, 3)], []]


def test_xs_and_results_are_handed_over_as_they_are():
    def loss(c):
        def step(c, x):
            e = jnp.exp(c)
            return e * x, e

        return lax.scan(step, c, X)[1].sum()

    forward, backward = equations_of(jax.make_jaxpr(jax.grad(loss))(C))
    # Only exp(c) is collected, which is a result; and xs go to both.
    assert collected(jax.make_jaxpr(jax.grad(loss))(C)) == [[(5, 3)], []]
    assert forward.invars[-1] in backward.invars
    assert forward.outvars[-1] in backward.invars


def test_a_linear_loop_collects_nothing():
    jaxpr = jax.make_jaxpr(
        jax.grad(lambda c, x: lax.scan(lambda c, x: (c * x, None), c, x)[0].sum())
    )(C, X)
    assert collected(jaxpr) == [[], []]


def test_scan_of_scan_hoists_through_both_loops():
    def loss(w):
        def outer(c, x):
            return lax.scan(lambda d, y: (jnp.sin(jnp.exp(w) @ d + y * x), None), c, X)[0], None

        return lax.scan(outer, C, X)[0].sum()

    jaxpr = jax.make_jaxpr(jax.grad(loss))(W)
    shapes = collected(jaxpr)
    assert all(shape[-1] == 3 and (3, 3) != shape[-2:] for part in shapes for shape in part)
    assert "exp" in [e.primitive.name for e in jaxpr.eqns]


def test_unused_parts_are_dropped():
    def f(c, x):
        def step(carry, xs):
            a, b = carry
            return (jnp.sin(a) * xs[0], jnp.cos(b) * xs[1]), (a, b)

        (a, _), (ys, _) = lax.scan(step, (c, c), (x, 2 * x))
        return a, ys

    outer = jax.make_jaxpr(lambda c, x: jax.jit(f)(c, x)[0])(C, X)
    text = jax.jit(lambda c, x: f(c, x)[0]).lower(C, X).as_text()
    assert "cosine" not in text
    assert "dynamic_update_slice" not in text
    assert "cos" in str(outer)


# ---- derivatives and batches agree with loops of Python ------------------------------------------


def rnn(w, c, xs, **options):
    return lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c * x), c, xs, **options)


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 2}, {"unroll": True}])
def test_gradients(options):
    function = jax.jit(lambda *args: rnn(*args, **options))
    check_grads(function, (W, C, X[:3]), order=2, atol=2e-2, rtol=2e-2)


def test_check_jaxpr_accepts_all_that_is_derived():
    def loss(w, c, xs):
        last, ys = rnn(w, c, xs)
        return last.sum() + (ys * ys).sum()

    several = np.stack([C, 2 * C])
    for function, args in (
        (jax.grad(loss, (0, 1, 2)), (W, C, X)),
        (jax.grad(lambda *a: jax.grad(loss)(*a).sum()), (W, C, X)),
        (jax.vmap(jax.grad(loss), (None, 0, None)), (W, several, X)),
        (jax.hessian(lambda c: loss(W, c, X)), (C,)),
        (lambda w: jax.jvp(lambda w: rnn(w, C, X), (w,), (w,)), (W,)),
        (lambda w: jax.linearize(lambda w: rnn(w, C, X), w)[1](w), (W,)),
    ):
        check_jaxpr(jax.make_jaxpr(function)(*args))


def test_a_carry_that_gets_a_batch_axis_on_the_way():
    def f(x):
        step = lambda c, _: ((c[1], c[2], c[2] * x), c[0])
        return lax.scan(step, (0.0, 1.0, 2.0), None, length=4)

    found = jax.vmap(f)(C)
    for i, x in enumerate(C):
        wanted = f(x)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one[i], other, rtol=1e-6)


def test_constants_that_are_not_mapped_stay_so():
    jaxpr = jax.make_jaxpr(jax.vmap(rnn, (None, 0, None)))(W, np.stack([C, C]), X)
    (scan,) = equations_of(jaxpr)
    assert scan.params["jaxpr"].in_avals[0].shape == (3, 3)
    assert scan.params["jaxpr"].in_avals[-1].shape == (3,)


def test_transposing_what_is_partly_known():
    def affine(x):
        step = lambda c, _: ((c[0] + 1, c[1] + c[0] * x[0]), c[1] * 2.0)
        return lax.scan(step, (0, x[1]), None, length=4)[1]

    matrix = jax.jacfwd(lambda x: affine((x[0], x[1])))(jnp.array([3.0, 4.0]))
    y = jnp.arange(4.0)
    (found,) = jax.linear_transpose(affine, (3.0, 4.0))(y)
    np.testing.assert_allclose(np.array(found), y @ matrix, rtol=1e-6)


# ---- effects -------------------------------------------------------------------------------------


def test_effects_in_a_step_happen_in_order(capsys):
    def step(c, x):
        jax.debug.print("{}", x, ordered=True)
        return c, None

    xs = np.arange(5)
    for options in ({}, {"unroll": 2}, {"reverse": True}, {"unroll": True}):
        jax.jit(lambda xs, options=options: lax.scan(step, 0, xs, **options))(xs)
        jax.effects_barrier()
        wanted = [str(x) for x in (reversed(xs) if "reverse" in options else xs)]
        assert capsys.readouterr().out.split() == wanted


def test_effects_are_kept_where_results_are_not_used(capsys):
    def step(c, x):
        jax.debug.callback(lambda x: print(int(x)), x)
        return c + x, None

    jax.jit(lambda xs: (lax.scan(step, 0, xs), 1)[1])(np.arange(3))
    jax.effects_barrier()
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "2"]


# ---- without jit, and lowering -------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"reverse": True}])
def test_disable_jit_is_a_loop_of_python(options):
    seen = []

    def step(c, x):
        seen.append(x["a"])
        return c + x["a"], (c, {"n": 1})

    wanted = lax.scan(step, C, {"a": X}, **options)
    seen.clear()
    with jax.disable_jit():
        found = lax.scan(step, C, {"a": X}, **options)
    assert len(seen) == 5
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_disable_jit_needs_a_step():
    with jax.disable_jit(), pytest.raises(ValueError, match=r"disable_jit\(\) mode"):
        lax.scan(lambda c, x: (c, c), 0, None, length=0)


def test_one_loop_and_few_operations():
    text = jax.jit(lambda c, x: lax.scan(lambda c, x: (c + x, c), c, x)).lower(C, X).as_text()
    assert text.count("stablehlo.while") == 1
    assert "call" not in text
    operations = [line for line in text.splitlines() if "= stablehlo" in line]
    # Two constants and the array to fill before the loop; one comparison with a constant; slice,
    # reshape, add, reshape, update and the index in it, with two constants.
    assert len(operations) <= 15


def test_all_steps_unrolled_leave_no_loop():
    for length in (1, 5):
        lowered = jax.jit(lambda x: lax.scan(lambda c, x: (c + x, c), C, x, unroll=True)).lower(
            X[:length]
        )
        assert "stablehlo.while" not in lowered.as_text()


def test_a_long_step_is_a_function_where_it_is_unrolled():
    def step(c, x):
        for _ in range(10):
            c = jnp.sin(c + x)
        return c, None

    text = jax.jit(lambda x: lax.scan(step, C, x, unroll=4)).lower(X).as_text()
    assert text.count("stablehlo.sine") == 10


# ---- messages ------------------------------------------------------------------------------------


def message_of(function, *args, **kwargs):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_a_changed_carry_is_explained_leaf_by_leaf():
    def step(state, x):
        return {"n": state["n"] * 1.5, "h": state["h"][:2], "ok": state["ok"]}, None

    init = {"n": jnp.int32(1), "h": C, "ok": 1.0}
    text = message_of(lax.scan, step, init, X)
    assert "state['n'] is given as int32[] and returned as float32[]" in text
    assert ".astype('int32')" in text
    assert "state['h'] is given as float32[3] and returned as float32[2]" in text
    assert "'ok'" not in text


def test_weak_types_are_told():
    text = message_of(lax.scan, lambda c, x: (1.5, None), jnp.int32(1), X)
    assert "weakly typed" in text


def test_other_structures_are_told_by_their_place():
    text = message_of(lax.scan, lambda c, x: ((c[0], {"b": 1}), None), (1, {"a": 1}), X)
    assert "c[1]" in text
    assert "'a'" in text
    assert "'b'" in text
    text = message_of(lax.scan, lambda c, x: ((c, c), None), 1, X)
    assert "a tuple of 2" in text


def test_messages_name_the_argument_of_the_step():
    text = message_of(lax.scan, lambda c, row: (c, int(row[0])), 1, X)
    assert "row" in text
    assert "for scan" in text


def test_reports_of_lengths():
    assert "5, 2" in message_of(lax.scan, lambda c, x: (c, x), 0, (X, X[:2]))
    assert "length" in message_of(lax.scan, lambda c, x: (c, x), 0, X, length=3)
    assert "length=-1" in message_of(lax.scan, lambda c, x: (c, x), 0, None, length=-1)
    assert "batch_size" in message_of(lax.map, lambda x: x, X, batch_size=-1)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_derivatives_of_a_scan_whose_body_forgets_its_carry(length, which):
    def last(c):
        def body(carry, _):
            return (carry[1], jnp.ones_like(carry[0])), None

        return lax.scan(body, (c, 2 * c), length=length)[0][which]

    by_hand = {0: [1.0, 2.0], 1: [2.0, 0.0], 3: [0.0, 0.0]}[length][which]
    assert jax.grad(last)(0.5) == by_hand
    assert jax.jvp(last, (0.5,), (1.0,))[1] == by_hand
