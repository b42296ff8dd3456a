"""jit: what is traced when, static and donated arguments, nesting, and what it refuses."""

import gc
import threading
import weakref

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp


def counting(fun):
    """`fun`, and a list that grows by one at each trace."""
    traces = []

    def counted(*args, **kwargs):
        traces.append(args)
        return fun(*args, **kwargs)

    return counted, traces


def test_traces_once_per_kind_of_arguments():
    counted, traces = counting(lambda x: lax.mul(x, x))
    f = hlofront.jit(counted)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(f(x), x * x)
    np.testing.assert_array_equal(f(x + 1), (x + 1) ** 2)
    assert len(traces) == 1
    f(x[:2])  # another shape
    f(np.arange(3))  # another dtype
    f(2.0)  # a weak scalar
    f(np.float32(2.0))  # a strong one
    assert len(traces) == 5
    f(3.0)
    assert len(traces) == 5


def test_jit_of_one_function_twice_shares_its_traces():
    counted, traces = counting(lambda x: x)
    hlofront.jit(counted)(1.0)
    hlofront.jit(counted)(1.0)
    assert len(traces) == 1


def test_pytrees_go_in_and_out():
    f = hlofront.jit(lambda t, *, k: {"sum": lax.add(t["a"], t["b"][0]), "k": (k, None)})
    out = f({"a": 1.0, "b": [2.0]}, k=np.int32(4))
    assert float(out["sum"]) == 3.0
    assert int(out["k"][0]) == 4 and out["k"][1] is None


def test_outputs_that_are_inputs_constants_and_repeated():
    x = np.ones(2, np.float32)
    a, b, c, d = hlofront.jit(lambda x: (x, x, 3, np.arange(2)))(x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, x)
    assert c.weak_type and int(c) == 3
    np.testing.assert_array_equal(d, [0, 1])


# ---- static arguments


def test_static_by_position_name_and_default():
    counted, traces = counting(lambda x, n, *, scale=1: lax.mul(x, float(n * scale)))
    f = hlofront.jit(counted, static_argnums=1, static_argnames="scale")
    assert float(f(2.0, 3)) == 6.0
    assert float(f(2.0, 3)) == 6.0
    assert float(f(2.0, 4, scale=2)) == 16.0
    assert len(traces) == 2


def test_negative_static_positions_count_from_the_last_argument_of_each_call():
    def which_are_traced(*args):
        traced = [isinstance(x, hlofront.core.Tracer) for x in args]
        return np.array(traced)

    f = hlofront.jit(which_are_traced, static_argnums=-1)
    for _ in range(2):
        assert f(1, 2).tolist() == [True, False]
        assert f(1, 2, 3).tolist() == [True, True, False]
    assert f(1).tolist() == [False]
    with pytest.raises(ValueError, match="must have value greater than or equal to -len"):
        hlofront.jit(which_are_traced, static_argnums=-3)(1, 2)


def test_negative_static_positions_of_optional_arguments():
    def scaled(x, n=3, m=2):
        return lax.mul(x, float(n * m))

    f = hlofront.jit(scaled, static_argnums=(-1, -2))
    assert float(f(2.0, 4, 5)) == 40.0
    assert float(hlofront.jit(scaled, static_argnums=-1)(2.0, 4)) == 16.0


def test_static_argument_given_by_name_is_static_too():
    f = hlofront.jit(lambda x, n: lax.mul(x, float(n)), static_argnums=1)
    assert float(f(2.0, n=3)) == 6.0
    g = hlofront.jit(lambda x, n: lax.mul(x, float(n)), static_argnames="n")
    assert float(g(2.0, 3)) == 6.0


def test_static_values_of_equal_hash_and_other_type_are_told_apart():
    f = hlofront.jit(lambda n: np.float32(1) if n is True else np.float32(2), static_argnums=0)
    assert float(f(True)) == 1.0
    assert float(f(1)) == 2.0
    assert float(f(1.0)) == 2.0


