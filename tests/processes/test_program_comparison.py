"""Programs that differ between processes: the error of each, before they wait forever."""

import pytest

from hlofront.runtime.sharding.first_run import difference
from tests.processes.group import Group

# Each case runs on three processes, one after the other: what follows an error still works.
CASES = """
import time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
jax.distributed.initialize(heartbeat_timeout_seconds=10)
me, devices = jax.process_index(), jax.devices()

def split(array_of_devices, shape=(6, 4)):
    mesh = jax.sharding.Mesh(np.array(array_of_devices), ("x",))
    sharding = jax.NamedSharding(mesh, jax.P("x"))
    ones = np.ones(shape, np.float32)
    return jax.make_array_from_callback(shape, sharding, lambda index: ones[index])

x = split(devices)

@jax.jit
def f(a):
    return a.sum() * 2

@jax.jit
def g(a):
    return a.max() * 2

def same():
    float(jax.jit(lambda a: a @ a.T @ a)(x).sum())

def constants():
    jax.jit(lambda a: (a * (2.0 if me == 1 else 3.0)).sum())(x)

def shapes():
    jax.jit(lambda a: jnp.sum(a + 1))(split(devices, (12, 4) if me == 2 else (6, 4)))

def names_alone():
    if me:
        float(jax.jit(lambda b: jax.named_scope("there")(jnp.sum)(jnp.sin(b)))(x))
    else:
        float(jax.jit(lambda a: jnp.sum(jnp.sin(a)))(x))

def order():
    for h in (f, g) if me else (g, f):
        float(h(x))

def operations():
    jnp.prod(x) if me else jnp.min(x)

def order_of_devices():
    jax.jit(lambda a: jnp.sum(a) * 7)(split(devices[::-1] if me else devices))

def circle():
    first = {0: (0, 1), 1: (1, 2), 2: (0, 2)}[me]
    jnp.sum(split([devices[i] for i in first], (2, 4)))

def one_alone():
    jax.config.update("hlofront_compare_programs_timeout_secs", 2)
    if me == 0:
        float(jax.jit(lambda a: a.sum() * 5)(x))
    else:
        time.sleep(3.5)
    jax.config.update("hlofront_compare_programs_timeout_secs", 100)

def last_batch():
    # Processes 0 and 1 run a program that has run, and process 2 compiles one.
    float(jnp.sum(split(devices, (12, 4) if me == 2 else (6, 4))))

def off():
    with_own = jax.jit(lambda a: a.sum() * (2 + me))
    jax.config.update("hlofront_compare_programs", False)
    assert float(with_own(x)) == 24 * (2 + me)
    jax.config.update("hlofront_compare_programs", True)

for case in (same, constants, shapes, names_alone, order, operations, order_of_devices, circle, off,
             one_alone, same, last_batch):
    try:
        case()
        print(case.__name__, "ok", flush=True)
    except RuntimeError as error:
        print(case.__name__, str(error).replace("\\n", " | "), flush=True)
"""
WANTED = [
    ("same", "ok"),
    ("constants", "process 1 of 3 would run another program than process 0"),
    ("shapes", "process 2 of 3 would run another program than process 0: <lambda>"),
    ("names_alone", "ok"),
    ("order", "processes 1, 2 of 3 would run another program than process 0: f where process 0"),
    ("operations", "processes 1, 2 of 3 would run another program than process 0"),
    ("order_of_devices", "devices ["),
    ("circle", "processes wait for each other at different programs: process 0 waits at the first"),
    ("off", "ok"),
    ("one_alone", ""),
    ("same", "ok"),
    ("last_batch", ""),
]


@pytest.mark.slow
def test_programs_that_differ_are_errors_that_say_how(tmp_path):
    with Group(tmp_path, CASES, 3) as group:
        assert group.wait() == [0, 0, 0], group.outputs()
        for number in range(3):
            lines = group.output(number).splitlines()
            assert [line.split()[0] for line in lines] == [name for name, _ in WANTED]
            for line, (_, text) in zip(lines, WANTED, strict=True):
                assert text in line, group.outputs()
        constants, order, devices = lines[1], lines[4], lines[6]
        assert "constant of %cst: 3.000000e+00 -> 2.000000e+00" in constants
        assert "f where process 0 runs g" in order
        assert "removed operation %0: f32[] reduce_max(%arg0)" in order
        assert "devices [0, 2048, 4096]" in devices and "devices [4096, 2048, 0]" in devices
        assert "process 0 has waited 2 s for processes 1, 2 at" in group.output(0)
        assert "process 2 waits at the first run of sum for process" in group.output(2)


def test_differences_of_two_programs():
    first = """devices [0]
module @jit_f {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    return %arg0 : tensor<3xf32>
  }
}
"""
    assert difference(first, first, ("a", "b")) == ""
    assert difference(first, first.replace("jit_f", "jit_g"), ("a", "b")) == ""
    found = difference(first, first.replace("3xf32", "4xf32"), ("process 0: f", "process 1: f"))
    assert "process 1: f" in found and "4" in found
    found = difference(first, first.replace("[0]", "[1]"), ("process 0", "process 1"))
    assert found == "devices [0] in process 0\ndevices [1] in process 1"
