"""jax.sharding: meshes of devices, and how arrays are split over them."""

from hlofront.base.config import no_collectives as no_collectives
from hlofront.bridge.client import Sharding as Sharding
from hlofront.bridge.client import SingleDeviceSharding as SingleDeviceSharding
from hlofront.core.sharding.manual_axes import ManualAxisType as ManualAxisType
from hlofront.core.sharding.mesh import AbstractDevice as AbstractDevice
from hlofront.core.sharding.mesh import AbstractMesh as AbstractMesh
from hlofront.core.sharding.mesh import AxisType as AxisType
from hlofront.core.sharding.mesh import Mesh as Mesh
from hlofront.core.sharding.mesh_context import get_abstract_mesh as get_abstract_mesh
from hlofront.core.sharding.mesh_context import get_mesh as get_mesh
from hlofront.core.sharding.mesh_context import set_mesh as set_mesh
from hlofront.core.sharding.mesh_context import use_abstract_mesh as use_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec as PartitionSpec
from hlofront.core.sharding.partition import UnreducedKind as UnreducedKind
from hlofront.higher_order.shard_map.axis_types import auto_axes as auto_axes
from hlofront.higher_order.shard_map.axis_types import explicit_axes as explicit_axes
from hlofront.pjrt.named_shardings import NamedSharding as NamedSharding
from hlofront.pjrt.shardings import make_single_device_sharding as make_single_device_sharding
from hlofront.primitives.sharding.resharding import reshard as reshard
