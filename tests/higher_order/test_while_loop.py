"""while_loop and fori_loop: the staged program, derivatives, batching, and what is refused."""

import gc
import re
import weakref

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.experimental import io_callback
from hlofront.test_util import check_jvp
from hlofront.transforms.simplify import dead_code

X = np.array([0.3, -0.7, 1.2], np.float32)
Y = np.array([1.5, 0.2, -0.4], np.float32)


def loops(jaxpr):
    return [e for e in jaxpr.eqns if e.primitive.name == "while"]


# ---- written down once ---------------------------------------------------------------------------


def test_eager_calls_trace_and_compile_once(compilations):
    traced = []

    def small(s):
        traced.append(s)
        return s[0] < 3

    def step(s):
        traced.append(s)
        return s[0] + 1, s[1] * 2

    for start in range(3):
        _, x = lax.while_loop(small, step, (start, X))
        np.testing.assert_allclose(x, X * 2 ** (3 - start))
    assert len(traced) == 2
    assert compilations.count("while") == 1


def test_eager_ranges_trace_and_compile_once_outside_and_inside_compile_time_eval(compilations):
    traced = []

    def step(i, s):
        traced.append(i)
        return s + i

    for _ in range(2):
        assert lax.fori_loop(0, 4, step, 0) == 6
        with hlofront.ensure_compile_time_eval():
            assert lax.fori_loop(0, 4, step, 0) == 6
    # Inside of the block the step's operations on constants would have been run.
    assert len(traced) == 2
    assert compilations.count("scan") == 2
    dynamic = hlofront.jit(lambda n: (lax.fori_loop(0, n, step, 0), lax.fori_loop(0, n, step, 1)))
    assert dynamic(4) == (6, 7)
    assert len(traced) == 3


def test_what_is_kept_goes_with_the_functions():
    def small(s):
        return s < 3

    def grow(s):
        return s + 1

    def call():
        def own_small(s):
            return s < 4

        def own_grow(s):
            return s + 2

        lax.while_loop(own_small, grow, 0)
        lax.while_loop(small, own_grow, 0)
        lax.fori_loop(0, 2, lambda i, s: own_grow(s), 0)
        return [weakref.ref(own_small), weakref.ref(own_grow)]

    references = call()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_no_tracer_is_left_behind():
    def grow(s):
        return s + 1

    def add(i, s):
        return s + i

    @hlofront.jit
    def f(x, n):
        y = lax.while_loop(lambda s: s < x, grow, 0.0)
        return lax.fori_loop(0, n, add, y), lax.fori_loop(0, n, lambda i, s: s + x, y)

    with hlofront.checking_leaks():
        f(1.5, 3)


def test_members_that_stay_are_not_carried():
    def step(s):
        return {**s, "i": s["i"] + 1, "x": s["x"] * s["scale"]}

    def f(x):
        first = {"i": 0, "end": 4, "x": x, "scale": 2.0}
        return lax.while_loop(lambda s: s["i"] < s["end"], step, first)

    (loop,) = loops(hlofront.make_jaxpr(f)(X))
    # The condition asks for the end, so that it is carried.
    assert len(loop.outvars) == 3
    assert loop.params["body_nconsts"] == 1
    result = f(X)
    assert (result["i"], result["end"], result["scale"]) == (4, 4, 2.0)
    np.testing.assert_allclose(result["x"], X * 16)


def test_a_weak_start_takes_the_dtype_of_the_step():
    assert lax.while_loop(lambda s: s < 3, lambda s: s + 1.5, 0).dtype == np.float32
    assert lax.while_loop(lambda s: s < 3, lambda s: s + np.float16(1), 0).dtype == np.float16
    assert lax.while_loop(lambda s: s < 3, lambda s: s + np.float32(1), 0.0).weak_type is False
    assert lax.while_loop(lambda s: s < 3, lambda s: s + 1, 0).weak_type


def test_keys_and_other_dtypes_in_a_loop():
    def step(s):
        return s[0] + 1, s[1] ^ True, s[2] * 1j, (s[3] << 1).astype(np.uint8)

    first = (0, False, np.complex64(1), np.uint8(1))
    i, flag, z, bits = lax.while_loop(lambda s: s[0] < 3, step, first)
    assert (int(i), bool(flag), complex(z), int(bits)) == (3, True, -1j, 8)


