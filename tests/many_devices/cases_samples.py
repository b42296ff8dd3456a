"""Each sample of the systematic tests, split over explicit axes, is what one device gives.

Operands are split along their first axes that the mesh divides. An operation says in types how its
result is split, or refuses by a rule. Compiled programs, and those of gradients, move elements
between devices for the operations of `MOVING` alone.
"""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import ShardingTypeError
from hlofront.sharding import NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.sample_batches import MESHES, SAMPLES, batches_on_meshes
from tests.on_platforms import slack_of
from tests.support.closeness import assert_within
from tests.systematic import trials
from tests.systematic.trials import AT_ONCE


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
            assert "has no rule" not in str(error), error
            return False
        return True


# By the name of an operation: why devices send elements to one another, where it is split as jax
# splits it.
_PARTIAL_RESULTS = "the results of each device are gathered, and these reduced"
_NEIGHBORS = "a window reaches the elements of the next device"
MOVING = {
    "argmax": _PARTIAL_RESULTS,
    "argmin": _PARTIAL_RESULTS,
    "bitcast_convert_type": "elements of a split axis become one",
    "conv_general_dilated": _NEIGHBORS,
    "dot_general": "a mesh axis splits a batch axis of one operand, and another of the result",
    "dynamic_slice": "the first element is known by its value alone",
    "dynamic_update_slice": "the first element is known by its value alone",
    "fft": "each result is of all elements of a split axis",
    "pure_callback": "the host is given whole arrays",
    "qr": "with pivoting: XLA knows of no batches of LAPACK's geqp3",
    "reduce": _PARTIAL_RESULTS,
    "reduce_and": _PARTIAL_RESULTS,
    "reduce_or": _PARTIAL_RESULTS,
    "reduce_window": _NEIGHBORS,
    "reduce_window_max": _NEIGHBORS,
    "reduce_window_min": _NEIGHBORS,
    "reduce_window_sum": _NEIGHBORS,
    "reduce_xor": _PARTIAL_RESULTS,
    "reshape": "dimensions= reads a split axis last",
    "rev": "the last device has what becomes first",
    "rng_bit_generator": "the state is one",
    "select_and_gather_add": _NEIGHBORS,
    "select_and_scatter": _NEIGHBORS,
    "select_and_scatter_add": _NEIGHBORS,
    "top_k": "the reduced axis is moved to the end",
    "triangular_solve": "each row is of those before it",
}
_MOVES = re.compile(
    r" (ragged-all-to-all|all-to-all|all-gather|collective-permute|collective-broadcast|send|recv)"
    r"(-start)?\("
)
_NAME = re.compile(r'op_name="[^"]*?([^"/]*)"')


UNKNOWN = "unknown"


def moving_operations(compiled):
    """The names of the operations for which a program moves elements between devices.

    An instruction that moves elements for no operation has its own text for a name. From jaxlib
    0.12 on, XLA names and marks those that its partitioner adds after what made the elements, so
    that it is `UNKNOWN` what needs them.
    """
    names = set()
    for line in compiled.as_text().splitlines():
        if _MOVES.search(line):
            name = _NAME.search(line)
            is_marked = 'is_spmd_generated="true"' in line
            names.add(UNKNOWN if is_marked else name[1] if name else line)
    return names


@jax.custom_vjp
def with_gathered_cotangent(x):
    return jnp.sin(x)


with_gathered_cotangent.defvjp(
    lambda x: (jnp.sin(x), x),
    lambda x, cotangent: (jax.reshard(jnp.cos(jax.reshard(x, P())), jax.typeof(x).sharding.spec),),
)


def test_gathers_are_seen_in_programs_and_in_gradients_alone():
    for mesh in MESHES:
        with jax.set_mesh(mesh):
            x = split(mesh, np.ones((16, 8), np.float32))
            gathers = jax.jit(lambda x: jnp.sin(jax.reshard(x, P())))
            assert moving_operations(gathers.lower(x).compile()) in ({"reshard"}, {UNKNOWN})
            function = jax.jit(with_gathered_cotangent)
            assert moving_operations(function.lower(x).compile()) == set()
            gradient = jax.jit(jax.grad(lambda x: with_gathered_cotangent(x).sum()))
            assert moving_operations(gradient.lower(x).compile()) in ({"reshard"}, {UNKNOWN})


def test_instructions_without_a_name_are_seen():
    class Compiled:
        @staticmethod
        def as_text():
            return "%a = f32[8] all-gather-start(%b), dimensions={0}\n%c = f32[8] copy(%a)"

    assert moving_operations(Compiled) == {"%a = f32[8] all-gather-start(%b), dimensions={0}"}


# Effects in order need one device.
ON_ONE_DEVICE = ("shown(",)


def batch_of(file, start):
    """Some samples of a file."""
    samples = SAMPLES[file][start : start + AT_ONCE]
    return [sample for sample in samples if not sample.name.startswith(ON_ONE_DEVICE)]


