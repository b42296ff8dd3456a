"""print_environment_info: the versions and devices to include in a bug report."""

import os
import platform
import sys

import numpy as np

from hlofront.base.version import __version__
from hlofront.bridge import plugins as bridge
from hlofront.pjrt import clients


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions, devices and settings to include in a bug report.

    Args:
      return_string: whether to return the text instead of printing it.

    Returns:
      The text, or None if it was printed.
    """
    devices = clients.devices()
    kinds = " ".join(dict.fromkeys([device.device_kind for device in devices]))
    lines = [
        f"hlofront: {__version__}",
        f"jaxlib: {bridge.jaxlib_version()}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {kinds}-{len(devices)}, {len(clients.local_devices())} local devices",
        f"process_count: {len({device.process_index for device in devices})}",
        f"platform: {platform.uname()}",
    ]
    prefixes = ("JAX_", "HLOFRONT_", "XLA_", "CUDA_VISIBLE_DEVICES")
    lines += [
        f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(prefixes)
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
