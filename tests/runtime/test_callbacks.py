"""Python functions that programs call back: values, order, errors, transformations."""

import contextlib
import io
import logging
import os
import subprocess
import sys
import threading
import time
import traceback
from typing import Any

import numpy as np
import pytest

import hlofront
from hlofront import debug, lax
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import io_callback
from hlofront.runtime.compilation import host_calls
from tests import on_platforms
from tests.conventions.source import ROOT

F32 = hlofront.ShapeDtypeStruct((), np.float32)


def eager(function):
    return function


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [eager, hlofront.jit])
@pytest.mark.parametrize("call", [hlofront.pure_callback, io_callback])
def test_arguments_and_results_are_trees_of_arrays(mode, call):
    seen = []

    def on_host(x, *, scale):
        seen.extend([x, scale["k"]])
        return {"sum": np.asarray(x).sum(), "scaled": [x * scale["k"]]}

    shapes = {"scaled": [hlofront.ShapeDtypeStruct((3,), np.float32)], "sum": F32}
    x = np.arange(3, dtype=np.float32)
    result = mode(lambda x: call(on_host, shapes, x, scale={"k": 2.0}))(x)
    assert all(isinstance(value, hlofront.Array) and not value.weak_type for value in seen)
    assert all(value.devices() == {hlofront.devices("cpu")[0]} for value in seen)
    np.testing.assert_array_equal(result["scaled"][0], 2 * x)
    assert result["sum"].dtype == np.float32 and float(result["sum"]) == 3.0


@pytest.mark.parametrize("dtype", ["bool", "int4", "uint8", "bfloat16", "float8_e5m2", "complex64"])
def test_dtypes_pass_unchanged(dtype):
    x = hlofront.numpy.ones((3, 2), dtype)
    call = hlofront.jit(lambda x: hlofront.pure_callback(lambda x: x, x, x))
    assert call(x).dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(call(x)), np.asarray(x))


def test_layouts_and_empty_arrays():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    shape = hlofront.ShapeDtypeStruct((4, 3, 2), np.float32)
    swapped = hlofront.jit(
        lambda x: hlofront.pure_callback(np.asfortranarray, shape, lax.transpose(x, (2, 1, 0)))
    )
    np.testing.assert_array_equal(swapped(x), x.T)
    empty = np.ones((0, 3), np.float32)
    assert hlofront.jit(lambda x: hlofront.pure_callback(np.asarray, x, x))(empty).shape == (0, 3)


def test_64_bits():
    double = hlofront.ShapeDtypeStruct((), np.float64)
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        hlofront.pure_callback(np.asarray, double, 1.0)
    narrowed = hlofront.jit(lambda x: hlofront.pure_callback(lambda x: np.float64(x), F32, x))
    assert narrowed(0.5).dtype == np.float32
    with hlofront.enable_x64(True):
        wide = hlofront.jit(lambda x: hlofront.pure_callback(np.asarray, double, x))
        assert wide(np.float64(0.1)) == np.float64(0.1)


def test_callbacks_may_compute_with_arrays():
    @hlofront.jit
    def inner(x):
        return lax.dot(x, x)

    x = hlofront.numpy.ones((300, 300))
    outer = hlofront.jit(lambda x: hlofront.pure_callback(inner, x, lax.dot(x, x)))
    assert float(outer(x)[0, 0]) == 300.0**3


def test_callbacks_compute_on_the_host():
    """The device waits for them: what it were to compute for them would wait for it."""
    host = {hlofront.devices("cpu")[0]}
    seen = []

    def on_host(x):
        seen.extend(
            [x, x + 1, hlofront.numpy.ones(3), hlofront.jit(lambda: lax.iota("int32", 3))()]
        )
        return x

    def ask(x):
        debug.callback(on_host, x)
        return hlofront.pure_callback(on_host, x, x)

    x = hlofront.numpy.ones(3)
    for mode in (eager, hlofront.jit):
        hlofront.block_until_ready(mode(ask)(x))
        hlofront.effects_barrier()
    assert len(seen) == 16
    assert all(array.devices() == host for array in seen)
    assert hlofront.numpy.ones(3).devices() == x.devices()


def test_pure_callbacks_may_be_dropped_and_others_may_not():
    calls = []

    @hlofront.jit
    def program(x):
        hlofront.pure_callback(lambda x: calls.append("pure"), None, x)
        io_callback(lambda x: calls.append("io"), None, x)
        return x

    program(1.0).block_until_ready()
    hlofront.effects_barrier()
    assert calls == ["io"]


