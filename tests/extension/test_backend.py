"""jax.extend.backend: clients, their caches and XLA's compile options."""

import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
from hlofront.extend import backend
from hlofront.interpreters import pxla


def test_clients_by_platform():
    clients = backend.backends()
    assert clients["cpu"] is backend.get_backend("cpu") is backend.get_backend()
    assert backend.get_default_device() == jax.devices()[0]
    version = backend.backend_xla_version("cpu")
    assert version is None or version > 0
    with pytest.raises(RuntimeError, match="nope"):
        backend.get_backend("nope")


FORGOTTEN = """
import functools
import hlofront as jax
from hlofront.extend import backend

@functools.lru_cache
def devices_of(platform):
    calls.append(platform)
    return jax.devices(platform)

calls = []
backend.register_backend_cache(devices_of, "devices by platform")
first = devices_of("cpu")
assert devices_of("cpu") is first and calls == ["cpu"]
backend.clear_backends()
assert devices_of("cpu")[0] is not first[0] and calls == ["cpu", "cpu"]
"""


def test_a_cache_goes_with_the_clients():
    # In a process of its own, as arrays of other tests stay with the clients that are forgotten.
    subprocess.run([sys.executable, "-c", FORGOTTEN], check=True)


def test_a_cache_can_be_emptied():
    with pytest.raises(TypeError, match="cache for numbers has no method cache_clear"):
        backend.register_backend_cache(print, "numbers")


def test_compile_options():
    options = backend.get_compile_options(
        2, 1, [0, 1], env_options_overrides={"xla_embed_ir_in_executable": "true"}
    )
    assert options.num_replicas == 2 and options.num_partitions == 1
    assert options.device_assignment.replica_count() == 2
    # The guards against faults of XLA follow.
    assert options.env_option_overrides[0] == ("xla_embed_ir_in_executable", "true")
    quiet = backend.get_compile_options(1, 1, fdo_profile=b"profile", detailed_logging=False)
    assert quiet.executable_build_options.fdo_profile == b"profile"
    assert not quiet.executable_build_options.debug_options.xla_detailed_logging
    with pytest.raises(ValueError, match="device assignment"):
        backend.get_compile_options(1, 1, [0, 1])


def test_compiled_programs_are_forgotten():
    traces = []

    @jax.jit
    def f(x):
        traces.append(x)
        return x

    f(1.0)
    f(1.0)
    assert len(traces) == 1
    backend.clear_in_memory_compilation_cache()
    f(1.0)
    assert len(traces) == 2


def test_options_of_a_program_for_some_devices():
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    devices = np.array(jax.devices()[:1])
    options = pxla.create_compile_options(
        lowered.compiler_ir(),
        True,
        (True,),
        (False,),
        devices[0].client,
        devices,
        {"xla_cpu_enable_fast_math": True, "optimization_level": "O1"},
    )
    build = options.executable_build_options
    assert options.parameter_is_tupled_arguments and options.num_partitions == 1
    assert build.allow_spmd_sharding_propagation_to_parameters == [True]
    assert build.allow_spmd_sharding_propagation_to_output == [False]
    assert options.env_option_overrides[0] == ("xla_cpu_enable_fast_math", True)
    assert build.use_spmd_partitioning and build.use_shardy_partitioner
    assert build.optimization_level == 19


FACTORY = """
from jaxlib import xla_client
import hlofront as jax
from hlofront.experimental.topologies import get_topology_desc
from hlofront.extend import backend

made = []

def make_client():
    made.append(xla_client.make_cpu_client(num_devices=2))
    return made[-1]

def absent():
    raise OSError("no such hardware")

backend.register_backend_factory("first", absent, priority=900)
backend.register_backend_factory("second", make_client, priority=800, experimental=True)
assert made == []
assert len(jax.devices()) == 2 and jax.jit(lambda x: x + 1)(1.0).device.client is made[0]
assert jax.devices("second")[0].client is made[0] is backend.backends()["second"]
assert "first" not in backend.backends()
for platform, text in [("first", "no such hardware"), ("third", "third")]:
    try:
        jax.devices(platform)
    except RuntimeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(platform)
try:
    backend.register_backend_factory("second", make_client)
except RuntimeError as error:
    assert "already initialized" in str(error)
try:
    get_topology_desc("a", "second")
except NotImplementedError as error:
    assert "make_topology" in str(error)
backend.register_backend_factory("loud", absent, priority=950, fail_quietly=False)
backend.clear_backends()
try:
    jax.devices()
except RuntimeError as error:
    assert "'loud'" in str(error)
"""


def test_clients_made_by_registered_functions():
    subprocess.run([sys.executable, "-P", "-c", FACTORY], check=True)
