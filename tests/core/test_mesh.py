"""Meshes: arrays of devices with named axes, equal ones one object."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import pytest

from hlofront.core.mesh import AxisType, Mesh


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
