"""The samples of the systematic tests in batches, and the meshes that they are tried on."""

import os

import hlofront as jax
from tests.systematic import trials
from tests.systematic.trials import AT_ONCE

_SHAPES = {
    8: [(2, 4), (8,), (2, 2, 2)],
    16: [(4, 4), (16,), (4, 2, 2)],
}[len(jax.devices())]
MESHES = [jax.make_mesh(shape, ("x", "y", "z")[: len(shape)]) for shape in _SHAPES]
SAMPLES = trials.load()
_BATCHES = [
    (file, start) for file, samples in SAMPLES.items() for start in range(0, len(samples), AT_ONCE)
]

# With this variable each batch is tried on all meshes.
ON_ALL = os.environ.get("HLOFRONT_ALL_MESHES") == "1"


def batches_on_meshes(first, step):
    """A batch as its file, the number of its first sample, and the number of a mesh.

    They are every `step`-th batch on one mesh each; with the variable all batches on all meshes.
    """
    if ON_ALL:
        return [(*batch, mesh) for batch in _BATCHES for mesh in range(len(MESHES))]
    return [(*batch, number % len(MESHES)) for number, batch in enumerate(_BATCHES[first::step])]
