"""Collectives of programs, by mesh axes, bytes and source lines."""

import io
import json
import pathlib

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront.cli.main import main
from hlofront.inspect import collectives, page
from hlofront.pjrt.targets import install_hint
from hlofront.pjrt.targets import target as find_target
from hlofront.sharding import NamedSharding, PartitionSpec
from hlotools.cost.mesh_groups import (
    MeshAxes,
    axes_of_groups,
    axes_of_pairs,
    groups_of_text,
    mesh_of_text,
)

PROGRAM = pathlib.Path(__file__).parent / "texts" / "split.hlo"
EIGHT = mesh_of_text("data=4, model=2")
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
QUADS = ((0, 2, 4, 6), (1, 3, 5, 7))


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", PAIRS),
        ("[4,2]<=[8]", PAIRS),
        ("[2,4]<=[4,2]T(1,0)", QUADS),
        ("{}", (tuple(range(8)),)),
        ("{{}}", (tuple(range(8)),)),
        ("[1,8]<=[8]", (tuple(range(8)),)),
        ("mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", PAIRS),
        ("mesh['axis_0'=4,'axis_1'=2] {'axis_0'}", QUADS),
        (
            "mesh['a'=2,'b'=4], device_ids=([2,2,2]T(0,2,1)) {'b':(2)2}",
            ((0, 2), (1, 3), (4, 6), (5, 7)),
        ),
        ("mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'a'}", ((0, 1), (2, 3))),
    ],
)
def test_groups_are_read_in_each_form(text, groups):
    assert groups_of_text(text, 8) == groups


@pytest.mark.parametrize("text", ["[4,2]<=[9]", "[2,2]<=[2,2]T(0,0)", "[2,999999]<=[1999998]"])
def test_what_are_no_groups_is_refused(text):
    with pytest.raises(ValueError, match=r"no groups|no order"):
        groups_of_text(text, 8)


@pytest.mark.parametrize(
    ("mesh", "groups", "axes"),
    [
        ("data=4,model=2", PAIRS, ("model",)),
        ("data=4,model=2", QUADS, ("data",)),
        ("data=4,model=2", (tuple(range(8)),), ("data", "model")),
        ("data=4,model=2", tuple((i,) for i in range(8)), ()),
        ("data=4,model=2", ((0, 2), (1, 3), (4, 6), (5, 7)), ("data:(2)2",)),
        ("data=4,model=2", ((0, 4), (1, 5), (2, 6), (3, 7)), ("data:(1)2",)),
        ("x=8", ((0, 1, 2, 3), (4, 5, 6, 7)), ("x:(2)4",)),
        ("x=2,y=2,z=2", ((0, 1, 4, 5), (2, 3, 6, 7)), ("x", "z")),
        ("x=2,y=1,z=4", ((0, 1, 2, 3), (4, 5, 6, 7)), ("z",)),
        ("x=6", ((0, 1, 2), (3, 4, 5)), ("x:(2)3",)),
        ("data=4,model=2", ((0, 3), (1, 2), (4, 7), (5, 6)), None),
    ],
)
def test_groups_are_along_mesh_axes(mesh, groups, axes):
    assert axes_of_groups(groups, mesh_of_text(mesh)) == axes


def test_devices_of_a_mesh_may_be_in_another_order():
    backwards = MeshAxes((("data", 4), ("model", 2)), (7, 6, 5, 4, 3, 2, 1, 0))
    transposed = MeshAxes((("data", 4), ("model", 2)), (0, 4, 1, 5, 2, 6, 3, 7))
    assert axes_of_groups(PAIRS, backwards) == ("model",)
    assert axes_of_groups(((0, 4), (1, 5), (2, 6), (3, 7)), transposed) == ("model",)
    assert axes_of_pairs(((0, 4), (4, 0)), transposed) == ("model",)


def test_permutations_are_along_the_axes_that_change():
    assert axes_of_pairs(((0, 2), (2, 4), (4, 6), (6, 0)), EIGHT) == ("data",)
    assert axes_of_pairs(((0, 1), (1, 0)), EIGHT) == ("model",)
    assert axes_of_pairs(((0, 3), (1, 1)), EIGHT) == ("data", "model")


@pytest.mark.parametrize("text", ["data", "data=", "=4", "data=0", "data=2,data=2", "data=x", ""])
def test_a_mesh_as_text_has_names_and_sizes(text):
    with pytest.raises(ValueError, match="mesh"):
        mesh_of_text(text)


