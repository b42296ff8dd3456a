"""Programs over meshes of each type of axes have types, values and collectives of jax 0.10.2."""

import json
import os

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from tests.many_devices.mesh_answers import ANSWERS, KINDS, MeshOperands, programs

KEPT = json.loads(ANSWERS.read_text())

# Programs that jax does not run, or that it runs with more collectives, and why.
UNLIKE_JAX = {
    "explicit: jnp.trace(w)": "jax indexes the diagonal of a split matrix, where we sum it",
    "explicit: jax.grad(lambda a: jnp.sort(a, 1)[:, 0].sum())(w)": "jax numbers rows unsplit",
    "mixed: jax.grad(lambda a: (x * a).sum())(b)": "jax gathers the cotangent once more",
}


@pytest.fixture(scope="module")
def cases():
    return {kind: MeshOperands(jax, kind) for kind in KINDS}


# Each program is tried on three of the four meshes; on all of them by this variable.
ON_ALL = os.environ.get("HLOFRONT_ALL_MESHES") == "1"
PAIRS = [
    (program, kind)
    for number, program in enumerate(programs())
    for place, kind in enumerate(KINDS)
    if ON_ALL or (number + place) % 4
]


@pytest.mark.parametrize(("program", "kind"), PAIRS)
def test_as_jax(program, kind, cases):
    key = f"{kind}: {program}"
    ours, theirs = cases[kind].answer(program), KEPT[key]
    if key in UNLIKE_JAX:
        assert "error" not in ours
        return
    sums = ours.pop("sums", []), theirs.pop("sums", [])
    assert ours == theirs
    for one, other in zip(*sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
