"""Public accessors of what jaxlib's arrays, shardings and clients hold under private names.

jaxlib may rename these members in any release, so no other folder spells their names, which
`tests/house/test_private_members.py` checks. Each getter is an `operator.attrgetter`, which costs
as little as the attribute itself.
"""

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

# ---- of arrays -----------------------------------------------------------------------------------

# The sharding of an array, also of a deleted one.
sharding_of: Callable[[Any], Any] = attrgetter("_sharding")
# Whether computations with an array must run on its devices.
is_committed: Callable[[Any], bool] = attrgetter("_committed")
# The NumPy array that `cache_numpy_value` put on an array; None before that.
cached_numpy_value: Callable[[Any], np.ndarray | None] = attrgetter("_npy_value")
# The layout of an array's buffers, as PJRT has it.
pjrt_layout_of: Callable[[Any], Any] = attrgetter("_pjrt_layout")
# The layout of XLA that a layout of PJRT holds.
xla_layout_of: Callable[[Any], Any] = methodcaller("_xla_layout")


def cache_numpy_value(array: Any, value: np.ndarray) -> None:
    """Put an array's value in host memory on the array, which later reads return."""
    array._npy_value = value


# ---- of shardings --------------------------------------------------------------------------------

# The device of a SingleDeviceSharding.
device_of: Callable[[Any], Any] = attrgetter("_device")
# The DeviceList of a sharding.
device_list_of: Callable[[Any], Any] = attrgetter("_internal_device_list")
# The kind of memory of a sharding: None where neither a device nor the user says it.
memory_kind_of: Callable[[Any], str | None] = attrgetter("_memory_kind")
# The HloSharding of a GSPMDSharding.
hlo_sharding_of: Callable[[Any], Any] = attrgetter("_hlo_sharding")


def set_device_list_getter(mesh_class: type, device_list: Callable[[Any], Any]) -> None:
    """Give a class of meshes the property that NamedSharding reads the DeviceList from."""
    mesh_class._internal_device_list = property(device_list)  # type: ignore[attr-defined]


# ---- of clients and jitted functions -------------------------------------------------------------

# The platform of a client with its vendor: "cuda" or "rocm" where `client.platform` is "gpu".
raw_platform_of: Callable[[Any], str] = attrgetter("_raw_platform")
# The number of executables that the C++ call path of a jitted function holds.
call_cache_size: Callable[[Any], int] = methodcaller("_cache_size")
# Drop the executables that the C++ call path of a jitted function holds.
clear_call_cache: Callable[[Any], None] = methodcaller("_clear_cache")
