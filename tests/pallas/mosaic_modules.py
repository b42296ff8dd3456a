"""Modules of Mosaic as text, and programs with kernels that are lowered for an absent TPU."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.core.programs.subprograms import all_equations
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.pallas.mosaic.kernel_module import kernel_module
from hlofront.sharding import SingleDeviceSharding

F32, BF16, I32, I8, BOOL = jnp.float32, jnp.bfloat16, jnp.int32, jnp.int8, jnp.bool_
SCALARS = pl.BlockSpec(memory_space=pltpu.SMEM)
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
X = jax.ShapeDtypeStruct((16, 128), F32)
V5E = jax.target("tpu:v5e:1x1")


def array(shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def module_of(function, *avals, axes=()):
    """Return the text of the verified module of the kernel that a function calls, on a mesh."""
    program = jax.make_jaxpr(function, axis_env=axes)(*avals)
    equation = next(e for e in all_equations(program) if e.primitive is pallas_call_p)
    params = equation.params
    parts = params["jaxpr"], params["grid_mapping"], params["name"] or "k"
    kernel = kernel_module(*parts, mesh_axes=axes)
    return kernel.ir_module.operation.get_asm(use_local_scope=True)


def call(kernel, *avals, out=X, axes=(), **options):
    """Return the text of the module of a kernel on whole arrays."""
    function = lambda *args: pl.pallas_call(kernel, out, **options)(*args)
    return module_of(function, *avals, axes=axes)


def map_elements(function, *avals):
    """Return the text of the module of a kernel that computes a function of its inputs."""

    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])

    out = jax.eval_shape(function, *avals)
    return call(kernel, *avals, out=array(out.shape, out.dtype))


def on_tpu(function, *avals):
    """Return a function of arrays as it is lowered for an absent TPU."""
    try:
        place = SingleDeviceSharding(V5E.devices[0])
    except RuntimeError as error:
        pytest.skip(str(error))
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in avals]
    return jax.jit(function).lower(*avals)