# The derivatives of these refuse the splits of their operands, as those of jax do: they divide or
# pad a split axis to a size that the mesh does not divide, or merge it with other axes.
GRADIENTS_REFUSED = (
    "argmax_of_pairs",
    "reduce_by_add",
    "reduce_prod",
    "reduce_window(float32[2,3,4], 0.0, 'add'",
    "reduce_window(float32[4,6], 0.0, 'add'",
    "scatter_to_extremes",
)

# Gradients at ties of 0 * inf and 0 are NaN or 0, as XLA's order of operations has it.
NOT_DIFFERENTIATED = ("reduce_max(float32[2, 3]", "reduce_min(float32[2, 3]")

# Each batch of samples is tried on one of the meshes, of 16 devices one in twenty.
STEP = 1 if len(jax.devices()) == 8 else 20
SPLIT_BATCHES = batches_on_meshes(STEP // 2, STEP)


def assert_equal_to_one_device(splits, results, wanted):
    for each, result, other_result in zip(splits, results, wanted, strict=True):
        found, others = trials.describe(result, jax), trials.describe(other_result, jax)
        for one, other in zip(found, others, strict=True):
            assert one[:3] == other[:3], each.sample
            assert_within(one[3], other[3], ulps=90 * slack_of(each.sample))


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("file", "start", "number"), SPLIT_BATCHES)
def test_split_samples_are_what_one_device_gives(file, start, number, x64):
    mesh = MESHES[number]
    with trials.quiet(), jax.enable_x64(x64):
        with jax.set_mesh(mesh):
            splits = [
                Split(sample, mesh) for sample in batch_of(file, start) if sample.needs_x64() is x64
            ]
            splits = [each for each in splits if each.has_a_rule()]

        def together(arguments):
            return [each.call(*own) for each, own in zip(splits, arguments, strict=True)]

        jitted = jax.jit(together, compiler_options=trials.COMPILES_FAST)
        wanted = jitted([each.operands for each in splits])
        with jax.set_mesh(mesh):
            operands = [each.split for each in splits]
            program = jitted.lower(operands).compile()
            results = program(operands)
    assert moving_operations(program) <= {*MOVING, UNKNOWN}
    assert_equal_to_one_device(splits, results, wanted)


def is_float(operand):
    return jnp.issubdtype(operand.dtype, jnp.floating)


def loss_of(each):
    """The sum of the sines of a sample's floats, as a function of its float operands."""
    places = [i for i, operand in enumerate(each.operands) if is_float(operand)]

    def loss(floats, operands):
        operands = list(operands)
        for place, value in zip(places, floats, strict=True):
            operands[place] = value
        results = jax.tree.leaves(each.call(*operands))
        return sum(
            jnp.sum(jnp.sin(result.astype(jnp.float32))) for result in results if is_float(result)
        )

    return loss


def has_a_gradient(each):
    """Whether one device differentiates the sample with respect to floats."""
    if each.sample.needs_x64() or each.sample.name.startswith(NOT_DIFFERENTIATED):
        return False
    floats = list(filter(is_float, each.operands))
    try:
        jax.eval_shape(jax.grad(loss_of(each)), floats, each.operands)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return bool(floats)


def gradient_has_a_rule(each):
    """Whether types say how the operations of a gradient are split; by a rule some refuse."""
    try:
        jax.eval_shape(jax.grad(loss_of(each)), list(filter(is_float, each.split)), each.split)
    except ShardingTypeError as error:
        assert each.sample.name.startswith(GRADIENTS_REFUSED), (each.sample, error)
        return False
    return True


@pytest.mark.parametrize(("file", "start", "number"), SPLIT_BATCHES)
def test_gradients_of_split_samples_are_those_of_one_device(file, start, number):
    mesh = MESHES[number]
    with trials.quiet():
        with jax.set_mesh(mesh):
            splits = [Split(sample, mesh) for sample in batch_of(file, start)]
            splits = [each for each in splits if each.has_a_rule()]
        splits = [each for each in splits if has_a_gradient(each)]
        with jax.set_mesh(mesh):
            splits = [each for each in splits if gradient_has_a_rule(each)]

        def together(all_operands):
            return [
                jax.grad(loss_of(each))(list(filter(is_float, operands)), operands)
                for each, operands in zip(splits, all_operands, strict=True)
            ]

        jitted = jax.jit(together, compiler_options=trials.COMPILES_FAST)
        wanted = jitted([each.operands for each in splits])
        with jax.set_mesh(mesh):
            operands = [each.split for each in splits]
            program = jitted.lower(operands).compile()
            found = program(operands)
    assert moving_operations(program) <= {*MOVING, UNKNOWN}
    for each, ours, others in zip(splits, found, wanted, strict=True):
        for gradient, other, operand in zip(
            ours, others, filter(is_float, each.split), strict=True
        ):
            assert gradient.sharding.is_equivalent_to(operand.sharding, operand.ndim), each.sample
            if operand.dtype == np.float32:  # Narrow floats are rounded in another order.
                np.testing.assert_allclose(
                    gradient, other, rtol=2e-3, atol=2e-3, err_msg=str(each.sample)
                )
