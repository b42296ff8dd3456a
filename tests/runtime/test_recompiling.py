"""Why a function is recompiled, reported or forbidden; and that no program is kept alive by it."""

import functools
import gc
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.runtime.compilation import recompilation

HERE = pathlib.Path(__file__).name
x = np.ones((8, 3), np.float32)
told_from = options["hlofront_warn_recompiles"]


SOURCE = """
def f(x, n=1, *, scale=1.0):
    return jnp.tanh(x["a"] if isinstance(x, dict) else x)
"""
numbers = itertools.count(1)


def fresh(**options):
    """A function that nothing was compiled for, of its own code."""
    space = {"jnp": jnp}
    exec(SOURCE, space)
    # Functions of one text and line are taken for one function that is defined again.
    space["f"].__code__ = space["f"].__code__.replace(co_firstlineno=next(numbers))
    return jax.jit(space["f"], **options)


def why(first, second, **options):
    """The reason that is given for the second of two calls."""
    f = fresh(**options)
    first(f)
    second(f)
    return f.cache_report().entries[-1].why


# ---- causes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "static", "wanted"),
    [
        (lambda f: f(x), lambda f: f(x[:7]), (), "x: f32[8,3] -> f32[7,3]"),
        (lambda f: f(x), lambda f: f(x[0]), (), "x: f32[8,3] -> f32[3]"),
        (lambda f: f(x), lambda f: f(x.astype(np.int32)), (), "x: f32[8,3] -> i32[8,3]"),
        (
            lambda f: f(1.0),
            lambda f: f(np.float32(1)),
            (),
            "x: f32[] weakly typed -> f32[] strongly typed",
        ),
        (lambda f: f(x, 3), lambda f: f(x, 4), ("n",), "static n: 3 -> 4"),
        (lambda f: f(x, 3), lambda f: f(x, n=3), ("n",), "static n: not given -> 3"),
        (lambda f: f(x, 3), lambda f: f(x, 3.0), ("n",), "static n: 3 -> 3.0"),
        (
            lambda f: f({"a": x}),
            lambda f: f({"a": x, "mask": x}),
            (),
            "tree: x gained key 'mask'",
        ),
        (lambda f: f({"a": x, "b": x}), lambda f: f({"a": x}), (), "tree: x lost key 'b'"),
        (
            lambda f: f({"a": x, "b": (x,)}),
            lambda f: f({"a": x, "b": (x, x)}),
            (),
            "tree: x['b'] gained [1]",
        ),
        (lambda f: f(x), lambda f: f(x, scale=2.0), (), "tree: the call gained scale"),
    ],
)
def test_what_differs_is_named(first, second, static, wanted):
    assert wanted in why(first, second, static_argnames=static)


class Value:
    """A static argument that can be changed, with the hash that a function returns for it."""

    def __init__(self, number, hashed=lambda self: self.number):
        self.number, self.hashed = number, hashed

    def __eq__(self, other):
        if self.number is None:
            raise ValueError("no number to compare")
        return self.number == other.number

    def __hash__(self):
        return self.hashed(self)

    def __repr__(self):
        return f"Value({self.number})"


def test_equal_static_arguments_of_other_hashes():
    def call(f):
        f(x, Value(1, id))

    wanted = "n: Value(1) equals the value of an earlier call, and its hash differs"
    assert wanted in why(call, call, static_argnames="n")
    wanted = "scale: Value(1) equals the value of an earlier call, and its hash differs"
    kept = [Value(1, id), Value(1, id)]
    by_name = [lambda f, each=each: f(x, scale=each) for each in kept]
    assert wanted in why(*by_name, static_argnames="scale")
    in_tuples = [lambda f, each=each: f(x, (each, 2)) for each in kept]
    assert "n: (Value(1), 2) equals the value" in why(*in_tuples, static_argnames="n")


