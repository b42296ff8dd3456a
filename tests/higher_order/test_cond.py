"""cond and switch: the staged program, derivatives, batching, and what is refused."""

import gc
import weakref

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.core.jaxpr import Var
from hlofront.experimental import io_callback
from hlofront.transforms.simplify import dead_code

X = np.array([0.3, -0.7, 1.2], np.float32)
Y = np.array([1.5, 0.2, -0.4], np.float32)
HOST = hlofront.memory.Space.Host


def conds(jaxpr):
    return [e for e in jaxpr.eqns if e.primitive.name == "cond"]


# ---- written down once ---------------------------------------------------------------------------


def test_eager_calls_trace_and_compile_once(compilations):
    traced = []

    def double(x):
        traced.append(x)
        return x * 2

    def halve(x):
        traced.append(x)
        return x / 2

    for p in (True, False, np.bool_(True), 1):
        lax.cond(p, double, halve, X)
    assert len(traced) == 2
    assert compilations.count("cond") == 1
    for i in range(3):
        lax.switch(i, [double, halve, double], X)
    assert len(traced) == 4  # for switch, and each function once
    assert compilations.count("cond") == 2


def test_eager_calls_with_closures_compile_once(compilations):
    a = jnp.arange(3.0)

    def plus(x):
        return x + a

    def minus(x):
        return x - a * Y

    for p in (True, False, True):
        lax.cond(p, plus, minus, X)
    assert compilations.count("cond") == 1


def test_what_is_kept_goes_with_the_functions():
    def stays(x):
        return x * 2

    def call():
        def goes(x):
            return jnp.sin(x)

        lax.cond(True, goes, stays, X)
        lax.cond(True, stays, goes, X)
        return weakref.ref(goes)

    reference = call()
    gc.collect()
    assert reference() is None


def test_many_new_functions_beside_one_that_stays():
    def stays(x):
        return x * 2

    written = []

    def staged(p, x):
        jaxpr = hlofront.make_jaxpr(lambda p, x: lax.cond(p, lambda x: x, stays, x))(p, x)
        written.append(conds(jaxpr)[0].params["branches"][0])

    for _ in range(100):
        staged(True, X)
        hlofront.make_jaxpr(
            hlofront.grad(lambda x: lax.cond(True, lambda x: jnp.sin(x), stays, x).sum())
        )(X)
    for _ in range(2):
        lax.cond(True, lambda x: x, stays, X)
    assert all(program is written[0] for program in written)
    assert all(len(values) <= 64 for values in written[0].derived.values())


def test_no_tracer_is_left_behind():
    def stays(x):
        return x * 2

    @hlofront.jit
    def f(x, y):
        return lax.cond(x[0] > 0, lambda z: z * y, stays, x)

    with hlofront.checking_leaks():
        f(X, Y)


def test_branches_of_a_jitted_function_are_shared():
    @hlofront.jit
    def layer(x):
        return lax.cond(x[0] > 0, jnp.sin, lambda x: x * 2, x)

    def loss(x):
        for _ in range(4):
            x = layer(x)
        return x.sum()

    jaxpr = hlofront.make_jaxpr(hlofront.grad(loss))(X)
    called = {id(e.params["jaxpr"]) for e in jaxpr.eqns if e.primitive.name == "jit"}
    assert len(called) == 2  # forward and backward


# ---- derivatives ---------------------------------------------------------------------------------


def many(x, y):
    return lax.cond(
        x[0] > 0, lambda: jnp.sin(x) * y * jnp.tanh(x), lambda: x * y + jnp.exp(x * 0.5)
    )


def nested(x, y):
    def inner(z):
        return lax.switch(jnp.int32(z[2]), [lambda z: z * y, jnp.cos, lambda z: z], z)

    return lax.cond(x[1] > 0, inner, lambda z: lax.cond(z[0] > 0, inner, jnp.sin, z * 2), x)


def in_scan(x, y):
    def step(carry, a):
        carry = lax.cond(a > 0, lambda c: jnp.sin(c) * a, lambda c: c * y, carry)
        return carry, carry.sum()

    return lax.scan(step, x, y)


