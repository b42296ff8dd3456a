"""Public accessors of private members of jaxlib's arrays, shardings and clients.

jaxlib may rename these members in any release, so no other folder spells their names, as
`tests/conventions/test_private_members.py` checks. Each getter is the C++ getter of a property, or
an `operator.attrgetter` if several classes have the member; both are as fast as the attribute.
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

# ---- arrays --------------------------------------------------------------------------------------

# The sharding of an array or key array, even if it is deleted.
sharding_of: "Callable[[object], Sharding]" = attrgetter("_sharding")
# Whether an array or key array is committed: computations with it must run on its devices.
is_committed: Callable[[object], bool] = attrgetter("_committed")
# The C++ getters of the sharding and of the commitment, for the public properties of arrays.
get_sharding: "Callable[[object], Sharding]" = _ArrayImpl._sharding.fget
get_committed: Callable[[object], bool] = _ArrayImpl._committed.fget
# The NumPy value that `cache_numpy_value` stored on an array; None before that.
cached_numpy_value: Callable[[object], _NumPyArray | None] = _ArrayImpl._npy_value.fget
# The PJRT layout of an array's buffers.
pjrt_layout_of: "Callable[[object], PjRtLayout]" = _ArrayImpl._pjrt_layout.fget
# Store an array's NumPy value on it, for later reads.
cache_numpy_value: Callable[[object, _NumPyArray], None] = _ArrayImpl._npy_value.fset
# The XLA layout that a PJRT layout holds.
xla_layout_of: "Callable[[PjRtLayout], XlaLayout]" = methodcaller("_xla_layout")

# ---- shardings -----------------------------------------------------------------------------------

# The device of a SingleDeviceSharding.
device_of: "Callable[[SingleDeviceSharding], Device]" = (
    state.extension.SingleDeviceSharding._device.fget
)
# The DeviceList of a sharding.
device_list_of: "Callable[[Sharding], DeviceList]" = attrgetter("_internal_device_list")
# The memory kind of a sharding; None if neither the device nor the user specifies one.
memory_kind_of: "Callable[[Sharding], str | None]" = attrgetter("_memory_kind")
# The HloSharding of a GSPMDSharding.
hlo_sharding_of: "Callable[[Sharding], HloSharding]" = attrgetter("_hlo_sharding")


def set_device_list_getter(
    mesh_class: type, device_list: "Callable[[Any], DeviceList | None]"
) -> None:
    """Define the property of a class of meshes from which NamedSharding reads the DeviceList."""
    mesh_class._internal_device_list = property(device_list)  # type: ignore[attr-defined]


# ---- clients and jitted functions ----------------------------------------------------------------

# The platform of a client by vendor: "cuda" or "rocm" if `client.platform` is "gpu".
raw_platform_of: "Callable[[Client], str]" = attrgetter("_raw_platform")
# The number of executables that the C++ call path of a jitted function holds.
call_cache_size: "Callable[[PjitFunction], int]" = methodcaller("_cache_size")
# Drop the executables that the C++ call path of a jitted function holds.
clear_call_cache: "Callable[[PjitFunction], None]" = methodcaller("_clear_cache")
