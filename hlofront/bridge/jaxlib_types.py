"""Declarations of jaxlib's classes, only for type checkers: its extension modules have no stubs.

Members that hlofront does not use are omitted. The methods of shardings are hlofront's own, see
`pjrt/shardings.py` and `pjrt/named_shardings.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, TracebackType
from typing import Any, TypeVar

Index = tuple[slice, ...]
Node = TypeVar("Node")


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
    def device_from_local_hardware_id(self, hardware_id: int, /) -> "Device": ...
    def live_arrays(self) -> list[Any]: ...
    def compile(
        self, computation: object, executable_devices: "DeviceList", options: "CompileOptions"
    ) -> "LoadedExecutable": ...
    def compile_and_load(
        self,
        computation: object,
        executable_devices: "DeviceList",
        options: "CompileOptions",
        host_callbacks: Sequence[object],
    ) -> "LoadedExecutable": ...
    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: "DeviceList",
        options: "CompileOptions",
        host_callbacks: Sequence[object],
    ) -> "LoadedExecutable": ...
    def make_python_callback_from_host_send_and_recv(
        self,
        function: Callable[..., object],
        operand_shapes: Sequence[object],
        result_shapes: Sequence[object],
        send_channels: Sequence[int],
        receive_channels: Sequence[int],
        serializer: Callable[[Any], bytes],
    ) -> object: ...


class Device:
    """A PJRT device; TPUs also have coordinates."""

    id: int
    platform: str
    device_kind: str
    process_index: int
    client: Client
    local_hardware_id: int
    coords: tuple[int, ...]
    core_on_chip: int

    def get_stream_for_external_ready_events(self) -> int: ...


class DeviceTopology:
    """A PJRT topology: a description of devices, which need not be attached."""

    def _make_compile_only_devices(self) -> list[Device]: ...


class DeviceList:
    """A hashable sequence of devices."""

    is_fully_addressable: bool
    default_memory_kind: str

    def __init__(self, devices: tuple[Device, ...]): ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Device]: ...


class OpSharding:
    """The protocol buffer of a sharding (xla::OpSharding)."""

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
    def is_unreduced(self) -> bool: ...
    @staticmethod
    def tuple_sharding(shape: object, elements: Sequence["HloSharding"]) -> "HloSharding": ...
    def tuple_elements(self) -> list["HloSharding"]: ...
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
    """The sharding of an array that is on one device."""

    def __init__(self, device: Device, memory_kind: str | None = None): ...


class NamedSharding(Sharding):
    """A sharding by the axes of a mesh; `mesh` and `spec` are of classes in `hlofront/core`."""

    mesh: Any
    spec: Any

    def __init__(self, mesh: object, spec: object, memory_kind: str | None = None): ...


class GSPMDSharding(Sharding):
    """A sharding as XLA describes it, with its devices."""

    def __init__(
        self, devices: DeviceList, op_sharding: HloSharding, memory_kind: str | None = None
    ): ...


class HloModule:
    """An HLO module."""

    name: str

    def to_string(self, options: object = ...) -> str: ...
    def as_serialized_hlo_module_proto(self) -> bytes: ...


class XlaComputation:
    """An HLO program before optimization."""

    def get_hlo_module(self) -> HloModule: ...


class XlaLayout:
    """XLA's layout: the order of an array's elements in memory."""

    def minor_to_major(self) -> tuple[int, ...]: ...
    def tiling(self) -> Sequence[tuple[int, ...]]: ...
    def element_size_in_bits(self) -> int: ...


class PjRtLayout:
    """The type of PJRT's memory layouts: the order of a buffer's axes, and its tiles."""


class ShardedToken:
    """A token of a program, which becomes ready when the program has ended on all devices."""

    def block_until_ready(self) -> object: ...


class ExecuteResults:
    """The raw outputs of an executable, from which result handlers construct arrays, once."""

    def consume_token(self) -> ShardedToken: ...
    def consume_with_handlers(self, handlers: Sequence[Callable[..., object]]) -> list[Any]: ...


class MemoryStats:
    """The memory that an executable needs, in bytes by kind: jaxlib's CompiledMemoryStats."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int
    generated_code_size_in_bytes: int


class LoadedExecutable:
    """The type of jaxlib's executables; those for compile-only devices lack `execute_sharded`."""

    def cost_analysis(self) -> dict[str, float]: ...
    def hlo_modules(self) -> list[HloModule]: ...
    def serialize(self) -> bytes: ...
    def get_compiled_memory_stats(self) -> MemoryStats: ...
    def get_parameter_layouts(self) -> list[PjRtLayout]: ...
    def get_output_layouts(self) -> list[PjRtLayout]: ...
    def get_parameter_shardings(self) -> list[OpSharding] | None: ...
    def get_output_shardings(self) -> list[OpSharding] | None: ...
    def get_output_memory_kinds(self) -> list[list[str]]: ...
    def execute_sharded(
        self, arguments: Sequence[object], with_tokens: bool = False
    ) -> ExecuteResults: ...