def scan_inside(x, y):
    return lax.cond(
        x[0] > 0,
        lambda x: lax.scan(lambda c, a: (jnp.sin(c) * a, c), x, y)[0],
        lambda x: x * y,
        x,
    )


def of_jit(x, y):
    f = hlofront.jit(lambda z: jnp.sin(z) * y)
    return hlofront.jit(lambda x: lax.cond(x[0] > 0, lambda z: f(f(z)), lambda z: z * 2, x))(x)


FUNCTIONS = [many, nested, in_scan, scan_inside, of_jit]


def total(f):
    """A scalar function of all that f returns, each element with another weight."""

    def weighted(x, y):
        leaves = hlofront.tree.leaves(f(x, y))
        return sum(jnp.sum(a * (1 + jnp.arange(a.size).reshape(a.shape))) for a in leaves)

    return weighted


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS)
def test_derivatives(f):
    loss = total(f)
    gradient = hlofront.grad(loss, argnums=(0, 1))
    along = (np.array([0.6, -0.2, 0.4], np.float32), np.array([-0.3, 0.5, 0.1], np.float32))

    def slope(x, y):
        return sum(jnp.vdot(a, b) for a, b in zip(gradient(x, y), along, strict=True))

    @hlofront.jit
    def everything(x, y):
        return (
            loss(x, y),
            gradient(x, y),
            hlofront.jvp(loss, (x, y), along)[1],
            slope(x, y),
            hlofront.jvp(gradient, (x, y), along)[1],
            hlofront.grad(slope, argnums=(0, 1))(x, y),
        )

    for x, y in ((X, Y), (-X, Y), (X, -Y)):
        step = 1e-2
        before, after = (
            everything(*[a + h * d for a, d in zip((x, y), along, strict=True)])
            for h in (-step, step)
        )
        _, _, forward, reverse, forward_reverse, reverse_reverse = everything(x, y)
        numerical = (after[0] - before[0]) / (2 * step)
        np.testing.assert_allclose(forward, numerical, rtol=2e-2, atol=2e-2)
        np.testing.assert_allclose(reverse, forward, rtol=1e-4, atol=1e-5)
        for b, a, *found in zip(before[1], after[1], forward_reverse, reverse_reverse, strict=True):
            np.testing.assert_allclose(found[0], (a - b) / (2 * step), rtol=2e-2, atol=2e-2)
            np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS)
def test_batched_is_one_by_one(f):
    xs = np.stack([X, -X, X + 0.5, Y])
    ys = np.stack([Y, X, -Y, Y * 2])

    def compare(transformed, one, axes, *args):
        found = hlofront.jit(hlofront.vmap(transformed, axes))(*args)
        for i in range(4):
            own = [a if axis is None else a[i] for a, axis in zip(args, axes, strict=True)]
            wanted = one(*own)
            leaves = hlofront.tree.leaves(found), hlofront.tree.leaves(wanted)
            for a, b in zip(*leaves, strict=True):
                np.testing.assert_allclose(a[i], b, rtol=1e-5, atol=1e-6)

    for transformed in (f, hlofront.grad(total(f), argnums=(0, 1))):
        one = hlofront.jit(transformed)
        compare(transformed, one, (0, 0), xs, ys)
        compare(transformed, one, (0, None), xs, Y)
        compare(transformed, one, (None, 0), X, ys)


def test_residuals_share_places():
    jaxpr = hlofront.make_jaxpr(
        hlofront.grad(
            lambda x: lax.cond(
                x[0] > 0, lambda x: jnp.sin(x) * jnp.cos(x), lambda x: jnp.exp(x), x
            ).sum()
        )
    )(X)
    known, back = conds(jaxpr)
    # The result, and as many residuals as the branch has that needs most.
    widest = max(len(set(b.jaxpr.invars) & _read(b)) for b in back.params["branches"])
    assert len(known.outvars) - 1 <= widest
    for branch in known.params["branches"]:
        assert "broadcast_in_dim" not in {e.primitive.name for e in branch.eqns}