# ---- printing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [eager, hlofront.jit])
def test_print(mode, capsys):
    @mode
    def program(x, v):
        debug.print("x={} {y:.2f} {what} {v}", x, y=x, what="text", v=v)
        debug.print("{v.shape} {tree[a]} {{}}", v=v, tree={"a": v, "b": None})
        debug.print("nothing")
        return x

    with np.printoptions(precision=2):
        program(0.1, np.float32([1 / 3, 2]))
    hlofront.effects_barrier()
    # Inside a program those that are not ordered come in any order.
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "(2,) [0.33 2.  ] {}",
        "nothing",
        "x=0.10000000149011612 0.10 text [0.33 2.  ]",
    ]


def test_options_in_a_call_of_their_own(capsys):
    printing: Any = debug.print(ordered=True)
    calling: Any = debug.callback(ordered=True)
    printing("{ordered}", ordered=3)
    calling(lambda *, ordered: print(ordered), ordered=4)
    assert capsys.readouterr().out == "3\n4\n"
    for call in (debug.print, debug.callback):
        with pytest.raises(TypeError, match="the first takes only options"):
            call(ordered=True, x=1)


def test_formats_are_checked_where_they_are_written():
    for arguments, names, error, match in (
        (("{}", 1, 2), {}, ValueError, "Unused positional"),
        (("{}", 1), {"x": 2}, ValueError, "Unused keyword"),
        (("{}{}", 1), {}, IndexError, "positional argument 1"),
        (("{x}",), {}, KeyError, "x"),
        (("{0} {}", 1, 2), {}, ValueError, "manual field"),
        ((3,), {}, TypeError, "expected str"),
    ):
        with pytest.raises(error, match=match):
            hlofront.jit(lambda a=arguments, n=names: debug.print(*a, **n))()
    with pytest.raises(TypeError, match="must be callable"):
        debug.callback(3)


def test_unchecked_formats(capsys):
    debug.print("values", 1, x=2, skip_format_check=True)
    assert capsys.readouterr().out == "values 1 x=2\n"


def test_log(caplog):
    with caplog.at_level(logging.INFO, "hlofront"):
        hlofront.jit(lambda x: debug.log("loss {}", x))(3)
        hlofront.effects_barrier()
    (record,) = [r for r in caplog.records if "loss" in r.message]
    assert (record.message, record.filename) == ("loss 3", "test_callbacks.py")


def test_callbacks_take_anything():
    seen = []
    marker = object()
    hlofront.jit(lambda x: debug.callback(seen.append, {"a": x, "b": (marker, "text", None)}))(1.0)
    hlofront.effects_barrier()
    assert seen[0]["b"] == (marker, "text", None) and float(seen[0]["a"]) == 1.0


# ---- order ---------------------------------------------------------------------------------------


def test_ordered_within_and_between_programs(capsys):
    @hlofront.jit
    def printing(x):
        debug.print("a{}", x, ordered=True)
        x = hlofront.jit(lambda x: (debug.print("b{}", x, ordered=True), lax.add(x, 1))[1])(x)
        debug.print("c{}", x, ordered=True)
        return x

    x = 0
    for _ in range(3):
        x = printing(x)
    hlofront.effects_barrier()
    assert capsys.readouterr().out.split() == ["a0", "b0", "c1", "a1", "b1", "c2", "a2", "b2", "c3"]


def test_tokens_in_the_module():
    @hlofront.jit
    def program(x, y):
        io_callback(lambda x: None, None, x, ordered=True)
        inner = hlofront.jit(lambda y: (debug.print("{}", y, ordered=True), y)[1], inline=False)
        return inner(y)

    text = program.lower(np.ones(2, np.float32), 1.0).as_text()
    assert "(%arg0: !stablehlo.token {jax.token = true}, %arg1: !stablehlo.token" in text
    assert "call @_lambda(%arg0, %arg3)" in text
    donating = hlofront.jit(lambda x: (debug.print("{}", x, ordered=True), x)[1], donate_argnums=0)
    assert "tf.aliasing_output = 1" in donating.lower(np.ones(2, np.float32)).as_text()


def test_ordered_callbacks_may_call_programs_with_ordered_callbacks():
    inner = hlofront.jit(lambda x: io_callback(lambda x: x, F32, x, ordered=True))
    outer = hlofront.jit(lambda x: io_callback(inner, F32, x, ordered=True))
    assert [float(outer(float(i))) for i in range(3)] == [0.0, 1.0, 2.0]