def test_a_static_argument_that_was_changed_after_its_call():
    value = Value(1)
    f = fresh(static_argnames="n")
    f(x, value)
    f(x, Value(5))
    value.number = 2
    f(x, Value(1))
    f(x, value)
    *_, of_one, of_two = (entry.why for entry in f.cache_report().entries)
    assert of_one == "static n: Value(5) -> Value(1)"
    assert "n: Value(2) is the object of an earlier call, and its hash has changed since" in of_two
    f = fresh(static_argnames="n")
    f(x, value)
    value.number = 3
    f(x, Value(2))
    why = f.cache_report().entries[-1].why
    assert why.endswith(
        "Value(3) -> Value(2), where the earlier value has another hash now than at its call"
    )


def test_unequal_static_arguments_of_one_text():
    class Plain:
        def __repr__(self):
            return "plain"

    def redefined():
        return type("Value", (Value,), {"__eq__": object.__eq__, "__hash__": object.__hash__})(1)

    for make, wanted in (
        (Plain, "which defines no `__eq__` to compare them by"),
        (redefined, "of two classes of the name"),
        (lambda: float("nan"), "nan -> nan, which are unequal by `__eq__`"),
    ):
        assert wanted in why(*[lambda f: f(x, make())] * 2, static_argnames="n")


def test_errors_of_static_arguments_methods_do_not_fail_the_call():
    class Mute(Value):
        def __repr__(self):
            raise RuntimeError

    numbers = itertools.count()

    def call(f):
        f(x, Mute(None, lambda self: next(numbers)))

    told = why(call, call, static_argnames="n")
    assert "Mute whose `__repr__` raises RuntimeError>" in told
    assert told.endswith("which cannot be compared: ValueError: no number to compare")


def test_options_set_again_to_the_same_value():
    def allowing(f):
        with jax.numpy_rank_promotion("allow"):
            f(x)

    wanted = (
        "config: jax_numpy_rank_promotion 'allow' (the default) -> 'allow' (set for the thread)"
    )
    assert why(lambda f: f(x), allowing) == wanted
    before = jax.config.jax_numpy_rank_promotion
    jax.config.update("jax_numpy_rank_promotion", "raise")
    try:

        def raising(f):
            with jax.numpy_rank_promotion("raise"):
                f(x)

        assert why(lambda f: f(x), raising).endswith("'raise' (set for the process and the thread)")
    finally:
        jax.config.update("jax_numpy_rank_promotion", before)


def test_options_are_named():
    def with_x64(f):
        with jax.enable_x64(True):
            f(x)

    assert why(lambda f: f(x), with_x64) == "config: jax_enable_x64 False -> True"

    def precisely(f):
        with jax.default_matmul_precision("highest"):
            f(x)

    wanted = "config: jax_default_matmul_precision None -> 'highest'"
    assert why(lambda f: f(x), precisely) == wanted


def test_several_differences_are_told_together():
    reason = why(lambda f: f(x, 1), lambda f: f(x[:1], 2), static_argnames="n")
    assert reason == "x: f32[8,3] -> f32[1,3]; static n: 1 -> 2"


def test_the_nearest_program_is_compared_with():
    f = fresh(static_argnames="n")
    f(x, 1)
    f(x[:2], 2)
    f(x[:2], 3)
    assert f.cache_report().entries[-1].why == "static n: 2 -> 3"


def test_a_new_function_object_each_call():
    def call():
        return jax.jit(lambda x: x * 3)

    call()(x)
    again = call()
    again(x)
    assert "a new function object each call" in again.cache_report().entries[-1].why
    with jax.no_recompile(), pytest.raises(jax.errors.RecompilationError, match="new function obj"):
        jax.jit(functools.partial(call().__wrapped__))(x)


def test_a_program_that_was_forgotten():
    f = fresh()
    f(x)
    f.clear_cache()
    f(x)
    assert "forgotten" in f.cache_report().entries[-1].why


