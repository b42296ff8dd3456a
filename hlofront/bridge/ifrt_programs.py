"""jaxlib's makers of programs for IFRT (the layer between JAX and PJRT), and proxy clients."""

import importlib
from types import ModuleType

from hlofront.bridge import state

ifrt_programs: ModuleType = state.extension.ifrt_programs
# Clients of devices in another process: `get_client(address, options)`.
ifrt_proxy: ModuleType = importlib.import_module("jaxlib._ifrt_proxy")
