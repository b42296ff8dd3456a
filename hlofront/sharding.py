"""jax.sharding: meshes of devices, and how arrays are split over them."""

from hlofront.bridge.client import Sharding as Sharding
from hlofront.bridge.client import SingleDeviceSharding as SingleDeviceSharding
from hlofront.core.mesh import AbstractMesh as AbstractMesh
from hlofront.core.mesh import AxisType as AxisType
from hlofront.core.mesh import Mesh as Mesh
from hlofront.core.partition import PartitionSpec as PartitionSpec
from hlofront.pjrt.named_shardings import NamedSharding as NamedSharding
from hlofront.pjrt.shardings import make_single_device_sharding as make_single_device_sharding
