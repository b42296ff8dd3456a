"""jax.extend.backend: clients, their caches and XLA's compile options."""

from hlofront.base.caches import clear_caches as clear_in_memory_compilation_cache
from hlofront.bridge.ifrt_programs import ifrt_proxy as ifrt_proxy
from hlofront.pjrt.backends import backend_xla_version as backend_xla_version
from hlofront.pjrt.backends import backends as backends
from hlofront.pjrt.backends import clear_backends as clear_backends
from hlofront.pjrt.backends import get_compile_options as get_compile_options
from hlofront.pjrt.backends import register_backend_cache as register_backend_cache
from hlofront.pjrt.clients import client_for as get_backend
from hlofront.pjrt.clients import register_backend_factory as register_backend_factory
from hlofront.runtime.sharding.placement import default_device as get_default_device

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "ifrt_proxy",
    "register_backend_cache",
    "register_backend_factory",
]