def test_threads():
    echo = hlofront.jit(lambda x: io_callback(lambda x: x, F32, x, ordered=True))
    wrong = []

    def work():
        wrong.extend(i for i in range(20) if float(echo(float(i))) != i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hlofront.effects_barrier()
    assert not wrong


def test_barrier_waits():
    done = []

    def slow(x):
        time.sleep(0.05)
        done.append(x)

    busy = hlofront.jit(lambda x: (debug.callback(slow, x), lax.dot(x, x))[1])
    x = np.ones((200, 200), np.float32)
    for _ in range(3):
        x = busy(x)
    hlofront.effects_barrier()
    assert len(done) == 3


def test_what_still_runs_at_the_end_is_waited_for():
    script = (
        "import hlofront as jax, numpy as np, time\n"
        "def late(x): time.sleep(0.1); print('late')\n"
        "f = jax.jit(lambda x: (jax.debug.callback(late, x), x @ x)[1])\n"
        "y = f(f(np.ones((300, 300), 'float32')))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (result.stdout, result.stderr) == ("late\nlate\n", "")


def test_callbacks_on_other_devices_are_waited_for_at_the_end():
    """The result is there on one device when the others still call Python, which XLA would end."""
    script = (
        "import hlofront as jax, numpy as np, time\n"
        "def late(x): time.sleep(0.3 * float(x[0])); print('late', flush=True); return x\n"
        "def f(x): return jax.pure_callback(late, jax.ShapeDtypeStruct((1,), 'float32'), x)\n"
        "mesh, spec = jax.sharding.Mesh(np.array(jax.devices()), 'i'), jax.P('i')\n"
        "f = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))\n"
        "for _ in range(2): f(np.arange(2, dtype='float32')).addressable_shards[0].data\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, 4 * "late\n", "")


# ---- errors --------------------------------------------------------------------------------------


class Mine(Exception):
    pass


def broken(x):
    raise Mine("told by the user")


CALLS = {
    "pure": lambda x: hlofront.pure_callback(broken, F32, x),
    "io": lambda x: io_callback(broken, F32, x),
    "ordered": lambda x: io_callback(broken, F32, x, ordered=True),
}


@pytest.mark.parametrize("mode", [eager, hlofront.jit])
@pytest.mark.parametrize("name", CALLS)
def test_an_exception_is_the_cause_of_the_error(mode, name):
    program = mode(CALLS[name])
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="Mine: told by the user") as caught:
            hlofront.block_until_ready(program(1.0))
        cause = caught.value.__cause__
        assert type(cause) is Mine
        (frame,) = traceback.extract_tb(cause.__traceback__)
        assert (frame.name, frame.filename) == ("broken", __file__)
        assert f"{__file__}:{frame.lineno}" in str(caught.value)
    # Calls of GPUs fail after they have returned, and the barrier tells it once more.
    later = contextlib.suppress(JaxRuntimeError) if on_platforms.current() == "gpu" else None
    with later or contextlib.nullcontext():
        hlofront.effects_barrier()
    # Neither poisons what comes later.
    assert float(hlofront.jit(lambda x: io_callback(lambda x: x, F32, x, ordered=True))(2.0)) == 2.0


def test_debug_callbacks_fail_as_they_are_eagerly():
    with pytest.raises(Mine):
        debug.callback(broken, 1.0)
    with pytest.raises(JaxRuntimeError) as caught:
        hlofront.jit(lambda x: debug.callback(broken, x))(1.0)
        hlofront.effects_barrier()
    assert type(caught.value.__cause__) is Mine
    with pytest.raises(ValueError) as caught:
        debug.print("{:d}", 1.5)
    assert caught.value.args == ("Unknown format code 'd' for object of type 'float'",)


def test_errors_of_programs_that_run_in_the_background():
    def wait(x):
        time.sleep(0.1)
        return np.asarray(x)

    square = np.ones((400, 400), np.float32)
    slow = hlofront.jit(lambda x: hlofront.pure_callback(wait, x, lax.dot(x, x)))

    def failing(x):
        y = lax.dot(x, x)
        return y, io_callback(broken, F32, y[0, 0], ordered=True)

    results = []
    with pytest.raises(JaxRuntimeError) as caught:
        results.append(hlofront.jit(failing)(slow(square))[1])
        np.asarray(results[0])
    assert type(caught.value.__cause__) is Mine
    if results:  # It was not run at once: the barrier tells of it too, and only once.
        with pytest.raises(JaxRuntimeError, match="told by the user"):
            hlofront.effects_barrier()
    hlofront.effects_barrier()
    assert float(hlofront.jit(lambda x: io_callback(lambda x: x, F32, x, ordered=True))(2.0)) == 2.0


@pytest.mark.parametrize("mode", [eager, hlofront.jit])
@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (np.int32(1), "output dtype for return value #0: Expected: float32, Actual: int32"),
        (np.ones(3, np.float32), r"output shape for return value #0: Expected: \(\), Actual: \(3,"),
        ((1.0, 2.0), "number of outputs from callback. Expected: 1, Actual: 2"),
        (None, "Expected: 1, Actual: 0"),
        ("text", "not a valid JAX array type"),
    ],
)
def test_results_are_checked(mode, returned, match):
    with pytest.raises(JaxRuntimeError, match=match):
        called = mode(lambda x: hlofront.pure_callback(lambda x: returned, F32, x))
        hlofront.block_until_ready(called(1.0))


