"""A callback that fails in a program over eight devices is the error of the call, which ends.

Where the program sums over devices, a device that left it would make the others wait forever.
"""

import threading

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import io_callback
from hlofront.sharding import AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), (AxisType.Auto,))
ROWS = NamedSharding(mesh, P("x"))


def number(dtype):
    return jax.ShapeDtypeStruct((), dtype)


def refuse(value, *_):
    raise LookupError(f"refused {np.asarray(value).dtype}")


def refuse_on_one(device, value):
    if device == 3:
        refuse(value)
    return value


def pure(x):
    return x.sum() + jax.pure_callback(refuse, number(x.dtype), x[0, 0])


def with_effects(x):
    return x.sum() + io_callback(refuse, number(x.dtype), x[0, 0])


def debugging(x):
    jax.debug.callback(refuse, x[0, 0])
    return x.sum()


def of_a_wrong_shape(x):
    return x.sum() + jax.pure_callback(lambda _: np.zeros(7, np.float32), number(x.dtype), x[0, 0])


def mapped(function):
    return jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)


@mapped
def on_one_device_of_shard_map(x):
    each = jax.pure_callback(refuse_on_one, number(x.dtype), lax.axis_index("x"), x[0, 0])
    return lax.psum(x.sum() + each, "x")


@mapped
def in_each_step_of_a_scan(x):
    def step(total, row):
        each = jax.pure_callback(refuse_on_one, number(x.dtype), lax.axis_index("x"), row[0])
        return total + lax.psum(each, "x"), row

    return lax.scan(step, jnp.float32(0), jnp.concatenate([x, x]))[0]


PROGRAMS = [
    pure,
    with_effects,
    debugging,
    of_a_wrong_shape,
    on_one_device_of_shard_map,
    in_each_step_of_a_scan,
]


def rows():
    return jax.device_put(np.ones((8, 4), np.float32), ROWS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failing_callback_is_the_error_of_the_call(program):
    compiled = jax.jit(program)
    for _ in range(3):
        with pytest.raises(JaxRuntimeError, match="by a function that the program calls") as raised:
            compiled(rows())
        wanted = TypeError if program is of_a_wrong_shape else LookupError
        assert type(raised.value.__cause__) is wanted
    # A later program runs on the same devices.
    assert jax.jit(jnp.sum)(rows()) == 32


def test_a_call_after_the_failed_one_gives_its_result():
    fails = [True, False, True, False]

    def sometimes(value):
        if fails.pop():
            refuse(value)
        return value

    compiled = jax.jit(lambda x: x.sum() + jax.pure_callback(sometimes, number(x.dtype), x[0, 0]))
    for _ in range(2):
        assert compiled(rows()) == 33
        with pytest.raises(JaxRuntimeError, match="refused float32"):
            compiled(rows())


# Loops that end when their callback gives a value of this kind.
LOOPS = {
    "until it is large": (np.int32, lambda value: value < 10),
    "until it is small": (np.int32, lambda value: value > -10),
    "while it is zero": (np.int32, lambda value: value == 0),
    "while it is not": (np.int32, lambda value: value != 0),
    "until a float is large": (np.float32, lambda value: ~(value > 1e30)),
    "until a float is small": (np.float32, lambda value: ~(value < -1e30)),
    "until it is true": (np.bool_, lambda value: ~value),
    "until it is false": (np.bool_, lambda value: value),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_on_the_results_of_a_failing_callback_ends(name):
    dtype, goes_on = LOOPS[name]
    start = (
        np.ones((), dtype)
        if name in ("while it is not", "until it is false")
        else np.zeros((), dtype)
    )

    def program(x):
        def step(state):
            value, total = state
            return jax.pure_callback(refuse, number(dtype), value), total + x.sum()

        return lax.while_loop(lambda state: goes_on(state[0]), step, (start, jnp.float32(0)))

    with pytest.raises(JaxRuntimeError, match="refused"):
        jax.jit(program)(rows())


def test_each_thread_gets_the_errors_of_its_own_programs():
    failing, working = jax.jit(pure), jax.jit(lambda x: x.sum() + jnp.float32(1))
    wrong = []

    def run(program, fails):
        for _ in range(10):
            try:
                program(rows()).block_until_ready()
            except JaxRuntimeError:
                if not fails:
                    wrong.append("raised the error of another thread")
            else:
                if fails:
                    wrong.append("gave a result")

    threads = [
        threading.Thread(target=run, args=(program, program is failing))
        for program in (failing, working, failing, working)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("inner", ["sum", "resharding"])
def test_a_callback_cannot_run_another_program_of_the_same_devices(inner):
    columns = NamedSharding(mesh, P(None, "x"))
    square = jax.device_put(np.ones((8, 8), np.float32), ROWS)
    total, turn = jax.jit(jnp.sum), jax.jit(lambda x: x, out_shardings=columns)
    run = {"sum": lambda: total(square), "resharding": lambda: turn(square)[0, 0]}[inner]
    run()
    program = jax.jit(
        lambda x: x.sum() + jax.pure_callback(lambda _: run(), number(x.dtype), x[0, 0])
    )
    with pytest.raises(JaxRuntimeError, match="would wait for the first to end"):
        jax.jit(program)(rows())


def test_a_callback_computes_on_one_device():
    on_one = jax.jit(jnp.sin)
    program = jax.jit(lambda x: x.sum() + jax.pure_callback(on_one, number(x.dtype), x[0, 0]))
    np.testing.assert_allclose(program(rows()), 32 + np.sin(1), rtol=1e-6)


def test_without_a_sum_the_error_reaches_the_result():
    compiled = jax.jit(lambda x: x + jax.pure_callback(refuse, number(x.dtype), np.float32(0)))
    with pytest.raises(JaxRuntimeError, match="refused float32"):
        jax.block_until_ready(compiled(rows()))
