"""Each sample of the systematic tests, split over explicit axes, is what one device gives.

Operands are split along their first axes that the mesh divides. An operation says in types how its
result is split, or refuses by a rule; then the compiled program gathers nothing.
"""

import os

import numpy as np
import pytest

import hlofront as jax
from hlofront.errors import ShardingTypeError
from hlofront.sharding import NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.on_platforms import slack_of
from tests.support.closeness import assert_within
from tests.systematic import trials
from tests.systematic.trials import AT_ONCE

# Operations that ask to be called in auto_axes.
WITHOUT_A_RULE = ("ragged_dot_general", "scaled_dot")
MESHES = [
    jax.make_mesh((2, 4), ("x", "y")),
    jax.make_mesh((8,), ("x",)),
    jax.make_mesh((2, 2, 2), ("x", "y", "z")),
]
SAMPLES = trials.load()
BATCHES = [
    (file, start) for file, samples in SAMPLES.items() for start in range(0, len(samples), AT_ONCE)
]


def split(mesh, value):
    """An operand with each mesh axis along the first free axis of the array that it divides."""
    entries = [None] * np.ndim(value)
    for name, size in mesh.shape.items():
        for axis, length in enumerate(np.shape(value)):
            if entries[axis] is None and length and length % size == 0:
                entries[axis] = name
                break
    return jax.device_put(value, NamedSharding(mesh, P(*entries)))


def is_split(value):
    return any(entry is not None for entry in value.sharding.spec)


class Split:
    """A sample, its operands on one device, and the same split over a mesh."""

    def __init__(self, sample, mesh):
        self.sample = sample
        values = sample.operand_values()
        self.call, self.operands = trials.split(sample, values)
        self.split = [split(mesh, operand) for operand in self.operands]

    def has_a_rule(self):
        """Whether types say how the result is split; by a rule they may also refuse."""
        if not any(map(is_split, self.split)):
            return False
        try:
            jax.eval_shape(self.call, *self.split)
        except ShardingTypeError as error:
            assert str(error).startswith(WITHOUT_A_RULE) or "has no rule" not in str(error), error
            return False
        return True


# XLA's CPU devices add, multiply and compare together, and have no other reductions of theirs.
NOT_ON_CPUS = ("reduce_and", "reduce_or", "reduce_xor")

# Each batch of samples is tried on one of the meshes; on all of them by this variable.
ON_ALL = os.environ.get("HLOFRONT_ALL_MESHES") == "1"
SPLIT_BATCHES = [
    (file, start, mesh)
    for number, (file, start) in enumerate(BATCHES)
    for mesh in (range(3) if ON_ALL else [number % 3])
]


def assert_equal_to_one_device(splits, results, x64):
    with trials.quiet(), jax.enable_x64(x64):
        for each, result in zip(splits, results, strict=True):
            wanted = trials.describe(each.sample.call(*each.sample.operand_values()), jax)
            found = trials.describe(result, jax)
            for one, other in zip(found, wanted, strict=True):
                assert one[:3] == other[:3], each.sample
                assert_within(one[3], other[3], ulps=90 * slack_of(each.sample))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("file", "start", "number"), SPLIT_BATCHES)
def test_split_samples_are_what_one_device_gives(file, start, number, x64):
    mesh = MESHES[number]
    with trials.quiet(), jax.enable_x64(x64), jax.set_mesh(mesh):
        samples = SAMPLES[file][start : start + AT_ONCE]
        splits = [
            Split(sample, mesh)
            for sample in samples
            if sample.needs_x64() is x64 and not sample.name.startswith(NOT_ON_CPUS)
        ]
        splits = [each for each in splits if each.has_a_rule()]

        def together(arguments):
            return [each.call(*own) for each, own in zip(splits, arguments, strict=True)]

        program = jax.jit(together, compiler_options=trials.COMPILES_FAST)
        results = program([each.split for each in splits])
    assert_equal_to_one_device(splits, results, x64)