class CompileOptions:
    """The options with which XLA compiles a module."""

    parameter_is_tupled_arguments: bool
    num_replicas: int
    num_partitions: int
    profile_version: int
    device_assignment: object
    executable_build_options: Any
    env_option_overrides: list[tuple[str, object]]

    def SerializeAsString(self) -> bytes: ...


class PyTreeDef:
    """The structure of a pytree, without its leaves."""

    num_leaves: int
    num_nodes: int

    def unflatten(self, leaves: Iterable[object], /) -> Any: ...
    def flatten_up_to(self, tree: object) -> list[Any]: ...
    def compose(self, inner: "PyTreeDef", /) -> "PyTreeDef": ...
    def children(self) -> list["PyTreeDef"]: ...
    def node_data(self) -> tuple[type, Any] | None: ...
    def from_iterable_tree(self, tree: object, /) -> Any: ...
    def walk(
        self,
        node: Callable[[Any, Any], object],
        leaf: Callable[[Any], object] | None,
        leaves: Iterable[object],
        /,
    ) -> Any: ...
    @staticmethod
    def from_node_data_and_children(
        registry: "PyTreeRegistry",
        node_data: tuple[type, object] | None,
        children: Iterable["PyTreeDef"],
    ) -> "PyTreeDef": ...


class DictKey:
    """The key of a dictionary's child, as an entry of a path into a pytree."""

    key: Any

    def __init__(self, key: object): ...


class SequenceKey:
    """The position of a child of a list or tuple, as an entry of a path into a pytree."""

    idx: int

    def __init__(self, idx: int): ...


class GetAttrKey:
    """The name of an attribute that is a child, as an entry of a path into a pytree."""

    name: str

    def __init__(self, name: str): ...


class FlattenedIndexKey:
    """The index of a child of a node whose children do not have keys."""

    key: int

    def __init__(self, key: int): ...


class PyTreeRegistry:
    """A registry of pytree node classes, with the functions that flatten and unflatten each."""

    __name__: str

    def __init__(
        self,
        *,
        enable_none: bool = True,
        enable_tuple: bool = True,
        enable_namedtuple: bool = True,
        enable_list: bool = True,
        enable_dict: bool = True,
    ) -> None: ...
    def flatten(
        self, tree: object, leaf_predicate: Callable[[Any], bool] | None = None
    ) -> tuple[list[Any], PyTreeDef]: ...
    def flatten_with_path(
        self, tree: object, leaf_predicate: Callable[[Any, Any], bool] | None = None
    ) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]: ...
    def flatten_one_level(self, tree: object) -> tuple[Iterable[Any], Any] | None: ...
    def flatten_one_level_with_keys(
        self, tree: object
    ) -> tuple[Iterable[tuple[Any, Any]], Any] | None: ...
    def is_node(self, type_: type, /) -> bool: ...
    def register_node(
        self,
        type_: type[Node],
        to_iterable: Callable[[Node], object],
        from_iterable: Callable[[Any, Any], Node],
        to_iterable_with_keys: Callable[[Node], object] | None = None,
        /,
    ) -> None: ...
    def register_dataclass_node(
        self, type_: type, data_fields: Sequence[str], meta_fields: Sequence[str], /
    ) -> None: ...


class PjitFunction:
    """A function that C++ calls: a jitted function, an operation or an executable."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> Any: ...


class PjitFunctionCache:
    """An LRU cache of the executables of functions that C++ calls."""

    def __init__(self, capacity: int = ...): ...
    def clear(self) -> None: ...
    @staticmethod
    def clear_all() -> None: ...


class TracebackFrame:
    """An entry of a traceback."""

    file_name: str
    function_name: str
    line_num: int


class Traceback:
    """A Python stack trace that C++ recorded."""

    frames: list[TracebackFrame]

    def as_python_traceback(self) -> TracebackType: ...
    def raw_frames(self) -> tuple[list[CodeType], list[int]]: ...
    @staticmethod
    def get_traceback() -> "Traceback | None": ...
    @staticmethod
    def code_addr2line(code: CodeType, lasti: int) -> int: ...
    @staticmethod
    def code_addr2location(code: CodeType, lasti: int) -> tuple[int, int, int, int]: ...
    @staticmethod
    def traceback_from_frames(frames: list[TracebackFrame]) -> TracebackType: ...


class GuardState:
    """The levels of the transfer guards, of a process or a thread."""

    explicit_device_put: bool
    explicit_device_get: bool