def _read(program):
    return {atom for e in program.eqns for atom in e.invars if isinstance(atom, Var)}


def test_operands_are_no_residuals():
    jaxpr = hlofront.make_jaxpr(
        hlofront.grad(lambda x, y: lax.cond(y[0] > 0, lambda: x * y, lambda: x * 2 * y).sum())
    )(X, Y)
    known, back = conds(jaxpr)
    assert len(known.outvars) == 1
    assert jaxpr.jaxpr.invars[1] in back.invars


def test_integers_have_no_tangents():
    def f(x, n):
        y, m = lax.cond(x[0] > 0, lambda: (x * 2, n + 1), lambda: (x, n))
        return y.sum() * m

    assert hlofront.grad(f)(X, 3).tolist() == [8.0] * 3
    grads = hlofront.grad(f, argnums=(0, 1), allow_int=True)(X, 3)
    assert grads[1].dtype == hlofront.dtypes.float0


def test_an_unknown_predicate_in_linear_transpose():
    f = lambda x: lax.cond(True, lambda x: x * 2, lambda x: x * 3, x)
    (cotangent,) = hlofront.linear_transpose(f, X)(Y)
    np.testing.assert_allclose(cotangent, Y * 2)


def test_gradients_of_a_branch_that_is_not_taken_stay_out():
    f = lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x)
    zeros = jnp.zeros(3)
    assert hlofront.grad(lambda x: hlofront.vmap(f)(x).sum())(zeros).tolist() == [0.0] * 3
    together = hlofront.jit(hlofront.grad(lambda x: hlofront.vmap(lambda p: f(x * p))(zeros).sum()))
    assert together(2.0) == 0.0
    assert hlofront.vmap(hlofront.grad(f))(zeros).tolist() == [0.0] * 3


# ---- less of it ----------------------------------------------------------------------------------


def test_dead_code():
    def f(x, y):
        a, b = lax.cond(x[0] > 0, lambda: (jnp.sin(x), jnp.exp(y)), lambda: (x * 2, jnp.cos(y) + x))
        return a, b

    jaxpr = hlofront.make_jaxpr(f)(X, Y).jaxpr
    smaller, used = dead_code(jaxpr, [True, False])
    assert used == [True, False]
    (cond,) = conds(smaller)
    assert len(cond.outvars) == 1
    assert [len(b.eqns) for b in cond.params["branches"]] == [1, 1]
    nothing, used = dead_code(jaxpr, [False, False])
    assert not nothing.eqns
    assert used == [False, False]


def test_effects_are_not_dead(capsys):
    def loud(x):
        hlofront.debug.print("x is {}", x[0])
        return x

    f = hlofront.jit(lambda p, x: (lax.cond(p, loud, lambda x: x * 2, x), 1)[1])
    f(True, X)
    f(False, X)
    hlofront.effects_barrier()
    assert capsys.readouterr().out == "x is 0.30000001192092896\n"


def test_ordered_effects_in_branches(capsys):
    def loud(word):
        def branch(x):
            hlofront.debug.print(word + " {}", x, ordered=True)
            return x * 2

        return branch

    @hlofront.jit
    def f(i, x):
        hlofront.debug.print("start", ordered=True)
        x = lax.switch(i, [loud("a"), loud("b"), lambda x: x], x)
        hlofront.debug.print("end {}", x, ordered=True)
        return x

    for i in range(3):
        f(i, 1)
    hlofront.effects_barrier()
    found = capsys.readouterr().out.split("\n")
    assert found == ["start", "a 1", "end 2", "start", "b 1", "end 2", "start", "end 1", ""]


