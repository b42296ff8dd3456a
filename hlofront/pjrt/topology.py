"""Descriptions of devices, attached or not, by the names of JAX's topologies module."""

from collections.abc import Sequence

from hlofront.base.errors import PluginError
from hlofront.bridge import plugins as bridge
from hlofront.bridge.client import Device
from hlofront.core.sharding.mesh import Mesh
from hlofront.pjrt import clients, platforms
from hlofront.pjrt.device_mesh import create_device_mesh
from hlofront.pjrt.factories import factories


class TopologyDescription:
    """A description of devices to compile for.

    Args:
      devices: all of the devices, in order.
    """

    def __init__(self, devices: Sequence[Device]):
        self.devices = list(devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return a description of the attached devices of a platform.

    Args:
      platform: the platform's name; None for the default one.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return TopologyDescription(clients.devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: object
) -> TopologyDescription:
    """Return devices that need not be attached, by the plugin's name of their topology.

    `hlofront.target` is simpler, and sets the options that a GPU requires.

    Args:
      topology_name: for TPUs, a generation and a shape such as "v5e:2x2"; for GPUs, any name.
      platform: "tpu" (the default), "cuda", or that of another plugin.
      kwargs: further options of the plugin: for GPUs `target_config`, the text of a
        GpuTargetConfigProto, and `topology`, "slices x hosts x GPUs per host" such as "1x1x8".

    Raises:
      PluginError: if there is no such plugin.
      JaxRuntimeError: if the plugin has no such topology.
      NotImplementedError: for the CPU, which compiles only for this machine, and for platforms that
        were registered without a function that makes topologies.
    """
    name = "tpu" if platform is None else platform
    if name == "gpu":
        name = next((kind for kind in platforms.GPUS if kind in platforms.find_plugins()), "cuda")
    if name in factories:
        return TopologyDescription(_devices_by_factory(name, topology_name, kwargs))
    if name == "cpu":
        raise NotImplementedError(  # JAX raises this class.
            "there are no topologies of CPUs: programs are compiled for the processor of this "
            "machine. Use get_attached_topology('cpu')."
        )
    if name not in platforms.find_plugins():
        raise PluginError(platforms.missing(name))
    api = platforms.load(name)
    return TopologyDescription(bridge.absent_devices(api, name, topology_name, kwargs))


def _devices_by_factory(name: str, topology_name: str, options: dict[str, object]) -> list[Device]:
    """Return the devices of a topology that need not be attached.

    Raises:
      NotImplementedError: if the platform was registered with neither a function for topologies
        nor the plugin's handle.
    """
    factory = factories[name]
    if factory.make_topology is not None:
        described = factory.make_topology(topology_name, **options)
    elif factory.c_api is not None:
        described = bridge.topology(factory.c_api, topology_name, options)
    else:
        raise NotImplementedError(  # JAX raises this class.
            f"topology not implemented for {name}: register_backend_factory was given neither "
            "make_topology nor c_api"
        )
    return bridge.devices_of(described)


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Return a mesh of a topology's devices, arranged for fast communication along its axes.

    Args:
      topo: the topology.
      mesh_shape: the number of devices along each axis.
      axis_names: the names of the axes.
      contiguous_submeshes: whether the devices of each process must be a block of the mesh.

    Raises:
      ValueError: if the shape does not fit the number of devices or of names.
    """
    devices = create_device_mesh(
        mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(devices, axis_names)
