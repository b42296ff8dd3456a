"""The options that PJRT plugins create their clients with."""

import re
from collections.abc import Mapping

from hlofront.base.config import options
from hlofront.base.errors import PluginError

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


def client_settings(platform: str) -> ClientSettings:
    """Return the client options of a platform from the config, such as which GPUs to use.

    Raises:
      PluginError: if jax_pjrt_client_create_options cannot be parsed.
    """
    settings: ClientSettings = dict(_written_settings(_create_options.value))
    if platform not in _visible_devices:
        return settings
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
