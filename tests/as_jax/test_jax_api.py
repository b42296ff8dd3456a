"""The option hlofront_jax_api chooses where JAX 0.12.0.1 contradicts 0.10.2."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.sharding import AbstractMesh, AxisType

EACH = pytest.mark.parametrize("is_later", [False, True], ids=["0.10.2", "0.12.0.1"])


@pytest.fixture
def api(is_later):
    with options["hlofront_jax_api"]("0.12.0.1" if is_later else "0.10.2"):
        yield


@EACH
@pytest.mark.parametrize(
    "function", [jnp.broadcast_arrays, jnp.meshgrid, jnp.atleast_1d, jnp.atleast_2d, jnp.atleast_3d]
)
def test_several_arrays_are_a_list_or_a_tuple(api, is_later, function):
    sequence = tuple if is_later else list
    x = np.arange(3)
    assert type(function(x, x)) is sequence
    assert type(jax.jit(function)(x, x)) is sequence
    # Without arguments, too.
    assert type(function()) is sequence


@EACH
def test_the_cross_product_of_vectors_of_two_elements(api, is_later):
    x, y = jnp.array([1, 2]), jnp.array([3, 4])
    if is_later:
        with pytest.raises(ValueError, match="Dimension must be 3"):
            jnp.cross(x, y)
    else:
        assert jnp.cross(x, y) == -2


@EACH
def test_the_default_dtype_of_tri(api, is_later):
    assert jnp.tri(2).dtype == np.float32
    with jax.enable_x64(True):
        assert jnp.tri(2).dtype == (np.float64 if is_later else np.float32)


@EACH
def test_the_default_types_of_the_axes_of_an_abstract_mesh(api, is_later):
    kind = AxisType.Explicit if is_later else AxisType.Auto
    assert AbstractMesh((2, 3), ("x", "y")).axis_types == (kind, kind)
    # A mesh of devices has Auto axes in both versions.
    assert jax.sharding.Mesh(jax.devices()[:1], ("x",)).axis_types == (AxisType.Auto,)


@EACH
def test_residuals_of_arguments_have_the_structure_of_the_arguments_or_are_tuples(api, is_later):
    _, pullback = jax.vjp(lambda d, z: d["a"] * z, {"a": 3.0}, 2.0)
    first = jax.tree.structure(pullback.args_res[0], is_leaf=lambda x: not isinstance(x, dict))
    assert (first == jax.tree.structure({"a": 0})) is is_later
    assert pullback(1.0) == ({"a": 2.0}, 3.0)


def test_a_jitted_function_is_traced_anew_for_the_other_api():
    f = jax.jit(jnp.atleast_1d)
    kinds = []
    for version in ("0.10.2", "0.12.0.1", "0.10.2"):
        with options["hlofront_jax_api"](version):
            kinds.append(type(f(1.0, 2.0)))
    assert kinds == [list, tuple, list]


def test_the_version_of_jax_is_that_of_the_option():
    code = """
import importlib.metadata
import hlofront.as_jax
import jax

print(jax.__version__, importlib.metadata.version("jax"))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HLOFRONT_JAX_API": "0.12.0.1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "0.12.0.1 0.12.0.1\n"
