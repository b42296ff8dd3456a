"""Programs have different digests if any parameter differs in any field that lowering reads."""

import itertools

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront.core.aval import MemorySpace, ShapedArray, Split
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.digest import program_digest
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.sharding.mesh import AbstractMesh, AxisType
from hlofront.core.sharding.partition import PartitionSpec as P
from hlofront.core.sharding.partition import UnreducedKind
from hlofront.pjrt.named_shardings import NamedSharding

FLOAT32 = np.dtype(np.float32)
EXPLICIT = AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)
MESHES = (
    EXPLICIT,
    AbstractMesh((2, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto)),
    AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2),
    AbstractMesh((2, 2), ("y", "x"), (AxisType.Explicit,) * 2),
    AbstractMesh((2, 2, 1), ("x", "y", "z"), (AxisType.Explicit,) * 3),
)
SPECS = (
    P(),
    P("x"),
    P("y"),
    P(None, "x"),
    P(P.UNCONSTRAINED),
    P(("x", "y")),
    P("x", "y"),
    P(unreduced={"x"}),
    P(unreduced={"x"}, unreduced_kind=UnreducedKind.max),
    P(reduced={"x"}),
)
# Values of each kind that a parameter may be, of which no two mean the same.
VALUES = {
    "plain values": (
        None,
        False,
        0,
        1,
        -1,
        0.0,
        -0.0,
        1.5,
        float("nan"),
        float("inf"),
        0j,
        1j,
        -1j,
        "",
        "0",
        "a\x1fb",
        b"",
        b"0",
        (),
        (0,),
        ((),),
        (0, 1),
        (1, 0),
        ("a", "b"),
        ("ab",),
        [],
        [0],
        frozenset(),
        frozenset({0}),
        {},
        {"a": 0},
        {"a": 1},
        {"b": 0},
        {0: "a"},
    ),
    "arrays and dtypes": (
        np.float32(0),
        np.float32(-0.0),
        np.float16(0),
        np.int32(0),
        np.uint32(0),
        np.zeros(2, np.float32),
        np.zeros((1, 2), np.float32),
        np.zeros((2, 1), np.float32),
        *(np.dtype(name) for name in ("bool", "int32", "uint32", "float32", "complex64")),
        *(jax.random.key(0, impl=impl).dtype for impl in ("threefry2x32", "rbg", "unsafe_rbg")),
    ),
    "enumerations": (*lax.GatherScatterMode, *lax.Precision, *lax.RoundingMethod, *lax.FftType),
    "meshes": MESHES,
    "specs": SPECS,
    "shardings": (
        *(NamedSharding(mesh, P("x")) for mesh in MESHES),
        *(NamedSharding(EXPLICIT, spec) for spec in SPECS if spec not in (P("x"), SPECS[4])),
        NamedSharding(EXPLICIT, P("x"), memory_kind="device"),
        NamedSharding(EXPLICIT, P("x"), memory_kind="pinned_host"),
    ),
    "types": (
        ShapedArray((2, 4), FLOAT32),
        ShapedArray((4, 2), FLOAT32),
        ShapedArray((2, 4, 1), FLOAT32),
        ShapedArray((2, 4), np.dtype(np.int32)),
        ShapedArray((2, 4), FLOAT32, memory_space=MemorySpace.Host),
        *(ShapedArray((4, 4), FLOAT32, sharding=Split(mesh, P("x", None))) for mesh in MESHES),
        ShapedArray((4, 4), FLOAT32, sharding=Split(EXPLICIT, P(None, "x"))),
        ShapedArray((4, 4), FLOAT32, sharding=Split(EXPLICIT, P(None, None, unreduced={"x"}))),
        ShapedArray((2, 4), FLOAT32, manual_axis_type=ManualAxisType(varying=frozenset({"x"}))),
        ShapedArray((2, 4), FLOAT32, manual_axis_type=ManualAxisType(varying=frozenset({"y"}))),
        ShapedArray((2, 4), FLOAT32, manual_axis_type=ManualAxisType(unreduced=frozenset({"x"}))),
    ),
}


def digest_with(value: object) -> str | None:
    """Return the digest of a program with this parameter."""
    program = jax.make_jaxpr(lax.neg)(1.0)
    (equation,) = program.eqns
    equations = [equation.replace(params={"parameter": value})]
    return program_digest(ClosedJaxpr(program.jaxpr.replace(eqns=equations), ()))


@pytest.mark.parametrize("kind", VALUES)
def test_different_parameters_have_different_digests(kind):
    digests = [(value, digest_with(value)) for value in VALUES[kind]]
    assert all(digest is not None for _, digest in digests)
    alike = [(x, y) for (x, a), (y, b) in itertools.combinations(digests, 2) if a == b]
    assert alike == []
