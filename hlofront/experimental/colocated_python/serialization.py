"""jax.experimental.colocated_python.serialization: the lists of devices that are sent."""

from hlofront.bridge.client import DeviceList as DeviceList
