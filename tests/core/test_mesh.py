"""Meshes: arrays of devices with named axes, equal ones one object."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from hlofront.base.config import options
from hlofront.core.sharding.mesh import AbstractMesh, AxisType, Mesh
from hlofront.core.sharding.partition import PartitionSpec as P


class Client(NamedTuple):
    process: int = 0

    def process_index(self):
        return self.process


class Device(NamedTuple):
    """Stands for a device."""

    id: int
    process_index: int = 0
    client: Client = Client()


FOUR = [[Device(0), Device(1)], [Device(2), Device(3)]]


def devices(rows):
    found = np.empty((len(rows), len(rows[0])), object)
    for place in np.ndindex(found.shape):
        found[place] = rows[place[0]][place[1]]
    return found


def test_a_mesh_says_its_axes_as_jax_does():
    mesh = Mesh(devices(FOUR), ("x", "y"))
    assert repr(mesh) == ("Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))")
    assert str(mesh) == "Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto))"
    assert (list(mesh.shape.items()), mesh.size, mesh.empty) == ([("x", 2), ("y", 2)], 4, False)
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3]]
    assert mesh.local_devices == [Device(k) for k in range(4)]
    assert not mesh.is_multi_process
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None


def test_equal_meshes_are_one_object():
    mesh = Mesh(devices(FOUR), ("x", "y"))
    assert Mesh(devices(FOUR), ["x", "y"], (AxisType.Auto,) * 2) is mesh
    assert copy.deepcopy(mesh) is mesh and pickle.loads(pickle.dumps(mesh)) is mesh
    assert Mesh(devices(FOUR), ("x", "z")) is not mesh
    assert mesh.update(axis_names=("x", "z")) is Mesh(devices(FOUR), ("x", "z"))
    manual = mesh.update(axis_types=(AxisType.Manual, AxisType.Auto))
    assert str(manual) == "Mesh('x': 2, 'y': 2, axis_types=(Manual, Auto))"


def test_several_processes():
    far = Device(1, process_index=1, client=Client(0))
    row = np.empty(2, object)
    row[0], row[1] = Device(0), far
    mesh = Mesh(row, "x")
    assert mesh.is_multi_process and mesh.local_devices == [Device(0)]


@pytest.mark.parametrize(
    ("names", "types", "message"),
    [
        (("x",), None, r"got devices of shape \(2, 2\) and 1 names"),
        (("x", None), None, "cannot be None"),
        (("x", "x"), None, "must be different"),
        (("x", "y"), (AxisType.Auto,), "one AxisType for each of its 2 axes"),
    ],
)
def test_what_is_no_mesh(names, types, message):
    with pytest.raises(ValueError, match=message):
        Mesh(devices(FOUR), names, types)


def test_meshes_do_not_change_and_the_empty_one_has_no_devices():
    mesh = Mesh(devices(FOUR), ("x", "y"))
    with pytest.raises(AttributeError, match="do not change"):
        mesh.axis_names = ("a", "b")
    for empty in (Mesh(np.empty((), object), ()), Mesh([], ("x",))):
        assert (empty.size, empty.empty, empty.axis_names) == (0, True, ())
        assert repr(empty) == "Mesh(axis_sizes=(), axis_names=())" and str(empty) == "Mesh()"
        assert not empty.are_all_axes_auto


def test_a_lone_type_is_that_of_one_axis():
    pair = devices(FOUR)[0]
    assert Mesh(pair, "x", AxisType.Auto) is Mesh(pair, "x")
    with pytest.raises(ValueError, match="one AxisType for each of its 2 axes"):
        Mesh(devices(FOUR), ("x", "y"), AxisType.Auto)
    with pytest.raises(TypeError, match="AxisType"):
        Mesh(devices(FOUR), ("x", "y"), [AxisType.Auto, AxisType.Auto])


def test_a_mesh_without_devices():
    mesh = Mesh(devices(FOUR), ("x", "y")).abstract_mesh
    assert mesh is AbstractMesh((2, 2), ("x", "y")) is mesh.abstract_mesh
    assert repr(mesh) == "AbstractMesh('x': 2, 'y': 2, axis_types=(Auto, Auto))"
    assert (mesh.size, mesh.shape_tuple, mesh.empty) == (4, (("x", 2), ("y", 2)), False)
    assert mesh.update(axis_sizes=(3, 3)).shape == {"x": 3, "y": 3}
    explicit = mesh.update_axis_types({"y": AxisType.Explicit})
    assert (explicit.auto_axes, explicit.explicit_axes) == (("x",), ("y",))
    assert pickle.loads(pickle.dumps(mesh)) is copy.deepcopy(mesh) is mesh
    for name in ("devices", "device_ids", "local_mesh", "local_devices", "is_multi_process"):
        with pytest.raises(ValueError, match="AbstractMesh has no devices"):
            getattr(mesh, name)
    with pytest.raises(ValueError, match="a name for each axis"):
        AbstractMesh((2, 2), ("x",))
    empty = AbstractMesh((), ())
    assert empty.empty and empty.size == 0 and not empty.are_all_axes_auto


def test_equal_specs_are_one_object():
    assert P("x") is P(("x",)) is P(["x"]) and P(None, "x") is P((), "x")
    assert P("x") is not P("x", None)
    assert (
        copy.copy(P("x")) is copy.deepcopy(P("x")) is pickle.loads(pickle.dumps(P("x"))) is P("x")
    )
    assert P(True) is not P(1)
    with pytest.raises(AttributeError, match="does not change"):
        P("x").partitions = ()
    with pytest.raises(TypeError, match="subclassed"):
        type("Own", (P,), {})


@pytest.mark.parametrize("nested", [(("x",),), ("x", ("y",)), [("x", "y")]])
def test_tuples_of_names_hold_no_tuples(nested):
    with pytest.raises(ValueError, match="cannot contain a tuple"):
        P(nested)


@pytest.mark.parametrize("kind", ["unreduced", "reduced"])
def test_specs_that_are_more_than_partitions(kind):
    spec = P("x", **{kind: {"y"}})
    with pytest.raises(TypeError, match="cannot be joined"):
        spec + ("z",)
    with pytest.raises(TypeError, match="cannot be joined"):
        ("z",) + spec
    assert getattr(spec + P("z"), kind) == {"y"}
    with pytest.raises(ValueError, match="cannot contain None"):
        P("x", **{kind: {None}})


def test_meshes_as_context_managers_can_be_switched_off():
    mesh = Mesh([object()], "x")
    with pytest.warns(DeprecationWarning, match="with mesh"), mesh:
        pass
    with (
        options["jax_disallow_mesh_context_manager"](True),
        pytest.raises(RuntimeError, match="jax_disallow_mesh_context_manager is on"),
    ):
        mesh.__enter__()