# ---- derivatives ---------------------------------------------------------------------------------


def simple(x, y):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]) * y), (0, x))[1]


def decided_by_values(x, y):
    return lax.while_loop(lambda s: s.sum() < 5, lambda s: s * 1.5 + jnp.abs(y), x)


def in_each_other(x, y):
    def outer(s):
        i, x = s
        _, x = lax.while_loop(
            lambda t: t[0] < i,
            lambda t: (t[0] + 1, lax.cond(t[0] > 0, jnp.cos, lambda z: z * y, t[1])),
            (0, x),
        )
        return i + 1, x

    return lax.while_loop(lambda s: s[0] < 4, outer, (0, x))[1]


def in_scan_and_jit(x, y):
    @hlofront.jit
    def f(c):
        return lax.while_loop(lambda s: s.sum() < 2, lambda s: s * 1.5 + 1, c)

    return lax.scan(lambda c, a: (f(c) * a, c.sum()), x, y)


def dynamic_range(x, y):
    return lax.fori_loop(0, jnp.int32(x[2] * 3), lambda i, s: jnp.sin(s) * y + i, x)


FUNCTIONS = [simple, decided_by_values, in_each_other, in_scan_and_jit, dynamic_range]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_forward_derivatives(f):
    check_jvp(
        hlofront.jit(f), lambda p, t: hlofront.jvp(hlofront.jit(f), p, t), (X, Y), 1e-2, 1e-2, 1e-3
    )


@pytest.mark.parametrize("f", FUNCTIONS)
def test_linearized_is_the_derivative(f):
    @hlofront.jit
    def both(x, y):
        _, moved = hlofront.jvp(f, (x, y), (y, x))
        return moved, hlofront.linearize(f, x, y)[1](y, x)

    direct, linear = both(X, Y)
    for a, b in zip(hlofront.tree.leaves(direct), hlofront.tree.leaves(linear), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("f", FUNCTIONS)
def test_batched_is_one_by_one(f):
    xs = np.stack([X, X * 0.5, X + 0.5, np.abs(Y)])
    ys = np.stack([Y, X, -Y, Y * 2])

    def tangents(x, y):
        return hlofront.jvp(f, (x, y), (y, x))[1]

    for transformed in (f, tangents):
        one = hlofront.jit(transformed)
        for axes, args in {(0, 0): (xs, ys), (0, None): (xs, Y), (None, 0): (X, ys)}.items():
            found = hlofront.jit(hlofront.vmap(transformed, axes))(*args)
            for i in range(4):
                own = [a if axis is None else a[i] for a, axis in zip(args, axes, strict=True)]
                leaves = hlofront.tree.leaves(found), hlofront.tree.leaves(one(*own))
                for a, b in zip(*leaves, strict=True):
                    np.testing.assert_allclose(a[i], b, rtol=1e-4, atol=1e-5)


def test_second_order_forward():
    f = lambda x: simple(x, Y).sum()
    second = hlofront.jit(hlofront.jacfwd(hlofront.jacfwd(f)))(X)
    step = 1e-2
    first = hlofront.jit(hlofront.jacfwd(f))
    rows = [(first(X + step * d) - first(X - step * d)) / (2 * step) for d in np.eye(3, dtype="f4")]
    np.testing.assert_allclose(second, np.stack(rows), rtol=2e-2, atol=1e-3)


def test_reverse_mode_is_refused_with_what_to_use():
    for f in (
        lambda x: simple(X * x, Y).sum(),
        lambda x: hlofront.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s * x, 1.0))(3).sum(),
    ):
        with pytest.raises(ValueError, match="Reverse-mode") as caught:
            hlofront.grad(lambda x: jnp.sum(f(x)))(X[0])
        for word in ("lax.scan", "lax.fori_loop", "custom_vjp", "custom_root", "jacfwd"):
            assert word in str(caught.value)