class Touchy:
    """Hashable, and refuses to be compared."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no comparing")


def test_bad_static_arguments():
    f = hlofront.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(1.0, [1])
    f(1.0, Touchy())
    with pytest.raises(ValueError, match=r"comparing|comparable"):
        f(1.0, Touchy())
    assert float(f(5.0, 2)) == 5.0  # and the function still works


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"static_argnums": 5}, ValueError, "only accepts 1 positional"),
        ({"static_argnames": "q"}, ValueError, "invalid argnames"),
        ({"donate_argnums": 3}, ValueError, "only accepts 1 positional"),
        ({"static_argnums": "a"}, TypeError, "integer"),
        ({"static_argnames": 3}, TypeError, "iterable"),
        ({"static_argnums": 0, "donate_argnums": 0}, ValueError, "cannot intersect"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        hlofront.jit(lambda x: x, **options)


@pytest.mark.cpu
def test_shardings_name_the_device():
    device = hlofront.devices()[0]
    sharding = hlofront.device_put(1.0, device).sharding
    f = hlofront.jit(lambda x: lax.add(x, 1.0), in_shardings=sharding, out_shardings=device)
    assert f(1.0).committed and float(f(1.0)) == 2.0
    with pytest.raises(TypeError, match="takes Shardings"):
        hlofront.jit(lambda x: x, in_shardings="x")


def test_jit_of_what_cannot_be_called():
    with pytest.raises(TypeError, match="jit requires a function, got 3"):
        hlofront.jit(3)


# ---- bad arguments and results


def test_an_argument_that_is_no_array_is_named():
    f = hlofront.jit(lambda params, x: x)
    with pytest.raises(TypeError, match=r"at path params\['w'\]"):
        f({"w": "text"}, 1.0)
    with pytest.raises(TypeError, match="object"):
        f(1.0, np.array([object()]))


def test_a_result_that_is_no_array_is_named():
    with pytest.raises(TypeError, match=r"at output component \['k'\].*not a valid JAX type"):
        hlofront.jit(lambda x: {"k": "text"})(1.0)


def test_a_huge_python_int_overflows():
    with pytest.raises(OverflowError):
        hlofront.jit(lambda x: x)(2**40)


def test_missing_and_superfluous_arguments():
    f = hlofront.jit(lambda x: x)
    with pytest.raises(TypeError, match="missing 1 required positional"):
        f()
    with pytest.raises(TypeError, match="takes 1 positional"):
        f(1.0, 2.0)


def test_an_unknown_compiler_option_is_refused_by_xla():
    f = hlofront.jit(lambda x: x, compiler_options={"xla_no_such_flag": True})
    with pytest.raises(hlofront.errors.JaxRuntimeError, match="xla_no_such_flag"):
        f(1.0)


# ---- donation


def test_a_donated_argument_is_gone():
    f = hlofront.jit(lambda x: lax.add(x, 1.0), donate_argnums=0)
    x = hlofront.jit(lambda x: x)(np.ones(3, np.float32))
    np.testing.assert_array_equal(f(x), [2, 2, 2])
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_donation_of_a_buffer_that_no_result_can_use_warns():
    f = hlofront.jit(lambda x: lax.slice(x, (0,), (1,)), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: float32\[3\]"):
        f(np.ones(3, np.float32))


# ---- nesting


def test_nested_jit_is_one_equation_and_one_function():
    inner = hlofront.jit(lambda x: lax.mul(x, 2.0))

    def outer(x):
        return lax.add(inner(x), inner(x))

    program = hlofront.make_jaxpr(outer)(1.0)
    assert [e.primitive.name for e in program.eqns] == ["jit", "jit", "add"]
    assert program.eqns[0].params["jaxpr"] is program.eqns[1].params["jaxpr"]
    text = hlofront.jit(outer).lower(1.0).as_text()
    assert text.count("func.func private") == 1
    assert float(hlofront.jit(outer)(1.0)) == 4.0


def test_a_nested_function_closes_over_traced_values():
    def outer(x, y):
        return hlofront.jit(lambda z: lax.add(z, y))(x)

    assert float(hlofront.jit(outer)(1.0, 2.0)) == 3.0
    assert float(hlofront.jit(outer)(1.0, 5.0)) == 6.0


def test_inline_leaves_no_call():
    inner = hlofront.jit(lambda x: lax.mul(x, 2.0), inline=True)
    program = hlofront.make_jaxpr(lambda x: inner(x))(1.0)
    assert [e.primitive.name for e in program.eqns] == ["mul"]


def test_concrete_calls_inside_a_trace_are_written_down():
    inner = hlofront.jit(lambda x: lax.mul(x, 2.0))
    inner(1.0)  # its executable exists
    program = hlofront.make_jaxpr(lambda x: lax.add(x, inner(1.0)))(1.0)
    assert [e.primitive.name for e in program.eqns] == ["jit", "add"]


def test_ensure_compile_time_eval_runs_now():
    def f(x):
        with hlofront.ensure_compile_time_eval():
            n = int(lax.add(1, 2))
        return lax.mul(x, float(n))

    assert float(hlofront.jit(f)(2.0)) == 6.0


def test_ensure_compile_time_eval_leaves_tracers_to_the_function_around_it():
    def f(x):
        with hlofront.ensure_compile_time_eval():
            sines = hlofront.jit(lambda a: jnp.sin(a) + 1)(jnp.arange(3.0))
            total = lax.scan(lambda c, y: (c + y, None), 0.0, sines)[0]
            assert float(total) == pytest.approx(3 + np.sin(1) + np.sin(2), rel=1e-6)
            kept = int(jnp.nonzero(sines > 1.5)[0][0])
            slope = hlofront.grad(lambda y: y * x)(2.0)
            branch = lax.cond(x > 1, jnp.sin, jnp.cos, x)
            mapped = hlofront.vmap(lambda y: y * x)(jnp.ones(2)).sum()
        return slope + branch + mapped + kept

    expected = 1 + np.cos(1.0) + 2 + 1
    np.testing.assert_allclose(f(1.0), expected, rtol=1e-6)
    np.testing.assert_allclose(hlofront.jit(f)(1.0), expected, rtol=1e-6)
    np.testing.assert_allclose(hlofront.grad(f)(1.0), 3 - np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(hlofront.vmap(f)(jnp.ones(2)), [expected] * 2, rtol=1e-6)
    np.testing.assert_allclose(hlofront.jit(hlofront.vmap(f))(jnp.ones(2)), [expected] * 2, 1e-6)
    carried = lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)[0]
    np.testing.assert_allclose(carried, f(expected), rtol=1e-6)


def test_eval_context_refuses_tracers():
    def f(x):
        with hlofront.core.eval_context():
            return x + 1

    with pytest.raises(hlofront.errors.UnexpectedTracerError):
        hlofront.jit(f)(1.0)


def test_an_inlined_function_that_returns_a_constant_returns_an_array():
    three = hlofront.jit(lambda: 3, inline=True)
    assert hlofront.make_jaxpr(lambda: three().shape)().eqns == ()
    assert hlofront.jit(lambda x: x.reshape(three().shape))(1.0) == 1.0
    both = hlofront.vmap(hlofront.jit(lambda x: (3, x), inline=True), out_axes=(None, 0))
    assert [x.shape for x in both(jnp.ones(2))] == [(), (2,)]


def test_compiler_options_are_for_the_outermost_function():
    f = hlofront.jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": True})
    assert f(1.0) == 2.0
    assert hlofront.vmap(f)(jnp.ones(2)).tolist() == [2.0, 2.0]
    for function in (
        hlofront.jit(f),
        hlofront.jit(hlofront.vmap(f)),
        hlofront.make_jaxpr(f),
        lambda x: lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2),
    ):
        with pytest.raises(ValueError, match="only be passed to top-level"):
            function(jnp.ones(1))


def test_a_token_is_closed_over():
    token = lax.create_token()
    f = hlofront.jit(lambda x: (x + 2, token))
    for _ in range(2):
        result, returned = f(7)
        assert result == 9
        assert type(returned) is type(token)
    nested = hlofront.jit(lambda x: hlofront.jit(lambda y: (y, token))(x)[0])
    assert nested(2.0) == 2.0
    assert hlofront.vmap(lambda x: (x, token), out_axes=(0, None))(jnp.ones(2))[1] is token


def test_broadcasting_to_the_same_shape_adds_no_equation():
    for function in (
        lambda: lax.broadcast(np.float32(3), ()),
        lambda: lax.broadcast(np.arange(2), ()),
        lambda: lax.broadcast_in_dim(3.0, (), ()),
        lambda: lax.expand_dims(np.float32(3), ()),
    ):
        assert hlofront.make_jaxpr(function)().eqns == ()
        assert isinstance(function(), hlofront.Array)


# ---- constants


def test_large_constants_are_arguments_of_the_module():
    big = np.arange(5000, dtype=np.float32)
    small = np.arange(4, dtype=np.float32)
    inner = hlofront.jit(lambda x: lax.add(x, lax.slice(big, (1,), (5,))))
    f = hlofront.jit(lambda x: lax.add(inner(x), lax.mul(x, small)))
    x = np.ones(4, np.float32)
    for _ in range(3):  # by Python, then by C++
        np.testing.assert_array_equal(f(x), x + big[1:5] + x * small)
    text = f.lower(x).as_text()
    assert "tensor<5000xf32>" in text and len(text) < 4000


@pytest.mark.parametrize("first", [0, -7])
@pytest.mark.parametrize("array", [np.asarray, hlofront.numpy.asarray])
def test_large_constants_that_count_are_an_iota_of_the_module(first, array):
    places = array(np.arange(first, first + 1000, dtype=np.int32))
    f = hlofront.jit(lambda x: lax.mul(lax.add(x, places), places))
    x = np.full(1000, 2, np.int32)
    counted = np.asarray(places)
    for _ in range(3):  # by Python, then by C++
        np.testing.assert_array_equal(f(x), (x + counted) * counted)
    text = f.lower(x).as_text()
    assert "stablehlo.iota" in text and "%arg1" not in text


def test_large_constants_that_count_are_narrowed_as_others_are():
    for first in (2**40 + 5, 2**31 - 500, -(2**35)):
        places = np.arange(first, first + 1000)
        result = hlofront.jit(lambda x, places=places: lax.add(x, places))(np.zeros(1000, np.int32))
        np.testing.assert_array_equal(result, places.astype(np.int32))


def test_large_constants_that_do_not_count_by_one_are_arguments():
    for array in (
        np.arange(0, 2000, 2),
        np.arange(1000)[::-1],
        np.arange(1000) // 2,
        np.zeros(1000),
    ):
        f = hlofront.jit(lambda x, array=array: lax.add(x, array.astype(np.int32)))
        assert "%arg1: tensor<1000xi32>" in f.lower(np.zeros(1000, np.int32)).as_text(), array


def test_closed_over_arrays_are_constants_of_the_trace():
    b = hlofront.jit(lambda x: x)(np.array([1, 2, 3]))
    f = hlofront.jit(lambda x: lax.add(x, b))
    np.testing.assert_array_equal(f(np.array([1, 2, 3])), [2, 4, 6])


# ---- modes


def test_disable_jit_runs_python_each_time():
    seen = []
    f = hlofront.jit(lambda x: (seen.append(x), lax.add(x, 1.0))[1])
    f(1.0)
    with hlofront.disable_jit():
        assert float(f(1.0)) == 2.0
        assert float(f(2.0)) == 3.0
    assert len(seen) == 3
    assert seen[-1] == 2.0
    assert float(f(2.0)) == 3.0
    assert len(seen) == 3


def test_x64_is_part_of_the_key():
    f = hlofront.jit(lambda x: lax.add(x, x))
    x = np.ones(2, np.float64)
    assert f(x).dtype == np.float32
    with hlofront.enable_x64(True):
        assert f(x).dtype == np.float64
    assert f(x).dtype == np.float32


def test_no_tracing_refuses_new_programs():
    f = hlofront.jit(lambda x: lax.add(x, x))
    f(1.0)
    with hlofront.no_tracing(True):
        assert float(f(2.0)) == 4.0
        with pytest.raises(RuntimeError, match="no_tracing"):
            f(np.ones(3))


def test_leaks_are_found_when_looked_for():
    kept = []
    f = hlofront.jit(lambda x: (kept.append(x), x)[1])
    with hlofront.checking_leaks(), pytest.raises(Exception, match="still referred to"):
        f(1.0)
    kept.clear()
    hlofront.jit(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(hlofront.errors.UnexpectedTracerError, match="unexpected tracer"):
        lax.add(kept[0], 1.0)


# ---- caches and threads


def test_clear_cache_traces_again():
    counted, traces = counting(lambda x: x)
    f = hlofront.jit(counted)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert len(traces) == 2


def test_clear_caches_clears_all_of_them():
    counted, traces = counting(lambda x: lax.add(x, 1.0))
    f = hlofront.jit(counted)
    f(1.0)
    hlofront.clear_caches()
    assert f._cache_size() == 0
    assert float(f(1.0)) == 2.0
    assert len(traces) == 2


def test_clear_caches_forgets_the_executables_of_jitted_functions_that_are_gone():
    """jit(f) made anew shares the older one's C++ executables, which live as long as f does."""
    counted, traces = counting(lambda x: lax.add(x, 1.0))
    older = hlofront.jit(counted)
    older(1.0)
    del older
    gc.collect()
    hlofront.jit(counted)(1.0)
    assert len(traces) == 1, "what is cleared below is shared indeed"
    gc.collect()
    hlofront.clear_caches()
    assert float(hlofront.jit(counted)(1.0)) == 2.0
    assert len(traces) == 2


