"""Tests of shardings as parameters of equations: arrays that nothing splits share theirs."""

import numpy as np
import pytest

import hlofront as jax
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding import requested_shardings
from hlofront.core.sharding.mesh_context import use_abstract_mesh
from hlofront.core.sharding.requested_shardings import permuted, sharding_of

MESH = jax.sharding.AbstractMesh((4, 2), ("x", "y"))
MATRIX = ShapedArray((8, 4), np.dtype("float32"))


def test_arrays_that_are_not_split_share_their_sharding():
    with use_abstract_mesh(MESH):
        sharding = sharding_of(MATRIX)
        assert sharding is sharding_of(ShapedArray((2, 2), np.dtype("int8")))
    assert sharding.spec == jax.P(None, None)
    assert permuted(sharding, (1, 0)) is sharding
    assert permuted(sharding, (1,)).spec == jax.P(None)


def test_permuted_axes_are_split_as_before():
    split = jax.sharding.NamedSharding(MESH, jax.P("x", None))
    assert permuted(split, (1, 0)).spec == jax.P(None, "x")


def test_without_its_maker_a_sharding_says_what_to_do(monkeypatch):
    monkeypatch.setattr(requested_shardings, "_make", None)
    with pytest.raises(RuntimeError, match=r"after `import hlofront` has returned"):
        requested_shardings.named_sharding(MESH, jax.P("x"))