def test_programs_are_forgotten_while_other_threads_jit_functions():
    is_over, interval = threading.Event(), sys.getswitchinterval()

    def keep_making():
        made = []
        while not is_over.is_set():
            made.append(jax.jit(lambda x: x))
            if len(made) > 1000:
                made.clear()

    makers = [threading.Thread(target=keep_making) for _ in range(2)]
    sys.setswitchinterval(1e-6)
    try:
        for maker in makers:
            maker.start()
        for _ in range(500):
            jax.clear_caches()
    finally:
        is_over.set()
        for maker in makers:
            maker.join()
        sys.setswitchinterval(interval)
    assert fresh()(x).shape == x.shape


def test_the_first_program_has_no_reason():
    f = fresh()
    f(x)
    assert [entry.why for entry in f.cache_report().entries] == ["the first"]


# ---- the line on stderr --------------------------------------------------------------------------


def test_a_line_at_the_nth_recompilation_of_a_call_site(capsys):
    f = fresh()
    with told_from(3):
        for size in range(1, 9):
            f(x[:size])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert f"{HERE}:" in lines[0] and "f is compiled again, for the 3rd time here" in lines[0]
    assert "x: f32[3,3] -> f32[4,3]" in lines[0]
    assert "for the 6th time here" in lines[1] and "HLOFRONT_WARN_RECOMPILES=0" in lines[1]


def test_call_sites_are_counted_apart_and_silence_is_kept(capsys):
    f = fresh()
    with told_from(2):
        f(x[:1])
        f(x[:2])
        f(x[:3])
    with told_from(0):
        for size in range(4, 8):
            f(x[:size])
    assert capsys.readouterr().err == ""


def test_nothing_is_told_of_calls_inside_of_programs(capsys):
    inner = jax.jit(lambda x: x + 1)
    with told_from(1):
        jax.jit(lambda x: inner(x) + inner(x[0]) + inner(x[0, 0]))(x)
    assert capsys.readouterr().err == ""


def test_explained_in_the_log(caplog):
    f = fresh()
    with jax.explain_cache_misses(True), caplog.at_level("WARNING", "hlofront"):
        f(x)
        f(x[:2])
    assert "x: f32[8,3] -> f32[2,3]" in caplog.text


# ---- guards --------------------------------------------------------------------------------------


def test_no_recompile_as_a_context_manager_and_a_decorator():
    f = fresh()
    with jax.no_recompile():
        f(x)  # the first is allowed
        f(x + 1)
        with pytest.raises(jax.errors.RecompilationError) as caught:
            f(x[:5])
    assert f"{HERE}:" in str(caught.value) and "x: f32[8,3] -> f32[5,3]" in str(caught.value)
    assert len(f.cache_report().entries) == 1  # refused before anything is traced

    @jax.no_recompile()
    def train():
        return f(x[:5])

    with pytest.raises(jax.errors.RecompilationError):
        train()
    assert f(x[:5]).shape == (5, 3)


def test_max_compiles():
    f = fresh()
    with jax.max_compiles(2):
        f(x), f(x[:1]), f(x), jnp.cos(x[:7])  # eager operations do not count
        with pytest.raises(jax.errors.RecompilationError, match=r"(?s)at most 2 .*earlier ones:"):
            f(x[:2])
    with jax.max_compiles(0), pytest.raises(jax.errors.RecompilationError):
        fresh()(x)
    with pytest.raises(ValueError, match="got -1"):
        jax.max_compiles(-1)


def test_guards_nest_and_end():
    f = fresh()
    with jax.max_compiles(5), jax.no_recompile():
        f(x)
    f(x[:1])
    with jax.max_compiles(1):
        f(x[:2])
        with jax.max_compiles(5), pytest.raises(jax.errors.RecompilationError, match="at most 1"):
            f(x[:3])


