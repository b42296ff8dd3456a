"""Programs over meshes of each type of axes have types and values of jax 0.10.2.

They have no collectives that they don't have there. They may have fewer: XLA makes one of a maximum
and a minimum that are lowered alike, and from jaxlib 0.12 on none for FFTs of split batches.
"""

import json
import os
from collections import Counter

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from hlotools.cost.mesh_groups import groups_of_text
from tests.many_devices.mesh_answers import ANSWERS, KINDS, MeshOperands, programs

KEPT = json.loads(ANSWERS.read_text())
DEVICES = 8

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


def communicated(answer):
    """Return and remove the collectives of an answer, with the numbers of the devices.

    XLA writes these in several ways: as axes of the mesh, which had other names before jaxlib 0.12.
    """
    collectives = answer.pop("collectives", ())
    return Counter((kind, groups_of_text(text, DEVICES)) for kind, text in collectives)


@pytest.mark.parametrize(("program", "kind"), PAIRS)
def test_as_jax(program, kind, cases):
    key = f"{kind}: {program}"
    ours, theirs = cases[kind].answer(program), KEPT[key]
    if key in UNLIKE_JAX:
        assert "error" not in ours
        return
    sums = ours.pop("sums", []), theirs.pop("sums", [])
    assert not communicated(ours) - communicated(theirs)
    assert ours == theirs
    for one, other in zip(*sums, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
