"""Programs compiled for an absent device do not run; those around them run here.

Skipped where the plugin that compiles for a target is not installed.
"""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.errors import AbsentDeviceError
from tests.pjrt.needed import need


def test_running_says_that_the_device_is_absent(absent):
    x = jnp.ones((8, 8))
    with absent:
        compiled = jax.jit(jnp.sin).lower(x).compile()
    with pytest.raises(AbsentDeviceError, match="not attached to this machine") as caught:
        compiled(x)
    assert absent.name in str(caught.value)
    assert f"pip install {'libtpu' if absent.platform == 'tpu' else 'jax-cuda'}" in str(
        caught.value
    )
    device = absent.devices[0]
    for put in (lambda: jax.device_put(x, device), lambda: jax.device_put(np.ones(3), device)):
        with pytest.raises(AbsentDeviceError, match="programs can be compiled for"):
            put()
    with pytest.warns(DeprecationWarning, match="arguments of jit are deprecated"):
        on_absent = jax.jit(jnp.cos, device=device)
    with pytest.raises(AbsentDeviceError):
        on_absent(x)
    with pytest.raises(AbsentDeviceError), jax.default_device(device):
        jnp.ones(3)
    with pytest.raises(TypeError, match="compiled with"):
        compiled(jnp.ones((3, 3)))


def test_a_compiled_program_in_another_function_is_refused(absent):
    """A compiled program takes no traced arguments, whether its device is here or not."""
    x = jnp.ones((8, 8))
    with absent:
        compiled = jax.jit(jnp.sin).lower(x).compile()
    for use in (
        jax.jit(lambda x: compiled(x) + 1),
        jax.grad(lambda x: compiled(x).sum()),
        lambda x: jax.vmap(lambda x: compiled(x))(x[None]),
        jax.make_jaxpr(compiled),
    ):
        with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
            use(x)


def test_what_runs_inside_runs_here(absent):
    x = jnp.arange(3.0)
    here = x.devices()
    with absent:
        made = (
            jnp.ones(3) + 1,
            jax.device_put(np.ones(3)),
            jax.jit(jnp.sin)(x),
            lax.fori_loop(0, 3, lambda i, x: x * i, x),
            jax.random.normal(jax.random.key(0), (3,)),
            jax.grad(lambda x: jnp.sin(x).sum())(x),
        )
        assert all(array.devices() == here for array in made)
        assert jax.devices()[0] in here
        assert jax.default_backend() == next(iter(here)).client.platform
        cpu = lax.platform_dependent(x, cpu=lambda x: x * 2, default=lambda x: x * 3)
        np.testing.assert_array_equal(cpu, x * 2)


def test_callbacks_are_compiled_as_the_platform_calls_the_host(absent):
    x = jax.ShapeDtypeStruct((4, 4), jnp.float32)

    def calling(x):
        jax.debug.print("{}", x, ordered=True)
        jax.debug.callback(lambda: None)
        y, empty = jax.pure_callback(lambda x: (x, x[:0]), (x, x[:0]), x)
        return y, empty

    with absent:
        lowered = jax.jit(calling).lower(x)
        compiled = lowered.compile()
    text = lowered.as_text()
    if absent.platform == "cuda":
        assert text.count("@xla_ffi_python_gpu_callback") == 3
    else:
        assert text.count("stablehlo.send") == text.count("stablehlo.recv") == 3
        numbers = re.findall(r"channel_handle<handle = (\d+)", text)
        assert sorted(numbers) == list("123456")
    wanted = {"tpu": "is_host_transfer=true", "cuda": "xla_ffi_python_gpu_callback"}
    assert wanted[absent.platform] in compiled.as_text()
    with pytest.raises(AbsentDeviceError):
        compiled(jnp.ones((4, 4)))


def test_callbacks_with_each_devices_part(absent):
    def calling(x):
        jax.debug.callback(lambda x: None, x, partitioned=True)
        return x

    with absent:
        if absent.platform == "tpu":
            with pytest.raises(NotImplementedError, match="leave out partitioned=True"):
                jax.jit(calling).lower(1.0)
        else:
            text = jax.jit(calling).lower(1.0).compile().as_text()
            assert "xla_ffi_partitioned_python_gpu_callback" in text


@pytest.mark.parametrize("name", ["tpu:v5e:2x2", "cuda:h100:2"])
def test_callbacks_of_programs_for_several_devices(name):
    target = jax.target(name)
    need(target.platform)

    def calling(x):
        jax.debug.print("{}", x)
        return jax.pure_callback(lambda x: (x, x), (x, x), x)

    def ordered(x):
        jax.debug.print("{}", x, ordered=True)

    with target.on_all():
        # The first device calls, for all of them.
        text = jax.jit(calling).lower(1.0).as_text()
        assert "sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>" in text
        assert "sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>" in text
        assert (
            f"num_partitions={len(target.devices)}"
            in jax.jit(calling).lower(1.0).compile().as_text()
        )
        with pytest.raises(ValueError, match=r"not supported for more than 1 device: got \d"):
            jax.jit(ordered).lower(1.0).compile()