def test_misuse():
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        hlofront.pure_callback(np.asarray, F32, 1.0, vmap_method="parallel")
    with pytest.raises(AttributeError, match="leaves with a shape and a dtype"):
        hlofront.pure_callback(np.asarray, 1.0, 1.0)
    with pytest.raises(TypeError, match=r"the one at args\[1\]\['a'\] is 'text'"):
        io_callback(np.asarray, F32, 1.0, {"a": "text"})
    with pytest.raises(NotImplementedError, match="takes a SingleDeviceSharding"):
        io_callback(np.asarray, F32, 1.0, sharding="here")


# ---- transformations -----------------------------------------------------------------------------


def test_no_derivative_is_known():
    for call, match in (
        (lambda x: hlofront.pure_callback(np.asarray, F32, x), "Pure callbacks do not support JVP"),
        (lambda x: io_callback(np.asarray, F32, x), "IO callbacks do not support JVP"),
    ):
        for transformed in (hlofront.grad(call), hlofront.grad(hlofront.jit(call))):
            with pytest.raises(ValueError, match=match):
                transformed(1.0)
    stopped = hlofront.grad(
        lambda x: hlofront.pure_callback(np.asarray, F32, lax.stop_gradient(x)) + x
    )
    assert float(stopped(1.0)) == 1.0


@pytest.mark.parametrize("ordered", [False, True])
def test_printing_under_derivatives(ordered, capsys):
    def shown(x):
        debug.print("{}", x, ordered=ordered)
        return lax.sin(x)

    for transformed in (
        hlofront.grad(shown),
        hlofront.grad(hlofront.jit(shown)),
        hlofront.jit(hlofront.grad(shown)),
        lambda x: hlofront.jvp(shown, (x,), (x,)),
        lambda x: hlofront.linearize(shown, x),
    ):
        transformed(2.0)
        hlofront.effects_barrier()
        assert capsys.readouterr().out == "2.0\n"


@pytest.mark.parametrize("ordered", [False, True])
def test_printing_under_vmap(ordered, capsys):
    def shown(x, y):
        debug.print("{} {}", x, y, ordered=ordered)
        debug.callback(lambda x: print("same", x), y, ordered=ordered)
        return x

    mapped = hlofront.vmap(shown, in_axes=(1, None))
    for transformed in (mapped, hlofront.jit(mapped)):
        transformed(np.arange(4, dtype=np.int32).reshape(2, 2), 7)
        hlofront.effects_barrier()
        lines = capsys.readouterr().out.splitlines()
        assert sorted(lines) == ["[0 2] 7", "[1 3] 7", "same 7"]
        if ordered:
            assert lines[:2] == ["[0 2] 7", "[1 3] 7"]


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), ())] * 3),
        ("sequential_unrolled", [((), ())] * 3),
        ("expand_dims", [((3,), (1,))]),
        ("broadcast_all", [((3,), (3,))]),
        ("legacy_vectorized", [((3,), ())]),
    ],
)
def test_pure_callback_under_vmap(method, shapes):
    seen = []

    def on_host(x, y):
        seen.append((np.shape(x), np.shape(y)))
        return np.asarray(x) + np.asarray(y)

    def program(x, y):
        return hlofront.pure_callback(on_host, F32, x, y, vmap_method=method)

    x = np.arange(3, dtype=np.float32)
    mapped = hlofront.vmap(program, in_axes=(0, None))
    np.testing.assert_array_equal(mapped(x, 2.0), x + 2)
    assert seen == shapes
    np.testing.assert_array_equal(hlofront.jit(mapped)(x, 2.0), x + 2)
    twice = hlofront.vmap(hlofront.vmap(program), in_axes=(1, 1))
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(twice(rows, rows), 2 * rows.T)