def test_bytes_runs_and_lines_of_a_known_program():
    found = hlotools.collectives(PROGRAM, "data=4,model=2")
    rows = {row.opcode: row for row in found.rows}
    part = 32 * 16 * 4
    assert {name: (row.axes, row.moved_bytes, row.runs) for name, row in rows.items()} == {
        "all-reduce": (("model",), 2 * part // 2, 1),
        "all-gather": (("data",), 3 * part, 1),
        "reduce-scatter": (("data",), 3 * part, 1),
        "collective-permute": (("data",), part, 5),
    }
    assert found.moved_bytes == (1 + 3 + 3 + 5) * part
    assert found.by_axes() == {"data": 11 * part, "model": part}
    assert found.rows[0].opcode == "collective-permute"
    assert (rows["collective-permute"].file, rows["collective-permute"].line) == ("train.py", 12)
    assert (rows["all-reduce"].file, rows["all-reduce"].line) == ("train.py", 11)
    assert found.text().splitlines()[1].split() == [
        "collective-permute", "data", "10,240", "5", "nothing", "f32[32,16]", "train.py:12",
    ]  # fmt: skip


def test_without_a_mesh_groups_have_sizes():
    found = hlotools.collectives(PROGRAM)
    assert {row.opcode: row.along() for row in found.rows}["all-gather"] == "groups of 4"
    with pytest.raises(ValueError, match="is for 8 devices, and a mesh of x=4 has 4"):
        hlotools.collectives(PROGRAM, "x=4")


def test_the_command_line_shows_the_collectives_of_a_file():
    out = io.StringIO()
    assert main(("show", str(PROGRAM), "--mesh", "data=4,model=2"), out) == 0
    assert "Each device sends 24,576 bytes: 22,528 along data, 2,048 along model." in out.getvalue()
    out = io.StringIO()
    assert main(("show", str(PROGRAM), "--mesh", "data=4,model=2", "--json"), out) == 0
    assert json.loads(out.getvalue())["moved_bytes"] == 24576


def test_programs_of_one_device_have_none():
    text = (PROGRAM.parent / "layer.hlo").read_text()
    assert hlotools.collectives(text).text() == "no collectives: the devices do not communicate"


# The reduction ends after the product, and nothing is left for the gather.
OVERLAPPING = """HloModule m, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %e (x: f32[64,64], y: f32[64,64]) -> (f32[64,64], f32[64,64], f32[256,64]) {
  %x = f32[64,64]{1,0} parameter(0)
  %y = f32[64,64]{1,0} parameter(1)
  %start = f32[64,64]{1,0} all-reduce-start(%x), replica_groups={{0,1},{2,3}}, to_apply=%add, LINE
  %product = f32[64,64]{1,0} dot(%y, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %view = f32[4096]{0} bitcast(%product)
  %done = f32[64,64]{1,0} all-reduce-done(%start)
  %alone = f32[256,64]{1,0} all-gather(%done), replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %all = (f32[64,64]{1,0}, f32[64,64]{1,0}, f32[256,64]{1,0}) tuple(%product, %done, %alone)
}
""".replace("LINE", 'metadata={source_file="step.py" source_line=4}')


def test_what_runs_between_a_start_and_its_done_is_beside_it():
    report = hlotools.collectives(OVERLAPPING, "data=2,model=2")
    rows = {row.opcode: row for row in report.rows}
    assert rows["all-reduce"].beside == ("product",)
    assert rows["all-gather"].beside == () and rows["all-gather"].beside_seconds is None
    lines = report.text().splitlines()
    assert "1 operation" in lines[2] and "nothing" in lines[1]
    sent = rows["all-gather"].moved_bytes
    assert lines[-1] == f"No other operation runs while {sent:,} of these bytes are sent."


def test_times_of_links_and_of_what_is_beside_them():
    rates = find_target("cuda:h100").describe()
    report = hlotools.collectives(OVERLAPPING, "data=2,model=2", rates)
    row = next(row for row in report.rows if row.beside)
    assert row.seconds and row.beside_seconds and row.beside_seconds < 1e-6
    assert "at least" in report.text().splitlines()[0]


COMPILERS = [
    pytest.param(name, marks=pytest.mark.skipif(bool(install_hint(kind)), reason="no compiler"))
    for kind, name in (("cuda", "cuda:h100:4"), ("tpu", "tpu:v5e:2x2"))
]


@pytest.mark.parametrize("name", COMPILERS)
def test_compilers_run_collectives_beside_products(name):
    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    def step(weights, x):
        return [w - g for w, g in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    with find_target(name) as device:
        types = (jax.sharding.AxisType.Auto,) * 2
        mesh = jax.make_mesh((2, 2), ("data", "model"), devices=device.devices, axis_types=types)

        def split(*sizes, axes):
            sharding = NamedSharding(mesh, PartitionSpec(*axes))
            return jax.ShapeDtypeStruct(sizes, "float32", sharding=sharding)

        weights = [split(2048, 2048, axes=("data", "model"))] * 4
        compiled = jax.jit(step).lower(weights, split(512, 2048, axes=("data",))).compile()
    report = collectives(compiled)
    assert {"data", "model"} <= set(report.by_axes())
    assert all(row.seconds > 0 for row in report.rows)
    beside = [row for row in report.rows if row.beside]
    assert beside and all(row.beside_seconds > 0 for row in beside)
    assert all(row.file == __file__ for row in report.rows)
    shown = page(compiled)
    assert '"collectives":{"rows":[{"op":' in shown and '"axes":[["data",' in shown
