"""Public accessors of what jaxlib's arrays, shardings and clients hold under private names.

jaxlib may rename these members in any release, so no other folder spells their names, which
`tests/house/test_private_members.py` checks. Each getter is the C++ getter of a property, or an
`operator.attrgetter` where several classes have the member: both cost what the attribute does.
"""

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.bridge import state

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import (
        Client,
        Device,
        DeviceList,
        HloSharding,
        PjitFunction,
        PjRtLayout,
        Sharding,
        SingleDeviceSharding,
        XlaLayout,
    )

_ArrayImpl: Any = state.ArrayImpl
_NumPyArray = np.ndarray[Any, Any]

# ---- of arrays -----------------------------------------------------------------------------------

# The sharding of an array or of keys, also of deleted ones.
sharding_of: "Callable[[object], Sharding]" = attrgetter("_sharding")
# Computations with an array or with keys must run on their devices where this is true of it.
is_committed: Callable[[object], bool] = attrgetter("_committed")
# The getters in C++ of the sharding and of the commitment, for the public properties of arrays.
get_sharding: "Callable[[object], Sharding]" = _ArrayImpl._sharding.fget
get_committed: Callable[[object], bool] = _ArrayImpl._committed.fget
# The value of an array in host memory that `cache_numpy_value` put there; None before that.
cached_numpy_value: Callable[[object], _NumPyArray | None] = _ArrayImpl._npy_value.fget
# The layout of an array's buffers, as PJRT has it.
pjrt_layout_of: "Callable[[object], PjRtLayout]" = _ArrayImpl._pjrt_layout.fget
# Have an array hold its value in host memory, for later reads.
cache_numpy_value: Callable[[object, _NumPyArray], None] = _ArrayImpl._npy_value.fset
# The layout of XLA that a layout of PJRT holds.
xla_layout_of: "Callable[[PjRtLayout], XlaLayout]" = methodcaller("_xla_layout")

# ---- of shardings --------------------------------------------------------------------------------

# The device of a SingleDeviceSharding.
device_of: "Callable[[SingleDeviceSharding], Device]" = (
    state.extension.SingleDeviceSharding._device.fget
)
# The DeviceList of a sharding.
device_list_of: "Callable[[Sharding], DeviceList]" = attrgetter("_internal_device_list")
# The kind of memory of a sharding: None where neither a device nor the user says it.
memory_kind_of: "Callable[[Sharding], str | None]" = attrgetter("_memory_kind")
# The HloSharding of a GSPMDSharding.
hlo_sharding_of: "Callable[[Sharding], HloSharding]" = attrgetter("_hlo_sharding")


def set_device_list_getter(
    mesh_class: type, device_list: "Callable[[Any], DeviceList | None]"
) -> None:
    """Give a class of meshes the property that NamedSharding reads the DeviceList from."""
    mesh_class._internal_device_list = property(device_list)  # type: ignore[attr-defined]


# ---- of clients and jitted functions -------------------------------------------------------------

# The platform of a client with its vendor: "cuda" or "rocm" where `client.platform` is "gpu".
raw_platform_of: "Callable[[Client], str]" = attrgetter("_raw_platform")
# The number of executables that the C++ call path of a jitted function holds.
call_cache_size: "Callable[[PjitFunction], int]" = methodcaller("_cache_size")
# Drop the executables that the C++ call path of a jitted function holds.
clear_call_cache: "Callable[[PjitFunction], None]" = methodcaller("_clear_cache")
