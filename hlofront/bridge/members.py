"""Public accessors of what jaxlib's arrays, shardings and clients hold under private names.

jaxlib may rename these members in any release, so no other folder spells their names, which
`tests/house/test_private_members.py` checks. Each getter is the C++ getter of a property, or an
`operator.attrgetter` where several classes have the member: both cost what the attribute does.
"""

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from hlofront.bridge import state

_ArrayImpl: Any = state.ArrayImpl
_SingleDeviceSharding: Any = state.extension.SingleDeviceSharding

# ---- of arrays -----------------------------------------------------------------------------------

# The sharding of an array or of keys, also of deleted ones.
sharding_of: Callable[[Any], Any] = attrgetter("_sharding")
# Whether computations with an array or with keys must run on their devices.
is_committed: Callable[[Any], bool] = attrgetter("_committed")
# The getters of these two in C++, for the properties of arrays that are public.
get_sharding: Callable[[Any], Any] = _ArrayImpl._sharding.fget
get_committed: Callable[[Any], bool] = _ArrayImpl._committed.fget
# The value of an array in host memory that `cache_numpy_value` put there; None before that.
cached_numpy_value: Callable[[Any], np.ndarray | None] = _ArrayImpl._npy_value.fget
# The layout of an array's buffers, as PJRT has it.
pjrt_layout_of: Callable[[Any], Any] = _ArrayImpl._pjrt_layout.fget
# Have an array hold its value in host memory, for later reads.
cache_numpy_value: Callable[[Any, np.ndarray], None] = _ArrayImpl._npy_value.fset
# The layout of XLA that a layout of PJRT holds.
xla_layout_of: Callable[[Any], Any] = methodcaller("_xla_layout")

# ---- of shardings --------------------------------------------------------------------------------

# The device of a SingleDeviceSharding.
device_of: Callable[[Any], Any] = _SingleDeviceSharding._device.fget
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
