"""Declarations of jaxlib's classes for type checkers alone: its extension modules have no stubs.

They say what hlofront uses. The methods of shardings are hlofront's, see `pjrt/shardings.py` and
`pjrt/named_shardings.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Index = tuple[slice, ...]


class ConfigCell:
    """A setting with a value for the process and one per thread, which C++ reads quickly."""

    name: str
    value: Any

    def get_global(self) -> Any: ...
    def set_global(self, value: object) -> None: ...
    def get_local(self) -> Any: ...
    def set_local(self, value: object) -> None: ...
    def swap_local(self, value: object) -> Any: ...


class Client:
    """A client of PJRT: the devices of one platform."""

    platform: str

    def devices(self) -> list["Device"]: ...
    def local_devices(self) -> list["Device"]: ...
    def device_count(self) -> int: ...
    def local_device_count(self) -> int: ...
    def process_index(self) -> int: ...


class Device:
    """A device; those of TPUs have coordinates."""

    id: int
    platform: str
    device_kind: str
    process_index: int
    client: Client
    coords: tuple[int, ...]
    core_on_chip: int


class DeviceList:
    """A hashable sequence of devices."""

    is_fully_addressable: bool
    default_memory_kind: str

    def __init__(self, devices: tuple[Device, ...]): ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Device]: ...


class OpSharding:
    """The protocol buffer of a sharding."""

    iota_reshape_dims: list[int]
    iota_transpose_perm: list[int]
    tile_assignment_dimensions: list[int]
    tile_assignment_devices: list[int]
    Type: Any


class HloSharding:
    """A sharding as XLA describes it, without devices."""

    @staticmethod
    def replicate() -> "HloSharding": ...
    @staticmethod
    def iota_tile(
        dims: tuple[int, ...],
        reshape_dims: Sequence[int],
        transpose_perm: Sequence[int],
        subgroup_types: Sequence[object],
    ) -> "HloSharding": ...
    @staticmethod
    def from_proto(proto: OpSharding) -> "HloSharding": ...
    def to_proto(self) -> OpSharding: ...
    def is_replicated(self) -> bool: ...
    def is_maximal(self) -> bool: ...
    def num_devices(self) -> int: ...
    def tile_assignment_dimensions(self) -> Sequence[int]: ...
    def tile_assignment_devices(self) -> Sequence[int]: ...


class Sharding:
    """The base class of all shardings."""

    device_set: set[Device]
    addressable_devices: set[Device]
    num_devices: int
    memory_kind: str | None
    is_fully_replicated: bool
    is_fully_addressable: bool
    has_addressable_devices: bool
    is_determined: bool

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]: ...
    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Device, Index]: ...
    def addressable_devices_indices_map(
        self, global_shape: Sequence[int]
    ) -> Mapping[Device, Index]: ...
    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool: ...
    def with_memory_kind(self, kind: str) -> "Sharding": ...
    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None: ...


class SingleDeviceSharding(Sharding):
    """The sharding of an array that is wholly on one device."""

    def __init__(self, device: Device, memory_kind: str | None = None): ...


class NamedSharding(Sharding):
    """A sharding by the axes of a mesh; `mesh` and `spec` are of classes in `hlofront/core`."""

    mesh: Any
    spec: Any

    def __init__(self, mesh: object, spec: object, memory_kind: str | None = None): ...


class GSPMDSharding(Sharding):
    """A sharding as XLA describes it, with devices."""

    def __init__(
        self, devices: DeviceList, op_sharding: HloSharding, memory_kind: str | None = None
    ): ...


class HloModule:
    """A module of HLO."""

    def to_string(self) -> str: ...


class LoadedExecutable:
    """An executable on its devices."""

    def cost_analysis(self) -> dict[str, float]: ...
    def hlo_modules(self) -> list[HloModule]: ...


class CompileOptions:
    """The options that XLA compiles a module with."""

    num_replicas: int
    num_partitions: int
    profile_version: int
    device_assignment: object
    executable_build_options: Any
    env_option_overrides: list[tuple[str, object]]