def test_functions_are_freed_with_their_programs():
    def make():
        big = np.ones(1000)
        return hlofront.jit(lambda x: lax.add(x, float(big[0])))

    f = make()
    f(1.0)
    reference = weakref.ref(f.__wrapped__)
    del f
    gc.collect()
    assert reference() is None


def test_sixteen_threads_agree():
    counted, _ = counting(lambda x: lax.sin(lax.mul(x, 3.0)))
    f = hlofront.jit(counted)
    results = [None] * 16
    barrier = threading.Barrier(16)

    def work(i):
        barrier.wait()
        results[i] = float(f(float(i)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    np.testing.assert_allclose(results, np.sin(3.0 * np.arange(16)), rtol=1e-5, atol=1e-5)


# ---- as a decorator and a method


def test_decorators_and_methods():
    class Model:
        @hlofront.jit
        def constant(x):
            return lax.mul(x, 2.0)

    @hlofront.jit(static_argnames=("n",))
    def power(x, n):
        """x to the n."""
        return lax.integer_pow(x, n)

    assert float(Model.constant(2.0)) == 4.0
    assert float(power(2.0, 3)) == 8.0
    assert power.__name__ == "power" and power.__doc__ == "x to the n."
    assert power._cache_size() == 1


@pytest.mark.parametrize(
    ("inline", "in_jaxpr", "in_stablehlo"),
    [
        (hlofront.Inline.JAX_EARLY, False, None),
        (hlofront.Inline.JAX_LATE, True, None),
        (hlofront.Inline.XLA_EARLY, True, 'inlineable = "xla_early"'),
        (hlofront.Inline.XLA_LATE, True, 'inlineable = "xla_late"'),
        (hlofront.Inline.AUTO, True, "call @"),
    ],
)
def test_inline_says_where_a_call_is_replaced(inline, in_jaxpr, in_stablehlo):
    inner = hlofront.jit(lambda x: lax.sin(lax.mul(x, 2.0)), inline=inline)
    outer = hlofront.jit(lambda x: inner(x))
    assert ("jit[" in str(outer.trace(1.0).jaxpr)) == in_jaxpr
    text = outer.lower(1.0).as_text()
    assert (in_stablehlo or "call @") in text if in_stablehlo else "call @" not in text
    assert hlofront.jit(hlofront.grad(outer))(0.0) == 2
    assert hlofront.vmap(outer)(np.zeros(2)).tolist() == [0, 0]


def test_a_call_that_is_inlined_late_keeps_its_name():
    inner = hlofront.jit(lax.sin, inline=hlofront.Inline.JAX_LATE)
    text = hlofront.jit(lambda x: inner(x)).lower(1.0).as_text(debug_info=True)
    assert "jit(sin)/sin" in text


@pytest.mark.parametrize("inline", ["jax_late", 1, None])
def test_inline_takes_booleans_and_members_of_inline(inline):
    with pytest.raises(TypeError, match="Invalid inline option"):
        hlofront.jit(lax.sin, inline=inline)


@pytest.mark.parametrize("level", [hlofront.CompilerEffortLevel.O0, "O1", 39])
@pytest.mark.parametrize("option", ["optimization_level", "memory_fitting_level"])
def test_efforts_of_the_compiler_are_levels(level, option):
    assert hlofront.jit(lax.neg, compiler_options={option: level})(1.0) == -1


def test_another_effort_is_refused():
    with pytest.raises(ValueError, match=r"optimization_level is a level of .*O3 \(39\): got 1"):
        hlofront.jit(lax.neg, compiler_options={"optimization_level": 1})(1.0)


def test_threads_compile_beside_each_other(monkeypatch):
    """XLA takes seconds for large programs: two threads wait for each other in the midst of it."""
    from hlofront.bridge import client

    barrier, original = threading.Barrier(2), client.compile_and_load

    def together(*args):
        barrier.wait(30)
        return original(*args)

    monkeypatch.setattr(client, "compile_and_load", together)
    texts = {}

    def compile_one(name, f):
        texts[name] = hlofront.jit(f).lower(np.ones(4, np.float32)).compile().as_text()

    functions = {"first": lambda x: jnp.tanh(x) + 1, "second": lambda x: jnp.exp(x) * 2}
    threads = [threading.Thread(target=compile_one, args=pair) for pair in functions.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not barrier.broken and texts.keys() == functions.keys()
    # The module that a thread compiles is the one that a process of one thread would.
    monkeypatch.setattr(client, "compile_and_load", original)

    def operations(text):
        return [line.partition(", metadata")[0] for line in text.splitlines() if " = " in line]

    for name, f in functions.items():
        alone = hlofront.jit(lambda x, f=f: f(x)).lower(np.ones(4, np.float32)).compile().as_text()
        assert operations(alone) == operations(texts[name])
