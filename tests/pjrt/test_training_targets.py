"""Training steps over devices that are not here compile, and say their collectives."""

import pytest

import hlofront as jax
from hlofront.inspect import collectives
from tests.many_devices import training_steps as steps
from tests.pjrt.needed import need

WAYS = [*steps.WAYS, *steps.EXPERT_WAYS]
# A collective that each way needs on every platform, and the mesh axis that it is along.
NEEDED = {
    steps.data_parallel: ("all-reduce", "data"),
    steps.fully_sharded: ("all-gather", "data"),
    steps.tensor_parallel: ("all-reduce", "model"),
    steps.tensor_parallel_by_hand: ("all-reduce", "model"),
    steps.sequence_parallel: ("collective-permute", "sequence"),
    steps.pipeline_parallel: ("collective-permute", "stage"),
    steps.expert_parallel: ("all-to-all", "expert"),
    steps.ragged_expert_parallel: ("ragged-all-to-all", "expert"),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu:v5e:4x4", "tpu:v5p:2x2x2", "cuda:h100:8"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_step_compiles_and_says_its_collectives(way, target):
    need(target.partition(":")[0])
    compiled = way(steps.Absent(jax.target(target).devices))
    compiled = compiled[1] if isinstance(compiled, tuple) else compiled
    rows = collectives(compiled).rows
    opcode, axis = NEEDED[way]
    of_kind = [row for row in rows if row.opcode == opcode and row.axes == (axis,)]
    assert of_kind and all(row.moved_bytes and row.runs for row in of_kind)
    assert all(row.file == steps.__file__ and row.line for row in of_kind)