def test_reverse_mode_past_a_loop():
    def f(x):
        n = lax.while_loop(lambda n: n < x * 3, lambda n: n + 1, 0)
        kept = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (1, x))[1]
        unused = lax.while_loop(lambda s: s < 3, lambda s: s * 2, jnp.abs(x) + 0.1)
        return x * n + kept + 0 * lax.stop_gradient(unused)

    assert hlofront.grad(f)(1.5) == 6.0


def test_static_ranges_have_all_derivatives():
    f = lambda x: lax.fori_loop(0, 3, lambda i, s: jnp.sin(s) * x, x)
    x = np.float32(0.8)
    step = 1e-2
    found = hlofront.grad(f)(x)
    np.testing.assert_allclose(found, (f(x + step) - f(x - step)) / (2 * step), rtol=1e-2)


# ---- batching ------------------------------------------------------------------------------------


def test_a_predicate_for_all_stays_one():
    def f(x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]

    (loop,) = loops(hlofront.make_jaxpr(hlofront.vmap(f, (0, None)))(X, 3))
    assert loop.params["cond_jaxpr"].out_avals[0].shape == ()
    assert [v.aval.shape for v in loop.outvars] == [(), (3,)]


def test_examples_that_have_ended_stay():
    count = hlofront.vmap(
        lambda n: lax.while_loop(lambda s: s[1] > 0, lambda s: (s[0] + 1, s[1] - 1), (0, n))
    )
    counted, left = count(np.array([3, 0, 7, -2]))
    assert counted.tolist() == [3, 0, 7, 0]
    assert left.tolist() == [0, 0, 0, -2]


def test_two_batch_axes():
    def f(x, y):
        return lax.while_loop(lambda s: s < y, lambda s: s + x, 0.0)

    xs, ys = np.array([1.0, 2.0, 0.5], np.float32), np.array([4.0, 1.2], np.float32)
    found = hlofront.vmap(hlofront.vmap(f, (0, None)), (None, 0))(xs, ys)
    np.testing.assert_allclose(found, np.ceil(ys[:, None] / xs) * xs)
    outer = hlofront.vmap(
        hlofront.vmap(lambda x, y, z: (f(x, y), z), (0, 0, None)), (None, None, 0)
    )
    assert outer(xs[:2], ys, xs)[0].shape == (3, 2)

    # The outer axis is not one of the condition's.
    def g(x, y, z):
        return lax.while_loop(lambda s: s[0] < y, lambda s: (s[0] + x, s[1] * z), (0.0, z))[1]

    found = hlofront.vmap(hlofront.vmap(g, (0, None, None)), (None, None, 0))(xs, 2.0, ys)
    powers = np.ceil(2.0 / xs) + 1
    np.testing.assert_allclose(found, ys[:, None] ** powers, rtol=1e-5)


# ---- less of it ----------------------------------------------------------------------------------


def test_dead_code():
    def f(x, y):
        return lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2, s[2] + s[1], s[3] * y), (0, x, x, x)
        )

    jaxpr = hlofront.make_jaxpr(f)(X, Y).jaxpr
    for used, left in {
        (False, True, False, False): 2,
        (False, False, True, False): 3,
        (False, False, False, True): 2,
        (True, False, False, False): 1,
    }.items():
        smaller, _ = dead_code(jaxpr, used)
        (loop,) = loops(smaller)
        assert len(loop.outvars) == left
        assert loop.params["body_nconsts"] == used[3]
    nothing, used = dead_code(jaxpr, [False] * 4)
    assert not nothing.eqns
    assert used == [False, False]


# ---- effects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("place", ["body", "condition"])
def test_effects(capsys, ordered, place):
    def show(s):
        hlofront.debug.print("{}", s, ordered=ordered)

    @hlofront.jit
    def f(n):
        def condition(s):
            if place == "condition":
                show(s)
            return s < n

        def body(s):
            if place == "body":
                show(s)
            return s + 1

        return lax.while_loop(condition, body, 0)

    assert f(2) == 2
    hlofront.effects_barrier()
    wanted = "0\n1\n" if place == "body" else "0\n1\n2\n"
    assert sorted(capsys.readouterr().out) == sorted(wanted)