def test_what_vmap_refuses():
    x = np.ones(3, np.float32)
    with pytest.raises(NotImplementedError, match="vmap_method is one of"):
        hlofront.vmap(lambda x: hlofront.pure_callback(np.asarray, F32, x))(x)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        hlofront.vmap(lambda x: io_callback(np.asarray, F32, x, ordered=True))(x)
    doubled = hlofront.vmap(lambda x: io_callback(lambda x: x * 2, F32, x))(x)
    np.testing.assert_array_equal(doubled, 2 * x)


# ---- breakpoints ---------------------------------------------------------------------------------


def test_breakpoint():
    commands = io.StringIO(
        "secret\nsecret * 2\npp x\nup\ny\nup\nup\ndown\nlist\nwhere\nvariables\n1 +\n\nhelp p\nc\n"
    )
    out = io.StringIO()

    def inner(x):
        secret = x + 1
        debug.breakpoint(stdin=commands, stdout=out, num_frames=2)
        return secret

    def outer(y):
        return inner(y * 3)

    assert float(hlofront.jit(outer)(2.0)) == 7.0
    hlofront.effects_barrier()
    told = out.getvalue()
    for text in (
        "->         debug.breakpoint(",
        "(jdb) Array(7., dtype=float32)\n(jdb) Array(14., dtype=float32)",
        "*** This is the outermost frame.",
        "in outer\n      return inner(y * 3)",
        "secret = Array(7., dtype=float32)",
        "*** ",
        "SyntaxError",
        "print its value",
    ):
        assert text in told, told


def test_breakpoint_that_is_left():
    with pytest.raises(SystemExit):
        debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO())
    with pytest.raises(ValueError, match="expected backend 'cli'"):
        debug.breakpoint(backend="web")
    with pytest.raises(ValueError, match="not both"):
        debug.breakpoint(ordered=True, token=1.0)


def test_breakpoint_with_a_token():
    out = io.StringIO()

    @hlofront.jit
    def program(x):
        unused = lax.mul(x, 2.0)  # noqa: F841 (the console sees it)
        return debug.breakpoint(token=x, stdin=io.StringIO("unused\nc\n"), stdout=out)

    assert float(program(2.0)) == 2.0
    assert "Array(4., dtype=float32)" in out.getvalue()


# ---- tokens --------------------------------------------------------------------------------------


def test_programs_take_and_return_tokens():
    token = hlofront.jit(lax.create_token)()
    assert token.block_until_ready() is token
    joined = hlofront.jit(lambda x, *tokens: (lax.after_all(*tokens), lax.add(x, 1)))
    after, x = joined(1, token, lax.create_token())
    assert type(after) is type(token) and int(x) == 2
    assert int(joined(x, after)[1]) == 3


def test_the_hosts_side_of_programs_that_send_and_receive():
    """TPUs hand arrays over by transfers; there is none here, and the host's side is the same."""
    seen = []

    def on_host(x):
        seen.append(x)
        return x * 2, x[:0]

    def calling(x):
        debug.callback(lambda: seen.append("called"))
        return hlofront.pure_callback(on_host, (x, x[:0]), x)

    x = np.ones((2, 3), np.float32)
    lowered = hlofront.jit(calling).trace(x).lower(lowering_platforms=("tpu",))
    client = hlofront.devices("cpu")[0].client
    first, second = lowered._module.callbacks
    failures = host_calls.HostFailures()
    for call in (first, second):
        assert host_calls.host_function(call, client, failures) is not None
    # Something is sent and received where there is nothing.
    (nothing,) = host_calls.side_of(first, failures)(np.zeros(1, np.float32))
    assert nothing.shape == ()
    (doubled,) = host_calls.side_of(second, failures)(x)
    np.testing.assert_array_equal(doubled, 2 * x)
    assert seen[0] == "called" and seen[1].shape == (2, 3)
    channels = [number for call in (first, second) for ids in call.channels for number, _ in ids]
    assert channels == [1, 2, 3, 4]
