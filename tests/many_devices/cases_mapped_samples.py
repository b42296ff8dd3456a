"""Each sample of the systematic tests in shard_map is, on each device, what one device gives.

Operands are stacked along a new axis, a stack's element for each device, each with its floats in
another order. Where the sample has a gradient, so has the program of all devices.
"""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.sharding import NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.sample_batches import MESHES, SAMPLES, batches_on_meshes
from tests.on_platforms import slack_of
from tests.support.closeness import assert_within
from tests.systematic import trials
from tests.systematic.trials import AT_ONCE

COUNT = len(jax.devices())
# One in four batches is run, and of another one the gradients; of 16 devices one in twenty.
STEP = 4 if COUNT == 8 else 20


def in_other_order(operand, device):
    """An operand whose floats are moved along by a number of elements."""
    operand = np.asarray(operand)
    if operand.dtype.kind != "f":
        return operand
    return np.roll(operand.ravel(), device).reshape(operand.shape)


# Programs of several devices have no effects in order, and XLA at times rounds numbers up to the
# bound that they are below.
NOT_MAPPED = ("shown(", "rng_uniform(bfloat16")


class Stacked:
    """A sample as a function of its operands, and these stacked along a new first axis.

    All axes of the mesh split the stacks.
    """

    def __init__(self, sample, mesh):
        self.sample = sample
        self.mesh, self.spec = mesh, P(mesh.axis_names)
        self.call, operands = trials.split(sample, sample.operand_values())
        stacks = [
            np.stack([in_other_order(operand, device) for device in range(COUNT)])
            for operand in operands
        ]
        self.stacks = [jax.device_put(stack, NamedSharding(mesh, self.spec)) for stack in stacks]
        self.elements = [[stack[device] for stack in stacks] for device in range(COUNT)]

    def call_on_shards(self, *shards):
        results = self.call(*[shard.reshape(shard.shape[1:]) for shard in shards])
        return jax.tree.map(lambda result: jnp.expand_dims(result, 0), results)

    def mapped(self, *stacks):
        return jax.shard_map(
            self.call_on_shards, mesh=self.mesh, in_specs=self.spec, out_specs=self.spec
        )(*stacks)


def stacked(file, start, mesh, x64):
    samples = SAMPLES[file][start : start + AT_ONCE]
    chosen = [
        Stacked(sample, MESHES[mesh])
        for sample in samples
        if sample.needs_x64() is x64 and not sample.name.startswith(NOT_MAPPED)
    ]
    return [each for each in chosen if any_elements(each.stacks)]


def any_elements(arrays):
    """Whether an array is not empty.

    XLA makes constants of empty arrays, and then refuses shard_map of nothing else, jax's too.
    """
    return any(array.size for array in arrays)


def together(functions):
    """One program of all functions, of the list of their operands."""

    def all_of_them(all_operands):
        return [
            function(*operands) for function, operands in zip(functions, all_operands, strict=True)
        ]

    return jax.jit(all_of_them, compiler_options=trials.COMPILES_FAST)


def on_each_device(functions, batch):
    """The results of single-device functions of the elements of each device."""
    program = together(functions)
    return [program([each.elements[device] for each in batch]) for device in range(COUNT)]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("file", "start", "mesh"), batches_on_meshes(STEP // 4, STEP))
def test_mapped_samples_are_what_one_device_gives(file, start, mesh, x64):
    with trials.quiet(), jax.enable_x64(x64):
        batch = stacked(file, start, mesh, x64)
        results = together([each.mapped for each in batch])([each.stacks for each in batch])
        wanted = on_each_device([each.call for each in batch], batch)
        for place, each in enumerate(batch):
            found = trials.describe(results[place], jax)
            for device in range(COUNT):
                for one, other in zip(
                    found, trials.describe(wanted[device][place], jax), strict=True
                ):
                    assert one[0] == (COUNT, *other[0]) and one[1:3] == other[1:3], each.sample
                    assert_within(one[3][device], other[3], ulps=8 * slack_of(each.sample))


def is_float(operand):
    return jnp.issubdtype(operand.dtype, jnp.floating)


def gradient_of(each, call):
    """The gradient of the sum of the sines of what `call` gives, by the float operands."""

    def loss(floats, operands):
        floats = iter(floats)
        operands = [next(floats) if is_float(operand) else operand for operand in operands]
        results = [result for result in jax.tree.leaves(call(*operands)) if is_float(result)]
        return sum(jnp.sum(jnp.sin(result.astype(jnp.float32))) for result in results)

    return lambda *operands: jax.grad(loss)(list(filter(is_float, operands)), operands)


def has_a_gradient(each):
    if not any(map(is_float, each.stacks)):
        return False
    try:
        jax.eval_shape(gradient_of(each, each.call), *each.elements[0])
    except (TypeError, ValueError, NotImplementedError):
        return False
    return any_elements(jax.tree.leaves(jax.eval_shape(each.call, *each.elements[0])))


@pytest.mark.parametrize(("file", "start", "mesh"), batches_on_meshes(STEP // 2, STEP))
def test_gradients_of_mapped_samples_are_those_of_one_device(file, start, mesh):
    with trials.quiet():
        batch = [each for each in stacked(file, start, mesh, False) if has_a_gradient(each)]
        mapped = [gradient_of(each, each.mapped) for each in batch]
        found = together(mapped)([each.stacks for each in batch])
        wanted = on_each_device([gradient_of(each, each.call) for each in batch], batch)
    for place, each in enumerate(batch):
        for device in range(COUNT):
            for one, other in zip(found[place], wanted[device][place], strict=True):
                if other.dtype == np.float32:  # Narrow floats are rounded in another order.
                    np.testing.assert_allclose(
                        np.asarray(one)[device],
                        other,
                        rtol=2e-3,
                        atol=2e-3,
                        err_msg=str(each.sample),
                    )