def test_ordered_effects_under_vmap(capsys):
    def condition(s):
        hlofront.debug.print("{}", s, ordered=True)
        return s < 2

    found = hlofront.vmap(lambda n: lax.while_loop(condition, lambda s: s + 1, n))(np.arange(3))
    hlofront.effects_barrier()
    assert found.tolist() == [2, 2, 2]
    assert capsys.readouterr().out.split() == "0 1 2 1 2 2 2 2 2".split()


def test_effects_happen_once_under_linearize(capsys):
    def body(s):
        hlofront.debug.print("{}", s[0], ordered=True)
        return s[0] + 1, s[1] * 2

    f = lambda x: lax.while_loop(lambda s: s[0] < 2, body, (0, x))[1]
    _, linear = hlofront.linearize(f, 1.0)
    assert linear(1.0) == 4.0
    hlofront.effects_barrier()
    assert capsys.readouterr().out == "0\n1\n"


def test_io_under_a_batched_predicate_is_refused():
    def body(s):
        io_callback(lambda s: None, None, s)
        return s + 1

    with pytest.raises(NotImplementedError, match="IO effects not supported in while_loop"):
        hlofront.vmap(lambda n: lax.while_loop(lambda s: s < 2, body, n))(np.arange(3))


# ---- lowering ------------------------------------------------------------------------------------


def test_what_is_read_is_not_carried():
    def f(x, y):
        return lax.while_loop(lambda s: s[0] < y, lambda s: (s[0] + 1, s[1] * y * x), (x, x))

    text = hlofront.jit(f).lower(1.0, 2.0).as_text()
    (line,) = [line for line in text.splitlines() if "stablehlo.while" in line]
    assert len(re.findall("iterArg", line)) == 2
    assert hlofront.jit(f)(1.0, 2.0) == (2.0, 2.0)


def test_large_constants_reach_into_loops():
    table = np.arange(1000, dtype=np.float32)

    @hlofront.jit
    def f(n):
        inner = hlofront.jit(lambda s: s + table[3])
        return lax.while_loop(lambda s: s < n, lambda s: inner(s) + jnp.sum(table[:2]), 0.0)

    assert f(8.0) == 8.0


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.while_loop(1, lambda s: s, X), TypeError, "callable.*1"),
        (lambda: lax.while_loop(lambda s: s, lambda s: s, 1), TypeError, "boolean scalar.*x > 0"),
        (lambda: lax.while_loop(lambda s: s > 0, lambda s: s, X), TypeError, "jnp.any"),
        (lambda: lax.while_loop(lambda s: (), lambda s: s, X), TypeError, "pytree"),
        (
            lambda: lax.while_loop(
                lambda s: True, lambda s: {"a": [s["a"][0], X[0]]}, {"a": [X, X]}
            ),
            TypeError,
            r"s\['a'\]\[1\] is given as float32\[3\] and returned as float32\[\]",
        ),
        (
            lambda: lax.while_loop(lambda s: True, lambda s: s * 1.5, jnp.int32(1)),
            TypeError,
            r"int32\[\] and returned as float32.*weakly.*astype\('int32'\)",
        ),
        (
            lambda: lax.while_loop(lambda s: True, lambda s: (s[0],), (X, X)),
            TypeError,
            "(?s)pytree structure.*tuple of 2.*tuple of 1",
        ),
        (
            lambda: lax.fori_loop(
                0, 3, lambda i, s: hlofront.device_put(s, hlofront.memory.Space.Host), X
            ),
            TypeError,
            r"given as float32\[3\] and returned as float32<host>\[3\].*in different memories",
        ),
        (lambda: lax.fori_loop(0, 3, "f", X), TypeError, "callable.*'f'"),
        (lambda: lax.fori_loop(0, 3, lambda i, s: s[:1], X), TypeError, r"loop_carry\[1\]"),
        (lambda: lax.fori_loop(0, 3.5, lambda i, s: s, X), TypeError, "equal types, got int32"),
        (
            lambda: hlofront.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s, X, unroll=2))(3),
            ValueError,
            "statically known",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