def test_guards_are_of_their_thread():
    f = fresh()
    f(x)
    with jax.no_recompile():
        thread = threading.Thread(target=lambda: f(x[:4]))
        thread.start()
        thread.join()
    assert f._cache_size() == 2


# ---- reports -------------------------------------------------------------------------------------


def test_cache_report_and_timings():
    f = fresh(static_argnames="n")
    f(x, 1)
    f(x, n=1)
    report = f.cache_report()
    assert report.executables == 2 and len(report.entries) == 2
    assert report.entries[0].arguments == "x: f32[8,3], static n=1"
    times = f.timings()
    assert times.trace > 0 and times.lower > 0 and times.compile > 0 and times.load == 0
    assert sum(report.seconds_by_cause.values()) == pytest.approx(sum(times))
    assert "2 programs" in str(report) and "static n" in str(report)
    f.clear_cache()
    assert f.cache_report().entries == () and sum(f.timings()) == 0


# ---- memory and threads --------------------------------------------------------------------------


def test_short_lived_functions_leave_nothing_behind():
    def make(i):
        f = jax.jit(lambda x: x * i)
        f.eval_shape(x)
        return weakref.ref(f.__wrapped__)

    make(0)
    gc.collect()
    tables, seen = len(recompilation._seen), len(recompilation._sites)
    references = [make(i) for i in range(2_000)]
    gc.collect()
    assert not any(reference() is not None for reference in references)
    assert len(recompilation._seen) <= tables + 1 and len(recompilation._sites) <= seen + 1


def test_compiled_functions_are_let_go():
    def make(i):
        f = jax.jit(lambda x: x * i)
        f(x)
        return weakref.ref(f.__wrapped__)

    references = [make(i) for i in range(5)]
    gc.collect()
    assert not any(reference() is not None for reference in references)


def test_sixteen_threads_compile_a_new_function_once():
    traces = []

    @jax.jit
    def f(x):
        traces.append(threading.get_ident())
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x)

    barrier = threading.Barrier(16)
    results = [None] * 16

    def run(place):
        barrier.wait()
        results[place] = np.asarray(f(x))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(traces) == 1
    assert all(np.array_equal(r, results[0]) for r in results)
    (entry,) = f.cache_report().entries
    assert entry.timings.compile > 0


def test_two_functions_that_call_each_other_in_two_threads():
    depth = threading.local()

    @jax.jit
    def f(x):
        return g(x) + 1 if getattr(depth, "left", 1) else x

    @jax.jit
    def g(x):
        depth.left = 0
        return f(x) * 2 if getattr(depth, "more", 1) else x

    barrier = threading.Barrier(2)
    done = []

    def run(function):
        barrier.wait()
        done.append(np.asarray(function(x)))

    threads = [threading.Thread(target=run, args=(function,)) for function in (f, g)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 2


def test_another_device_is_named():
    code = (
        "import hlofront as jax, numpy as np\n"
        "f = jax.jit(lambda x: x * 2)\n"
        "a, b = (jax.device_put(np.ones(3), d) for d in jax.devices())\n"
        "f(a), f(b), f(b)\n"
        "with jax.no_recompile():\n"
        "    f(a)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "JAX_NUM_CPU_DEVICES": "2",
            "HLOFRONT_WARN_RECOMPILES": "1",
            "PYTHONPATH": str(pathlib.Path(__file__).parents[2]),
        },
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "compiled again" in line]
    assert "sharding: cpu:0 -> cpu:1" in line.lower().replace("cpudevice(id=0)", "cpu:0"), line


def test_listeners_hear_of_recompilations():
    heard = []

    def listen(event, **metadata):
        heard.append((event, metadata))

    f = fresh()
    f(x)
    jax.monitoring.register_event_listener(listen)
    try:
        f(x[:1])
    finally:
        jax.monitoring.unregister_event_listener(listen)
    assert ("/hlofront/recompile", {"fun_name": "f"}) in heard
