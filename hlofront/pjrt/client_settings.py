"""The options that PJRT plugins create their clients with."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from hlofront.base.config import options
from hlofront.base.errors import PluginError
from hlofront.bridge.coordination import CoordinationClient

# Client options by name, as passed to a plugin.
ClientSettings = dict[str, str | int | bool | list[int]]

_create_options = options["jax_pjrt_client_create_options"]
_visible_devices = {
    "cuda": options["jax_cuda_visible_devices"],
    "rocm": options["jax_rocm_visible_devices"],
    "oneapi": options["jax_oneapi_visible_devices"],
}
_mock_topology = options["jax_mock_gpu_topology"]
_mock_processes = options["mock_num_gpu_processes"]


class GroupMember(Protocol):
    """The protocol of this process as a member of a group, with which clients are created."""

    process_id: int
    process_count: int
    client: CoordinationClient
    local_device_ids: Sequence[int] | None
    partition_index: int | None

    def collectives(self) -> object: ...
    def check(self, processes: Iterable[int] | None = None) -> None: ...


def client_settings(platform: str, group: GroupMember | None = None) -> ClientSettings:
    """Return the client options of a platform, such as which GPUs to use.

    They come from the config, and from the group that this process belongs to.

    Raises:
      PluginError: if jax_pjrt_client_create_options cannot be parsed.
    """
    settings: ClientSettings = {}
    if group is not None:
        settings |= {"node_id": group.process_id, "num_nodes": group.process_count}
        if group.partition_index is not None:
            settings["partition_index"] = group.partition_index
    settings |= _written_settings(_create_options.value)
    if platform not in _visible_devices:
        return settings
    if group is not None and group.local_device_ids is not None:
        settings["visible_devices"] = list(group.local_device_ids)
    visible = _visible_devices[platform].value
    if visible != "all":
        settings["visible_devices"] = [int(number) for number in visible.split(",")]
    topology = _mock_topology.value
    processes = _process_count(topology) if topology else _mock_processes.value
    if processes > 0:
        settings["enable_mock_nccl"] = True
        settings["num_nodes"] = processes
        if topology:
            settings["mock_gpu_topology"] = topology
    return settings


def _written_settings(written: str | Mapping[str, str | int] | None) -> Mapping[str, str | int]:
    """Parse settings written as name:value;name:value; return a mapping unchanged."""
    if not isinstance(written, str):
        return written or {}
    settings: dict[str, str | int] = {}
    for pair in filter(None, written.split(";")):
        name, colon, value = pair.partition(":")
        if not colon or ":" in value:
            raise PluginError(
                "the option jax_pjrt_client_create_options is a list of name:value with semicolons "
                f"between, such as 'max_inflight_computations:2': cannot read {pair!r}"
            )
        settings[name] = value
    return settings


def _process_count(topology: str) -> int:
    """Return the number of hosts of a GPU topology, written as 'slices x hosts x GPUs'."""
    sizes = re.fullmatch(r"\s*(\d+)\s*x\s*(\d+)\s*x\s*(\d+)\s*", topology)
    if sizes is None:
        raise PluginError(
            "the option jax_mock_gpu_topology is written as the numbers of slices, of hosts in a "
            f"slice and of GPUs in a host, such as '2x4x8': cannot read {topology!r}"
        )
    slices, hosts, _ = map(int, sizes.groups())
    return slices * hosts