def test_effects_pass_through_derivatives(capsys):
    def loud(x):
        hlofront.debug.print("{}", x)
        return jnp.sin(x)

    f = lambda x: lax.cond(x > 0, loud, lambda x: x * 2, x)
    assert hlofront.grad(f)(0.5) == np.cos(np.float32(0.5))
    hlofront.effects_barrier()
    assert capsys.readouterr().out == "0.5\n"


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.cond(X > 0, jnp.sin, jnp.cos, X), TypeError, "shape .3,.*jnp.where"),
        (lambda: lax.cond(jnp.sin, jnp.sin, jnp.cos, X), TypeError, "boolean or number"),
        (lambda: lax.cond(True, jnp.sin, None, X), TypeError, "callable.*None"),
        (lambda: lax.cond(True, jnp.sin, jnp.cos, "x"), TypeError, "'x'"),
        (
            lambda: lax.cond(True, lambda: {"a": [X, 1]}, lambda: {"a": [X, 1.5]}),
            TypeError,
            r"path \['a'\]\[1\] has type int32\[\] .weakly.*float32\[\].*astype",
        ),
        (
            lambda: lax.cond(True, lambda: (X, Y), lambda: (X[:2], Y)),
            TypeError,
            r"path \[0\] has type float32\[3\].*float32\[2\].*shapes differ",
        ),
        (
            lambda: lax.cond(True, lambda: hlofront.device_put(X, HOST), lambda: X),
            TypeError,
            r"has type float32<host>\[3\].*memories differ.*jax.memory.Space.Device",
        ),
        (
            lambda: lax.cond(True, lambda: {"a": X}, lambda: {"b": X}),
            TypeError,
            r"(?s)pytree structure.*keys \['a'\].*keys \['b'\]",
        ),
        (lambda: lax.switch(0, [lambda: X, lambda: X, lambda: Y[0]]), TypeError, "branch 2"),
        (lambda: lax.switch(0.5, [jnp.sin, jnp.cos], X), TypeError, "integer.*0.5 as float32"),
        (lambda: lax.switch(X > 0, [jnp.sin, jnp.cos], X), TypeError, "scalar.*vmap"),
        (lambda: lax.switch(0, []), ValueError, "at least one"),
        (lambda: lax.switch(0, [1, 2]), TypeError, "sequence of callables"),
        (
            lambda: hlofront.make_jaxpr(lambda i: lax.cond_p.bind(i, X, branches=()))(1.5),
            TypeError,
            "int32",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_messages_name_the_functions():
    def first(x):
        return x

    def second(x):
        return x[:1]

    with pytest.raises(TypeError) as caught:
        lax.cond(True, first, second, X)
    message = str(caught.value)
    assert "true_fun is first at " in message
    assert "false_fun is second at " in message


def test_io_under_a_batched_predicate_is_refused():
    def loud(x):
        io_callback(lambda x: None, None, x)
        return x

    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-cond"):
        hlofront.vmap(lambda p: lax.cond(p, loud, lambda x: x, 1.0))(np.array([True, False]))


def test_values_of_an_ended_trace_are_told():
    leaked = []

    def store(x):
        leaked.append(x)
        return x

    lax.cond(True, store, store, X)
    with pytest.raises(hlofront.errors.UnexpectedTracerError):
        leaked[0] + 1


def test_keys_of_named_axes_reach_into_branches():
    f = lambda x: lax.cond(x > 0, lambda x: x * lax.axis_size("i"), lambda x: x, x)
    found = hlofront.vmap(f, axis_name="i")(X)
    np.testing.assert_allclose(found, np.where(X > 0, X * 3, X))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_derivatives_of_a_batched_switch_are_those_of_the_branches_taken(count):
    branches = [lambda x, power=power: x**power for power in range(1, count + 1)]
    index = jnp.arange(-1, count + 1)
    x = jnp.linspace(0.5, 2.0, count + 2)

    def total(x):
        return hlofront.vmap(lambda i, x: lax.switch(i, branches, x))(index, x).sum()

    power = np.clip(np.arange(-1, count + 1), 0, count - 1) + 1
    by_hand = power * np.asarray(x) ** (power - 1)
    for derive in (hlofront.grad, lambda f: hlofront.jit(hlofront.grad(f))):
        np.testing.assert_allclose(derive(total)(x), by_hand, rtol=1e-5)
