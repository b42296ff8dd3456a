"""jax.experimental.mesh_utils: devices as arrays, arranged as they are wired."""

from hlofront.pjrt.device_mesh import create_device_mesh as create_device_mesh
from hlofront.pjrt.device_mesh import create_hybrid_device_mesh as create_hybrid_device_mesh
from hlofront.pjrt.device_mesh import device_kind_handler_dict as device_kind_handler_dict
