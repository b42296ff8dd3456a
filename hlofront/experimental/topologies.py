"""jax.experimental.topologies: devices to compile for, which need not be attached."""

from hlofront.bridge.client import Device as Device
from hlofront.pjrt.topology import TopologyDescription as TopologyDescription
from hlofront.pjrt.topology import get_attached_topology as get_attached_topology
from hlofront.pjrt.topology import get_topology_desc as get_topology_desc
from hlofront.pjrt.topology import make_mesh as make_mesh
