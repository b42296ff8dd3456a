"""Programs on which XLA ends the process, or never ends itself: they raise errors instead."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.bridge.xla_faults import FAULTS

SIZES, WINDOWS, CALLS = (
    "sizes before a size of zero",
    "windows of padding",
    "custom calls with names of XLA's own",
)


def test_the_faults_are_in_the_table():
    assert {SIZES, WINDOWS, CALLS} == {each.name for each in FAULTS if each.refused_in}


@pytest.mark.parametrize(
    "program",
    [
        lambda: jnp.broadcast_to(jnp.zeros(0), (2**40, 2**40, 0)),
        lambda: jnp.zeros((2**62, 2**62, 0)),
        lambda: jnp.zeros((2**62, 0)) + 1,
        lambda: jnp.zeros((0, 2**62, 2**62)).transpose(1, 2, 0),
    ],
)
def test_arrays_without_elements_that_xla_cannot_represent_are_refused(program):
    with pytest.raises(ValueError, match="has no elements, but XLA cannot represent"):
        jax.jit(program)()


def test_other_arrays_without_elements_are_made():
    assert jax.jit(lambda: jnp.zeros((0, 2**62, 2**62)))().shape == (0, 2**62, 2**62)
    assert jax.jit(lambda: jnp.zeros((2**40, 0)) + 1)().shape == (2**40, 0)


@pytest.mark.parametrize(
    ("combine", "start"), [(lax.add, 0.0), (lax.max, -np.inf), (lambda a, b: a * b + a, 1.0)]
)
@pytest.mark.parametrize("size", [2**31, 2**62])
def test_windows_of_padding_are_refused(combine, start, size):
    x = jnp.ones((4, 4))
    with pytest.raises(ValueError, match=r"a window of [\d,]+ elements"):
        jax.jit(lambda x: lax.reduce_window(x, start, combine, (size, 1), (1, 1), "SAME"))(x)


@pytest.mark.parametrize(
    "name",
    [
        "PadToStatic",
        "ProductOfElementaryHouseholderReflectors",
        "SliceToDynamic",
        "TopK",
        "__onednn$matmul",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
    ],
)
def test_names_of_xla_are_refused(name):
    x = jnp.ones(3)
    with pytest.raises(ValueError, match="is a name of XLA's own"):
        jax.jit(jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((3,), jnp.float32))).lower(x)


@pytest.mark.parametrize("name", ["Sharding", "SPMDFullToShardShape", "Eigh", "Qr"])
@pytest.mark.parametrize("count", [0, 2])
def test_names_of_xla_are_refused_with_other_numbers_of_operands(name, count):
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(ValueError, match=f"of one operand, and it is called with {count}"):
        jax.jit(call).lower(*[jnp.ones(3)] * count)


def test_a_call_that_fits_is_made():
    call = jax.ffi.ffi_call("Sharding", jax.ShapeDtypeStruct((3,), jnp.float32))
    assert jax.jit(call)(jnp.arange(3.0)).tolist() == [0, 1, 2]


@pytest.mark.slow
def test_without_guards_xla_ends_the_process():
    code = (
        "import hlofront as jax, hlofront.numpy as jnp;"
        "call = jax.ffi.ffi_call('TopK', jax.ShapeDtypeStruct((3,), jnp.float32));"
        "jax.jit(call)(jnp.ones(3))"
    )
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode < 0
