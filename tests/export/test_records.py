"""Types, shardings and structures come back from the records in files as they were."""

import json

import numpy as np
import pytest

import hlofront as jax
from hlofront import tree_util
from hlofront.base.dtypes import float0
from hlofront.core.aval import MemorySpace, ShapedArray, Split
from hlofront.core.sharding.mesh import AbstractMesh, AxisType
from hlofront.core.sharding.partition import PartitionSpec as P
from hlofront.core.sharding.partition import UnreducedKind
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.runtime.export import records

FLOAT32 = np.dtype(np.float32)
MESH = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
SHARDINGS = {
    "replicated": NamedSharding(MESH, P()),
    "split": NamedSharding(MESH, P(None, "x")),
    "split twice": NamedSharding(MESH, P(("x", "y"))),
    "left to XLA": NamedSharding(MESH, P(P.UNCONSTRAINED)),
    "unreduced": NamedSharding(MESH, P(unreduced={"x"})),
    "maxima": NamedSharding(MESH, P(unreduced={"x"}, unreduced_kind=UnreducedKind.max)),
    "reduced": NamedSharding(MESH, P(reduced={"x"})),
    "on the host": NamedSharding(MESH, P(), memory_kind="pinned_host"),
    "none": None,
}
TYPES = {
    **{
        name: ShapedArray((2, 3), np.dtype(name))
        for name in ("bool", "int4", "int64", "uint8", "bfloat16", "float8_e4m3fn", "complex128")
    },
    "scalar": ShapedArray((), FLOAT32),
    "weak": ShapedArray((2,), FLOAT32, weak_type=True),
    "without derivative": ShapedArray((2,), float0),
    "keys": ShapedArray((2,), jax.random.key(0, impl="rbg").dtype),
    "on the host": ShapedArray((2,), FLOAT32, memory_space=MemorySpace.Host),
    "split": ShapedArray((2, 4), FLOAT32, sharding=Split(MESH, P("x", None))),
}
STRUCTURES = {
    "leaf": 0,
    "nothing": None,
    "dict": {"b": 1, "a": [2, (3, None)]},
    "tuples": ((), (0,), ((1, 2), 3)),
}


def read_again(record):
    return json.loads(json.dumps(record))


@pytest.mark.parametrize("name", TYPES)
def test_a_type(name):
    aval = TYPES[name]
    again = records.aval_of_record(read_again(records.aval_as_json(aval)))
    assert again == aval


@pytest.mark.parametrize("name", SHARDINGS)
def test_a_sharding(name):
    sharding = SHARDINGS[name]
    again = records.sharding_of_record(read_again(records.sharding_as_json(sharding)))
    assert again == sharding
    if sharding is not None:
        assert again.memory_kind == sharding.memory_kind


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure(name):
    structure = tree_util.tree_structure(STRUCTURES[name])
    again = records.structure_of_record(read_again(records.structure_as_json(structure)))
    assert again == structure
